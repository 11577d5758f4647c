"""Figures of a campaign's results. Requires matplotlib (`pip install netbuf-gym[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils import plots
from netbuf_gym.utils.plots import SMALL, TEXT, make_figure, write_figure
from studies.common.judging import compute_interval
from studies.common.results import Runs
from studies.sender import sender_claims as claims
from studies.sender import sender_worlds as worlds
from studies.sender import strangers, strangers_claims, trace_cells
from studies.sender.sender_measures import EVEN, OVER_S
from studies.sender.sender_schemes import BOUNDS, LEARNED, NAMES, RULE, STYLES, label
from studies.sender.sender_settings import AGENTS, DELAY_STEP, GRID, OUTAGE, RIVALS, START, STRANGERS, TRACES
from studies.sender.sender_tables import choose_featured_scheme, list_present_schemes

LABELS = [label(scheme) for scheme in NAMES]
MOST = 0.3
"""Largest difference of utility on the grid's colour scale."""
DELIVERED, QUEUEING = ("throughput_mbps", "delivery (Mbit/s)"), ("queueing_ms", "RTT above the\npath's least (ms)")


def draw_all(runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    drawn: list[Path] = []

    def save(name: str, figure: Any) -> None:
        drawn.append(folder / f"{name}.png")
        write_figure(figure, drawn[-1], dpi=100)

    def of(study: str) -> Runs:
        return runs.where(study=study, step=0)

    studies = runs.values("study")
    if GRID in studies:
        save(GRID, plot_grid(of(GRID)))
    if TRACES in studies:
        save(TRACES, plot_traces(of(TRACES)))
    for study, rows in ((START, (DELIVERED, QUEUEING)), (OUTAGE, (DELIVERED,)), (DELAY_STEP, (DELIVERED, QUEUEING))):
        if study in studies:
            save(study, plot_series(runs.where(study=study), study, rows))
    if RIVALS in studies:
        save(RIVALS, plot_rivals(of(RIVALS)))
    if AGENTS in studies:
        save(AGENTS, plot_agents(of(AGENTS)))
        save("joining", plot_joining(of(AGENTS)))
    if STRANGERS in studies:
        save(STRANGERS, plot_strangers(of(STRANGERS)))
    return drawn


def plot_grid(own: Runs) -> Any:
    """Plot the lead in utility of the featured scheme over the best other classic control, in each cell of the grid."""
    scheme = choose_featured_scheme(own)
    cells: dict[str, list[float]] = {}
    for (cell, _), margin in claims.compute_margins(own, scheme).items():
        cells.setdefault(cell, []).append(margin)
    figure = make_figure(9.6, 8.4)
    panels = figure.subplots(len(worlds.BUFFERS_BDP), len(worlds.LOSSES), sharex=True, sharey=True)
    image = None
    for row, buffer in zip(panels, worlds.BUFFERS_BDP, strict=True):
        for axes, loss in zip(row, worlds.LOSSES, strict=True):
            names = [[f"{rate}-{rtt}-{buffer}-{loss}" for rtt in worlds.RTTS_MS] for rate in worlds.RATES_MBPS]
            values = np.array([[np.mean(cells.get(name, [np.nan])) for name in line] for line in names])
            image = axes.imshow(np.clip(values, -MOST, MOST), cmap="RdBu", vmin=-MOST, vmax=MOST, origin="lower", aspect="auto")
            for i, line in enumerate(values):
                for j, value in enumerate(line):
                    if np.isfinite(value):
                        dark = abs(value) > 0.6 * MOST
                        text = f"{value:+.2f}".replace("0.", ".")
                        look = {"ha": "center", "va": "center", "fontsize": SMALL - 1.5}
                        axes.text(j, i, text, color="white" if dark else "black", **look)
            axes.set_xticks(range(len(worlds.RTTS_MS)), list(map(str, worlds.RTTS_MS)))
            axes.set_yticks(range(len(worlds.RATES_MBPS)), list(map(str, worlds.RATES_MBPS)))
            plots.format_axes(axes, title=f"{buffer:g} BDP, {100 * loss:g} % lost", grid="")
    for axes in panels[-1]:
        plots.format_axes(axes, xlabel="RTT (ms)", grid="")
    for axes in panels[:, 0]:
        plots.format_axes(axes, ylabel="rate (Mbit/s)", grid="")
    bar = figure.colorbar(image, ax=panels, shrink=0.6)
    plots.format_axes(bar.ax, ylabel="utility ahead of the best other classic control", grid="")
    figure.suptitle(f"{label(scheme)} on links of all sizes", fontsize=TEXT + 1)
    return figure


def plot_traces(own: Runs) -> Any:
    """Plot the mean utility by family of traces; bounds are lines."""
    families = [family for family in trace_cells.FILES if len(own.where(cell=trace_cells.list_cells(family)))]
    playing = [scheme for scheme in list_present_schemes(own) if scheme not in BOUNDS]
    figure = make_figure(9.6, 3.9)
    axes = figure.add_subplot()
    width = 0.84 / max(len(playing), 1)
    for at, scheme in enumerate(playing):
        means = [_compute_mean_utility(own, scheme, family) for family in families]
        x = np.arange(len(families)) - 0.42 + (at + 0.5) * width
        axes.bar(x, means, width * 0.92, color=STYLES[scheme][0], label=label(scheme), hatch=_choose_hatch(scheme), zorder=2)
    for bound in BOUNDS:
        if bound in own.values("scheme"):
            means = [_compute_mean_utility(own, bound, family) for family in families]
            look = {"color": "black", "linestyles": STYLES[bound][1], "linewidth": plots.LINE, "zorder": 3}
            middles = np.arange(len(families))
            axes.hlines(means, middles - 0.45, middles + 0.45, label=label(bound), **look)
    axes.set_xticks(range(len(families)), [trace_cells.SAID[family] for family in families])
    plots.format_axes(axes, ylabel="utility, the higher the better", grid="y")
    plots.add_legend_below(figure, [axes], inches=1.6, first=LABELS)
    return figure


def plot_series(runs: Runs, study: str, rows: Sequence[tuple[str, str]]) -> Any:
    """Plot the first seed's runs over time, one column per cell."""
    own = runs.where(seed=min(runs.values("seed")))
    own = own.mask(own.columns["step"] > 0)
    cells = own.values("cell")
    figure = make_figure(max(6.0, 3.1 * len(cells)) + 0.6, 2.3 * len(rows) + 0.9)
    panels = figure.subplots(len(rows), len(cells), sharex=True, squeeze=False)
    for (measure, said), line in zip(rows, panels, strict=True):
        for axes, cell in zip(line, cells, strict=True):
            for scheme in reversed(list_present_schemes(own)):
                columns = own.where(scheme=scheme, cell=cell).columns
                colour, dashes, name = STYLES[scheme]
                look = {"linewidth": plots.WIDE, "zorder": 3} if scheme == LEARNED else {"linewidth": 0.9, "alpha": 0.8}
                axes.plot(columns["step"], columns[measure], dashes, color=colour, label=name, **look)
            plots.format_axes(axes)
            plots.start_at_zero(axes)
            if measure == "queueing_ms":
                values = own.where(cell=cell).columns[measure]
                axes.set_ylim(0, 1.05 * max(float(np.nanquantile(values, 0.995)) if np.isfinite(values).any() else 0.0, 1.0))
        line[0].set_ylabel(said, fontsize=TEXT)
    for axes, cell in zip(panels[0], cells, strict=True):
        axes.set_title(worlds.describe_cell(study, cell), fontsize=TEXT + 1)
    for axes in panels[-1]:
        axes.set_xlabel("time (s)", fontsize=TEXT)
    figure.suptitle(f"One run each, means over {OVER_S:g} s", fontsize=TEXT + 1)
    plots.add_legend_below(figure, panels.flat, inches=1.6, first=LABELS)
    return figure


def plot_rivals(own: Runs) -> Any:
    """Plot shares of the link against one flow of another control."""
    figure = make_figure(9.6, 3.9)
    panels = figure.subplots(1, len(worlds.RIVALS), sharey=True)
    at = np.arange(len(worlds.RIVAL_BUFFERS))
    for axes, rival in zip(panels, worlds.RIVALS, strict=True):
        if rival == "cubic":
            axes.axhspan(0.35, 0.65, color="0.9", zorder=0)
        for scheme in reversed(list_present_schemes(own)):
            found = [
                compute_interval(own.where(cell=f"{rival}-{buffer}", scheme=scheme).columns["share"].tolist())
                for buffer in worlds.RIVAL_BUFFERS
            ]
            _plot_points(axes, at, found, scheme)
        axes.axhline(0.5, **plots.LIMIT)
        axes.set_xticks(at, worlds.RIVAL_BUFFERS)
        axes.set_ylim(0, 1)
        plots.format_axes(axes, "buffer (BDP)", title=f"beside {label(rival)}")
    panels[0].set_ylabel("share of the delivery", fontsize=TEXT)
    plots.add_legend_below(figure, panels, inches=1.6, first=LABELS)
    return figure


def plot_agents(own: Runs) -> Any:
    """Plot Jain's index and the queue by the number of senders, one column per buffer."""
    buffers = list(dict.fromkeys(cell.split("-")[1] for cell in own.values("cell")))
    rows = (("jain", "Jain's index"), ("queue_bdp", "queue (BDP)"))
    figure = make_figure(7.6, 5.6)
    panels = figure.subplots(len(rows), len(buffers), sharex=True, sharey="row", squeeze=False)
    at = np.arange(len(worlds.AGENTS))
    for (measure, said), line in zip(rows, panels, strict=True):
        for axes, buffer in zip(line, buffers, strict=True):
            for scheme in reversed(list_present_schemes(own)):
                found = [
                    compute_interval(own.where(cell=f"{many}-{buffer}", scheme=scheme).columns[measure].tolist())
                    for many in worlds.AGENTS
                ]
                _plot_points(axes, at, found, scheme)
            plots.format_axes(axes)
            axes.set_xticks(at, list(map(str, worlds.AGENTS)))
        line[0].set_ylabel(said, fontsize=TEXT)
    panels[0, 0].set_ylim(0, 1.03)
    panels[1, 0].set_ylim(0, 1.05 * max(float(np.nanmax(own.columns["queue_bdp"])), 0.1))
    for axes, buffer in zip(panels[0], buffers, strict=True):
        axes.set_title(f"{buffer} BDP of buffer", fontsize=TEXT + 1)
    for axes in panels[-1]:
        axes.set_xlabel("senders of a kind", fontsize=TEXT)
    plots.add_legend_below(figure, panels.flat, inches=1.6, first=LABELS)
    return figure


def plot_joining(own: Runs) -> Any:
    """Plot the longest time until the link is shared evenly after another sender has joined."""
    cells = [cell for cell in worlds.AGENT_CELLS if cell.startswith(worlds.JOIN) and cell in own.values("cell")]
    schemes = list_present_schemes(own)
    figure = make_figure(7.6, 0.34 * len(schemes) + 1.2)
    panels = figure.subplots(1, len(cells), sharey=True, squeeze=False)[0]
    for axes, cell in zip(panels, cells, strict=True):
        for at, scheme in enumerate(reversed(schemes)):
            found = compute_interval(own.where(cell=cell, scheme=scheme).columns["converge_s"].tolist())
            if found is not None:
                axes.barh(at, found.mean, color=STYLES[scheme][0], hatch=_choose_hatch(scheme), zorder=2)
                if np.isfinite(found.high):
                    axes.hlines(at, max(found.low, 0), found.high, color="black", linewidth=plots.LINE, zorder=3)
        axes.set_yticks(range(len(schemes)), [label(scheme) for scheme in reversed(schemes)])
        title = f"{cell.split('-')[1]} BDP of buffer"
        plots.format_axes(axes, f"longest time to Jain's index {EVEN:g} (s)", title=title, grid="x")
        axes.set_xlim(0, 1.1 * max(float(np.nanmax(own.where(cell=cell).columns["converge_s"])), 1.0))
    return figure


def plot_strangers(own: Runs) -> Any:
    """Plot the first measure of each row of worlds by scheme: means over the worlds, and points at the worst world."""
    rows = [row for row in strangers.ROWS.values() if len(strangers_claims.select_row(own, row.name))]
    schemes = list(reversed(list_present_schemes(own)))
    across = 3
    down = -(-len(rows) // across)
    figure = make_figure(9.6, down * (0.17 * len(schemes) + 0.75) + 0.3)
    panels = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes, row in zip(panels, rows, strict=False):
        measure, of_row = row.measures[0], strangers_claims.select_row(own, row.name)
        for at, scheme in enumerate(schemes):
            values = of_row.where(scheme=scheme).columns[measure]
            values = values[np.isfinite(values)]
            if len(values):
                worst = values.max() if measure in strangers.LESS_IS_BETTER else values.min()
                axes.barh(at, values.mean(), color=STYLES[scheme][0], hatch=_choose_hatch(scheme), zorder=2)
                axes.plot(worst, at, "k.", markersize=4, zorder=3)
        plots.format_axes(axes, strangers.SHORT[measure], title=row.text, grid="x")
    for axes in panels[len(rows) :]:
        axes.set_visible(False)
    figure.axes[0].set_yticks(range(len(schemes)), [label(scheme) for scheme in schemes])
    return figure


def _plot_points(axes: Any, at: np.ndarray, found: Sequence[Any], scheme: str) -> None:
    """Plot means joined by a line, with their intervals if any; shifted a little, so that all schemes stay visible."""
    colour, dashes, name = STYLES[scheme]
    x = at + 0.02 * (NAMES.index(scheme) - len(NAMES) / 2)
    mean = np.array([np.nan if one is None else one.mean for one in found])
    low, high = (np.array([np.nan if one is None else getattr(one, end) for one in found]) for end in ("low", "high"))
    first = scheme in (LEARNED, RULE)
    look = {"linewidth": plots.WIDE if scheme == LEARNED else 0.9, "zorder": 3 if first else 2}
    axes.plot(x, mean, dashes, color=colour, marker="o", markersize=5 if first else 3, label=name, **look)
    known = np.isfinite(low) & np.isfinite(high)
    axes.vlines(x[known], low[known], high[known], color=colour, linewidth=plots.THIN)


def _compute_mean_utility(own: Runs, scheme: str, family: str) -> float:
    values = own.where(scheme=scheme, cell=trace_cells.list_cells(family)).columns["utility"]
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def _choose_hatch(scheme: str) -> str:
    """Return the hatch of bars: a pattern for schemes without a solid line style, which may share a colour; else ""."""
    return "" if STYLES[scheme][1] == "-" else "///"
