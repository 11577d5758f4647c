"""Searches the best constant limits of queues, so that agents are compared with good ones.

    python -m studies.rlbm.tune_limits [worlds=200] [families=A,B] [drops=tail,head] [limits=5,10] [jobs=N]
        [output=FILE]

Every pair of limits from a grid (in milliseconds, what the port sends in that time; one for each queue, chosen anew every
100 ms from the buffer that is free) manages the same worlds of each family, which are those of the training seeds 0, 1, ...,
with drops at the tail and at the head of queues. A pair's figure is the geometric mean over worlds of the 99th percentile
of the slowdown of priority 0 (flow completion time over the ideal one); of all families together it is the geometric mean of
theirs. Goodput stands beside it, as it is and over that of the naive buffer in the same worlds with the same drops.

Writes the table of the search (FILE, by default studies/rlbm/limits_search.csv) and prints the best limits, those
of lowest slowdown, and the best of those that deliver at most 1 % less than the naive buffer. What a run has found is written
as it goes; another run with as many worlds takes it up from there. To begin anew, remove the file.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats
from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.executors import LOCAL
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import ProgressBar
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table, number, percent, read_table, text_table
from netbuf_gym.tasks.queue_threshold import Limits, QueueThreshold
from netbuf_gym.tasks.queue_threshold.switch_rules import LIMIT_MS
from netbuf_gym.version import __version__

FAMILIES: dict[str, dict[str, Any]] = {
    "random": {"name": "rlbm/random"},
    "high_load": {"name": "rlbm/random", "load": [0.8, 0.95]},
    "light_load": {"name": "rlbm/random", "load": [0.1, 0.3]},
    "strict_priority": {"name": "rlbm/random", "scheduler": "strict_priority"},
    "25_mbps": {"name": "rlbm/random", "rate_mbps": 25.0},
    "50_mbps": {"name": "rlbm/random", "rate_mbps": 50.0},
    "bbr": {"name": "rlbm/random", "cc": ["bbr"]},
    "incast": {"name": "rlbm/random", "incast_probability": 1.0},
    "data_mining": {"name": "rlbm/random", "sizes": "data_mining"},
}
"""The worlds of each family, but for where packets are dropped."""

GRID_MS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
NAIVE = (math.inf, math.inf)
"""What stands for the limits of the naive buffer, which has none in time."""
LEAST_GOODPUT = 0.99
TABLE = Path(__file__).resolve().parent / "limits_search.csv"
MEASURED = ("slowdown_p99_p0", "slowdown_p99_p0_low", "slowdown_p99_p0_high", "goodput_mbps", "worlds")
COLUMNS = ("drop", "family", "limit_0_ms", "limit_1_ms", *MEASURED, "goodput_over_naive")

Key = tuple[str, str, float, float]
"""Drop, family, and the limits in ms."""
Row = dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: An argument that is unknown or out of range; a table that another version or number of worlds has made.
        OSError: The table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"worlds": "200", "jobs": str(len(os.sched_getaffinity(0))), "output": str(TABLE)}
    known |= {"families": ",".join(FAMILIES), "drops": ",".join(DROPS), "limits": ",".join(f"{one:g}" for one in GRID_MS)}
    given = scripts.given(argv, known)
    worlds, jobs = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("jobs", 1)))
    families = [choice("families", name, FAMILIES) for name in given["families"].split(",")]
    drops = [choice("drops", name, DROPS) for name in given["drops"].split(",")]
    try:
        asked = [float(f"{float(one):.6g}") for one in given["limits"].split(",")]
    except ValueError:
        raise ConfigError(f"limits = {shown(given['limits'])}; valid: milliseconds, e.g. limits=10,20,50") from None
    grid = [real("limits", value, *LIMIT_MS) for value in asked]

    output = scripts.to_write("output", given["output"])
    command = f"python -m studies.rlbm.tune_limits worlds={worlds}"
    comment = f"netbuf-gym {__version__}: {command}; seeds 0 to {worlds - 1}"
    found = read(output, comment)

    def keep() -> None:
        write_atomic(output, csv_table(COLUMNS, rows_of(found), comment))

    keep()  # refuses what could not be written before the work is done
    pairs = [NAIVE, *itertools.product(grid, repeat=2)]
    wanted = [(drop, family, *pair) for drop in drops for family in families for pair in pairs]
    with ProgressBar("tune_limits") as bar:
        missing = [key for key in wanted if key not in found]
        bar(len(wanted) - len(missing), len(wanted))
        for key, values in LOCAL.run(lambda key: measure(key, worlds), missing, jobs):
            found[key] = {**dict(zip(COLUMNS[:4], key, strict=True)), **values}
            keep()
            bar(sum(key in found for key in wanted), len(wanted))
    rows = rows_of(found)
    header = ("drop", "family", "naive", "best (ms)", "slowdown", "goodput", "best within 1 % (ms)", "slowdown", "goodput")
    print(text_table(header, [_line(rows, drop, family) for drop in drops for family in (*families, None)]))
    print(f"slowdown: 99th percentile, priority 0; goodput: over the naive buffer's\nwritten to {output}")
    return 0


def measure(key: Key, worlds: int) -> dict[str, float]:
    """`MEASURED` of a pair of limits, or of the naive buffer, in the worlds of seeds 0 to `worlds` - 1.

    Worlds in which no flow of priority 0 completed do not count in slowdowns, nor in `worlds`. The bounds are those of the 95 %
    interval of the geometric mean over worlds.
    """
    drop, family, *limits = key
    who = "naive" if tuple(limits) == NAIVE else Limits(limits)
    reports = evaluate(who, QueueThreshold.name, {**FAMILIES[family], "drop": drop}, range(worlds))
    slowdowns = np.array([one["slowdown_p99_p0"] for one in reports])
    slowdowns = slowdowns[np.isfinite(slowdowns)]
    between = np.exp(stats.mean_interval(np.log(slowdowns)))
    goodput = float(np.mean([one["goodput_mbps"] for one in reports]))
    return dict(zip(MEASURED, (*map(float, between), goodput, len(slowdowns)), strict=True))


def read(path: Path, comment: str) -> dict[Key, Row]:
    """The rows of a table that another run has left, by what they are of; none where there is no file.

    Raises:
        ConfigError: as `read_table`: made by another version or of other worlds, or damaged.
    """
    kinds = {**dict.fromkeys(COLUMNS, float), "drop": DROPS, "family": FAMILIES, "worlds": int}
    return {(row["drop"], row["family"], *_limits(row)): row for row in read_table(path, comment, kinds)}


def table_rows() -> list[Row]:
    """The rows of the search that the package brings; raises OSError where it was taken away."""
    comment = TABLE.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return rows_of(read(TABLE, comment))


def rows_of(found: Mapping[Key, Row]) -> list[Row]:
    """Rows of `COLUMNS` in order, the naive buffer last in each family; goodput over its, NaN where it has not been run."""
    rows = []
    for row in found.values():
        naive = found.get((row["drop"], row["family"], *NAIVE))
        rows.append({**row, "goodput_over_naive": row["goodput_mbps"] / naive["goodput_mbps"] if naive else math.nan})
    order = {name: place for place, name in enumerate((*DROPS, *FAMILIES))}
    return sorted(rows, key=lambda row: (order[row["drop"]], order[row["family"]], *_limits(row)))


def best(rows: Iterable[Row], drop: str, family: str | None = None, least_goodput: float = 0.0) -> Row:
    """The limits of lowest slowdown with drops at this place: a row, or of all families together (None) what stands in for one.

    Args:
        rows: as `rows_of` gives them.
        drop, family: of the worlds. Of all families the slowdown is the geometric mean of theirs, and `goodput_over_naive`
            likewise, by limits that were tried in each of them.
        least_goodput: over the naive buffer's.

    Raises:
        ConfigError: no limits deliver as much.
    """
    by_limits: dict[tuple, list[Row]] = {}
    there = set()
    for row in rows:
        if row["drop"] == drop and family in (None, row["family"]):
            there.add(row["family"])
            by_limits.setdefault(_limits(row), []).append(row)
    whole_rows = [_together(own) for own in by_limits.values() if len(own) == len(there)]
    tried = [row for row in whole_rows if _limits(row) != NAIVE]
    enough = [row for row in tried if not row["goodput_over_naive"] < least_goodput]
    if not enough:
        where = f"{family or 'all families'}, drop {drop!r}"
        raise ConfigError(f"no limits in {where} deliver least_goodput = {least_goodput:g} of what the naive buffer does")
    return min(enough, key=lambda row: row["slowdown_p99_p0"])


def _together(rows: Sequence[Row]) -> Row:
    """What rows of the same limits come to; of one row, itself."""
    means = {name: float(np.exp(np.mean([math.log(row[name]) for row in rows]))) for name in _AVERAGED}
    return {**rows[0], **means} if len(rows) > 1 else rows[0]


_AVERAGED = ("slowdown_p99_p0", "goodput_over_naive")


def _line(rows: Sequence[Row], drop: str, family: str | None) -> list[str]:
    own = [row for row in rows if row["drop"] == drop and family in (None, row["family"])]
    naive = _together([row for row in own if _limits(row) == NAIVE])
    cells = [drop, family or "all", number(naive["slowdown_p99_p0"])]
    for least in (0.0, LEAST_GOODPUT):
        try:
            row = best(rows, drop, family, least)
        except ConfigError:
            cells += ["none", "-", "-"]
            continue
        said = " ".join(f"{limit:g}" for limit in _limits(row))
        cells += [said, number(row["slowdown_p99_p0"]), percent(row["goodput_over_naive"] - 1)]
    return cells


def _limits(row: Row) -> tuple[float, float]:
    return row["limit_0_ms"], row["limit_1_ms"]


if __name__ == "__main__":
    scripts.run("tune_limits", main)
