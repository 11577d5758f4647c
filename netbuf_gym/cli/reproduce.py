"""`netbuf-gym reproduce`: runs a study of the checkout again."""

from __future__ import annotations

import argparse
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import checkout, executors

HELP = "run a study of the project's checkout, such as a paper's own experiments, and draw its figures"
ABOUT = f"""studies are not part of the installed package: a clone of the repository has them, and `netbuf-gym reproduce --help`
in it lists them with their settings.

settings are KEY=VALUE in the grammar of `netbuf-gym train`, lists in brackets, but no sweeps. Those of every study:
  output=DIR               default: runs/reproduce/STUDY-DIGEST
  jobs=N                   of them at once; default: one for each core
  executor=NAME            where the runs are made; default: local
  figures=true             whether to draw

executors:
{executors.list_executors()}

DIR gets runs.csv (a row a run, its first line the command), campaign.json and figures/. An interrupted campaign goes on
when the command is given again; a runs.csv whose end was cut is completed, one that is damaged otherwise is refused.

Exit status: 0 done, 2 bad input, 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym reproduce rlbm --cfg job
  netbuf-gym reproduce rlbm schemes=[naive,dt] sizes=[100] loads=[0.8] seeds=2 figures=false
  netbuf-gym reproduce sender --studies ../netbuf-gym
"""

INTERMIXED = True
"""Options may stand among the settings."""


def _import_studies(given: str | None = None) -> Any:
    return checkout.import_studies(checkout.require_checkout(given), "command")


def _format_epilog() -> str:
    try:
        return _import_studies().describe()
    except ConfigError as error:
        return str(error)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.formatter_class, parser.description = argparse.RawDescriptionHelpFormatter, f"{HELP}\n\n{ABOUT}"
    parser.epilog = _format_epilog
    parser.add_argument("experiment", metavar="STUDY", help="its name")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what differs from the defaults, see below")
    parser.add_argument("--studies", metavar="DIR", help="a checkout; default: the one that this is called in")
    parser.add_argument("--cfg", "-c", choices=["job"], help="print the settings and exit")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    return _import_studies(arguments.studies).run(arguments.experiment, arguments.settings, bool(arguments.cfg))
