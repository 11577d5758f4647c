"""Golden values, computed by hand, of what actions mean and what is observed."""

import gymnasium as gym
import numpy as np
import pytest
from hand_made_switch import BUSY, telemetry, tracker

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import ABM, AgentThresholds, get
from netbuf_gym.tasks.queue_threshold import GRIDS, RECIPES, QueueThreshold

LN_1000 = np.log(1000)
GOLDEN = {
    "buffer_time": (2 * np.log(1.2 / 1e-3) / np.log(1e4) - 1,),  # 1000 packets of 1.2 ms
    "occupancy": (-0.2,),
    "utilisation": (0.92,),  # 120 of 125 kB
    "flows_open": (np.log(2) / np.log(1001),),
    "flows_started": (np.log(4) / np.log(101),),
    "alpha": (1.0, 2 * 8 / 11 - 1),
    "limit": (np.log(1201) / np.log(10001), np.log(361) / np.log(10001)),  # 8 * 0.6 is the whole buffer; 1 * 0.5 * 0.6
    "level": (2 * (np.log2(0.1 / 0.6) + 8) / 11 - 1, 2 * (np.log2(0.3 / 0.3) + 8) / 11 - 1),
    "peak": (0.5, 0.6),
    "backlog": (np.log(121) / np.log(10001), np.log(361) / np.log(10001)),
    "delay": (np.log(101) / np.log(10001), np.log(301) / np.log(10001)),
    "arrivals": (np.log(2.2) / np.log(17), np.log(1.3) / np.log(17)),  # 83.3 packets can be sent
    "load": (1.2 * (1 - np.exp(-0.02)) - 1, 0.3 * (1 - np.exp(-0.02)) - 1),
    "drained": (0.2, -0.28),
    "drops": (0.0, 0.6),
    "flows_completed": (np.log(3) / np.log(101), 0.0),
    "worst_slowdown": (np.log(4) / LN_1000, 0.0),
    "slowdown": (0.19 * np.log(8) / 2 / LN_1000, 0.0),
    "age": (0.0, 0.01),
}


def observe(task, made):
    return task.observe(made, np.empty((task.width, made.rows), np.float32))[:, 0]


def test_default_observation_golden():
    task, made = QueueThreshold(), tracker()
    made.update(telemetry(**BUSY))
    names = [feature.name for feature in task.features]
    assert names == [f"{name}_{q}" if len(values) > 1 else name for name, values in GOLDEN.items() for q in range(len(values))]
    np.testing.assert_allclose(observe(task, made), np.concatenate(list(GOLDEN.values())), atol=3e-6)


def test_a_buffer_in_bytes_is_observed_as_one_in_packets():
    packets, octets = tracker(), tracker(capacity=1_500_000, in_bytes=True)
    packets.update(telemetry(**BUSY))
    octets.update(telemetry(**{**BUSY, "capacity": 1_500_000, "free": 900_000}))
    np.testing.assert_allclose(observe(QueueThreshold(), packets), observe(QueueThreshold(), octets), atol=1e-6)


def test_another_rate_and_buffer_look_alike():
    """Ten times the rate, intervals and delays a tenth: only times differ."""
    slow, fast, task = tracker(), tracker(capacity_bps=100e6), QueueThreshold()
    slow.update(telemetry(**BUSY))
    fast.update(telemetry(**{**BUSY, "elapsed_s": 0.01}))
    differ = {task.features[i].name[:-2] for i in np.flatnonzero(np.abs(observe(task, slow) - observe(task, fast)) > 1e-6)}
    assert differ <= {"buffer_ti", "limit", "backlog", "load", "age"}


@pytest.mark.parametrize("recipe", ["thesis-text", "thesis-code"])
def test_thesis_state_golden_and_standing(recipe):
    task, made = QueueThreshold(recipe), tracker()
    assert [feature.name for feature in task.features] == [
        *("remaining", "flows_completed", "packets_dropped", "beta_0", "beta_1", "drain_rate_0", "drain_rate_1")
    ]
    np.testing.assert_allclose(observe(task, made), [1, 0, 0, 1, 0.5, 0, 0])
    made.update(telemetry(drained_bytes_0=1000, free_fraction=0.2))  # nothing completed: not updated
    np.testing.assert_allclose(observe(task, made), [1, 0, 0, 1, 0.5, 0, 0])
    made.update(telemetry(**BUSY))
    golden = [0.7, 2 / 50, 5 / 1000, 1, 0.5, 0.4, 0.2]  # 25 and 12.5 kB in 50 ms, in which 62.5 kB can be sent
    np.testing.assert_allclose(observe(task, made), golden, rtol=1e-6)
    made.update(telemetry(packets_dropped=100))
    np.testing.assert_allclose(observe(task, made), golden, rtol=1e-6)


@pytest.mark.parametrize("recipe", RECIPES)
def test_observations_stay_within_the_space(recipe):
    task, made = QueueThreshold(recipe, history=1), tracker()
    extremes = {name: 1e9 for name in BUSY if not name.startswith(("free", "at_free", "alpha"))}
    for fields in ({}, extremes | {"elapsed_s": 0.0}, BUSY, extremes, {"alpha_0": 0.0, "alpha_1": 1e6}):
        made.update(telemetry(**fields))
        assert task.observation_space.contains(observe(task, made))


@pytest.mark.parametrize(
    ("recipe", "actions", "alphas"),
    [
        ("default", [[-1, 1], [5 / 11, 1], [-7, np.inf], [0, -np.inf]], [[2**-8, 8], [1, 8], [2**-8, 8], [2**-2.5, 2**-8]]),
        ("thesis-text", [[1, 0], [-1, -0.5], [9, -9]], [[1, 0.5], [0.001, 0.25], [1, 0.001]]),
        ("thesis-code", [[0, 1], [-1, 1 / 3], [2, -2]], [[1, 8], [1 / 8, 2], [8, 1 / 8]]),
    ],
)
def test_decode_golden(recipe, actions, alphas):
    task = QueueThreshold(recipe)
    checked = task.check_actions(np.array(actions, np.float32), len(actions))
    np.testing.assert_allclose(task.decode(checked, None, np.empty(checked.shape)), alphas, rtol=1e-12)


def test_limits_become_alphas_by_what_is_free():
    """Of 1000 packets of 1.2 ms 600 are free, 0.72 s; queue 1 has beta 0.5."""
    task, made = QueueThreshold(actions="limits"), tracker()
    made.update(telemetry(**BUSY))
    actions = task.check_actions(np.array([[0.0, 1.0]]), 1)
    alphas = task.decode(actions, made, np.empty((1, 2)))
    np.testing.assert_allclose(alphas, [[np.sqrt(1e-3) / 0.72, 1 / (0.5 * 0.72)]], rtol=1e-6)
    beyond = task.check_actions(np.array([[-np.inf, 7.0]]), 1)
    np.testing.assert_allclose(task.decode(beyond, made, np.empty((1, 2))), [[1e-3 / 0.72, 1 / 0.36]], rtol=1e-6)
    made.free[:] = 0
    assert (task.decode(actions, made, np.empty((1, 2))) == 1000).all()
    assert task.to_dict()["actions"] == {"kind": "limits", "levels": [1e-3, 1.0]}
    with pytest.raises(ConfigError, match="limits"):
        task.encode((1, 1))
    with pytest.raises(ConfigError, match="limits"):
        QueueThreshold("thesis-text", actions="limits")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("queues", [1, 2, 3])
def test_a_grid_is_a_set_of_continuous_actions(recipe, queues):
    grid, box = QueueThreshold(recipe, actions="grid", queues=queues), QueueThreshold(recipe, queues=queues)
    count = len(GRIDS[recipe]) ** queues
    assert grid.action_space == gym.spaces.Discrete(count)
    chosen = np.arange(count)
    alphas = grid.decode(grid.check_actions(chosen, count), None, np.empty((count, queues)))
    assert len(np.unique(alphas, axis=0)) == count
    continuous = np.stack([box.encode(one) for one in alphas.tolist()])
    assert box.action_space.contains(continuous[0])
    again = box.decode(box.check_actions(continuous, count), None, np.empty((count, queues)))
    np.testing.assert_allclose(again, alphas, rtol=1e-6 if recipe == "thesis-text" else 0)
    assert [int(grid.encode(one)) for one in alphas.tolist()] == chosen.tolist()


@pytest.mark.parametrize("recipe", ["default", "thesis-code"])
def test_the_thesis_static_buffers_are_exactly_reachable(recipe):
    task = QueueThreshold(recipe)
    for alphas in ((1.0, 1.0), (8.0, 1.0)):
        checked = task.check_actions(task.encode(alphas)[None], 1)
        assert task.decode(checked, None, np.empty((1, 2)))[0].tolist() == list(alphas)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros(2), "shape"),
        (np.zeros((1, 2)), "shape"),
        (np.zeros((2, 3)), "shape"),
        (np.zeros((2, 2, 1)), "shape"),
        ([[0, 1], [2]], "array"),
        (np.array([[0, np.nan], [0, 0]]), "NaN"),
        (np.zeros((2, 2), bool), "numbers"),
        (np.zeros((2, 2), complex), "numbers"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        ([[None, 1], [0, 0]], "numbers"),
    ],
)
def test_bad_actions_are_refused(actions, message):
    with pytest.raises(ConfigError, match=message):
        QueueThreshold().check_actions(actions, 2)


@pytest.mark.parametrize("actions", [[0.0, 1.0], [0, 49], [-1, 0], [[0], [1]], [np.nan, 0]])
def test_bad_grid_actions_are_refused(actions):
    with pytest.raises(ConfigError, match="action"):
        QueueThreshold(actions="grid").check_actions(actions, 2)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"recipe": "thesis"}, "recipe"),
        ({"history": 0}, "history"),
        ({"agents": 2}, "agents"),
        ({"actions": "discrete"}, "actions"),
        ({"betas": [1]}, "betas"),
        ({"betas": [1, 0]}, r"betas\[1\]"),
        ({"betas": [1, 1.5]}, r"betas\[1\]"),
        ({"betas": 1}, "betas"),
        ({"actions": "grid", "queues": 5}, "grid"),
    ],
)
def test_bad_arguments_are_refused(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        QueueThreshold(**kwargs)


def test_the_switch_comes_into_the_agents_hands_with_the_recipes_betas():
    world = get("rlbm/default").with_scheme(ABM(alphas=(8, 1)))
    for recipe, betas, expected in (
        ("default", None, (1, 1)),
        ("thesis-text", None, (1, 0.5)),
        ("thesis-code", [1, 1], (1, 1)),
        ("default", [0.5, 0.25], (0.5, 0.25)),
    ):
        admission = QueueThreshold(recipe, betas=betas).control(world).switches[0].admission
        assert admission == AgentThresholds(betas=expected, alphas=(1, 1))
    own = world.with_scheme(AgentThresholds(betas=(1, 0.3), alphas=(2, 2)))
    assert QueueThreshold().control(own) is own
    assert QueueThreshold("thesis-text").control(own).switches[0].admission == AgentThresholds(betas=(1, 0.5), alphas=(2, 2))


def test_worlds_without_one_switch_of_as_many_queues_are_refused():
    with pytest.raises(ConfigError, match="0 switches"):
        QueueThreshold.fitted(get("ppcc/1"))
    with pytest.raises(ConfigError, match="2 queues"):
        QueueThreshold(queues=3).control(get("rlbm/default"))
