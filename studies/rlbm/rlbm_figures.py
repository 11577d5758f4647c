"""Figures of the thesis, drawn from a campaign's results. Requires matplotlib (`pip install netbuf-gym[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View, World, play
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.utils import plots, statistics
from netbuf_gym.utils.plots import COLOURS, TEXT, make_figure, write_figure
from studies.common.results import Runs
from studies.rlbm.controllers import draw_world_seed
from studies.rlbm.rlbm_claims import select_interval
from studies.rlbm.rlbm_settings import (
    CONTROLLED,
    LEARNED,
    RANDOM,
    RANDOM_NO_BETA,
    SWEPT_SIZES,
    WITHOUT_LEARNING,
    Settings,
)
from studies.rlbm.rlbm_work import CampaignGrid

STYLES: dict[str, tuple[str, str, str]] = {
    "naive": (COLOURS[1], "-", "naive"),
    "sophisticated": (COLOURS[2], "-", "sophisticated"),
    "dt": (COLOURS[3], "-", "tuned Dynamic Thresholds"),
    "abm": (COLOURS[4], "-", "ABM"),
    RANDOM: (COLOURS[5], "-", "random thresholds"),
    RANDOM_NO_BETA: ("#b0b0b0", "--", "random thresholds, no beta"),
    LEARNED: (COLOURS[0], "-", "RLBM, trained"),
    "static_bdp": (COLOURS[7], "--", "RTT*C"),
    "static_bdp_sqrt_n": ("#bc8a5f", "--", "RTT*C/sqrt(n)"),
    "droptail": (COLOURS[9], ":", "drop-tail, one queue"),
    "red": (COLOURS[6], ":", "RED"),
    "codel": (COLOURS[8], ":", "CoDel"),
    "fq_codel": ("#0077b6", ":", "FQ-CoDel"),
    "pie": ("#f28482", ":", "PIE"),
    "dualpi2": ("#b5838d", ":", "DualPI2"),
    "fq": ("#3a86ff", ":", "FQ"),
    "fq_pie": ("#ffb703", ":", "FQ-PIE"),
    "cake": ("#8338ec", ":", "CAKE"),
    "limits": ("#606c38", "-.", "limits of 20 ms"),
    "pulse": ("#9a031e", "-.", "pulses"),
    "pulse_burst": ("#5f0f40", "-.", "pulses, but for bursts"),
    "brief_pulse": ("#006d77", "-.", "brief pulses"),
}
"""Colour, line style and name of each scheme, the same in every figure."""

LABELS = {
    "throughput_mbps": "throughput (Mbit/s)",
    "difference_p99_s": "flow completion time\n(FCT) less the ideal one,\n99th percentile (s)",
    "slowdown_p99_p0": "flow completion time\n(FCT) / ideal, priority 0,\n99th percentile",
    "occupancy_p99": "99th percentile\nof buffer occupancy (%)",
    "fct_mean_s": "mean flow completion\ntime (FCT) (s)",
    "fct_mean_s_p0": "mean FCT,\npriority 0 (s)",
    "flows_completed": "flows completed",
    "ping_mean_ms": "mean ping delay,\none way (ms)",
}
SCALES = {"occupancy_p99": 100.0}
LOGARITHMIC = ("slowdown_p99_p0", "fct_mean_s_p0")
CCS = {"cubic": "CUBIC", "newreno": "NewReno"}
QUEUE_SAMPLE_S = 0.1


def draw_all(work: CampaignGrid, runs: Runs, folder: Path) -> list[Path]:
    """Draw all figures of a finished campaign; see `Experiment.draw`."""
    settings = work.settings
    main = select_interval(runs, settings.interval_s)
    drawn = []

    def save(name: str, figure: Any) -> None:
        drawn.append(folder / f"{name}.png")
        write_figure(figure, drawn[-1], dpi=100)

    chosen = choose_sizes(settings.sizes)
    for cc in settings.ccs:
        own = main.where(cc=cc)
        title = f"{CCS.get(cc, cc)} senders, traffic {settings.traffic}"
        rows: tuple[str, ...] = ("throughput_mbps", "difference_p99_s", "slowdown_p99_p0")
        save(f"throughput_slowdown_{cc}", plot_grid(own, settings, rows, chosen, title))
        save(f"fct_flows_{cc}", plot_grid(own, settings, ("fct_mean_s", "fct_mean_s_p0", "flows_completed"), chosen, title))
        save(f"ping_{cc}", plot_grid(own, settings, ("ping_mean_ms",), chosen, title))
        if len(settings.sizes) > len(chosen):
            rows = ("throughput_mbps", "difference_p99_s", "slowdown_p99_p0", "occupancy_p99", "fct_mean_s", "flows_completed")
            save(f"all_sizes_{cc}", plot_grid(own, settings, rows, settings.sizes, title))
        save(f"occupancy_{cc}", plot_grid(own, settings, ("occupancy_p99",), chosen, title))
    for size in chosen:
        save(f"queue_length_{size}", plot_queue_lengths(work, size))
    if settings.intervals and any(scheme in CONTROLLED for scheme in settings.schemes):
        save("interval_sweep", plot_interval_sweep(runs, settings))
    return drawn


def choose_sizes(sizes: Sequence[int]) -> list[int]:
    """Return the thesis' three sizes where the campaign has them, else the smallest, median and largest of its sizes."""
    ordered = sorted(sizes)
    if set(SWEPT_SIZES) <= set(ordered):
        return list(SWEPT_SIZES)
    return list(dict.fromkeys((ordered[0], ordered[len(ordered) // 2], ordered[-1])))


def plot_grid(runs: Runs, settings: Settings, measures: Sequence[str], sizes: Sequence[int], title: str) -> Any:
    """Plot measures (rows) against load by buffer size (columns): means over seeds, the bands of `Runs.bands` shaded."""
    wide = len(sizes) > 3
    figure = make_figure(max(4.2, (2.3 if wide else 3.3) * len(sizes)) + 0.6, 2.25 * len(measures) + 1.1)
    panels = figure.subplots(len(measures), len(sizes), sharex=True, sharey="row", squeeze=False)
    for row, measure in zip(panels, measures, strict=True):
        for axes, size in zip(row, sizes, strict=True):
            for scheme, band in runs.where(size=size).compute_bands(measure, "load", settings.loads, ("cc",)).items():
                _draw_band(axes, settings.loads, band, scheme, SCALES.get(measure, 1.0))
        _finish_panels(row, measure)
    for axes, size in zip(panels[0], sizes, strict=True):
        axes.set_title(f"{size} packets a queue", fontsize=TEXT)
    for axes in panels[-1]:
        axes.set_xlabel("load", fontsize=TEXT)
    seeds = f"means of {settings.seeds} seeds, 95 % intervals between schemes" if settings.seeds > 1 else "one seed"
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.9)
    figure.suptitle(f"{title}; {seeds}", fontsize=TEXT + 1)
    return figure


def plot_interval_sweep(runs: Runs, settings: Settings) -> Any:
    """Plot throughput and slowdown against the decision interval, means over loads and seeds.

    Shaded: 95 % intervals between the decision intervals of one scheme. Schemes without learning are horizontal lines.
    """
    cc = "cubic" if "cubic" in settings.ccs else settings.ccs[0]
    sizes = [size for size in settings.sizes if size in SWEPT_SIZES] or list(settings.sizes[:1])
    measures = ("throughput_mbps", "difference_p99_s", "slowdown_p99_p0")
    figure = make_figure(max(4.2, 3.3 * len(sizes)) + 0.6, 2.25 * len(measures) + 1.1)
    panels = figure.subplots(len(measures), len(sizes), sharex=True, sharey="row", squeeze=False)
    intervals = sorted({*settings.intervals, settings.interval_s})
    for row, measure in zip(panels, measures, strict=True):
        for axes, size in zip(row, sizes, strict=True):
            for scheme in settings.schemes:
                own = runs.where(scheme=scheme, size=size, cc=cc)
                if scheme in CONTROLLED:
                    _draw_band(axes, 1e3 * np.array(intervals), _compute_interval_bands(own, measure, intervals), scheme, 1.0)
                elif scheme in WITHOUT_LEARNING:
                    values = [value for value in own.compute_seed_means(measure).values() if np.isfinite(value)]
                    if values:
                        colour, line, label = STYLES[scheme]
                        axes.axhline(np.mean(values), color=colour, linestyle=line, linewidth=1.0, label=label, zorder=1)
        _finish_panels(row, measure, from_zero=False)
    for axes, size in zip(panels[0], sizes, strict=True):
        axes.set_title(f"{size} packets a queue", fontsize=TEXT)
    for axes in panels[-1]:
        axes.set_xlabel("interval (ms)", fontsize=TEXT)
    plots.add_legend_below(figure, [panels[0, 0]], inches=1.9)
    figure.suptitle(f"{CCS.get(cc, cc)} senders, traffic {settings.traffic}, means over loads and seeds", fontsize=TEXT + 1)
    return figure


def plot_queue_lengths(work: CampaignGrid, size: int) -> Any:
    """Plot the length of both queues over time in one run per scheme, at the highest load and under the first seed."""
    settings = work.settings
    cc, load, seed = settings.ccs[0], max(settings.loads), settings.first_seed
    scenario = settings.scenario(cc, size, load)
    schemes = [scheme for scheme in settings.schemes if scheme in CONTROLLED or scenario.with_scheme(scheme).switches]
    schemes = schemes or list(settings.schemes[:1])
    figure = make_figure(2.9 * max(2, len(schemes)) + 0.4, 4.3)
    panels = figure.subplots(2, len(schemes), sharex=True, sharey="row", squeeze=False)
    for column, scheme in enumerate(schemes):
        time_s, lengths = _record_queue_lengths(work, scheme, scenario)
        colour, _, label = STYLES[scheme]
        panels[0, column].set_title(label, fontsize=TEXT)
        panels[1, column].set_xlabel("time (s)", fontsize=TEXT)
        for queue, axes in enumerate(panels[:, column]):
            axes.plot(time_s, lengths[:, queue], color=colour, linewidth=plots.THIN)
            axes.axhline(lengths[:, queue].mean(), **plots.LIMIT)
            plots.format_axes(axes)
    for queue, axes in enumerate(panels[:, 0]):
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"queue {queue} (packets)", fontsize=TEXT)
    where = f"{CCS.get(cc, cc)}, {size} packets a queue, load {load:g}, traffic {settings.traffic}"
    figure.suptitle(f"Queue lengths in one run, their means dashed: {where}, seed {seed}", fontsize=TEXT + 1)
    return figure


def _record_queue_lengths(work: CampaignGrid, scheme: str, scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Return times and lengths of queues 0 and 1 in packets, (samples,) and (samples, 2), under the first seed.

    An AQM in place of the switch has one queue only; queue 1 is then 0 packets long.
    """
    settings, found = work.settings, []

    def sample(view: View) -> None:
        state = view.show()
        first = state.get("queue_packets_0", state["queue_packets"])
        found.append((state["time_s"], first, state.get("queue_packets_1", 0.0)))

    interval_s = settings.interval_s if scheme in CONTROLLED else QUEUE_SAMPLE_S
    worlds = [World(scenario, draw_world_seed(scenario, settings.first_seed), settings.first_seed)]
    controller, nothing = work.controllers[scheme], lambda view: None
    play(controller, worlds, nothing, task=QueueThreshold.name, watch={0: sample}, interval_s=interval_s)
    table = np.array(found)
    return table[:, 0], table[:, 1:]


def _compute_interval_bands(runs: Runs, measure: str, intervals: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means over loads and seeds by decision interval, and 95 % intervals for comparing them; see `Runs.bands`."""
    table = np.array([list(runs.where(interval_s=value).compute_seed_means(measure).values()) for value in intervals])
    table = table[:, np.isfinite(table).all(axis=0)]
    if not table.shape[1]:
        return (np.full(len(intervals), np.nan),) * 3
    mean, half = table.mean(axis=1), np.zeros(len(intervals))
    if table.shape[1] > 1 and len(intervals) > 1:
        left = [statistics.mean_interval(values) for values in table - table.mean(axis=0)]
        half = np.sqrt(len(intervals) / (len(intervals) - 1)) * np.array([one.high - one.mean for one in left])
    return mean, mean - half, mean + half


def _draw_band(axes: Any, x: Any, band: Any, scheme: str, scale: float) -> None:
    mean, low, high = (scale * np.asarray(values) for values in band)
    colour, line, label = STYLES[scheme]
    on_top = 3 if scheme == LEARNED else 2
    width = plots.WIDE if scheme == LEARNED else plots.LINE
    axes.plot(x, mean, line, color=colour, linewidth=width, marker="o", markersize=2.5, label=label, zorder=on_top)
    axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0, zorder=1)


def _finish_panels(row: Any, measure: str, from_zero: bool = True) -> None:
    """Set labels and limits of panels that share an ordinate, after everything has been drawn."""
    row[0].set_ylabel(LABELS[measure], fontsize=TEXT)
    for axes in row:
        plots.format_axes(axes)
    means = np.concatenate([np.asarray(line.get_ydata(), float) for axes in row for line in axes.lines])
    if measure in LOGARITHMIC and (means > 0).any():
        row[0].set_yscale("log")
        row[0].set_ylim(bottom=0.7 * np.nanmin(means[means > 0]))  # intervals that reach 0 have no lower end here
        for axes in row:
            plots.log_ticks(axes.yaxis)
    elif row[0].get_ylim()[0] < 0 or (from_zero and measure != "throughput_mbps"):
        row[0].set_ylim(bottom=0)
