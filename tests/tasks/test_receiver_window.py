"""Golden values, computed by hand, of what receivers' actions mean and what they observe."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import TARGET_DELAYS_MS
from netbuf_gym.tasks.receiver_window import DEFAULT_FEATURES, FACTORS, NUWA_FACTORS, ReceiverWindow
from netbuf_gym.tasks.receiver_window.actions import BDP_GAINS
from tests.tasks.hand_made_receiver import MSS, arrived, telemetry, tracker

GOLDEN = {
    "queueing": 0.4472136,  # sqrt(ln(1 + 50 / 50) / ln 32)
    "queueing_now": 0.4472136,
    "standing_queue": 0.3420417,  # sqrt(ln 1.5 / ln 32)
    "worst_queue": 0.5630209,  # sqrt(ln 3 / ln 32)
    "over_target": -0.1949875,  # ln(50 / 75) / ln 8
    "delay_in_intervals": 0.3122399,  # sqrt(ln 1.5 / ln 64)
    "window_in_bdp": 0.5,  # 20 segments over 2.3168 Mbit/s * 50 ms = 10 segments: ln 2 / ln 4
    "window_use": 0.0,  # 2.3168 Mbit/s * 100 ms = 20 segments
    "rate_change": 0.5,  # ln 2 / ln 4
    "window_change": 0.5,
    "rtt_in_intervals": -0.1666667,  # ln 0.5 / ln 64
    "window_size": 0.3087092,  # ln 20 / ln 16384
    "packets": 0.3660264,  # ln 21 / ln 4096
    "k": 0.0,  # the middle of its range
    "target": 0.1663940,  # ln(75 / 44.72) / ln 22.36
    "rate": 1.0,  # it is the highest
    "delay_change": 1.0,  # 50 ms more than 0, over 50 ms
    "delay_gradient": 0.25,
    "missing": 0.4472136,  # sqrt(5 / 25)
    "repeated": 0.3162278,  # sqrt(2 / 20)
    "buffered": -0.5,  # half the window
    "longest_gap": 0.2,  # sqrt(0.04)
    "silence": 0.1,  # sqrt(0.01)
    "least_seen": 0.0125,  # 0.1 s of 8 s
    "draining": 0.0,
    "bdp_gain": 0.2924813,  # ln 1.5 / ln 4
}


def after_two_intervals():
    """10 then 20 segments, no queue then 50 ms of it (25 to 100), the window doubled, five missing and two sent again."""
    made = tracker()
    made.update(arrived(10, window_bytes=10 * MSS))
    delays = {"queue_delay_min_s": 0.025, "queue_delay_max_s": 0.1, "delay_gradient": 0.25}
    second = {"window_bytes": 20 * MSS, "packets_missing": 5, "packets_repeated": 2, "buffered_bytes": 10 * MSS}
    made.update(arrived(20, 0.05, longest_gap_s=0.04, bdp_gain=1.5, **delays, **second))
    return made


def test_default_observation_golden():
    task = ReceiverWindow(target_ms=75)
    out = task.observe(after_two_intervals(), np.empty((task.width, 1), np.float32))[:, 0]
    assert list(GOLDEN) == [feature.name for feature in DEFAULT_FEATURES]
    np.testing.assert_allclose(out, list(GOLDEN.values()), atol=2e-6)


def test_memory_observation_golden():
    """10 then 20 segments in 0.1 s each, nothing waiting and then 50 ms of it, then silence."""
    task, made = ReceiverWindow("memory"), tracker(long_memory=True)
    assert [feature.name for feature in task.features[26:]] == [
        "rate_of_minute",
        "rate_of_usual",
        "usual_queueing",
        "empty_for",
    ]

    def observe():
        return task.observe(made, np.empty((task.width, 1), np.float32))[26:, 0]

    np.testing.assert_allclose(observe(), [-1, 0, 0, 0], atol=2e-6)
    for _ in range(3):
        made.update(arrived(10, 0.001))
    np.testing.assert_allclose(observe()[[0, 1, 3]], [1, 0, np.log(4) / np.log(128)], atol=2e-6)
    np.testing.assert_allclose(observe()[2], np.sqrt(np.log(1.02) / np.log(32)), atol=2e-6)

    made = tracker(long_memory=True)
    made.update(arrived(20))
    made.update(arrived(10, 0.05))
    kept = np.exp(-0.1 / 10)  # of a mean over 10 s, whose weights add up to 1 - kept^2
    mean_rate, mean_delay = (20 * kept + 10) / (1 + kept), 0.05 / (1 + kept)
    usual = np.log(10 / mean_rate) / np.log(4), np.sqrt(np.log(1 + mean_delay / 0.05) / np.log(32))
    expected = [2 * 10 / (20 * np.exp(-0.1 / 60)) - 1, *usual, 0]
    np.testing.assert_allclose(observe(), expected, atol=5e-6)
    made.update(telemetry())
    np.testing.assert_allclose(observe()[[0, 2, 3]], [-1, expected[2], 0], atol=5e-6)
    made.update(arrived(10))  # the silence was not forgotten in
    np.testing.assert_allclose(observe()[0], 2 * 10 / (20 * np.exp(-0.2 / 60)) - 1, atol=5e-6)

    defaults = ReceiverWindow().observe(made, np.empty((26, 1), np.float32))
    np.testing.assert_array_equal(task.observe(made, np.empty((30, 1), np.float32))[:26], defaults)


def test_nuwa_observation_golden():
    task, made = ReceiverWindow("nuwa"), tracker()
    made.update(arrived(20, 0.05, window_bytes=63 * MSS, buffered_bytes=3 * MSS, queue_delay_last_s=0.125))
    out = task.observe(made, np.empty((4, 1), np.float32))[:, 0]
    np.testing.assert_allclose(out, [*(np.log([21, 64, 4]) / np.log(16385)), 0.25], atol=1e-6)
    made.update(arrived(10**6, window_bytes=1e12, buffered_bytes=1e12, queue_delay_last_s=9.0))
    assert (task.observe(made, np.empty((4, 1), np.float32)) == 1).all()


@pytest.mark.parametrize("recipe", ["default", "nuwa", "memory"])
def test_before_the_first_packet_and_in_silence_observations_are_defined(recipe):
    task, made = ReceiverWindow(recipe), tracker(long_memory=recipe == "memory")
    out = np.empty((task.width, 1), np.float32)
    assert np.isfinite(task.observe(made, out)).all()
    made.update(telemetry())
    assert np.isfinite(task.observe(made, out)).all()
    made.update(arrived(10, 0.02))
    before = task.observe(made, out).copy()
    for gap in range(1, 13):
        made.update(telemetry(silence_s=0.1 * gap))
        now = task.observe(made, out)
        assert np.isfinite(now).all() and (np.abs(now) <= 1).all()
        if recipe != "nuwa":
            column = {feature.name: k for k, feature in enumerate(DEFAULT_FEATURES)}
            assert now[column["queueing"]] == before[column["queueing"]]  # the last delay is carried on,
            assert now[column["rate"]] == -1  # that nothing arrived was measured,
            assert now[column["silence"]] == pytest.approx(min(1, np.sqrt(0.1 * gap)))  # and for how long is told
        else:
            assert now[3] == before[3] and now[0] == 0


def decoded(task, made, action):
    """Gain, target delay and window that an action stands for."""
    return decoded_whole(task, made, action)[:3]


def decoded_whole(task, made, action):
    """Likewise, and the window in measured products."""
    return task.decode(task.check_actions([action], 1), made, np.empty((1, 4)))[0]


@pytest.mark.parametrize("action", range(5))
def test_nuwa_multiplies_k_within_its_range(action):
    task = ReceiverWindow("nuwa")
    for k in (1.0, 2.0, 9.0):
        made = tracker()
        made.update(arrived(k=k))
        gain, target, window = decoded(task, made, action)
        assert gain == pytest.approx(np.clip(k * NUWA_FACTORS[action], 1, 9)) and target == 0.075 and np.isnan(window)


def test_the_papers_actions():
    assert NUWA_FACTORS == (0.25, 1.0, 1.05, 1.25, 2.85)
    task = ReceiverWindow("nuwa")
    assert task.keep_action == 1 and task.default_reward == "alpha_fair" and task.width == 4 and not task.drain


@pytest.mark.parametrize("action", range(11))
def test_the_window_is_multiplied(action):
    task, made = ReceiverWindow(acts_on="window"), tracker(k=0.0)
    made.update(arrived(100, window_bytes=40 * MSS))
    gain, target, window = decoded(task, made, action)
    assert gain == 0 and target == 0.075
    assert window == pytest.approx(40 * MSS * FACTORS["window"]["window"][action])


@pytest.mark.parametrize("action", range(12))
def test_the_window_is_so_many_measured_products(action):
    task, made = ReceiverWindow(), tracker()
    assert task.acts_on == "bdp" and task.target_s == 0.025 and task.keep_action == BDP_GAINS.index(1.0)
    assert np.isnan(decoded_whole(task, made, action)[3])  # nothing has arrived
    made.update(arrived(100, window_bytes=40 * MSS))
    k, _, window, gain = decoded_whole(task, made, action)
    assert (k, gain) == (2, BDP_GAINS[action]) and np.isnan(window)
    made.update(telemetry())
    assert np.isnan(decoded_whole(task, made, action)[3])  # nor in silence


def test_other_actions_leave_the_measured_product_alone():
    for task in (ReceiverWindow("nuwa"), *(ReceiverWindow(acts_on=acts_on) for acts_on in FACTORS if acts_on != "bdp")):
        made = tracker()
        made.update(arrived(100))
        assert np.isnan(decoded_whole(task, made, 0)[3])


def test_nothing_is_decided_before_the_first_packet_and_in_silence():
    for acts_on in FACTORS:
        task, made = ReceiverWindow(acts_on=acts_on), tracker(k=2.0 if acts_on != "window" else 0.0)
        before = (task.k if task.moves_between_decisions else 0.0, 0.075)
        last = task.action_space.n - 1
        for step in (None, telemetry(), arrived(10), telemetry(), telemetry()):
            if step is not None:
                made.update(step)
            for action in (0, last):
                gain, target, window = decoded(task, made, action)
                if made.received[0] == 0:
                    assert (gain, target) == before and np.isnan(window)
        assert made.window[0] == 20 * MSS


def test_a_window_grows_by_what_arrived_at_most():
    task, made = ReceiverWindow(acts_on="window"), tracker(k=0.0)
    made.update(arrived(100, window_bytes=100 * MSS))
    made.update(arrived(7, window_bytes=100 * MSS))
    assert decoded(task, made, 10)[2] == pytest.approx(107 * MSS)
    made.update(arrived(7, window_bytes=2 * MSS))
    assert decoded(task, made, 0)[2] == 2 * MSS


def test_the_cap_is_what_was_measured():
    """20 segments in 100 ms, 50 ms: twice what fills the least round trip is 20 segments, and 1.5 times 60 ms of them 18."""
    task, made = ReceiverWindow(acts_on="window"), tracker(k=0.0)
    made.update(arrived(20, 0.01, window_bytes=28 * MSS))
    assert made.highest_window[0] == pytest.approx(30 * MSS)
    assert decoded(task, made, 10)[2] == pytest.approx(30 * MSS)
    made.update(arrived(20, 0.15, window_bytes=28 * MSS))  # a round trip of 200 ms: 1.5 * 40 segments
    assert made.highest_window[0] == pytest.approx(70 * MSS)
    unknown = tracker(k=0.0)
    unknown.update(arrived(100, rtt_s=np.nan, rtt_min_s=np.nan, window_bytes=12 * MSS))
    assert decoded(task, unknown, 10)[2] == 12 * MSS  # there is no round trip: nothing grows
    assert decoded(task, unknown, 0)[2] == 6 * MSS


def test_silence_forgets_no_rate():
    made = tracker()
    made.update(arrived(20))
    peak = made.peak_rate[0]
    for _ in range(100):
        made.update(telemetry())
    assert made.peak_rate[0] == peak > 0 and made.rate[0] == 0
    made.update(arrived(1))
    assert made.peak_rate[0] == pytest.approx(peak * np.exp(-0.01), rel=1e-5)


def drive(task, made, action, delay_s, steps, window=40 * MSS):
    """Windows and gains told, interval after interval, of a world that does as it is told and whose queue never empties."""
    told = []
    for _ in range(steps):
        gain, target, decided = decoded(task, made, action)
        window = window if np.isnan(decided) else decided
        told.append((window / MSS, gain))
        made.update(arrived(100, delay_s, window_bytes=window, k=gain, target_delay_s=target))
    return told


def test_a_queue_that_never_empties_is_drained():
    task, made = ReceiverWindow(acts_on="window"), tracker(k=0.0)
    made.update(arrived(100, 0.0, window_bytes=40 * MSS))
    told = drive(task, made, task.keep_action, 0.02, 200)
    halved = [k for k in range(1, 200) if told[k][0] < 0.6 * told[k - 1][0]]
    assert halved and halved[0] == 80 and 80 <= np.diff(halved)[0] <= 84
    lasting = [told[k][0] for k in range(80, 86)]
    assert lasting[0] == pytest.approx(lasting[1]) and lasting[2] == pytest.approx(told[79][0], rel=0.02)  # two intervals
    assert {gain for _, gain in told} == {0.0}


def test_no_drain_where_the_queue_empties_or_none_is_wanted():
    for task, delay_s in ((ReceiverWindow(acts_on="window"), 0.001), (ReceiverWindow(acts_on="window", drain=False), 0.02)):
        made = tracker(k=0.0, drain=task.drain)
        windows = [window for window, _ in drive(task, made, 5, delay_s, 200)]
        assert min(windows) >= 40


def test_silence_holds_a_drain():
    made = tracker()
    made.update(arrived())
    for _ in range(80):
        made.update(arrived(10, 0.02))
    assert made.draining[0] == 2
    for _ in range(5):
        made.update(telemetry())
    assert made.draining[0] == 2
    made.update(arrived(10, 0.0))
    assert made.draining[0] == 1


def test_combinations_and_continuous_actions():
    task, made = ReceiverWindow(acts_on="target_and_k"), tracker()
    made.update(arrived(100, window_bytes=40 * MSS, k=2.0, target_delay_s=0.1))
    gain, target, window = decoded(task, made, 5 * 4 + 0)
    assert (gain, target) == (1.0, 0.2) and np.isnan(window)
    gain, target, window = decoded(task, made, task.keep_action)
    assert (gain, target) == (2.0, 0.1)
    both = ReceiverWindow(acts_on="window_and_target", actions="continuous")
    assert both.action_space == gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    gain, target, window = decoded(both, made, [-1.0, 1.0])
    assert (gain, target, window) == (2.0, 0.2, 20 * MSS)
    np.testing.assert_allclose(decoded(both, made, both.keep_action), [2.0, 0.1, 40 * MSS])


def test_gain_and_target_keep_within_their_ranges():
    task, made = ReceiverWindow(acts_on="target_and_k"), tracker()
    for action, end in ((0, (0.25, 0.002)), (24, (16.0, 1.0))):
        for _ in range(20):
            gain, target, _ = decoded(task, made, action)
            made.update(arrived(10, 0.0, k=gain, target_delay_s=target))
        assert (gain, target) == pytest.approx(end)


def test_a_target_may_be_a_class_of_application():
    for name, target_ms in TARGET_DELAYS_MS.items():
        assert ReceiverWindow(target_ms=name).target_s == ReceiverWindow(target_ms=target_ms).target_s == target_ms * 1e-3


@pytest.mark.parametrize(
    "kwargs",
    [
        {"recipe": "paper"},
        {"history": 0},
        {"acts_on": "cwnd"},
        {"actions": "grid"},
        {"k": 0.1},
        {"k": float("nan")},
        {"target_ms": 1},
        {"target_ms": "films"},
        {"drain": 1},
        {"agents": 0},
        {"acts_on": "window", "recipe": "nuwa"},
        {"actions": "continuous", "recipe": "nuwa"},
        {"drain": True, "recipe": "nuwa"},
        {"k": 10, "recipe": "nuwa"},
    ],
)
def test_bad_arguments_are_refused(kwargs):
    with pytest.raises(ConfigError, match=next(iter(kwargs))):
        ReceiverWindow(**kwargs)
