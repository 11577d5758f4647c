"""`netbuf-gym validate`: the simulator compared with reference measurements, or with the Linux kernel."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from netbuf_gym.cli.common import check_outputs, make_whole_parser
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.validation import Report, host_settings, validate

SEEDS = 30
"""Runs of a cell with random numbers, by default."""
EPILOG = """exit status: 0 all within tolerance, 1 a difference out of tolerance, 2 bad input

examples:
  netbuf-gym validate studies/validation/reference
  netbuf-gym validate studies/validation/reference/ns3 --only 'ns3-dumbbell/A3*/Cubic/*' --json report.json
  netbuf-gym validate studies/validation/reference --markdown report.md
  netbuf-gym validate --against linux --json settings.json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", metavar="DIR", nargs="?", help="folder of reference measurements: CSV files, at any depth")
    parser.add_argument(
        "--against",
        choices=["linux"],
        help="compare with this live plant instead: 40 settings of host buffers, 20 s each",
    )
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")
    parser.add_argument(
        "--seeds",
        type=make_whole_parser(2, 100_000),
        metavar="N",
        help=f"runs of a cell with random numbers, 2 to 100000 (default: {SEEDS}); not with --against",
    )
    jobs = f"concurrent runs, 1 to 1024 (default: one for each core; live: {host_settings.LIVE_JOBS})"
    parser.add_argument("--jobs", type=make_whole_parser(1, 1024), metavar="N", help=jobs)
    parser.add_argument("--only", metavar="PATTERN", help="only cells whose id contains PATTERN or matches it (*, ?, [...])")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    if (arguments.folder is None) == (arguments.against is None):
        found = "neither DIR nor --against" if arguments.folder is None else f"DIR = {arguments.folder!r} beside --against"
        raise ConfigError(f"{found}; valid: one of them")
    if arguments.against and arguments.seeds is not None:
        raise ConfigError(f"--seeds {arguments.seeds} beside --against; valid: with DIR, a setting is run once on each plant")
    check_outputs(arguments.json, arguments.markdown)
    report: Report | host_settings.SettingsReport
    if arguments.against:
        report = host_settings.compare(arguments.against, arguments.only, arguments.jobs, partial(print, file=sys.stderr))
    else:
        report = validate(arguments.folder, seeds=arguments.seeds or SEEDS, jobs=arguments.jobs, only=arguments.only)
    if arguments.json:
        write_json(arguments.json, report.to_dict())
    if arguments.markdown:
        write_atomic(arguments.markdown, report.markdown())
    print(report.text())
    return 0 if report.within else 1
