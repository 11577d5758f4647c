"""Plots of the commands: a simulation over time, a trace over time."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from netbuf_gym.commands.common import pyplot
from netbuf_gym.files import write_atomic
from netbuf_gym.results import Result
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace

MAX_LEGEND = 10


def plot_result(result: Result, path: str | os.PathLike) -> None:
    """Draws goodput, cwnd and RTT of every flow, and the bottleneck's queue and drops, over time.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    plt = pyplot()
    series, link = result.series, result.scenario.bottleneck
    time_s = series["time_s"]
    figure, axes = plt.subplots(4, 1, figsize=(9, 9), sharex=True, constrained_layout=True)
    panels = (("goodput_mbps", "goodput, Mbit/s"), ("cwnd_packets", "cwnd, packets"), ("srtt_ms", "smoothed RTT, ms"))
    for axis, (name, label) in zip(axes, panels, strict=False):
        for i, flow in enumerate(result.flows):
            axis.plot(time_s, series[name][:, i], linewidth=1, label=f"{flow.cc} ({flow.name})")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    if len(result.flows) <= MAX_LEGEND:
        axes[0].legend(loc="lower right", fontsize="small", ncols=2)
    axes[3].plot(time_s, series["queue_packets"][:, link], color="black", linewidth=1)
    dropped = series["queue_drops"][:, link] > 0
    axes[3].plot(time_s[dropped], series["queue_packets"][dropped, link], "rx", markersize=4, label="packets dropped")
    if dropped.any():
        axes[3].legend(loc="lower right", fontsize="small")
    axes[3].set_ylabel(f"queue of {result.bottleneck}, packets")
    axes[3].set_ylim(bottom=0)
    axes[3].set_xlabel("time, s")
    axes[3].set_xlim(0, result.scenario.duration_s)
    figure.suptitle(f"{result.scenario.name or 'scenario'}, seed {result.seed}")
    _save(plt, figure, path)


def plot_trace(trace: Trace, path: str | os.PathLike) -> None:
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


def _save(plt, figure, path: str | os.PathLike) -> None:
    raw = io.BytesIO()
    figure.savefig(raw, format=Path(path).suffix.lower().lstrip("."), dpi=120)
    plt.close(figure)
    write_atomic(path, raw.getvalue())
