"""Verdicts on the distance of our cells and groups from the reference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from netbuf_gym.validation.cells import DISTRIBUTION, GROUPED, Cell


def ks_2samp(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Compute the two-sample Kolmogorov-Smirnov test of whether two samples come from one distribution.

    p is the probability, if they do, of a distance at least as large: exact for samples of up to 10,000 values, beyond
    them the limit. Ties make it conservative (too large), never too small.

    Args:
        x, y: The samples, at least one finite number each. Shapes (m,) and (n,).

    Returns:
        The largest distance D between the two empirical distribution functions, 0 to 1, and p, 0 to 1.

    Raises:
        ValueError: An empty sample, or a value that is not finite.
    """
    from scipy import stats

    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not len(x) or not len(y):
        raise ValueError(f"samples of {len(x)} and {len(y)} values; valid: at least one in each")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("samples hold values that are not finite")
    with warnings.catch_warnings(record=True) as gave_up:
        warnings.simplefilter("always", RuntimeWarning)
        found = stats.ks_2samp(x, y)
    distance, p = float(found.statistic), float(found.pvalue)
    if any("Exact calculation unsuccessful" in str(warning.message) for warning in gave_up):
        p = 1.0  # the exact p, which rounding brought above 1; SciPy returns the asymptotic one instead
    return distance, min(max(p, 0.0), 1.0)


WITHIN, OUT, NOT_JUDGED = "within", "out", "not judged"
CELL_FACTOR = 2.0
"""Multiple of the group's tolerance allowed for a single cell."""
STANDARD_ERRORS = 2.0
LEAST_P = 0.01
ENOUGH_SEEDS = 20
"""Number of reference seeds from which their spread tells whether their mean is known well enough to be compared."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One quantity of a cell or group, ours beside the reference's.

    `allowed` is the difference allowed, standard errors included (NaN when distributions are compared); `distance` and
    `p` are of the Kolmogorov-Smirnov test (NaN when means are compared).
    """

    quantity: str
    reference: float
    ours: float
    allowed: float
    standard_error: float
    verdict: str
    distance: float = math.nan
    p: float = math.nan

    @property
    def error(self) -> float:
        return self.ours - self.reference

    @property
    def relative_error(self) -> float:
        """Error as a share of the reference; NaN when the reference is 0."""
        return self.error / abs(self.reference) if self.reference else math.nan


@dataclass(frozen=True, kw_only=True)
class CellVerdict:
    """Verdict on one cell."""

    cell: Cell
    how: str
    comparisons: tuple[Comparison, ...]
    verdict: str


@dataclass(frozen=True, kw_only=True)
class GroupVerdict:
    """Verdict on the cells of one congestion control on one path, taken together."""

    kind: str
    label: str
    cc: str
    path: str
    cells: tuple[Cell, ...]
    comparisons: tuple[Comparison, ...]
    verdict: str

    @property
    def id(self) -> str:
        return "/".join(part for part in (self.kind, self.label, self.cc, self.path) if part)


def choose_judging(cell: Cell) -> str:
    """Return how a cell is judged: as its family says, unless the reference's own seeds leave its mean too uncertain.

    If two standard errors of the mean exceed the allowed difference, the cell is judged as a distribution. The reference alone
    decides, whatever our values are.
    """
    family = cell.setting.family
    how = family.choose_judging(cell.setting)
    if how != GROUPED or not cell.setting.by_chance or len(cell.seeds) < ENOUGH_SEEDS:
        return how
    for quantity, tolerance in family.list_tolerances(cell.setting).items():
        values = cell.reference[quantity]
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        if STANDARD_ERRORS * error > tolerance.get_limit(fmean(values)):
            return DISTRIBUTION
    return how


def judge_cell(cell: Cell) -> CellVerdict:
    """Return the verdict on one cell that has been run, or that is not judged."""
    if cell.not_judged:
        return CellVerdict(cell=cell, how="", comparisons=(), verdict=NOT_JUDGED)
    family = cell.setting.family
    how = choose_judging(cell)
    comparisons = []
    for quantity, tolerance in family.list_tolerances(cell.setting).items():
        reference, ours = cell.reference[quantity], cell.ours[quantity]
        factor = CELL_FACTOR if how == GROUPED and tolerance.doubled else 1.0
        if how == DISTRIBUTION:
            comparisons.append(_compare_distributions(quantity, reference, ours))
            continue
        error = standard_error(cell, quantity)
        allowed = factor * tolerance.get_limit(fmean(reference)) + STANDARD_ERRORS * error
        comparisons.append(_compare_means(quantity, fmean(reference), fmean(ours), allowed, error))
    return CellVerdict(cell=cell, how=how, comparisons=tuple(comparisons), verdict=_combine_verdicts(comparisons))


def judge_groups(cells: Sequence[Cell]) -> list[GroupVerdict]:
    """Return the verdicts on the groups of cells that are judged as members of one, in order of first appearance."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        if not cell.not_judged and choose_judging(cell) == GROUPED:
            groups.setdefault(cell.setting.group, []).append(cell)
    return [_judge_group(members) for members in groups.values()]


def _judge_group(members: list[Cell]) -> GroupVerdict:
    setting = members[0].setting
    comparisons = []
    for quantity, tolerance in setting.family.list_tolerances(setting).items():
        if setting.family.contributes:
            comparisons.append(_compare_contributed_means(quantity, members))
            continue
        reference = fmean([fmean(cell.reference[quantity]) for cell in members])
        ours = fmean([fmean(cell.ours[quantity]) for cell in members])
        squares = [standard_error(cell, quantity) ** 2 for cell in members]
        error = math.sqrt(math.fsum(squares)) / len(members)
        allowed = tolerance.get_limit(reference) + STANDARD_ERRORS * error
        comparisons.append(_compare_means(quantity, reference, ours, allowed, error))
    return GroupVerdict(
        kind=setting.kind,
        label=setting.label,
        cc=setting.cc,
        path=setting.path,
        cells=tuple(members),
        comparisons=tuple(comparisons),
        verdict=_combine_verdicts(comparisons),
    )


def _compare_contributed_means(quantity: str, members: list[Cell]) -> Comparison:
    """Compare means over the cells that the reference measured; each contributes its own tolerance."""
    measured = [cell for cell in members if not math.isnan(fmean(cell.reference[quantity]))] or members[:1]
    reference = fmean([fmean(cell.reference[quantity]) for cell in measured])
    ours = fmean([fmean(cell.ours[quantity]) for cell in measured])
    allowed = []
    for cell in measured:
        tolerance = cell.setting.family.list_tolerances(cell.setting)[quantity]
        factor = CELL_FACTOR if len(members) == 1 and tolerance.doubled else 1.0
        allowed.append(factor * tolerance.get_limit(fmean(cell.reference[quantity])))
    return _compare_means(quantity, reference, ours, fmean(allowed), 0.0)


def standard_error(cell: Cell, quantity: str) -> float:
    """Return the standard error of the reference's mean over its seeds, from their spread, or from ours for a single seed.

    0 for a cell without random draws, whose outcome does not depend on chance.
    """
    if not cell.setting.by_chance:
        return 0.0
    reference = cell.reference[quantity]
    sample = reference if len(reference) > 1 else cell.ours[quantity]
    spread = float(np.std(sample, ddof=1)) if len(sample) > 1 else 0.0
    return spread / math.sqrt(len(reference))


def _compare_means(quantity: str, reference: float, ours: float, allowed: float, error: float) -> Comparison:
    # NaN (nothing measured) on both sides is agreement, on one side it is not.
    within = abs(ours - reference) <= allowed * (1 + 1e-12) or (math.isnan(reference) and math.isnan(ours))
    return Comparison(
        quantity=quantity,
        reference=reference,
        ours=ours,
        allowed=allowed,
        standard_error=error,
        verdict=WITHIN if within else OUT,
    )


def _compare_distributions(quantity: str, reference: Sequence[float], ours: Sequence[float]) -> Comparison:
    distance, p = ks_2samp(_round_values(reference), _round_values(ours)) if np.isfinite(ours).all() else (math.nan, math.nan)
    return Comparison(
        quantity=quantity,
        reference=fmean(reference),
        ours=fmean(ours),
        allowed=math.nan,
        standard_error=math.nan,
        verdict=WITHIN if p > LEAST_P else OUT,
        distance=distance,
        p=p,
    )


def _round_values(values: Sequence[float]) -> list[float]:
    """Round to six digits, since a reference prints at most eight and rounded values must tie with ours."""
    return [float(f"{value:.6g}") for value in values]


def _combine_verdicts(comparisons: Sequence[Comparison]) -> str:
    return WITHIN if all(c.verdict == WITHIN for c in comparisons) else OUT
