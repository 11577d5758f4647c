"""`netbuf-gym reproduce`: a study of the checkout, run again."""

from __future__ import annotations

import argparse
from typing import Any

from netbuf_gym.cli.program import Parser
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import checkout, executors

ABOUT = f"""Studies are not part of the installed package. `netbuf-gym reproduce --help` in a clone of the repository lists them
with their settings.

settings, KEY=VALUE in the grammar of `netbuf-gym train` (lists in brackets, no sweeps); for every study:
  output=DIR               folder of the results (default: runs/reproduce/STUDY-DIGEST)
  jobs=N                   number of concurrent runs (default: one for each core)
  executor=NAME            where the runs are executed (default: local)
  figures=true             plot figures: true or false

executors:
{executors.list_executors()}

DIR receives runs.csv (a row for each run; the first line is the command), campaign.json and figures/. The same command
continues an interrupted campaign. A runs.csv with a truncated end is completed; one with other damage is refused.

Exit status: 0 done, 2 bad input, 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym reproduce rlbm --cfg job
  netbuf-gym reproduce rlbm schemes=[naive,dt] sizes=[100] loads=[0.8] seeds=2 figures=false
  netbuf-gym reproduce sender --studies ../netbuf-gym
"""


def _import_studies(given: str | None = None) -> Any:
    return checkout.import_studies(checkout.require_checkout(given), "command")


def _format_epilog() -> str:
    try:
        return _import_studies().describe()
    except ConfigError as error:
        return str(error)


def add(parser: Parser) -> None:
    """Add the arguments of the command to its parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = f"{parser.description}\n\n{ABOUT}"
    parser.make_epilog = _format_epilog
    parser.add_argument("experiment", metavar="STUDY", help="name of the study")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="settings that differ from the defaults")
    parser.add_argument("--studies", metavar="DIR", help="checkout with the studies (default: that of the current folder)")
    parser.add_argument("--cfg", "-c", choices=["job"], help="print the settings and exit")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    return _import_studies(arguments.studies).run(arguments.experiment, arguments.settings, bool(arguments.cfg))
