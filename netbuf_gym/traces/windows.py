"""Windows of traces: parts that are traces themselves, and which of them are no outage throughout."""

from __future__ import annotations

import itertools
import math

import numpy as np

from netbuf_gym.traces.likeness import OUTAGE_MBPS, averages_mbps
from netbuf_gym.traces.types import DeliveryTrace, RateTrace, Trace


def cut(trace: Trace, start_s: float, duration_s: float) -> Trace | None:
    """What a trace does within a time, as a trace that starts at 0 and starts again after `duration_s`.

    Args:
        trace: It starts again at its end, as often as is needed.
        start_s: 0 or more; a moment beyond the trace's end is within its repetition.
        duration_s: Above 0.

    Returns:
        None where nothing is carried.
    """
    if isinstance(trace, DeliveryTrace):
        period_ms, start_ms, long_ms = trace.period_ms, start_s * 1e3, duration_s * 1e3
        first, last = int(start_ms // period_ms), int((start_ms + long_ms) // period_ms)
        time_ms = np.concatenate([trace.time_ms + k * period_ms for k in range(first, last + 1)])
        inside = time_ms[(time_ms > start_ms) & (time_ms <= start_ms + long_ms)] - start_ms
        return DeliveryTrace(inside, long_ms, trace.name) if len(inside) else None
    breaks_s = trace.time_s
    if trace.period_s is not None:
        first, last = int(start_s // trace.period_s), int((start_s + duration_s) // trace.period_s)
        breaks_s = np.concatenate([trace.time_s + k * trace.period_s for k in range(first, last + 1)])
    at_s = np.append(start_s, breaks_s[(breaks_s > start_s + 1e-9) & (breaks_s < start_s + duration_s - 1e-9)])
    rate_mbps = trace.rate_at_mbps(at_s + 1e-10)  # what begins at a break holds there, whatever was rounded
    return RateTrace(at_s - start_s, rate_mbps, duration_s, trace.name) if rate_mbps.any() else None


def by_seconds(trace: Trace) -> Trace:
    """The mean rate of each second, and of what is left of the last one; the trace itself where nothing is carried."""
    edges = np.append(np.arange(math.ceil(trace.duration_s - 1e-9)), trace.duration_s)
    parts = [cut(trace, begin, end - begin) for begin, end in itertools.pairwise(edges.tolist())]
    rate_mbps = [0.0 if part is None else part.mean_mbps(part.duration_s) for part in parts]
    return RateTrace(edges[:-1], rate_mbps, period_s=trace.duration_s, name=trace.name) if any(rate_mbps) else trace


def carries(trace: Trace) -> bool:
    """Whether any second of it has 0.3 Mbit/s or more; otherwise it is an outage throughout."""
    seconds = averages_mbps(trace, 1.0) if trace.duration_s >= 1 else np.array([trace.mean_mbps()])
    return bool((seconds >= OUTAGE_MBPS).any())


def window_starts(trace: Trace, duration_s: float) -> list[float]:
    """Where the windows of so many seconds begin, one after the other, that are no outage throughout.

    A trace that is shorter than a window has one, in which it starts again.
    """
    starts = [k * duration_s for k in range(max(1, int(trace.duration_s / duration_s + 1e-9)))]
    parts = ((start_s, cut(trace, start_s, duration_s)) for start_s in starts)
    return [start_s for start_s, part in parts if part is not None and carries(part)]
