"""Summaries of sets of traces, and distances between them."""

import numpy as np
import pytest

from netbuf_gym.traces import DeliveryTrace, RateTrace, generate
from netbuf_gym.traces.likeness import (
    compute_autocorrelation,
    compute_averages_mbps,
    compute_distances,
    compute_variability,
    find_gaps_s,
    find_runs_below,
    summarise,
)


def test_averages_count_what_is_delivered_in_each_window():
    trace = DeliveryTrace([1, 1, 10, 11, 30])
    assert compute_averages_mbps(trace, 0.01) * 0.01e6 / 8 / 1504 == pytest.approx([3, 1, 1])
    rates = RateTrace([0, 0.5, 2], [4, 0, 2], 3)
    assert compute_averages_mbps(rates, 1.0) == pytest.approx([2, 0, 2])


def test_gaps_are_between_deliveries_or_at_rate_0():
    assert find_gaps_s(DeliveryTrace([1, 1, 10, 310])) == pytest.approx([0.009, 0.3])
    assert find_gaps_s(DeliveryTrace([5000, 5001, 5003], 6000)) == pytest.approx([5, 0.001, 0.002, 0.997])
    assert find_gaps_s(RateTrace([0, 1, 3, 4, 5], [0, 2, 0, 0, 1], 6)) == pytest.approx([1, 2])


def test_autocorrelation_of_a_gauss_markov_series():
    rng = np.random.default_rng(1)
    values = [0.0]
    for noise in rng.standard_normal(20_000):
        values.append(0.8 * values[-1] + noise)
    assert compute_autocorrelation(np.array(values), (1, 2, 5)) == pytest.approx([0.8, 0.64, 0.33], abs=0.05)
    assert compute_autocorrelation(np.ones(50), (1, 2)).tolist() == [0, 0]


def test_an_outage_at_the_start_of_deliveries_is_one():
    trace = DeliveryTrace(np.arange(5000, 20_001))
    assert summarise([trace])["outage_s"] == [5.0] * 40 and compute_variability(trace)["outage_share"] == 0.25


def test_runs_below_a_limit():
    assert find_runs_below(np.array([0, 0, 5, 0, 5, 0, 0, 0]), 1).tolist() == [2, 1, 3]


def test_a_set_is_like_itself_and_unlike_another():
    some = summarise([generate("4g", duration_s=20, seed=s) for s in range(8)])
    other = summarise([generate("poisson", duration_s=20, seed=s) for s in range(3)])
    assert set(compute_distances(some, some).values()) == {0.0}
    found = compute_distances(some, other)
    assert found["rate_100ms"] > 0.2 and found["acf_10ms"] > 0.2 and found["mean_mbps_w1"] > 0.5


def test_a_coarse_set_has_no_fine_figures():
    summary = summarise([generate("5g", duration_s=60, seed=1)], finest_s=1)
    assert "rate_10ms" not in summary and "acf_10ms" not in summary and "gap_ms" not in summary and "rate_1s" in summary


def test_variability_of_an_interrupted_link():
    figures = compute_variability(RateTrace([0, 30, 33], [8, 0, 8], 60))
    assert figures["outages_per_minute"] == pytest.approx(1) and figures["outage_share"] == pytest.approx(0.05)
    assert figures["variation_1s"] == pytest.approx(np.sqrt(0.05 / 0.95), rel=0.01)
    assert "variation_1s" not in compute_variability(RateTrace([0], [8], 2))
