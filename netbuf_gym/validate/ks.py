"""The two-sample Kolmogorov-Smirnov test."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np


def ks_2samp(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Whether two samples come from one distribution.

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
        p = 1.0  # the exact one, which rounding brought above 1; SciPy answers with the limit
    return distance, min(max(p, 0.0), 1.0)
