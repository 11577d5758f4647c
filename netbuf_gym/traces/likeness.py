"""Similarity of two sets of traces: summaries of a set, and distances between summaries.

All traces have equal weight, independent of length. A summary is small and holds no trace: quantiles pooled over traces, mean
autocorrelations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netbuf_gym.traces.types import OPPORTUNITY_BYTES, DeliveryTrace, Trace

QUANTILES = 40
"""Number of quantiles of each distribution, at probabilities (i + 1/2) / 40."""
PER_TRACE = 200
"""Number of pooled quantiles of one trace."""
WINDOWS_S = {"10ms": 0.01, "100ms": 0.1, "1s": 1.0}
"""Windows over which the rate is averaged, seconds."""
LAGS = {"10ms": (1, 2, 5, 10, 20, 50, 100), "1s": (1, 2, 5, 10)}
"""Lags of the autocorrelation of these averages, in windows."""
OUTAGE_S = 0.1
"""Shortest gap between deliveries that is an outage, seconds."""
OUTAGE_MBPS = 0.3
"""Rate below which a second without finer measurements is an outage."""

Summary = dict[str, list[float]]


def summarise(given: Iterable[Trace], finest_s: float = 0.01) -> Summary:
    """Summarise a set of traces for comparison.

    Args:
        given: One or more traces.
        finest_s: Time resolution of the traces, 0.01 or 1 s. At 1 s shorter averages and gaps are left out, and outages are
            runs of seconds below 0.3 Mbit/s.

    Returns:
        `mean_mbps`; `rate_10ms`, `rate_100ms`, `rate_1s` (relative to the trace's mean); `gap_ms` (between the milliseconds
        with deliveries), `outage_s`, `outages_per_minute`: 40 quantiles each. `acf_10ms`, `acf_1s`: means over traces at
        `LAGS`.
    """
    profiles = [_profile_trace(trace, finest_s) for trace in given]
    summary: Summary = {}
    for name in profiles[0]:
        parts = [profile[name] for profile in profiles if len(profile[name])]
        if name.startswith("acf"):
            summary[name] = _round_values(np.mean(parts, axis=0))
        elif parts:
            summary[name] = _round_values(_compute_quantiles(np.concatenate(parts), QUANTILES))
    return summary


def compute_distances(one: Summary, other: Summary) -> dict[str, float]:
    """Compute the distances between two summaries: for each distribution the largest difference of the cumulative distributions
    (Kolmogorov-Smirnov), and as `_w1` the mean difference of quantiles (Wasserstein) over the other's mean; for
    autocorrelations the mean absolute difference."""
    found: dict[str, float] = {}
    for name in one:
        if name not in other:
            continue
        a, b = np.array(one[name]), np.array(other[name])
        if name.startswith("acf"):
            found[name] = float(np.abs(a - b).mean())
            continue
        points = np.union1d(a, b)
        found[name] = float(np.abs(_evaluate_cdf(a, points) - _evaluate_cdf(b, points)).max())
        even = (np.arange(QUANTILES) + 0.5) / QUANTILES
        a, b = np.quantile(a, even), np.quantile(b, even)
        found[f"{name}_w1"] = float(np.abs(a - b).mean() / max(b.mean(), 1e-9))
    return found


def _profile_trace(trace: Trace, finest_s: float) -> dict[str, np.ndarray]:
    mean = trace.mean_mbps()
    found = {"mean_mbps": np.array([mean])}
    averages = {}
    for name, window_s in WINDOWS_S.items():
        if window_s >= finest_s * 0.999:
            averages[name] = compute_averages_mbps(trace, window_s)
            found[f"rate_{name}"] = _compute_quantiles(averages[name] / mean, PER_TRACE)
    for name, lags in LAGS.items():
        if name in averages:
            found[f"acf_{name}"] = compute_autocorrelation(averages[name], lags)
    if finest_s < 1 and isinstance(trace, DeliveryTrace):
        gaps_ms = find_gaps_s(trace) * 1e3
        found["gap_ms"] = _compute_quantiles(gaps_ms, PER_TRACE)
        outages_s = gaps_ms[gaps_ms > OUTAGE_S * 1e3] / 1e3
    else:
        outages_s = find_runs_below(averages["1s"], OUTAGE_MBPS) * 1.0
    found["outage_s"] = _compute_quantiles(outages_s, PER_TRACE) if len(outages_s) else outages_s
    found["outages_per_minute"] = np.array([len(outages_s) / trace.duration_s * 60])
    return found


def compute_variability(trace: Trace) -> dict[str, float]:
    """Compute the variability of a trace: coefficients of variation of the rate over 0.1 and 1 s and its autocorrelation at a
    lag of one second (left out if the trace is too short), outages (0.1 s or longer) a minute, and their share of the time."""
    found: dict[str, float] = {}
    for name, window_s in (("100ms", 0.1), ("1s", 1.0)):
        if trace.duration_s >= 10 * window_s:
            averages = compute_averages_mbps(trace, window_s)
            found[f"variation_{name}"] = float(averages.std() / averages.mean())
            if window_s == 1:
                found["autocorrelation_1s"] = float(compute_autocorrelation(averages, (1,))[0])
    outages_s = find_gaps_s(trace)
    outages_s = outages_s[outages_s >= OUTAGE_S - 1e-9]
    if trace.duration_s > 0:
        found["outages_per_minute"] = len(outages_s) / trace.duration_s * 60
        found["outage_share"] = float(outages_s.sum() / trace.duration_s)
    return found


def find_gaps_s(trace: Trace) -> np.ndarray:
    """Return the lengths of the times without a delivery, or at rate 0, within a period, seconds. Shape (gaps,).

    Those before the first delivery and after the last one count where they are outages.
    """
    if isinstance(trace, DeliveryTrace):
        busy_ms = trace.time_ms[np.append(True, np.diff(trace.time_ms) > 0)]
        ends_ms = np.array([busy_ms[0], trace.period_ms - busy_ms[-1]])
        first, last = (one[one >= OUTAGE_S * 1e3] for one in (ends_ms[:1], ends_ms[1:]))
        return np.concatenate([first, np.diff(busy_ms), last]) / 1e3
    turns = np.flatnonzero(np.diff(np.concatenate([[0], trace.rate_mbps == 0, [0]]).astype(int)))
    edges_s = np.append(trace.time_s, trace.duration_s)
    return edges_s[turns[1::2]] - edges_s[turns[::2]]


def compute_averages_mbps(trace: Trace, window_s: float) -> np.ndarray:
    """Return the mean rate in each whole window of one period. Shape (windows,)."""
    count = max(1, int(trace.duration_s / window_s + 1e-9))
    if isinstance(trace, DeliveryTrace):
        at = (trace.time_ms / (window_s * 1e3) - 1e-9).astype(np.int64).clip(0)
        return np.bincount(at, minlength=count)[:count] * OPPORTUNITY_BYTES * 8e-6 / window_s
    edges = np.arange(count + 1) * window_s
    ends = np.append(trace.time_s[1:], max(trace.duration_s, edges[-1]))
    carried = np.append(0.0, np.cumsum((ends - trace.time_s) * trace.rate_mbps))
    return np.diff(np.interp(edges, np.append(trace.time_s, ends[-1]), carried)) / window_s


def compute_autocorrelation(values: np.ndarray, lags: Iterable[int]) -> np.ndarray:
    """Compute the autocorrelation of a series at each lag; 0 if the series is constant or too short. Shape (lags,)."""
    centred = values - values.mean()
    variance = centred @ centred / len(centred)
    if variance <= 1e-12 * max(1.0, float(values.mean()) ** 2):
        return np.zeros(len(tuple(lags)))
    count = len(centred)
    return np.array([centred[:-lag] @ centred[lag:] / (count - lag) / variance if lag < count else 0.0 for lag in lags])


def find_runs_below(values: np.ndarray, limit: float) -> np.ndarray:
    """Return the lengths of the runs of values below a limit. Shape (runs,)."""
    turns = np.flatnonzero(np.diff(np.concatenate([[0], values < limit, [0]]).astype(int)))
    return turns[1::2] - turns[::2]


def _compute_quantiles(values: np.ndarray, count: int) -> np.ndarray:
    return np.quantile(values, (np.arange(count) + 0.5) / count)


def _evaluate_cdf(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


def _round_values(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]
