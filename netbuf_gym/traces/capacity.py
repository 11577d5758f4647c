"""Capacity over time, for showing: the steps of a rate, the mean of the delivery opportunities in each of many short spans."""

from __future__ import annotations

import numpy as np

from netbuf_gym.traces.types import RateTrace, Trace

MOST = 1000
"""Spans that a picture can show."""
SPAN_S = 0.1
"""The shortest span over which opportunities are averaged, but in worlds of less than two seconds."""


def capacity_steps(trace: Trace, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """The capacity over the first `duration_s` seconds of a trace, repetitions included, constant between edges.

    Of a rate its own steps, unless there are more than a thousand; else means over as many spans of equal length, exact over
    each of them. Of delivery opportunities means over spans of 0.1 s or more.

    Returns:
        edges in seconds, (steps + 1,), and Mbit/s, (steps,).
    """
    if isinstance(trace, RateTrace):
        repeated = 1 if trace.period_s is None else int(duration_s // trace.period_s) + 1
        if repeated * len(trace.time_s) <= MOST:
            begins = (np.arange(repeated)[:, None] * (trace.period_s or 0.0) + trace.time_s).ravel()
            begins = begins[begins < duration_s]
            return np.append(begins, duration_s), np.tile(trace.rate_mbps, repeated)[: len(begins)].copy()
        spans = MOST
    else:
        spans = int(np.clip(np.ceil(duration_s / min(SPAN_S, duration_s / 20) - 1e-9), 1, MOST))
    edges = np.linspace(0.0, duration_s, spans + 1)
    carried = np.array([0.0, *(trace.mean_mbps(float(edge)) * edge for edge in edges[1:])])
    return edges, np.maximum(np.diff(carried), 0.0) / np.diff(edges)
