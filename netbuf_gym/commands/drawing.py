"""Plots of the commands: a simulation over time, a trace over time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from netbuf_gym.plots import pyplot, write
from netbuf_gym.results import Result
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace

MAX_LEGEND = 10


def plot_result(result: Result, path: str | os.PathLike[str]) -> None:
    """Draws goodput, cwnd and RTT of every flow, and the bottleneck's queue and drops, over time; of finite flows their
    goodput together and how many there are; of switches their queues and thresholds.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    plt = pyplot()
    panels = [_flow_panels(result), _traffic_panels(result), _switch_panels(result) or [_queue_panel(result)]]
    draw = [panel for group in panels for panel in group]
    figure, axes = plt.subplots(len(draw), 1, figsize=(9, 2.25 * len(draw)), sharex=True, constrained_layout=True)
    axes = np.atleast_1d(axes)
    for axis, panel in zip(axes, draw, strict=True):
        panel(axis)
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(0, result.scenario.duration_s)
    figure.suptitle(f"{result.scenario.name or 'scenario'}, seed {result.seed}")
    _save(plt, figure, path)


Panel = Callable[[Any], None]
"""Draws on the axes that it is given."""


def _flow_panels(result: Result) -> list[Panel]:
    def panel(name: str, label: str, legend: bool) -> Panel:
        def draw(axis: Any) -> None:
            for i, flow in enumerate(result.flows):
                axis.plot(result.series["time_s"], result.series[name][:, i], linewidth=1, label=f"{flow.cc} ({flow.name})")
            axis.set_ylabel(label)
            if legend and len(result.flows) <= MAX_LEGEND:
                axis.legend(loc="lower right", fontsize="small", ncols=2)

        return draw

    if not result.flows:
        return []
    columns = (("goodput_mbps", "goodput, Mbit/s"), ("cwnd_packets", "cwnd, packets"), ("srtt_ms", "smoothed RTT, ms"))
    return [panel(name, label, i == 0) for i, (name, label) in enumerate(columns)]


def _traffic_panels(result: Result) -> list[Panel]:
    def panel(name: str, label: str) -> Panel:
        def draw(axis: Any) -> None:
            axis.plot(result.series["time_s"], result.series[name], linewidth=1)
            axis.set_ylabel(label)

        return draw

    if result.traffic is None:
        return []
    return [panel("traffic_goodput_mbps", "goodput, Mbit/s"), panel("flows_alive", "finite flows alive")]


def _switch_panels(result: Result) -> list[Panel]:
    def panel(index: int) -> Panel:
        switch = result.scenario.switches[index]
        unit = "bytes" if switch.in_bytes else "packets"

        def draw(axis: Any) -> None:
            length = result.series["switch_bytes" if switch.in_bytes else "switch_packets"][:, index]
            threshold = np.minimum(result.series["switch_threshold"][:, index], switch.capacity)
            for q in range(switch.queues):
                (line,) = axis.plot(result.series["time_s"], length[:, q], linewidth=1, label=f"queue {q}")
                axis.plot(result.series["time_s"], threshold[:, q], linewidth=0.5, linestyle=":", color=line.get_color())
            axis.set_ylabel(f"{switch.name}, {unit}\n(dotted: thresholds)")
            if switch.queues <= MAX_LEGEND:
                axis.legend(loc="upper right", fontsize="small", ncols=2)

        return draw

    return [panel(i) for i in range(len(result.switches))]


def _queue_panel(result: Result) -> Panel:
    def draw(axis: Any) -> None:
        link, time_s = result.scenario.bottleneck, result.series["time_s"]
        queue = result.series["queue_packets"][:, link]
        axis.plot(time_s, queue, color="black", linewidth=1)
        dropped = result.series["queue_drops"][:, link] > 0
        axis.plot(time_s[dropped], queue[dropped], "rx", markersize=4, label="packets dropped")
        if dropped.any():
            axis.legend(loc="lower right", fontsize="small")
        axis.set_ylabel(f"queue of {result.bottleneck}, packets")

    return draw


def plot_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Draws a trace's rate over one period; of a delivery trace the mean of each 100 ms.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    plt = pyplot()
    rates = trace.to_rates(0.1) if isinstance(trace, DeliveryTrace) else trace
    figure, axis = plt.subplots(figsize=(9, 3.5), constrained_layout=True)
    end_s = rates.duration_s if rates.duration_s > rates.time_s[-1] else rates.time_s[-1] + 1.0
    axis.stairs(rates.rate_mbps, np.append(rates.time_s, end_s), baseline=None, linewidth=1)
    axis.axhline(trace.mean_mbps(), color="grey", linestyle="--", linewidth=1, label=f"mean {trace.mean_mbps():.3g} Mbit/s")
    axis.legend(loc="upper right", fontsize="small")
    axis.set_xlabel("time, s")
    axis.set_ylabel("Mbit/s" + ("" if isinstance(trace, RateTrace) else ", means of 100 ms"))
    axis.set_ylim(bottom=0)
    axis.set_xlim(0, end_s)
    axis.set_title(trace.name)
    _save(plt, figure, path)


def _save(plt: Any, figure: Any, path: str | os.PathLike[str]) -> None:
    write(figure, path, dpi=120)
    plt.close(figure)
