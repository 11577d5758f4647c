"""Differences between the kernel and the simulator: by cell, and in the order of the schemes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils.statistics import difference_interval, mean_interval
from netbuf_gym.utils.tables import markdown_table
from studies.common.results import Runs
from studies.live.live_measures import ACTIONS, SLOWDOWN, get_compared_measure
from studies.live.live_schemes import RANKED
from studies.live.live_work import LIVE, NOISY, SIMULATED

RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 0.10, 0.02
"""Tolerances of utilities: this share of the simulator's value, or this absolute difference."""
SLOWDOWN_TOLERANCE = 0.20
"""Tolerance of mean slowdowns: this share of the simulator's value."""
GAP = 0.02
"""Differences between schemes above which their order counts: of utilities, and of the logarithms of mean slowdowns."""


@dataclass(frozen=True)
class Cell:
    """A scheme in a world on both plants, as means over the seeds.

    Attributes:
        task, world, scheme: Identifiers of the cell.
        simulated: Compared measure in the simulator.
        noisy: Compared measure in the simulator with host noise; NaN if that was not run.
        live: Compared measure on the kernel.
        half_width: Half of the 95 % interval of the difference without noise, by the spread of both plants' runs; NaN with one
            run on the kernel.
        distance: Total variation between the distributions of actions, 0 to 1; NaN without decisions.
    """

    task: str
    world: str
    scheme: str
    simulated: float
    noisy: float
    live: float
    half_width: float
    distance: float

    @property
    def difference(self) -> float:
        """Live value minus simulated value."""
        return self.live - self.simulated

    @property
    def ranking_values(self) -> tuple[float, float]:
        """Values by which controllers are ranked, simulated and live: more is better."""
        if get_compared_measure(self.task) == SLOWDOWN:
            return -math.log(self.simulated), -math.log(self.live)
        return self.simulated, self.live

    @property
    def within(self) -> bool:
        """Whether the plants agree within tolerance."""
        return self._is_within(self.simulated)

    @property
    def within_noise(self) -> bool:
        """Whether the kernel agrees with the simulator with host noise."""
        return self._is_within(self.noisy)

    def _is_within(self, simulated: float) -> bool:
        allowed = (
            SLOWDOWN_TOLERANCE * simulated
            if get_compared_measure(self.task) == SLOWDOWN
            else max(ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE * abs(simulated))
        )
        return abs(self.live - simulated) <= allowed


def collect_cells(runs: Runs) -> list[Cell]:
    """Return all cells that were run on both plants."""
    cells = []
    for task in runs.values("task"):
        own = runs.where(task=task)
        for world in own.values("world"):
            for scheme in own.values("scheme"):
                both = [own.where(world=world, scheme=scheme, plant=plant) for plant in (SIMULATED, LIVE)]
                if all(map(len, both)):
                    simulated, live = (one.columns[get_compared_measure(task)] for one in both)
                    noisy = own.where(world=world, scheme=scheme, plant=NOISY).columns[get_compared_measure(task)]
                    shares = [np.array([one.columns[name].mean() for name in ACTIONS]) for one in both]
                    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
                    mean = float(noisy.mean()) if len(noisy) else math.nan
                    half_width = _compute_half_width(both[0], both[1], get_compared_measure(task))
                    means = float(simulated.mean()), mean, float(live.mean())
                    cells.append(Cell(task, world, scheme, *means, half_width, distance))
    return cells


def _compute_half_width(simulated: Runs, live: Runs, measure: str) -> float:
    """Return half of the 95 % interval of the difference of means: of pairs where both plants have the same seeds; of three
    runs or more on the kernel."""
    ours, theirs = live.columns[measure], simulated.columns[measure]
    if len(ours) < 3:
        return math.nan
    paired = np.array_equal(live.columns["seed"], simulated.columns["seed"])
    interval = mean_interval(ours - theirs) if paired else difference_interval(ours, theirs)
    return (interval.high - interval.low) / 2


@dataclass(frozen=True)
class Pair:
    """Two schemes in a world, the better one in the simulator first, with a difference above `GAP` there."""

    task: str
    world: str
    better: str
    worse: str
    simulated: float
    live: float

    @property
    def keeps_order(self) -> bool:
        """Whether the order is the same on the kernel."""
        return self.live > 0


def find_pairs(cells: list[Cell]) -> list[Pair]:
    """Return all pairs of schemes whose order counts."""
    pairs = []
    by_world: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.scheme in RANKED[cell.task]:
            by_world.setdefault((cell.task, cell.world), []).append(cell)
    for (task, world), own in by_world.items():
        for better in own:
            for worse in own:
                gap, live = (ours - theirs for ours, theirs in zip(better.ranking_values, worse.ranking_values, strict=True))
                if gap > GAP:
                    pairs.append(Pair(task, world, better.scheme, worse.scheme, gap, live))
    return pairs


def format_summary_table(cells: list[Cell]) -> str:
    """Return a table of the agreeing cells and the differences, by task and scheme."""
    rows = []
    for task in dict.fromkeys(cell.task for cell in cells):
        for scheme in dict.fromkeys(cell.scheme for cell in cells if cell.task == task):
            own = [cell for cell in cells if (cell.task, cell.scheme) == (task, scheme)]
            relative = get_compared_measure(task) == SLOWDOWN
            off = np.array([cell.difference / (cell.simulated if relative else 1.0) for cell in own])
            factor, unit = (100.0, " %") if relative else (1.0, "")
            distances = [cell.distance for cell in own if math.isfinite(cell.distance)]
            rows.append(
                [
                    task,
                    scheme,
                    f"{sum(cell.within for cell in own)} of {len(own)}",
                    f"{sum(cell.within_noise for cell in own)} of {len(own)}" if math.isfinite(own[0].noisy) else "-",
                    f"{np.median(off) * factor:+.3g}{unit}",
                    f"{np.abs(off).max() * factor:.3g}{unit}",
                    f"{np.mean(distances):.2f}" if distances else "-",
                ]
            )
    head = ["task", "controller", "within", "within, with noise", "median difference", "largest", "actions' distance"]
    return markdown_table(head, rows)


def make_verdict_rows(runs: Runs) -> list[list[str]]:
    """Return rows for the table of verdicts: how many worlds agree for each controller, and how many pairs keep their order."""
    cells, rows = collect_cells(runs), []
    for task in dict.fromkeys(cell.task for cell in cells):
        name = f"{task.replace('_', ' ')}s"
        allowed = (
            f"{SLOWDOWN_TOLERANCE:.0%} of mean slowdown"
            if get_compared_measure(task) == SLOWDOWN
            else f"{RELATIVE_TOLERANCE:.0%} or {ABSOLUTE_TOLERANCE:g} of utility"
        )
        for scheme in dict.fromkeys(cell.scheme for cell in cells if cell.task == task):
            own = [cell for cell in cells if (cell.task, cell.scheme) == (task, scheme)]
            said = f"{sum(cell.within for cell in own)} of {len(own)} worlds"
            if math.isfinite(own[0].noisy):
                said += f", {sum(cell.within_noise for cell in own)} of {len(own)} with noise"
            rows.append(
                [
                    f"{name}: `{scheme}` agrees",
                    allowed.replace("%", " %"),
                    said,
                    _format_verdict(sum(cell.within for cell in own), len(own)),
                ]
            )
        pairs = find_pairs([cell for cell in cells if cell.task == task])
        if pairs:
            kept = sum(pair.keeps_order for pair in pairs)
            rows.append(
                [
                    f"{name}: pairs keep their order",
                    "every pair",
                    f"{kept} of {len(pairs)} pairs",
                    _format_verdict(kept, len(pairs)),
                ]
            )
    return rows


def _format_verdict(holds: int, of: int) -> str:
    return "holds" if holds == of else f"in all but {of - holds}"


def format_outside_table(cells: list[Cell]) -> str:
    """Return a table of the cells out of tolerance."""
    rows = [
        [
            cell.world,
            cell.scheme,
            *("-" if math.isnan(value) else f"{value:.3f}" for value in (cell.simulated, cell.noisy, cell.live)),
            f"{cell.difference:+.3f}" + ("" if math.isnan(cell.half_width) else f" ± {cell.half_width:.3f}"),
        ]
        for cell in cells
        if not cell.within
    ]
    return markdown_table(["world", "controller", "simulator", "with noise", "kernel", "kernel - simulator"], rows)


def describe_order(cells: list[Cell]) -> str:
    """Return a text on the pairs of schemes that keep their order, with a table of the others."""
    pairs = find_pairs(cells)
    ranked = ", ".join(dict.fromkeys(name for task in dict.fromkeys(cell.task for cell in cells) for name in RANKED[task]))
    if len({(cell.task, cell.scheme) for cell in cells if cell.scheme in RANKED[cell.task]}) < 2:
        return f"Fewer than two of {ranked} play here: there is no order to keep."
    apart = f"{GAP:g}" + (" in the logarithm" if any(get_compared_measure(cell.task) == SLOWDOWN for cell in cells) else "")
    if not pairs:
        return f"No two of {ranked} were further apart than {apart} in the simulator."
    lost = [pair for pair in pairs if not pair.keeps_order]
    lines = [
        f"Of {len(pairs)} pairs among {ranked} that are more than {apart} apart in the simulator, "
        f"{len(pairs) - len(lost)} have the same order on the kernel."
    ]
    rows = [[p.task, p.world, p.better, p.worse, f"{p.simulated:+.3f}", f"{p.live:+.3f}"] for p in lost]
    if rows:
        lines += ["", markdown_table(["task", "world", "better", "worse", "simulator", "kernel"], rows)]
    return "\n".join(lines)
