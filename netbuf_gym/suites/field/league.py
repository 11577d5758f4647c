"""Results that are kept: of whoever else is ranked beside a run's contenders."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.files import write_atomic
from netbuf_gym.suites.field.suite import FieldSuite
from netbuf_gym.suites.suite import Edition

FOLDER = Path(__file__).parent / "results"
Worlds = dict[str, dict[str, dict[str, float]]]
"""By contender and world its metrics."""
ABOUT = ("controller", "family", "world", "agents", "seed")


def committed(suite: FieldSuite) -> Path:
    """Where the package keeps the results of a suite."""
    return FOLDER / f"{suite.name.replace('/', '-')}.csv.gz"


def stamp(suite: FieldSuite, edition: Edition) -> str:
    """Which worlds results are of."""
    return f"suite {suite.name}, version {edition.version}, digest {edition.digest}"


def keep(path: Path, table: str) -> None:
    """Adds a `worlds.csv` to those that the package keeps, in the place of what its contenders had there; results of other
    worlds, and of a table of other columns, are forgotten. The same bytes for the same rows."""
    first, header, *rows = table.splitlines()
    if path.is_file():
        before, columns, *old = gzip.decompress(path.read_bytes()).decode().splitlines()
        if before.partition("; ")[2] == first.partition("; ")[2] and columns == header:
            now = {row.partition(",")[0] for row in rows}
            rows = [row for row in old if row.partition(",")[0] not in now] + rows
    rows.sort(key=lambda row: row.partition(",")[0])
    table = "\n".join([f"# python benchmarks/field.py; {first.partition('; ')[2]}", header, *rows, ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, gzip.compress(table.encode(), 9, mtime=0))


def read(path: Path, suite: FieldSuite, edition: Edition, field: str = "beside") -> Worlds:
    """The results in a `worlds.csv`, or in one that was packed.

    Raises:
        ConfigError: It cannot be read, is damaged, or of other worlds.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no worlds.csv"
        raise ConfigError(f"{field} = {path}: cannot be read: {why}; valid: a worlds.csv of {suite.name}") from None
    first, _, rest = text.partition("\n")
    if stamp(suite, edition) not in first:
        raise ConfigError(f"{field} = {path}: is of {first.removeprefix('# ')[:120]!r}; valid: {stamp(suite, edition)}")
    header, *rows = csv.reader(io.StringIO(rest)) if rest else [[]]
    columns = [*ABOUT, *(metric.key for metric in suite.metrics)]
    if header != columns:
        raise ConfigError(f"{field} = {path}: has columns {shown(header)}; valid: those of {suite.name}, {','.join(columns)}")
    worlds: Worlds = {}
    for number, row in enumerate(rows, 3):
        try:
            metrics = [float(value) if value else math.nan for value in row[len(ABOUT) :]]
            if len(row) != len(columns) or (number == len(rows) + 2 and not rest.endswith("\n")):
                raise ValueError
        except ValueError:
            said = f"{field} = {path}: line {number} is damaged: {shown(','.join(row))}"
            raise ConfigError(f"{said}; valid: {len(columns)} columns, {', '.join(ABOUT)} and numbers") from None
        worlds.setdefault(row[0], {})[row[ABOUT.index("world")]] = dict(zip(columns[len(ABOUT) :], metrics, strict=True))
    return worlds


def beside(suite: FieldSuite, edition: Edition, files: Sequence[Path]) -> Worlds:
    """Whoever is ranked beside: what files hold.

    Raises:
        ConfigError: As `read` does.
    """
    found: Worlds = {}
    for path in files:
        found |= read(path, suite, edition)
    return found


def kept(suite: FieldSuite, edition: Edition) -> tuple[Worlds, str]:
    """What the package keeps of a suite, and why it is not ranked, as results of an earlier version are not; "" where it is."""
    path = committed(suite)
    try:
        return (read(path, suite, edition, "kept results") if path.is_file() else {}), ""
    except ConfigError as error:
        return {}, str(error)


def merged(worlds: Worlds, own: Worlds) -> Worlds:
    """Everybody; of who is in both, what was run now."""
    return {**worlds, **own}
