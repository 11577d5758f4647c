"""Tunes the alphas of Dynamic Thresholds, so that learned thresholds are compared with good fixed ones.

    python -m studies.rlbm.tune_dt [worlds=400] [jobs=N] [output=FILE]

Worlds are drawn from `rlbm/random`, the distribution that agents are trained on, under the training seeds 0, 1, ..., 60 s
each. Every pair of alphas from the powers of two 2^-8 to 2^3 manages the same worlds. Of the pairs that deliver at most
1 % less than the naive buffer (alphas 1, 1), the best one has the lowest 99th percentile of slowdown (flow completion
time over the ideal one) of priority 0: the percentile of each world's flows, averaged over the worlds, as evaluations do.
A world of 60 s completes some 20 flows, so that its percentile is that of its worst flow; the percentile of all worlds'
flows taken together stands in the table beside it.

Writes the table of the search (FILE, by default studies/rlbm/dt_search.csv) and prints what belongs into
`DT_ALPHAS` in netbuf_gym/scenarios/schemes.py.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from netbuf_gym import scripts, stats
from netbuf_gym.arguments import whole
from netbuf_gym.executors import LOCAL
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import ProgressBar
from netbuf_gym.rollout import View, World, draw, play
from netbuf_gym.stats import percentiles
from netbuf_gym.tables import text_table
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.queue_threshold.contenders import BufferScheme
from netbuf_gym.version import __version__
from studies.rlbm.measures import flows_of

ALPHAS = tuple(2.0**k for k in range(-8, 4))
NAIVE = (1.0, 1.0)
LEAST_THROUGHPUT = 0.99
TABLE = Path(__file__).resolve().parent / "dt_search.csv"
COLUMNS = (
    "alpha_0",
    "alpha_1",
    "slowdown_p99_p0",
    "slowdown_p99_p0_low",
    "slowdown_p99_p0_high",
    "slowdown_p99_p0_pooled",
    "slowdown_mean_p0",
    "throughput_mbps",
    "throughput_over_naive",
)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        OSError: The table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"worlds": "400", "jobs": str(len(os.sched_getaffinity(0))), "output": str(TABLE)}
    given = scripts.given(argv, known)
    worlds, jobs = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("jobs", 1)))
    write_atomic(given["output"], "")  # refuses what could not be written before the work is done
    with ProgressBar("tune_dt") as bar:
        rows = search(draw(QueueThreshold.name, "rlbm/random", range(worlds)), jobs, bar)
    command = f"python -m studies.rlbm.tune_dt worlds={worlds}"
    write_atomic(given["output"], table(rows, f"netbuf-gym {__version__}: {command}; rlbm/random, seeds 0 to {worlds - 1}"))
    chosen = best(rows)
    shown = sorted((row for row in rows if row["throughput_over_naive"] >= LEAST_THROUGHPUT), key=_objective)[:10]
    naive = next(row for row in rows if (row["alpha_0"], row["alpha_1"]) == NAIVE)
    print(text_table(COLUMNS, [[f"{row[name]:.5g}" for name in COLUMNS] for row in [*shown, naive]]))
    print(f"\nthe last row is the naive buffer; written to {given['output']}")
    print(f"DT_ALPHAS = ({chosen['alpha_0']!r}, {chosen['alpha_1']!r})")
    return 0


def search(
    worlds: Sequence[World], jobs: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[dict[str, float]]:
    """One row of `COLUMNS` for each pair of alphas, every pair in the same worlds."""
    pairs = list(itertools.product(ALPHAS, repeat=2))
    found: dict[tuple[int, int], tuple[np.ndarray, float]] = {}

    def one(pair: int) -> None:
        def keep(view: View) -> None:
            flows = flows_of(view)
            rate = view.simulated.traffic_stats()["delivered_bytes"] / view.scenario.duration_s
            found[pair, view.index] = flows["slowdown"][flows["priority"] == 0], rate

        play(BufferScheme("dt", alphas=pairs[pair]), worlds, keep, task=QueueThreshold.name)

    for _ in LOCAL.run(one, range(len(pairs)), jobs):
        progress(len(found), len(pairs) * len(worlds))
    rows = []
    for pair, (alpha_0, alpha_1) in enumerate(pairs):
        outcomes = [found[pair, world] for world in range(len(worlds))]
        each = np.array([percentiles(ratios, (0.99,))[0] for ratios, _ in outcomes])
        pooled = np.concatenate([ratios for ratios, _ in outcomes])
        mean, low, high = stats.mean_interval(each[np.isfinite(each)])
        values = (alpha_0, alpha_1, mean, low, high, percentiles(pooled, (0.99,))[0], pooled.mean())
        rows.append(dict(zip(COLUMNS, (*values, np.mean([rate for _, rate in outcomes]) * 8e-6, np.nan), strict=True)))
    naive = rows[pairs.index(NAIVE)]["throughput_mbps"]
    for row in rows:
        row["throughput_over_naive"] = row["throughput_mbps"] / naive
    return rows


def best(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The row of lowest slowdown among those that deliver enough; between equals the one nearest to the naive alphas."""
    enough = [row for row in rows if row["throughput_over_naive"] >= LEAST_THROUGHPUT]
    return min(enough, key=_objective)


def table(rows: Sequence[dict[str, float]], comment: str) -> str:
    """The rows as CSV, six significant digits, with a comment in the first line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([f"{row[name]:.6g}" for name in COLUMNS] for row in rows)
    return f"# {comment}\n{out.getvalue()}"


def _objective(row: dict[str, float]) -> tuple[float, float]:
    return row["slowdown_p99_p0"], abs(np.log2(row["alpha_0"])) + abs(np.log2(row["alpha_1"]))


if __name__ == "__main__":
    scripts.run("tune_dt", main)
