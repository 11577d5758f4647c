"""Results of controllers on suites as files: a row a world, a file a suite and controller (`results/suites/rfc9743/cubic.csv`).

The first line is a comment that holds JSON: the suite's edition, the controller and its model, and the program, machine and
command that made the rows. The second names the columns: family, world, agents, seed, then the suite's metrics; an empty cell
says that a world has no such value.

>>> from netbuf_gym.evaluation.suites import rows, suite
>>> kept = rows.kept(suite("mvfst-rl"))[0]["cubic"]
>>> kept.about["suite"], len(kept.worlds)
('mvfst-rl', 54)
"""

from __future__ import annotations

import csv
import io
import json
import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.suite import Edition, Suite
from netbuf_gym.utils.data import PACKAGE, find_data
from netbuf_gym.utils.files import plain, read_text, write_atomic
from netbuf_gym.version import __version__

SCHEMA = "netbuf-gym/rows/1"
INSTALLED = PACKAGE / "data" / "results" / "suites"
"""Kept results that come with an installed package; a checkout has none there."""
FOLDER = find_data("results") / "suites"
"""Kept results: those of the installed package, or of the checkout."""
COLUMNS = ("family", "world", "agents", "seed")
"""Before a suite's metrics."""
ABOUT = ("suite", "version", "digest", "task", "controller")
"""Keys of a file's first line that name its worlds and its controller."""
MAX_BYTES = 1 << 26
STALE = "stale"
"""Key of a file's first line that says why its rows are not current, in words."""


@dataclass(frozen=True)
class Rows:
    """Results of one controller on the worlds of a suite.

    Attributes:
        about: First line of the file: `ABOUT`, and what else is known (`model_sha256`, `netbuf_gym`, `machine`, `command`,
            `seconds`, `cpu_seconds`, `decision_us`; of an agent `algo`, `seed`, `recipe`, `timesteps`, `group`).
        worlds: Metrics by the name of each world; NaN where a world has no such value.
        where: File that they were read from, for messages.
    """

    about: Mapping[str, Any]
    worlds: Mapping[str, Mapping[str, float]]
    where: str = ""

    @property
    def controller(self) -> str:
        """Name of the controller."""
        return str(self.about["controller"])

    @property
    def stale(self) -> str:
        """Reason why the rows are not current, as `netbuf-gym results status` found it; "" where none is known."""
        return str(self.about.get(STALE) or "")

    def played(self, edition: Edition) -> Played:
        """The rows as if the controller had just played all worlds of an edition."""
        values = [dict(self.worlds[cell.name]) for cell in edition.cells]
        return Played(self.controller, edition.cells, values, math.nan, math.nan)

    def marked(self, reason: str) -> Rows:
        """The same rows, marked as stale for a reason, or without a mark for none."""
        about = {key: value for key, value in self.about.items() if key != STALE}
        return replace(self, about={**about, STALE: reason} if reason else about)


def folder_of(suite: Suite | str, folder: Path | None = None) -> Path:
    """Folder of a suite's files below a folder of results, `FOLDER` by default."""
    name = suite if isinstance(suite, str) else suite.name
    return (folder or FOLDER) / name.replace("/", "-")


def file_of(suite: Suite, controller: str, folder: Path | None = None) -> Path:
    """File of a controller's rows: `constant:9` as constant-9.csv, the agent `TASK/AGENT` by its own name."""
    slug = re.sub(r"[^A-Za-z0-9_.+-]", "-", controller.removeprefix(f"{suite.task}/"))
    return folder_of(suite, folder) / f"{slug}.csv"


def of_played(played: Played, suite: Suite, edition: Edition, command: str, **more: Any) -> Rows:
    """Rows of a controller that has just played, to six significant digits, stamped with program, machine and command.

    Args:
        more: What else the first line is to say.
    """
    worlds = {cell.name: frozen.rounded(dict(values)) for cell, values in zip(played.cells, played.values, strict=True)}
    about = {
        **dict(zip(ABOUT, (suite.name, edition.version, edition.digest, suite.task, played.name), strict=True)),
        "netbuf_gym": __version__,
        "machine": machine(),
        "command": command,
        "seconds": frozen.rounded(played.seconds),
        "cpu_seconds": frozen.rounded(played.cpu_seconds),
        **more,
    }
    return Rows(about, worlds)


def of_result(data: Mapping[str, Any], controller: str, where: str = "") -> Rows:
    """Rows of one controller of a suite's `result.json` (`netbuf_gym.evaluation.suites.report`); values are not checked."""
    one = data["controllers"][controller]
    about = {key: data[key] for key in ABOUT[:-1]} | {"controller": controller}
    about |= {key: data[key] for key in ("netbuf_gym", "command") if key in data}
    about |= {key: value for key, value in one.items() if key not in ("worlds", "families")}
    return Rows(about, one["worlds"], where)


def write(path: Path, rows: Rows, suite: Suite, edition: Edition) -> None:
    """Write a file of rows, in the order of the suite's worlds, atomically; those of no world that there is are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = [metric.key for metric in suite.metrics]
    writer.writerow([*COLUMNS, *keys])
    for cell in edition.cells:
        if cell.name in rows.worlds:
            values = (rows.worlds[cell.name][key] for key in keys)
            cells = ("" if value is None or math.isnan(value) else f"{value:.6g}" for value in values)
            writer.writerow([cell.family, cell.name, cell.agents, cell.seed, *cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps(plain({"schema": SCHEMA, **rows.about}), allow_nan=False)
    write_atomic(path, f"# {head}\n{out.getvalue()}")


def mark(path: Path, reason: str) -> bool:
    """Mark a file's rows as stale, or take the mark away where the reason is ""; returns whether the file has changed.

    Raises:
        ConfigError: Its first line is damaged.
        OSError: It cannot be written.
    """
    head, _, rest = read_text(path).partition("\n")
    try:
        rows = Rows(dict(json.loads(head.removeprefix("# "))), {})
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no file of rows ({error}); valid: one of schema {SCHEMA!r}") from None
    if rows.stale == reason:
        return False
    write_atomic(path, f"# {json.dumps(dict(rows.marked(reason).about))}\n{rest}")
    return True


def read(path: Path) -> Rows:
    """Rows as they were written.

    Raises:
        ConfigError: The file cannot be read, is no file of rows, or is damaged; names the line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        first, _, rest = read_text(path).partition("\n")
        about = json.loads(first.removeprefix("# "))
        if about["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(about['schema'])}")
        for key in ABOUT:
            about[key]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no file of rows ({error}); valid: one of schema {SCHEMA!r}") from None
    header, *table = csv.reader(io.StringIO(rest)) if rest else [[]]
    if tuple(header[: len(COLUMNS)]) != COLUMNS:
        raise ConfigError(f"{path}: line 2: columns {shown(header)}; valid: {', '.join(COLUMNS)}, then the suite's metrics")
    worlds: dict[str, dict[str, float]] = {}
    keys, last = header[len(COLUMNS) :], len(table) + 2
    for number, row in enumerate(table, 3):
        try:
            metrics = [float(value) if value else math.nan for value in row[len(COLUMNS) :]]
            if len(row) != len(header) or row[1] in worlds or (number == last and not rest.endswith("\n")):
                raise ValueError
        except (ValueError, IndexError):
            said = f"{path}: line {number} is damaged: {shown(','.join(row))}"
            raise ConfigError(f"{said}; valid: {len(header)} columns, another world than before, then numbers") from None
        worlds[row[1]] = dict(zip(keys, metrics, strict=True))
    del about["schema"]
    return Rows(about, worlds, str(path))


def require_edition(about: Mapping[str, Any], suite: Suite, edition: Edition, where: str) -> None:
    """Raise ConfigError for results of another suite, or of another version of it."""
    was, now = (about["suite"], about["version"], about["digest"]), (suite.name, edition.version, edition.digest)
    if was != now:
        named = [f"suite {name}, version {version}, digest {digest}" for name, version, digest in (was, now)]
        raise ConfigError(f"{where}: was evaluated on {named[0]}; valid: {named[1]}, as scores of others are of other worlds")


def require_whole(rows: Rows, suite: Suite, edition: Edition) -> None:
    """Raise ConfigError unless rows are of a suite's edition, of all of its worlds, and have all of its metrics."""
    require_edition(rows.about, suite, edition, rows.where)
    missing = [cell.name for cell in edition.cells if cell.name not in rows.worlds]
    if missing:
        said = f"{rows.where}: {rows.controller} lacks {len(missing)} of {len(edition.cells)} worlds, {missing[0]!r} first"
        raise ConfigError(f"{said}; valid: all")
    keys = [metric.key for metric in suite.metrics]
    lacking = [key for key in keys if key not in next(iter(rows.worlds.values()))]
    if lacking:
        raise ConfigError(f"{rows.where}: lacks {lacking[0]}; valid: {', '.join(keys)}")


def require_controller(rows: Rows, path: Path, suite: Suite) -> None:
    """Raise ConfigError for rows in the file of another controller."""
    valid = file_of(suite, rows.controller).name
    if path.name != valid:
        raise ConfigError(f"{path}: holds rows of {rows.controller}; valid: those in {valid}")


def kept(suite: Suite, edition: Edition | None = None, folder: Path | None = None) -> tuple[dict[str, Rows], list[str]]:
    """Kept rows of a suite's present edition by controller, in the order of their names, and why others are not among them."""
    edition, found, unfit = edition or suite.load(), [], []
    for path in sorted(folder_of(suite, folder).glob("*.csv")):
        try:
            one = read(path)
            require_whole(one, suite, edition)
            require_controller(one, path, suite)
            found.append(one)
        except ConfigError as error:
            unfit.append(str(error))
    return {one.controller: one for one in sorted(found, key=lambda one: one.controller)}, unfit


def machine() -> str:
    """Name of this machine's processor, as /proc/cpuinfo has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
