"""Rewards of one's own, and what `info` says, on a plant and a task that have nothing to do with networks (`heating.py`)."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import plants, tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError
from tests.plants.heating import Comfort, Room, Rooms, record

ID = "test/Heating-v0"
FAILS = {"name": "test/room", "fails_at_s": 0.55}


@pytest.fixture(autouse=True)
def heating():
    tasks.register(record())
    plants.register("rooms", Rooms)
    yield
    plants.unregister("rooms")
    tasks.unregister("heating")


def test_a_function_of_ones_own_is_a_reward():
    def warmth(telemetry, *, weight=1.0):
        return weight * telemetry["temperature_c"]

    tasks.register_reward("heating", warmth)
    env = gym.make(ID, plant="rooms", reward={"name": "warmth", "weight": 2})
    env.reset(seed=1)
    _, reward, *_, info = env.step(0)
    assert reward == pytest.approx(2 * env.unwrapped.telemetry["temperature_c"]) and info["reward_terms"] == {"warmth": reward}
    env.unwrapped.spec.to_json()
    with pytest.raises(ConfigError, match="reward 'warmth' has no parameter 'wait'; valid: weight"):
        gym.make(ID, plant="rooms", reward={"name": "warmth", "wait": 2})
    with pytest.raises(ConfigError, match="parameter 'factor' has no default"):
        tasks.register_reward("heating", lambda telemetry, factor: factor)


def test_a_reward_of_ones_own_may_be_nan_of_a_world_that_has_failed():
    def now(telemetry):
        return telemetry.now["temperature_c"]

    tasks.register_reward("heating", now)
    env = gym.make(ID, plant="rooms", scenario=FAILS, reward="now")
    env.reset(seed=1)
    truncated = False
    while not truncated:
        _, reward, _, truncated, info = env.step(1)
    assert reward == 0 and info["failure"] == "the window broke"


def test_a_reward_of_another_task_says_what_lacks():
    with pytest.raises(ConfigError, match=r"'log_utility' needs throughput_ratio, rtt_ratio, loss_ratio, which .*'heating'"):
        gym.make(ID, plant="rooms", reward="log_utility")
    with pytest.raises(ConfigError, match="reward 'comfort' needs temperature_c, which task 'congestion_window' does not"):
        Env(reward="comfort")
    with pytest.raises(ConfigError, match="reward 'comfort' needs temperature_c"):
        Env(reward=Comfort())


def test_info_of_a_world_that_has_failed_says_that_nothing_was_measured():
    env = VectorEnv(2, task="heating", plant="rooms", scenario=FAILS, info=["reward_terms", "telemetry"])
    env.reset(seed=1)
    truncated = np.zeros(2, bool)
    while not truncated.any():
        _, rewards, _, truncated, info = env.step(np.ones(2, int))
        np.testing.assert_array_equal(info["reward_terms"]["comfort"], rewards)
        np.testing.assert_array_equal(np.isnan(info["telemetry"]["temperature_c"]), truncated)
    assert (rewards[truncated] == 0).all() and info["final_info"]["failure"][truncated][0] == "the window broke"


def test_worlds_of_another_kind_may_be_objects_or_functions():
    def cold(rng):
        return Room(outside_c=float(rng.uniform(-20, 0)), duration_s=1.0)

    for scenario in (Room(outside_c=-5.0), cold):
        env = gym.make(ID, plant="rooms", scenario=scenario)
        env.reset(seed=1)
        assert env.unwrapped.engine.scenarios[0].outside_c < 0 and env.step(1)[1] < 0
