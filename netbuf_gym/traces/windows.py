"""Windows of traces: parts that are traces themselves, and the selection of parts that are not a single outage."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from netbuf_gym.traces.likeness import OUTAGE_MBPS, compute_averages_mbps
from netbuf_gym.traces.types import DeliveryTrace, RateTrace, Trace


def cut_window(trace: Trace, start_s: float, duration_s: float) -> Trace | None:
    """Return a window of a trace as a trace that starts at 0 and repeats after `duration_s`.

    Args:
        trace: Trace, repeated at its end as often as needed.
        start_s: Start of the window, 0 or more; beyond the trace's end, within its repetition.
        duration_s: Length of the window, above 0.

    Returns:
        The window; None if it has no capacity.
    """
    if isinstance(trace, DeliveryTrace):
        period_ms, start_ms, long_ms = trace.period_ms, start_s * 1e3, duration_s * 1e3
        first, last = int(start_ms // period_ms), int((start_ms + long_ms) // period_ms)
        time_ms = np.concatenate([trace.time_ms + k * period_ms for k in range(first, last + 1)])
        inside = time_ms[(time_ms > start_ms) & (time_ms <= start_ms + long_ms)] - start_ms
        return replace(trace, time_ms=inside, period_ms=long_ms) if len(inside) else None
    breaks_s = trace.time_s
    if trace.period_s is not None:
        first, last = int(start_s // trace.period_s), int((start_s + duration_s) // trace.period_s)
        breaks_s = np.concatenate([trace.time_s + k * trace.period_s for k in range(first, last + 1)])
    at_s = np.append(start_s, breaks_s[(breaks_s > start_s + 1e-9) & (breaks_s < start_s + duration_s - 1e-9)])
    rate_mbps = trace.rate_at_mbps(at_s + 1e-10)  # at a break, take the step that begins there despite rounding
    return RateTrace(at_s - start_s, rate_mbps, duration_s, trace.name) if rate_mbps.any() else None


def by_seconds(trace: Trace) -> Trace:
    """Return the mean rates of each second and of the remainder as a trace; a trace without capacity unchanged."""
    edges = np.append(np.arange(math.ceil(trace.duration_s - 1e-9)), trace.duration_s)
    parts = [cut_window(trace, begin, end - begin) for begin, end in itertools.pairwise(edges.tolist())]
    rate_mbps = [0.0 if part is None else part.mean_mbps(part.duration_s) for part in parts]
    return RateTrace(edges[:-1], rate_mbps, period_s=trace.duration_s, name=trace.name) if any(rate_mbps) else trace


def has_capacity(trace: Trace) -> bool:
    """Return whether any second of a trace has 0.3 Mbit/s or more; otherwise the trace is a single outage."""
    seconds = compute_averages_mbps(trace, 1.0) if trace.duration_s >= 1 else np.array([trace.mean_mbps()])
    return bool((seconds >= OUTAGE_MBPS).any())


def find_window_starts(trace: Trace, duration_s: float) -> list[float]:
    """Return the starts of consecutive windows of `duration_s` seconds, without windows that are a single outage.

    A trace that is shorter than a window has one window, in which the trace repeats.
    """
    starts = [k * duration_s for k in range(max(1, int(trace.duration_s / duration_s + 1e-9)))]
    parts = ((start_s, cut_window(trace, start_s, duration_s)) for start_s in starts)
    return [start_s for start_s, part in parts if part is not None and has_capacity(part)]
