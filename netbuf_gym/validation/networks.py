"""Comparison of generated with measured traces: distances, figures, and agreement in the ranking of congestion controls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from netbuf_gym.scenarios import dumbbell
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace, generate
from netbuf_gym.traces.calibration import FINEST_S, read_part
from netbuf_gym.traces.likeness import LAGS, QUANTILES, Summary, compute_distances, summarise
from netbuf_gym.utils import plots

CONTROLS = ("newreno", "cubic", "bbr", "bbrplus", "vegas", "westwood", "copa", "vivace", "inigo")
"""Congestion controls that are ranked."""
BUFFERS = {"1 BDP": 1.0, "4 BDP": 4.0, "250 packets": None}
RTT_MS, PACKET_BYTES, LEAST_PACKETS = 40.0, 1500, 10
INTERVAL_S, WINDOW_S = 0.1, 60.0
LEAST_MBPS = 0.5
"""Mean rate below which a window is left out, as too low to rank by."""
MOST_DELAY_MS = 500.0
GENERATED = {"4g": 170.0, "5g": 1200.0}
"""Durations in s of the generated traces by network, about as long as the measured ones."""


def compare(folder: str | os.PathLike[str], network: str, part: str, count: int = 100) -> dict[str, dict[str, float]]:
    """Return the distances of generated and of other measured traces to the measured traces of a part.

    There are `count` generated traces; the other measured ones are the calibration's, which show how far sets of measured
    traces are from each other.

    Raises:
        TraceError: A trace is missing, or is malformed.
    """
    measured = summarise(read_part(folder, network, part), FINEST_S[network])
    other = summarise(read_part(folder, network, "calibration"), FINEST_S[network])
    return {
        "generated": compute_distances(summarise_generated(network, count), measured),
        "measured": compute_distances(other, measured),
    }


def summarise_generated(network: str, count: int = 100) -> Summary:
    """Return the summary of `count` generated traces, of seeds 0, 1, ..."""
    made = (generate(network, duration_s=GENERATED[network], seed=seed) for seed in range(count))
    return summarise(made, FINEST_S[network])


def compute_utility(trace: Trace, control: str, buffer: str) -> float:
    """Return a congestion control's utility on a trace, mean over intervals of 0.1 s: x**0.4 - d**0.4 - 0.5 * l**0.4.

    x: goodput over the trace's mean capacity; d: queueing delay over 500 ms; l: lost packets over sent ones, each clipped to
    [0, 1] (alpha-fair with alpha 0.6, weights 0.4, 0.4 and 0.2). The base RTT is 40 ms.

    Args:
        trace: Capacity of the bottleneck, which also sets the duration.
        control: Name of the congestion control.
        buffer: A key of `BUFFERS`.
    """
    mean_mbps = trace.mean_mbps()
    bdp = mean_mbps * 1e6 / 8 * RTT_MS * 1e-3 / PACKET_BYTES
    times = BUFFERS[buffer]
    packets = 250 if times is None else max(LEAST_PACKETS, round(times * bdp))
    duration_s = trace.duration_s
    world = dumbbell(trace=trace, rtt_ms=RTT_MS, buffer_packets=packets, senders=[control], duration_s=duration_s)
    result = simulate(world, seed=1, sample_interval_s=INTERVAL_S)
    link = result.links[result.bottleneck].series
    share = np.clip(result.flows[0].series["goodput_mbps"] / mean_mbps, 0, 1)
    delay = np.clip(np.nan_to_num(link["queue_delay_ms"]) / MOST_DELAY_MS, 0, 1)
    passed = link["throughput_mbps"] * 1e6 / 8 * INTERVAL_S / PACKET_BYTES
    lost = link["queue_drops"] / np.maximum(link["queue_drops"] + passed, 1e-9)
    return float(np.mean(share**0.4 - delay**0.4 - 0.5 * np.clip(lost, 0, 1) ** 0.4))


def rank_controls(given: Sequence[Trace], controls: Sequence[str]) -> np.ndarray:
    """Return mean utilities over traces by buffer and control. Shape (buffers, controls)."""
    return np.array(
        [[np.mean([compute_utility(trace, one, buffer) for trace in given]) for one in controls] for buffer in BUFFERS]
    )


def cut_windows(given: Sequence[Trace], most: int = 4) -> list[Trace]:
    """Return up to `most` windows of 60 s from each trace, evenly over its length, each with at least 0.5 Mbit/s."""
    return [window for trace in given for window in _cut_windows(trace, most)]


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return Spearman's rank correlation of values, shape (values,) each."""
    from scipy.stats import spearmanr  # takes long to import

    return float(spearmanr(one, other).statistic)


def _cut_windows(trace: Trace, most: int) -> Iterator[Trace]:
    whole = int(trace.duration_s // WINDOW_S)
    for i in np.unique(np.linspace(0, whole - 1, min(whole, most)).round().astype(int)):
        begin_s, end_s = i * WINDOW_S, (i + 1) * WINDOW_S
        if isinstance(trace, DeliveryTrace):
            inside = (trace.time_ms > begin_s * 1e3) & (trace.time_ms <= end_s * 1e3)
            window: Trace = DeliveryTrace(np.append(trace.time_ms[inside] - begin_s * 1e3, WINDOW_S * 1e3))
        else:
            later = trace.time_s[(trace.time_s > begin_s) & (trace.time_s < end_s)]
            starts = np.append(begin_s, later)
            rate_mbps = trace.rate_at_mbps(starts)
            if not rate_mbps.any():
                continue
            window = RateTrace(starts - begin_s, rate_mbps, WINDOW_S)
        if window.mean_mbps() >= LEAST_MBPS:
            yield window


def plot_likeness(network: str, measured: Summary, made: Summary, path: str | os.PathLike[str]) -> None:
    """Plot two summaries: distributions of the rate, autocorrelations, gaps, outages.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    figure = plots.make_figure(9, 5)
    panels = figure.subplots(2, 3).ravel()
    even = (np.arange(QUANTILES) + 0.5) / QUANTILES
    finest = "10ms" if "acf_10ms" in measured else "1s"
    distributions = [
        (f"rate_{finest}", "rate over the trace's mean"),
        ("rate_1s", "rate over 1 s, over the mean") if finest == "10ms" else ("mean_mbps", "mean (Mbit/s)"),
        ("gap_ms", "gap between deliveries (ms)") if finest == "10ms" else ("outages_per_minute", "outages a minute"),
        ("outage_s", "outage (s)"),
    ]
    sets = ((measured, "measured, held out", plots.get_style(0)[0]), (made, "generated", plots.get_style(1)[0]))
    for axes, (name, label) in zip(panels, distributions, strict=False):
        for summary, legend, colour in sets:
            axes.plot(np.sort(summary[name]), even, label=legend, color=colour, linewidth=plots.LINE)
        if name in ("gap_ms", "outage_s", "mean_mbps"):
            axes.set_xscale("log")
        plots.format_axes(axes, label, "share", "", legend=1 if axes is panels[0] else 0)
    for axes, lags in zip(panels[4:], ("10ms", "1s"), strict=True):
        if f"acf_{lags}" not in measured:
            axes.set_visible(False)
            continue
        unit = {"10ms": 0.01, "1s": 1.0}[lags]
        for summary, legend, colour in sets:
            values = summary[f"acf_{lags}"]
            axes.plot(np.array(LAGS[lags]) * unit, values, label=legend, color=colour, linewidth=plots.LINE, marker=".")
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
        plots.format_axes(axes, "lag (s)", f"autocorrelation, {lags}", "", legend=0)
    figure.suptitle(network.upper())
    plots.write_figure(figure, path)
