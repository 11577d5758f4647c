"""Congestion controls rank on generated traces as they do on measured ones."""

import numpy as np
import pytest

from netbuf_gym.traces import DeliveryTrace, RateTrace, generate
from netbuf_gym.traces.calibration import SPLIT, read_part
from netbuf_gym.validation.networks import (
    BUFFERS,
    compare,
    compute_utility,
    cut_windows,
    plot_likeness,
    rank_controls,
    rank_correlation,
)
from netbuf_gym.validation.networks import summarise_generated as summary_of_generated
from tests.helpers.release_cases import for_release

MEASURED = {
    "4g": {
        "newreno": 0.260,
        "cubic": 0.220,
        "bbr": 0.246,
        "bbrplus": 0.293,
        "vegas": 0.540,
        "westwood": 0.301,
        "copa": 0.504,
        "vivace": -0.069,
        "inigo": 0.471,
    },
    "5g": {"newreno": 0.252, "cubic": 0.221, "bbr": 0.355, "vegas": 0.501, "westwood": 0.282},
}
"""Mean utilities on the evaluation traces, as `netbuf-gym trace rank` gives them (docs/appendix/validation.md)."""


@pytest.mark.slow
@pytest.mark.parametrize("network", ["5g", *for_release("4g")])
def test_generated_traces_rank_controls_as_measured_ones_do(network):
    stored = np.array(list(MEASURED[network].values()))
    made = [generate(network, duration_s=40, seed=seed) for seed in range(14)]
    utilities = rank_controls(made, tuple(MEASURED[network])).mean(axis=0)
    assert rank_correlation(utilities, stored) >= 0.8
    assert np.abs(utilities - stored).max() < 0.12


def test_utility_is_of_goodput_delay_and_loss():
    steady = RateTrace([0], [10], 20)
    high, low = compute_utility(steady, "vegas", "250 packets"), compute_utility(steady, "cubic", "250 packets")
    assert 0.7 < high <= 1
    assert low < high - 0.3  # a queue of 250 packets is 0.3 s here
    assert compute_utility(steady, "cubic", "1 BDP") > low


def test_windows_are_whole_and_carry_something():
    deliveries = DeliveryTrace(np.arange(1, 200_001, 2))
    assert [window.duration_s for window in cut_windows([deliveries], most=2)] == [60, 60]
    rates = RateTrace([0, 60, 90], [0, 8, 2], 120)
    (window,) = cut_windows([rates])
    assert window.rate_mbps.tolist() == [8, 2] and window.time_s.tolist() == [0, 30] and window.duration_s == 60
    assert cut_windows([RateTrace([0], [0.1], 120)]) == []


def test_rank_correlation():
    assert rank_correlation(np.array([1, 5, 9.0]), np.array([0.1, 0.2, 4])) == pytest.approx(1)
    assert rank_correlation(np.array([1, 2, 3, 4, 5.0]), np.array([1, 2, 3, 5, 4.0])) == pytest.approx(0.9)


@pytest.mark.slow
def test_likeness_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    for network in SPLIT:
        summary = summary_of_generated(network, count=2)
        plot_likeness(network, summary, summary, tmp_path / f"{network}.png")
        assert (tmp_path / f"{network}.png").stat().st_size > 5000


@pytest.mark.slow
def test_measured_windows_rank_as_stored(shared):
    stored = MEASURED["4g"]
    utilities = rank_controls(cut_windows(read_part(shared / "traces", "4g", "evaluation"), most=1), tuple(stored)).mean(axis=0)
    assert len(BUFFERS) == 3 and rank_correlation(utilities, np.array(list(stored.values()))) >= 0.7


@pytest.mark.slow
def test_measured_traces_are_compared(shared):
    found = compare(shared / "traces", "4g", "evaluation", count=20)
    assert found["generated"]["rate_100ms"] < 2 * found["measured"]["rate_100ms"] + 0.05
