"""Controllers that did not learn, with `predict` and `make_env` as trained agents have them."""

import copy

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard import best
from netbuf_gym.tasks.host_buffers.hosts import find_agent_hosts
from netbuf_gym.zoo.controller_agent import ControllerAgent

THREE_QUEUES = {"name": "switch/families", "families": ["far"], "queues": 3}
SHORT = {
    "congestion_window": {"name": "ppcc/4", "duration_s": 3},
    "host_buffers": {"name": "auter/es-we", "duration_s": 30},
    "queue_threshold": {"name": "rlbm/default", "load": 0.8, "duration_s": 8},
    "receiver_window": {"name": "nuwa/5g", "duration_s": 4},
}


def make(name, task, **arguments):
    return ControllerAgent(rollout.get_controller(name, task), task, **arguments)


def play(agent, env, seed):
    observation, _ = env.reset(seed=seed)
    memory, ended = None, False
    while not ended:
        action, memory = agent.predict(observation, memory)
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    return info


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("congestion_window", "queue_target"),
        ("congestion_window", "keep"),
        ("congestion_window", "constant:5"),
        ("host_buffers", "autotuning+vegas"),
        ("host_buffers", "bpftune"),
        ("host_buffers", "adaptive"),
        ("queue_threshold", "brief_pulse-10ms"),
        ("queue_threshold", "brief_pulse-flows"),
        ("queue_threshold", "pulse_burst"),
        ("queue_threshold", "limits:100:5"),
        ("receiver_window", "refill"),
        ("receiver_window", "keep"),
    ],
)
def test_decisions_are_those_of_a_rollout(task, name):
    agent, seed = make(name, task), 1_000_000
    with_env = agent.make_env(scenario=SHORT[task])
    info = play(agent, with_env, seed)
    (report,) = rollout.evaluate(agent, task, scenario=SHORT[task], seeds=[seed])
    assert report and agent.name == name
    for key, value in report.items():
        assert info[key] == value or (value != value and info[key] != info[key]), key
    with_env.close()


def test_episodes_that_begin_again_are_forgotten_one_by_one():
    agent = make("bpftune", "host_buffers")
    rng = np.random.default_rng(0)
    seen = rng.uniform(0.5, 1, (20, 2, *agent.observation_space.shape)).astype(np.float32)
    memory, other = None, None
    for step, observations in enumerate(seen):
        actions, memory = agent.predict(observations, memory, episode_start=[step == 0, step in (0, 12)])
        if step == 12:
            other = None
        single, other = agent.predict(observations[1], other)
        assert (actions[1] == single).all()
    assert not (actions[0] == actions[1]).all()


def test_worlds_are_the_controllers_own():
    agent = make("autotuning+vegas", "host_buffers")
    for env in (agent.make_env(), copy.deepcopy(agent.make_env()), agent.make_vec(2)):
        env.reset(seed=3)
        world = env.unwrapped.engine.scenarios[0]
        (host,) = find_agent_hosts(world)
        sent = {flow.cc for flow in world.flows if flow.sender_host == world.hosts[host].name}
        sent |= {
            one.cc for one in (world.traffic.senders if world.traffic else ()) if one.sender_host == world.hosts[host].name
        }
        assert sent == {"vegas"}
        env.close()


def test_what_it_does_not_fit_is_refused():
    agent = make("brief_pulse", "queue_threshold")
    for overrides, message in (
        ({"recipe": "levers"}, "made for recipe = 'default', this environment has 'levers'"),
        ({"scenario": THREE_QUEUES}, "made for observation space = "),
        ({"interval_s": 0.01}, r"interval_s = 0.1, this environment has 0.01; valid: .*ControllerAgent"),
    ):
        with pytest.raises(ConfigError, match=message):
            agent.make_env(**overrides)
    with pytest.raises(ConfigError, match="scheduler = 'fifo'; valid for brief_pulse-flows: 'strict_priority'"):
        make("brief_pulse-flows", "queue_threshold").make_env(scheduler="fifo")
    with pytest.raises(ConfigError, match="task = 'receiver_window' is not that of brief_pulse; valid: queue_threshold"):
        ControllerAgent(rollout.get_controller("brief_pulse", "queue_threshold"), "receiver_window")
    three = make("brief_pulse", "queue_threshold", scenario=THREE_QUEUES)
    observations, _ = three.make_vec(2).reset(seed=1)
    assert three.action_space.contains(three.predict(observations)[0][1])
    with pytest.raises(ConfigError, match="observation has shape"):
        three.predict(observations[:, :-1])
    with pytest.raises(ConfigError, match=r"state = .* is not that of 2 observations"):
        three.predict(observations, three.predict(observations[0])[1])
    with pytest.raises(ConfigError, match="episode_start has shape"):
        three.predict(observations, episode_start=[True])
    with pytest.raises(ConfigError, match="fq_codel acts in the world"):
        make("fq_codel", "queue_threshold")
    assert three.predict(observations[:0])[0].shape == (0, *three.action_space.shape)


def test_episodes_of_a_controller_that_draws_differ():
    agent = make("random", "queue_threshold")
    observations, _ = agent.make_vec(3).reset(seed=1)
    actions, state = agent.predict(observations)
    again, _ = agent.predict(observations, state, [True, False, False])
    assert len({tuple(row) for row in (*actions.tolist(), again[0].tolist())}) == 4


@pytest.mark.slow
def test_the_best_controller_is_a_rule_or_an_agent_by_the_same_calls(monkeypatch):
    for name in ("brief_pulse", "queue_threshold/dqn"):
        monkeypatch.setattr(best, "find_best", lambda task, results=None, name=name: name)
        agent = nb.zoo.best("queue_threshold")
        assert agent.name == agent.controller.name == name
        env = agent.make_env(scenario=SHORT["queue_threshold"])
        assert "slowdown_p99_p0" in play(agent, env, 1)
        env.close()
