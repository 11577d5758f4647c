"""Calibration of the networks' populations on measured traces: traits of each trace by moments, then their mean and spread.

The split of the traces into calibration, validation and evaluation is fixed by name in `split.json`; the traces themselves are
not part of the project. 4G: Mahimahi's LTE recordings (Winstein, Sivaraman and Balakrishnan, 2013; Netravali et al., 2015) and
DeepCC's in New York (Abbasloo, Yen and Chao, 2019), at a resolution of 1 ms. 5G: downloads in University College Cork's data
set (Raca et al., 2020), at a resolution of 1 s. Both directions of one recording, and recordings of one day, are in one part.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netbuf_gym.errors import TraceError
from netbuf_gym.traces.likeness import compute_averages_mbps, summarise
from netbuf_gym.traces.networks import (
    LONGEST_OUTAGE_S,
    PACKETS_PER_MBPS_MS,
    POPULATIONS,
    TRAITS,
    Population,
    generate_deliveries,
    generate_rates,
    modulate,
)
from netbuf_gym.traces.types import DeliveryTrace, RateTrace, Trace

PARTS = ("calibration", "validation", "evaluation")
SPLIT: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("split.json").read_text())
"""Names of the traces by network and part."""

FINEST_S = {"4g": 0.01, "5g": 1.0}
"""Time resolution of each network's traces, seconds."""
GAP_S = 0.1
"""Gap between deliveries, in seconds, above which it is an outage."""
OUTAGE_MBPS = 0.3
"""Rate below which a second is an outage: the remains of a download's last packets and of idle measurements."""
DELIVERY_BIN_S, RATE_BIN_S = 0.01, 1.0
"""Bins of the rate for autocovariances, of delivery and rate traces, seconds."""
SHRINK = 0.5
"""Shrinkage factor of the correlations between traits, which few traces estimate poorly."""
RIDGE = 0.15
"""Ridge penalty that draws the variances at the time scales towards equal ones."""
ROUNDS, SAMPLE = 5, 80
"""Rounds of indirect inference, and traces generated per round."""
WIDEN = 1.1
"""Factor on the standard deviations of the traits, which come from few traces, to cover unseen paths."""


def read_part(folder: str | os.PathLike[str], network: str, part: str) -> list[Trace]:
    """Read the traces of a network's part, found by name anywhere below `folder`.

    Raises:
        TraceError: A missing or malformed trace.
    """
    found = {path.name: path for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    from netbuf_gym.traces.reading import read

    missing = [name for name in SPLIT[network][part] if name not in found]
    if missing:
        raise TraceError(f"lacks {', '.join(missing)}, which the {part} of {network} needs", folder)
    return [read(found[name]) for name in SPLIT[network][part]]


def estimate_traits(trace: Trace, paths: Population) -> dict[str, float]:
    """Estimate the traits of a measured trace, on the scales of `TRAITS`.

    The variances at the time scales are fitted by non-negative least squares to log(1 + c / mean**2), where c is the
    autocovariance of the rate outside outages; for a lognormal rate this is the autocovariance of the level.
    """
    from scipy.optimize import nnls  # takes long to import

    bins = _bin_deliveries(trace) if isinstance(trace, DeliveryTrace) else _bin_rates(trace)
    rate, on, step_s = bins.rate, bins.on, bins.step_s
    mean, shortest_outage_s = rate[on].mean(), paths.shortest_outage_s
    lags = np.unique(np.round(np.geomspace(1, min(60 / step_s, len(rate) / 3), 16)).astype(int))
    covariance = np.array([_compute_covariance(rate, on, lag, mean) for lag in lags])
    logs = np.log1p(np.maximum(covariance / mean**2, -0.5))
    ages = np.outer(lags * step_s, 1 / paths.scales_s)
    shapes = np.exp(-ages)
    if paths.smooth:
        shapes[:, 0] *= 1 + ages[:, 0]
    usual = max(float(logs[: len(logs) // 2].mean()), 1e-3) / len(paths.scales_s)
    ridge = np.sqrt(RIDGE) * np.eye(len(paths.scales_s))
    variances = nnls(np.vstack([shapes, ridge]), np.append(logs, ridge @ np.full(len(paths.scales_s), usual)))[0]
    total = max(variances.sum(), 1e-3)
    variances = np.maximum(variances / total, 0.03)

    coarse, coarse_on = _average_bins(rate, on, max(1, round(0.2 / step_s)))
    logs_on = np.log(np.maximum(coarse[coarse_on], 0.02 * mean))
    low, middle, high = np.quantile(logs_on, (0.1, 0.5, 0.9))
    skew = float(np.log(max(high - middle, 1e-3) / max(middle - low, 1e-3)) / 1.2816)
    sigma = (high - low) / 2 / 1.2816 if isinstance(trace, RateTrace) else np.sqrt(total)

    minutes = on.sum() * step_s / 60
    lengths = np.minimum(bins.outages_s, LONGEST_OUTAGE_S)
    excess = np.log(np.maximum(lengths, 1.01 * shortest_outage_s) / shortest_outage_s)
    shape = 1 / max(excess.mean(), 0.05) if len(lengths) else 1.5  # Hill's estimate
    standing = (logs_on.mean() - np.log(np.maximum(bins.before_outages, 0.02 * mean))) / max(logs_on.std(), 1e-3)
    return {
        "log_mean": float(np.log(mean)),
        "log_sigma": float(np.log(max(sigma, 0.05))),
        "skew": float(np.clip(skew, -0.6, 0.6)),
        "log_fast": float(np.log(variances[0] / variances[3])),
        "log_mid": float(np.log(variances[1] / variances[3])),
        "log_slow": float(np.log(variances[2] / variances[3])),
        **bins.bursts,
        "log_outages": float(np.log((len(lengths) + 0.5) / minutes)),
        "log_outage_shape": float(np.log(np.clip(shape, 0.4, 4.0))),
        "fade": float(np.clip(standing.mean(), 0.0, 1.2)) if len(standing) >= 5 else 0.5,
    }


class _BinnedTrace(NamedTuple):
    """Binned trace: rate in Mbit/s, bins outside outages, lengths of outages, rate before each outage but one at the start of
    deliveries, traits of bursts."""

    rate: np.ndarray
    on: np.ndarray
    step_s: float
    outages_s: np.ndarray
    before_outages: np.ndarray
    bursts: dict[str, float]


def _bin_deliveries(trace: DeliveryTrace) -> _BinnedTrace:
    time_ms = trace.time_ms
    each_ms = DELIVERY_BIN_S * 1e3
    count = int(time_ms[-1] // each_ms)
    rate = np.bincount((time_ms // each_ms).astype(int), minlength=count)[:count] / each_ms / PACKETS_PER_MBPS_MS
    busy, packets = np.unique(time_ms, return_counts=True)
    ends = np.append(0.0, busy)  # an outage may come before the first delivery
    gaps_ms = np.diff(ends)
    long = np.flatnonzero(gaps_ms > GAP_S * 1e3)
    edges = np.zeros(count + 1, int)
    np.add.at(edges, np.minimum((ends[long] // each_ms).astype(int), count), 1)
    np.add.at(edges, np.minimum((ends[long + 1] // each_ms).astype(int) + 1, count), -1)
    on = np.cumsum(edges[:-1]) == 0
    coarse = np.bincount((time_ms // 500).astype(int), minlength=1) / 500 / PACKETS_PER_MBPS_MS
    before = coarse[np.maximum((ends[long[long > 0]] // 500).astype(int) - 1, 0)]
    return _BinnedTrace(rate, on, DELIVERY_BIN_S, gaps_ms[long] / 1e3, before, _estimate_bursts(busy, packets))


def _estimate_bursts(busy_ms: np.ndarray, packets: np.ndarray) -> dict[str, float]:
    """Estimate the burst traits: packets per busy millisecond, and their growth with the rate of the surrounding 100 ms."""
    window = (busy_ms // 100).astype(int)
    all_packets = np.bincount(window, packets)
    busy = np.bincount(window)
    some = busy >= 5
    more = np.maximum(all_packets[some] / busy[some] - 1, 0.02)
    power = np.polyfit(np.log(all_packets[some]), np.log(more), 1)[0] if some.sum() > 10 else 0.5
    beyond = packets - 1.0
    mean = max(beyond.mean(), 0.02)
    # stochastic rounding adds up to 1/4 to the variance; changes of the rate add to it too
    usual = more[np.searchsorted(np.flatnonzero(some), window).clip(0, len(more) - 1)]
    spread = np.mean((beyond - usual) ** 2) / max(np.mean(usual**2), 1e-4)
    uncertain = np.mean(np.minimum(usual, 0.25)) / max(np.mean(usual**2), 1e-4)
    return {
        "log_burst": float(np.log(mean)),
        "burst_sigma": float(np.sqrt(np.log1p(np.clip(spread - uncertain, 0.0, 4.0)))),
        "burst_power": float(np.clip(power, 0.0, 1.5)),
    }


def _bin_rates(trace: RateTrace) -> _BinnedTrace:
    rate = compute_averages_mbps(trace, RATE_BIN_S)
    on = rate >= OUTAGE_MBPS
    turns = np.flatnonzero(np.diff(np.concatenate([[1], on, [1]])))
    begins, ends = turns[::2], turns[1::2]
    return _BinnedTrace(rate, on, RATE_BIN_S, (ends - begins) * RATE_BIN_S, rate[np.maximum(begins - 1, 0)], {})


def _compute_covariance(rate: np.ndarray, on: np.ndarray, lag: int, mean: float) -> float:
    both = on[:-lag] & on[lag:]
    return float(((rate[:-lag] - mean) * (rate[lag:] - mean))[both].mean()) if both.sum() > 20 else 0.0


def _average_bins(rate: np.ndarray, on: np.ndarray, each: int) -> tuple[np.ndarray, np.ndarray]:
    count = len(rate) // each
    used = count * each
    return rate[:used].reshape(count, each).mean(axis=1), np.logical_and.reduce(on[:used].reshape(count, each), axis=1)


def calibrate(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the records of all networks, those of `SPLIT` refitted on their calibration traces, with summaries of each part.

    Raises:
        TraceError: A missing or malformed trace below `folder`.
    """
    records = json.loads(POPULATIONS.read_text())
    for network in SPLIT:
        parts = {part: read_part(folder, network, part) for part in PARTS}
        records[network] = fit_population(network, parts["calibration"], records[network])
        records[network]["measured"] = {part: summarise(given, FINEST_S[network]) for part, given in parts.items()}
    return records


def format_records(records: dict[str, Any]) -> str:
    """Return the records as JSON text, each list on one line."""
    text = json.dumps(records, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def fit_population(network: str, given: list[Trace], settled: dict[str, Any], rounds: int = ROUNDS) -> dict[str, Any]:
    """Fit the population of which the given traces are a sample, in the form of `networks.json`.

    Indirect inference: traits are estimated in the same way from the given traces and from traces generated from the current
    population; the bias of the latter estimates is subtracted from the population's means and variances.

    Args:
        network: Name of the network.
        given: Traces to calibrate on.
        settled: Current record of the network; fields that are not fitted stay.
        rounds: Number of rounds in which traces are generated.
    """
    names, measured = _estimate_trait_table(given, Population.from_dict(settled))
    wanted, spread = measured.mean(0), measured.std(0, ddof=1)
    mean, deviation = wanted.copy(), spread.copy()
    standard = (measured - wanted) / np.maximum(spread, 1e-9)
    correlation = SHRINK * standard.T @ standard / (len(given) - 1)
    correlations = {
        f"{names[i]},{names[j]}": round(float(correlation[i, j]), 3)
        for i in range(len(names))
        for j in range(i)
        if abs(correlation[i, j]) > 0.05
    }
    lengths_s = [trace.duration_s for trace in given]
    for round_ in range(rounds + 1):
        pairs = zip(names, mean.tolist(), deviation.tolist(), strict=True)
        traits = {name: {"mean": round(m, 4), "sd": round(d, 4)} for name, m, d in pairs}
        record = {**settled, "traits": {**settled["traits"], **traits}, "correlations": correlations}
        if round_ == rounds:
            break
        paths = Population.from_dict(record)
        made = [generate_trace(network, paths, lengths_s[i % len(lengths_s)], seed=i) for i in range(SAMPLE)]
        _, again = _estimate_trait_table(made, paths)
        step = 1.0 if round_ == 0 else 0.5
        mean += step * (wanted - again.mean(0))
        variance = deviation**2 + step * (spread**2 - again.var(0, ddof=1))
        deviation = np.sqrt(np.clip(variance, (0.4 * spread) ** 2, (1.1 * spread) ** 2))
    for name in traits:
        traits[name]["sd"] = round(WIDEN * traits[name]["sd"], 4)
    return {**settled, "traits": {**settled["traits"], **traits}, "correlations": correlations}


def generate_trace(network: str, paths: Population, duration_s: float, seed: int) -> Trace:
    """Generate a trace of a population, in the form of the network's measured traces."""
    rng = np.random.default_rng(seed)
    traits = paths.draw(rng)
    path = modulate(rng, paths, traits, duration_s, paths.step_s)
    return generate_deliveries(rng, path, traits) if network == "4g" else generate_rates(rng, path, traits)


def _estimate_trait_table(given: list[Trace], paths: Population) -> tuple[list[str], np.ndarray]:
    rows = [estimate_traits(trace, paths) for trace in given]
    names = [name for name in TRAITS if name in rows[0]]
    return names, np.array([[row[name] for name in names] for row in rows])
