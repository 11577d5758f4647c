"""`netbuf-gym live`: the kernel of this machine: what it can do, and its settings tuned while it works."""

from __future__ import annotations

import argparse

from netbuf_gym.commands import live_check, live_tune

HELP = "tune this host's own buffers while it works, and say what this machine can do"
EPILOG = """examples:
  netbuf-gym live check
  netbuf-gym live tune
  netbuf-gym live tune contender=bpftune --duration 600 --log tune.csv --plot tune.png
  netbuf-gym live tune model=runs/host/model.zip --apply --ring eth0
  netbuf-gym live tune tcp_wmem_max_bytes=16777216 --apply --range tcp_wmem_max_bytes=1048576:33554432
  netbuf-gym live restore
"""
VERBS = {"check": live_check, "tune": live_tune, "restore": live_tune}


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True, metavar=" | ".join(VERBS))
    live_check.add(verbs)
    live_tune.add(verbs)


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    return VERBS[arguments.verb].run(arguments)
