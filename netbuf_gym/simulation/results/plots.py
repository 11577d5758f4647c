"""Figures of a simulation over time, and of a trace."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from netbuf_gym.simulation.results.tables import require_series
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils import plots

MAX_LEGEND = 12
MAX_LINKS = 4
"""Maximum number of bottlenecks whose capacities and queues are drawn in one figure."""

Panel = Callable[[Any], None]
"""Function that draws on the given axes."""


def plot(result: Any, path: str | os.PathLike | None = None) -> Any:
    """Return the figure of a result, also written to `path` if given; see `Result.plot`.

    Raises:
        ConfigError: The result has no series, or the file format is unknown.
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    if path is not None:
        plots.get_format(path)
    require_series(result, "a plot")
    panels = [*_make_flow_panels(result), *_make_video_panels(result), *_make_traffic_panels(result)]
    panels += _make_switch_panels(result) or [_make_queue_panel(result)]
    figure = plots.make_figure(9, 0.6 + 2.1 * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for one, panel in zip(axes, panels, strict=True):
        panel(one)
        plots.start_at_zero(one)
    plots.format_axes(axes[-1], xlabel="time (s)")
    axes[-1].set_xlim(0, result.scenario.duration_s)
    figure.suptitle(f"{result.scenario.name or 'scenario'}, seed {result.seed}", fontsize=plots.TEXT + 2)
    if path is not None:
        plots.write_figure(figure, path)
    return figure


def plot_trace(trace: Trace, path: str | os.PathLike) -> None:
    """Draw a trace's rate over one period; for a delivery trace, the mean of each 100 ms.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    rates = trace.to_rates(0.1) if isinstance(trace, DeliveryTrace) else trace
    figure = plots.make_figure(9, 3.5)
    axes = figure.add_subplot()
    end_s = rates.duration_s if rates.duration_s > rates.time_s[-1] else rates.time_s[-1] + 1.0
    axes.stairs(
        rates.rate_mbps, np.append(rates.time_s, end_s), baseline=None, linewidth=plots.LINE, color=plots.get_style(1)[0]
    )
    axes.axhline(trace.mean_mbps(), label=f"mean {trace.mean_mbps():.3g} Mbit/s", **plots.LIMIT)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, end_s)
    of = "" if isinstance(trace, RateTrace) else ", means of 100 ms"
    plots.format_axes(axes, "time (s)", f"capacity (Mbit/s{of})", trace.name, legend=1)
    plots.write_figure(figure, path)


def _find_bottlenecks(result: Any) -> list[int]:
    """Return the links whose capacity and queue are drawn: the bottlenecks of the flows.

    The scenario's bottleneck is among them if there is traffic, or no flow.
    """
    own = [result.scenario.bottleneck_of(i) for i in range(len(result.flows))]
    if result.traffic is not None or not own:
        own.append(result.scenario.bottleneck)
    return list(dict.fromkeys(own))[:MAX_LINKS]


def _draw_capacity(result: Any, axes: Any) -> None:
    """Draw the capacity of the bottlenecks behind the lines of rates."""
    links = [result.scenario.links[i] for i in _find_bottlenecks(result)]
    for link in links:
        label = f"capacity of {link.name}, on the wire"
        plots.plot_steps(axes, link.capacity_steps(result.scenario.duration_s), label)


def _make_flow_panels(result: Any) -> list[Panel]:
    few = len(result.flows) <= MAX_LEGEND

    def panel(name: str, label: str, first: bool) -> Panel:
        def draw(axes: Any) -> None:
            for i, flow in enumerate(result.flows):
                colour, _, dashes = plots.get_style(i)
                look = {"linewidth": plots.LINE} if few else {"linewidth": plots.THIN, "alpha": 0.6}
                axes.plot(
                    flow.series["time_s"],
                    flow.series[name],
                    color=colour,
                    linestyle=dashes,
                    label=f"{flow.cc} ({flow.name})" if few else None,
                    **look,
                )
            if first:
                _draw_capacity(result, axes)
            plots.format_axes(axes, ylabel=label, legend=2 if first else 0)

        return draw

    if not result.flows:
        return []
    columns = (
        ("arrival_mbps", "arriving (Mbit/s)"),
        ("cwnd_packets", "congestion window,\ncwnd (packets)"),
        ("srtt_ms", "round-trip time,\nsmoothed RTT (ms)"),
    )
    return [panel(name, label, i == 0) for i, (name, label) in enumerate(columns)]


def _make_traffic_panels(result: Any) -> list[Panel]:
    def panel(name: str, label: str, rate: bool) -> Panel:
        def draw(axes: Any) -> None:
            axes.plot(result.series["time_s"], result.series[name], color=plots.get_style(1)[0], linewidth=plots.LINE)
            if rate:
                _draw_capacity(result, axes)
            plots.format_axes(axes, ylabel=label, legend=1)

        return draw

    if result.traffic is None:
        return []
    rates = panel("traffic_arrival_mbps", "finite flows,\narriving (Mbit/s)", True)
    return [rates, panel("flows_alive", "finite flows alive", False)]


def _make_video_panels(result: Any) -> list[Panel]:
    videos = result.videos[:MAX_LEGEND]
    if not videos:
        return []

    def bitrates(axes: Any) -> None:
        for i, video in enumerate(videos):
            colour, _, dashes = plots.get_style(i)
            look = {"color": colour, "linewidth": plots.LINE}
            ended_s, chunks = video.chunks["ended_s"], video.chunks
            axes.step(ended_s, chunks["bitrate_mbps"], where="post", linestyle=dashes, label=f"bitrate ({video.name})", **look)
            axes.plot(ended_s, chunks["estimate_mbps"], ".", color=colour, markersize=4, label="chunk size / time")
            if np.isfinite(chunks["window_mbps"]).any():
                axes.plot(ended_s, chunks["window_mbps"], "x", color=colour, markersize=4, label="window / RTT")
        first = videos[0].chunks
        axes.plot(first["ended_s"], first["capacity_mbps"], label="capacity during the download", **plots.LIMIT)
        plots.format_axes(axes, ylabel="video and estimates\n(Mbit/s)", legend=2)

    def buffers(axes: Any) -> None:
        for i, video in enumerate(videos):
            colour, _, dashes = plots.get_style(i)
            look = {"color": colour, "linestyle": dashes, "linewidth": plots.LINE}
            axes.plot(video.chunks["begun_s"], video.chunks["buffered_s"], label=video.name, **look)
        plots.format_axes(axes, ylabel="video buffered at\nrequests (s)", legend=2)

    return [bitrates, buffers]


def _make_switch_panels(result: Any) -> list[Panel]:
    def panel(index: int) -> Panel:
        switch = result.scenario.switches[index]
        unit = "bytes" if switch.in_bytes else "packets"

        def draw(axes: Any) -> None:
            length = result.series["switch_bytes" if switch.in_bytes else "switch_packets"][:, index]
            threshold = np.minimum(result.series["switch_threshold"][:, index], switch.capacity)
            for q in range(switch.queues):
                colour, look = plots.get_style(q)[0], {"linewidth": plots.THIN, "linestyle": ":"}
                axes.plot(result.series["time_s"], length[:, q], color=colour, linewidth=plots.LINE, label=f"queue {q}")
                axes.plot(result.series["time_s"], threshold[:, q], color=colour, **look)
            legend = 2 if switch.queues <= MAX_LEGEND else 0
            plots.format_axes(axes, ylabel=f"{switch.name} ({unit};\ndotted: thresholds)", legend=legend)

        return draw

    return [panel(i) for i in range(len(result.switches))]


def _make_queue_panel(result: Any) -> Panel:
    def draw(axes: Any) -> None:
        links = [result.links[i] for i in _find_bottlenecks(result)]
        for k, link in enumerate(links):
            colour = "black" if len(links) == 1 else plots.get_style(k)[0]
            time_s, queue = link.series["time_s"], link.series["queue_packets"]
            name = None if len(links) == 1 else link.name
            axes.plot(time_s, queue, color=colour, linewidth=plots.LINE, label=name)
            dropped = link.series["queue_drops"] > 0
            if dropped.any():
                label, red = ("packets dropped", plots.COLOURS[0]) if len(links) == 1 else (f"dropped at {link.name}", colour)
                axes.plot(time_s[dropped], queue[dropped], "x", color=red, markersize=4, label=label)
        label = f"queue of {links[0].name}\n(packets)" if len(links) == 1 else "queue (packets)"
        plots.format_axes(axes, ylabel=label, legend=2)

    return draw
