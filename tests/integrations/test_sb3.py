"""The adapter against stable-baselines3's own vector environment, world for world."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from netbuf_gym.errors import ConfigError as Refused
from netbuf_gym.integrations.sb3 import FIRST_EVALUATION_SEED, VectorEnvAdapter
from netbuf_gym.training import schema

WORLDS = 4


def cart_pole():
    return gym.make("CartPole-v1", max_episode_steps=15)


def batch(mode=AutoresetMode.SAME_STEP, worlds=WORLDS):
    return SyncVectorEnv([cart_pole] * worlds, autoreset_mode=mode)


def native(num_envs=4, **kwargs):
    return gym.make_vec("netbuf/CongestionWindow-v0", num_envs=num_envs, scenario="ppcc/4", **kwargs)


def test_agrees_with_dummy_vec_env():
    ours, theirs = VectorEnvAdapter(batch()), VecMonitor(DummyVecEnv([cart_pole] * WORLDS))
    theirs.seed(7)
    ours.seed(7)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    generator, ends = np.random.default_rng(0), []
    for _ in range(60):
        actions = generator.integers(0, 2, WORLDS)
        ours_step, theirs_step = ours.step(actions), theirs.step(actions)
        for got, expected in zip(ours_step[1:3], theirs_step[1:3], strict=True):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
        running = ~theirs_step[2]  # the two draw the next episodes' starts differently
        if len(ends) == 0:
            np.testing.assert_array_equal(ours_step[0][running], theirs_step[0][running])
        for got, expected in zip(ours_step[3], theirs_step[3], strict=True):
            assert ("terminal_observation" in got) == ("terminal_observation" in expected)
            if "terminal_observation" in got:
                assert got["TimeLimit.truncated"] == expected["TimeLimit.truncated"]
                assert got["episode"].keys() == expected["episode"].keys()
                assert (got["episode"]["r"], got["episode"]["l"]) == (expected["episode"]["r"], expected["episode"]["l"])
                if len(ends) == 0:
                    np.testing.assert_array_equal(got["terminal_observation"], expected["terminal_observation"])
        if not running.all():
            ends.append(ours_step[3])
            break
    assert ends, "no episode ended"


def test_truncated_means_not_terminated():
    adapter = VectorEnvAdapter(batch())
    adapter.seed(0)
    adapter.reset()
    seen = set()
    for step in range(40):
        _, _, dones, infos = adapter.step(np.full(WORLDS, step % 2))
        for world in np.flatnonzero(dones):
            seen.add((infos[world]["TimeLimit.truncated"], infos[world]["episode"]["l"] == 15))
    assert (True, True) in seen  # balanced until the time limit
    assert all(truncated == at_limit for truncated, at_limit in seen)


def test_final_observations_are_not_the_next_episodes():
    adapter = VectorEnvAdapter(native(max_episode_steps=5))
    first = adapter.reset()
    for _ in range(5):
        batch_step = adapter.step_batch(np.full(4, 10))
    assert batch_step.truncated_worlds.tolist() == [0, 1, 2, 3]
    assert batch_step.truncated_observations.shape == first.shape
    assert not np.array_equal(batch_step.truncated_observations, batch_step.observations)
    np.testing.assert_array_equal(batch_step.observations, first)


def test_statistics_take_up_reports_and_start_over():
    adapter = VectorEnvAdapter(native(max_episode_steps=8), info_keywords=("utility", "no such entry"))
    adapter.reset()
    rewards = np.zeros(4)
    for step in range(16):
        batch_step = adapter.step_batch(np.full(4, 6))
        rewards += batch_step.rewards
        assert len(batch_step.episodes) == (4 if step % 8 == 7 else 0)
        if batch_step.episodes:
            for world, episode in enumerate(batch_step.episodes):
                assert set(episode) == {"r", "l", "t", "utility"}
                assert episode["l"] == 8
                assert episode["r"] == pytest.approx(rewards[world], rel=1e-6)
            rewards[:] = 0


def test_observations_are_not_copied_unless_their_memory_is_reused():
    env = native()
    adapter = VectorEnvAdapter(env)
    adapter.reset()
    step = env.step
    handed = []
    env.step = lambda actions: handed.append(step(actions)) or handed[-1]
    for _ in range(3):
        assert adapter.step_batch(np.full(4, 5)).observations is handed[-1][0]
    reused = handed[0][0]
    env.step = lambda actions: (reused, *handed[0][1:])
    first, second = (adapter.step_batch(np.full(4, 5)).observations for _ in range(2))
    assert second is not reused and not np.shares_memory(first, second)


def test_seed_decides_and_a_bare_reset_goes_on():
    def episodes(seed):
        adapter = VectorEnvAdapter(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, scenario="ppcc/random"))
        adapter.seed(seed)
        starts = []
        for _ in range(2):
            adapter.reset()
            starts.append(adapter.step(np.full(2, 10))[0])
        return np.stack(starts)

    np.testing.assert_array_equal(episodes(1), episodes(1))
    assert not np.array_equal(episodes(1), episodes(2))
    assert not np.array_equal(*episodes(1))


def test_stagger_spreads_the_episode_ends():
    adapter = VectorEnvAdapter(native(num_envs=8, max_episode_steps=16), stagger_steps=16)
    adapter.seed(0)
    adapter.reset()
    ends = [np.flatnonzero(adapter.step_batch(np.full(8, 5)).dones).tolist() for _ in range(16)]
    assert sorted(world for step in ends for world in step) == list(range(8))
    assert max(map(len, ends)) == 1


def test_attributes_and_methods_of_a_batch_and_of_separate_worlds():
    adapter = VectorEnvAdapter(native())
    assert adapter.get_attr("worlds") == [4] * 4
    assert adapter.get_attr("worlds", indices=[0, 2]) == [4] * 2
    assert adapter.env_method("schema", indices=1)[0]["task"] == "congestion_window"
    assert not adapter.has_attr("no_such_attribute")
    adapter.set_attr("label", "x")
    assert adapter.get_attr("label", indices=0) == ["x"]
    with pytest.raises(ValueError, match="indices must be None"):
        adapter.set_attr("label", "y", indices=[1])
    assert adapter.env_is_wrapped(Monitor) == [True] * 4
    separate = VectorEnvAdapter(batch())
    assert separate.get_attr("gravity", indices=[1]) == [9.8]
    assert separate.env_is_wrapped(gym.wrappers.TimeLimit, indices=0) == [True]
    assert separate.env_is_wrapped(gym.wrappers.ClipReward, indices=0) == [False]


def test_infos_of_running_worlds_on_request():
    class WithInfo(gym.vector.VectorWrapper):
        def step(self, actions):
            *rest, info = self.env.step(actions)
            return *rest, {**info, "worth": np.arange(4), "_worth": np.array([True, False, True, True]), "plain": 3}

    adapter = VectorEnvAdapter(WithInfo(native()), step_infos=True)
    adapter.reset()
    infos = adapter.step(np.full(4, 5))[3]
    assert infos[2] == {"worth": 2, "plain": 3} and infos[1] == {"plain": 3}
    assert VectorEnvAdapter(WithInfo(native())).step_infos is False


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_other_autoreset_modes_are_refused(mode):
    with pytest.raises(ValueError, match="SAME_STEP"):
        VectorEnvAdapter(batch(mode))


def test_what_is_no_vector_environment_is_refused():
    with pytest.raises(TypeError, match="VectorEnv"):
        VectorEnvAdapter(cart_pole())
    with pytest.raises(ValueError, match="stagger_steps"):
        VectorEnvAdapter(batch(), stagger_steps=-1)


def switches(num_envs=4, **kwargs):
    scenario = {"name": "rlbm/cubic-100-0.8", "duration_s": 2.0}
    return VectorEnvAdapter(gym.make_vec("netbuf/QueueThreshold-v0", num_envs=num_envs, scenario=scenario, **kwargs))


def test_boxes_of_actions_pass_through():
    adapter = switches(3)
    adapter.info_keywords = ("slowdown_p99_p0",)
    assert adapter.action_space.shape == (2,)
    adapter.reset()
    actions = np.array([[1, 1], [-1, 0], [0.5, 9]], np.float32)
    for step in range(20):
        batch_step = adapter.step_batch(actions)
        if step == 5:
            alphas = adapter.env.unwrapped.engine.plant.control[:, 0]
            np.testing.assert_array_equal(alphas[:, 1], [8, 2**-2.5, 8])
    assert len(batch_step.episodes) == 3 and "slowdown_p99_p0" in batch_step.episodes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (A2C, {}),
        (PPO, {"n_steps": 16, "batch_size": 32}),
        (DQN, {"actions": "grid", "learning_starts": 20, "buffer_size": 200}),
        (RecurrentPPO, {"n_steps": 16, "n_epochs": 1, "policy": "MlpLstmPolicy", "policy_kwargs": {"lstm_hidden_size": 8}}),
    ],
)
def test_learners_of_boxes_and_grids_run_on_switches(kind, kwargs):
    kwargs = dict(kwargs)
    adapter = switches(actions=kwargs.pop("actions", "continuous"))
    model = kind(kwargs.pop("policy", "MlpPolicy"), adapter, seed=0, device="cpu", **kwargs).learn(200)
    actions, _ = model.predict(adapter.reset(), deterministic=True)
    assert np.isfinite(adapter.step(actions)[1]).all()


def test_stock_learner_and_evaluation_run_on_it():
    adapter = VectorEnvAdapter(native(max_episode_steps=20))
    model = A2C("MlpPolicy", adapter, n_steps=5, seed=0, device="cpu").learn(200)
    assert len(model.ep_info_buffer) >= 4
    returns, lengths = evaluate_policy(model, adapter, n_eval_episodes=4, return_episode_rewards=True)
    assert lengths == [20] * 4 and np.isfinite(returns).all()


def test_one_thread_at_a_time():
    from threading import Thread

    from netbuf_gym.errors import BusyError, ConfigError

    env = VectorEnvAdapter(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4))
    env.reset()
    env.step_async(np.full(4, 5))
    refused = []

    def intrude(call):
        try:
            call()
        except BusyError as error:
            refused.append(str(error))

    for call in (lambda: env.step_async(np.full(4, 9)), env.step_wait):
        thread = Thread(target=intrude, args=(call,))
        thread.start()
        thread.join()
    assert len(refused) == 2 and all("one thread at a time" in text for text in refused)
    assert env.step_wait()[0].shape[0] == 4
    thread = Thread(target=lambda: env.step(np.full(4, 5)))  # one after the other they may
    thread.start()
    thread.join()
    with pytest.raises(ConfigError):
        env.step(np.full(4, 99))
    env.step(np.full(4, 5))


def test_the_first_episodes_of_staggered_worlds_are_whole():
    adapter = VectorEnvAdapter(native(num_envs=8, max_episode_steps=20), stagger_steps=31)
    adapter.seed(3)
    adapter.reset()
    found = [episode for _ in range(20) for episode in adapter.step_batch(np.full(8, 10)).episodes]
    assert [episode["l"] for episode in found] == [20] * 8


VARYING = {"name": "nuwa/training", "duration_s": 4}


def twins(of, worlds=6, stagger_steps=0, **kwargs):
    env = gym.make_vec("netbuf/ReceiverWindow-v0", num_envs=worlds, scenario=VARYING, **kwargs)
    adapter = VectorEnvAdapter(env, twins=of, stagger_steps=stagger_steps)
    adapter.seed(5)
    return adapter


@pytest.mark.parametrize("stagger_steps", [0, 7])
def test_twins_meet_the_same_paths(stagger_steps):
    adapter = twins(3, stagger_steps=stagger_steps)
    adapter.reset()
    alike = np.full(2, not stagger_steps)  # staggered ones go on from random steps until their first episode ends
    for step in range(90):
        batch_step = adapter.step_batch(np.full(6, 5 + step % 2))
        groups, dones = batch_step.observations.reshape(2, 3, -1), batch_step.dones.reshape(2, 3)
        assert (dones == dones[:, :1]).all()
        np.testing.assert_allclose(batch_step.rewards.reshape(2, 3)[alike], 0, atol=1e-7)
        alike |= dones[:, 0]
        np.testing.assert_array_equal(groups[alike], np.repeat(groups[alike, :1], 3, axis=1))
    assert alike.all() and not np.array_equal(groups[0, 0], groups[1, 0])


def test_twins_are_rewarded_by_what_they_get_more():
    alone, together = twins(1), twins(3)
    together.reset()
    own = np.repeat(np.random.default_rng(5).integers(FIRST_EVALUATION_SEED, size=2), 3).tolist()
    alone.env.reset(seed=own)
    most = 0.0
    for step in range(39):
        actions = np.arange(6) + step % 5
        rewards, relative = alone.step_batch(actions).rewards, together.step_batch(actions).rewards
        np.testing.assert_allclose(relative, rewards - np.repeat(rewards.reshape(2, 3).mean(axis=1), 3), atol=1e-6)
        most = max(most, float(np.ptp(rewards[:3])))
    assert most > 0
    episodes = together.step_batch(actions).episodes
    rewards = alone.step_batch(actions)
    assert len(episodes) == 6
    assert [episode["r"] for episode in episodes] == [episode["r"] for episode in rewards.episodes]


def test_agents_of_a_world_have_their_twins_in_the_others():
    shared = {"name": "nuwa/fairness", "stagger_s": 1, "duration_s": 8}
    env = gym.make_vec("netbuf/ReceiverWindow-v0", num_envs=4, agents=2, scenario=shared)
    adapter = VectorEnvAdapter(env, twins=2)
    adapter.seed(1)
    adapter.reset()
    for _ in range(30):
        relative = adapter.step_batch(np.array([5, 2, 5, 9])).rewards
        np.testing.assert_allclose(relative[:2], -relative[2:], atol=1e-7)
    assert abs(relative[1]) > 0


def test_twins_that_end_apart_are_refused():
    env = gym.make_vec("netbuf/QueueThreshold-v0", num_envs=4, recipe="thesis-code")
    adapter = VectorEnvAdapter(env, twins=4)
    adapter.seed(1)
    adapter.reset()
    with pytest.raises(Refused, match="twins = 4: episodes of the same paths end apart"):
        env.action_space.seed(3)
        for _ in range(200):
            adapter.step_batch(env.action_space.sample())


def test_seeds_of_twins_are_those_of_training():
    assert schema.FIRST_EVALUATION_SEED == FIRST_EVALUATION_SEED


@pytest.mark.parametrize("of", [0, 4, 7])
def test_twins_divide_the_worlds(of):
    with pytest.raises(ValueError, match=f"twins = {of} does not divide 6 worlds"):
        twins(of)
