import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym
from netbuf_gym import wrappers
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

SHORT = {"name": "ppcc/4", "duration_s": 1.0}
KINDS = [
    (wrappers.LogUtilityReward, wrappers.VectorLogUtilityReward, "log_utility", {"floor": 0.2, "loss_weight": 1}),
    (wrappers.AlphaFairReward, wrappers.VectorAlphaFairReward, "alpha_fair", {"alpha": 0.3}),
    (wrappers.AlphaFairReward, wrappers.VectorAlphaFairReward, "alpha_fair", {"alpha": 2, "floor": 0.1}),
    (wrappers.NormalizedReward, wrappers.VectorNormalizedReward, "range_normalized", {"loss_weight": 0.2, "memory": 100}),
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
    for make, env in ((scalar, Env(scenario=SHORT)), (vector, VectorEnv(2, scenario=SHORT))):
        with pytest.raises(ConfigError, match=f"reward '{name}' has no parameter 'wait'; valid: .*delay_weight"):
            make(env, wait=1)
    with pytest.raises(ConfigError, match="netbuf_gym"):
        scalar(gym.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="netbuf_gym"):
        vector(gym.make_vec("CartPole-v1", num_envs=2))


class Counting:
    """How often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, telemetry):
        self.calls += 1
        return {"calls": np.full(telemetry.rows, self.calls), "acks": 0 * telemetry.acks}


def test_exchange_takes_whatever_the_argument_takes_however_wrapped():
    def acks(telemetry):
        return telemetry["acks"]

    env = wrappers.NormalizeObservation(gym.wrappers.RecordEpisodeStatistics(gym.make("netbuf/CongestionWindow-v0")))
    env.reset(seed=1)
    for reward, terms in (
        (acks, ["acks"]),
        (Counting(), ["calls", "acks"]),
        (Counting, ["calls", "acks"]),
        ("power", ["power"]),
        ({"name": "alpha_fair", "alpha": 3}, ["throughput", "delay", "loss"]),
        (netbuf_gym.rewards.RangeNormalized(), ["throughput", "delay", "loss"]),
    ):
        wrappers.exchange_reward(env, reward)
        _, value, *_, info = env.step(5)
        assert list(info["reward_terms"]) == terms
        assert value == pytest.approx(sum(info["reward_terms"].values()), rel=1e-6, abs=1e-6)


def test_what_cannot_be_exchanged_leaves_the_reward_as_it_was():
    env = VectorEnv(2, scenario=SHORT, reward="power")
    env.reset(seed=1)
    for bad in (3, "thesis_text", lambda telemetry: telemetry["nope"], {"name": "power", "exponent": -1}, lambda telemetry: 1):
        with pytest.raises(ConfigError):
            wrappers.exchange_reward(env, bad)
    assert env.engine.reward == netbuf_gym.rewards.Power() and env.step(np.array([5, 5]))[1].shape == (2,)


def test_each_environment_that_is_given_an_object_has_its_own():
    own = Counting()
    envs = [VectorEnv(2, scenario=SHORT), Env(scenario=SHORT)]
    envs.append(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, vectorization_mode="sync"))
    for env in envs:
        wrappers.exchange_reward(env, own)
        env.reset(seed=1)
    assert (envs[0].step(np.array([5, 5]))[1] == 1).all() and (envs[0].step(np.array([5, 5]))[1] == 2).all()
    ranges = netbuf_gym.rewards.RangeNormalized()
    for env in (VectorEnv(2, scenario=SHORT, reward=ranges), Env(scenario=SHORT, reward=ranges)):
        env.reset(seed=1)
        env.step(env.action_space.sample())
        assert env.engine.reward == ranges and env.engine.reward._ranges[0].count == env.engine.rows
    assert ranges._ranges[0].count == 0
    assert envs[1].step(5)[1] == 1 and (envs[2].step(np.array([5, 5]))[1] == 1).all() and own.calls == 0


def test_exchange_as_a_wrapper():
    scalar, vector = wrappers.ExchangeReward(Env(scenario=SHORT), Counting()), VectorEnv(2, scenario=SHORT)
    vector = wrappers.VectorExchangeReward(vector, {"name": "power", "exponent": 2})
    scalar.reset(seed=1), vector.reset(seed=1)
    assert scalar.step(5)[1] == 1 and vector.unwrapped.engine.reward.exponent == 2
    vector.step(np.array([5, 5]))
    env = wrappers.ExchangeReward(gym.make("netbuf/CongestionWindow-v0"), {"name": "power", "exponent": 2})
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.engine.reward == netbuf_gym.rewards.Power(2)


def test_rewards_are_exchanged_through_the_environments_of_stable_baselines():
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    from netbuf_gym.integrations.sb3 import VectorEnvAdapter

    def ones(telemetry):
        return np.ones(telemetry.rows)

    made = "netbuf/CongestionWindow-v0"
    adapted = VectorEnvAdapter(wrappers.VectorNormalizeObservation(gym.make_vec(made, num_envs=2, scenario=SHORT)))
    several = common.DummyVecEnv([lambda: gym.make(made, scenario=SHORT)] * 2)
    wrapped = [common.VecNormalize(env, norm_reward=False) for env in (adapted, several)]
    for env in (adapted, several, *wrapped):
        wrappers.exchange_reward(env, "log_utility")
        env.reset()
        assert (env.step(np.array([5, 5]))[1] != 1).all()
        wrappers.exchange_reward(env, ones)
        assert (env.step(np.array([5, 5]))[1] == 1).all()
    with pytest.raises(ConfigError, match="is no environment of netbuf_gym in this process"):
        wrappers.exchange_reward(common.DummyVecEnv([lambda: gym.make("CartPole-v1")]), ones)
