import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.wrappers import NormalizeObservation, VectorNormalizeObservation
from netbuf_gym.wrappers.normalize import RunningMoments

SHORT = {"name": "ppcc/4", "duration_s": 1.0}


def test_moments_are_those_of_all_that_was_seen():
    rng = np.random.default_rng(0)
    batches = [rng.normal(3, 2, (n, 4)) for n in (1, 50, 7)]
    moments = RunningMoments(4)
    for batch in batches:
        moments.update(batch)
    seen = np.concatenate(batches)
    np.testing.assert_allclose(moments.mean, seen.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(moments.variance, seen.var(axis=0), rtol=1e-3)


def test_vector_normalises_everything_it_returns_and_can_be_frozen():
    env = VectorNormalizeObservation(VectorEnv(64, scenario="ppcc/random", max_episode_steps=30), clip=5)
    observations, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        observations, _, _, truncated, info = env.step(rng.integers(3, 9, 64))
        assert observations in env.observation_space and observations.dtype == np.float32
    assert truncated.all() and all(final in env.single_observation_space for final in info["final_obs"])
    env.update = False
    state = env.moments.to_dict()
    mask = np.zeros(64, bool)
    mask[3] = True
    env.reset(options={"reset_mask": mask})
    env.step(np.full(64, 5))
    assert env.moments.to_dict() == state
    env.update = True
    env.reset(options={"reset_mask": mask})
    assert env.moments.count == pytest.approx(state["count"] + 1)


def test_scalar_and_vector_agree_from_the_same_state():
    scalar, vector = NormalizeObservation(Env(scenario=SHORT)), VectorNormalizeObservation(VectorEnv(1, scenario=SHORT))
    a, b = scalar.reset(seed=1)[0], vector.reset(seed=1)[0][0]
    np.testing.assert_allclose(a, b)
    for _ in range(8):
        np.testing.assert_allclose(scalar.step(6)[0], vector.step(np.array([6]))[0][0], rtol=1e-6)
    assert scalar.observation_space == vector.single_observation_space


def test_state_round_trips_and_damage_is_refused():
    moments, other = RunningMoments(2), RunningMoments(2)
    moments.update(np.array([[1.0, 2.0], [3.0, 5.0]]))
    other.load(moments.to_dict())
    assert other.to_dict() == moments.to_dict()
    good = moments.to_dict()
    for bad in (None, {}, {**good, "mean": [1.0]}, {**good, "variance": [1.0, -1.0]}, {**good, "mean": [1.0, float("nan")]}):
        with pytest.raises(CheckpointError):
            other.load(bad)
    assert other.to_dict() == good


def test_bad_arguments_are_refused():
    with pytest.raises(ConfigError, match="clip"):
        NormalizeObservation(Env(scenario=SHORT), clip=0)
    with pytest.raises(ConfigError, match="Box"):
        NormalizeObservation(gym.make("FrozenLake-v1"))
