"""Controllers that know no task: any action space, rows that do not depend on each other."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.controllers import Callback, ConstantAction, Decider, Model, RandomAction
from netbuf_gym.errors import ConfigError

SPACES = [
    gym.spaces.Discrete(11),
    gym.spaces.Discrete(5, start=-2),
    gym.spaces.MultiDiscrete([3, 7]),
    gym.spaces.MultiBinary(4),
    gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
    gym.spaces.Box(np.array([0.0, -5.0]), np.array([10.0, 5.0]), dtype=np.float64),
]


def rules(space, agents=1, recipe="default"):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    return SimpleNamespace(name="x", recipe=recipe, agents=agents, action_space=space, observation_space=box)


def played(controller, the_rules, worlds, steps=50):
    policy, state, rows = controller.start(the_rules, list(range(worlds))), None, worlds * the_rules.agents
    found = []
    for step in range(steps):
        actions, state = policy(np.zeros((rows, 3), np.float32), state, np.full(rows, step == 0))
        assert len(actions) == rows
        found.append(actions)
    return np.stack(found)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_chance_plays_every_space(space):
    actions = played(RandomAction(), rules(space), 40)
    for action in actions.reshape(-1, *space.shape):
        assert space.contains(action if space.shape else np.int64(action))
    spread = actions.reshape(-1, *space.shape).astype(float)
    if isinstance(space, gym.spaces.Box):
        width = space.high - space.low
        assert np.allclose(spread.mean(axis=0), (space.low + space.high) / 2, atol=0.04 * width.max())
        assert np.allclose(spread.std(axis=0), width / 12**0.5, rtol=0.05)
    else:
        for column in spread.reshape(len(spread), -1).T:
            counts = np.unique(column, return_counts=True)[1]
            assert counts.min() > 0.75 * counts.max()
    one = actions.reshape(len(actions), 40, -1)
    assert not np.array_equal(one[:, 0], one[:, 1]) and not np.array_equal(one[0], one[1])


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_chance_in_a_world_depends_on_its_seed_and_not_on_its_neighbours(space):
    few, many = played(RandomAction(3), rules(space), 2), played(RandomAction(3), rules(space), 40)
    assert np.array_equal(few, many[:, :2])
    twenty = played(RandomAction(3), rules(space, agents=20), 2)
    assert np.array_equal(twenty[:, [0, 20]], few) and not np.array_equal(twenty[:, 0], twenty[:, 1])
    assert not np.array_equal(played(RandomAction(4), rules(space), 2), few)
    one, other, again = (RandomAction().start(rules(space), [seed])(np.zeros((1, 3)), None, None)[0] for seed in (7, 8, 7))
    both = RandomAction().start(rules(space), [8, 7])(np.zeros((2, 3)), None, None)[0]
    assert np.array_equal(one, again) and np.array_equal(both, np.concatenate([other, one]))
    streams = [RandomAction().start(rules(space), [seed]) for seed in (7, 8)]
    first, second = ([policy(np.zeros((1, 3)), None, None)[0] for _ in range(20)] for policy in streams)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_constant_plays_every_space(space):
    space.seed(1)
    action = space.sample()
    actions = played(ConstantAction(action), rules(space, agents=2), 3, steps=4)
    assert actions.shape == (4, 6, *space.shape) and (actions == action).all() and actions.dtype == space.dtype
    assert np.array_equal(played(ConstantAction(np.asarray(action).tolist()), rules(space, agents=2), 3, steps=4), actions)


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (SPACES[0], 11),
        (SPACES[0], -1),
        (SPACES[0], 2.5),
        (SPACES[0], float("nan")),
        (SPACES[0], [1]),
        (SPACES[0], "keep"),
        (SPACES[0], None),
        (SPACES[2], [1, 7]),
        (SPACES[4], [0.0, 1.5]),
        (SPACES[4], [0.0, float("nan")]),
        (SPACES[4], 0.0),
    ],
)
def test_what_is_not_in_the_space_is_refused(space, action):
    with pytest.raises(ConfigError, match=r"action = .* valid: "):
        ConstantAction(action).start(rules(space), [1])


def test_spaces_without_a_uniform_distribution_are_refused():
    for space in (gym.spaces.Text(3), gym.spaces.Box(-np.inf, np.inf, (1,))):
        with pytest.raises(ConfigError, match="no uniform distribution"):
            RandomAction().start(rules(space), [1])
    for seed in (-1, 0.5, 2**63):
        with pytest.raises(ConfigError, match="seed"):
            RandomAction(seed)


def test_a_function_decides():
    seen = []
    controller = Callback(lambda observations: seen.append(observations) or [7] * len(observations), "seven", ["default"])
    assert played(controller, rules(SPACES[0]), 3, steps=2).tolist() == [[7, 7, 7]] * 2
    assert controller.name == "seven" and seen[0].shape == (3, 3)
    with pytest.raises(ConfigError, match="seven does not support recipe 'other'; valid: 'default'"):
        controller.start(rules(SPACES[0], recipe="other"), [1])


def test_a_model_is_asked_as_stable_baselines3_asks():
    calls = []

    class Recurrent:
        def predict(self, observations, state=None, episode_start=None, deterministic=False):
            calls.append((state, episode_start.tolist(), deterministic))
            return np.zeros(len(observations), int), (state or 0) + 1

    played(Model(Recurrent()), rules(SPACES[0]), 2, steps=3)
    assert calls == [(None, [True, True], True), (1, [False, False], True), (2, [False, False], True)]


class Speaks(Decider):
    name, recipes = "speaks", ("a", "b")

    def start(self, rules, seeds):
        self._require_recipe(rules)


def test_what_a_controller_plays_by():
    env = {"recipe": "b", "interval_s": 0.2, "history": 3, "agents": 2}
    assert Speaks().env == {"recipe": "a"} and RandomAction().env == {}
    assert Speaks().match_arguments(env) == env and RandomAction().match_arguments(env) == env
    assert Speaks().match_arguments(env | {"recipe": "c"}) == {"recipe": "a", "interval_s": 0.2, "agents": 2}
    assert Speaks().match_arguments({}) == {"recipe": "a"}
