"""RLlib on the environments, by their ids: `make test-clients` has the Gymnasium that RLlib pins."""

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym  # noqa: F401  # registers the ids

pytest.importorskip("tree")  # of what RLlib needs beside Ray, which is installed for sweeps
ppo = pytest.importorskip("ray.rllib.algorithms.ppo")

pytestmark = pytest.mark.slow
IDS = [f"netbuf/{name}-v0" for name in ("CongestionWindow", "QueueThreshold", "ReceiverWindow", "HostBuffers")]


@pytest.fixture(scope="module", autouse=True)
def ray():
    """Ray on this machine, without its dashboard, for all tests of the module."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def train(env, env_config, runners=0, **multi_agent):
    """Results of one iteration of RLlib's PPO on two environments, in this process or in `runners` others."""
    config = ppo.PPOConfig().environment(env, env_config=env_config)
    config.env_runners(num_env_runners=runners, num_envs_per_env_runner=1 if multi_agent else 2)
    config.training(train_batch_size_per_learner=48, minibatch_size=24, num_epochs=1)
    if multi_agent:
        config.multi_agent(**multi_agent)
    algorithm = config.build_algo()
    try:
        return algorithm.train()
    finally:
        algorithm.stop()


@pytest.mark.parametrize("id", IDS)
def test_ppo_trains_by_id(id):
    assert gym.__version__ == "1.2.2"
    found = train(id, {"max_episode_steps": 8, "history": 2})
    assert found["env_runners"]["num_episodes"] >= 4
    assert found["env_runners"]["episode_len_mean"] == 8
    assert np.isfinite(found["env_runners"]["episode_return_mean"])
    assert found["learners"]["default_policy"]["num_module_steps_trained"] >= 48
    assert np.isfinite(found["learners"]["default_policy"]["total_loss"])


def test_runners_in_other_processes_find_an_id_with_its_module():
    found = train(f"netbuf_gym:{IDS[0]}", {"max_episode_steps": 8}, runners=1)
    assert found["env_runners"]["episode_len_mean"] == 8


def test_agents_of_one_world_share_a_policy():
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
    from ray.tune.registry import register_env

    parallel_env = pytest.importorskip("netbuf_gym.envs.parallel_env")
    register_env("two_senders", lambda config: ParallelPettingZooEnv(parallel_env.ParallelEnv(agents=2, **config)))
    policy = {"policies": {"shared"}, "policy_mapping_fn": lambda agent, episode, **_: "shared"}
    found = train("two_senders", {"max_episode_steps": 8}, **policy)
    assert found["env_runners"]["episode_len_mean"] == 8
    assert np.isfinite(found["learners"]["shared"]["total_loss"])
