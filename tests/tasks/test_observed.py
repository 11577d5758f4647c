"""What a task has observed is looked at when a world begins and after its first decision, and a mistake is said in a line."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.traces import RateTrace

ID = "netbuf/QueueThreshold-v0"
TRUE = QueueThreshold.observe


def with_value(value):
    def observe(self, tracker, out):
        TRUE(self, tracker, out)
        out[1] = value
        return out

    return observe


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (lambda self, tracker, out: TRUE(self, tracker, out).copy(), r"Threshold\.observe gave another array, \("),
        (lambda self, tracker, out: None, r"QueueThreshold\.observe gave None; valid: the array `out` .*\(features, rows\) = "),
        (with_value(np.nan), r"QueueThreshold\.observe: feature '\w+' of row 0 is nan; valid: "),
        (with_value(7), r"feature '\w+' of row 0 is 7; valid: -?\d+ to 1, by the observation space"),
    ],
)
@pytest.mark.parametrize("after", [0, 1])
def test_observations_that_are_none_are_refused(observe, message, after, monkeypatch):
    env = gym.make(ID, disable_env_checker=True)
    if after:
        env.reset(seed=1)
    monkeypatch.setattr(QueueThreshold, "observe", observe)
    with pytest.raises(ConfigError, match=message):
        env.step(env.action_space.sample()) if after else env.reset(seed=1)


def test_spaces_that_do_not_hold_the_features_are_refused():
    env = gym.make(ID, disable_env_checker=True)
    task = env.unwrapped.engine.task
    task.observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    with pytest.raises(ConfigError, match=r"QueueThreshold\.observation_space = Box.*; valid: history x features = "):
        env.reset(seed=1)


def test_a_switch_does_not_know_what_its_ports_will_carry():
    env = gym.make(ID, scenario="rlbm/default")
    env.reset(seed=1)
    world = env.unwrapped.engine.scenarios[0]
    port = world.switches[0].ports[0]

    def first(later_mbps):
        links = list(world.links)
        links[port] = replace(links[port], rate_mbps=None, trace=RateTrace([0.0, 5.0, 10.0], [10.0, later_mbps, 10.0]))
        return gym.make(ID, scenario=replace(world, links=tuple(links))).reset(seed=1)[0]

    assert np.array_equal(first(1.0), first(9.0))
    assert not np.array_equal(first(1.0), first(40.0))  # another line rate
