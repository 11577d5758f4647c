"""`netbuf-gym reproduce`: a study of the checkout, run again."""

from __future__ import annotations

import argparse
from typing import Any

from netbuf_gym import checkout
from netbuf_gym.errors import ConfigError

HELP = "run a study of the project's checkout, such as a paper's own experiments, and draw its figures"


INTERMIXED = True
"""Options may stand among the settings."""


def _studies(given: str | None = None) -> Any:
    return checkout.import_studies(checkout.require_checkout(given), "command")


def _epilog() -> str:
    try:
        return _studies().describe()
    except ConfigError as error:
        return str(error)


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = _epilog, argparse.RawDescriptionHelpFormatter  # type: ignore[assignment]
    parser.add_argument("experiment", metavar="STUDY", help="see below")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what differs from the defaults, see below")
    parser.add_argument("--studies", metavar="DIR", help="a checkout; default: the one that this is called in")
    parser.add_argument("--cfg", "-c", choices=["job"], help="print the settings and exit")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    return _studies(arguments.studies).run(arguments.experiment, arguments.settings, bool(arguments.cfg))
