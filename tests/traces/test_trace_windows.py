"""Windows of traces: what they carry, and which are left out."""

import numpy as np
import pytest

from netbuf_gym import traces
from netbuf_gym.traces import DeliveryTrace, RateTrace
from netbuf_gym.traces.windows import cut_window, find_window_starts, has_capacity

STEPS = RateTrace([0, 1, 2.5, 4], [8, 0, 2, 4], 6.0, name="steps")


def test_a_window_has_the_rates_of_its_time():
    window = cut_window(STEPS, 0.5, 3.0)
    assert window.name == "steps" and window.duration_s == 3
    assert window.time_s.tolist() == [0, 0.5, 2.0] and window.rate_mbps.tolist() == [8, 0, 2]


@pytest.mark.parametrize("start_s", [0.0, 2.5, 4.7, 6.0, 11.3])
def test_a_window_goes_on_over_the_end_of_its_trace(start_s):
    window, at_s = cut_window(STEPS, start_s, 5.0), np.arange(0.05, 5, 0.1)
    assert np.array_equal(window.rate_at_mbps(at_s), STEPS.rate_at_mbps(start_s + at_s))


@pytest.mark.parametrize("start_s", [0.0, 0.003, 0.35, 1.9])
def test_windows_of_deliveries_have_those_of_their_time(start_s):
    trace = DeliveryTrace([1, 1, 7, 400, 900, 1000])
    window = cut_window(trace, start_s, 2.0)
    several = np.concatenate([trace.time_ms + 1000 * k for k in range(5)])
    expected = several[(several > start_s * 1e3) & (several <= start_s * 1e3 + 2000)] - start_s * 1e3
    assert np.allclose(window.time_ms, expected) and window.duration_s == 2
    assert window.mean_mbps() == pytest.approx(trace.mean_mbps())


def test_nothing_is_no_window():
    assert cut_window(STEPS, 1.2, 1.0) is None
    assert cut_window(DeliveryTrace([1, 5000]), 1.0, 2.0) is None


def test_windows_that_are_outages_throughout_are_left_out():
    rate = np.r_[np.full(10, 5.0), np.full(10, 0.002), np.zeros(10), np.full(9, 0.1), 0.4, np.full(7, 3.0)]
    trace = RateTrace(np.arange(47.0), rate, 47.0)
    assert find_window_starts(trace, 10.0) == [0, 30]  # the last seven seconds are no whole window
    assert not has_capacity(cut_window(trace, 10, 10)) and has_capacity(cut_window(trace, 30, 10))
    assert find_window_starts(trace, 60.0) == [0]
    assert find_window_starts(RateTrace([0], [0.2], 40.0), 10.0) == []


def test_windows_of_generated_traces_add_up_to_them():
    trace = traces.generate("4g", duration_s=20, seed=5)
    parts = [cut_window(trace, start_s, 5.0) for start_s in (0, 5, 10, 15)]
    assert sum(len(part.time_ms) for part in parts) == len(trace.time_ms)
