"""Floating-point sums that are bit-identical across Python versions."""

from __future__ import annotations

from collections.abc import Iterable


def sequential_sum(values: Iterable[float]) -> float:
    """Return the left-to-right float sum, rounded at each step; 0.0 for no values.

    Python's `sum` compensates rounding errors from 3.12 on, so that its last bit differs from that of earlier versions.
    """
    total = 0.0
    for value in values:
        total += float(value)
    return total
