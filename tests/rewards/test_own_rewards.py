"""Rewards of one's own: which functions are taken, and which values."""

import functools

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError

ID, TASK = "netbuf/CongestionWindow-v0", "congestion_window"
SHORT = {"name": "ppcc/4", "duration_s": 1.0}


@pytest.fixture
def rewards():
    """Those of the task, which are as before afterwards."""
    own = tasks.get(TASK).rewards
    before = dict(own)
    yield own
    own.clear()
    own.update(before)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (3, "reward = 3 cannot be called"),
        ("power", "reward = 'power' cannot be called"),
        (dict, "valid: a function, or a class of objects that can be called"),
        (lambda: 1, "no first parameter"),
        (lambda *, weight=1.0: 1, "no first parameter"),
        (lambda **kwargs: 1, "no first parameter"),
        (lambda tracker, *args: 1, r"parameter '\*args'"),
        (lambda tracker, **kwargs: 1, r"parameter '\*\*kwargs'"),
        (lambda tracker, name="x": 1, "parameter 'name'"),
        (lambda tracker, terms=1: 1, "parameter 'terms'"),
        (lambda tracker, weight=1.0, /: 1, "parameter 'weight' cannot be given by its name"),
        (functools.partial(lambda tracker: 1), "valid: name="),
    ],
)
def test_what_is_no_reward_is_refused(rewards, reward, message):
    before = dict(rewards)
    with pytest.raises(ConfigError, match=message):
        tasks.register_reward(TASK, reward)
    assert rewards == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, r"reward 'mine' has shape \(\); valid: \(2,\)"),
        ([[1.0, 2.0]], r"has shape \(1, 2\); valid: \(2,\)"),
        ([1.0], r"has shape \(1,\)"),
        ([1.0, [2.0]], "valid: finite numbers"),
        (["a", "b"], "valid: finite numbers"),
        (None, r"has shape \(\)"),
        ([0.0, np.nan], "reward 'mine' is nan of row 1; valid: finite"),
        ([np.inf, -np.inf], "reward 'mine' is inf of row 0"),
        ([0.0, 1e300], "reward 'mine' is inf of row 1"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_wrong_value_is_refused(rewards, value, message):
    tasks.register_reward(TASK, lambda tracker: value, "mine")
    env = gym.make_vec(ID, num_envs=2, scenario=SHORT, reward="mine")
    env.reset(seed=1)
    with pytest.raises(ConfigError, match=message):
        env.step(np.array([5, 5]))
    env.close()


def test_large_values_whose_sum_is_not_finite_are_taken(rewards):
    tasks.register_reward(TASK, lambda tracker: np.full(tracker.rows, 3e38), "mine")
    env = gym.make_vec(ID, num_envs=2, scenario=SHORT, reward="mine")
    env.reset(seed=1)
    assert (env.step(np.array([5, 5]))[1] == np.float32(3e38)).all()
    env.close()
