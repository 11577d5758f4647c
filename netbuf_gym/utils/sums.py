"""Sums that are the same on every Python."""

from __future__ import annotations

from collections.abc import Iterable


def added(values: Iterable[float]) -> float:
    """The sum from left to right, rounded at each step; 0.0 of nothing. From Python 3.12 on, `sum` makes up for what rounding
    loses, so that its last bit is another one than before."""
    total = 0.0
    for value in values:
        total += float(value)
    return total
