"""Copies and pickles of what holds running worlds are refused by name, whatever stands around it; before they are others."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import CopyError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.wrappers import LogUtilityReward, NormalizeObservation
from netbuf_gym.wrappers.rewards import exchange_reward

cloudpickle = pytest.importorskip("cloudpickle")
ID = "netbuf/CongestionWindow-v0"


class Around(gym.Wrapper):
    """A wrapper of a user's."""


def adapter():
    return pytest.importorskip("netbuf_gym.integrations.sb3").VectorEnvAdapter(gym.make_vec(ID, num_envs=2))


def monitored():
    return pytest.importorskip("stable_baselines3.common.vec_env").VecMonitor(adapter())


def parallel():
    return pytest.importorskip("netbuf_gym.envs.parallel_env").ParallelEnv(agents=2)


ENVIRONMENTS = {
    "made": lambda: gym.make(ID),
    "limited": lambda: gym.make(ID, max_episode_steps=5),
    "random durations": lambda: gym.make(ID, per_ack=True),
    "scalar": lambda: gym.make(ID).unwrapped,
    "switch": lambda: gym.make("netbuf/QueueThreshold-v0"),
    "vector": lambda: gym.make_vec(ID, num_envs=2),
    "gymnasium's wrapper": lambda: gym.wrappers.FlattenObservation(gym.make(ID)),
    "gymnasium's vector wrapper": lambda: gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec(ID, num_envs=2)),
    "our wrapper": lambda: LogUtilityReward(gym.make(ID)),
    "our other wrapper": lambda: NormalizeObservation(gym.make(ID)),
    "a user's wrapper": lambda: Around(gym.make(ID)),
    "wrappers": lambda: gym.wrappers.TransformReward(Around(gym.make(ID)), float),
    "PettingZoo": parallel,
}
WORLDS = {
    "stable-baselines3": adapter,
    "engine": lambda: gym.make(ID).unwrapped.engine,
    "plant": lambda: gym.make(ID).unwrapped.engine.plant,
    "simulator": lambda: Simulator(nb.scenarios.dumbbell(), 1),
}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "cloudpickle": lambda one: cloudpickle.loads(cloudpickle.dumps(one)),
}
REFUSED = pytest.raises(CopyError, match=r"no copies; valid: make another, as gym.make\(env.spec\)")


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("maker", WORLDS)
def test_running_worlds_are_not_copied(maker, way):
    with REFUSED:
        COPIES[way](WORLDS[maker]())


PAIRS = {(maker, way) for maker in ENVIRONMENTS for way in COPIES}


# Gymnasium's FlattenObservation holds a lambda, which pickle does not take.
@pytest.mark.parametrize(("maker", "way"), sorted(PAIRS - {("gymnasium's wrapper", "pickle")}))
def test_a_copy_of_an_environment_is_another_until_it_runs(maker, way):
    env = ENVIRONMENTS[maker]()
    made = COPIES[way](env)
    assert made.unwrapped is not env.unwrapped and made.unwrapped.engine is not env.unwrapped.engine
    assert play(made) == play(ENVIRONMENTS[maker]())
    play(env)
    for one in (env, made):
        with REFUSED:
            COPIES[way](one)


def play(env):
    """Return what three decisions of an environment come to, as a text."""
    steps = [env.reset(seed=1)]
    for _ in range(3):
        actions = dict.fromkeys(env.agents, 3) if hasattr(env, "agents") else np.full(env.action_space.shape, 3)
        steps.append(env.step(actions))
    return str(steps)


def test_a_copy_has_generators_and_rewards_of_the_original():
    env = gym.make(ID)
    env.unwrapped.np_random.random()
    exchange_reward(env, {"name": "alpha_fair", "alpha": 2.0})
    made = copy.deepcopy(env)
    assert made.spec == env.spec and made.unwrapped.np_random is not env.unwrapped.np_random
    for one in (env, made):
        one.reset()
    assert made.unwrapped.engine.seeds == env.unwrapped.engine.seeds
    assert made.step(3)[4]["reward_terms"] == env.step(3)[4]["reward_terms"]


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_refused_under_stable_baselines3s_wrappers(way):
    with pytest.raises(CopyError):
        COPIES[way](monitored())


def test_a_refused_copy_is_a_type_error_as_python_has_it():
    assert issubclass(CopyError, TypeError) and issubclass(CopyError, nb.errors.NetbufError)


def test_the_environment_goes_on_after_a_refusal():
    env = gym.make(ID)
    env.reset(seed=1)
    with pytest.raises(CopyError):
        copy.copy(env)
    env.step(3)


def test_others_environments_are_copied_as_ever():
    gym.make(ID)
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    for made in (copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert type(made) is type(env) and made.unwrapped.spec.id == "CartPole-v1"
    assert copy.copy(env).unwrapped is env.unwrapped
    assert np.array_equal(copy.deepcopy(env).step(1)[0], env.step(1)[0])


def test_specs_and_constructors_go_through():
    env = gym.make(ID, scenario={"name": "ppcc/4", "duration_s": 3.0})
    for spec in (
        copy.deepcopy(env.spec),
        pickle.loads(pickle.dumps(env.spec)),
        gym.envs.registration.EnvSpec.from_json(env.spec.to_json()),
    ):
        again = gym.make(spec)
        assert np.array_equal(again.reset(seed=4)[0], env.reset(seed=4)[0])
        assert np.array_equal(again.step(7)[0], env.step(7)[0])
    maker = cloudpickle.loads(cloudpickle.dumps(lambda: gym.make(ID, scenario="ppcc/2")))
    assert maker().reset(seed=1)[0].shape == env.observation_space.shape


def test_scenarios_and_results_are_copied():
    scenario = nb.scenarios.dumbbell(duration_s=1.0)
    result = nb.simulate(scenario)
    for made in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert made.flows == result.flows or made.flows[0].packets_sent == result.flows[0].packets_sent
