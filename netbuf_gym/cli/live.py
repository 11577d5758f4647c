"""`netbuf-gym live`: checks this machine's kernel, tunes its settings while it works, and runs agents on it."""

from __future__ import annotations

import argparse

from netbuf_gym.cli import live_check, live_run, live_tune

HELP = "tune this host's own buffers while it works, run agents on its kernel, and say what it can do"
EPILOG = """examples:
  netbuf-gym live check
  netbuf-gym live tune
  netbuf-gym live tune controller=bpftune --duration 600 --log tune.csv --plot tune.png
  netbuf-gym live tune model=runs/host/model.zip --apply --ring eth0
  netbuf-gym live tune tcp_wmem_max_bytes=16777216 --apply --range tcp_wmem_max_bytes=1048576:33554432
  netbuf-gym live restore
  netbuf-gym live run controller=autotuning,max task=host_buffers scenario=auter/local --set duration_s=60 --plot run.png
  netbuf-gym live run controller=tune-1 task=host_buffers scenario=auter/local --proxy shadowsocks --set traffic=mixed
"""
WORDS = True
"""Verbs take KEY=VALUE words."""
VERBS = {"check": live_check, "tune": live_tune, "restore": live_tune, "run": live_run}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True, metavar=" | ".join(VERBS))
    live_check.add(verbs)
    live_tune.add(verbs)
    live_run.add(verbs)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    return VERBS[arguments.verb].run(arguments)
