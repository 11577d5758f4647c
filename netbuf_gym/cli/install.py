"""`netbuf-gym install`: a trained sender as a congestion control of this machine's kernel."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from netbuf_gym.cli.common import parse_real
from netbuf_gym.errors import require_extra
from netbuf_gym.host.tuner import catch_end_signals
from netbuf_gym.plants.linux.bpf import senders
from netbuf_gym.plants.linux.bpf.installed import Bounds
from netbuf_gym.scenarios.compiled_agent import SUFFIX, CompiledAgent, load_compiled_agent

EPILOG = """examples:
  netbuf-gym install congestion_window/sender
  netbuf-gym install congestion_window-sender.policy --name mine --pin
  iperf3 -c 10.0.0.2 -C netbuf
"""
DEFAULT_NAME = "netbuf"
_LOOK_S = 1.0


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("agent", metavar="AGENT", help=f"agent in the zoo, model file, run folder, or compiled {SUFFIX} file")
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"name for programs to choose it by (default: {DEFAULT_NAME})")
    parser.add_argument(
        "--pin", action="store_true", help="keep it until netbuf-gym uninstall or the next boot, rather than until this ends"
    )
    parser.add_argument(
        "--unrestricted",
        action="store_true",
        help="let every program choose it; else those with CAP_NET_ADMIN, and all once it is in "
        "net.ipv4.tcp_allowed_congestion_control",
    )
    usual = Bounds()
    parser.add_argument(
        "--max-window",
        type=parse_real,
        default=usual.max_window_mb,
        metavar="MB",
        help=f"largest window in megabytes (default: {usual.max_window_mb:g})",
    )
    parser.add_argument("--max-rate", type=parse_real, metavar="MBPS", help="highest pacing rate in Mbit/s (default: any)")
    parser.add_argument(
        "--max-growth", type=parse_real, metavar="FACTOR", help="largest growth of a window by one decision (default: any)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    bounds = Bounds(arguments.max_window, arguments.max_rate, arguments.max_growth)
    senders.check_name(arguments.name)
    senders.require_support()
    if arguments.pin:
        senders.check_pin(arguments.name)
    compiled = load_sender(arguments.agent)
    about = compiled.about
    settings = bounds.pack(str(about.get("agent", "")))
    sender = senders.InstalledSender(arguments.name, compiled.policy, settings, arguments.unrestricted)
    try:
        who = "every program" if arguments.unrestricted else "programs with CAP_NET_ADMIN"
        print(f"{sender.name}: {about.get('agent')}, {about.get('network')}, for {who}")
        if arguments.pin:
            print(f"pinned as {sender.pin()}; netbuf-gym uninstall {sender.name} removes it")
            return 0
        print("Ctrl-C removes it", flush=True)
        return _wait(sender.is_removed)
    finally:
        sender.close()


def load_sender(word: str) -> CompiledAgent:
    """Return the integers of an agent, which are read if it is a compiled one, and made otherwise.

    Raises:
        NetbufError: No such agent, or one that cannot be compiled.
    """
    if word.endswith(SUFFIX):
        return load_compiled_agent(word)
    with require_extra("a trained agent", "train"):
        import torch

        from netbuf_gym import zoo
        from netbuf_gym.zoo.compile import compile_agent
    torch.set_num_threads(1)
    return compile_agent(zoo.load(word))


def _wait(is_removed: Callable[[], bool]) -> int:
    """Wait for a signal that ends the process, or for the removal of the control; return the exit status."""
    with catch_end_signals() as ended:
        while not ended.number:
            if is_removed():
                print("removed by netbuf-gym uninstall")
                return 0
            ended.wait(_LOOK_S)
        return 128 + ended.number
