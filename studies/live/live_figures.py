"""Figures of the kernel against the simulator, cell by cell, and of the actions on both. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils.plots import COLOURS, format_axes, make_figure, write_figure
from studies.common.results import Runs
from studies.live.judging import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, SLOWDOWN_TOLERANCE, Cell, collect_cells
from studies.live.live_measures import ACTIONS, SLOWDOWN, get_compared_measure
from studies.live.live_schemes import LEARNED
from studies.live.live_work import LIVE, SIMULATED, LiveWork

MARKS = "osD^vP*X<>"


def draw_all(work: LiveWork, runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    drawn = []
    cells = collect_cells(runs)
    for task in runs.values("task"):
        own = [cell for cell in cells if cell.task == task]
        for name, figure in (
            ("cells", draw_cells(own, task)),
            ("actions", draw_actions(runs.where(task=task, scheme=LEARNED))),
        ):
            if figure is not None:
                drawn.append(folder / f"{name}_{task}.png")
                write_figure(figure, drawn[-1], dpi=100)
    return drawn


def draw_cells(cells: list[Cell], task: str) -> Any:
    """Return a figure of every cell, the kernel's value over the simulator's, with the tolerance; None without cells."""
    if not cells:
        return None
    figure = make_figure(7.2, 6.0)
    axes = figure.subplots()
    simulated, live = np.array([[cell.simulated, cell.live] for cell in cells]).T
    low, high = float(min(simulated.min(), live.min())), float(max(simulated.max(), live.max()))
    line = np.linspace(low, high, 200)
    slow = get_compared_measure(task) == SLOWDOWN
    band = SLOWDOWN_TOLERANCE * line if slow else np.maximum(ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE * np.abs(line))
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
    format_axes(axes, f"{what}, simulator", f"{what}, kernel", f"{task.replace('_', ' ')}: {len(cells)} cells", legend=1)
    return figure


def draw_actions(runs: Runs) -> Any:
    """Return a figure of the trained agent's actions on both plants, over all worlds; None without runs."""
    if not len(runs):
        return None
    shares = [np.array([runs.where(plant=plant).columns[name].mean() for name in ACTIONS]) for plant in (SIMULATED, LIVE)]
    figure = make_figure(7.2, 3.4)
    axes = figure.subplots()
    for number, (plant, one) in enumerate(zip(("simulator", "kernel"), shares, strict=True)):
        axes.bar(np.arange(len(one)) + 0.4 * number - 0.2, 100 * one, 0.4, color=COLOURS[number], label=plant)
    axes.set_xticks(range(len(ACTIONS)))
    format_axes(axes, "action of the trained agent", "share of decisions (%)", legend=1)
    return figure
