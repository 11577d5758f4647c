"""Capacity over time for plots: steps of a rate trace, or means of delivery opportunities over short spans."""

from __future__ import annotations

import numpy as np

from netbuf_gym.traces.types import RateTrace, Trace

MAX_SPANS = 1000
"""Largest number of steps in a plot."""
SPAN_S = 0.1
"""Shortest span over which opportunities are averaged, seconds, except in worlds of less than two seconds."""


def capacity_steps(trace: Trace, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the capacity over the first `duration_s` seconds of a trace, repetitions included, as a step function.

    A rate trace gives its own steps, or if these are more than a thousand, exact means over a thousand spans of equal length. A
    delivery trace gives means over spans of 0.1 s or more.

    Returns:
        Edges in seconds, (steps + 1,), and Mbit/s, (steps,).
    """
    if isinstance(trace, RateTrace):
        repeated = 1 if trace.period_s is None else int(duration_s // trace.period_s) + 1
        if repeated * len(trace.time_s) <= MAX_SPANS:
            begins = (np.arange(repeated)[:, None] * (trace.period_s or 0.0) + trace.time_s).ravel()
            begins = begins[begins < duration_s]
            return np.append(begins, duration_s), np.tile(trace.rate_mbps, repeated)[: len(begins)].copy()
        spans = MAX_SPANS
    else:
        spans = int(np.clip(np.ceil(duration_s / min(SPAN_S, duration_s / 20) - 1e-9), 1, MAX_SPANS))
    edges = np.linspace(0.0, duration_s, spans + 1)
    carried = np.array([0.0, *(trace.mean_mbps(float(edge)) * edge for edge in edges[1:])])
    return edges, np.maximum(np.diff(carried), 0.0) / np.diff(edges)
