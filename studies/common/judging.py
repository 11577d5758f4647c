"""Judgement of a paper's claims by a campaign's results.

Differences are paired: scheme and rival in the same cell under the same seed. A seed's value is the mean of the logarithm
of their ratio over the seed's cells (a relative change that a few extreme cells do not decide), or of their difference where
values may be 0 or below; the interval is Student's over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from netbuf_gym.utils import statistics
from studies.common.results import Runs

LOWER, HIGHER, NOT_LOWER, AT_MOST = "lower", "higher", "not lower", "at most"
SAME = 0.01
"""Relative decrease up to which values count as the same."""
HOLDS, OPPOSITE, UNDECIDED = "holds", "the opposite holds", "no difference shown"
SLIGHT = "in sign only"
RATIO, DIFFERENCE = "ratio", "difference"


@dataclass(frozen=True)
class Claim:
    """A paper's statement about one of its schemes.

    Attributes:
        text: Text of the statement.
        figures: Figures or tables of the paper that show it.
        measure: Measured column.
        rivals: Schemes that the scheme is compared with.
        expected: LOWER, HIGHER, NOT_LOWER or AT_MOST.
        least: Relative change that the words ask for ("significant", "much"), in our reading; for AT_MOST the largest.
        where: Columns and their values, of the cells that the statement concerns; empty: all.
        by: RATIO: relative changes; DIFFERENCE: for values that may be 0 or below.
    """

    text: str
    figures: str
    measure: str
    rivals: tuple[str, ...]
    expected: str
    least: float = 0.0
    where: Mapping[str, object] = field(default_factory=dict)
    by: str = RATIO


def compute_change(
    runs: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO
) -> statistics.Interval | None:
    """Return the relative change (of the logarithm), or the difference, of a measure from rival to scheme, over common cells.

    Args:
        runs: A campaign's runs.
        scheme, rival: Two schemes of the campaign.
        measure: Measured column.
        cells: Columns that identify a cell; with the seed they pair runs.
        by: RATIO or DIFFERENCE.

    Returns:
        The mean with its interval; None without any pair of values (by ratio: of values above 0).
    """
    return compute_interval(list(compute_seed_changes(runs, scheme, rival, measure, cells, by).values()))


def compute_seed_changes(
    runs: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO
) -> dict[float, float]:
    """Return each seed's mean change over common cells, as defined by `compute_change`."""
    theirs = dict(zip(_make_keys(runs, rival, cells), runs.where(scheme=rival).columns[measure].tolist(), strict=True))
    by_seed: dict[float, list[float]] = {}
    for key, value in zip(_make_keys(runs, scheme, cells), runs.where(scheme=scheme).columns[measure].tolist(), strict=True):
        other = theirs.get(key, math.nan)
        if by == DIFFERENCE and math.isfinite(value - other):
            by_seed.setdefault(key[-1], []).append(value - other)
        elif by == RATIO and value > 0 and other > 0:
            by_seed.setdefault(key[-1], []).append(math.log(value / other))
    return {seed: float(np.mean(values)) for seed, values in by_seed.items()}


def compute_contrast(
    here: Runs, there: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO
) -> statistics.Interval | None:
    """Return how much larger the change from rival to scheme is in some cells than in others, under the same seeds.

    Args:
        here, there: Two sets of a campaign's runs; for the other arguments see `compute_change`.

    Returns:
        The mean difference of the changes (by ratio: of logarithms) with its interval; None if no seed has both.
    """
    first, second = (compute_seed_changes(runs, scheme, rival, measure, cells, by) for runs in (here, there))
    return compute_interval([value - second[seed] for seed, value in first.items() if seed in second])


def decide_verdict(expected: str, found: statistics.Interval, least: float = 0.0, by: str = RATIO) -> str:
    """Return the verdict on a claim, from a change (of a logarithm, or a difference) with its interval."""
    if expected == NOT_LOWER:
        return HOLDS if found.low >= -SAME else "does not hold" if found.high < -SAME else "not shown"
    if expected == AT_MOST:
        return HOLDS if found.high <= least else "does not hold" if found.low > least else "not shown"
    low, high = (found.low, found.high) if expected == HIGHER else (-found.high, -found.low)
    if low <= 0:
        return OPPOSITE if high < 0 else UNDECIDED
    size = abs(math.expm1(found.mean)) if by == RATIO else abs(found.mean)
    return HOLDS if size >= least else SLIGHT


def format_judgement(expected: str, found: statistics.Interval | None, least: float = 0.0, by: str = RATIO) -> str:
    """Return a change and its verdict as a table cell."""
    if found is None:
        return "-"
    if not math.isfinite(found.high - found.low):
        said = format_change(found) if by == RATIO else f"{found.mean:+.2g}"
        return f"{said}: not judged, of one seed"
    said = format_change(found) if by == RATIO else f"{found.mean:+.2g} [{found.low:+.2g}, {found.high:+.2g}]"
    return f"{said}: {decide_verdict(expected, found, least, by)}"


def judge_claim(claim: Claim, runs: Runs, scheme: str, rival: str, cells: Sequence[str]) -> str:
    """Return a claim about a scheme and one of its rivals as a table cell; "-" if one of them did not run."""
    found = compute_change(runs.where(**claim.where), scheme, rival, claim.measure, cells, claim.by)
    return format_judgement(claim.expected, found, claim.least, claim.by)


def format_change(found: statistics.Interval) -> str:
    """Return a change of a logarithm as a percentage, with its interval if it has one."""
    mean, low, high = (100 * math.expm1(min(value, 700)) if math.isfinite(value) else value for value in found)
    digits = 2 if abs(mean) < 1 else 1
    return f"{mean:+.{digits}f} %" + (f" [{low:+.{digits}f}, {high:+.{digits}f}]" if math.isfinite(high - low) else "")


def compute_interval(values: Sequence[float]) -> statistics.Interval | None:
    """Return mean and interval of the finite values; None if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return statistics.mean_interval(np.array(finite)) if finite else None


def format_spread(values: Sequence[float] | np.ndarray, digits: int) -> str:
    """Return mean and half of the 95 % interval of the finite values as a table cell."""
    found = compute_interval(list(values))
    if found is None:
        return "-"
    half = (found.high - found.low) / 2
    return f"{found.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def _make_keys(runs: Runs, scheme: str, cells: Sequence[str]) -> list[tuple]:
    columns = runs.where(scheme=scheme).columns
    return list(zip(*(columns[name].tolist() for name in (*cells, "seed")), strict=True))
