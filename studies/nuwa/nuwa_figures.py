"""Figures of the paper, drawn from a campaign's results. Needs matplotlib (`pip install netbuf-gym[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.utils import plots
from netbuf_gym.utils.plots import MARKERS, SMALL, TEXT, make_figure, write_figure
from studies.common.drawing import compute_mean_and_half, make_bar_style
from studies.common.results import Runs
from studies.nuwa import over_time
from studies.nuwa.nuwa_schemes import GAINED, GAINS, LEARNED, OURS, PUBLISHED, STYLES, label
from studies.nuwa.nuwa_settings import CHANGE, FAIRNESS, FOUR, GRID, LEARNING, MOBILE, VIDEO
from studies.nuwa.nuwa_work import NuwaWork
from studies.nuwa.nuwa_worlds import DISTANCES_MS, HIGH, LOW, MEANS_MBPS, SERVERS_MBPS, SPEEDS_S, format_jumping_cell

NETWORKS = {"wired": "wired", "wifi": "Wi-Fi", "4g": "4G", "5g": "5G"}
INDICATORS = (
    ("goodput_mbps", "throughput"),
    ("queue_delay_mean_ms", "queueing delay"),
    ("rtt_mean_ms", "RTT"),
    ("queue_delay_p95_ms", "queueing delay,\n95th percentile"),
)
COMPARED = ("bbr", "cubic", "qtcp", f"{PUBLISHED}_k7", f"{OURS}_k7", LEARNED)
"""Congestion controls of Fig. 14 (QTCP for Hd-TCP, of which too little is published) and the heuristic."""
HIDDEN = (*(scheme for scheme, (_, k) in GAINED.items() if k != 7), "newreno", "random", "fixed")
"""Schemes left out of scatter plots."""
LEARNERS = {"a2c": "A2C", "dqn": "DQN", "ppo": "PPO", "ppo_lstm": "PPO-LSTM"}


def draw_all(work: NuwaWork, runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    drawn: list[Path] = []

    def save(name: str, figure: Any) -> None:
        drawn.append(folder / f"{name}.png")
        write_figure(figure, drawn[-1], dpi=100)

    studies = work.settings.studies
    if MOBILE in studies:
        own = runs.where(study=MOBILE)
        save("mobile_bars", draw_bars(own))
        save("mobile_scatter", draw_scatter(own, [["4g", "5g"]], lambda cell: NETWORKS[cell], 5.6, 4.6))
        if any(scheme in GAINED for scheme in own.values("scheme")):
            save("gain_boxes", draw_boxes(own))
        for name, figure in over_time.draw_mobile(work):
            save(name, figure)
    if FOUR in studies:
        save("networks", draw_indicators(runs.where(study=FOUR)))
    if GRID in studies:
        cells = [[f"{where}-{rate}" for where in DISTANCES_MS] for rate in SERVERS_MBPS]
        save("grid", draw_scatter(runs.where(study=GRID), cells, _format_server, 3.6, 2.9))
    if CHANGE in studies and any(scheme in GAINED for scheme in runs.where(study=CHANGE).values("scheme")):
        save("change", draw_change(runs.where(study=CHANGE)))
    if FAIRNESS in studies:
        for name, figure in over_time.draw_fairness(work):
            save(name, figure)
    if VIDEO in studies:
        save("video", over_time.draw_video(work))
    if LEARNING in studies:
        save("learning", draw_learning(runs.where(study=LEARNING)))
    return drawn


def draw_bars(runs: Runs) -> Any:
    """Draw each scheme's share of the capacity and queueing delay in 4G and 5G: means, 95 % intervals between schemes."""
    schemes, networks = runs.values("scheme"), ("4g", "5g")
    figure = make_figure(9.6, 0.26 * len(schemes) + 1.3)
    measures = (("share", 100.0, "goodput / capacity (%)"), ("queue_delay_mean_ms", 1.0, "mean queueing delay (ms)"))
    panels = figure.subplots(1, 4, sharey=True)
    for number, (measure, factor, said) in enumerate(measures):
        bands = runs.compute_bands(measure, "network", networks, ())
        for column, network in enumerate(networks):
            axes = panels[2 * number + column]
            for row, scheme in enumerate(schemes):
                mean, low, high = (factor * one[column] for one in bands[scheme])
                look = {"error_kw": {"elinewidth": 0.8}, "height": 0.75, **make_bar_style(*STYLES[scheme][:2])}
                axes.barh(row, mean, xerr=[[mean - max(low, 0.0)], [high - mean]], **look)
            plots.format_axes(axes, said, title=NETWORKS[network])
    panels[0].set_yticks(range(len(schemes)), [label(scheme) for scheme in schemes], fontsize=SMALL)
    panels[0].invert_yaxis()
    return figure


def draw_scatter(runs: Runs, cells: Sequence[Sequence[str]], title: Any, width: float, height: float) -> Any:
    """Draw share of the capacity against queueing delay in each cell: means over worlds, 95 % intervals between schemes."""
    figure = make_figure(width * len(cells[0]), height * len(cells) + 0.9)
    panels = figure.subplots(len(cells), len(cells[0]), squeeze=False)
    schemes = [scheme for scheme in runs.values("scheme") if scheme not in HIDDEN] or runs.values("scheme")
    flat = [cell for line in cells for cell in line]
    shares, delays = (runs.compute_bands(name, "network", flat, ()) for name in ("share", "queue_delay_mean_ms"))
    for at, (axes, cell) in enumerate(zip(panels.flat, flat, strict=True)):
        for number, scheme in enumerate(schemes):
            (x, left, right), (y, low, high) = ([one[at] for one in found[scheme]] for found in (delays, shares))
            first = scheme == LEARNED
            marker, size = (MARKERS[0], 12) if first else (MARKERS[1 + number % (len(MARKERS) - 1)], 7)
            look = {"color": STYLES[scheme][0], "linewidth": 0.7, "alpha": 0.6, "zorder": 1}
            axes.plot([max(left, 0.0), right], [100 * y, 100 * y], **look)
            axes.plot([x, x], [100 * low, 100 * high], **look)
            look = {"color": STYLES[scheme][0], "markersize": size, "markeredgecolor": "white", "linestyle": "none"}
            axes.plot(x, 100 * y, marker, label=label(scheme), zorder=3 if scheme == LEARNED else 2, **look)
        plots.format_axes(axes, title=title(cell))
        axes.set_xlim(left=0)
        axes.set_ylim(max(0.0, axes.get_ylim()[0]), min(105.0, axes.get_ylim()[1]))
    for axes in panels[-1]:
        axes.set_xlabel("mean queueing delay (ms)", fontsize=TEXT)
    for axes in panels[:, 0]:
        axes.set_ylabel("goodput / capacity (%)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.7)
    return figure


def draw_boxes(runs: Runs) -> Any:
    """Draw box plots of the share of the capacity over worlds, for each gain of both rules and CUBIC, in 4G and 5G."""
    figure = make_figure(9.6, 5.6)
    panels = figure.subplots(2, 2, sharey=True)
    for row, rule in zip(panels, (PUBLISHED, OURS), strict=True):
        schemes = [scheme for scheme in ("cubic", *(f"{rule}_k{k}" for k in GAINS)) if scheme in runs.values("scheme")]
        for axes, network in zip(row, ("4g", "5g"), strict=True):
            values = [100 * runs.where(scheme=scheme, network=network).columns["share"] for scheme in schemes]
            look = {"medianprops": {"color": "black"}, "flierprops": {"markersize": 3}}
            drawn = axes.boxplot(values, patch_artist=True, widths=0.6, **look)
            for patch, scheme in zip(drawn["boxes"], schemes, strict=True):
                patch.set_facecolor(STYLES[scheme][0])
            axes.set_xticks(range(1, len(schemes) + 1), [label(scheme).rpartition(", ")[2] for scheme in schemes])
            plots.format_axes(axes, title=f"{NETWORKS[network]}, {'published rule' if rule == PUBLISHED else 'Nuwa'}")
        row[0].set_ylabel("goodput / capacity (%)", fontsize=TEXT)
    return figure


def draw_indicators(runs: Runs) -> Any:
    """Draw four indicators in each network, each divided by the largest among the schemes, as in the paper."""
    schemes = [scheme for scheme in COMPARED if scheme in runs.values("scheme")] or runs.values("scheme")[:5]
    networks = runs.values("network")
    figure = make_figure(3.0 * max(2, len(networks)) + 0.6, 3.6)
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    width = 0.8 / len(schemes)
    for axes, network in zip(panels, networks, strict=True):
        for at, (measure, _) in enumerate(INDICATORS):
            found = [
                compute_mean_and_half(runs.where(scheme=scheme, network=network).columns[measure])[0] for scheme in schemes
            ]
            most = np.nanmax(found) if np.isfinite(found).any() else np.nan
            for number, (scheme, value) in enumerate(zip(schemes, found, strict=True)):
                x = at + (number - (len(schemes) - 1) / 2) * width
                axes.bar(
                    x, value / most, width, label=label(scheme) if at == 0 else None, **make_bar_style(*STYLES[scheme][:2])
                )
        axes.set_xticks(range(len(INDICATORS)), [said for _, said in INDICATORS], rotation=35, ha="right")
        plots.format_axes(axes, title=NETWORKS[network])
    panels[0].set_ylabel("of the largest", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0]], inches=1.7)
    return figure


def draw_change(runs: Runs) -> Any:
    """Draw utility, goodput and queueing delay against the mean time between a link's jumps, by rule, mean rate and gain."""
    measures = (
        ("utility", 1.0, "utility"),
        ("share", 100.0, "goodput / capacity (%)"),
        ("queue_delay_mean_ms", 1.0, "mean queueing delay (ms)"),
    )
    kinds = [(rule, rate) for rule in (PUBLISHED, OURS) for rate in MEANS_MBPS]
    figure = make_figure(11.4, 2.6 * len(kinds) + 0.8)
    panels = figure.subplots(len(kinds), len(measures), sharex=True, sharey="col")
    for row, (rule, rate) in zip(panels, kinds, strict=True):
        cells = [format_jumping_cell(rate, mean_s) for mean_s in SPEEDS_S]
        others = tuple(scheme for scheme in GAINED if not scheme.startswith(f"{rule}_k"))
        own = runs.mask(~np.isin(runs.columns["scheme"], others))
        for axes, (measure, factor, said) in zip(row, measures, strict=True):
            for scheme, band in own.compute_bands(measure, "network", cells, ()).items():
                mean, low, high = (factor * np.asarray(values) for values in band)
                colour, line, name = STYLES[scheme]
                axes.plot(SPEEDS_S, mean, line, color=colour, linewidth=plots.LINE, marker="o", markersize=3, label=name)
                axes.fill_between(SPEEDS_S, low, high, color=colour, alpha=0.12, linewidth=0)
            axes.set_xscale("log")
            axes.set_xticks(SPEEDS_S, [f"{mean_s:g} s" for mean_s in SPEEDS_S])
            axes.set_xticks([], minor=True)
            plots.format_axes(axes, ylabel=said)
            if measure != "utility":
                axes.set_ylim(0, min(axes.get_ylim()[1], 105.0 if measure == "share" else 300.0))
        called = "published rule" if rule == PUBLISHED else "Nuwa"
        row[1].set_title(f"{called}, {LOW * rate:g} and {HIGH * rate:g} Mbit/s", fontsize=TEXT + 1)
    for axes in panels[-1]:
        axes.set_xlabel("mean time between jumps", fontsize=TEXT)
    handles = dict(zip(*reversed(_merge_legends(panels[[0, -1]])), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=7, frameon=False, fontsize=SMALL)
    return figure


def _merge_legends(panels: Any) -> tuple[list, list[str]]:
    """Return the legend handles and labels of the first panels of two rows."""
    found = [row[0].get_legend_handles_labels() for row in panels]
    return found[0][0] + found[1][0], found[0][1] + found[1][1]


def draw_learning(runs: Runs) -> Any:
    """Draw learning curves, one panel per network: means over training seeds with 95 % intervals."""
    networks = runs.values("network")
    figure = make_figure(3.2 * max(2, len(networks)) + 0.4, 3.5)
    panels = figure.subplots(1, len(networks), squeeze=False)[0]
    for axes, network in zip(panels, networks, strict=True):
        for number, algorithm in enumerate(runs.values("scheme")):
            own = runs.where(network=network, scheme=algorithm)
            steps = np.array(sorted(own.values("step")))
            found = np.array([compute_mean_and_half(own.where(step=step).columns["return"]) for step in steps.tolist()])
            colour, _, dashes = plots.get_style(number)
            name = f"{LEARNERS[algorithm]} ({len(own.values('seed'))} seeds)"
            axes.plot(steps, found[:, 0], dashes, color=colour, linewidth=plots.LINE, label=name)
            axes.fill_between(
                steps, found[:, 0] - found[:, 1], found[:, 0] + found[:, 1], color=colour, alpha=0.15, linewidth=0
            )
        plots.format_axes(axes, "environment steps", title=NETWORKS[network])
    panels[0].set_ylabel("return of an episode", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0]], inches=1.7)
    return figure


def _format_server(cell: str) -> str:
    where, _, rate = cell.partition("-")
    return f"{where}, {DISTANCES_MS[where]:g} ms, {rate} Mbit/s"
