"""Kept results of other controllers, which are ranked beside a run's own."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import rows
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.evaluation.suites.suite import Edition

ControllerWorlds = dict[str, dict[str, dict[str, float]]]
"""Metrics by controller and world."""
ABOUT = ("controller", "family", "world", "agents", "seed")


def describe_edition(suite: FieldSuite, edition: Edition) -> str:
    """Return a text that names the edition which results are of."""
    return f"suite {suite.name}, version {edition.version}, digest {edition.digest}"


def read(path: Path, suite: FieldSuite, edition: Edition, field: str = "beside") -> ControllerWorlds:
    """Return the results in a `worlds.csv`, or in a gzipped one.

    Raises:
        ConfigError: If the file cannot be read, is damaged, or is of other worlds.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no worlds.csv"
        raise ConfigError(f"{field} = {path}: cannot be read: {why}; valid: a worlds.csv of {suite.name}") from None
    first, _, rest = text.partition("\n")
    if describe_edition(suite, edition) not in first:
        raise ConfigError(
            f"{field} = {path}: is of {first.removeprefix('# ')[:120]!r}; valid: {describe_edition(suite, edition)}"
        )
    header, *table = csv.reader(io.StringIO(rest)) if rest else [[]]
    columns = [*ABOUT, *(metric.key for metric in suite.metrics)]
    if header != columns:
        raise ConfigError(f"{field} = {path}: has columns {shown(header)}; valid: those of {suite.name}, {','.join(columns)}")
    worlds: ControllerWorlds = {}
    for number, row in enumerate(table, 3):
        try:
            metrics = [float(value) if value else math.nan for value in row[len(ABOUT) :]]
            if len(row) != len(columns) or (number == len(table) + 2 and not rest.endswith("\n")):
                raise ValueError
        except ValueError:
            said = f"{field} = {path}: line {number} is damaged: {shown(','.join(row))}"
            raise ConfigError(f"{said}; valid: {len(columns)} columns, {', '.join(ABOUT)} and numbers") from None
        worlds.setdefault(row[0], {})[row[ABOUT.index("world")]] = dict(zip(columns[len(ABOUT) :], metrics, strict=True))
    return worlds


def read_files(suite: FieldSuite, edition: Edition, files: Sequence[Path]) -> ControllerWorlds:
    """Return the results in files, of controllers that are ranked beside those of the run.

    Raises:
        ConfigError: As in `read`.
    """
    found: ControllerWorlds = {}
    for path in files:
        found |= read(path, suite, edition)
    return found


def read_kept(suite: FieldSuite, edition: Edition) -> tuple[ControllerWorlds, list[str]]:
    """Return the kept results of a suite, and sentences about those that are stale, or left out because they do not fit."""
    found, unfit = rows.read_kept(suite, edition)
    says = [f"Kept results that are not ranked: {error}." for error in unfit]
    stale = [f"{name} ({one.stale})" for name, one in found.items() if one.stale]
    says += [f"Stale: {', '.join(stale)}."] if stale else []
    return {name: {world: dict(own) for world, own in one.worlds.items()} for name, one in found.items()}, says


def merge_results(worlds: ControllerWorlds, own: ControllerWorlds) -> ControllerWorlds:
    """Return all results; those of the present run replace others of the same controller."""
    return {**worlds, **own}
