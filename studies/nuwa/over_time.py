"""Figures of single runs over time: Nuwa beside CUBIC, gains beside each other, flows that join one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.utils import plots
from netbuf_gym.utils.plots import SMALL, TEXT, make_figure
from netbuf_gym.utils.statistics import jain_index
from studies.nuwa import nuwa_measures as measures
from studies.nuwa import nuwa_worlds as worlds
from studies.nuwa import series
from studies.nuwa.nuwa_schemes import LEARNED, OURS, PUBLISHED, STYLES, TASK, label
from studies.nuwa.nuwa_settings import FAIRNESS, MOBILE, VIDEO
from studies.nuwa.nuwa_work import NuwaWork
from studies.nuwa.studies import ALL, Fairness

ROWS = (
    ("throughput_mbps", "throughput\n(Mbit/s)"),
    ("rtt_ms", "RTT (ms)"),
    ("in_flight_packets", "in flight\n(packets)"),
    ("queue_delay_ms", "queueing\ndelay (ms)"),
)
ROBUST = (LEARNED, f"{PUBLISHED}_k7", f"{OURS}_k7", "cubic")
BY_GAIN = tuple(f"{PUBLISHED}_k{k}" for k in (9, 7, 2, 1))
SHARING = (f"{PUBLISHED}_k2", f"{PUBLISHED}_k7", f"{OURS}_k2", LEARNED, "rledbat", "cubic")
WATCHED = ("cubic", f"{OURS}_k7", LEARNED)
FLOWS = ("#d1495b", "#edae49", "#00798c", "#3d348b")


def draw_mobile(work: NuwaWork) -> Iterator[tuple[str, Any]]:
    """Yield the figures of Fig. 7 and 9 on 4G and 5G under the first seed, with their names."""
    present = work.settings.schemes
    for network in worlds.MOBILE:
        if schemes := [scheme for scheme in ROBUST if scheme in present]:
            yield f"robustness_{network}", draw_run(work, network, schemes, ROWS)
        if gains := [scheme for scheme in BY_GAIN if scheme in present]:
            yield f"gain_series_{network}", draw_run(work, network, gains, (ROWS[0], ROWS[3]))


def draw_run(work: NuwaWork, network: str, schemes: Sequence[str], rows: Sequence[tuple[str, str]]) -> Any:
    """Draw schemes over time in one world of the study of mobile networks, with the link's capacity."""
    settings = work.settings
    world = ALL[MOBILE].make_worlds(settings, network, [settings.first_seed])[0]
    found = {scheme: series.record_series(work.controllers[scheme], world, TASK) for scheme in schemes}
    figure = make_figure(8.4, 1.75 * len(rows) + 0.8)
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (key, said) in zip(panels, rows, strict=True):
        if key == "throughput_mbps":
            edges, values = world.scenario.links[0].capacity_steps(world.scenario.duration_s)
            plots.plot_steps(axes, _average_steps(edges, values, series.SAMPLE_S), "capacity")
        for scheme, one in found.items():
            colour, line, name = STYLES[scheme]
            width = plots.WIDE if scheme == LEARNED else plots.LINE
            axes.plot(one["time_s"], one[key], line, color=colour, linewidth=width, label=name, alpha=0.85)
        plots.format_axes(axes, ylabel=said)
        axes.set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=SMALL)
    panels[-1].set_xlabel("time (s)", fontsize=TEXT)
    figure.suptitle(f"One run over {network.upper()}, seed {settings.first_seed}", fontsize=TEXT + 1)
    return figure


def draw_fairness(work: NuwaWork) -> Iterator[tuple[str, Any]]:
    """Yield Fig. 8 and 15 of each cell under the first seed, with their names: rates of flows and Jain's index over time."""
    study, settings = ALL[FAIRNESS], work.settings
    assert isinstance(study, Fairness)
    schemes = [scheme for scheme in SHARING if scheme in study.schemes(settings)] or study.schemes(settings)[:4]
    for cell in study.cells(settings):
        figure = make_figure(2.9 * max(2, len(schemes)) + 0.4, 4.2)
        panels = figure.subplots(2, len(schemes), sharex=True, sharey="row", squeeze=False)
        for column, scheme in enumerate(schemes):
            shared = study.record_sharing(work.controllers[scheme], settings, cell, [settings.first_seed])[0]
            time_s, delivered = shared.series()
            rates, own = measures.compute_rates_mbps(time_s, delivered, 1.0), study.count_agents(cell)
            for flow in range(worlds.FLOWS):
                name = f"flow {flow + 1}" if flow < own else f"flow {flow + 1}, CUBIC"
                panels[0, column].plot(time_s, rates[:, flow], color=FLOWS[flow], linewidth=plots.LINE, label=name)
            alive = np.array(shared.arrivals_s)
            there = [row[alive < now] for now, row in zip(time_s, rates, strict=True)]
            index = [jain_index(own) if len(own) else np.nan for own in there]
            panels[1, column].plot(time_s, index, color=STYLES[scheme][0], linewidth=plots.LINE)
            panels[1, column].axhline(measures.FAIR, **plots.LIMIT)
            for axes in panels[:, column]:
                plots.format_axes(axes)
                for arrival_s in shared.arrivals_s[1:]:
                    axes.axvline(arrival_s, color="0.8", linewidth=plots.THIN, zorder=0)
            panels[0, column].set_title(label(scheme), fontsize=TEXT)
            panels[1, column].set_xlabel("time (s)", fontsize=TEXT)
        panels[0, 0].set_ylabel("goodput (Mbit/s)", fontsize=TEXT)
        panels[1, 0].set_ylabel("Jain's index", fontsize=TEXT)
        panels[1, 0].set_ylim(0.2, 1.02)
        panels[0, 0].set_ylim(0, 1.3 * worlds.SHARED_MBPS)  # data behind a filled gap is delivered all at once
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=SMALL)
        what = "four flows of the scheme" if cell == worlds.OWN else "two flows of the scheme, then two of CUBIC"
        figure.suptitle(f"{what}, 10 Mbit/s, one more every 10 s, seed {settings.first_seed}", fontsize=TEXT + 1)
        yield f"fairness_{cell}", figure


def draw_video(work: NuwaWork) -> Any:
    """Draw Fig. 2: clients' estimates of the link chunk by chunk, under the first seed; bitrates chosen by throughput."""
    study, settings = ALL[VIDEO], work.settings
    cells = [f"{link}-{worlds.BITRATES[0]}" for link in worlds.STREAMED]
    schemes = [scheme for scheme in WATCHED if scheme in study.schemes(settings)] or study.schemes(settings)[:3]
    figure = make_figure(8.4, 2.1 * len(cells) + 0.9)
    panels = figure.subplots(len(cells), 1, sharex=True, squeeze=False)[:, 0]
    for axes, cell in zip(panels, cells, strict=True):
        world = study.make_worlds(settings, cell, [settings.first_seed])[0]
        edges, values = world.scenario.links[0].capacity_steps(world.scenario.duration_s)
        plots.plot_steps(axes, _average_steps(edges, values, 1.0), "capacity, means of 1 s")
        for scheme in schemes:
            found: list[Any] = []
            rollout.play(work.controllers[scheme], [world], partial(_keep_video_result, found), task=TASK)
            chunks, (colour, _, name) = found[0].chunks, STYLES[scheme]
            for of, mark, said in (("estimate_mbps", "x", "chunk / time"), ("window_mbps", ".", "window / RTT")):
                if np.isfinite(chunks[of]).any():
                    axes.plot(chunks["ended_s"], chunks[of], mark, color=colour, markersize=6, label=f"{name}: {said}")
        plots.format_axes(axes, ylabel=f"{cell.partition('-')[0]}\n(Mbit/s)")
        axes.set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    panels[-1].set_xlabel("time (s)", fontsize=TEXT)
    figure.suptitle(f"What a video client takes the link for, seed {settings.first_seed}", fontsize=TEXT + 1)
    return figure


def _keep_video_result(found: list[Any], view: rollout.View) -> None:
    found.append(measures.get_video_result(view))


def _average_steps(edges: np.ndarray, values: np.ndarray, step_s: float) -> plots.Steps:
    """Return the means of a piecewise constant function over steps of equal length."""
    total = np.concatenate([[0.0], np.cumsum(np.diff(edges) * values)])
    ends = np.append(np.arange(0, edges[-1], step_s), edges[-1])
    ends = np.unique(ends)
    return ends, np.diff(np.interp(ends, edges, total)) / np.diff(ends)
