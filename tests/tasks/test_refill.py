"""The rule `refill`: what it decides by hand-made telemetry, and that it fills a link that has become faster."""

import numpy as np
import pytest

from netbuf_gym.controllers import ConstantAction
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.receiver_window import ReceiverWindow, Refill, receiver_world
from netbuf_gym.traces import RateTrace
from tests.tasks.hand_made_receiver import arrived, telemetry, tracker

TASK = "receiver_window"


class Played:
    """The rule over hand-made intervals of 0.1 s; ten packets arrive, round trips are 50 ms and more."""

    def __init__(self, rule, **env):
        self.rules = ReceiverWindow(**({"actions": "continuous"} | env))
        self.tracker = tracker(long_memory=self.rules.recipe == "memory")
        self.policy, self.state = rule.start(self.rules, [1]), None

    def __call__(self, made, begins=False):
        """The gain decided after an interval."""
        self.tracker.update(made)
        now = self.rules.observe(self.tracker, np.empty((self.rules.width, 1), np.float32)).T
        now = np.concatenate([np.full((1, self.rules.width * (self.rules.history - 1)), 0.5, np.float32), now], axis=1)
        actions, self.state = self.policy(now, self.state, np.array([begins]))
        return float(self.rules.action_mapping.decode(self.rules.check_actions(actions, 1))["bdp"][0])


RULE = {
    "gain": 0.75,
    "refill_gain": 1.25,
    "patience": 3,
    "least_share": 0.02,
    "mean_share": 0.04,
    "packets": 0.1,
}
# a packet takes 10 ms: below 2 + 1 ms of least and 2.0 + 1 ms of mean delay nothing has waited


@pytest.mark.parametrize("env", [{}, {"recipe": "memory"}, {"history": 2}])
def test_a_queue_that_stays_empty_is_refilled(env):
    play = Played(Refill(**RULE), **env)
    said = [play(arrived(10, delay_s)) for delay_s in (0.0005, 0.0005, 0.0005, 0.0005, 0.005, 0.0005)]
    assert said == pytest.approx([0.75, 0.75, 1.25, 1.25, 0.75, 0.75], rel=1e-6)


def test_the_least_and_the_mean_delay_have_their_own_bounds():
    for least_s, mean_s, gain in ((0.0019, 0.0029, 1.25), (0.0021, 0.0029, 0.75), (0.0019, 0.0031, 0.75)):
        play = Played(Refill(**{**RULE, "patience": 1}))
        assert play(arrived(10, mean_s, queue_delay_min_s=least_s)) == pytest.approx(gain, rel=1e-6)


def test_silence_changes_nothing():
    play = Played(Refill(**{**RULE, "patience": 2}))
    said = [play(made) for made in (arrived(10), telemetry(), arrived(10), telemetry(), arrived(10, 0.02), telemetry())]
    assert said == pytest.approx([0.75, 0.75, 1.25, 1.25, 0.75, 0.75], rel=1e-6)


def test_an_episode_begins_without_memory():
    play = Played(Refill(**{**RULE, "patience": 2}))
    said = [play(arrived(10)), play(arrived(10), begins=True), play(arrived(10)), play(telemetry(), begins=True)]
    assert said == pytest.approx([0.75, 0.75, 1.25, 1], rel=1e-6)


def test_of_discrete_actions_the_nearest_is_taken():
    play = Played(Refill(**{**RULE, "patience": 1}), actions="factors")
    assert [play(arrived(10, delay_s)) for delay_s in (0.0005, 0.005)] == [1.25, 0.75]


def play(controller, scenario: Scenario):
    """Report of a world."""
    (report,) = rollout.evaluate(controller, TASK, scenario, [1], **controller.match_arguments({}))
    return report


def test_a_gain_below_one_leaves_a_link_idle_that_has_become_faster_and_the_rule_does_not():
    """From 20 to 80 Mbit/s, 40 ms: of 0.95 products and 2 segments the window tends to 2 / 0.05 = 40 segments, 12 Mbit/s."""
    trace = RateTrace([0.0, 5.0], [20.0, 80.0], period_s=20.0)
    world = receiver_world(trace=trace, rtt_ms=40.0, buffer_packets=400, duration_s=20.0)
    stuck, rule = (play(controller, world) for controller in (ConstantAction(4, "constant:4"), Refill()))
    assert stuck["share"] < 0.4 and rule["share"] > 0.88
    assert rule["queue_delay_mean_ms"] < 4


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"gain": 0.4}, "gain"),
        ({"refill_gain": 0.9}, "refill_gain"),
        ({"patience": 0}, "patience"),
        ({"segments": 20}, "segments"),
        ({"packets": -1}, "packets"),
    ],
)
def test_arguments_out_of_range_are_refused(given, named):
    with pytest.raises(ConfigError, match=f"^{named} = "):
        Refill(**given)


def test_it_plays_no_other_actions():
    with pytest.raises(ConfigError, match=r'acts_on = .window. with the controller refill; valid: "bdp"'):
        Refill().start(ReceiverWindow(acts_on="window"), [1])
    with pytest.raises(ConfigError, match="refill does not support recipe 'nuwa'"):
        Refill().start(ReceiverWindow(recipe="nuwa"), [1])
