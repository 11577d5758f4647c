"""How far the kernel is from the simulator: cell by cell, and in the order of the schemes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.results import Runs
from studies.live.measures import ACTIONS, SLOWDOWN, compared
from studies.live.schemes import RANKED
from studies.live.work import LIVE, NOISY, SIMULATED

RELATIVE, ABSOLUTE = 0.10, 0.02
"""What utilities may differ by: this share of the simulator's, or so much."""
OF_SLOWDOWN = 0.20
GAP = 0.02
"""Differences between schemes above which their order counts: of utilities, and of the logarithms of mean slowdowns."""


@dataclass(frozen=True)
class Cell:
    """A scheme in a world on both plants, means over the seeds.

    Attributes:
        noisy: With a host's noise in the simulator; NaN where that was not run.
        distance: Total variation between the distributions of actions, 0 to 1; NaN where nothing was decided.
    """

    task: str
    world: str
    scheme: str
    simulated: float
    noisy: float
    live: float
    distance: float

    @property
    def difference(self) -> float:
        """Live less simulated."""
        return self.live - self.simulated

    @property
    def worth(self) -> tuple[float, float]:
        """What controllers are ordered by, simulated and live: more is better."""
        if compared(self.task) == SLOWDOWN:
            return -math.log(self.simulated), -math.log(self.live)
        return self.simulated, self.live

    @property
    def within(self) -> bool:
        """Whether the plants agree."""
        return self._near(self.simulated)

    @property
    def within_noise(self) -> bool:
        """Whether the kernel agrees with the simulator that has a host's noise."""
        return self._near(self.noisy)

    def _near(self, simulated: float) -> bool:
        allowed = OF_SLOWDOWN * simulated if compared(self.task) == SLOWDOWN else max(ABSOLUTE, RELATIVE * abs(simulated))
        return abs(self.live - simulated) <= allowed


def cells_of(runs: Runs) -> list[Cell]:
    """All that were run on both plants."""
    cells = []
    for task in runs.values("task"):
        own = runs.where(task=task)
        for world in own.values("world"):
            for scheme in own.values("scheme"):
                both = [own.where(world=world, scheme=scheme, plant=plant) for plant in (SIMULATED, LIVE)]
                if all(map(len, both)):
                    simulated, live = (float(one.columns[compared(task)].mean()) for one in both)
                    noisy = own.where(world=world, scheme=scheme, plant=NOISY).columns[compared(task)]
                    shares = [np.array([one.columns[name].mean() for name in ACTIONS]) for one in both]
                    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
                    mean = float(noisy.mean()) if len(noisy) else math.nan
                    cells.append(Cell(task, world, scheme, simulated, mean, live, distance))
    return cells


@dataclass(frozen=True)
class Pair:
    """Two schemes in a world, the better one in the simulator first, further apart there than `GAP`."""

    task: str
    world: str
    better: str
    worse: str
    simulated: float
    live: float

    @property
    def kept(self) -> bool:
        """Whether their order is the same on the kernel."""
        return self.live > 0


def pairs_of(cells: list[Cell]) -> list[Pair]:
    """All pairs of the schemes whose order counts."""
    pairs = []
    by_world: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.scheme in RANKED[cell.task]:
            by_world.setdefault((cell.task, cell.world), []).append(cell)
    for (task, world), own in by_world.items():
        for better in own:
            for worse in own:
                gap, live = (ours - theirs for ours, theirs in zip(better.worth, worse.worth, strict=True))
                if gap > GAP:
                    pairs.append(Pair(task, world, better.scheme, worse.scheme, gap, live))
    return pairs


def summary_table(cells: list[Cell]) -> str:
    """Of each task and scheme, how many cells agree and how far they are apart."""
    rows = []
    for task in dict.fromkeys(cell.task for cell in cells):
        for scheme in dict.fromkeys(cell.scheme for cell in cells if cell.task == task):
            own = [cell for cell in cells if (cell.task, cell.scheme) == (task, scheme)]
            relative = compared(task) == SLOWDOWN
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


def verdict_rows(runs: Runs) -> list[list[str]]:
    """Rows of the table of verdicts: of each controller how many worlds agree, and how many pairs keep their order."""
    cells, rows = cells_of(runs), []
    for task in dict.fromkeys(cell.task for cell in cells):
        name = f"{task.replace('_', ' ')}s"
        allowed = (
            f"{OF_SLOWDOWN:.0%} of mean slowdown"
            if compared(task) == SLOWDOWN
            else f"{RELATIVE:.0%} or {ABSOLUTE:g} of utility"
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
                    _verdict(sum(cell.within for cell in own), len(own)),
                ]
            )
        pairs = pairs_of([cell for cell in cells if cell.task == task])
        if pairs:
            kept = sum(pair.kept for pair in pairs)
            rows.append(
                [f"{name}: pairs keep their order", "every pair", f"{kept} of {len(pairs)} pairs", _verdict(kept, len(pairs))]
            )
    return rows


def _verdict(holds: int, of: int) -> str:
    return "holds" if holds == of else f"in all but {of - holds}"


def outside_table(cells: list[Cell]) -> str:
    """The cells that do not agree."""
    rows = [
        [
            cell.world,
            cell.scheme,
            *("-" if math.isnan(value) else f"{value:.3f}" for value in (cell.simulated, cell.noisy, cell.live)),
            f"{cell.difference:+.3f}",
        ]
        for cell in cells
        if not cell.within
    ]
    return markdown_table(["world", "controller", "simulator", "with noise", "kernel", "kernel - simulator"], rows)


def order_said(cells: list[Cell]) -> str:
    """In how many pairs the order of schemes is the same, and the others."""
    pairs = pairs_of(cells)
    ranked = ", ".join(dict.fromkeys(name for task in dict.fromkeys(cell.task for cell in cells) for name in RANKED[task]))
    if len({(cell.task, cell.scheme) for cell in cells if cell.scheme in RANKED[cell.task]}) < 2:
        return f"Fewer than two of {ranked} play here: there is no order to keep."
    apart = f"{GAP:g}" + (" in the logarithm" if any(compared(cell.task) == SLOWDOWN for cell in cells) else "")
    if not pairs:
        return f"No two of {ranked} were further apart than {apart} in the simulator."
    lost = [pair for pair in pairs if not pair.kept]
    lines = [
        f"Of {len(pairs)} pairs among {ranked} that are more than {apart} apart in the simulator, "
        f"{len(pairs) - len(lost)} have the same order on the kernel."
    ]
    rows = [[p.task, p.world, p.better, p.worse, f"{p.simulated:+.3f}", f"{p.live:+.3f}"] for p in lost]
    if rows:
        lines += ["", markdown_table(["task", "world", "better", "worse", "simulator", "kernel"], rows)]
    return "\n".join(lines)
