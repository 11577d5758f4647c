"""The learned thresholds beside every other scheme over the default distribution, on seeds that no agent was trained on.

    python -m studies.rlbm.compare agent=zoo/agents/queue_threshold/ppo/model.zip [seeds=20] [jobs=N]
        [output=DIR] [schemes=[...]] [loads=[...]] [sizes=[...]] [ccs=[...]] [first_seed=1000000] [duration_s=60]
        [interval_s=0.1]

Under each seed every scheme runs all congestion controls x sizes x loads of the default traffic. What is compared is the
99th percentile of the slowdown (flow completion time / ideal) of priority 0: of all the flows of a seed, whatever cell
they ran in, then averaged over the seeds with a 95 % t interval; differences are paired by seed. A cell's percentile (by
size and load) is of the flows of all its seeds. Throughput is that of all cells together.

Writes comparison.csv (a row a scheme and seed), cells.csv (a row a scheme, cc, size and load) and table.md into DIR
(runs/reproduce/compare), and prints the table.
"""

from __future__ import annotations

import csv
import io
import itertools
import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym import scripts
from netbuf_gym.errors import ConfigError
from netbuf_gym.executors import LOCAL
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import ProgressBar
from netbuf_gym.rollout import View
from netbuf_gym.stats import percentiles
from netbuf_gym.tables import markdown_table
from netbuf_gym.version import __version__
from studies.common.judging import spread
from studies.rlbm.contenders import contender_of, play
from studies.rlbm.experiment import RLBM
from studies.rlbm.measures import flows_of
from studies.rlbm.settings import CONTROLLED, LEARNED, NAMES, RANDOM, RANDOM_NO_BETA, WITHOUT_LEARNING, Settings

SCHEMES = (LEARNED, *(name for name in NAMES if name not in (LEARNED, RANDOM_NO_BETA)))
CELL_BY_CELL = (*WITHOUT_LEARNING, RANDOM)
"""Rivals that get a table of all cells."""
OUTPUT = "runs/reproduce/compare"
BAD_TAIL = 0.99
LEAST_FLOWS = 20
"""Cells with fewer flows have no percentile worth a comparison."""


@dataclass(frozen=True)
class Outcome:
    """One run: slowdowns of the completed flows of priority 0, bytes delivered."""

    slowdowns: np.ndarray
    delivered_bytes: float


Key = tuple[str, str, int, float, int]
"""Scheme, congestion control, size, load, seed."""


class Comparison:
    """Outcomes of schemes over the cells of the default distribution.

    Args:
        settings: What is run; its traffic recipe decides the worlds.
        outcomes: By `Key`.
    """

    def __init__(self, settings: Settings, outcomes: dict[Key, Outcome]):
        self.settings, self.outcomes = settings, outcomes
        self.cells = list(itertools.product(settings.ccs, settings.sizes, settings.loads))

    def slowdown(self, scheme: str) -> np.ndarray:
        """The 99th percentile of each seed's flows. Shape (seeds,)."""
        found = []
        for seed in self.settings.seed_list():
            flows = np.concatenate([self.outcomes[(scheme, *cell, seed)].slowdowns for cell in self.cells])
            found.append(percentiles(flows, (BAD_TAIL,))[0])
        return np.array(found)

    def run_mean(self, scheme: str) -> np.ndarray:
        """The 99th percentile of each run's flows, averaged over a seed's runs. Shape (seeds,)."""
        found = []
        for seed in self.settings.seed_list():
            each = [percentiles(self.outcomes[(scheme, *cell, seed)].slowdowns, (BAD_TAIL,))[0] for cell in self.cells]
            measured = [value for value in each if np.isfinite(value)]
            found.append(np.mean(measured) if measured else np.nan)
        return np.array(found)

    def throughput(self, scheme: str) -> np.ndarray:
        """Mbit/s, mean over the cells. Shape (seeds,)."""
        seconds = self.settings.duration_s * len(self.cells)
        return np.array(
            [
                sum(self.outcomes[(scheme, *cell, seed)].delivered_bytes for cell in self.cells) * 8e-6 / seconds
                for seed in self.settings.seed_list()
            ]
        )

    def by_cell(self, scheme: str) -> dict[tuple[str, int, float], tuple[float, float, int]]:
        """Of each cell the percentile over the flows of all seeds, Mbit/s, and the number of flows."""
        found = {}
        for cell in self.cells:
            runs = [self.outcomes[(scheme, *cell, seed)] for seed in self.settings.seed_list()]
            flows = np.concatenate([one.slowdowns for one in runs])
            rate = np.mean([one.delivered_bytes for one in runs]) * 8e-6 / self.settings.duration_s
            found[cell] = percentiles(flows, (BAD_TAIL,))[0], float(rate), len(flows)
        return found

    def markdown(self) -> str:
        """The tables: all schemes; where the learned one (or else the first) loses, by size and by load."""
        settings = self.settings
        first = LEARNED if LEARNED in settings.schemes else settings.schemes[0]
        seeds = settings.seed_list()
        lines = [
            f"{len(self.cells)} cells (cc x size x load), seeds {seeds[0]} to {seeds[-1]}, {settings.duration_s:g} s each.",
            "Means over seeds ± half the 95 % interval; differences to the other schemes are paired by seed.",
            "",
            self._schemes_table(first),
        ]
        for other in settings.schemes:
            if other != first and other in CELL_BY_CELL:
                lines += ["", f"**{first} against {other}**, 99th percentile of both over the flows of all seeds and ccs:", ""]
                lines.append(self._cells_table(first, other))
        return "\n".join(lines) + "\n"

    def _schemes_table(self, first: str) -> str:
        ours, our_rate = self.slowdown(first), self.throughput(first)
        rows = []
        for scheme in self.settings.schemes:
            theirs, rate = self.slowdown(scheme), self.throughput(scheme)
            cells = [scheme, spread(theirs, 2), spread(self.run_mean(scheme), 2), spread(rate, 3)]
            if scheme == first:
                cells += ["", "", ""]
            else:
                cells += [spread(ours - theirs, 2), spread(100 * (our_rate / rate - 1), 2), self._wins(first, scheme)]
            rows.append(cells)
        header = [
            "scheme",
            "p99 slowdown, priority 0",
            "mean of the runs' p99",
            "throughput, Mbit/s",
            f"p99 of {first} minus this",
            f"throughput of {first} over this, %",
            f"cells where the p99 of {first} is lower / equal / higher",
        ]
        return markdown_table(header, rows)

    def _wins(self, first: str, other: str) -> str:
        ours, theirs = self.by_cell(first), self.by_cell(other)
        counted = [cell for cell in self.cells if theirs[cell][2] >= LEAST_FLOWS]
        lower = sum(ours[cell][0] < theirs[cell][0] for cell in counted)
        higher = sum(ours[cell][0] > theirs[cell][0] for cell in counted)
        return f"{lower} / {len(counted) - lower - higher} / {higher}"

    def _cells_table(self, first: str, other: str) -> str:
        """Sizes down, loads across: ours / theirs, the flows of all ccs together; bold where ours is the higher one."""
        settings, rows = self.settings, []
        for size in settings.sizes:
            cells = [str(size)]
            for load in settings.loads:
                both = []
                for scheme in (first, other):
                    keys = itertools.product(settings.ccs, settings.seed_list())
                    flows = np.concatenate([self.outcomes[scheme, cc, size, load, seed].slowdowns for cc, seed in keys])
                    both.append(percentiles(flows, (BAD_TAIL,))[0])
                text = f"{both[0]:.1f} / {both[1]:.1f}"
                cells.append(f"**{text}**" if both[0] > both[1] else text)
            rows.append(cells)
        return markdown_table(["size \\ load", *(f"{load:g}" for load in settings.loads)], rows)


def compare(settings: Settings, jobs: int, progress: Callable[[int, int], None] = lambda done, total: None) -> Comparison:
    """Runs it, in threads.

    Raises:
        CheckpointError: The agent cannot be read, or does not fit.
        SimulatorFault: The simulator found its own state inconsistent.
    """
    contenders = {scheme: contender_of(scheme, settings) for scheme in settings.schemes}
    stop = threading.Event()
    tasks = list(itertools.product(settings.schemes, settings.ccs, settings.sizes))
    tasks.sort(key=lambda task: task[0] not in CONTROLLED)  # worlds stepped together take longest

    def work(task: tuple[str, str, int]) -> dict[Key, Outcome]:
        scheme, cc, size = task
        found: dict[Key, Outcome] = {}
        cells = [(load, settings.scenario(cc, size, load), seed) for load in settings.loads for seed in settings.seed_list()]

        def keep(view: View, occupancy: np.ndarray | None) -> None:
            load, _, seed = cells[view.index]
            flows = flows_of(view)
            own = flows["slowdown"][flows["priority"] == 0]
            found[scheme, cc, size, load, seed] = Outcome(own, view.simulated.traffic_stats()["delivered_bytes"])

        play(contenders[scheme], [cell[1:] for cell in cells], keep, settings.interval_s, stop)
        return found

    outcomes: dict[Key, Outcome] = {}
    total = len(tasks) * len(settings.loads) * settings.seeds
    for _, found in LOCAL.run(work, tasks, jobs, stop):
        outcomes |= found
        progress(len(outcomes), total)
    return Comparison(settings, outcomes)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0, or 130 when interrupted.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        OSError: The results cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    for argument in argv:
        if argument.partition("=")[0] in ("traffic", "figures", "intervals"):
            raise ConfigError(f"argument {argument!r} is the campaign's, not the comparison's")
    keys = {argument.partition("=")[0] for argument in argv}
    defaults = ["traffic=default", "intervals=[]"]
    defaults += [f"schemes=[{','.join(SCHEMES)}]"] if "schemes" not in keys else []
    defaults += ["seeds=20"] if "seeds" not in keys else []
    defaults += [f"output={OUTPUT}"] if "output" not in keys else []
    order = RLBM.parse([*defaults, *argv])
    order.output.mkdir(parents=True, exist_ok=True)
    with ProgressBar("compare") as bar:
        comparison = compare(order.settings, order.jobs, bar)
    said = [argument for argument in argv if argument.partition("=")[0] not in ("output", "jobs")]
    command = shlex.join(["python", "-m", "studies.rlbm.compare", *said])
    comment = f"# netbuf-gym {__version__}: {command}\n"
    write_atomic(order.output / "comparison.csv", comment + _by_seed_csv(comparison))
    write_atomic(order.output / "cells.csv", comment + _cells_csv(comparison))
    table = f"`{command}` (netbuf-gym {__version__}).\n{comparison.markdown()}"
    write_atomic(order.output / "table.md", table)
    print(table)
    print(f"written to {order.output}")
    return 0


def _by_seed_csv(comparison: Comparison) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["scheme", "seed", "slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps"])
    for scheme in comparison.settings.schemes:
        columns = comparison.slowdown(scheme), comparison.run_mean(scheme), comparison.throughput(scheme)
        for seed, *values in zip(comparison.settings.seed_list(), *columns, strict=True):
            writer.writerow([scheme, seed, *(f"{value:.9g}" for value in values)])
    return out.getvalue()


def _cells_csv(comparison: Comparison) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["scheme", "cc", "size", "load", "flows_completed_p0", "slowdown_p99_p0", "throughput_mbps"])
    for scheme in comparison.settings.schemes:
        for cell, (slowdown, rate, flows) in comparison.by_cell(scheme).items():
            writer.writerow([scheme, cell[0], cell[1], f"{cell[2]:g}", flows, f"{slowdown:.6g}", f"{rate:.6g}"])
    return out.getvalue()


if __name__ == "__main__":
    scripts.run("compare", main)
