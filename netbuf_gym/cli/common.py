"""What several subcommands share."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.utils.plots import FORMATS, require

FORMER = {"contender": "controller"}
"""Present names of settings by former ones."""


def assignment(text: str) -> tuple[str, object]:
    """`name=value` of a --set option: the value as JSON if it is JSON, as a string otherwise."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    name = FORMER.get(name, name)
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def assignments(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """The --set options as keyword arguments; each name once."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ConfigError("--set gives a name twice; valid: each name once")
    return values


def names(text: str) -> list[str]:
    """A list separated by commas, of at least one name."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise argparse.ArgumentTypeError(f"{text!r} holds an empty name; valid: names separated by commas")
    return items


def whole(low: int, high: int) -> Callable[[str], int]:
    """An argument type: a whole number in [low, high]."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return value

    return parse


def real(text: str) -> float:
    """An argument type: a finite number (its range is checked where it is used)."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def check_outputs(*paths: str | None) -> None:
    """Refuses files that could not be written, before any work is done for them.

    Raises:
        ConfigError: No such folder, no permission, or one file named twice.
    """
    given = [Path(path) for path in paths if path is not None]
    for path in given:
        if "\0" in str(path):
            raise ConfigError(f"{shown(str(path))}: cannot be written: the name holds a null character")
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
    """Refuses a plot that could not be made: an unknown format, or matplotlib missing.

    Raises:
        ConfigError, MissingExtraError: As said.
    """
    if path is None:
        return
    if Path(path).suffix.lower().lstrip(".") not in FORMATS:
        raise ConfigError(f"{shown(path)} has no known plot format; valid: a name that ends in .png, .pdf or .svg")
    require()
