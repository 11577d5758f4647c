"""Statistics for a few runs: what to report when every number is noisy and every run is expensive.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021): interquartile
means with stratified bootstrap intervals, performance profiles and probability of improvement, beside the plain mean
with Student's t interval (SciPy's, loaded on first use). Scores are arrays (runs, tasks); a one-dimensional array is runs of
one task. A run is one training seed (or one evaluation seed, for a controller that is not trained) and the unit of resampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_integer, check_real

MAX_FREEDOM = 1e300
MAX_RESAMPLES = 10_000_000


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_interval(values: np.ndarray, confidence: float = 0.95) -> Interval:
    """Return the mean of independent values, (runs,), with Student's t interval; infinitely wide for one value.

    Raises:
        ConfigError: No values, NaN among them, or a confidence outside (0, 1).
    """
    values = _scores(values)[:, 0]
    quantile = student_t_quantile(0.5 + _probability(confidence) / 2, len(values) - 1) if len(values) > 1 else math.inf
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, -math.inf, math.inf)
    half = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def difference_interval(ours: np.ndarray, theirs: np.ndarray, confidence: float = 0.95) -> Interval:
    """Return the mean of ours - theirs for two independent samples of any sizes, with Welch's t interval.

    A sample of one value, or of equal ones, counts as known exactly; two of those give an interval of no width.
    """
    samples = [_scores(sample)[:, 0] for sample in (ours, theirs)]
    mean = float(samples[0].mean() - samples[1].mean())
    errors = [float(s.var(ddof=1)) / len(s) if len(s) > 1 else 0.0 for s in samples]
    if sum(errors) == 0.0:
        return Interval(mean, mean, mean)
    freedom = sum(errors) ** 2 / sum(e**2 / (len(s) - 1) for e, s in zip(errors, samples, strict=True) if e > 0)
    half = student_t_quantile(0.5 + _probability(confidence) / 2, freedom) * math.sqrt(sum(errors))
    return Interval(mean, mean - half, mean + half)


def interquartile_mean(scores: np.ndarray) -> float:
    """Return the mean of the middle half of all scores, (runs, tasks) pooled.

    More robust to outliers than the mean, less wasteful than the median.

    A quarter of the scores is cut at each end; where that is no whole number, the two scores at the cuts count in part.
    """
    return float(_trimmed_means(np.sort(_scores(scores).reshape(1, -1), axis=1))[0])


def bootstrap_interval(
    scores: np.ndarray,
    statistic: Callable[[np.ndarray], float] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return a statistic of the scores, (runs, tasks), with its percentile bootstrap interval, stratified by task.

    Args:
        statistic: Function of an array (runs, tasks); None: the interquartile mean.
        resamples: Bootstrap samples, at least 100; each draws runs of every task separately, with replacement.
    """
    scores = _scores(scores)
    resamples = check_integer("resamples", resamples, 100, MAX_RESAMPLES)
    tail = (1 - _probability(confidence)) / 2
    drawn = _resample(scores, resamples, np.random.default_rng(seed))
    if statistic is None:
        estimate = interquartile_mean(scores)
        samples = _trimmed_means(np.sort(drawn.reshape(resamples, -1), axis=1))
    else:
        estimate = float(statistic(scores))
        samples = np.array([statistic(sample) for sample in drawn])
    low, high = np.quantile(samples, (tail, 1 - tail))
    return Interval(estimate, float(low), float(high))


def grouped_interval(
    groups: Sequence[np.ndarray], middle: bool = True, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the mean of scores in equally weighted groups of any sizes, with its bootstrap interval, stratified by group.

    Args:
        groups: One score per unit, (units,), or several that stay together when units are drawn, (units, scores), per group.
        middle: Whether to average only the middle half of all scores, as `interquartile_mean` does.
    """
    scores = [_scores(group) for group in groups]
    if not scores:
        raise ConfigError("groups is empty; valid: at least one")
    resamples = check_integer("resamples", resamples, 100, MAX_RESAMPLES)
    tail, counts = (1 - _probability(confidence)) / 2, _count_draws(tuple(map(len, scores)), resamples, seed)
    values = np.concatenate([one.ravel() for one in scores])
    weights, units, scales = _lay_out_groups(tuple(one.shape for one in scores))
    sums = np.bincount(units, values) * scales
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    if middle:
        units = units[order]
        estimate = float(_average_middle(values, weights, units, np.ones((len(counts), 1)))[0])
        samples = _average_middle(values, weights, units, counts)
    else:
        estimate = float(values @ weights)
        samples = (sums @ counts) / (max(map(len, scores)) * len(scores))
    return Interval(estimate, *_find_quantiles(samples, (tail, 1 - tail)))


def _find_quantiles(samples: np.ndarray, probabilities: Sequence[float]) -> list[float]:
    """Return quantiles, interpolated between two samples each, as numpy's are."""
    ordered, found = np.sort(samples), []
    for probability in probabilities:
        below, part = divmod(probability * (len(ordered) - 1), 1.0)
        low, high = float(ordered[int(below)]), float(ordered[min(int(below) + 1, len(ordered) - 1)])
        found.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
    return found


@lru_cache(maxsize=4)
def _lay_out_groups(shapes: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of groups of these shapes the weight of each score, the number of its unit among all of them, and of each unit
    the factor that makes its sum weigh as much as a unit of the largest group does."""
    weights = np.concatenate([np.full(units * each, 1 / (units * each)) for units, each in shapes]) / len(shapes)
    widths = np.concatenate([np.full(units, each) for units, each in shapes])
    largest = max(units for units, _ in shapes)
    scales = np.concatenate([np.full(units, largest / (units * each)) for units, each in shapes])
    return weights, np.repeat(np.arange(len(widths)), widths), scales


@lru_cache(maxsize=4)
def _count_draws(sizes: tuple[int, ...], resamples: int, seed: int) -> np.ndarray:
    """Return how often bootstrap samples hold each unit of groups of these sizes, (units, resamples)."""
    generator, counts = np.random.default_rng(seed), []
    for size in sizes:
        drawn = generator.integers(size, size=(resamples, size)) * resamples + np.arange(resamples)[:, None]
        counts.append(np.bincount(drawn.ravel(), minlength=size * resamples).reshape(size, resamples))
    return np.concatenate(counts).astype(np.float64)


def _average_middle(values: np.ndarray, weights: np.ndarray, units: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weighted means of the middle half of sorted values, (values,), in samples that hold units so many times each,
    (units, samples)."""
    out = np.empty((3, counts.shape[1]))
    _core.average_middle(values, weights, units, counts, out)
    return out[0]


def probability_of_improvement(
    ours: np.ndarray, theirs: np.ndarray, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return P(a run of ours beats a run of theirs), ties counting half, averaged over tasks, with its bootstrap interval.

    Args:
        ours, theirs: Scores (runs, tasks); the numbers of runs may differ.
    """
    ours, theirs = _scores(ours), _scores(theirs)
    if ours.shape[1] != theirs.shape[1]:
        raise ConfigError(f"ours has {ours.shape[1]} tasks and theirs {theirs.shape[1]}; valid: the same tasks")
    tail = (1 - _probability(confidence)) / 2
    generator = np.random.default_rng(seed)

    def win_rates(a: np.ndarray, b: np.ndarray) -> np.ndarray:  # (samples, runs, tasks) each
        difference = a[:, :, None, :] - b[:, None, :, :]
        return ((difference > 0) + 0.5 * (difference == 0)).mean(axis=(1, 2, 3))

    samples = win_rates(_resample(ours, resamples, generator), _resample(theirs, resamples, generator))
    low, high = np.quantile(samples, (tail, 1 - tail))
    return Interval(float(win_rates(ours[None], theirs[None])[0]), float(low), float(high))


def performance_profile(
    scores: np.ndarray, thresholds: np.ndarray, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share of scores above each threshold with pointwise bootstrap bands: (share, low, high).

    Each array has the shape (thresholds,).
    """
    scores, thresholds = _scores(scores), np.asarray(thresholds, dtype=float)
    tail = (1 - _probability(confidence)) / 2
    drawn = np.sort(_resample(scores, resamples, np.random.default_rng(seed)).reshape(resamples, -1), axis=1)
    above = np.stack([1 - np.searchsorted(sample, thresholds, side="right") / scores.size for sample in drawn])
    low, high = np.quantile(above, (tail, 1 - tail), axis=0)
    return (scores.reshape(-1, 1) > thresholds).mean(axis=0), low, high


def jain_index(shares: Sequence[float] | np.ndarray, of_nothing: float = math.nan) -> float:
    """Return Jain's index of fairness, 1/n to 1: (sum of x)^2 / (n sum of x^2).

    Args:
        shares: Non-negative shares, (n,).
        of_nothing: Value returned if all shares are 0.
    """
    values = np.asarray(shares, np.float64)
    squares = float((values**2).sum())
    return float(values.sum() ** 2 / (len(values) * squares)) if squares > 0 else of_nothing


def student_t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution with `freedom` > 0 degrees of freedom (not necessarily whole)."""
    from scipy.special import stdtrit

    p, freedom = _probability(probability), check_real("freedom", freedom, 0, MAX_FREEDOM, low_open=True)
    return float(stdtrit(freedom, p)) if p != 0.5 else 0.0


def _trimmed_means(ordered: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each row of sorted values."""
    n = ordered.shape[1]
    positions = np.arange(n)
    weights = np.clip(np.minimum(positions + 1, 0.75 * n) - np.maximum(positions, 0.25 * n), 0, 1)
    return ordered @ (weights / weights.sum())


def _resample(scores: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return bootstrap samples (resamples, runs, tasks), with runs drawn with replacement for each task separately."""
    resamples = check_integer("resamples", resamples, 1, MAX_RESAMPLES)
    picks = generator.integers(0, len(scores), size=(resamples, *scores.shape))
    return scores[picks, np.arange(scores.shape[1])]


def _scores(values: np.ndarray) -> np.ndarray:
    try:
        scores = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"scores = {quote(values)} are not numbers; valid: (runs,) or (runs, tasks)") from None
    if scores.ndim == 1:
        scores = scores[:, None]
    if scores.ndim != 2 or scores.size == 0:
        raise ConfigError(f"scores have shape {scores.shape}; valid: (runs,) or (runs, tasks), not empty")
    if not np.isfinite(scores).all():
        raise ConfigError("scores hold NaN or infinite values; valid: finite numbers")
    return scores


def _probability(value: float) -> float:
    try:
        within = 0 < value < 1
    except (TypeError, ValueError):
        within = False
    if not within:
        raise ConfigError(f"probability {value!r} is out of range; valid: between 0 and 1")
    return float(value)


def compute_percentiles(values: np.ndarray, shares: tuple[float, ...]) -> list[float]:
    """Return nearest-rank percentiles, shares from 0 to 1; NaN for no values."""
    return [float(np.quantile(values, share, method="inverted_cdf")) if len(values) else math.nan for share in shares]
