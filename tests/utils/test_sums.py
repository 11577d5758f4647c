"""Sums from left to right, on every Python."""

import math

from netbuf_gym.utils.sums import sequential_sum


def test_each_step_is_rounded():
    assert (
        sequential_sum([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 != math.fsum([0.1] * 10) == 1.0
    )
    assert sequential_sum([1e16, 1.0, -1e16]) == 0.0 and sequential_sum(iter([1e16, -1e16, 1.0])) == 1.0


def test_of_nothing_it_is_0():
    assert sequential_sum([]) == 0.0 and isinstance(sequential_sum([]), float) and sequential_sum([2, 3]) == 5.0
