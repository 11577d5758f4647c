"""Every observation wrapper with every reward wrapper on every task, scalar and vector: a configuration, of one meaning."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks, wrappers

pytest.importorskip("hydra")
from netbuf_gym.zoo.config import load
from netbuf_gym.zoo.worlds import env_kwargs

STEPS = 4
SHORT = {
    "congestion_window": ["scenario=ppcc/4", "scenario.kwargs.duration_s=3"],
    "host_buffers": ["scenario=default"],
    "queue_threshold": ["scenario=default"],
    "receiver_window": ["scenario=default"],
}
OBSERVATIONS = {"ranges": [], "running": [], "history": ["env.kwargs.history=3"]}
"""Scaled by fixed ranges, as all recipes do; by what was seen; the last ones of a recipe with as many."""
REWARDS = {
    "three_sigma": ["reward=range_normalized", "reward.kwargs.delay_weight=0.7"],
    "alpha_fair": ["reward=alpha_fair", "reward.kwargs.alpha=1.5"],
    "log_utility": ["reward=log_utility"],
    "weighted": ["reward=linear_utility", "reward.kwargs.delay_weight=0.3", "reward.kwargs.loss_weight=2.0"],
}
ON_SWITCHES = {
    "log_utility": ["reward=switch_utility", "reward.kwargs.measure=log"],
    "weighted": ["reward=switch_utility", "reward.kwargs.throughput_weight=0.5", "reward.kwargs.loss_weight=2.0"],
}
"""A switch has no round trips, and its own names for what is like them."""


def made(task, observation, reward, **more):
    own = ON_SWITCHES.get(reward, REWARDS[reward]) if task == "queue_threshold" else REWARDS[reward]
    config = load("train", [f"env={task}", *SHORT[task], *OBSERVATIONS[observation], *own])
    kwargs = env_kwargs(config) | more
    scalar, vector = gym.make(config.env.id, **kwargs), gym.make_vec(config.env.id, num_envs=2, **kwargs)
    if observation == "running":
        scalar, vector = wrappers.NormalizeObservation(scalar), wrappers.VectorNormalizeObservation(vector)
        seen = wrappers.NormalizeObservation(gym.make(config.env.id, **kwargs))
        seen.reset(seed=5)
        for _ in range(8):
            seen.step(seen.action_space.sample())
        scalar.moments.load(seen.moments.to_dict()), vector.moments.load(seen.moments.to_dict())
        scalar.update = vector.update = False
    return scalar, vector


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("task", SHORT)
def test_a_combination_means_the_same_scalar_and_vector(task, observation, reward):
    scalar, vector = made(task, observation, reward)
    frozen = scalar.moments.to_dict() if observation == "running" else None
    one, many = scalar.reset(seed=3)[0], vector.reset(seed=[3, 3])[0]  # ranges of rewards are of all rows
    scalar.action_space.seed(1)
    rewards = []
    for _ in range(STEPS):
        assert one in scalar.observation_space and many in vector.observation_space
        np.testing.assert_array_equal(many[0], one)
        action = scalar.action_space.sample()
        one, earned, terminated, truncated, info = scalar.step(action)
        many, both, *_ = vector.step(np.array([action, action]))
        assert np.float32(earned) == np.float32(both[0]) and np.isfinite(both).all()
        assert sum(info["reward_terms"].values()) == pytest.approx(earned, rel=1e-6, abs=1e-9)
        assert not (terminated or truncated)
        rewards.append(earned)
    assert observation != "running" or (scalar.moments.to_dict() == frozen and vector.moments.to_dict() == frozen)
    if observation == "history":
        plain, _ = made(task, "ranges", reward, history=1)
        assert one.shape == (3 * len(plain.reset(seed=3)[0]),)
        scalar.action_space.seed(1)
        again = [plain.step(scalar.action_space.sample())[:2] for _ in range(STEPS)]
        np.testing.assert_array_equal(one, np.concatenate([seen for seen, _ in again[-3:]]))
        assert [earned for _, earned in again] == rewards


def test_a_combination_for_every_task():
    assert set(SHORT) == set(tasks.names())
