"""Files of results: kept rows, and the `worlds.csv` and `result.json` of a suite's run.

Kept rows are one per world, in a file per suite and controller (`results/suites/rfc9743/cubic.csv`). The first line is a
comment that holds JSON: the suite's edition, the controller and its model, and the program, machine and command that made the
rows. The second names the columns: family, world, agents, seed, then the suite's metrics; an empty cell is a missing value.

>>> from netbuf_gym.evaluation.suites import get_suite
>>> from netbuf_gym.leaderboard import rows
>>> kept = rows.read_kept(get_suite("mvfst-rl"))[0]["cubic"]
>>> kept.about["suite"], len(kept.worlds)
('mvfst-rl', 54)
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation.suites import Edition, Suite
from netbuf_gym.evaluation.suites.frozen import round_floats
from netbuf_gym.leaderboard.play import SuiteRun
from netbuf_gym.utils.data import PACKAGE, find_data
from netbuf_gym.utils.files import read_text, to_plain_values, write_atomic
from netbuf_gym.version import __version__

SCHEMA, RESULT_SCHEMA = "netbuf-gym/rows/1", "netbuf-gym/suite/1"
"""Formats of kept rows, and of `result.json`."""
INSTALLED = PACKAGE / "data" / "results" / "suites"
"""Kept results that are installed with the package; a checkout has none there."""
FOLDER = find_data("results") / "suites"
"""Kept results: those of the installed package, or of the checkout."""
COLUMNS = ("family", "world", "agents", "seed")
"""Columns before a suite's metrics."""
ABOUT = ("suite", "version", "digest", "task", "controller")
"""Keys of a file's first line that name its worlds and its controller."""
MAX_BYTES, MAX_RESULT_BYTES = 1 << 26, 1 << 24
ControllerWorlds = dict[str, dict[str, dict[str, float]]]
"""Metrics by controller and world."""
STALE = "stale"
"""Key of a file's first line with the reason, in words, why its rows are not current."""


@dataclass(frozen=True)
class Rows:
    """Results of one controller on the worlds of a suite.

    Attributes:
        about: First line of the file: `ABOUT`, and what else is known (`model_sha256`, `netbuf_gym`, `machine`, `command`,
            `seconds`, `cpu_seconds`, `decision_us`; for an agent `algo`, `seed`, `recipe`, `timesteps`, `group`).
        worlds: Metrics by world name; NaN for missing values.
        where: Path of the file, for messages.
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
        """Reason why the rows are not current, as found by `netbuf-gym results status`; "" if none is known."""
        return str(self.about.get(STALE) or "")

    def to_suite_run(self, edition: Edition) -> SuiteRun:
        """Return the rows as if the controller had just run in all worlds of an edition."""
        values = [dict(self.worlds[cell.name]) for cell in edition.cells]
        return SuiteRun(self.controller, edition.cells, values, math.nan, math.nan)

    def with_mark(self, reason: str) -> Rows:
        """Return the same rows, marked as stale for a reason; without a mark if the reason is ""."""
        about = {key: value for key, value in self.about.items() if key != STALE}
        return replace(self, about={**about, STALE: reason} if reason else about)


def get_folder(suite: Suite | str, folder: Path | None = None) -> Path:
    """Return the folder of a suite's files below a folder of results, `FOLDER` by default."""
    name = suite if isinstance(suite, str) else suite.name
    return (folder or FOLDER) / name.replace("/", "-")


def get_file(suite: Suite, controller: str, folder: Path | None = None) -> Path:
    """Return the file of a controller's rows: `constant:9` in constant-9.csv, the agent `TASK/AGENT` by its own name."""
    slug = re.sub(r"[^A-Za-z0-9_.+-]", "-", controller.removeprefix(f"{suite.task}/"))
    return get_folder(suite, folder) / f"{slug}.csv"


def make_rows(played: SuiteRun, suite: Suite, edition: Edition, command: str, **more: Any) -> Rows:
    """Return rows of a controller that has just run, to six significant digits, with the program, machine and command.

    Args:
        more: Further entries of the first line.
    """
    about = {
        **dict(zip(ABOUT, (suite.name, edition.version, edition.digest, suite.task, played.name), strict=True)),
        "netbuf_gym": __version__,
        "machine": read_processor_name(),
        "command": command,
        "seconds": round_floats(played.seconds),
        "cpu_seconds": round_floats(played.cpu_seconds),
        **more,
    }
    return Rows(about, round_floats(played.worlds))


def parse_result(data: Mapping[str, Any], controller: str, where: str = "") -> Rows:
    """Return rows of one controller of a suite's `result.json` (`read_result`), values unchecked.

    Raises:
        ConfigError: If the controller has no worlds.
    """
    one = data["controllers"][controller]
    if not isinstance(one.get("worlds"), dict):
        raise ConfigError(f"{where}: is no result.json of a suite: {controller} has worlds = {quote(one.get('worlds'))}")
    about = {key: data[key] for key in ABOUT[:-1]} | {"controller": controller}
    about |= {key: data[key] for key in ("netbuf_gym", "command") if key in data}
    about |= {key: value for key, value in one.items() if key not in ("worlds", "families")}
    return Rows(about, one["worlds"], where)


def write(path: Path, rows: Rows, suite: Suite, edition: Edition) -> None:
    """Write a file of rows atomically, in the order of the suite's worlds; rows of unknown worlds are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = [metric.key for metric in suite.metrics]
    writer.writerow([*COLUMNS, *keys])
    for cell in edition.cells:
        if cell.name in rows.worlds:
            values = (rows.worlds[cell.name].get(key) for key in keys)
            cells = ("" if value is None or math.isnan(value) else f"{value:.6g}" for value in values)
            writer.writerow([cell.family, cell.name, cell.agents, cell.seed, *cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps(to_plain_values({"schema": SCHEMA, **rows.about}), allow_nan=False)
    write_atomic(path, f"# {head}\n{out.getvalue()}")


def mark_stale(path: Path, reason: str) -> bool:
    """Mark a file's rows as stale, or remove the mark if the reason is ""; return whether the file has changed.

    Raises:
        ConfigError: If its first line is damaged.
        OSError: If it cannot be written.
    """
    head, _, rest = read_text(path).partition("\n")
    try:
        rows = Rows(dict(json.loads(head.removeprefix("# "))), {})
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no file of rows ({error}); valid: one of schema {SCHEMA!r}") from None
    if rows.stale == reason:
        return False
    write_atomic(path, f"# {json.dumps(dict(rows.with_mark(reason).about))}\n{rest}")
    return True


def read(path: Path) -> Rows:
    """Return rows as they were written.

    Raises:
        ConfigError: If the file cannot be read, is no file of rows, or is damaged; names the line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        first, _, rest = read_text(path).partition("\n")
        about = json.loads(first.removeprefix("# "))
        if about["schema"] != SCHEMA:
            raise ValueError(f"schema {quote(about['schema'])}")
        for key in ABOUT:
            about[key]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no file of rows ({error}); valid: one of schema {SCHEMA!r}") from None
    header = _read_header(rest)
    if header[: len(COLUMNS)] != [*COLUMNS]:
        raise ConfigError(f"{path}: line 2: columns {quote(header)}; valid: {', '.join(COLUMNS)}, then the suite's metrics")
    table = _read_table(rest, len(COLUMNS), str(path), "another world than before, then numbers")
    del about["schema"]
    return Rows(about, {texts[1]: metrics for texts, metrics in table}, str(path))


def _read_header(text: str) -> list[str]:
    return next(csv.reader(io.StringIO(text)), [])


def _read_table(text: str, before: int, where: str, valid: str) -> Iterator[tuple[list[str], dict[str, float]]]:
    """Yield the texts and the metrics of each row below a header.

    Args:
        before: Number of columns of text: the controller's name if there is one, and `COLUMNS`.
        where, valid: File, and what follows the columns' number, in messages.

    Raises:
        ConfigError: If a row is damaged, cut off, or of the same world as another one; names the line.
    """
    header, *table = csv.reader(io.StringIO(text))
    seen = set[tuple[str, ...]]()
    for number, row in enumerate(table, 3):
        key = (*row[: before - len(COLUMNS)], *row[before - 3 : before - 2])
        cut_off = number == len(table) + 2 and not text.endswith("\n")
        try:
            metrics = [float(value) if value else math.nan for value in row[before:]]
            if len(row) != len(header) or key in seen or cut_off:
                raise ValueError
        except ValueError:
            said = f"{where}: line {number} is damaged: {quote(','.join(row))}"
            raise ConfigError(f"{said}; valid: {len(header)} columns, {valid}") from None
        seen.add(key)
        yield row[:before], dict(zip(header[before:], metrics, strict=True))


def read_worlds(path: Path, suite: Suite, edition: Edition, field: str = "beside") -> ControllerWorlds:
    """Return the results in a `worlds.csv` of a suite of the field, or in a gzipped one.

    Raises:
        ConfigError: If the file cannot be read, is damaged, or is of other worlds.
    """
    where = f"{field} = {path}"
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no worlds.csv"
        raise ConfigError(f"{where}: cannot be read: {why}; valid: a worlds.csv of {suite.name}") from None
    first, _, rest = text.partition("\n")
    present = describe_edition(suite.name, edition.version, edition.digest)
    if present not in first:
        raise ConfigError(f"{where}: is of {first.removeprefix('# ')[:120]!r}; valid: {present}")
    texts, header = ["controller", *COLUMNS], _read_header(rest)
    columns = [*texts, *(metric.key for metric in suite.metrics)]
    if header != columns:
        raise ConfigError(f"{where}: has columns {quote(header)}; valid: those of {suite.name}, {','.join(columns)}")
    worlds: ControllerWorlds = {}
    for (controller, _, world, *_), metrics in _read_table(rest, len(texts), where, f"{', '.join(texts)} and numbers"):
        worlds.setdefault(controller, {})[world] = metrics
    return worlds


def write_result(path: Path, data: Any) -> None:
    """Write a `result.json` atomically, one line per world."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_plain_values(data), indent=1)
    text = re.sub(r"\{\n([^{}]*?)\n *\}", lambda own: "{" + re.sub(r"\n? +", " ", own[1]).strip() + "}", text)
    write_atomic(path, f"{text}\n")


def read_result(path: Path, field: str = "") -> dict[str, Any]:
    """Return the `result.json` of a suite's run; what it holds of its controllers is unchecked.

    Args:
        field: Name of the argument that gave the path, for messages.

    Raises:
        ConfigError: If the file cannot be read, or is no such result.
    """
    where = f"{field} = {path}" if field else str(path)
    try:
        if path.stat().st_size > MAX_RESULT_BYTES:
            raise ValueError(f"larger than {MAX_RESULT_BYTES:,} bytes")
        data = json.loads(read_text(path))
        for key in ("suite", "version", "digest", "task", "score", "command"):
            data[key]
        schema, own = data["schema"], data["controllers"]
        if (
            schema != RESULT_SCHEMA
            or not isinstance(own, dict)
            or not own
            or not all(isinstance(one, dict) for one in own.values())
        ):
            raise ValueError(f"schema {quote(schema)}, controllers {quote(own)}")
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{where}: is no result.json of a suite ({why}); valid: one of schema {RESULT_SCHEMA!r}") from None
    return data


def read_value(values: Any, key: str, where: str) -> float:
    """Return a metric of a world of a `result.json`; NaN if there is none.

    Raises:
        ConfigError: If the value is no number.
    """
    value = values.get(key) if isinstance(values, dict) else values
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{where}: {key} = {quote(value)}; valid: a number, or null where there is none")
    return float(value)


def read_values(worlds: Mapping[str, Any], key: str, where: str) -> dict[str, float]:
    """Return a metric of worlds by their names, as `read_value` does."""
    found = dict[str, float]()
    for world, values in worlds.items():
        value = values.get(key) if isinstance(values, dict) else values
        if type(value) is float and not math.isinf(value):
            found[world] = value
        else:
            found[world] = read_value(values, key, f"{where}, {world}")
    return found


def describe_edition(suite: str, version: Any, digest: Any) -> str:
    """Return a text that names the edition which results are of."""
    return f"suite {suite}, version {version}, digest {digest}"


def require_edition(about: Mapping[str, Any], suite: Suite, edition: Edition, where: str) -> None:
    """Raise ConfigError for results of another suite, or of another version of it."""
    was, now = (about["suite"], about["version"], about["digest"]), (suite.name, edition.version, edition.digest)
    if was != now:
        named = describe_edition(*was), describe_edition(*now)
        raise ConfigError(f"{where}: was evaluated on {named[0]}; valid: {named[1]}, as scores of others are of other worlds")


def require_all_worlds(rows: Rows, edition: Edition) -> None:
    """Raise ConfigError for rows that lack a world of an edition."""
    missing = [cell.name for cell in edition.cells if cell.name not in rows.worlds]
    if missing:
        said = f"{rows.where}: {rows.controller} lacks {len(missing)} of {len(edition.cells)} worlds, {missing[0]!r} first"
        raise ConfigError(f"{said}; valid: all")


def require_whole(rows: Rows, suite: Suite, edition: Edition) -> None:
    """Raise ConfigError unless rows are of a suite's edition, cover all of its worlds, and have its metrics, but for counts."""
    require_edition(rows.about, suite, edition, rows.where)
    require_all_worlds(rows, edition)
    keys = [metric.key for metric in suite.metrics if metric.key not in suite.counts]
    lacking = [key for key in keys if key not in next(iter(rows.worlds.values()))]
    if lacking:
        raise ConfigError(f"{rows.where}: lacks {lacking[0]}; valid: {', '.join(keys)}")


def require_controller(rows: Rows, path: Path, suite: Suite) -> None:
    """Raise ConfigError for rows in the file of another controller."""
    valid = get_file(suite, rows.controller).name
    if path.name != valid:
        raise ConfigError(f"{path}: holds rows of {rows.controller}; valid: those in {valid}")


def read_kept(suite: Suite, edition: Edition | None = None, folder: Path | None = None) -> tuple[dict[str, Rows], list[str]]:
    """Return the kept rows of a suite's edition (default: the present one), and the reasons for leaving out others.

    The rows are by controller, in the order of their names.
    """
    edition, found, unfit = edition or suite.load(), [], []
    for path in sorted(get_folder(suite, folder).glob("*.csv")):
        try:
            one = read(path)
            require_whole(one, suite, edition)
            require_controller(one, path, suite)
            found.append(one)
        except ConfigError as error:
            unfit.append(str(error))
    return {one.controller: one for one in sorted(found, key=lambda one: one.controller)}, unfit


def read_processor_name() -> str:
    """Return the name of this machine's processor from /proc/cpuinfo."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
