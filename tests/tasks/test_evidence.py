"""The recipe robust: the least mean round trip, and evidence on queues, jitter and losses, against laws and by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.observations import (
    DEFAULT_FEATURES,
    EVIDENCE_FEATURES,
    ROBUST_FEATURES,
    observe_default,
    observe_robust,
)
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from tests.tasks.hand_made import MSS, acknowledged, decided, telemetry, tracker
from tests.tasks.test_sender_arithmetic import random_telemetry

BASE_S = 0.05


def robust(rows=1, **options):
    return tracker(rows, task=CongestionWindow("robust", **options))


def observe(made):
    """Return the features of the first row by name."""
    out = observe_robust(made, np.empty((len(ROBUST_FEATURES), made.rows), np.float32))
    return SimpleNamespace(**dict(zip((feature.name for feature in ROBUST_FEATURES), out[:, 0].tolist(), strict=True)))


def log_ms(ms, high=1000.0):
    return pytest.approx(np.log(1 + ms) / np.log(1 + high), abs=2e-3)


def interval(segments, rtt_s, **fields):
    """An interval in which `segments` were acknowledged, with as many in flight as the round trip holds."""
    in_flight = segments * rtt_s / 0.1
    own = {"bytes_in_flight_mean": in_flight * MSS, "segments_acked_mean": 1, "rtt_min_ever_s": BASE_S}
    return acknowledged(segments, rtt_s, **own | fields)


def follow(made, windows, answer):
    """Follow intervals with these segments in flight; `answer` gives round trip and segments acknowledged a second."""
    for window in windows:
        rtt_s, rate = answer(window)
        fields = {"segments_acked_sum": rate / 10, "throughput_bps": rate * MSS * 8, "receive_interval_mean_s": 0.1 / rate}
        fields |= {"acks": rate, "bytes_in_flight_mean": window * MSS, "segments_acked_mean": 1, "rtt_min_ever_s": BASE_S}
        made.update(acknowledged(1, rtt_s, **fields))
    return observe(made)


SAW = [10 + step % 7 for step in range(60)]


def test_the_first_features_are_those_of_the_default_recipe_but_for_the_least_round_trip():
    names = [feature.name for feature in ROBUST_FEATURES]
    assert names[: len(DEFAULT_FEATURES)] == [feature.name for feature in DEFAULT_FEATURES] and len(set(names)) == len(names)
    rng, usual, made = np.random.default_rng(0), tracker(64, task=CongestionWindow()), robust(64)
    for _ in range(40):
        step = random_telemetry(rng, 64)
        step[:, TELEMETRY.index("rtt_min_s")] = step[:, TELEMETRY.index("rtt_mean_s")]  # no spread: one least round trip
        step[:, TELEMETRY.index("rtt_min_ever_s")] = np.nan
        usual.update(step)
        made.update(step)
        made.base_ever[:] = 0  # as in telemetry without it
        out = [np.empty((len(features), 64), np.float32) for features in (DEFAULT_FEATURES, ROBUST_FEATURES)]
        observe_default(usual, out[0])
        observe_robust(made, out[1])
        assert np.array_equal(out[0], out[1][: len(DEFAULT_FEATURES)])
        assert np.isfinite(out[1]).all() and (np.abs(out[1]) <= 1).all()


def test_the_base_is_the_least_mean_round_trip_in_drains_too():
    made = robust()
    for mean, least in ((0.07, 0.055), (0.06, 0.058), (0.08, 0.056)):
        made.update(acknowledged(10, mean, rtt_min_s=least, rtt_min_ever_s=0.055))
        assert made.rtt_known[0]
    assert made.least_rtt[0] == np.float32(0.06) == made.base_ever[0]
    task = CongestionWindow("robust")
    for _ in range(80):
        made.update(acknowledged(10, 0.09, rtt_min_s=0.055, rtt_min_ever_s=0.055, cwnd_bytes=80 * MSS))
    assert made.draining_s[0] > 0  # the least round trip of a packet does not count as the base seen
    made.update(acknowledged(10, 0.065, rtt_min_s=0.055, rtt_min_ever_s=0.055, cwnd_bytes=80 * MSS))
    while made.draining_s[0] > 0:
        made.update(acknowledged(10, 0.07, rtt_min_s=0.055, rtt_min_ever_s=0.055, cwnd_bytes=80 * MSS))
    assert made.least_rtt[0] == np.float32(0.065) and made.base_ever[0] == np.float32(0.06)
    assert observe(made).least_rtt_risen == pytest.approx(np.log(65 / 60) / np.log(16), abs=1e-4)
    assert not np.isnan(decided(task, made, 5)[0])


def test_a_queue_that_stands_since_the_start_is_no_base():
    """One packet took 10 ms, all later ones wait for 20 ms; means exceed the least round trips of their intervals by 1 ms."""
    made = robust(slow_start=False)
    made.update(acknowledged(10, 0.02, rtt_min_s=0.01, cwnd_bytes=80 * MSS))
    assert made.least_rtt[0] == np.float32(0.02)
    for step in range(1, 100):
        made.update(acknowledged(10, 0.03, rtt_min_s=0.029, cwnd_bytes=80 * MSS))
        spread_ms = 1 + 9 * np.exp(-step * 0.1 / 2)  # which falls from 10 ms with a time constant of 2 s
        assert made.least_rtt[0] == pytest.approx(min(0.01 + 3e-3 * spread_ms, 0.02), rel=1e-4)
        if made.draining_s[0] > 0:
            break
    assert step == 80  # not seen for 8 s
    for _ in range(2):
        made.update(acknowledged(10, 0.026, rtt_min_s=0.025, cwnd_bytes=80 * MSS))
    assert made.draining_s[0] == 0 and made.least_rtt[0] == np.float32(0.026)  # the path is longer now


def test_jitter_raises_the_base_within_three_spreads():
    """Means 9 ms above the least of their intervals: the least mean counts, however short a packet's round trip was."""
    made = robust(slow_start=False)
    for mean, least in ((0.05, 0.041), (0.049, 0.04), (0.052, 0.043), (0.047, 0.031)):
        made.update(acknowledged(40, mean, rtt_min_s=least))
    assert made.least_rtt[0] == np.float32(0.047)


DOUBLE = 11
"""The last of the actions."""


def lose(lost, acked=20, window=20, recipe="robust", rounds=1):
    """A sender after round trips of one interval each, in each of which so much was lost."""
    task = CongestionWindow(recipe, slow_start=False)
    made = tracker(task=task)
    for _ in range(rounds):
        made.update(acknowledged(acked, 0.1, packets_lost=lost, cwnd_bytes=window * MSS))
    return task, made


def test_one_lossy_round_trip_cuts_a_window():
    """5 % of 20 segments; the default recipe bears a tenth, and two round trips of any loss."""
    task, made = lose(1, 19)
    assert made.held_s[0] > 0 and decided(task, made, DOUBLE) == [pytest.approx(0.9 * 19)]
    for lost, acked, recipe, rounds in (
        (1, 9, "robust", 1),
        (1, 60, "robust", 1),
        (1, 19, "default", 9),
        (10, 10, "default", 2),
    ):
        assert lose(lost, acked, recipe=recipe, rounds=rounds)[1].held_s[0] == 0, (lost, acked, recipe)


def test_a_burst_of_losses_takes_less_than_a_third_and_losses_that_go_on_what_did_not_arrive():
    task, made = lose(10, 10)
    assert decided(task, made, DOUBLE) == [pytest.approx(14)]
    task, made = lose(10, 10, rounds=3)
    assert decided(task, made, DOUBLE) == [pytest.approx(0.9 * 10)]


@pytest.mark.parametrize(("lost", "timeouts", "careful"), [(1, 0, True), (6, 0, True), (7, 0, False), (1, 1, False)])
def test_after_losses_a_window_grows_by_a_segment_a_round_trip_for_three_seconds(lost, timeouts, careful):
    """Unless more than three tenths are lost at once, or a time-out comes, as in outages."""
    task, made = lose(lost, 20 - lost)
    made.update(acknowledged(20, 0.1, cwnd_bytes=20 * MSS, timeouts=timeouts))  # held for a round trip
    grown = []
    for _ in range(40):
        made.update(acknowledged(20, 0.1, cwnd_bytes=20 * MSS))
        grown += decided(task, made, DOUBLE)
    slow = 28 if careful else 0
    assert grown == [pytest.approx(21)] * slow + [pytest.approx(max(grown))] * (40 - slow) and max(grown) > 25


def test_a_full_queue_of_ones_own_answers_in_the_round_trip_and_an_empty_one_in_the_rate():
    full = follow(robust(), SAW, lambda window: (window / 100, 100))  # 100 segments/s, all in flight beyond 5 are queued
    assert full.rtt_response == pytest.approx(0.5, abs=0.02) and full.rate_response == pytest.approx(0, abs=0.02)
    assert full.rtt_correlation == pytest.approx(1, abs=0.02)
    empty = follow(robust(), SAW, lambda window: (BASE_S, window / BASE_S))
    assert empty.rate_response == pytest.approx(0.5, abs=0.02) and empty.rtt_response == pytest.approx(0, abs=0.02)
    assert empty.rtt_correlation == pytest.approx(0, abs=0.02)
    shared = follow(robust(), SAW, lambda window: ((window + 30) / 400, 400 * window / (window + 30)))  # 30 of others
    assert shared.rtt_response == pytest.approx(13 / 43 / 2, abs=0.02)
    swing = np.std(SAW[-21:]) / np.mean(SAW[-21:])
    assert full.in_flight_swing == pytest.approx(swing, rel=0.1) == empty.in_flight_swing


def test_jitter_is_spread_that_does_not_answer_to_what_is_in_flight():
    rng, made = np.random.default_rng(1), robust()
    for window in SAW * 3:
        samples = BASE_S + rng.uniform(0, 0.02, window)
        made.update(interval(window, samples.mean(), rtt_min_s=samples.min()))
    seen = observe(made)
    ms = 10 - 20 / 14  # mean less least of 13 uniform ones
    assert seen.spread_ms == pytest.approx(np.log(1 + ms) / np.log(1001), abs=0.02)
    assert seen.spread == pytest.approx(np.log(1 + ms / (made.least_rtt[0] * 1e3)) / np.log(16), abs=0.01)
    assert seen.standing_queue_ms == 0 and abs(seen.rtt_correlation) < 0.6
    assert 0 < seen.swing_ms < 0.4 and seen.low_rtt_ms < 0.25


def test_delays_in_milliseconds_and_absolute_numbers():
    made = robust(drain=False)
    made.update(interval(20, BASE_S))
    for _ in range(400):
        made.update(interval(20, BASE_S + 0.013, rtt_min_s=BASE_S + 0.004))
    seen = observe(made)
    assert (seen.queue_ms, seen.standing_queue_ms, seen.spread_ms) == (log_ms(13), log_ms(4), log_ms(9))
    assert seen.low_rtt_ms == log_ms(4) and seen.swing_ms == log_ms(0, 1000)
    assert seen.least_rtt_ms == pytest.approx(np.log(50) / np.log(1000), abs=1e-4)
    rate = 200 * MSS * 8e-6
    assert seen.rate_mbps == pytest.approx(np.log(rate / 0.01) / np.log(1e6), abs=1e-3)
    assert seen.long_rate_trend == pytest.approx(0, abs=1e-3) == seen.peak_to_long_rate
    made.update(interval(20, BASE_S, acks=5, segments_acked_mean=4))
    assert observe(made).segments_per_ack == pytest.approx(np.log(4) / np.log(64))


def test_a_rate_above_the_long_one_is_seen_as_such():
    made = robust()
    for _ in range(400):
        made.update(interval(10, BASE_S))
    for _ in range(10):
        made.update(interval(40, BASE_S))
    seen, long_rate = observe(made), 10 + 30 * (1 - np.exp(-0.1))
    lately = 10 + 30 * (1 - np.exp(-1))
    assert seen.long_rate_trend == pytest.approx(np.log(lately / long_rate) / np.log(4), abs=0.01)
    assert seen.peak_to_long_rate == pytest.approx(np.log(40 / long_rate) / np.log(16), abs=0.01)


def losses(step_of, every=5):
    """Return what is observed after 40 s in which each `every`th interval is `step_of(True)`."""
    made = robust()
    for number in range(400):
        made.update(step_of(number % every == every - 1))
    return observe(made)


def test_losses_are_told_apart_by_the_queue_and_the_rate_at_which_they_come():
    overflow = losses(lambda lost: interval(20, 0.15 if lost else 0.06, packets_lost=6 * lost))
    policer = losses(lambda lost: interval(40 if lost else 20, BASE_S, packets_lost=20 * lost))
    random = losses(lambda lost: interval(20, BASE_S, packets_lost=1 * lost))
    for seen in (overflow, policer, random):
        assert seen.loss_share == pytest.approx(0.2, abs=0.03) and seen.loss_age == 0
    assert overflow.loss_queue_ms == log_ms(90) and policer.loss_queue_ms == random.loss_queue_ms == 0
    assert policer.loss_rate == pytest.approx(np.log(60 / 24) / np.log(4), abs=0.05)
    assert overflow.loss_rate == pytest.approx(np.log(26 / 20) / np.log(4), abs=0.02)
    assert random.loss_rate == pytest.approx(np.log(21 / 20) / np.log(4), abs=0.02)
    assert [round(1024**seen.loss_burst - 1, 1) for seen in (overflow, policer, random)] == [6, 20, 1]


def test_without_losses_and_before_anything_there_is_no_evidence():
    made = robust()
    made.update(telemetry())
    seen = vars(observe(made))
    assert {name for name in list(seen)[len(DEFAULT_FEATURES) :] if seen[name]} == {"loss_age"}
    for _ in range(99):
        made.update(interval(10, BASE_S))
    seen = observe(made)
    assert seen.loss_share == seen.loss_burst == seen.loss_queue_ms == seen.loss_rate == 0
    assert seen.loss_age == pytest.approx(np.log(11) / np.log(600), abs=1e-3)


def test_silence_changes_no_regression_and_a_new_world_forgets():
    made = robust()
    before = follow(made, SAW, lambda window: (window / 100, 100))
    for _ in range(20):
        made.update(telemetry())
    after = observe(made)
    for name in ("rtt_response", "rtt_correlation", "rate_response", "in_flight_swing", "swing_ms", "spread_ms"):
        assert getattr(after, name) == getattr(before, name)
    made.reset(slice(0, 1), initial_window=10 * MSS, highest_window=100 * MSS, mss_bytes=MSS, capacity_bps=1e7, share_bps=1e7,
               base_rtt_s=0.05, first_beside=0)  # fmt: skip
    fresh = robust()
    for one in (made, fresh):
        one.update(interval(10, 0.06))
    assert vars(observe(made)) == vars(observe(fresh))


def test_arrays_of_evidence_that_do_not_fit_are_refused():
    made = robust(4)
    evidence, logs, scales = made.evidence_arithmetic, np.zeros((15, 4), np.float32), np.zeros(15, np.float32)
    with pytest.raises(ValueError, match=r"telemetry must have shape \(rows, fields\)"):
        evidence.follow(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"out must have shape \(15, rows\)"):
        evidence.arguments(np.zeros((14, 4), np.float32))
    with pytest.raises(ValueError, match=r"out must have shape \(20, rows\)"):
        evidence.features(logs, scales, np.zeros((27, 4), np.float32))
    with pytest.raises(ValueError, match=r"memory must have shape \(16, rows\)"):
        _core.PathEvidence(made.arithmetic, made.path_arithmetic, base_ever=made.base_ever, memory=logs)


# ---- windows below two segments


def fine(**options):
    task = CongestionWindow("robust", actions="continuous", **options)
    return task, tracker(task=task)


def test_windows_go_down_to_a_sixteenth_of_a_segment_where_they_are_paced():
    for options, least in (({}, 1 / 16), ({"paced": False}, 2)):
        task, made = fine(**options)
        assert task.kind.parameters["fine"] == (least < 1)
        made.update(acknowledged(10, cwnd_bytes=2 * MSS))
        for _ in range(12):
            (window,) = decided(task, made, [-1.0])
            made.update(acknowledged(1, cwnd_bytes=window * MSS))
        assert window == least
    assert observe(fine()[1]).window_size > 0
    assert CongestionWindow().kind.parameters["fine"] == CongestionWindow("bare", paced=True).kind.parameters["fine"] == 0
    assert tracker().lowest_window[0] == 2 * MSS


def test_the_window_is_observed_below_a_segment():
    _, made = fine()
    for segments, expected in ((1 / 16, -0.25), (1, 0), (16, 0.25)):
        made.update(acknowledged(1, cwnd_bytes=segments * MSS))
        assert observe(made).window_size == pytest.approx(expected, abs=1e-6)


def test_an_ack_lets_a_small_window_grow_and_silence_keeps_it():
    task, made = fine(clamp="none")
    made.update(acknowledged(1, cwnd_bytes=MSS / 4))
    made.wanted[:] = made.cwnd
    assert decided(task, made, [1.0]) == [0.5]
    made.update(telemetry(cwnd_bytes=MSS / 2))
    assert np.isnan(decided(task, made, [1.0]))
    made.update(acknowledged(1, cwnd_bytes=MSS / 2))
    assert decided(task, made, [1.0]) == [1]
    discrete = CongestionWindow("robust", clamp="none")
    made.update(acknowledged(1, cwnd_bytes=MSS / 4))
    made.wanted[:] = made.cwnd
    assert decided(discrete, made, 11) == [1]  # four times


def test_under_losses_a_small_window_doubles_at_most():
    task, made = fine(clamp="none", growth_loss=0.05)
    for _ in range(40):  # round trips of 64 segments, a tenth of them lost
        made.update(acknowledged(64, 0.1, cwnd_bytes=MSS / 4, packets_lost=7))
    made.held_s[:], made.wanted[:] = 0, made.cwnd
    task = CongestionWindow("robust", clamp="none", growth_loss=0.05)
    assert decided(task, made, 11) == [0.5]


def test_an_environment_of_the_recipe_says_what_it_is():
    env = VectorEnv(2, recipe="robust", scenario={"name": "paths/jitter", "duration_s": 3})
    observations, _ = env.reset(seed=1)
    assert observations.shape == (2, 4 * 47) and env.unwrapped.schema()["recipe"] == "robust"
    assert len(EVIDENCE_FEATURES) == 20
    for _ in range(20):
        observations, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observations)
