"""The two-sample Kolmogorov-Smirnov test, exact, with numpy only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

EXACT_CELLS = 1_000_000
"""Up to this product of the sample sizes p is exact; beyond it, asymptotic."""


def ks_2samp(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Whether two samples come from one distribution.

    p is the probability, if they do, of a distance at least as large. Ties make it conservative (too large), never too
    small.

    Args:
        x, y: The samples, at least one finite number each. Shapes (m,) and (n,).

    Returns:
        The largest distance D between the two empirical distribution functions, 0 to 1, and p, 0 to 1.

    Raises:
        ValueError: An empty sample, or a value that is not finite.
    """
    x, y = np.sort(np.asarray(x, np.float64)), np.sort(np.asarray(y, np.float64))
    m, n = len(x), len(y)
    if not m or not n:
        raise ValueError(f"samples of {m} and {n} values; valid: at least one in each")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("samples hold values that are not finite")
    both = np.concatenate([x, y])
    # D in units of 1/(m n), so that it is compared without rounding
    steps = np.searchsorted(x, both, side="right") * n - np.searchsorted(y, both, side="right") * m
    distance = int(np.abs(steps).max())
    p = _exact(m, n, distance) if m * n <= EXACT_CELLS else _asymptotic(m, n, distance / (m * n))
    return distance / (m * n), p


def _exact(m: int, n: int, distance: int) -> float:
    """Share of the monotone lattice paths from (0, 0) to (m, n) that reach |i n - j m| >= distance."""
    if distance == 0:
        return 1.0
    # inside[j]: probability of having come to (i, j) and stayed inside; a uniformly random path goes right from
    # (i, j) with probability (m - i) / (m - i + n - j).
    j = np.arange(n + 1)
    inside = np.zeros(n + 1)
    inside[0] = 1.0
    for i in range(m + 1):
        left = m - i
        allowed = np.abs(i * n - j * m) < distance
        for k in range(n + 1):
            if k:
                before = left + n - k + 1
                inside[k] += inside[k - 1] * (n - k + 1) / before
            if not allowed[k]:
                inside[k] = 0.0
        if left:
            inside = inside * left / (left + n - j)
    return float(min(max(1.0 - inside[n], 0.0), 1.0))


def _asymptotic(m: int, n: int, distance: float) -> float:
    """Kolmogorov's limit with Stephens' correction for the sample sizes."""
    effective = math.sqrt(m * n / (m + n))
    t = (effective + 0.12 + 0.11 / effective) * distance
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * t) ** 2) for k in range(1, 101))
    return min(max(math.fsum(terms), 0.0), 1.0)
