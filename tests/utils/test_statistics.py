"""Statistics against closed forms, scipy and simulated coverage."""

import math

import numpy as np
import pytest
from scipy import stats as reference

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import statistics


@pytest.mark.parametrize("freedom", [0.7, 1, 2, 4, 9.3, 29, 500])
@pytest.mark.parametrize("probability", [0.005, 0.3, 0.5, 0.9, 0.975, 0.9999])
def test_student_t_quantile_agrees_with_scipy(probability, freedom):
    expected = reference.t.ppf(probability, freedom)
    assert statistics.student_t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_student_t_quantile_of_tables():
    """As printed, and as the bisection of the continued fraction gave it before SciPy did: to 1e-12."""
    assert statistics.student_t_quantile(0.975, 1) == pytest.approx(12.7062047361747, rel=1e-12)
    assert statistics.student_t_quantile(0.975, 9) == pytest.approx(2.26215716279820, rel=1e-12)
    assert statistics.student_t_quantile(0.95, 29) == pytest.approx(1.69912702653350, rel=1e-12)
    assert statistics.student_t_quantile(0.005, 4) == pytest.approx(-statistics.student_t_quantile(0.995, 4), rel=1e-12)


@pytest.mark.parametrize("odd", ["x", None, {1}, [[["a"]]], object()])
def test_what_are_no_numbers_is_refused_by_name(odd):
    with pytest.raises(ConfigError, match="scores"):
        statistics.mean_interval(odd)
    with pytest.raises(ConfigError, match="probability"):
        statistics.mean_interval([1.0, 2.0], confidence=odd)
    with pytest.raises(ConfigError, match="resamples"):
        statistics.bootstrap_interval([1.0, 2.0], resamples=odd)
    with pytest.raises(ConfigError, match="freedom"):
        statistics.student_t_quantile(0.9, odd)


def test_mean_interval_agrees_with_scipy():
    values = np.random.default_rng(0).normal(3, 2, size=12)
    interval = statistics.mean_interval(values, confidence=0.9)
    low, high = reference.t.interval(0.9, 11, loc=values.mean(), scale=reference.sem(values))
    assert interval == pytest.approx((values.mean(), low, high))
    assert statistics.mean_interval(np.array([1.0])) == (1.0, -math.inf, math.inf)


def test_difference_interval_agrees_with_scipy():
    generator = np.random.default_rng(1)
    a, b = generator.normal(1, 1, 5), generator.normal(0, 3, 30)
    result = reference.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert statistics.difference_interval(a, b)[1:] == pytest.approx((result.low, result.high))
    assert statistics.difference_interval([2.0, 2.0], [1.5]) == (0.5, 0.5, 0.5)
    one_sided = statistics.difference_interval(a, [0.25])  # an exactly known opponent leaves the one-sample interval
    assert one_sided == pytest.approx([x - 0.25 for x in statistics.mean_interval(a)])


def test_interquartile_mean_cuts_a_quarter_at_each_end():
    assert statistics.interquartile_mean(np.arange(8.0)) == pytest.approx(3.5)
    values = np.random.default_rng(2).normal(size=(12, 3))
    assert statistics.interquartile_mean(values) == pytest.approx(reference.trim_mean(values, 0.25, axis=None))
    outlier = values.copy()
    outlier[0, 0] = values.max() + 1e6
    assert abs(statistics.interquartile_mean(outlier) - statistics.interquartile_mean(values)) < 0.2
    assert statistics.interquartile_mean([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(3.0)


def test_bootstrap_interval_covers_the_mean():
    generator = np.random.default_rng(3)
    hits = 0
    for trial in range(100):
        scores = generator.normal(5, 1, size=(20, 4))
        _, low, high = statistics.bootstrap_interval(scores, np.mean, resamples=200, seed=trial)
        hits += low <= 5 <= high
    assert 85 <= hits <= 100


def test_bootstrap_is_stratified_and_reproducible():
    scores = np.array([[0.0, 10.0]] * 6)  # no spread within a task: none in the interval, far apart as the tasks are
    assert statistics.bootstrap_interval(scores, np.mean) == (5.0, 5.0, 5.0)
    scores = np.random.default_rng(4).random((6, 2))
    assert statistics.bootstrap_interval(scores, seed=1) == statistics.bootstrap_interval(scores, seed=1)
    assert statistics.bootstrap_interval(scores, seed=1) != statistics.bootstrap_interval(scores, seed=2)


def test_probability_of_improvement():
    high, low = np.arange(10.0, 15.0), np.arange(0.0, 3.0)
    assert statistics.probability_of_improvement(high, low) == (1.0, 1.0, 1.0)
    same = statistics.probability_of_improvement(low, low)
    assert same.mean == 0.5 and same.low < 0.5 < same.high
    with pytest.raises(ConfigError, match="the same tasks"):
        statistics.probability_of_improvement(np.ones((3, 2)), np.ones((3, 1)))


def test_performance_profile_falls_from_one_to_zero():
    scores = np.random.default_rng(5).random((10, 3))
    share, low, high = statistics.performance_profile(scores, np.array([-1.0, 0.5, 2.0]), resamples=300)
    assert share[0] == 1 and share[2] == 0
    assert (low <= share).all() and (share <= high).all()
    assert low[1] < high[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: statistics.mean_interval([]), "not empty"),
        (lambda: statistics.mean_interval([1.0, math.nan]), "NaN"),
        (lambda: statistics.mean_interval([1.0, 2.0], confidence=1.5), "between 0 and 1"),
        (lambda: statistics.bootstrap_interval(np.zeros((2, 2, 2))), "shape"),
        (lambda: statistics.bootstrap_interval([1.0, 2.0], resamples=3), "resamples = 3 is out of range; valid: 100.."),
        (lambda: statistics.student_t_quantile(0.9, 0), "above 0"),
    ],
)
def test_unusable_input_is_named(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_jains_index():
    jain = statistics.jain_index
    assert jain([1.0]) == 1 and jain([2, 2, 2]) == pytest.approx(1) and jain([1, 0, 0, 0]) == 0.25
    assert jain([1, 3]) == pytest.approx(0.8) and math.isnan(jain([0, 0])) and jain(np.zeros(3), of_nothing=0.0) == 0


def test_the_middle_of_groups_is_that_of_weights_cut_at_the_quartiles():
    generator = np.random.default_rng(3)
    groups = [generator.normal(size=shape) for shape in ((5, 1), (3, 2), (8, 1))]
    found = statistics.grouped_interval(groups, resamples=400, seed=7)
    values = np.concatenate([one.ravel() for one in groups])
    weights = np.concatenate([np.full(one.size, 1 / one.size / 3) for one in groups])
    units = np.concatenate([np.arange(5), 5 + np.repeat(np.arange(3), 2), 8 + np.arange(8)])
    counts, draws = [], np.random.default_rng(7)
    for one in groups:
        drawn = draws.integers(len(one), size=(400, len(one)))
        counts.append([(drawn == unit).sum(axis=1) for unit in range(len(one))])
    order = np.argsort(values)

    def average(times):
        upto = np.concatenate([[0], np.cumsum((times[units] * weights)[order])])
        kept = np.diff(np.clip(upto, 0.25, 0.75))
        return float(values[order] @ kept / kept.sum())

    samples = [average(times) for times in np.concatenate(counts).T]
    assert found.mean == pytest.approx(average(np.ones(16)), rel=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(samples, (0.025, 0.975))), rel=1e-12)
