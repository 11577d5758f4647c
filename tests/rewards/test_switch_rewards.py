"""Golden values of a switch's reward terms, computed by hand, and the checks of their parameters."""

import json
import math

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import make_reward, reward_spec
from netbuf_gym.tasks.queue_threshold import REWARDS
from tests.tasks.hand_made_switch import BUSY, telemetry, tracker


def terms(spec, made):
    reward = make_reward(spec, REWARDS)
    out = np.full((len(reward.terms), made.rows), np.nan, np.float32)
    reward(made, out)
    return out[:, 0]


def busy():
    made = tracker()
    made.update(telemetry(**BUSY))
    return made


# 100 kB of the 125 kB that the port can send; ratios 2 and 4; queues of 100 and 300 of 1000; 9 drops of 1.2 ms each.
@pytest.mark.parametrize(
    ("parameters", "golden"),
    [
        ({}, [0.08, -math.log(8), -0.1 * 0.4 * 0.1, 0, 0, 0]),
        ({"measure": "excess"}, [0.08, -4, -0.004, 0, 0, 0]),
        ({"measure": "relative"}, [0.08, -4 * (1 + 2 * math.exp(-0.01)) / (1 + 4 * math.exp(-0.01)), -0.004, 0, 0, 0]),
        ({"throughput_weight": 3, "slowdown_weight": 0.5, "buffer_weight": 1}, [0.24, -0.5 * math.log(8), -0.04, 0, 0, 0]),
        ({"buffer_weight": 1, "buffer_queues": [1, 0]}, [0.08, -math.log(8), -0.01, 0, 0, 0]),
        ({"slowdown_priorities": [2]}, [0.08, -2 * math.log(8), -0.004, 0, 0, 0]),
        ({"loss_weight": 10}, [0.08, -math.log(8), -0.004, -10 * 9 * 0.0012, 0, 0]),
        ({"delay_weight": 10, "delay_queues": [1, 0.5]}, [0.08, -math.log(8), -0.004, 0, -10 * (0.12 + 0.18) * 0.1, 0]),
        (  # queue 0 may take all that is free, queue 1 holds as much as 1 * 0.5 * 600
            {"burst_weight": 3, "burst_queues": [1, 2]},
            [0.08, -math.log(8), -0.004, 0, 0, -3 * 2 * 0.1],
        ),
        ({"burst_weight": 3, "burst_packets": 1000}, [0.08, -math.log(8), -0.004, 0, 0, -3 * 1.4 * 0.1]),
    ],
)
def test_switch_utility_golden(parameters, golden):
    np.testing.assert_allclose(terms({"name": "switch_utility", **parameters}, busy()), golden, rtol=1e-6, atol=1e-9)


def test_switch_log_golden():
    """A flow of ratio 2 and one of 4 in the first interval, of 0.1 s: 3 flows less what has decayed, in 10 s."""
    golden = [0.16, -math.log(8) * 10 / (1 + 2 * math.exp(-0.01)), 0]
    np.testing.assert_allclose(terms("switch_log", busy()), golden, rtol=1e-6)
    long = {"flows_completed": 1, "flows_completed_1": 1, "ratio_sum_1": 5.0, "log_ratio_sum_1": math.log(5)}
    made = tracker()
    made.update(telemetry(**long, delivered_bytes=25_000))
    weights = {"goodput_weight": 1, "short_weight": 3, "long_weight": 0.5}
    golden = [0.02, 0, -0.5 * math.log(5) * 10 / (1 + math.exp(-0.01))]
    np.testing.assert_allclose(terms({"name": "switch_log", **weights}, made), golden, rtol=1e-6)


def test_switch_log_comes_to_the_mean_logarithm_whatever_the_number_of_flows():
    """Of 60 s with 3 or 30 flows of ratio 4 a second: some 60 s times ln 4, once the rate is known."""
    for each in (3, 30):
        made, total = tracker(), 0.0
        flows = {"flows_completed": each / 10, "flows_completed_0": each / 10, "ratio_sum_0": 4 * each / 10}
        for step in range(1200):
            made.update(telemetry(**flows, log_ratio_sum_0=math.log(4) * each / 10))
            total += terms("switch_log", made)[1] if step >= 600 else 0
        assert total == pytest.approx(-60 * math.log(4), rel=0.05)


def test_thesis_text_golden():
    made = busy()
    np.testing.assert_allclose(terms("thesis_text", made), [-math.log(0.5), math.log(1 + 800)], rtol=1e-6)
    made.update(telemetry(packets_received=40))  # nothing completed: the last worst stands
    np.testing.assert_allclose(terms("thesis_text", made), [-math.log(0.5), math.log(1 + 400)], rtol=1e-6)
    made.update(telemetry(flows_completed=1, worst_difference_s=1e-5, worst_ratio=1.0))  # floored at a packet's 1.2 ms
    np.testing.assert_allclose(terms("thesis_text", made), [-math.log(0.0012), 0], rtol=1e-6)


def test_thesis_code_golden():
    made = busy()
    np.testing.assert_allclose(terms("thesis_code", made), [-2, math.log2(1.008)], rtol=1e-5)
    made.update(telemetry(delivered_bytes=125_000))
    np.testing.assert_allclose(terms("thesis_code", made), [-2, math.log2(1.01)], rtol=1e-5)
    made.update(telemetry(flows_completed=1, worst_difference_s=1.0, worst_ratio=8.0))
    np.testing.assert_allclose(terms("thesis_code", made), [-3, 0], rtol=1e-6)


@pytest.mark.parametrize("name", ["thesis_text", "thesis_code"])
def test_before_the_first_completion_slowdown_is_0(name):
    made = tracker()
    assert (terms(name, made) == 0).all()
    made.update(telemetry(packets_received=10, delivered_bytes=10_000))
    assert terms(name, made)[0] == 0 < terms(name, made)[1]


@pytest.mark.parametrize("name", REWARDS)
def test_always_finite(name):
    made = tracker()
    assert np.isfinite(terms(name, made)).all()
    for fields in ({}, BUSY, {}, {"elapsed_s": 60.0, "packets_dropped": 1e6, "drops_0": 1e6}):
        made.update(telemetry(**fields))
        assert np.isfinite(terms(name, made)).all()


def test_sums_do_not_depend_on_how_often_is_decided():
    once, twice = busy(), tracker()
    halved = {name: value / 2 for name, value in BUSY.items() if name in ("delivered_bytes",)}
    spread = {name: value for name, value in BUSY.items() if "ratio" in name or "completed" in name}
    queues = {name: value for name, value in BUSY.items() if name.startswith(("queue_", "free"))}
    twice.update(telemetry(elapsed_s=0.05, **halved, **queues))
    total = terms("switch_utility", twice)
    twice.update(telemetry(elapsed_s=0.05, **halved, **queues, **spread))
    np.testing.assert_allclose(total + terms("switch_utility", twice), terms("switch_utility", once), rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("log_utility", "reward"),
        ({"name": "switch_utility", "weight": 1}, "weight"),
        ({"name": "switch_utility", "measure": "cube"}, "measure"),
        ({"name": "switch_utility", "slowdown_weight": -1}, "slowdown_weight"),
        ({"name": "switch_log", "long_weight": -1}, "long_weight"),
        ({"name": "switch_utility", "slowdown_priorities": []}, "slowdown_priorities"),
        ({"name": "switch_utility", "slowdown_priorities": 1}, "slowdown_priorities"),
        ({"name": "switch_utility", "buffer_queues": [1, float("nan")]}, "buffer_queues"),
    ],
)
def test_bad_specifications_are_refused(spec, message):
    with pytest.raises(ConfigError, match=message):
        make_reward(spec, REWARDS)


def test_specifications_round_trip_through_json():
    for name in REWARDS:
        made = make_reward(name, REWARDS)
        assert make_reward(json.loads(json.dumps(reward_spec(made))), REWARDS) == made
