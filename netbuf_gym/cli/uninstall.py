"""`netbuf-gym uninstall`: remove a congestion control that `netbuf-gym install` has installed."""

from __future__ import annotations

import argparse

from netbuf_gym.plants.linux.bpf import installed


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("name", metavar="NAME", help="name of the congestion control")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    sender = installed.get_sender(arguments.name)
    using = sender.read_totals().sockets if sender.maps else 0
    sender.remove()
    print(f"{sender.name}: removed" + (f"; {using} sockets keep it until they are closed" if using else ""))
    return 0
