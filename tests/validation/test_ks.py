import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from netbuf_gym.validation.judging import ks_2samp

SAMPLES = st.lists(st.integers(-4, 4), min_size=1, max_size=12)


@given(SAMPLES, SAMPLES)
def test_p_is_that_of_the_lattice_paths(x, y):
    """However many values are tied, and where SciPy's exact calculation gives up."""
    distance, p = ks_2samp(x, y)
    m, n = len(x), len(y)
    steps = [abs(sum(v <= at for v in x) * n - sum(v <= at for v in y) * m) for at in {*x, *y}]
    assert distance == pytest.approx(max(steps) / (m * n), abs=1e-12)
    assert p == pytest.approx(share_of_paths(m, n, max(steps)), abs=1e-12)


def share_of_paths(m, n, distance):
    """Of the monotone paths from (0, 0) to (m, n), those that reach |i n - j m| >= distance, counted."""
    inside = {}
    for i in range(m + 1):
        for j in range(n + 1):
            ways = 1 if i == j == 0 else inside.get((i - 1, j), 0) + inside.get((i, j - 1), 0)
            inside[i, j] = ways if abs(i * n - j * m) < distance else 0
    return 1 - inside[m, n] / math.comb(m + n, m)


def test_known_values():
    assert ks_2samp([1, 2, 3], [1, 2, 3]) == (0.0, 1.0)
    assert ks_2samp([1] * 5, range(10, 40)) == (1.0, pytest.approx(2 / math.comb(35, 5)))
    assert ks_2samp([0] * 5, [0] * 30) == (0.0, 1.0)


def test_large_samples():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=2000), rng.normal(size=1500) + 0.05
    distance, p = ks_2samp(x, y)
    effective = math.sqrt(2000 * 1500 / 3500)
    assert p == pytest.approx(special.kolmogorov(effective * distance), rel=0.1)
    assert ks_2samp(rng.normal(size=20_000), rng.normal(size=20_000))[1] > 1e-3


@pytest.mark.parametrize(("x", "y"), [([], [1]), ([1], []), ([math.nan], [1]), ([1], [math.inf])])
def test_bad_samples_are_refused(x, y):
    with pytest.raises(ValueError, match="samples"):
        ks_2samp(x, y)
