"""Where the environments' own arguments draw the line: both ends are good, what lies beyond is refused by name."""

import math

import gymnasium as gym
import pytest

import netbuf_gym  # noqa: F401 (registers the environments)
from netbuf_gym.errors import ConfigError

BOTH = ("netbuf/CongestionWindow-v0", "netbuf/QueueThreshold-v0")


def made(env_id, **kwargs):
    env = gym.make_vec(env_id, num_envs=2, **kwargs)
    env.close()
    return env


@pytest.mark.parametrize("env_id", BOTH)
@pytest.mark.parametrize(
    ("field", "low", "high"),
    [("interval_s", 0.001, 100.0), ("history", 1, 64), ("threads", 1, 256), ("max_episode_steps", 1, 2**62)],
)
def test_arguments(env_id, field, low, high):
    for value in (low, high):
        made(env_id, **{field: value})
    below = low - 1 if isinstance(low, int) else math.nextafter(low, 0)
    above = high + 1 if isinstance(high, int) else math.nextafter(high, 1e9)
    for value in (below, above, str(low), None if field == "interval_s" else "many", math.nan):
        with pytest.raises(ConfigError, match=field):
            made(env_id, **{field: value})


def test_as_many_senders_as_there_are_flows():
    world = {"name": "dumbbell", "n": 3}
    for senders in (1, 3):
        assert gym.make_vec(BOTH[0], num_envs=2 * senders, scenario=world, senders=senders).num_envs == 2 * senders
    for senders in (0, 4, 1025):
        with pytest.raises(ConfigError, match="senders"):
            gym.make_vec(BOTH[0], num_envs=max(senders, 1), scenario=world, senders=senders)


@pytest.mark.parametrize("beta", [0.0, -0.5, math.nextafter(1.0, 2.0), math.nan])
def test_betas(beta):
    for good in (5e-324, 1.0):
        made(BOTH[1], betas=[1.0, good])
    with pytest.raises(ConfigError, match=r"betas\[1\]"):
        made(BOTH[1], betas=[1.0, beta])


def test_rewards_have_ranges_too():
    for name in ("log_utility", "linear_utility", "alpha_fair"):
        for weight in (0.0, 100.0):
            made(BOTH[0], reward={"name": name, "throughput_weight": weight})
        for weight in (-1e-9, math.nextafter(100.0, 200.0), math.nan):
            with pytest.raises(ConfigError, match="throughput_weight"):
                made(BOTH[0], reward={"name": name, "throughput_weight": weight})
