import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym
from netbuf_gym import wrappers
from netbuf_gym.env import Env
from netbuf_gym.errors import ConfigError
from netbuf_gym.vector import VectorEnv

SHORT = {"name": "ppcc/4", "duration_s": 1.0}
KINDS = [
    (wrappers.LogUtilityReward, wrappers.VectorLogUtilityReward, "log_utility", {"floor": 0.2, "loss_weight": 1}),
    (wrappers.AlphaFairReward, wrappers.VectorAlphaFairReward, "alpha_fair", {"alpha": 0.3}),
]


@pytest.mark.parametrize(("scalar", "vector", "name", "parameters"), KINDS)
def test_wrapped_rewards_are_those_of_the_argument(scalar, vector, name, parameters):
    wrapped = scalar(Env(scenario=SHORT, recipe="ppcc"), **parameters)
    plain = Env(scenario=SHORT, recipe="ppcc", reward={"name": name, **parameters})
    rows = vector(VectorEnv(2, scenario=SHORT, recipe="ppcc"), **parameters)
    wrapped.reset(seed=1), plain.reset(seed=1), rows.reset(seed=[1, 1])
    for _ in range(12):  # over the end of the vector's episode
        _, ours, _, _, info = wrapped.step(7)
        theirs = plain.step(7)[1]
        both = rows.step(np.array([7, 7]))[1]
        assert ours == theirs and list(info["reward_terms"]) == ["throughput", "delay", "loss"]
        if rows.unwrapped.engine.steps[0] > 0 and plain.engine.steps[0] <= 10:
            assert (both == np.float32(ours)).all()


def test_wrappers_are_recorded_in_the_spec():
    env = wrappers.AlphaFairReward(gym.make("netbuf/CongestionWindow-v0"), alpha=0.2)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, wrappers.AlphaFairReward)
    assert again.unwrapped.engine.reward == netbuf_gym.rewards.AlphaFair(alpha=0.2)


@pytest.mark.parametrize(("scalar", "vector", "name", "parameters"), KINDS)
def test_bad_parameters_and_foreign_environments_are_refused(scalar, vector, name, parameters):
    with pytest.raises(ConfigError, match="delay_weight"):
        scalar(Env(scenario=SHORT), delay_weight=-1)
    with pytest.raises(ConfigError, match="netbuf_gym"):
        scalar(gym.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="netbuf_gym"):
        vector(gym.make_vec("CartPole-v1", num_envs=2))
