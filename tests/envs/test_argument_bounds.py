"""Where the environments' own arguments draw the line: both ends are good, what lies beyond is refused by name."""

import math

import gymnasium as gym
import pytest

from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

ALL = ("netbuf/CongestionWindow-v0", "netbuf/QueueThreshold-v0", "netbuf/ReceiverWindow-v0", "netbuf/HostBuffers-v0")


def made(env_id, **kwargs):
    env = gym.make_vec(env_id, num_envs=2, **kwargs)
    env.close()
    return env


@pytest.mark.parametrize("env_id", ALL)
@pytest.mark.parametrize(
    ("field", "low", "high"),
    [("interval_s", 0.001, 100.0), ("history", 1, 64), ("threads", 1, 256), ("max_episode_steps", 1, 2**62)],
)
def test_arguments(env_id, field, low, high):
    for value in (low, high):
        made(env_id, **{field: value})
    below = low - 1 if isinstance(low, int) else math.nextafter(low, 0)
    above = high + 1 if isinstance(high, int) else math.nextafter(high, 1e9)
    for value in (below, above, str(low), "many", math.nan):
        with pytest.raises(ConfigError, match=field):
            made(env_id, **{field: value})


def test_as_many_senders_as_there_are_flows():
    world = {"name": "dumbbell", "n": 3}
    for senders in (1, 3):
        assert gym.make_vec(ALL[0], num_envs=2 * senders, scenario=world, senders=senders).num_envs == 2 * senders
    for senders in (0, 4, 1025):
        with pytest.raises(ConfigError, match="senders"):
            gym.make_vec(ALL[0], num_envs=max(senders, 1), scenario=world, senders=senders)


@pytest.mark.parametrize("beta", [0.0, -0.5, math.nextafter(1.0, 2.0), math.nan])
def test_betas(beta):
    for good in (5e-324, 1.0):
        made(ALL[1], betas=[1.0, good])
    with pytest.raises(ConfigError, match=r"betas\[1\]"):
        made(ALL[1], betas=[1.0, beta])


@pytest.mark.parametrize("steps", [0, -1, "x", 1.5, True])
def test_a_number_of_steps_that_is_none_is_refused_by_name(steps):
    for make in (
        lambda: gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, max_episode_steps=steps),
        lambda: VectorEnv(2, max_episode_steps=steps),
        lambda: Env(max_episode_steps=steps),
    ):
        with pytest.raises(ConfigError, match=rf"max_episode_steps = {steps!r} is .*; valid: 1\.\."):
            make()


def test_gymnasium_refuses_what_it_keeps_to_itself():
    with pytest.raises((ValueError, AssertionError), match="`max_episode_steps` to be positive, actually: 0"):
        gym.make("netbuf/CongestionWindow-v0", max_episode_steps=0)
