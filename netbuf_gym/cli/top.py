"""`netbuf-gym top`: what installed congestion controls do, again and again."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time

from netbuf_gym.cli import status
from netbuf_gym.cli.common import parse_real
from netbuf_gym.host.tuner import catch_end_signals
from netbuf_gym.utils.arguments import check_integer, check_real

ENTER, LEAVE, HOME = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H\x1b[J"
"""Of a terminal: a screen of its own without a cursor, and back; from the top left on, emptied."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "--interval", type=parse_real, default=1.0, metavar="S", help="seconds between looks, 0.1 to 3600 (default: 1)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="number of looks (default: until Ctrl-C)")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each look: time_s, controls")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    interval_s = check_real("interval", arguments.interval, 0.1, 3600)
    looks = None if arguments.count is None else check_integer("count", arguments.count, 1, 2**31)
    drawn = sys.stdout.isatty() and not arguments.json
    found = status.describe_all()  # what is refused is told before the screen changes
    with catch_end_signals() as ended:
        try:
            print(ENTER if drawn else "", end="")
            while True:
                if arguments.json:
                    print(json.dumps({"time_s": time.time(), "controls": found}), flush=True)
                else:
                    text = f"{time.strftime('%H:%M:%S')}\n\n{status.format_all(found)}"
                    print(HOME + fit(text) if drawn else text + "\n", flush=True, end="" if drawn else "\n")
                looks = None if looks is None else looks - 1
                if looks != 0:
                    ended.wait(interval_s)
                if looks == 0 or ended.number:
                    return 0
                found = status.describe_all()
        finally:
            print(LEAVE if drawn else "", end="", flush=True)


def fit(text: str) -> str:
    """Return as much of a text as the terminal has room for."""
    columns, rows = shutil.get_terminal_size()
    return "\n".join(line[:columns] for line in text.splitlines()[:rows])
