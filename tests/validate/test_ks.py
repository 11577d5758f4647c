import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym.validate.ks import _asymptotic, ks_2samp

SAMPLES = st.lists(st.floats(-10, 10), min_size=1, max_size=30)


@given(SAMPLES, SAMPLES)
def test_agrees_with_scipy(x, y):
    distance, p = ks_2samp(x, y)
    with warnings.catch_warnings(record=True) as gave_up:
        warnings.simplefilter("always")
        theirs = scipy.stats.ks_2samp(x, y, method="exact")
    assert distance == pytest.approx(theirs.statistic, abs=1e-12)
    if not gave_up:  # scipy falls back to the limit for some samples of equal size
        assert p == pytest.approx(theirs.pvalue, abs=1e-9)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (3, 3), (2, 5), (4, 4)])
def test_p_is_the_share_of_orderings_that_are_as_far_apart(m, n):
    distances = []
    for chosen in itertools.combinations(range(m + n), m):
        rest = [i for i in range(m + n) if i not in chosen]
        distances.append(ks_2samp(chosen, rest))
    for distance, p in distances:
        share = sum(other >= distance - 1e-12 for other, _ in distances) / len(distances)
        assert p == pytest.approx(share)


def test_known_values():
    assert ks_2samp([1, 2, 3], [1, 2, 3]) == (0.0, 1.0)
    assert ks_2samp([1] * 5, range(10, 40)) == (1.0, pytest.approx(2 / math.comb(35, 5)))
    assert ks_2samp([0] * 5, [0] * 30) == (0.0, 1.0)


def test_p_is_uniform_when_the_samples_agree_and_small_when_not():
    rng = np.random.default_rng(1)
    p = [ks_2samp(rng.normal(size=5), rng.normal(size=30))[1] for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.025)
    assert ks_2samp(rng.normal(size=5), rng.normal(size=30) + 4)[1] < 0.001


def test_large_samples_use_the_limit():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=2000), rng.normal(size=1500) + 0.05
    distance, p = ks_2samp(x, y)
    assert p == _asymptotic(2000, 1500, distance) == pytest.approx(scipy.stats.ks_2samp(x, y).pvalue, rel=0.05)


@pytest.mark.parametrize(("x", "y"), [([], [1]), ([1], []), ([math.nan], [1]), ([1], [math.inf])])
def test_bad_samples_are_refused(x, y):
    with pytest.raises(ValueError, match="samples"):
        ks_2samp(x, y)
