"""The kernel against the simulator, cell by cell, and what was decided on both. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils.plots import COLOURS, dress, figure_of, write
from studies.common.results import Runs
from studies.live.judging import ABSOLUTE, OF_SLOWDOWN, RELATIVE, Cell, cells_of
from studies.live.measures import ACTIONS, SLOWDOWN, compared
from studies.live.schemes import LEARNED
from studies.live.work import LIVE, SIMULATED, Both

MARKS = "osD^vP*X<>"


def draw_all(work: Both, runs: Runs, folder: Path) -> list[Path]:
    """All figures of a finished campaign; see `Experiment.draw`."""
    drawn = []
    cells = cells_of(runs)
    for task in runs.values("task"):
        own = [cell for cell in cells if cell.task == task]
        for name, figure in (("cells", scatter(own, task)), ("actions", actions(runs.where(task=task, scheme=LEARNED)))):
            if figure is not None:
                drawn.append(folder / f"{name}_{task}.png")
                write(figure, drawn[-1], dpi=100)
    return drawn


def scatter(cells: list[Cell], task: str) -> Any:
    """Every cell, the kernel's value over the simulator's, with the tolerance."""
    if not cells:
        return None
    figure = figure_of(7.2, 6.0)
    axes = figure.subplots()
    simulated, live = np.array([[cell.simulated, cell.live] for cell in cells]).T
    low, high = float(min(simulated.min(), live.min())), float(max(simulated.max(), live.max()))
    line = np.linspace(low, high, 200)
    slow = compared(task) == SLOWDOWN
    band = OF_SLOWDOWN * line if slow else np.maximum(ABSOLUTE, RELATIVE * np.abs(line))
    axes.fill_between(line, line - band, line + band, color="#dddddd", label="tolerance")
    axes.plot(line, line, color="#888888", linewidth=1)
    for number, scheme in enumerate(dict.fromkeys(cell.scheme for cell in cells)):
        own = [cell for cell in cells if cell.scheme == scheme]
        axes.scatter(
            [cell.simulated for cell in own],
            [cell.live for cell in own],
            s=28,
            marker=MARKS[number % len(MARKS)],
            color=COLOURS[number % len(COLOURS)],
            label=scheme,
            zorder=3,
        )
    what = "mean slowdown" if slow else "utility"
    if slow:
        axes.set_xscale("log")
        axes.set_yscale("log")
    dress(axes, f"{what}, simulator", f"{what}, kernel", f"{task.replace('_', ' ')}: {len(cells)} cells", legend=1)
    return figure


def actions(runs: Runs) -> Any:
    """What the trained agent decided on both plants, over all worlds."""
    if not len(runs):
        return None
    shares = [np.array([runs.where(plant=plant).columns[name].mean() for name in ACTIONS]) for plant in (SIMULATED, LIVE)]
    figure = figure_of(7.2, 3.4)
    axes = figure.subplots()
    for number, (plant, one) in enumerate(zip(("simulator", "kernel"), shares, strict=True)):
        axes.bar(np.arange(len(one)) + 0.4 * number - 0.2, 100 * one, 0.4, color=COLOURS[number], label=plant)
    axes.set_xticks(range(len(ACTIONS)))
    dress(axes, "action of the trained agent", "share of decisions (%)", legend=1)
    return figure
