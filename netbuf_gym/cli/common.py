"""Argument types and checks shared by several subcommands."""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils import overrides
from netbuf_gym.utils.plots import FORMATS, require_matplotlib


def parse_assignment(text: str) -> tuple[str, object]:
    """Parse `name=value` of a --set option in Hydra's grammar; a value that has no place in it is a text as it stands."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, overrides.parse_value(value)
    except (ValueError, RecursionError):
        return name, value


def collect_assignments(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return the --set options as keyword arguments.

    Raises:
        ConfigError: A name that is given twice.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ConfigError("--set gives a name twice; valid: each name once")
    return values


def add_scenario_arguments(parser: argparse.ArgumentParser, owner: str = "scenario") -> None:
    """Add the option --set for the arguments of a scenario, or of another owner."""
    parser.add_argument(
        "--set",
        action="append",
        type=parse_assignment,
        default=[],
        metavar="NAME=VALUE",
        help=f"argument of the {owner}; repeatable",
    )


def add_seed(parser: argparse.ArgumentParser, default: int, meaning: str = "seed of the random numbers") -> None:
    """Add the option --seed."""
    parser.add_argument(
        "--seed", type=make_whole_parser(0, 2**63 - 1), default=default, metavar="N", help=f"{meaning} (default: {default})"
    )


def format_keys(keys: Mapping[str, str]) -> str:
    """Format the keys of settings with their meanings, a line each."""
    width = max(map(len, keys))
    return "\n".join(f"  {key:{width}}  {meaning}" for key, meaning in keys.items())


def parse_names(text: str) -> list[str]:
    """Parse a comma-separated list of at least one name."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise argparse.ArgumentTypeError(f"{text!r} holds an empty name; valid: names separated by commas")
    return items


def make_whole_parser(low: int, high: int) -> Callable[[str], int]:
    """Return an argument type for whole numbers in [low, high]."""

    def parse(text: str) -> int:
        try:
            value = overrides.read_whole(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return value

    return parse


def parse_real(text: str) -> float:
    """Parse a finite number; an argument type, whose range is checked where the number is used."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print the warnings of the `with` block in one line each, in the style of errors."""

    def show(message: Warning | str, *where: object, **more: object) -> None:
        print(f"netbuf-gym: warning: {message}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def check_outputs(*paths: str | None) -> None:
    """Check, before any work is done, that output files can be written; None stands for no file.

    Raises:
        ConfigError: No such folder, no permission, or one file named twice.
    """
    given = [Path(path) for path in paths if path is not None]
    for path in given:
        if "\0" in str(path):
            raise ConfigError(f"{quote(str(path))}: cannot be written: the name holds a null character")
        if path.is_dir():
            raise ConfigError(f"{path}: is a folder; valid: a file name")
        folder = path.parent
        if not folder.is_dir():
            raise ConfigError(f"{path}: cannot be written: there is no folder {folder}")
        target = path if path.exists() and not path.is_file() else folder
        if not os.access(target, os.W_OK):
            raise ConfigError(f"{path}: cannot be written: no permission in {folder}")
    resolved = [path.resolve() for path in given if path.is_file() or not path.exists()]
    if len(set(resolved)) < len(resolved):
        raise ConfigError("two outputs name the same file; valid: a file of its own for each")


def check_plot(path: str | None) -> None:
    """Check that a plot can be written; None stands for no plot.

    Raises:
        ConfigError: An unknown format.
        MissingExtraError: matplotlib is not installed.
    """
    if path is None:
        return
    if Path(path).suffix.lower().lstrip(".") not in FORMATS:
        raise ConfigError(f"{quote(path)} has no known plot format; valid: a name that ends in .png, .pdf or .svg")
    require_matplotlib()
