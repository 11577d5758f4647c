"""Rules that limit a switch's queues: what they decide by hand-made telemetry, and that they play as agents do."""

import itertools

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.controllers import InWorld
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import baselines, rollout
from netbuf_gym.tasks.queue_threshold import FixedThresholds, Limits, Pulse, PulseBurst, QueueThreshold
from netbuf_gym.tasks.queue_threshold.actions import encode_limits
from tests.tasks.hand_made_switch import telemetry, tracker

TASK = "queue_threshold"
SHORT = {"name": "rlbm/cubic-100-0.8", "duration_s": 4.0}
OPEN, CLOSED = 1000, 1


class Played:
    """A rule over rows of hand-made intervals; 10 Mbit/s and packets of 1500 bytes, of which 20 ms send 16.7."""

    def __init__(self, rule, interval_s=0.1, rows=1, queues=2):
        self.rules = QueueThreshold(actions="limits", queues=queues, history=2)
        self.rules.make_tracker(rows, interval_s)  # as an environment does, whose interval it then is
        self.tracker = tracker(rows, queues, betas=(1.0,) * queues)
        self.policy, self.state = rule.start(self.rules, range(rows)), None
        self.rows, self.queues, self.interval_s = rows, queues, interval_s

    def __call__(self, queued_ms=0, started=0, starts=False):
        """The limits in ms, (rows, queues), after an interval at whose end queue 0 holds so much."""
        made = telemetry(self.rows, self.queues, elapsed_s=self.interval_s, queue_bytes_0=np.multiply(queued_ms, 1250))
        for queue in range(self.queues):  # which of them they begin in is all the same
            made[:, self.rules.telemetry.index(f"syns_{queue}")] = started if queue == self.queues - 1 else 0
        self.tracker.update(made)
        now = self.rules.observe(self.tracker, np.empty((self.rules.width, self.rows), np.float32)).T
        observations = np.hstack([np.full_like(now, -1), now])  # the latest stands last
        starts = np.broadcast_to(starts, self.rows)
        actions, self.state = self.policy(observations, self.state, starts)
        assert self.rules.check_actions(actions, self.rows).shape == (self.rows, self.queues)
        return np.round(10 ** (1.5 * (np.asarray(actions, float) + 1)), 3)


def test_actions_of_limits_are_their_inverse():
    limits = np.array([[0.001, 0.02], [0.05, 1.0]])
    actions, made = encode_limits(limits), tracker(2, betas=(1.0, 0.5))
    assert actions.dtype == np.float32 and actions[0, 0] == -1 and actions[1, 1] == 1
    alphas = QueueThreshold(actions="limits").decode(actions.astype(float), made, np.empty((2, 6)))[:, :2]
    np.testing.assert_allclose(alphas * [1, 0.5] * 1.2, limits, rtol=1e-5)  # 1000 packets of 1.2 ms
    assert encode_limits(7) == 1 and encode_limits(0) == -1


@pytest.mark.parametrize(
    ("limits", "queues", "expected"),
    [(20, 2, [20, 20]), ((20, 50), 2, [20, 50]), ([20, 50], 4, [20, 50, 50, 50]), (1000, 1, [1000]), ([5.5], 3, [5.5] * 3)],
)
def test_constant_limits_are_those_of_each_queue(limits, queues, expected):
    play = Played(Limits(limits), rows=3, queues=queues)
    for queued in (0, 500):
        np.testing.assert_allclose(play(queued), [expected] * 3, rtol=1e-4)


def test_a_pulse_cuts_queue_0_for_one_decision_every_tenth_of_a_second():
    play = Played(Pulse(), interval_s=0.01)
    queued = [0, 19.9, 20.5, *[21] * 9, 21, *[10] * 12, 30, 30]
    zero, one = np.array([play(ms)[0] for ms in queued]).T
    assert (one == 50).all()
    cut = [2, 12, 25]  # the second one a tenth of a second after the first, the third at once when the queue is long again
    assert [k for k, limit in enumerate(zero) if limit != OPEN] == cut and (zero[cut] == 20).all()


@pytest.mark.parametrize(
    ("interval_s", "every_ms", "apart"),
    [(0.1, 100, 1), (0.3, 100, 1), (0.05, 100, 2), (0.03, 100, 4), (0.1, 0, 1), (0.02, 200, 10)],
)
def test_pulses_keep_their_distance_at_any_interval(interval_s, every_ms, apart):
    play = Played(Pulse(every_ms=every_ms), interval_s=interval_s)
    cut = [k for k in range(25) if play(100)[0, 0] == 20]
    assert cut == list(range(0, 25, apart))


def test_numbers_of_the_pulse():
    play = Played(Pulse(target_ms=7, rest_ms=3, shut=True), rows=3, queues=3)
    limits = play([6.9, 7.1, 500])
    assert limits.tolist() == [[OPEN, 3, 3], [7, CLOSED, CLOSED], [7, CLOSED, CLOSED]]
    shut = Played(Pulse(shut=True), interval_s=0.01)
    assert [shut(21)[0].tolist() for _ in range(2)] == [[20, CLOSED], [OPEN, CLOSED]]  # closed between pulses too
    assert Played(Pulse(shut=True), queues=1)(21).tolist() == [[20]]


def test_rows_are_apart_and_begin_anew():
    play = Played(Pulse(), interval_s=0.01, rows=2)
    assert play([30, 0])[:, 0].tolist() == [20, OPEN]
    assert play([30, 30])[:, 0].tolist() == [OPEN, 20]
    assert play([30, 30], starts=[True, False])[:, 0].tolist() == [20, OPEN]


@pytest.mark.parametrize(("interval_s", "kept"), [(0.1, 5), (0.3, 1), (0.02, 25), (2.0, 1)])
def test_a_burst_leaves_queue_0_open_for_half_a_second(interval_s, kept):
    play = Played(PulseBurst(every_ms=0), interval_s=interval_s)
    assert [play(100, started)[0, 0] for started in (4, 0)] == [20, 20]
    for _ in range(kept):
        play(0)
    after = [play(100, started)[0, 0] for started in (5, *[0] * (kept + 2))]
    assert after == [OPEN] * kept + [20] * 3
    assert [play(100, started)[0, 0] for started in (4, 1)] == ([20, OPEN] if kept > 1 else [20, 20])


def test_a_burst_of_another_episode_is_none():
    play = Played(PulseBurst(), rows=2)
    assert play(100, 9)[:, 0].tolist() == [OPEN, OPEN]
    assert play(100, starts=[False, True])[:, 0].tolist() == [OPEN, 20]
    few = Played(PulseBurst(flows=2, within_ms=100, shut=True))
    assert [few(100, started)[0].tolist() for started in (1, 2, 0)] == [[20, 1], [OPEN, 1], [20, 1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "below"),
    [
        *itertools.product(["limits", "pulse", "pulse_burst", "limits:5"], [[], [100_000], [50_000, 1_000_000]]),
        *itertools.product(["limits:5:200"], [[100_000], [50_000, 1_000_000]]),
    ],
)
def test_rules_play_by_name_with_any_number_of_queues(name, below):
    world = {"name": "rlbm/default", "duration_s": 2.0, "priority_below": below, "load": 0.9}
    reports = [rollout.evaluate(name, TASK, world, [1, 2], interval_s=0.02, threads=threads) for threads in (1, 2)]
    assert repr(reports[0]) == repr(reports[1]) and 0 < reports[0][0]["goodput_mbps"] < 10
    assert rollout.get_controller(name, TASK).name == name


def test_rules_play_a_scalar_environment_as_rollouts_do():
    world = {"name": "rlbm/cubic-100-0.95", "duration_s": 10.0}
    env = gym.make("netbuf/QueueThreshold-v0", scenario=world, interval_s=0.05, **PulseBurst().env)
    policy, state, start = PulseBurst().start(env.unwrapped.engine.task, [1]), None, True
    observation, info = env.reset(seed=1)
    limits, done = set(), False
    while not done:
        actions, state = policy(observation[None], state, np.array([start]))
        limits.add(round(float(actions[0, 0]), 4))
        observation, _, terminated, truncated, info = env.step(actions[0])
        start, done = False, terminated or truncated
    report = rollout.evaluate("pulse_burst", TASK, world, [1], interval_s=0.05)[0]
    assert {key: info[key] for key in report} == pytest.approx(report, nan_ok=True)
    assert limits == {1.0, round(float(encode_limits(0.02)), 4)}  # it was open, and it was cut


@pytest.mark.slow
def test_limits_hold_and_pulses_come_between():
    """The mean queue of priority 0 under each; a constant limit of 20 ms is 16.7 packets."""
    world = {"name": "rlbm/default", "load": 0.95, "duration_s": 20.0}
    queue = {
        name: np.mean([one["queue_mean_packets_0"] for one in rollout.evaluate(name, TASK, world, range(3), interval_s=0.01)])
        for name in ("limits:1000", "pulse", "limits:20", "limits:5")
    }
    assert queue["limits:5"] < queue["limits:20"] < queue["pulse"] < queue["limits:1000"]
    assert queue["limits:20"] < 16.7


def test_rules_play_by_their_own_actions_beside_any_agent():
    agent = {"recipe": "thesis-text", "actions": "grid", "interval_s": 0.2, "betas": [1, 1], "plant": "sim", "reward": "x"}
    assert Pulse().match_arguments(agent) == {"recipe": "default", "actions": "limits", "interval_s": 0.2, "plant": "sim"}
    assert Limits().match_arguments({}) == Limits().env


@pytest.mark.parametrize("name", tasks.get(TASK).controllers)
def test_every_controller_plays_with_drops_at_the_tail_and_at_the_head(name):
    found = {}
    for drop in ("tail", "head"):
        world = {"name": "rlbm/cubic-100-0.9", "duration_s": 4.0, "drop": drop}
        drawn = rollout.draw_worlds(TASK, world, [5, 6])
        assert all(one.scenario.switches[0].drop == drop for one in drawn)
        controller = rollout.get_controller(name, TASK)
        placed = controller.place(drawn[0].scenario)
        assert all(switch.drop == drop for switch in placed.switches)
        assert placed.switches or isinstance(controller, InWorld)  # an AQM has no such switch, and drops as it does
        found[drop] = rollout.evaluate(name, TASK, world, [5, 6])
        assert all(0 < one["goodput_mbps"] < 10 and one["drops"] >= 0 for one in found[drop])
    assert [one["flows_started"] for one in found["tail"]] == [one["flows_started"] for one in found["head"]]
    if placed.switches and sum(one["drops"] for one in found["tail"]):
        assert repr(found["tail"]) != repr(found["head"])
    elif not placed.switches:
        assert repr(found["tail"]) == repr(found["head"])


def test_constant_thresholds_are_the_naive_buffer_with_drops_at_the_head_too():
    world = {**SHORT, "drop": "head"}
    naive, fixed = (rollout.evaluate(one, TASK, world, [4, 5]) for one in ("naive", FixedThresholds((1, 1))))
    assert repr(naive) == repr(fixed) and repr(naive) != repr(rollout.evaluate("naive", TASK, SHORT, [4, 5]))
    assert sum(one["drops"] for one in naive) > 0


def test_rules_are_listed_and_stand_beside_agents():
    assert {"limits", "pulse", "pulse_burst"} <= set(baselines.names(TASK)) & set(baselines.list_defaults(TASK))
    assert "limits:20" in tasks.get(TASK).controllers and "limits:20" not in baselines.names(TASK)
    assert "keep:20" not in tasks.get("congestion_window").controllers


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Limits(0.5), r"limits_ms\[0\] = 0.5 is out of range; valid: 1 to 1000"),
        (lambda: Limits([20, 1001]), r"limits_ms\[1\] = 1001"),
        (lambda: Limits([]), "limits_ms is empty"),
        (lambda: Limits("20"), "limits_ms = '20' is not a list"),
        (lambda: Pulse(target_ms=0), "target_ms = 0.0 is out of range; valid: 1 to 1000"),
        (lambda: Pulse(every_ms=-1), "every_ms = -1.0 is out of range; valid: 0 to 100000"),
        (lambda: Pulse(rest_ms=2000), "rest_ms = 2000"),
        (lambda: Pulse(shut=1), "shut = 1"),
        (lambda: PulseBurst(flows=0), "flows = 0 is out of range; valid: 1..100"),
        (lambda: PulseBurst(within_ms=0), "within_ms = 0"),
        (lambda: rollout.evaluate("limits:", TASK, SHORT), "limits:20:50"),
        (lambda: rollout.evaluate("limits:a", TASK, SHORT), "'limits:a'; valid: limits:MS"),
        (lambda: rollout.evaluate("limits:nan", TASK, SHORT), "limits_ms"),
        (lambda: rollout.evaluate("limits:0", TASK, SHORT), "limits_ms"),
        (lambda: rollout.evaluate("limits:1:2:3", TASK, SHORT), "limits_ms has 3 values for 2 queues; valid: at most"),
        (lambda: rollout.evaluate("pulse", TASK, SHORT, actions="grid"), "actions = 'grid'; valid: \"limits\""),
        (lambda: rollout.evaluate("pulse", TASK, SHORT, recipe="thesis-text", actions="continuous"), "does not support recipe"),
        (
            lambda: rollout.evaluate("pulse:20", TASK, SHORT),
            "controller = 'pulse:20': '20' is unknown; valid: pulse:SETTING=VALUE",
        ),
    ],
)
def test_bad_arguments_are_refused(make, said):
    with pytest.raises(ConfigError, match=said):
        make()
