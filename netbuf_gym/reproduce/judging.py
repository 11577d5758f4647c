"""How a paper's claims are judged by a campaign's results.

Differences are paired: scheme and rival in the same cell under the same seed. A seed's value is the mean of the logarithm
of their ratio over its cells (a relative change that a few extreme cells do not decide), the interval Student's over the
seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from netbuf_gym import stats
from netbuf_gym.reproduce.results import Runs

LOWER, HIGHER, NOT_LOWER = "lower", "higher", "not lower"
SAME = 0.01
"""Up to this share less counts as the same."""
HOLDS, OPPOSITE, UNDECIDED = "holds", "the opposite holds", "no difference shown"
SLIGHT = "in sign only"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about one of its schemes.

    Attributes:
        text: What it says.
        figures: Where.
        measure: What of.
        rivals: Schemes that it is compared with.
        expected: LOWER, HIGHER or NOT_LOWER.
        least: The relative change that its words ask for ("significant", "much"), our reading of them.
        where: Columns and their values, of the cells that it speaks of; empty: all.
    """

    text: str
    figures: str
    measure: str
    rivals: tuple[str, ...]
    expected: str
    least: float = 0.0
    where: Mapping[str, object] = field(default_factory=dict)


def change(runs: Runs, scheme: str, rival: str, measure: str, cells: Sequence[str]) -> stats.Interval | None:
    """The relative change (of the logarithm) of a measure from the rival to the scheme, over all their common cells.

    Args:
        runs: A campaign's.
        scheme, rival: Two of its schemes.
        measure: A column.
        cells: The columns that tell cells apart; with the seed they pair runs.

    Returns:
        the mean with its interval; None without any pair of values above 0.
    """
    theirs = dict(zip(_keys(runs, rival, cells), runs.where(scheme=rival).columns[measure].tolist(), strict=True))
    by_seed: dict[float, list[float]] = {}
    for key, value in zip(_keys(runs, scheme, cells), runs.where(scheme=scheme).columns[measure].tolist(), strict=True):
        other = theirs.get(key, math.nan)
        if value > 0 and other > 0:
            by_seed.setdefault(key[-1], []).append(math.log(value / other))
    return interval([float(np.mean(values)) for values in by_seed.values()])


def verdict(expected: str, found: stats.Interval, least: float = 0.0) -> str:
    """Whether a claim holds, by the change of a logarithm with its interval."""
    if expected == NOT_LOWER:
        return HOLDS if found.low >= -SAME else "does not hold" if found.high < -SAME else "not shown"
    low, high = (found.low, found.high) if expected == HIGHER else (-found.high, -found.low)
    if low <= 0:
        return OPPOSITE if high < 0 else UNDECIDED
    return HOLDS if abs(math.expm1(found.mean)) >= least else SLIGHT


def judged(expected: str, found: stats.Interval | None, least: float = 0.0) -> str:
    """A change and the verdict, as a cell of a table."""
    return "-" if found is None else f"{percent(found)}: {verdict(expected, found, least)}"


def percent(found: stats.Interval) -> str:
    """A change of a logarithm as a percentage with its interval."""
    mean, low, high = (100 * math.expm1(min(value, 700)) if math.isfinite(value) else value for value in found)
    digits = 2 if abs(mean) < 1 else 1
    return f"{mean:+.{digits}f} % [{low:+.{digits}f}, {high:+.{digits}f}]"


def interval(values: Sequence[float]) -> stats.Interval | None:
    """Mean and interval of the values that are numbers; None without any."""
    finite = [value for value in values if math.isfinite(value)]
    return stats.mean_interval(np.array(finite)) if finite else None


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
