"""How like each other two sets of traces are: what is summarised of a set, and distances between summaries.

Each trace counts alike, however long it is. A summary is small and holds no trace: quantiles pooled over traces, mean
autocorrelations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netbuf_gym.traces.types import OPPORTUNITY_BYTES, DeliveryTrace, Trace

QUANTILES = 40
"""Of each distribution, at probabilities (i + 1/2) / 40."""
PER_TRACE = 200
"""Quantiles of one trace that are pooled."""
WINDOWS_S = {"10ms": 0.01, "100ms": 0.1, "1s": 1.0}
"""Over what the rate is averaged."""
LAGS = {"10ms": (1, 2, 5, 10, 20, 50, 100), "1s": (1, 2, 5, 10)}
"""Of the autocorrelation of these averages, windows."""
OUTAGE_S = 0.1
"""Shorter gaps between deliveries are no outages."""
OUTAGE_MBPS = 0.3
"""Below it a second without finer measurements is one."""

Summary = dict[str, list[float]]


def summarise(given: Iterable[Trace], finest_s: float = 0.01) -> Summary:
    """What is compared of a set of traces.

    Args:
        given: One or more.
        finest_s: The shortest time that they say something about: 0.01 or 1 s; shorter averages and gaps are left out, and
            outages are runs of such averages below 0.3 Mbit/s.

    Returns:
        `mean_mbps`; `rate_10ms`, `rate_100ms`, `rate_1s` (relative to the trace's mean); `gap_ms` (between the milliseconds
        with deliveries), `outage_s`, `outages_per_minute`: 40 quantiles each. `acf_10ms`, `acf_1s`: means over traces at
        `LAGS`.
    """
    profiles = [_profile(trace, finest_s) for trace in given]
    summary: Summary = {}
    for name in profiles[0]:
        parts = [profile[name] for profile in profiles if len(profile[name])]
        if name.startswith("acf"):
            summary[name] = _rounded(np.mean(parts, axis=0))
        elif parts:
            summary[name] = _rounded(_quantiles(np.concatenate(parts), QUANTILES))
    return summary


def distances(one: Summary, other: Summary) -> dict[str, float]:
    """Of each distribution the largest difference of the two (Kolmogorov and Smirnov's), `_w1` the mean difference of
    quantiles (Wasserstein's) over the other's mean; of autocorrelations the mean absolute difference."""
    found: dict[str, float] = {}
    for name in one:
        if name not in other:
            continue
        a, b = np.array(one[name]), np.array(other[name])
        if name.startswith("acf"):
            found[name] = float(np.abs(a - b).mean())
            continue
        points = np.union1d(a, b)
        found[name] = float(np.abs(_share(a, points) - _share(b, points)).max())
        even = (np.arange(QUANTILES) + 0.5) / QUANTILES
        a, b = np.quantile(a, even), np.quantile(b, even)
        found[f"{name}_w1"] = float(np.abs(a - b).mean() / max(b.mean(), 1e-9))
    return found


def _profile(trace: Trace, finest_s: float) -> dict[str, np.ndarray]:
    mean = trace.mean_mbps()
    found = {"mean_mbps": np.array([mean])}
    averages = {}
    for name, window_s in WINDOWS_S.items():
        if window_s >= finest_s * 0.999:
            averages[name] = averages_mbps(trace, window_s)
            found[f"rate_{name}"] = _quantiles(averages[name] / mean, PER_TRACE)
    for name, lags in LAGS.items():
        if name in averages:
            found[f"acf_{name}"] = autocorrelation(averages[name], lags)
    if finest_s < 1 and isinstance(trace, DeliveryTrace):
        gaps_ms = gaps_s(trace) * 1e3
        found["gap_ms"] = _quantiles(gaps_ms, PER_TRACE)
        outages_s = gaps_ms[gaps_ms > OUTAGE_S * 1e3] / 1e3
    else:
        outages_s = runs_below(averages["1s"], OUTAGE_MBPS) * 1.0
    found["outage_s"] = _quantiles(outages_s, PER_TRACE) if len(outages_s) else outages_s
    found["outages_per_minute"] = np.array([len(outages_s) / trace.duration_s * 60])
    return found


def variability(trace: Trace) -> dict[str, float]:
    """Of one trace: coefficients of variation of the rate over 0.1 and 1 s and its autocorrelation a second apart (left out
    where the trace is too short), outages (0.1 s or longer) a minute, and the share of the time that they take."""
    found: dict[str, float] = {}
    for name, window_s in (("100ms", 0.1), ("1s", 1.0)):
        if trace.duration_s >= 10 * window_s:
            averages = averages_mbps(trace, window_s)
            found[f"variation_{name}"] = float(averages.std() / averages.mean())
            if window_s == 1:
                found["autocorrelation_1s"] = float(autocorrelation(averages, (1,))[0])
    outages_s = gaps_s(trace)
    outages_s = outages_s[outages_s >= OUTAGE_S - 1e-9]
    if trace.duration_s > 0:
        found["outages_per_minute"] = len(outages_s) / trace.duration_s * 60
        found["outage_share"] = float(outages_s.sum() / trace.duration_s)
    return found


def gaps_s(trace: Trace) -> np.ndarray:
    """Times without a delivery, or at rate 0, within a period. Shape (gaps,)."""
    if isinstance(trace, DeliveryTrace):
        return np.diff(trace.time_ms[np.append(True, np.diff(trace.time_ms) > 0)]) / 1e3
    turns = np.flatnonzero(np.diff(np.concatenate([[0], trace.rate_mbps == 0, [0]]).astype(int)))
    edges_s = np.append(trace.time_s, trace.duration_s)
    return edges_s[turns[1::2]] - edges_s[turns[::2]]


def averages_mbps(trace: Trace, window_s: float) -> np.ndarray:
    """The mean rate in each whole window of one period. Shape (windows,)."""
    count = max(1, int(trace.duration_s / window_s + 1e-9))
    if isinstance(trace, DeliveryTrace):
        at = (trace.time_ms / (window_s * 1e3) - 1e-9).astype(np.int64).clip(0)
        return np.bincount(at, minlength=count)[:count] * OPPORTUNITY_BYTES * 8e-6 / window_s
    edges = np.arange(count + 1) * window_s
    ends = np.append(trace.time_s[1:], max(trace.duration_s, edges[-1]))
    carried = np.append(0.0, np.cumsum((ends - trace.time_s) * trace.rate_mbps))
    return np.diff(np.interp(edges, np.append(trace.time_s, ends[-1]), carried)) / window_s


def autocorrelation(values: np.ndarray, lags: Iterable[int]) -> np.ndarray:
    """Of a series at each lag; 0 where it is constant or too short. Shape (lags,)."""
    centred = values - values.mean()
    variance = centred @ centred / len(centred)
    if variance <= 1e-12 * max(1.0, float(values.mean()) ** 2):
        return np.zeros(len(tuple(lags)))
    count = len(centred)
    return np.array([centred[:-lag] @ centred[lag:] / (count - lag) / variance if lag < count else 0.0 for lag in lags])


def runs_below(values: np.ndarray, limit: float) -> np.ndarray:
    """The lengths of the runs of values below the limit. Shape (runs,)."""
    turns = np.flatnonzero(np.diff(np.concatenate([[0], values < limit, [0]]).astype(int)))
    return turns[1::2] - turns[::2]


def _quantiles(values: np.ndarray, count: int) -> np.ndarray:
    return np.quantile(values, (np.arange(count) + 0.5) / count)


def _share(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]
