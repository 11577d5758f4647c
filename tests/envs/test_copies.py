"""Copies and pickles of what holds running worlds are refused by name, whatever stands around it; what makes it is not."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import CopyError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.wrappers import LogUtilityReward, NormalizeObservation

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


MAKERS = {
    "made": lambda: gym.make(ID),
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
    "stable-baselines3": adapter,
    "engine": lambda: gym.make(ID).unwrapped.engine,
    "plant": lambda: gym.make(ID).unwrapped.engine.plant,
    "simulator": lambda: Simulator(nb.scenarios.dumbbell(), 1),
}
WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps, "cloudpickle": cloudpickle.dumps}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("maker", MAKERS)
def test_refused(maker, way):
    with pytest.raises(CopyError, match=r"no copies; valid: make another, as gym.make\(env.spec\)"):
        WAYS[way](MAKERS[maker]())


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_refused_under_stable_baselines3s_wrappers(way):
    with pytest.raises(CopyError):
        WAYS[way](monitored())


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
