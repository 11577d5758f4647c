import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.traces import OPPORTUNITY_BYTES, DeliveryTrace, RateTrace

RATES = st.just(0.0) | st.floats(1e-6, 100)
STEPS = st.lists(st.tuples(st.floats(0.01, 5), RATES), min_size=1, max_size=8).filter(
    lambda steps: any(rate > 0.01 for _, rate in steps)
)


def made(steps) -> RateTrace:
    ends = np.cumsum([length for length, _ in steps])
    return RateTrace(np.append(0, ends[:-1]), [rate for _, rate in steps], period_s=float(ends[-1]))


@given(STEPS, st.floats(0.1, 40))
def test_mean_rate_is_the_integral_of_the_rate(steps, duration_s):
    trace = made(steps)
    grid = (np.arange(20000) + 0.5) * duration_s / 20000
    coarse = trace.rate_at_mbps(grid).mean()
    assert trace.mean_mbps(duration_s) == pytest.approx(coarse, abs=0.05 * trace.peak_mbps + 1e-9)


def test_mean_rate_of_a_trace_that_holds_its_last_rate():
    trace = RateTrace([0, 1], [10, 20])
    assert trace.mean_mbps(4) == pytest.approx((10 + 3 * 20) / 4)
    assert trace.mean_mbps(0.5) == 10
    assert RateTrace([0, 1], [10, 20], period_s=2).mean_mbps(3) == pytest.approx((2 * 10 + 20) / 3)


@given(STEPS)
def test_deliveries_carry_what_the_rate_allows(steps):
    trace = made(steps)
    bits = trace.mean_mbps() * 1e6 * trace.duration_s
    if bits < OPPORTUNITY_BYTES * 8 * 2:
        return
    duration_s = round(trace.duration_s, 3)
    deliveries = trace.to_deliveries(duration_s)
    expected = trace.mean_mbps(duration_s) * 1e6 * duration_s / 8 / OPPORTUNITY_BYTES
    assert len(deliveries.time_ms) == pytest.approx(expected, abs=1.01)


def test_deliveries_of_a_constant_rate_are_evenly_spaced():
    deliveries = RateTrace([0], [12.032], period_s=1).to_deliveries()
    assert np.array_equal(deliveries.time_ms, np.arange(1, 1001))
    assert deliveries.mean_mbps() == pytest.approx(12.032)


def test_gaps():
    assert RateTrace([0, 1, 1.5], [5, 0, 5], period_s=2).longest_gap_s == 0.5
    assert RateTrace([0, 1, 1.5], [0, 5, 0], period_s=2).longest_gap_s == 1.5  # across the restart
    assert DeliveryTrace([0, 10, 500], period_ms=600).longest_gap_s == pytest.approx(0.49)
    assert DeliveryTrace([300, 310], period_ms=1000).longest_gap_s == pytest.approx(0.99)


def test_delivery_trace_means():
    trace = DeliveryTrace([1, 1, 2, 1000])
    assert trace.period_ms == 1000
    assert trace.mean_mbps() == pytest.approx(4 * OPPORTUNITY_BYTES * 8 / 1e6)
    assert trace.mean_mbps(0.5) == pytest.approx(3 * OPPORTUNITY_BYTES * 8 / 0.5e6)
    assert trace.mean_mbps(2.5) == pytest.approx(11 * OPPORTUNITY_BYTES * 8 / 2.5e6)
    assert trace.to_rates(0.5).rate_mbps.tolist() == pytest.approx([3 * 1504 * 16 / 1e6, 1504 * 16 / 1e6])


@given(st.lists(st.integers(1, 9000), min_size=1, max_size=50), st.sampled_from([0.01, 0.1, 0.7, 1, 2, 100]))
def test_rates_of_deliveries_keep_period_and_mean(time_ms, step_s):
    trace = DeliveryTrace(sorted(time_ms))
    rates = trace.to_rates(step_s)
    assert rates.period_s == trace.duration_s and rates.mean_mbps() == pytest.approx(trace.mean_mbps())
    assert rates.time_s == pytest.approx(np.arange(len(rates.time_s)) * step_s)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=50))
def test_the_peak_is_not_below_the_mean(time_ms):
    trace = DeliveryTrace(sorted(time_ms))
    assert trace.peak_mbps >= trace.mean_mbps()


def test_the_peak_of_deliveries():
    assert DeliveryTrace([1, 2, 10]).peak_mbps == DeliveryTrace([1, 2, 10]).mean_mbps() == pytest.approx(3 * 1504 * 8 / 1e4)
    assert DeliveryTrace([1, 2, 310, 950, 1000]).peak_mbps == pytest.approx(2 * 1504 * 8 / 1e5)


def test_the_last_step_is_what_is_left_of_the_period():
    trace, packet = DeliveryTrace([1, 1000, 1500, 4100, 5000]), 1504 * 8 / 1e6
    rates = trace.to_rates(2)
    assert rates.time_s.tolist() == [0, 2, 4] and rates.period_s == 5
    assert rates.rate_mbps.tolist() == pytest.approx([3 * packet / 2, 0, 2 * packet])
    rates = trace.to_rates(8)
    assert rates.time_s.tolist() == [0] and rates.period_s == 5 and rates.rate_mbps.tolist() == pytest.approx([packet])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "time_s is empty"),
        (([0, 1], [5]), "rate_mbps has 1 values for 2"),
        (([0, 1], [5, -1]), r"rate_mbps\[1\] = -1 is out of range"),
        (([0, 1], [5, math.nan]), r"rate_mbps\[1\] = nan"),
        (([0, 1], [5, math.inf]), r"rate_mbps\[1\] = inf"),
        (([0, 2, 1], [5, 5, 5]), r"time_s\[2\] = 1 is not after 2"),
        (([0, 1, 1], [5, 5, 5]), r"time_s\[2\] = 1 is not after 1"),
        (([1, 2], [5, 5]), r"time_s\[0\] = 1"),
        (([-1, 2], [5, 5]), r"time_s\[0\] = -1"),
        (([0, 1], [0, 0], 2), "is 0 throughout"),
        (([0, 1], [5, 0]), "ends in 0"),
        (([0, 1], [5, 5], 1), "period_s = 1 is not above"),
        (([0, 1], [5, 5], math.nan), "period_s = nan"),
        (([[0, 1]], [5]), r"shape \(1, 2\)"),
    ],
)
def test_rate_trace_refuses_what_is_wrong(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        RateTrace(*arguments)


@pytest.mark.parametrize("times", ["0,1", 3, None, ["a"], [[0], [1, 2]], [None]])
def test_traces_refuse_what_is_no_list_of_numbers(times):
    with pytest.raises(ScenarioTypeError, match="is not a list"):
        RateTrace(times, [1])
    with pytest.raises(ScenarioTypeError, match="is not a list"):
        DeliveryTrace(times)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "time_ms is empty"),
        (([5, 4],), r"time_ms\[1\] = 4 is before 5"),
        (([-1, 4],), r"time_ms\[0\] = -1"),
        (([0, math.nan],), r"time_ms\[1\] = nan"),
        (([0, 0],), "period_ms = 0"),
        (([0, 10], 9), "period_ms = 9 is below the last"),
    ],
)
def test_delivery_trace_refuses_what_is_wrong(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        DeliveryTrace(*arguments)


def test_traces_are_values():
    a, b = RateTrace([0, 1], [5, 6]), RateTrace([0.0, 1.0], [5.0, 6.0])
    assert a == b and hash(a) == hash(b) and a != RateTrace([0, 1], [5, 7])
    assert DeliveryTrace([1, 2]) == DeliveryTrace([1.0, 2.0]) != DeliveryTrace([1, 3])
    assert a != DeliveryTrace([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        a.time_s[0] = 3


def test_the_mean_of_a_trace_that_does_not_repeat_goes_until_its_last_step():
    assert RateTrace([0, 1, 4], [10, 20, 90]).mean_mbps() == pytest.approx((10 + 3 * 20) / 4)
    assert RateTrace([0], [7]).mean_mbps() == 7
    assert RateTrace([0, 5], [0, 3]).mean_mbps() == 3  # an outage until then


@pytest.mark.parametrize("rate", [1e-7, -1.0, 1e7, np.nan])
def test_rates_below_a_bit_a_second_are_refused(rate):
    with pytest.raises(ScenarioError, match=r"rate_mbps\[1\] = .* valid: 0 \(an outage\), or 1e-06 to 1e\+06"):
        RateTrace([0, 1], [5, rate])
    RateTrace([0, 1], [5, 1e-6])


def test_deliveries_for_a_mahimahi_file_keep_length_and_mean():
    trace = RateTrace([0, 5], [12, 0], 10).to_deliveries()
    made = trace.to_mahimahi()
    assert made.period_ms == made.time_ms[-1] == 10_000 and made.mean_mbps() == trace.mean_mbps()
    assert np.array_equal(made.time_ms[:-1], trace.time_ms[:-1])
    assert DeliveryTrace([0.2, 1.5], 7.4).to_mahimahi().time_ms.tolist() == [1, 7]
    whole = DeliveryTrace([1, 2, 9])
    assert whole.to_mahimahi() == whole
