"""What is decided by the networks alone is what `predict` decides, to the bit."""

import threading

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO, SAC

from netbuf_gym import zoo
from netbuf_gym.controllers import Model
from netbuf_gym.training.algorithms.greedy import make_greedy_policy
from netbuf_gym.training.checkpoints.saved_agent import make_rules
from tests.helpers.release_cases import sample

ROWS, STEPS = (1, 5), 6


def course(policy, space, rows):
    """Actions and states of some steps with random observations, in which some episodes start anew."""
    rng = np.random.default_rng(1)
    state, seen = None, []
    for step in range(STEPS):
        observations = rng.uniform(-1, 1, (rows, *space.shape)).astype(np.float32)
        starts = np.full(rows, step == 0) | (rng.random(rows) < 0.2 * (step % 2))
        actions, state = policy(observations, state, starts)
        seen.append((np.array(actions), [np.array(one) for one in state or ()]))
    return seen


def same(one, other):
    return all(
        a.dtype == b.dtype and np.array_equal(a, b) and len(s) == len(t) and all(map(np.array_equal, s, t))
        for (a, s), (b, t) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", sample(zoo.names(), 8))
def test_every_agent_of_the_package_decides_as_its_learner_predicts(name, rows):
    agent = zoo.load(name)
    rules = make_rules(agent.controller.saved)
    model = agent.controller.model(rules)
    mine, theirs = make_greedy_policy(model), Model(model).start(rules, [0] * rows)
    assert mine is not None
    assert same(course(mine, agent.observation_space, rows), course(theirs, agent.observation_space, rows))


@pytest.mark.parametrize("name", ["congestion_window/sender", "congestion_window/dqn", "queue_threshold/ppo"])
def test_an_agent_s_predict_is_its_learner_s(name):
    """Of one observation and of several, with and without memory and starts; what is returned has the same form."""
    agent = zoo.load(name)
    model = agent.controller.model(make_rules(agent.controller.saved))
    rng, memory, own = np.random.default_rng(2), None, None
    for shape in ((), (1,), (3,)):
        for start in (None, np.ones(shape or 1, bool)):
            observation = rng.uniform(-1, 1, (*shape, *agent.observation_space.shape)).astype(np.float32)
            memory, own = (None, None) if start is None else (memory, own)
            action, memory = agent.predict(observation, memory, start)
            other, own = model.predict(observation, own, start, deterministic=True)
            assert type(action) is type(other) and action.shape == other.shape and np.array_equal(action, other)
            assert (memory is None) == (own is None) and all(map(np.array_equal, memory or (), own or ()))


class Spaces(gym.Env):
    def __init__(self, observed, acts):
        self.observation_space, self.action_space = observed, acts

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def test_continuous_actions_are_clipped_as_theirs():
    space = gym.spaces.Box(-1, 1, (4,), np.float32)
    model = PPO("MlpPolicy", Spaces(space, gym.spaces.Box(-0.1, 0.2, (2,), np.float32)), n_steps=2, batch_size=2, seed=1)
    with th.no_grad():
        model.policy.action_net.weight *= 100
    found = course(make_greedy_policy(model), space, 5)
    assert same(found, course(lambda o, s, e: (model.predict(o, deterministic=True)[0], None), space, 5))
    assert {-0.1, 0.2} <= {round(float(x), 3) for actions, _ in found for x in actions.ravel()}


def test_policies_of_other_kinds_are_left_to_their_predict():
    space = gym.spaces.Box(-1, 1, (4,), np.float32)
    assert make_greedy_policy(SAC("MlpPolicy", Spaces(space, gym.spaces.Box(-1, 1, (2,), np.float32)), buffer_size=2)) is None
    named = gym.spaces.Dict({"x": space})
    model = PPO("MultiInputPolicy", Spaces(named, gym.spaces.Discrete(2)), n_steps=2, batch_size=2)
    assert make_greedy_policy(model) is None
    sets = PPO("MlpPolicy", Spaces(space, gym.spaces.MultiDiscrete([2, 3])), n_steps=2, batch_size=2)
    assert make_greedy_policy(sets) is None


def test_threads_decide_at_once():
    agent = zoo.load("congestion_window/sender")
    decide = make_greedy_policy(agent.controller.model(make_rules(agent.controller.saved)))
    alone, found = course(decide, agent.observation_space, 5), [None] * 4

    def work(index):
        found[index] = [course(decide, agent.observation_space, 5) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(found))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(same(one, alone) for each in found for one in each)
