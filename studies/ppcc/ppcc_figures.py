"""Figures of the paper, drawn from a campaign's results. Requires matplotlib (`pip install netbuf-gym[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils import plots
from netbuf_gym.utils.plots import MARKERS, TEXT, make_figure, write_figure
from studies.common.judging import compute_interval
from studies.common.results import Runs
from studies.ppcc import paper
from studies.ppcc import ppcc_worlds as worlds
from studies.ppcc.ppcc_schemes import AGENTS, CONSTANT, LEARNED, NAMES, RECIPE, STYLES, label
from studies.ppcc.ppcc_settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE

COMPARED = (paper.NEWRENO, paper.QTCP, *AGENTS)
"""Schemes of Fig. 4; the others have a separate figure."""
FIRST = (RECIPE, LEARNED)
"""Schemes that the figures emphasise."""
ROWS = (
    ("cwnd_packets", "window, cwnd\n(packets)"),
    ("rtt_ms", "round-trip time\n(RTT, ms)"),
    ("throughput_mbps", "throughput\n(Mbit/s)"),
)
LOGARITHMIC = ("cwnd_packets", "rtt_ms")
OF_SENDERS = (("mt", "Mt, lower is better"), ("rtt_ms", "mean RTT (ms)"), ("goodput_mbps", "throughput\nof a sender (Mbit/s)"))


def draw_all(runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    drawn: list[Path] = []

    def save(name: str, figure: Any) -> None:
        drawn.append(folder / f"{name}.png")
        write_figure(figure, drawn[-1], dpi=100)

    for study in (TABLE, NS3):
        if study in runs.values("study"):
            save(f"{study}_scatter", plot_scatter(runs.where(study=study)))
    own = runs.where(study=SERIES)
    for cell in own.values("cell"):
        here = own.where(cell=cell)
        groups = {"": COMPARED, "_others": tuple(name for name in NAMES if name not in COMPARED)}
        for suffix, names in groups.items():
            if any(scheme in names for scheme in here.values("scheme")):
                save(f"series_{cell}{suffix}", plot_over_time(here.where(scheme=names), cell))
    if SENDERS in runs.values("study"):
        save("senders", plot_senders(runs.where(study=SENDERS)))
    if CONSTANTS in runs.values("study"):
        save("constants", plot_constants(runs))
    return drawn


def plot_scatter(runs: Runs) -> Any:
    """Plot throughput against delay in each scenario: means over seeds; the paper's values hollow, joined to ours."""
    schemes = _list_present_schemes(runs)
    figure = make_figure(10.4, 7.6)
    panels = figure.subplots(2, 2, sharey=True)
    for axes, number in zip(panels.flat, paper.SCENARIOS, strict=True):
        for scheme in schemes:
            columns = runs.where(cell=number, scheme=scheme).columns
            at = NAMES.index(scheme) % (len(MARKERS) - 1)
            marker, size = (MARKERS[0], 13) if scheme in FIRST else (MARKERS[1 + at], 7)
            ours = [float(np.mean(columns[name])) for name in ("delay_ms", "goodput_mbps")]
            look = {"color": STYLES[scheme][0], "markersize": size, "markeredgecolor": "white", "linestyle": "none"}
            axes.plot(*ours, marker, label=label(scheme), zorder=3, **look)
            if scheme in paper.TABLE_3[number]:
                said = paper.TABLE_3[number][scheme]
                colour = STYLES[scheme][0]
                axes.plot([said.delay_ms, ours[0]], [said.goodput_mbps, ours[1]], color=colour, linewidth=0.7, alpha=0.6)
                hollow = {"color": colour, "markersize": size, "markerfacecolor": "white", "linestyle": "none"}
                axes.plot(said.delay_ms, said.goodput_mbps, marker, zorder=2, **hollow)
        axes.set_xscale("log")
        plots.log_ticks(axes.xaxis)
        axes.xaxis.set_minor_formatter("")
        axes.axhline(paper.RATES_MBPS[0], label="rate of the link", **plots.LIMIT)
        plots.format_axes(axes, title=f"scenario {number}")
        axes.set_ylim(0, 1.05 * paper.RATES_MBPS[0])
    for axes in panels[-1]:
        axes.set_xlabel("E(t_d), mean RTT less the least (ms)", fontsize=TEXT)
    for axes in panels[:, 0]:
        axes.set_ylabel("E(thr), throughput (Mbit/s)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.9)
    figure.suptitle("Table III; hollow: as the paper has them", fontsize=TEXT + 1)
    return figure


def plot_over_time(runs: Runs, cell: str) -> Any:
    """Plot Fig. 4a to c: window, RTT and throughput second by second, under the first seed.

    A constant window is the receiver's: the sender's own window is then unlimited, and is not drawn.
    """
    seed = min(runs.values("seed"))
    own = runs.where(seed=seed)
    figure = make_figure(9.0, 2.0 * len(ROWS) + 0.9)
    panels = figure.subplots(len(ROWS), 1, sharex=True)
    for axes, (measure, said) in zip(panels, ROWS, strict=True):
        for scheme in _list_present_schemes(own):
            if scheme == CONSTANT and measure == "cwnd_packets":
                continue
            columns = own.where(scheme=scheme).columns
            colour, line, name = STYLES[scheme]
            width = plots.WIDE if scheme in FIRST else plots.LINE
            axes.plot(columns["step"], columns[measure], line, color=colour, linewidth=width, label=name, alpha=0.85)
        plots.format_axes(axes, ylabel=said)
        if measure in LOGARITHMIC:
            axes.set_yscale("log")
            plots.log_ticks(axes.yaxis)
            axes.yaxis.set_minor_formatter("")
        else:
            axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("time (s)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[-1]], inches=1.9)
    where = "the fluctuating link" if cell == worlds.FLUCTUATING else f"scenario {cell}"
    figure.suptitle(f"One run, {where}, seed {seed:.0f}", fontsize=TEXT + 1)
    return figure


def plot_senders(runs: Runs) -> Any:
    """Plot Fig. 4d and 5: Mt, RTT and throughput per sender by the number of senders: means, 95 % intervals over seeds."""
    figure = make_figure(3.5 * len(worlds.RATES) + 0.6, 2.5 * len(OF_SENDERS) + 1.2)
    panels = figure.subplots(len(OF_SENDERS), len(worlds.RATES), sharex=True, sharey="row")
    for row, (measure, said) in zip(panels, OF_SENDERS, strict=True):
        for axes, rate in zip(row, worlds.RATES, strict=True):
            for scheme in _list_present_schemes(runs):
                found = [
                    _compute_mean(runs.where(scheme=scheme, cell=worlds.name_cell(rate, many)).columns[measure])
                    for many in paper.SENDERS
                ]
                mean, low, high = np.array(found).T
                colour, line, name = STYLES[scheme]
                width = plots.WIDE if scheme in FIRST else plots.LINE
                axes.plot(paper.SENDERS, mean, line, color=colour, linewidth=width, marker="o", markersize=3, label=name)
                low = low if measure == "mt" else np.maximum(low, mean / 10)  # a logarithmic axis does not reach 0
                axes.vlines(paper.SENDERS, low, high, color=colour, linewidth=plots.THIN)
            if measure == "rtt_ms":
                axes.set_yscale("log")
                plots.log_ticks(axes.yaxis)
                axes.yaxis.set_minor_formatter("")
            plots.format_axes(axes)
        row[0].set_ylabel(said, fontsize=TEXT)
    for axes, rate in zip(panels[0], worlds.RATES, strict=True):
        axes.set_title("10 and 20 Mbit/s in turn" if rate == worlds.FLUCTUATING else f"{rate} Mbit/s", fontsize=TEXT + 1)
    for axes in panels[-1]:
        axes.set_xlabel("senders", fontsize=TEXT)
        axes.set_xticks(paper.SENDERS)
        axes.set_ylim(bottom=0)
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.9)
    return figure


def plot_constants(runs: Runs) -> Any:
    """Plot the utility of constant windows in each scenario, with other schemes' utilities as lines."""
    own, table = runs.where(study=CONSTANTS), runs.where(study=TABLE)
    figure = make_figure(10.4, 3.4)
    panels = figure.subplots(1, len(paper.SCENARIOS), sharey=True)
    for axes, number in zip(panels, paper.SCENARIOS, strict=True):
        steps = sorted(own.values("step"))
        found = [float(np.mean(own.where(cell=number, step=step).columns["utility"])) for step in steps]
        colour, _, name = STYLES[CONSTANT]
        axes.plot(steps, found, color=colour, marker="o", markersize=3, linewidth=plots.LINE, label=name)
        for scheme in [one for one in _list_present_schemes(table) if one in (*AGENTS, "bbr", "vegas", "queue_target")]:
            at = float(np.mean(table.where(cell=number, scheme=scheme).columns["utility"]))
            axes.axhline(at, color=STYLES[scheme][0], linestyle=STYLES[scheme][1], linewidth=plots.LINE, label=label(scheme))
        axes.set_xscale("log")
        plots.log_ticks(axes.xaxis)
        plots.format_axes(axes, "window (packets)", title=f"scenario {number}")
        axes.set_ylim(-0.6, 0.02)
    panels[0].set_ylabel("utility", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0]], inches=1.9)
    return figure


def _list_present_schemes(runs: Runs) -> list[str]:
    there = runs.values("scheme")
    return [scheme for scheme in NAMES if scheme in there]


def _compute_mean(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Return mean, low and high end of the interval; the mean thrice without an interval, NaN thrice without values."""
    found = compute_interval(list(values))
    if found is None:
        return (np.nan,) * 3
    return (found.mean, found.low, found.high) if np.isfinite(found.high - found.low) else (found.mean,) * 3
