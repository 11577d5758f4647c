"""What `info` holds on request: terms of rewards and telemetry, in arrays where there are many agents."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

SHORT = {"name": "ppcc/4", "duration_s": 1.0}
BOTH = ["reward_terms", "telemetry"]
TASKS = {
    "congestion_window": {"scenario": SHORT},
    "queue_threshold": {"scenario": {"name": "rlbm/default", "duration_s": 1.0, "load": 0.8}},
    "receiver_window": {"scenario": {"name": "nuwa/trace", "duration_s": 1.0}},
    "host_buffers": {"scenario": {"name": "auter/local", "duration_s": 1.0}, "interval_s": 0.1},
}


def names(group):
    """Of a dict of columns and masks."""
    columns = [key for key in group if not key.startswith("_")]
    assert set(group) == {*columns, *(f"_{key}" for key in columns)}
    return columns


@pytest.mark.parametrize("task", TASKS)
def test_vector_info_is_that_of_scalar_environments_also_where_episodes_end(task):
    seeds = [3, 4, 5]
    rows = VectorEnv(3, task=task, info=BOTH, **TASKS[task])
    ones = [Env(task=task, info="telemetry", **TASKS[task]) for _ in seeds]
    rows.reset(seed=seeds)
    for env, seed in zip(ones, seeds, strict=True):
        env.reset(seed=seed)
        env.action_space.seed(seed)
    ended = 0
    for _ in range(25):  # over two ends
        actions = [env.action_space.sample() for env in ones]
        infos = [env.step(action)[4] for env, action in zip(ones, actions, strict=True)]
        _, rewards, _, truncated, info = rows.step(np.array(actions))
        for name in BOTH:
            group = info[name]
            assert info[f"_{name}"].dtype == bool and info[f"_{name}"].all()
            assert names(group) == list(infos[0][name])
            for key in names(group):
                assert group[key].shape == (3,) and group[key].dtype == np.float32 and group[f"_{key}"].all()
                np.testing.assert_array_equal(group[key], np.array([one[name][key] for one in infos], np.float32))
        np.testing.assert_allclose(sum(info["reward_terms"][key] for key in names(info["reward_terms"])), rewards, rtol=1e-5)
        if truncated.any():
            ended += 1
            final = info["final_info"]
            for name in BOTH:
                assert (final[f"_{name}"] == truncated).all()
                for key in names(final[name]):
                    np.testing.assert_array_equal(final[name][key][truncated], info[name][key][truncated])
                    assert (final[name][f"_{key}"] == truncated).all()
            for env in ones:
                env.reset()
        else:
            assert set(info) == {key for name in BOTH for key in (name, f"_{name}")}
    assert ended == 2


def test_arrays_are_ones_own_and_of_their_step():
    env = VectorEnv(2, scenario=SHORT, info=BOTH)
    env.reset(seed=1)
    first = env.step(np.array([5, 5]))[4]
    before = {name: {key: value.copy() for key, value in first[name].items()} for name in BOTH}
    second = env.step(np.array([10, 10]))[4]
    for name in BOTH:
        for key, value in before[name].items():
            np.testing.assert_array_equal(first[name][key], value)
            first[name][key][:] = 0
    assert second["telemetry"]["cwnd_bytes"].all() and second["_telemetry"].all()


def test_nothing_is_there_unless_it_is_asked_for():
    for info in ((), None, []):
        env = VectorEnv(2, scenario=SHORT, info=info)
        assert env.reset(seed=1)[1] == {} and env.step(np.array([5, 5]))[4] == {}
    env = VectorEnv(2, scenario=SHORT, info="reward_terms")
    env.reset(seed=1)
    assert set(env.step(np.array([5, 5]))[4]) == {"reward_terms", "_reward_terms"}
    scalar = Env(scenario=SHORT)
    scalar.reset(seed=1)
    assert set(scalar.step(5)[4]) == {"reward_terms"}


@pytest.mark.parametrize("make", [Env, lambda **kwargs: VectorEnv(2, **kwargs)])
@pytest.mark.parametrize("info", ["terms", ["telemetry", "x"], 3, {"telemetry": 1}, [3], True])
def test_what_cannot_be_asked_for_is_refused(make, info):
    with pytest.raises(ConfigError, match=r"info = .*; valid: .*reward_terms, telemetry"):
        make(scenario=SHORT, info=info)


def test_gymnasium_makes_them_and_describes_them_as_json():
    made = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, scenario=SHORT, info=BOTH)
    assert '"telemetry"' in made.spec.to_json()
    made.reset(seed=1)
    wrapped = gym.wrappers.vector.DictInfoToList(made)
    infos = wrapped.step(np.array([5, 5]))[4]
    assert infos[1]["reward_terms"].keys() == {"throughput", "delay", "loss"} and infos[1]["telemetry"]["cwnd_bytes"] > 0


def test_rewards_of_ones_own_show_their_terms_to_every_agent():
    pettingzoo = pytest.importorskip("pettingzoo")
    from netbuf_gym.envs.parallel_env import ParallelEnv

    def own(telemetry):
        return {"number": np.arange(telemetry.rows), "acks": telemetry.acks}

    env = ParallelEnv(2, scenario=SHORT, reward=own, info=BOTH)
    assert isinstance(env, pettingzoo.ParallelEnv)
    env.reset(seed=1)
    while env.agents:
        agents = env.agents
        _, rewards, _, _, infos = env.step(dict.fromkeys(agents, 5))
        for number, agent in enumerate(agents):
            terms, measured = infos[agent]["reward_terms"], infos[agent]["telemetry"]
            assert terms == {"number": number, "acks": measured["acks"]} and rewards[agent] == sum(terms.values())
    assert "goodput_mbps" in infos["sender_1"]
    plain = ParallelEnv(2, scenario=SHORT)
    plain.reset(seed=1)
    assert plain.step({"sender_0": 5, "sender_1": 5})[4] == {"sender_0": {}, "sender_1": {}}


def test_stable_baselines3_gets_them():
    pytest.importorskip("stable_baselines3")
    from netbuf_gym.integrations.sb3 import VectorEnvAdapter

    env = VectorEnvAdapter(VectorEnv(2, scenario=SHORT, info=BOTH), step_infos=True)
    env.seed(1)
    env.reset()
    for _ in range(10):
        infos = env.step(np.array([5, 5]))[3]
        assert infos[0]["telemetry"]["elapsed_s"] == np.float32(0.1) and "delay" in infos[1]["reward_terms"]
    assert "terminal_observation" in infos[0] and infos[0]["telemetry"]["elapsed_s"] == np.float32(0.1)


def test_the_tables_name_all_that_there_is():
    for record in tasks.records():
        table = tasks.telemetry_table(record.rules)
        env = Env(task=record.name, info="telemetry", **TASKS[record.name])
        env.reset(seed=1)
        for name in env.step(env.action_space.sample())[4]["telemetry"]:
            assert f"| `{name}` " in table
        marked = [line.split("`")[1] for line in table.splitlines() if "(privileged)" in line]
        assert marked == [field.name for field in env.engine.task.telemetry.fields if field.privileged]


@pytest.mark.parametrize("make", [gym.make, lambda id, **kwargs: gym.make(gym.make(id, **kwargs).spec)])
@pytest.mark.parametrize("task", TASKS)
def test_a_time_limit_of_gym_make_reports_in_its_last_step(task, make):
    (id,) = tasks.get(task).ids[:1]
    env = make(id, max_episode_steps=4)
    for seed in (1, 2):
        env.reset(seed=seed)
        for left in (3, 2, 1, 0):
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            assert truncated == (left == 0) and not terminated
            report = env.unwrapped.report()
            np.testing.assert_equal({key: info.get(key) for key in report}, report if truncated else dict.fromkeys(report))
    unlimited = gym.make(id, max_episode_steps=-1).unwrapped
    assert unlimited.engine.max_episode_steps is None


@pytest.mark.parametrize("options", [5, "scenario", [1], True])
@pytest.mark.parametrize("make", [gym.make, lambda id: gym.make_vec(id, num_envs=2)])
def test_options_of_a_reset_are_a_dict(make, options):
    env = make("netbuf/CongestionWindow-v0")
    with pytest.raises(ConfigError, match=r"options = .*; valid: None or a dict"):
        env.reset(options=options)
    env.reset(options={})


def test_a_reset_shows_telemetry_on_request():
    env = Env(info="telemetry", scenario="ppcc/4")
    _, info = env.reset(seed=1)
    assert info["telemetry"].keys() == env.step(3)[4]["telemetry"].keys()
    assert "telemetry" not in Env(scenario="ppcc/4").reset(seed=1)[1]
    rows = VectorEnv(4, agents=2, info=BOTH, scenario="ppcc/2")
    _, first = rows.reset(seed=1)
    assert first["_telemetry"].all() and "reward_terms" not in first
    _, part = rows.reset(options={"reset_mask": np.array([True, True, False, False])})
    assert part["_telemetry"].tolist() == [True, True, False, False]
