"""How vector environments go on after an episode's end, in each of Gymnasium's modes, beside scalar environments."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

ID = "netbuf/CongestionWindow-v0"
TASKS = {
    "congestion_window": {"scenario": {"name": "ppcc/random", "duration_s": 1.0}},
    "queue_threshold": {"scenario": {"name": "rlbm/cubic-500-0.6", "duration_s": 0.05}, "interval_s": 0.01},
    "receiver_window": {"max_episode_steps": 4},
    "host_buffers": {"max_episode_steps": 3},
    "per ACK": {"task": "congestion_window", "per_ack": True, "scenario": {"name": "ppcc/4", "duration_s": 0.3}},
}
SEEDS = [3, 4, 5]


def arguments(task):
    return {"task": task, **TASKS[task]}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("task", TASKS)
def test_next_step_gives_the_trajectories_of_scalar_environments(task, threads):
    rows = VectorEnv(3, autoreset_mode="NextStep", info="telemetry", threads=threads, **arguments(task))
    ones = [Env(info="telemetry", **arguments(task)) for _ in SEEDS]
    observation, info = rows.reset(seed=SEEDS)
    first = [env.reset(seed=seed) for env, seed in zip(ones, SEEDS, strict=True)]
    np.testing.assert_array_equal(observation, [one[0] for one in first])
    for key in first[0][1]["telemetry"]:
        np.testing.assert_array_equal(info["telemetry"][key], np.array([one[1]["telemetry"][key] for one in first], np.float32))
    over, ended, steps = [False] * 3, 0, 0
    rows.action_space.seed(2)
    while ended < 6 and (steps := steps + 1) < 2000:
        actions = rows.action_space.sample()
        observation, rewards, terminated, truncated, info = rows.step(actions)
        for row, env in enumerate(ones):
            if over[row]:
                expected = env.reset()[0]
                assert (rewards[row], terminated[row], truncated[row]) == (0, False, False)
                assert not info["_telemetry"][row]
                over[row] = False
            else:
                expected, reward, ends, cut, _ = env.step(actions[row])
                assert (reward, ends, cut or env.out_of_time) == (rewards[row], terminated[row], truncated[row])
                assert info["_telemetry"][row]
                over[row] = bool(terminated[row] or truncated[row])
                report = {key: value for key, value in env.report().items() if isinstance(value, (int, float))}
                if over[row]:
                    ended += 1
                    assert report and all(info[f"_{key}"][row] for key in report)
                    for key, value in report.items():
                        np.testing.assert_equal(info[key][row], np.asarray(value, info[key].dtype))
                else:
                    assert not any(info[f"_{key}"][row] for key in report if key in info)
            np.testing.assert_array_equal(observation[row], expected)
    assert ended >= 6 and "final_obs" not in info


def test_same_step_is_next_step_without_the_waiting():
    ways = {mode: VectorEnv(2, autoreset_mode=mode, max_episode_steps=3, scenario="ppcc/random") for mode in AutoresetMode}
    starts = {mode: env.reset(seed=1)[0] for mode, env in ways.items()}
    actions = np.array([3, 5])
    for _ in range(3):
        steps = {mode: env.step(actions) for mode, env in ways.items()}
    same, following, disabled = (
        steps[mode] for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)
    )
    assert len({start.tobytes() for start in starts.values()}) == 1
    for one in (following, disabled):
        np.testing.assert_array_equal(one[0], np.stack(list(same[4]["final_obs"])))
        assert one[3].all() and one[4].keys() == same[4]["final_info"].keys()
    first = ways[AutoresetMode.NEXT_STEP].step(actions)
    np.testing.assert_array_equal(first[0], same[0])
    assert not first[1].any() and not first[3].any() and not first[4]


def test_disabled_waits_for_a_reset_of_what_has_ended():
    env = VectorEnv(4, agents=2, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=2, scenario="ppcc/2")
    env.reset(seed=1)
    env.step(np.array([3] * 4))
    env.reset(options={"reset_mask": np.array([True, True, False, False])})
    assert env.step(np.array([3] * 4))[3].tolist() == [False, False, True, True]
    with pytest.raises(gym.error.ResetNeeded, match=r"worlds \[1\] have ended"):
        env.step(np.array([3] * 4))
    env.reset(options={"reset_mask": np.array([False, False, True, True])})
    assert env.step(np.array([3] * 4))[3].tolist() == [True, True, False, False]
    env.reset()
    assert not env.step(np.array([3] * 4))[3].any()


def test_the_mode_is_known_by_gymnasiums_names():
    for mode in AutoresetMode:
        for said in (mode, mode.value, mode.name):
            env = gym.make_vec(ID, num_envs=2, autoreset_mode=said)
            assert env.autoreset_mode is env.metadata["autoreset_mode"] is mode
            kept = gym.envs.registration.EnvSpec.from_json(env.spec.to_json()).kwargs["autoreset_mode"]
            assert kept in (mode.value, mode.name)
    assert gym.make_vec(ID, num_envs=2).autoreset_mode is AutoresetMode.SAME_STEP
    with pytest.raises(ConfigError, match=r"autoreset_mode = 'later'.*valid: .*SameStep"):
        gym.make_vec(ID, num_envs=2, autoreset_mode="later")


WRAPPERS = {
    "NormalizeObservation": vector.NormalizeObservation,
    "NormalizeReward": vector.NormalizeReward,
    "FlattenObservation": vector.FlattenObservation,
    "RescaleObservation": lambda env: vector.RescaleObservation(bounded(env), 0, 1),
    "DtypeObservation": lambda env: vector.DtypeObservation(env, np.float64),
    "TransformObservation": lambda env: vector.TransformObservation(env, lambda observation: observation / 2),
    "VectorizeTransformObservation": lambda env: vector.VectorizeTransformObservation(
        env, gym.wrappers.TransformObservation, func=lambda one: one, observation_space=env.single_observation_space
    ),
    "ReshapeObservation": lambda env: vector.ReshapeObservation(env, (*env.single_observation_space.shape, 1)),
    "TransformAction": lambda env: vector.TransformAction(env, lambda action: action / 2),
    "VectorizeTransformAction": lambda env: vector.VectorizeTransformAction(
        env, gym.wrappers.TransformAction, func=lambda one: one, action_space=env.single_action_space
    ),
    "ClipAction": vector.ClipAction,
    "RescaleAction": lambda env: vector.RescaleAction(env, np.float32(-5), np.float32(5)),
    "VectorizeTransformReward": lambda env: vector.VectorizeTransformReward(
        env, gym.wrappers.TransformReward, func=lambda reward: reward * 2
    ),
    "TransformReward": lambda env: vector.TransformReward(env, lambda reward: reward * 2),
    "ClipReward": lambda env: vector.ClipReward(env, -1, 1),
    "RecordEpisodeStatistics": vector.RecordEpisodeStatistics,
    "DictInfoToList": vector.DictInfoToList,
}


def bounded(env):
    spaces = [
        gym.spaces.Box(-10, 10, space.shape, np.float32) for space in (env.observation_space, env.single_observation_space)
    ]
    return vector.TransformObservation(env, lambda observation: np.clip(observation, -10, 10), *spaces)


OF_OTHERS = {"FilterObservation", "GrayscaleObservation", "ResizeObservation", "HumanRendering", "RecordVideo"}
"""Wrappers of dicts, of images and of pictures; those of arrays of other kinds have "To" or "Array" in their names."""


def test_all_vector_wrappers_are_tried():
    offered = {name for name in vector.__all__ if "To" not in name.replace("DictInfoToList", "") and "Array" not in name}
    assert offered <= {*WRAPPERS, *OF_OTHERS}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_gymnasiums_vector_wrappers_take_the_environments(wrapper):
    continuous = {"actions": "continuous"} if "Action" in wrapper else {}
    env = WRAPPERS[wrapper](gym.make_vec(ID, num_envs=2, autoreset_mode="NextStep", max_episode_steps=3, **continuous))
    observation, _ = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(9):
        assert observation.shape == env.observation_space.shape and np.isfinite(observation).all()
        observation, reward, _, truncated, _ = env.step(env.action_space.sample())
        assert np.isfinite(reward).all() and truncated.shape == (2,)
