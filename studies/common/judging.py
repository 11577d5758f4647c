"""How a paper's claims are judged by a campaign's results.

Differences are paired: scheme and rival in the same cell under the same seed. A seed's value is the mean of the logarithm
of their ratio over its cells (a relative change that a few extreme cells do not decide), or of their difference where values
may be 0 or below, the interval Student's over the seeds.
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
"""Up to this share less counts as the same."""
HOLDS, OPPOSITE, UNDECIDED = "holds", "the opposite holds", "no difference shown"
SLIGHT = "in sign only"
RATIO, DIFFERENCE = "ratio", "difference"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about one of its schemes.

    Attributes:
        text: What it says.
        figures: Where.
        measure: What of.
        rivals: Schemes that it is compared with.
        expected: LOWER, HIGHER, NOT_LOWER or AT_MOST.
        least: The relative change that its words ask for ("significant", "much"), our reading of them; of AT_MOST the most.
        where: Columns and their values, of the cells that it speaks of; empty: all.
        by: RATIO: relative changes; DIFFERENCE: of what may be 0 or below.
    """

    text: str
    figures: str
    measure: str
    rivals: tuple[str, ...]
    expected: str
    least: float = 0.0
    where: Mapping[str, object] = field(default_factory=dict)
    by: str = RATIO


def change(
    runs: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO
) -> statistics.Interval | None:
    """The relative change (of the logarithm), or the difference, of a measure from the rival to the scheme, over common cells.

    Args:
        runs: A campaign's.
        scheme, rival: Two of its schemes.
        measure: A column.
        cells: The columns that tell cells apart; with the seed they pair runs.
        by: RATIO or DIFFERENCE.

    Returns:
        the mean with its interval; None without any pair of values (by ratio: of values above 0).
    """
    return interval(list(changes(runs, scheme, rival, measure, cells, by).values()))


def changes(runs: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO) -> dict[float, float]:
    """Of each seed the mean change over common cells, as `change` has it."""
    theirs = dict(zip(_keys(runs, rival, cells), runs.where(scheme=rival).columns[measure].tolist(), strict=True))
    by_seed: dict[float, list[float]] = {}
    for key, value in zip(_keys(runs, scheme, cells), runs.where(scheme=scheme).columns[measure].tolist(), strict=True):
        other = theirs.get(key, math.nan)
        if by == DIFFERENCE and math.isfinite(value - other):
            by_seed.setdefault(key[-1], []).append(value - other)
        elif by == RATIO and value > 0 and other > 0:
            by_seed.setdefault(key[-1], []).append(math.log(value / other))
    return {seed: float(np.mean(values)) for seed, values in by_seed.items()}


def contrast(
    here: Runs, there: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str], by: str = RATIO
) -> statistics.Interval | None:
    """By how much the change from the rival to the scheme is larger in some cells than in others, under the same seeds.

    Args:
        here, there: Some of a campaign's runs, and others; further arguments as for `change`.

    Returns:
        the mean difference of the changes (by ratio: of logarithms) with its interval; None where no seed has both.
    """
    first, second = (changes(runs, scheme, rival, measure, cells, by) for runs in (here, there))
    return interval([value - second[seed] for seed, value in first.items() if seed in second])


def verdict(expected: str, found: statistics.Interval, least: float = 0.0, by: str = RATIO) -> str:
    """Whether a claim holds, by a change (of a logarithm, or a difference) with its interval."""
    if expected == NOT_LOWER:
        return HOLDS if found.low >= -SAME else "does not hold" if found.high < -SAME else "not shown"
    if expected == AT_MOST:
        return HOLDS if found.high <= least else "does not hold" if found.low > least else "not shown"
    low, high = (found.low, found.high) if expected == HIGHER else (-found.high, -found.low)
    if low <= 0:
        return OPPOSITE if high < 0 else UNDECIDED
    size = abs(math.expm1(found.mean)) if by == RATIO else abs(found.mean)
    return HOLDS if size >= least else SLIGHT


def judged(expected: str, found: statistics.Interval | None, least: float = 0.0, by: str = RATIO) -> str:
    """A change and the verdict, as a cell of a table."""
    if found is None:
        return "-"
    if not math.isfinite(found.high - found.low):
        said = percent(found) if by == RATIO else f"{found.mean:+.2g}"
        return f"{said}: not judged, of one seed"
    said = percent(found) if by == RATIO else f"{found.mean:+.2g} [{found.low:+.2g}, {found.high:+.2g}]"
    return f"{said}: {verdict(expected, found, least, by)}"


def judge(claim: Claim, runs: Runs, scheme: str, rival: str, cells: Sequence[str]) -> str:
    """A claim about a scheme and one of its rivals, as a cell of a table; "-" where one of them did not run."""
    found = change(runs.where(**claim.where), scheme, rival, claim.measure, cells, claim.by)
    return judged(claim.expected, found, claim.least, claim.by)


def percent(found: statistics.Interval) -> str:
    """A change of a logarithm as a percentage with its interval, where it has one."""
    mean, low, high = (100 * math.expm1(min(value, 700)) if math.isfinite(value) else value for value in found)
    digits = 2 if abs(mean) < 1 else 1
    return f"{mean:+.{digits}f} %" + (f" [{low:+.{digits}f}, {high:+.{digits}f}]" if math.isfinite(high - low) else "")


def interval(values: Sequence[float]) -> statistics.Interval | None:
    """Mean and interval of the values that are numbers; None without any."""
    finite = [value for value in values if math.isfinite(value)]
    return statistics.mean_interval(np.array(finite)) if finite else None


def spread(values: Sequence[float] | np.ndarray, digits: int) -> str:
    """Mean and half of the 95 % interval of the values that are numbers, as a cell of a table."""
    found = interval(list(values))
    if found is None:
        return "-"
    half = (found.high - found.low) / 2
    return f"{found.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def _keys(runs: Runs, scheme: str, cells: Sequence[str]) -> list[tuple]:
    columns = runs.where(scheme=scheme).columns
    return list(zip(*(columns[name].tolist() for name in (*cells, "seed")), strict=True))
