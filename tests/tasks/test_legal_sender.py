"""The recipe `default` is a sender that a real one could be: the rules by which it decides."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import scenarios
from netbuf_gym.envs.engine import Engine
from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.congestion_window import FACTORS, CongestionWindow
from netbuf_gym.tasks.congestion_window.path_tracker import (
    CAP_SEGMENTS,
    DRAIN_AFTER_S,
    DRAIN_OF_PRODUCT,
    DRAIN_ROUND_TRIPS,
    DRAIN_SHARE,
    LEAST_DRAIN_INTERVALS,
    LEAST_DRAINED,
    PEAK_GAIN,
    RATE_GAIN,
    SEEN_WITHIN,
    STARTED_RTT,
    PathTracker,
)
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from tests.tasks.hand_made import MSS, WORLD, acknowledged, decided, free, telemetry, tracker

LAST = len(FACTORS) - 1
KEEP, DOUBLE, HALVE = [0.0], [1.0], [-1.0]
BEFORE_DRAIN = round(DRAIN_AFTER_S * 10)  # intervals of 0.1 s


def drive(task, made, steps, rtt_s, action=KEEP, segments=100):
    """Windows decided, interval after interval, of a sender that does as it is told, and drains' length left after each."""
    windows, draining = [], []
    for _ in range(steps):
        made.update(acknowledged(segments, rtt_s, cwnd_bytes=made.cwnd[0]))
        windows += decided(task, made, action)
        draining.append(float(made.draining_s[0]))
        made.cwnd[0] = windows[-1] * MSS
    return windows, draining


# ---- what is decided


@pytest.mark.parametrize("options", [{}, {"clamp": "path"}, {"clamp": "none"}, {"actions": "continuous"}, {"drain": False}])
def test_nothing_is_decided_before_the_first_ack_and_in_silence(options):
    task = CongestionWindow(**options)
    made = tracker(task=task)
    actions = (HALVE, DOUBLE) if task.actions == "continuous" else (0, LAST)
    nothing = np.full((1, len(TELEMETRY.fields)), np.nan)
    for step in (None, telemetry(), acknowledged(10), telemetry(), nothing, acknowledged(1)):
        if step is not None:
            made.update(step)
        for action in actions:
            acked = step is not None and step[0, TELEMETRY.index("acks")] > 0
            assert np.isnan(decided(task, made, action)) != acked
    made.reset(slice(0, 1), **WORLD)
    assert np.isnan(decided(task, made, actions[0]))


def starts(**fields):
    """An interval of a slow start: ACKs, and no threshold yet."""
    return acknowledged(10, **{"ssthresh_bytes": np.nan, **fields})


@pytest.mark.parametrize("end", [{"ssthresh_bytes": 30 * MSS}, {"rtt_mean_s": 0.05 * STARTED_RTT * 1.01}, {"rtt_mean_s": 1.0}])
def test_nothing_is_decided_before_the_slow_start_is_over(end):
    task = CongestionWindow()
    made = tracker(task=task)
    for k in range(5):
        made.update(starts(cwnd_bytes=(11 + k) * MSS))
        assert np.isnan(decided(task, made, LAST)) and made.starting[0]
        made.update(telemetry(cwnd_bytes=(11 + k) * MSS))  # silence ends nothing
        assert made.starting[0]
        made.update(starts(cwnd_bytes=(11.5 + k) * MSS, packets_lost=1))  # nor does a loss, unless it sets a threshold
        assert made.starting[0] and made.started[0]
    made.update(starts(cwnd_bytes=30 * MSS, **end))
    assert decided(task, made, 0) == [15] and not made.starting[0]
    made.update(starts())  # it is over for good
    assert not np.isnan(decided(task, made, LAST)) and not made.starting[0]
    made.reset(slice(0, 1), **WORLD)
    made.update(starts(cwnd_bytes=11 * MSS))
    assert made.starting[0]


def test_a_window_that_no_acks_let_grow_is_in_no_slow_start():
    task = CongestionWindow()
    made = tracker(task=task)
    made.update(starts(cwnd_bytes=20 * MSS))
    assert made.starting[0]
    made.update(starts(cwnd_bytes=20 * MSS))
    assert not made.starting[0] and decided(task, made, 0) == [10]
    task, made = free(slow_start=False)
    made.update(starts())
    assert decided(task, made, DOUBLE) == [20]


def test_a_slow_start_is_no_part_of_the_paper():
    made = (CongestionWindow(), CongestionWindow(slow_start=False), CongestionWindow("ppcc"))
    assert [task.kind.parameters["slow_start"] for task in made] == [1, 0, 0]
    with pytest.raises(ConfigError, match='slow_start = True with recipe "ppcc"; valid: False'):
        CongestionWindow("ppcc", slow_start=True)


def test_a_window_grows_by_what_was_acknowledged_at_most():
    task, made = free()
    for window, segments, grown in ((100, 7, 107), (100, 150, 200), (10, 1, 11)):
        made.update(acknowledged(segments, cwnd_bytes=window * MSS))
        made.wanted[:] = 0
        assert decided(task, made, DOUBLE) == pytest.approx([grown])
    made.update(acknowledged(7, cwnd_bytes=100 * MSS))
    assert decided(task, made, HALVE) == [50]
    made.update(acknowledged(7, cwnd_bytes=3 * MSS))
    made.wanted[:] = 0
    assert decided(task, made, HALVE) == [2]  # the least


def test_the_cap_is_what_was_measured():
    """20 segments in 100 ms: 10 of them fill the least round trip of 50 ms, 12 the latest of 60."""
    task, made = free(clamp="measured")
    made.update(acknowledged(20, cwnd_bytes=100 * MSS))
    made.update(acknowledged(20, 0.06, cwnd_bytes=100 * MSS))
    cap = max(10 * PEAK_GAIN, 12 * RATE_GAIN) + CAP_SEGMENTS
    assert made.compute_window_cap()[0] / MSS == pytest.approx(cap, rel=1e-6)
    assert decided(task, made, KEEP) == decided(task, made, DOUBLE) == pytest.approx([cap], rel=1e-6)
    made.update(acknowledged(20, 0.5, cwnd_bytes=100 * MSS))
    assert decided(task, made, KEEP) == pytest.approx([min(100, RATE_GAIN * 100 + CAP_SEGMENTS)], rel=1e-6)
    unknown = tracker(task=task)
    unknown.update(acknowledged(20, np.nan, cwnd_bytes=100 * MSS))
    assert decided(task, unknown, KEEP) == pytest.approx([CAP_SEGMENTS])


def test_what_a_time_out_left_grows_back_as_acks_confirm():
    task, made = free()
    made.update(acknowledged(50, cwnd_bytes=80 * MSS))
    assert decided(task, made, KEEP) == [80]
    for step in (telemetry(cwnd_bytes=MSS, timeouts=1), telemetry(cwnd_bytes=MSS)):
        made.update(step)
        assert np.isnan(decided(task, made, DOUBLE))
    made.update(acknowledged(5, cwnd_bytes=MSS))
    assert made.wanted[0] == 80 * MSS
    for action, window in ((KEEP, 6), (DOUBLE, 6), (HALVE, 3)):
        made.wanted[:] = 80 * MSS
        assert decided(task, made, action) == pytest.approx([window])
    made.wanted[:] = 4 * MSS  # no more than it was
    assert decided(task, made, KEEP) == [4]
    made.wanted[:] = 80 * MSS
    made.update(acknowledged(100, cwnd_bytes=MSS))
    assert decided(task, made, KEEP) == [80]


def test_no_sequence_breaks_the_rules():
    rng = np.random.default_rng(3)
    task = CongestionWindow()
    made, drains = tracker(64, task=task), 0
    for _ in range(400):
        segments = rng.integers(0, 200, 64)
        cwnd = np.where(rng.random(64) < 0.05, MSS, made.cwnd)  # a time-out
        rtt = 0.05 * 4 ** rng.random(64)
        step = acknowledged(1, 1.0, 64)
        for name, value in (("acks", segments), ("segments_acked_sum", segments), ("throughput_bps", segments * MSS * 80.0)):
            step[:, TELEMETRY.index(name)] = value
        for name, value in (("rtt_mean_s", rtt), ("rtt_min_s", rtt), ("cwnd_bytes", cwnd)):
            step[:, TELEMETRY.index(name)] = np.where((segments > 0) | (name == "cwnd_bytes"), value, np.nan)
        made.update(step)
        reach = np.maximum(cwnd, made.resumed) + segments * MSS
        out = task.decode(rng.integers(0, len(FACTORS), 64), made, np.empty((64, 1)))[:, 0]
        assert np.array_equal(np.isnan(out), segments == 0)
        told = ~np.isnan(out)
        assert (out[told] >= 2 * MSS).all()
        drained = made.draining_s > 0
        most = np.where(drained, made.resumed, np.minimum(reach, made.compute_window_cap()))  # a drain raises nothing
        assert (out[told] <= np.maximum(most, 2 * MSS)[told] + 1e-6).all()
        drains += np.count_nonzero(drained & told)
        made.cwnd[told] = out[told]
        made.cwnd[~told] = cwnd[~told]
    assert drains > 100


# ---- drains


def test_a_queue_that_never_empties_is_drained():
    task, made = free()
    made.update(acknowledged(100, cwnd_bytes=80 * MSS))
    decided(task, made, KEEP)
    windows, draining = drive(task, made, BEFORE_DRAIN + 40, 0.12)
    begun = BEFORE_DRAIN - 1
    lasts = int(np.ceil(DRAIN_ROUND_TRIPS * 1.2))
    assert not any(draining[:begun]) and windows[:begun] == [80] * begun
    assert draining[begun] == pytest.approx(lasts * 0.1)
    held = max(min(DRAIN_SHARE * 80, DRAIN_OF_PRODUCT * 50), LEAST_DRAINED)
    assert windows[begun : begun + lasts] == pytest.approx([held] * lasts, rel=1e-5)
    assert windows[begun + lasts] == 80 and not draining[begun + lasts]  # what it was
    assert made.least_rtt[0] == np.float32(0.12)  # and what was seen is believed
    assert windows[begun + lasts :] == [80] * (41 - lasts)


def test_a_drain_leaves_a_small_window_as_it_is():
    task, made = free()
    made.update(acknowledged(1, 0.05, cwnd_bytes=3 * MSS))
    made.wanted[:] = 3 * MSS
    windows, draining = drive(task, made, BEFORE_DRAIN + 2, 0.4, segments=1)
    assert any(draining) and set(windows) == {3} and 3 < LEAST_DRAINED


def test_growth_after_a_drain_is_from_what_it_was():
    task, made = free()
    made.update(acknowledged(100, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, 0.12)
    assert made.draining_s[0] > 0
    windows, _ = drive(task, made, 9, 0.12, DOUBLE, 7)
    first = next(window for window in windows if window > 80)
    assert first == pytest.approx(87)


def test_a_drain_ends_as_soon_as_the_least_round_trip_is_seen():
    task, made = free()
    made.update(acknowledged(100, 0.05, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, 0.4)
    assert made.draining_s[0] == pytest.approx(np.ceil(DRAIN_ROUND_TRIPS * 4) * 0.1)
    made.update(acknowledged(10, 0.05 * (1 + SEEN_WITHIN) * 0.999, cwnd_bytes=made.cwnd[0]))
    assert made.draining_s[0] == 0 == made.unseen_s[0] and made.least_rtt[0] == np.float32(0.05)
    assert decided(task, made, KEEP) == [80]


@pytest.mark.parametrize(("rtt_s", "lasts"), [(0.06, LEAST_DRAIN_INTERVALS), (0.25, 5), (3.0, 60)])
def test_a_drain_lasts_two_round_trips_as_they_were_when_it_began(rtt_s, lasts):
    task, made = free()
    made.update(acknowledged(100, 0.05, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, rtt_s)
    assert made.draining_s[0] == pytest.approx(lasts * 0.1)
    _, draining = drive(task, made, lasts, 0.9 * rtt_s)
    assert np.count_nonzero(draining) == lasts - 1


def test_a_drain_goes_by_what_is_delivered_lately_and_holds_one_window():
    """100,000 segments/s once, 500 for 8 s: three quarters of the latter over 50 ms are 19 segments."""
    task, made = free()
    made.update(acknowledged(10000, 0.05, cwnd_bytes=80 * MSS))
    windows, draining = drive(task, made, BEFORE_DRAIN + 3, 0.2, segments=50)
    assert windows[-4:] == pytest.approx([DRAIN_OF_PRODUCT * 500 * 0.05] * 4, rel=0.1) and all(draining[-4:-1])
    assert len(set(windows[-4:])) == 1


def test_a_time_out_ends_a_drain_and_what_was_before_it():
    task, made = free()
    made.update(acknowledged(100, 0.05, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, 0.4)
    assert made.draining_s[0] > 0
    made.update(acknowledged(3, 0.4, cwnd_bytes=MSS, timeouts=1))
    assert made.draining_s[0] == 0 == made.resumed[0]
    assert decided(task, made, DOUBLE) == [4]


def test_the_least_round_trip_of_a_drain_is_believed():
    task, made = free()
    made.update(acknowledged(100, 0.05, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, 0.4)
    _, draining = drive(task, made, 1, 0.09)
    assert draining[0] > 0
    _, draining = drive(task, made, 8, 0.2)
    assert not draining[-1] and made.least_rtt[0] == np.float32(0.09)


def test_no_drain_where_the_least_round_trip_is_seen_or_none_is_wanted():
    for options, rtt_s in (({}, 0.05 * (1 + SEEN_WITHIN / 2)), ({"drain": False}, 0.1)):
        task, made = free(**options)
        made.update(acknowledged(100, cwnd_bytes=80 * MSS))
        decided(task, made, KEEP)
        windows, draining = drive(task, made, 2 * BEFORE_DRAIN, rtt_s)
        assert not any(draining) and set(windows) == {80}
        assert made.least_rtt[0] == np.float32(0.05)


@pytest.mark.parametrize(("options", "rtt_s", "after_s"), [({"drain_after_s": 5}, 0.4, 5), ({"seen_within": 0.1}, 0.054, None)])
def test_when_a_drain_is_due_can_be_set(options, rtt_s, after_s):
    task, made = free(**options)
    made.update(acknowledged(100, 0.05, cwnd_bytes=80 * MSS))
    _, left_s = drive(task, made, BEFORE_DRAIN + 1, rtt_s)
    first = next((step + 1 for step, left in enumerate(left_s) if left > 0), None)
    assert first == (None if after_s is None else after_s * 10)
    assert {name: task.to_dict()[name] for name in options} == options
    usual = CongestionWindow(drain_after_s=DRAIN_AFTER_S, seen_within=SEEN_WITHIN).to_dict()
    assert usual == CongestionWindow().to_dict() and not usual.keys() & {"drain_after_s", "seen_within"}


@pytest.mark.parametrize(
    ("recipe", "options", "said"),
    [
        ("default", {"drain_after_s": 0}, "drain_after_s = 0"),
        ("default", {"drain_after_s": "soon"}, "drain_after_s = 'soon'"),
        ("default", {"seen_within": 1.1}, "seen_within = 1.1"),
        ("default", {"seen_within": float("nan")}, "seen_within = nan"),
        ("default", {"drain": False, "drain_after_s": 5}, "drain_after_s = 5 with drain = False; valid: None"),
        ("ppcc", {"seen_within": 0.1}, "seen_within = 0.1 with drain = False; valid: None"),
    ],
)
def test_drains_that_cannot_be_are_refused(recipe, options, said):
    with pytest.raises(ConfigError, match=said):
        CongestionWindow(recipe, **options)


def test_silence_holds_a_drain_and_the_wait_for_it_up():
    task, made = free()
    made.update(acknowledged(100, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN - 1, 0.4)
    waited = made.unseen_s[0]
    for _ in range(2 * BEFORE_DRAIN):
        made.update(telemetry(cwnd_bytes=80 * MSS))
        assert np.isnan(decided(task, made, DOUBLE)) and not made.draining_s[0]
    assert made.unseen_s[0] == waited
    drive(task, made, 1, 0.4)
    left = made.draining_s[0]
    assert left > 0
    for _ in range(20):
        made.update(telemetry(cwnd_bytes=made.cwnd[0]))
        assert np.isnan(decided(task, made, DOUBLE)) and made.draining_s[0] == left
    made.update(acknowledged(10, 0.4, cwnd_bytes=made.cwnd[0]))
    assert made.draining_s[0] == pytest.approx(left - 0.1, abs=1e-5)


def test_a_world_that_starts_anew_knows_nothing():
    task, made = free()
    made.update(acknowledged(100, cwnd_bytes=80 * MSS))
    drive(task, made, BEFORE_DRAIN, 0.1)
    assert made.draining_s[0] > 0
    made.reset(slice(0, 1), **WORLD)
    fresh = tracker(task=task)
    names = ("unseen_s", "draining_s", "rate_lately", "low_rtt", "lost_lately", "acked_lately", "roughness")
    for name in (*names, "wanted", "resumed"):
        assert getattr(made, name)[0] == getattr(fresh, name)[0]
    assert not made.acked[0]


def test_senders_of_a_world_have_nothing_in_common():
    """Rows beside each other, one in a drain, one in silence, one whose world starts anew, are what each is alone."""
    task, steps = CongestionWindow(), BEFORE_DRAIN + 30
    rng = np.random.default_rng(1)
    kinds = (lambda k: 0.1, lambda k: 0.05, lambda k: 0.05 if k < 20 else 0.2, lambda k: None)  # queued, seen, moved, silent
    together, alone = tracker(4, task=task), [tracker(task=task) for _ in kinds]
    for k in range(steps):
        segments = rng.integers(1, 60)
        each = []
        for rtt_of, one in zip(kinds, alone, strict=True):
            rtt_s = rtt_of(k) if k else 0.05
            each.append(telemetry(cwnd_bytes=one.cwnd) if rtt_s is None else acknowledged(segments, rtt_s, cwnd_bytes=one.cwnd))
        if k == 50:
            together.reset(slice(1, 2), **WORLD)
            alone[1].reset(slice(0, 1), **WORLD)
        together.update(np.concatenate(each))
        action = rng.integers(0, len(FACTORS))
        for one, step in zip(alone, each, strict=True):
            one.update(step)
        seen = task.observe(together, np.empty((task.width, 4), np.float32))
        told = task.decode(np.full(4, action), together, np.empty((4, 1)))
        for i, one in enumerate(alone):
            assert task.observe(one, np.empty((task.width, 1), np.float32)).tobytes() == seen[:, i].tobytes()
            assert task.decode(np.array([action]), one, np.empty((1, 1))).tobytes() == told[i].tobytes()
            one.cwnd[:] = np.where(np.isnan(told[i]), one.cwnd, told[i])
        together.cwnd[:] = [one.cwnd[0] for one in alone]


# ---- in worlds


def believed(drain):
    """The least round trip in ms that a sender believes in, each interval: 30 ms, and from 2 s on 90 ms."""
    longer = scenarios.route_change(delay_ms=15, change_ms=60, at_s=2)
    scenario = scenarios.dumbbell(rate_mbps=10, rtt_ms=30, senders=["agent"], buffer_packets=400, delays=longer)
    engine = Engine(1, task="congestion_window", scenario=scenario, drain=drain, actions="continuous")
    assert isinstance(engine.tracker, PathTracker)
    engine.reset_world(0, np.random.default_rng(0))
    least = []
    for k in range(BEFORE_DRAIN + 120):
        engine.decide(np.array([[0.3 if k < 15 else 0.0]]))
        least.append(float(engine.tracker.least_rtt[0]) * 1e3)
    return np.array(least)


def test_a_longer_route_is_noticed_by_a_drain():
    held, drained = believed(False), believed(True)
    assert (held[20:] < 35).all() and (drained[20:BEFORE_DRAIN] < 35).all()
    assert (drained[BEFORE_DRAIN + 30 :] > 88).all() and (drained[BEFORE_DRAIN + 30 :] < 115).all()


def test_senders_that_share_an_unlimited_buffer_drain_it_and_go_on_knowing_the_path():
    """Eight that grow for good, on 4 Mbit/s and 50 ms: with 4 segments each, the least, the round trip is 97 ms."""
    deep = {"name": "dumbbell", "rate_mbps": 4, "rtt_ms": 50, "buffer_packets": 100_000, "duration_s": 60}
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=8, senders=8, scenario=deep, slow_start=False)
    env.reset(seed=1)
    known, longest = env.unwrapped.engine.tracker, 0.0
    for step in range(220):
        env.step(np.full(8, 6 if step < 150 else 5))
        longest = max(longest, float(np.nanmax(known["rtt_mean_s"])))
    assert longest > 0.6 and known.least_rtt.max() < 0.35
