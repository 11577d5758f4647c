"""Figures of the paper, drawn from a campaign's results. Needs matplotlib (`pip install netbuf-gym[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils import plots
from netbuf_gym.utils.plots import MARKERS, SMALL, TEXT, make_figure, write_figure
from studies.auter import paper
from studies.auter.auter_claims import CELLS, RATE
from studies.auter.auter_schemes import LEARNED, NAMES, RANDOM, STYLES, label
from studies.auter.auter_settings import (
    BANDWIDTH,
    FLOW_SIZE,
    LATENCY,
    LONG_RUN,
    LOSS,
    MEMORY,
    REGIONS,
    SETTINGS,
    SWEEPS,
    TRAINING,
)
from studies.common.drawing import compute_mean_and_half, make_bar_style
from studies.common.judging import compute_change
from studies.common.results import Runs

SWEPT = {
    LATENCY: ("extra latency (ms)", "ms"),
    BANDWIDTH: ("bandwidth (Mbit/s)", "mbps"),
    LOSS: ("random loss (%)", "%"),
    FLOW_SIZE: ("size of flows", ""),
}
"""Axis label of each sweep's varied quantity, and the unit suffix of its cells."""
SHOWN = ((RATE, "throughput (Mbit/s)"), ("gain", "over default's (%)"), ("latency_ms", "round-trip time (ms)"))
"""Measures of a sweep's panels, with their axis labels."""
D = paper.DEFAULT


def draw_all(runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    drawn: list[Path] = []

    def save(name: str, figure: Any) -> None:
        drawn.append(folder / f"{name}.png")
        write_figure(figure, drawn[-1], dpi=100)

    present = runs.values("study")
    if SETTINGS in present:
        save("settings", draw_gains(runs.where(study=SETTINGS), [list(paper.TABLE_1)], paper.TABLE_1))
    if REGIONS in present:
        own = runs.where(study=REGIONS)
        cells = [[f"{region}-{traffic}" for region in paper.REGIONS] for traffic in paper.TRAFFIC]
        save("regions", draw_gains(own, cells, paper.THROUGHPUT))
        save("regions_scatter", draw_scatter(own, cells))
    for study in SWEEPS:
        if study in present:
            save(f"sweep_{study}", draw_sweep(runs.where(study=study), study))
    if MEMORY in present:
        save("memory", draw_memory(runs.where(study=MEMORY)))
    if LONG_RUN in present:
        save("long_run", draw_long_run(runs.where(study=LONG_RUN)))
    if TRAINING in present:
        save("training", draw_training(runs.where(study=TRAINING)))
    return drawn


def draw_gains(runs: Runs, cells: Sequence[Sequence[str]], papers: Any) -> Any:
    """Draw each scheme's gain in throughput over the default per cell, with 95 % intervals; the paper's as diamonds."""
    schemes = [scheme for scheme in NAMES if scheme in runs.values("scheme") and scheme != D] or [D]
    figure = make_figure(3.3 * len(cells[0]) + 1.0, (0.26 * len(schemes) + 1.0) * len(cells))
    panels = figure.subplots(len(cells), len(cells[0]), sharey=True, squeeze=False)
    flat = [cell for line in cells for cell in line]
    for axes, cell in zip(panels.flat, flat, strict=True):
        own = runs.where(cell=cell)
        for row, scheme in enumerate(schemes):
            found = compute_change(own, scheme, D, RATE, CELLS)
            if found is None:
                continue
            mean, low, high = (100 * np.expm1(value) if np.isfinite(value) else np.nan for value in found)
            around = [[mean - low], [high - mean]] if np.isfinite(high - low) else None
            axes.barh(row, mean, xerr=around, height=0.75, error_kw={"elinewidth": 0.8}, **make_bar_style(*STYLES[scheme][:2]))
            if scheme in papers.get(cell, {}):
                said = 100 * (papers[cell][scheme] / papers[cell][D] - 1)
                named = {} if axes.get_legend_handles_labels()[0] else {"label": "the paper's"}
                axes.plot(said, row, "D", color="black", markersize=4.5, markeredgecolor="white", zorder=3, **named)
        axes.axvline(0, color="0.3", linewidth=plots.THIN)
        drawn = [patch.get_width() for patch in axes.patches] + [line.get_xdata()[0] for line in axes.lines[:-1]]
        drawn = [float(value) for value in drawn if np.isfinite(value)] or [0.0]
        if max(drawn) > 300:
            axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(min(-5.0, 1.4 * min(drawn)), max(5.0, 1.4 * max(drawn)))  # intervals of few seeds may be much wider
        plots.format_axes(axes, title=cell.upper().replace("-SHORT", ", short").replace("-LONG", ", long"))
    panels[0, 0].set_yticks(range(len(schemes)), [label(scheme) for scheme in schemes], fontsize=SMALL)
    panels[0, 0].invert_yaxis()
    for axes in panels[-1]:
        axes.set_xlabel("throughput over default's (%)", fontsize=TEXT)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower right", frameon=False, fontsize=SMALL)
    return figure


def draw_scatter(runs: Runs, cells: Sequence[Sequence[str]]) -> Any:
    """Draw throughput against round-trip time in each cell: means over seeds, 95 % intervals between schemes."""
    schemes = [scheme for scheme in NAMES if scheme in runs.values("scheme")]
    figure = make_figure(3.5 * len(cells[0]), 2.8 * len(cells) + 0.9)
    panels = figure.subplots(len(cells), len(cells[0]), squeeze=False)
    flat = [cell for line in cells for cell in line]
    rates, delays = (runs.compute_bands(name, "cell", flat, ()) for name in (RATE, "latency_ms"))
    for at, (axes, cell) in enumerate(zip(panels.flat, flat, strict=True)):
        for number, scheme in enumerate(schemes):
            (x, left, right), (y, low, high) = ([one[at] for one in found[scheme]] for found in (delays, rates))
            look = {"color": STYLES[scheme][0], "linewidth": 0.7, "alpha": 0.6, "zorder": 1}
            axes.plot([left, right], [y, y], **look)
            axes.plot([x, x], [low, high], **look)
            first = scheme == LEARNED
            marker = MARKERS[0] if first else MARKERS[1 + number % (len(MARKERS) - 1)]
            # Hollow markers of decreasing size: many points coincide.
            look = {"color": STYLES[scheme][0], "markerfacecolor": "none", "markeredgewidth": 1.4, "linestyle": "none"}
            size = 15 if first else 13 - 8 * number / len(schemes)
            axes.plot(x, y, marker, label=label(scheme), zorder=3 if first else 2, markersize=size, **look)
        plots.format_axes(axes, title=cell.upper().replace("-SHORT", ", short").replace("-LONG", ", long"))
        points = np.array([[found[scheme][0][at] for scheme in schemes] for found in (delays, rates)])
        some = np.isfinite(points).any()
        most, least = (np.nanmax(points, axis=1), np.nanmin(points[0])) if some else (np.ones(2), 0.0)
        axes.set_xlim(0.9 * least, 1.1 * most[0])
        axes.set_ylim(0, 1.15 * most[1])
    for axes in panels[-1]:
        axes.set_xlabel("round-trip time (ms)", fontsize=TEXT)
    for axes in panels[:, 0]:
        axes.set_ylabel("throughput (Mbit/s)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.7)
    return figure


def draw_sweep(own: Runs, study: str) -> Any:
    """Draw throughput, its gain over the default's and round-trip time along a sweep; means with 95 % intervals."""
    title, unit = SWEPT[study]
    extras = list(dict.fromkeys(cell.partition("+")[2] for cell in own.values("cell")))
    figure = make_figure(11.0, 2.7 * len(extras) + 0.8)
    panels = figure.subplots(len(extras), len(SHOWN), squeeze=False)
    for number, (row, extra) in enumerate(zip(panels, extras, strict=True), 1):
        cells = [cell for cell in own.values("cell") if cell.partition("+")[2] == extra]
        for axes, (measure, said) in zip(row, SHOWN, strict=True):
            _draw_lines(axes, own, measure, cells, np.arange(len(cells)))
            axes.set_xticks(np.arange(len(cells)), [cell.partition("+")[0].removesuffix(unit) for cell in cells])
            if measure == "gain":
                axes.axhline(0, color="0.3", linewidth=plots.THIN)
                axes.axhline(100 * paper.SWEEPS[study], label="the paper's mean for Auter", **plots.LIMIT)
                axes.set_yscale("symlog", linthresh=10)
                axes.yaxis.set_major_formatter("{x:g}")
            elif measure == RATE and study in (BANDWIDTH, FLOW_SIZE):
                axes.set_yscale("log")
            plots.format_axes(axes, xlabel=title if number == len(extras) else "", ylabel=said)
            _limit_y_axis(axes)
        if extra:
            row[1].set_title(f"{extra.removesuffix('ms')} ms of extra latency", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0, 0], panels[0, 1]], inches=1.7)
    return figure


def _draw_lines(axes: Any, own: Runs, measure: str, cells: Sequence[str], places: Any) -> None:
    """Draw a line with its band for each scheme."""
    for scheme, (mean, low, high) in _compute_bands(own, measure, cells).items():
        colour, line, name = STYLES[scheme]
        width = plots.WIDE if scheme == LEARNED else plots.LINE
        axes.plot(places, mean, line, color=colour, linewidth=width, marker="o", markersize=3, label=name)
        if scheme != RANDOM:  # the band of random actions would hide all others
            axes.fill_between(places, low, high, color=colour, alpha=0.1, linewidth=0)


def _limit_y_axis(axes: Any) -> None:
    """Fit the y-axis to the lines rather than the bands, which may be much wider with few seeds."""
    values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines] or [np.ones(1)])
    values = values[np.isfinite(values)]
    if not len(values):
        return
    least, most = float(values.min()), float(values.max())
    if axes.get_yscale() == "log":
        axes.set_ylim(0.7 * max(least, 1e-9), 1.4 * max(most, 1e-9))
    elif axes.get_yscale() == "linear" and least >= 0:
        axes.set_ylim(0, 1.1 * most or 1.0)
    else:
        axes.set_ylim(min(1.3 * least, -5.0), max(1.3 * most, 5.0))


def _compute_bands(own: Runs, measure: str, cells: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the means and interval bounds of each scheme in each cell."""
    present = [scheme for scheme in NAMES if scheme in own.values("scheme")]
    if measure != "gain":
        found = own.compute_bands(measure, "cell", cells, ())
        return {scheme: found[scheme] for scheme in present}
    lines = {}
    for scheme in present:
        if scheme == D:
            continue
        points = [compute_change(own.where(cell=cell), scheme, D, RATE, CELLS) for cell in cells]
        changes = np.array([[np.nan] * 3 if one is None else one for one in points])
        mean, low, high = 100 * np.expm1(np.where(np.isfinite(changes), changes, changes[:, :1])).T
        lines[scheme] = (mean, low, high)
    return lines


def draw_memory(runs: Runs) -> Any:
    """Draw memory, goodput and round-trip time against the number of connections."""
    cells = sorted(runs.values("cell"), key=int)
    numbers = [int(cell) for cell in cells]
    figure = make_figure(10.5, 3.9)
    panels = figure.subplots(1, 3)
    measures = (("memory_mb", "memory (MB)"), ("goodput_mbps", "goodput (Mbit/s)"), ("latency_ms", "round-trip time (ms)"))
    for axes, (measure, said) in zip(panels, measures, strict=True):
        _draw_lines(axes, runs, measure, cells, numbers)
        axes.set_xscale("log")
        if measure != "goodput_mbps":
            axes.set_yscale("log")
        plots.format_axes(axes, "connections", said)
        _limit_y_axis(axes)
    plots.add_legend_below(figure, [panels[0]], inches=1.7)
    return figure


def draw_long_run(runs: Runs) -> Any:
    """Draw throughput, round-trip time and memory over the pieces of the long run, means over seeds."""
    own = runs.mask(runs.columns["step"] > 0)
    steps = sorted(own.values("step"))
    rows = ((RATE, "throughput (Mbit/s)"), ("latency_ms", "RTT (ms)"), ("memory_mb", "memory (MB)"))
    figure = make_figure(9.6, 2.1 * len(rows) + 0.9)
    panels = figure.subplots(len(rows), 1, sharex=True)
    for axes, (measure, said) in zip(panels, rows, strict=True):
        for scheme in [scheme for scheme in NAMES if scheme in own.values("scheme")]:
            colour, line, name = STYLES[scheme]
            here = own.where(scheme=scheme)
            mean = [compute_mean_and_half(here.where(step=step).columns[measure])[0] for step in steps]
            width = plots.WIDE if scheme == LEARNED else plots.LINE
            axes.plot(steps, mean, line, color=colour, linewidth=width, label=name)
        plots.format_axes(axes, ylabel=said)
        if measure == "memory_mb":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("time (h)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0]], inches=1.7)
    return figure


def draw_training(runs: Runs) -> Any:
    """Draw throughput and the three buffers over a training session: thin lines per seed, a thick one for their mean."""
    rows = (
        (RATE, "throughput\n(Mbit/s)"),
        ("ring_packets", "ring\n(packets)"),
        ("socket_kb", "socket\n(kB)"),
        ("tcp_kb", "TCP maximum\n(kB)"),
    )
    figure = make_figure(8.4, 1.75 * len(rows) + 0.6)
    panels = figure.subplots(len(rows), 1, sharex=True)
    steps = np.array(sorted(runs.values("step")))
    seeds = runs.values("seed")
    for axes, (measure, said) in zip(panels, rows, strict=True):
        of_seeds = [runs.where(seed=seed) for seed in seeds]
        found = np.array(
            [[compute_mean_and_half(one.where(step=step).columns[measure])[0] for step in steps] for one in of_seeds]
        )
        for number, one in enumerate(found):
            look = {"color": plots.get_style(number)[0], "linewidth": plots.THIN, "alpha": 0.7}
            axes.plot(steps, one, label=f"seed {seeds[number]:.0f}", **look)
        if len(found) > 1:
            axes.plot(steps, found.mean(axis=0), color="black", linewidth=plots.WIDE, label="mean")
        plots.format_axes(axes, ylabel=said)
    panels[-1].set_xlabel("epochs", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0]], inches=1.7)
    return figure
