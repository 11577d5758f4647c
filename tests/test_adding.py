"""Sums from left to right, on every Python."""

import math

from netbuf_gym.utils.sums import added


def test_each_step_is_rounded():
    assert added([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 != math.fsum([0.1] * 10) == 1.0
    assert added([1e16, 1.0, -1e16]) == 0.0 and added(iter([1e16, -1e16, 1.0])) == 1.0


def test_of_nothing_it_is_0():
    assert added([]) == 0.0 and isinstance(added([]), float) and added([2, 3]) == 5.0
