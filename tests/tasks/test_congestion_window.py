"""Golden values, computed by hand, of what actions mean and what is observed."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.congestion_window import DEFAULT_FEATURES, FACTORS, PPCC_STEPS, CongestionWindow
from netbuf_gym.tasks.congestion_window.path_tracker import LATELY_S, LONG_S, LOSS_MEMORY_S
from tests.tasks.hand_made import MSS, acknowledged, after_two_intervals, telemetry, tracker

GOLDEN = {
    "queueing": 0.5,  # sqrt(ln 2 / ln 16)
    "standing_queue": 0.3824127,  # sqrt(ln 1.5 / ln 16)
    "rate": 1.0,  # it is the peak
    "window_in_bdp": 0.8479969,  # 20 segments over 2.5742 Mbit/s * 50 ms = 11.1111 segments: log2(1.8)
    "window_use": 0.1520031,  # 2.5742 Mbit/s * 100 ms = 22.2222 segments: log2(1.1111)
    "rtt_change": 0.7369656,  # log2(100 / 60)
    "rate_change": 1.0,  # 2.5742 over 1.1584 Mbit/s, clipped
    "window_change": 1.0,
    "rtt_in_intervals": 0.0,
    "window_size": 0.2701205,  # log2(20) / 16
    "segments_acked": 0.3660264,  # log2(21) / 12
    "segments_queued": 0.5765719,  # log2(1 + 20 * (1 - 50 / 100)) / 6
    "loss": 0.4472136,  # sqrt(5 / 25)
    "in_flight": -0.5,  # half the window
    "timeouts": 0.0,
    "age": 0.0,
}

KEPT, LOSS_KEPT, LONG_KEPT = (np.exp(-0.1 / memory_s) for memory_s in (LATELY_S, LOSS_MEMORY_S, LONG_S))
RATE_LATELY = 1.1584 * KEPT + 2.574222 * (1 - KEPT)  # Mbit/s
LATELY = {
    "rate_trend": np.log(2.574222 / RATE_LATELY) / np.log(4),
    "window_in_mean_bdp": np.log(20 * MSS * 8 / (RATE_LATELY * 1e6 * 0.05)) / np.log(4),
    "queue_lately": np.sqrt(np.log(KEPT + 1.5 * (1 - KEPT)) / np.log(16)),  # from 50 towards 75 ms
    "loss_lately": np.sqrt(5 / (5 + 10 * LOSS_KEPT + 20)),
    "roughness": (1 - LOSS_KEPT) * np.log2(2.574222 / 1.1584) / 2,
    "least_rtt_unseen": 0.01,  # 0.1 of 10 s
    "draining": 0.0,
    "started": 1.0,  # packets were lost
    "queue_long": np.sqrt((1 - LONG_KEPT) * np.log(1.5) / np.log(16)),  # from 50 towards 75 ms
    "loss_long": np.sqrt(5 / (5 + 10 * LONG_KEPT + 20)),
    "least_rtt_risen": np.log(50 / 48) / np.log(16),
}


def test_default_observation_golden():
    task = CongestionWindow("default")
    out = task.observe(after_two_intervals(), np.empty((task.width, 1), np.float32))[:, 0]
    golden = GOLDEN | LATELY
    assert list(golden) == [feature.name for feature in DEFAULT_FEATURES]
    np.testing.assert_allclose(out, list(golden.values()), atol=2e-6)


def test_ppcc_observation_golden():
    task = CongestionWindow("ppcc")
    made = tracker(task=task)
    fields = {"ssthresh_bytes": 250_000, "cwnd_bytes": 100_000, "bytes_in_flight_sum": 5e6, "bytes_in_flight_mean": 60_000}
    fields |= {"segments_acked_sum": 75, "segments_acked_mean": 2, "rtt_mean_s": 0.06, "rtt_min_s": 0.055, "acks": 40}
    fields |= {"rtt_min_ever_s": 0.05, "send_interval_mean_s": 0.0012, "receive_interval_mean_s": 0.0024}
    made.update(telemetry(throughput_bps=8e6, **fields))
    out = task.observe(made, np.empty((12, 1), np.float32))[:, 0]
    golden = [0.25, 0.1, 1448 / 1500, 0.1, 0.06, 0.3, 0.2, 0.12, 0.1, 0.012, 0.024, 0.4]
    np.testing.assert_allclose(out, golden, atol=1e-6)


def test_ppcc_observation_saturates_at_its_ranges():
    task = CongestionWindow("ppcc")
    made = tracker(task=task)
    made.update(telemetry(cwnd_bytes=1e9, rtt_mean_s=9.0, rtt_min_s=9.0, throughput_bps=1e9, acks=1))
    out = task.observe(made, np.empty((12, 1), np.float32))[:, 0]
    assert out[0] == out[1] == out[7] == out[11] == 1  # ssthresh was never set: infinite
    assert (out >= 0).all()


@pytest.mark.parametrize("recipe", ["default", "ppcc"])
def test_before_the_first_ack_and_in_a_gap_observations_are_defined(recipe):
    task = CongestionWindow(recipe)
    made = tracker(task=task)
    out = np.empty((task.width, 1), np.float32)
    assert np.isfinite(task.observe(made, out)).all()
    made.update(telemetry())
    assert np.isfinite(task.observe(made, out)).all()
    made.update(telemetry(rtt_mean_s=0.06, rtt_min_s=0.06, rtt_min_ever_s=0.06, acks=3, throughput_bps=1e6))
    before = task.observe(made, out).copy()
    for gap in range(1, 13):
        made.update(telemetry())
        now = task.observe(made, out)
        assert np.isfinite(now).all()
        assert made.age_s[0] == pytest.approx(0.1 * gap)
        if recipe == "default":
            assert now[0, 0] == before[0, 0]  # the last RTT is carried on,
            assert now[2, 0] == -1  # that nothing is delivered was measured,
            assert now[15, 0] == pytest.approx(min(1, 0.1 * gap))  # and for how long is told
        else:
            assert now[7, 0] == before[7, 0] and now[11, 0] == 0


@pytest.mark.parametrize("action", range(len(FACTORS)))
def test_decode_default_multiplies(action):
    task, made = CongestionWindow("default"), tracker()
    made.update(acknowledged(30))
    out = task.decode(np.array([action]), made, np.empty((1, 1)))
    assert out[0, 0] == pytest.approx(10 * MSS * FACTORS[action])


def test_factors_may_be_ones_own():
    given = [0.25, 0.9, 1, 1.01, 3]
    task = CongestionWindow(actions=given)
    for action, factor in enumerate(given):
        made = tracker()
        made.update(acknowledged(30))
        out = task.decode(np.array([action]), made, np.empty((1, 1)))
        assert out[0, 0] == pytest.approx(10 * MSS * factor)
    assert task.action_space == gym.spaces.Discrete(5) and task.to_dict()["actions"] == given
    assert task.keep_action == 2 and task.nearest_actions(np.log([0.1, 0.8, 1.1, 2.9])).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(
    "actions",
    [[2], [2, 0.5], [0.5, 0.9], [1.1, 2], [0.5, 0.5, 2], [0, 2], [0.5, 101], [0.5, np.nan], [0.5, "2"], 3, "smooth", {0.5: 2}],
)
def test_factors_that_are_none_are_refused(actions):
    with pytest.raises(ConfigError, match="actions"):
        CongestionWindow(actions=actions)


def test_the_papers_actions_are_not_ones_own():
    with pytest.raises(ConfigError, match=r"actions = \[0.5, 2\] with recipe"):
        CongestionWindow("ppcc", actions=[0.5, 2])


@pytest.mark.parametrize(("action", "segments"), [(4, 10), (5, 10.5), (7, 20), (8, 30), (10, 70), (3, 8), (2, 5), (0, 2)])
def test_decode_ppcc_golden(action, segments):
    """10 segments, a = 0, 5, 100, 200, 600: + a / 10 segments; -20, -50: - 2, - 5; -200: - 20, clamped to 2."""
    task = CongestionWindow("ppcc")
    made = tracker(task=task)
    out = task.decode(np.array([action]), made, np.empty((1, 1)))
    assert out[0, 0] == pytest.approx(segments * MSS)


def test_windows_are_clamped():
    for task in (CongestionWindow(clamp="path"), CongestionWindow("ppcc")):
        made = tracker(task=task, highest_window=12 * MSS)
        made.update(acknowledged(1, cwnd_bytes=3 * MSS))
        assert task.decode(np.array([0]), made, np.empty((1, 1)))[0, 0] == 2 * MSS
        for cwnd in (10, 11.99):
            made.update(acknowledged(10, cwnd_bytes=cwnd * MSS))
            assert task.decode(np.array([len(task.levels) - 1]), made, np.empty((1, 1)))[0, 0] == 12 * MSS
        made.update(telemetry(cwnd_bytes=1 * MSS, acks=1))  # after a time-out
        assert task.decode(np.array([0]), made, np.empty((1, 1)))[0, 0] == 2 * MSS


def test_the_papers_window_may_be_unclamped():
    task = CongestionWindow("ppcc", clamp="none")
    made = tracker(task=task, highest_window=12 * MSS)
    assert task.decode(np.array([10]), made, np.empty((1, 1)))[0, 0] == 70 * MSS


def test_actions_are_the_papers():
    assert PPCC_STEPS.tolist() == [-200, -100, -50, -20, 0, 5, 10, 100, 200, 500, 600]
    assert len(FACTORS) == 12 and FACTORS[0] == 0.5 and FACTORS[-1] == 4
    assert CongestionWindow("ppcc").keep_action == 4


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros(3, int), "shape"),
        (np.zeros((2, 1), int), "shape"),
        (np.array([0.0, np.nan]), "integers"),
        (np.array([0.0, 1.0]), "integers"),
        (np.array([True, False]), "integers"),
        (np.array([0, 12]), "12 is out of range"),
        (np.array([-1, 3]), "-1 is out of range"),
        (["a", "b"], "integers"),
    ],
)
def test_bad_actions_are_refused(actions, message):
    with pytest.raises(ConfigError, match=message):
        CongestionWindow().check_actions(actions, 2)


@pytest.mark.parametrize("kwargs", [{"recipe": "paper"}, {"history": 0}, {"history": 65}, {"history": 1.5}, {"history": "4"}])
def test_bad_arguments_are_refused(kwargs):
    with pytest.raises(ConfigError, match=next(iter(kwargs))):
        CongestionWindow(**kwargs)
