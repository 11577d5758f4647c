"""Every kind of observation with every kind of reward on every task, scalar and vector: a configuration, of one meaning."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch as th

from netbuf_gym import tasks, wrappers
from netbuf_gym.errors import ConfigError
from tests.helpers.release_cases import for_release, sample

pytest.importorskip("hydra")
from netbuf_gym.integrations.normalizing import find_extractors, normalize_by_observations
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training import config_reference, models
from netbuf_gym.training.config import load
from netbuf_gym.training.environment import build_env_kwargs, make_worlds

STEPS, HISTORY = 4, 3
SHORT = {
    "congestion_window": ["scenario=ppcc/4", "scenario.kwargs.duration_s=3"],
    "host_buffers": ["scenario=default"],
    "queue_threshold": ["scenario=default"],
    "receiver_window": ["scenario=default"],
}
STATISTICS, LAST = ["algo.normalize=running", "algo.normalize_clip=5"], [f"env.kwargs.history={HISTORY}"]
OBSERVATIONS = {"ranges": [], "running": STATISTICS, "history": LAST, "running_history": [*STATISTICS, *LAST]}
"""Scaled by fixed ranges, as those of all recipes are; by what was seen beside; the last ones of a recipe with as many."""
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


def made(config, **more):
    """The environments of a configuration, scalar and of two rows, and its networks' first layer, where it has one.

    What the networks see is what the wrappers give: all three have the same statistics, of a few random steps.
    """
    kwargs = build_env_kwargs(config) | more
    scalar, vector = gym.make(config.env.id, **kwargs), make_worlds(config.env.id, 2, 1, kwargs)
    if config.algo.normalize == "none":
        return scalar, vector, None
    policy = models.make_model(config.algo, VectorEnvAdapter(make_worlds(config.env.id, 2, 1, kwargs)), 0).policy
    other = gym.make(config.env.id, **kwargs)
    seen = [other.reset(seed=5)[0], *(other.step(other.action_space.sample())[0] for _ in range(8))]
    normalize_by_observations(policy, np.array(seen))
    (own,) = find_extractors(policy)
    scalar = wrappers.NormalizeObservation(scalar, config.algo.normalize_clip)
    vector = wrappers.VectorNormalizeObservation(vector, config.algo.normalize_clip)
    for one in (scalar, vector):
        one.moments.load(own.moments().to_dict())
        one.update = False
    return scalar, vector, own


ALL = [
    (task, observation, reward) if (i + j) % len(REWARDS) == k else for_release((task, observation, reward))[0]
    for (i, task), (j, observation), (k, reward) in itertools.product(*map(enumerate, (SHORT, OBSERVATIONS, REWARDS)))
]
"""Every pair of a task, an observation and a reward in CI; the release check has them all."""


@pytest.mark.slow
@pytest.mark.parametrize(("task", "observation", "reward"), ALL)
def test_a_combination_means_the_same_scalar_and_vector(task, observation, reward):
    own_reward = ON_SWITCHES.get(reward, REWARDS[reward]) if task == "queue_threshold" else REWARDS[reward]
    config = load("train", [f"env={task}", *SHORT[task], *OBSERVATIONS[observation], *own_reward])
    scalar, vector, network = made(config)
    plain = gym.make(config.env.id, **build_env_kwargs(config) | {"history": 1})
    frozen = network and network.moments().to_dict()
    assert (network is not None) == observation.startswith("running")
    one, many, raw = scalar.reset(seed=3)[0], vector.reset(seed=[3, 3])[0], plain.reset(seed=3)[0]  # ranges are of all rows
    depth = scalar.unwrapped.engine.task.history
    assert (depth == HISTORY) == observation.endswith("history")
    last = [raw] * depth
    scalar.action_space.seed(1)
    for _ in range(STEPS):
        assert one in scalar.observation_space and many in vector.observation_space
        np.testing.assert_array_equal(many[0], one)
        stacked = np.concatenate(last)
        if network is None:
            np.testing.assert_array_equal(one, stacked)
        else:
            np.testing.assert_allclose(network(th.as_tensor(stacked)), one, atol=2e-3)
        action = scalar.action_space.sample()
        one, earned, terminated, truncated, info = scalar.step(action)
        many, both, *_ = vector.step(np.array([action, action]))
        raw, same, *_ = plain.step(action)
        last = [*last[1:], raw]
        assert np.float32(earned) == np.float32(both[0]) == np.float32(same) and np.isfinite(both).all()
        assert sum(info["reward_terms"].values()) == pytest.approx(earned, rel=1e-6, abs=1e-9)
        assert not (terminated or truncated)
    if network is not None:
        assert scalar.moments.to_dict() == vector.moments.to_dict() == network.moments().to_dict() == frozen


@pytest.mark.slow
@pytest.mark.parametrize("task", SHORT)
def test_every_recipe_has_ranges_and_takes_a_history(task):
    for recipe in tasks.get(task).rules.recipes:
        config = load("train", [f"env={task}", *SHORT[task], f"env.kwargs.recipe={recipe}", *LAST])
        scalar, _, _ = made(config)
        rules = scalar.unwrapped.engine.task
        assert rules.history == HISTORY and scalar.observation_space.shape == (HISTORY * rules.width,)
        assert np.isin(scalar.observation_space.low, [-1, 0]).all() and (scalar.observation_space.high == 1).all()
        assert all(feature.low < feature.high for feature in rules.features)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "choice"), sample(itertools.product(SHORT, config_reference.read_choices("reward")), 24))
def test_every_reward_is_a_configuration_of_the_tasks_that_it_is_for(task, choice):
    config = load("train", [f"env={task}", *SHORT[task], f"reward={choice}"])
    own = config.reward.name is None or config.reward.name in tasks.get(task).rewards
    try:
        scalar, vector, _ = made(config)
    except ConfigError as error:
        assert not own and f"which task {task!r} does not have" in str(error)
        return
    scalar.reset(seed=3), vector.reset(seed=[3, 3])
    for _ in range(STEPS):
        action = scalar.action_space.sample()
        earned, both = scalar.step(action)[1], vector.step(np.array([action, action]))[1]
        assert np.isfinite(earned) and np.float32(earned) == np.float32(both[0])


def test_a_combination_for_every_task():
    assert set(SHORT) == set(tasks.names())
