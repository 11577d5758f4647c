"""The papers' equations, each with an example that was worked out by hand."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.rewards import AlphaFair, LogUtility, RangeNormalized, ThreeSigmaRange, alpha_fair, in_range
from netbuf_gym.tasks.congestion_window import PPCC_FEATURES
from netbuf_gym.tasks.congestion_window.observations import observe_ppcc
from tests.tasks.hand_made import after_two_intervals, telemetry, tracker

# After two intervals of 0.1 s: half the fair share (2.3168 of 4.6336 Mbit/s), an RTT of 100 ms where the base is 50 ms, so
# 50 ms of queueing, a tenth of the scale of 0.5 s; 5 of 25 packets lost. x = 0.5, d = 0.1, l = 0.2, y = 2.


def terms(reward, made):
    out = np.full((len(reward.terms), made.rows), np.nan, np.float32)
    reward(made, out)
    return out[:, 0]


# ---- TCP-PPCC


def test_eq_8_of_tcp_ppcc_scales_features_by_fixed_ranges():
    # (X - X_min) / (X_max - X_min): 28,960 of 0 to 1e6 bytes, 0.1 of 0 to 0.5 s, 2.3168 of 0 to 20 Mbit/s
    seen = observe_ppcc(after_two_intervals(), np.empty((12, 1), np.float32))[:, 0]
    features = {feature.name: value for feature, value in zip(PPCC_FEATURES, seen, strict=True)}
    assert features["cwnd_bytes"] == pytest.approx(0.02896)
    assert features["rtt_mean_s"] == pytest.approx(0.2)
    assert features["throughput_bps"] == pytest.approx(0.11584)
    assert features["ssthresh_bytes"] == 1  # infinite: the upper end


def test_eq_8_as_a_function():
    # 12 of 10 to 20: 0.2; 25 lies half a range above
    np.testing.assert_allclose(in_range([10, 12, 20], 10, 20), [0, 0.2, 1])
    np.testing.assert_allclose(in_range([5, 25], 10, 20), [0, 1])
    np.testing.assert_allclose(in_range([5, 25], 10, 20, clip=False), [-0.5, 1.5])
    assert in_range(3.0, 3, 3) == 0 and in_range([1e308, -1e308], -1e300, 1e300, clip=False).tolist() == [1e6, -1e6]
    with pytest.raises(ConfigError, match=r"low = 2\.0 is above high = 1\.0"):
        in_range(1, 2, 1)
    with pytest.raises(ConfigError, match="high"):
        in_range(1, 2, math.nan)


def test_eqs_2_and_3_of_tcp_ppcc_are_the_sign_of_a_change():
    from netbuf_gym.tasks.congestion_window.rewards import UtilitySign

    # U = a ln(thr) - b ln(RTT): throughput doubled, RTT from 60 to 100 ms. 0.5 ln 2 - 0.5 ln(5/3) = 0.0912 > 0
    assert terms(UtilitySign(), after_two_intervals())[0] == 1
    # 0.4 ln 2 - 0.6 ln(5/3) = 0.2773 - 0.3065 < 0
    assert terms(UtilitySign(0.4), after_two_intervals())[0] == -1


def test_log_utility():
    # 0.1 s of 0.5 ln 0.5 - 0.5 ln 2 - 1 * 0.2
    expected = [0.1 * 0.5 * math.log(0.5), -0.1 * 0.5 * math.log(2), -0.1 * 0.2]
    np.testing.assert_allclose(terms(LogUtility(loss_weight=1), after_two_intervals()), expected, rtol=1e-6)


# ---- Nuwa: U(z) = z^(1 - alpha) / (1 - alpha), ln z for alpha = 1; 0.4 U(x) - 0.4 U(d) - 0.2 U(l)


@pytest.mark.parametrize(
    ("parameters", "per_second"),
    [
        ({"alpha": 0}, [0.4 * 0.5, -0.4 * 0.1, -0.2 * 0.2]),  # z itself
        ({"alpha": 0.5}, [0.5656854, -0.2529822, -0.1788854]),  # 2 sqrt(z)
        ({}, [0.7578583, -0.3981072, -0.2626528]),  # the paper's 0.6: z^0.4 / 0.4
        ({"alpha": 1}, [0.4 * -0.6931472, -0.4 * -2.3025851, -0.2 * -1.6094379]),  # ln z
        ({"alpha": 2}, [0.4 * -2, -0.4 * -10, -0.2 * -5]),  # -1 / z
        ({"alpha": 3}, [0.4 * -2, -0.4 * -50, -0.2 * -12.5]),  # -1 / (2 z^2)
        ({"alpha": 2, "floor": 0.25}, [0.4 * -2, -0.4 * -4, -0.2 * -4]),  # d and l count as 0.25
        ({"alpha": 0.5, "floor": 0.25}, [0.5656854, -0.2529822, -0.1788854]),  # no floor below 1
        ({"alpha": 50}, [-0.4 * 2.0**49 / 49, 0.4 * 1e49 / 49, 0.2 * 5.0**49 / 49]),
    ],
)
def test_alpha_fair(parameters, per_second):
    expected = 0.1 * np.clip(per_second, -0.4e30, 0.4e30)  # no utility is beyond 1e30, which float32 holds
    if parameters.get("alpha") == 50:
        expected[2] = min(expected[2], 0.1 * 0.2e30)
    np.testing.assert_allclose(terms(AlphaFair(**parameters), after_two_intervals()), expected, rtol=2e-6)


@pytest.mark.parametrize("alpha", [0, 0.3, 0.99, 0.995, 1 - 1e-5, 1, 1 + 1e-5, 1.5, 2, 7])
def test_differences_of_utility_are_the_integral_of_z_to_the_minus_alpha(alpha):
    low, high = 0.05, 0.9
    nodes, weights = np.polynomial.legendre.leggauss(60)  # over ln z, in which the integrand is z^(1 - alpha)
    ends = math.log(low), math.log(high)
    log_z = (ends[1] - ends[0]) / 2 * nodes + sum(ends) / 2
    expected = (ends[1] - ends[0]) / 2 * float(weights @ np.exp((1 - alpha) * log_z))
    below, above = alpha_fair([low, high], alpha)
    assert above - below == pytest.approx(expected, rel=1e-7)


def test_alpha_next_to_1_is_the_logarithm():
    z = np.array([0.0, 0.005, 0.02, 0.5, 1.0])
    for alpha in (1 - 1e-9, 1, 1 + 1e-9, np.nextafter(1, 0), np.nextafter(1, 2)):
        np.testing.assert_allclose(alpha_fair(z, alpha), np.log(np.maximum(z, 0.01)), rtol=1e-8)
    one = terms(AlphaFair(alpha=1), after_two_intervals())
    for alpha in (1 - 1e-9, 1 + 1e-9):
        np.testing.assert_allclose(terms(AlphaFair(alpha=alpha), after_two_intervals()), one, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_no_alpha_makes_it_infinite():
    quiet = tracker()
    with np.errstate(all="raise", under="ignore"):
        for alpha in (0, 0.5, 0.99, 0.9999, 1 - 1e-7, 1, 1 + 1e-7, 1.01, 2, 50, 1e3, 1e9, 1e300, 1.7e308):
            for floor in (1e-6, 0.01, 1):
                reward = AlphaFair(alpha=alpha, floor=floor, throughput_weight=100, delay_weight=100, loss_weight=100)
                for made in (quiet, after_two_intervals()):
                    found = terms(reward, made)
                    assert np.isfinite(found).all() and np.isfinite(found.sum())
                u = alpha_fair(np.linspace(0, 1, 50), alpha, floor)
                assert np.isfinite(u).all() and (np.diff(u) >= 0).all() and np.abs(u).max() <= 1e30 * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [-0.1, math.inf, math.nan, "1", None])
def test_what_is_no_alpha_is_refused(alpha):
    with pytest.raises(ConfigError, match="alpha"):
        AlphaFair(alpha=alpha)


# ---- Auter: R(v) = (v - v_min) / (v_max - v_min) over the samples so far without three-sigma outliers


def test_three_sigma_range_by_hand():
    own = ThreeSigmaRange()
    assert math.isnan(own.low) and own.normalize([3.0]) == [0]
    own.update([10.0] * 10)
    assert (own.low, own.high) == (10, 10) and own.normalize([12.0]) == [0]  # all alike
    own.update([20.0] * 10)
    assert own.normalize([10, 12, 15, 20]) == pytest.approx([0, 0.2, 0.5, 1])
    # mean 400 / 21 = 19.05, deviation sqrt(15000 / 21 - 19.05^2) = 18.75: 100 is beyond 19.05 + 3 * 18.75 = 75.3
    own.update(100.0)
    assert own.count == 21 and (own.low, own.high) == (10, 20)
    np.testing.assert_allclose(own.normalize([12, 100]), [0.2, 1])
    np.testing.assert_allclose(own.normalize([12, 100], clip=False), [0.2, 9])
    # nine more: mean 43.3, deviation sqrt(105000 / 30 - 43.3^2) = 40.3: 100 is within 164, and counts
    own.update([100.0] * 9)
    assert (own.low, own.high) == (10, 100) and own.normalize([12])[0] == pytest.approx(2 / 90)


def test_three_sigma_range_is_that_of_all_samples_remembered():
    rng, own, every = np.random.default_rng(1), ThreeSigmaRange(memory=200), []
    for _ in range(60):
        batch = rng.standard_cauchy(rng.integers(0, 12))
        every = [*every, *batch][-200:]
        own.update(batch)
        own.update([math.nan, math.inf])  # not measured
        if every:
            samples = np.array(every)
            kept = samples[np.abs(samples - samples.mean()) <= 3 * samples.std()]
            assert (own.low, own.high) == (kept.min(), kept.max()) and own.count == len(every)
    own.update(rng.normal(size=1000))
    assert own.count == 200
    again = ThreeSigmaRange(memory=200)
    again.load(own.to_dict())
    for one in (own, again):
        one.update([0.5, 9.0])
    assert again.to_dict() == own.to_dict() and (again.low, again.high) == (own.low, own.high)
    state = own.to_dict()
    for damaged in (None, {}, {**state, "samples": [math.nan]}, {**state, "memory": 3}, {**state, "samples": 3}):
        with pytest.raises(CheckpointError):
            again.load(damaged)
    for arguments in ({"memory": 1}, {"memory": 2.5}, {"sigmas": 0}):
        with pytest.raises(ConfigError):
            ThreeSigmaRange(**arguments)


def test_range_normalized_reward_by_hand():
    reward, made = RangeNormalized(throughput_weight=1, delay_weight=0.5, loss_weight=0.25), tracker()
    # throughput / share, queueing in s, loss: (0.25, 0.01, 0), (0.5, 0.05, 0.2), then (0.375, 0.03, 0.05)
    made.update(telemetry(rtt_mean_s=0.06, throughput_bps=1.1584e6, segments_acked_sum=10))
    assert terms(reward, made).tolist() == [0, 0, 0]
    made.update(telemetry(rtt_mean_s=0.1, throughput_bps=2.3168e6, segments_acked_sum=20, packets_lost=5))
    np.testing.assert_allclose(terms(reward, made), [1, -0.5, -0.25], rtol=1e-6)
    made.update(telemetry(rtt_mean_s=0.08, throughput_bps=1.7376e6, segments_acked_sum=19, packets_lost=1))
    np.testing.assert_allclose(terms(reward, made), [0.5, -0.5 * 0.5, -0.25 * 0.25], rtol=1e-5)


def test_range_normalized_is_bounded_by_its_weights_and_equal_by_its_parameters():
    rng, reward = np.random.default_rng(0), RangeNormalized(memory=50)
    made = tracker(4)
    for _ in range(40):
        made.update(telemetry(4, throughput_bps=rng.pareto(0.5, 4) * 1e6, rtt_mean_s=0.05 + rng.pareto(0.5, 4)))
        out = np.empty((3, 4), np.float32)
        reward(made, out)
        assert (out[0] >= 0).all() and (out[0] <= 1).all() and (out[1] <= 0).all() and (out[1] >= -0.5).all()
    assert reward == RangeNormalized(memory=50) != RangeNormalized()
    with pytest.raises(ConfigError, match="memory"):
        RangeNormalized(memory=0)
    with pytest.raises(ConfigError, match="clip"):
        RangeNormalized(clip="yes")


@pytest.mark.parametrize(
    ("values", "alpha", "floor", "named"),
    [
        ([0.5], -1, 0.01, "alpha = -1"),
        ([0.5], float("nan"), 0.01, "alpha = nan"),
        ([0.5], "1", 0.01, "alpha = '1'"),
        ([0.5], True, 0.01, "alpha = True"),
        ([0.5], 2, 0, "floor = 0"),
        ([0.5, -0.1], 0.5, 0.01, "values = "),
        (["a"], 0.5, 0.01, "values = "),
    ],
)
def test_utilities_of_what_has_none_are_refused(values, alpha, floor, named):
    with pytest.raises(ConfigError, match=named):
        alpha_fair(values, alpha, floor)


def test_utilities_of_what_was_not_measured_are_not_measured():
    for alpha in (0, 0.5, 1, 2, 1e6):
        assert np.isnan(alpha_fair([float("nan"), 0.5], alpha)).tolist() == [True, False]


# ---- A floor on a receiver's data


def test_a_floor_on_data_prices_what_is_lacking_while_the_mean_is_below_it():
    from netbuf_gym.tasks.receiver_window.rewards import FlooredUtility
    from tests.tasks import hand_made_receiver as receiver

    made, reward = receiver.tracker(), FlooredUtility(data_floor=0.8, floor_weight=3)
    made.update(receiver.arrived(10, goodput_bps=2.3168e6))  # half of the fair share of 4.6336 Mbit/s, in 0.1 s
    assert terms(reward, made)[3] == pytest.approx(3 * (0.5 - 0.8) * 0.1)
    made.update(receiver.arrived(10, goodput_bps=4.6336e6))  # the mean is 0.75
    assert terms(reward, made)[3] == pytest.approx(3 * (1 - 0.8) * 0.1)
    made.update(receiver.arrived(10, goodput_bps=4.6336e6))  # the mean is 5/6
    assert terms(reward, made)[3] == 0
    np.testing.assert_array_equal(terms(reward, made)[:3], terms(AlphaFair(), made))


@pytest.mark.parametrize("given", [{"data_floor": 1.1}, {"data_floor": -0.1}, {"floor_weight": -1}])
def test_floors_out_of_range_are_refused(given):
    from netbuf_gym.tasks.receiver_window.rewards import FlooredUtility

    with pytest.raises(ConfigError, match=f"^{next(iter(given))} = "):
        FlooredUtility(**given)
