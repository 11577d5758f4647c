import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from netbuf_gym.envs.parallel_env import ParallelEnv, parallel_env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("error")
SHORT = {"name": "ppcc/4", "duration_s": 3.0}


@pytest.mark.parametrize("senders", [1, 2, 4])
@pytest.mark.parametrize("recipe", ["default", "ppcc", "bare"])
def test_pettingzoos_checkers(senders, recipe):
    parallel_api_test(parallel_env(senders=senders, scenario=SHORT, recipe=recipe), num_cycles=80)
    parallel_seed_test(lambda: parallel_env(senders=senders, scenario=SHORT, recipe=recipe))


def test_equals_the_shared_policy_view():
    env, rows = ParallelEnv(3, scenario=SHORT), VectorEnv(3, senders=3, scenario=SHORT)
    first, infos = env.reset(seed=5)
    assert infos == {agent: {} for agent in env.agents}
    observations, _ = rows.reset(seed=[5])
    assert np.array_equal(np.stack(list(first.values())), observations)
    rng = np.random.default_rng(0)
    for _ in range(30):
        chosen = rng.integers(3, 9, 3)
        ours = env.step(dict(zip(env.possible_agents, chosen, strict=True)))
        _, rewards, _, truncated, info = rows.step(chosen)
        assert list(ours[1].values()) == rewards.tolist() and list(ours[3].values()) == truncated.tolist()
    assert env.agents == []
    for i, agent in enumerate(env.possible_agents):
        assert np.array_equal(ours[0][agent], info["final_obs"][i])
        assert ours[4][agent]["utility"] == info["final_info"]["utility"][i]


def test_every_sender_has_its_own_window():
    env = ParallelEnv(2, scenario={"name": "ppcc/3", "duration_s": 10.0}, slow_start=False, render_mode="ansi")
    env.reset(seed=0)
    for _ in range(99):
        env.step({"sender_0": 9 if env.engine.steps[0] < 4 else 5, "sender_1": 5})
    assert env.render().count("sender_") == 2
    infos = env.step({"sender_0": 5, "sender_1": 5})[4]
    assert infos["sender_0"]["goodput_mbps"] > 2 * infos["sender_1"]["goodput_mbps"] > 0


@pytest.mark.parametrize(
    "actions", [{}, {"sender_0": 5}, {"sender_0": 5, "sender_1": 5, "sender_2": 5}, {"sender_0": 5, "sender_1": 99}]
)
def test_bad_actions_are_refused(actions):
    env = ParallelEnv(2, scenario=SHORT)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="action"):
        env.step(actions)


def test_bad_arguments_are_refused():
    with pytest.raises(ConfigError, match="agents = 0"):
        ParallelEnv(0)
    with pytest.raises(ConfigError, match="render_mode"):
        ParallelEnv(2, render_mode="rgb_array")
    with pytest.raises(ConfigError, match="options = 5; valid: None or a dict"):
        ParallelEnv(2).reset(options=5)
