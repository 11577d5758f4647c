"""Golden values of the reward terms, computed by hand, and the checks of their parameters."""

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import make_reward, reward_spec
from netbuf_gym.tasks.congestion_window import REWARDS
from tests.tasks.hand_made import after_two_intervals, telemetry, tracker


def terms(spec, made):
    reward = make_reward(spec, REWARDS)
    out = np.full((len(reward.terms), made.rows), np.nan, np.float32)
    reward(made, out)
    return out[:, 0]


# Half the capacity at twice the base RTT, a fifth of the packets lost; but for the sign, per second.
@pytest.mark.parametrize(
    ("spec", "golden"),
    [
        ("log_utility", [-0.3465736, -0.3465736, 0]),
        ({"name": "log_utility", "throughput_weight": 1, "delay_weight": 2, "loss_weight": 3}, [-0.6931472, -1.3862944, -0.6]),
        ({"name": "log_utility", "floor": 0.75}, [-0.1438410, -0.3465736, 0]),
        ("linear_utility", [-0.25, -0.5, 0]),
        ({"name": "linear_utility", "cap": 1.5}, [-0.25, -0.25, 0]),
        ("utility_sign", [1]),  # throughput doubled, RTT grew by two thirds
        ({"name": "utility_sign", "throughput_weight": 0.4}, [-1]),  # 0.4 ln 2 - 0.6 ln (10 / 6) < 0
        ({"name": "alpha_fair", "alpha": 0.5}, [0.5656854, -0.2529822, -0.1788854]),
        ("power", [0.25]),
        ({"name": "power", "exponent": 2}, [0.125]),
    ],
)
def test_golden(spec, golden):
    per_second = 1 if "utility_sign" in (spec, spec["name"] if isinstance(spec, dict) else "") else 10
    np.testing.assert_allclose(per_second * terms(spec, after_two_intervals()), golden, atol=1e-6)


@pytest.mark.parametrize("name", REWARDS)
def test_always_finite(name):
    made = tracker()
    assert np.isfinite(terms(name, made)).all()
    for fields in ({}, {"rtt_mean_s": 1e-3, "rtt_min_s": 1e-3, "acks": 1, "throughput_bps": 1e9}, {}, {"packets_lost": 9}):
        made.update(telemetry(**fields))
        assert np.isfinite(terms(name, made)).all()


def test_sign_is_zero_until_two_round_trips_are_known_and_when_nothing_changes():
    made = tracker()
    measured = {"rtt_mean_s": 0.06, "rtt_min_s": 0.06, "acks": 5, "throughput_bps": 1e6}
    made.update(telemetry())
    assert terms("utility_sign", made)[0] == 0
    made.update(telemetry(**measured))
    assert terms("utility_sign", made)[0] == 0
    made.update(telemetry(**measured))
    assert terms("utility_sign", made)[0] == 0
    made.update(telemetry())  # a gap: throughput fell to 0
    assert terms("utility_sign", made)[0] == -1
    made.update(telemetry())
    assert terms("utility_sign", made)[0] == 0


def test_sums_do_not_depend_on_how_often_is_decided():
    whole, half = tracker(), tracker()
    fields = {"rtt_mean_s": 0.1, "rtt_min_s": 0.1, "acks": 5, "throughput_bps": 1e6}
    whole.update(telemetry(**fields))
    half.update(telemetry(**fields, elapsed_s=0.05))
    for name in ("log_utility", "linear_utility", "alpha_fair", "power"):
        np.testing.assert_allclose(terms(name, whole), 2 * terms(name, half), rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("utility", "reward"),
        (3, "reward"),
        ({"floor": 1}, "reward"),
        ({"name": "log_utility", "flor": 1}, "flor"),
        ({"name": "log_utility", "floor": 0}, "floor"),
        ({"name": "log_utility", "delay_weight": -1}, "delay_weight"),
        ({"name": "log_utility", "delay_weight": float("nan")}, "delay_weight"),
        ({"name": "alpha_fair", "alpha": -0.1}, "alpha"),
        ({"name": "alpha_fair", "floor": 0}, "floor"),
        ({"name": "power", "exponent": "2"}, "exponent"),
    ],
)
def test_bad_specifications_are_refused(spec, message):
    with pytest.raises(ConfigError, match=message):
        make_reward(spec, REWARDS)


def test_specifications_round_trip():
    for name in REWARDS:
        assert make_reward(reward_spec(make_reward(name, REWARDS)), REWARDS) == make_reward(name, REWARDS)
