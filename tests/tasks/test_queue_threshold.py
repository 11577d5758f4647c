"""Golden values, computed by hand, of what actions mean and what is observed."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import ABM, AgentThresholds, get
from netbuf_gym.tasks.queue_threshold import GRIDS, QueueThreshold
from netbuf_gym.tasks.queue_threshold.actions import LIMIT_LEVELS_S, PULSE_LEVELS_S
from netbuf_gym.tasks.queue_threshold.telemetry import switch_telemetry
from tests.tasks.hand_made_switch import BUSY, telemetry, tracker

GOLDEN = {
    "buffer_time": (2 * np.log(1.2 / 1e-3) / np.log(1e4) - 1,),  # 1000 packets of 1.2 ms
    "packet_time": (2 * np.log(1.2e-3 / 1e-5) / np.log(1e4) - 1,),
    "occupancy": (-0.2,),
    "utilisation": (0.92,),  # 120 of 125 kB
    "drop_head": (0.0,),
    "alpha": (1.0, 2 * 8 / 11 - 1),
    "limit": (np.log(1201) / np.log(10001), np.log(361) / np.log(10001)),  # 8 * 0.6 is the whole buffer; 1 * 0.5 * 0.6
    "level": (2 * (np.log2(0.1 / 0.6) + 8) / 11 - 1, 2 * (np.log2(0.3 / 0.3) + 8) / 11 - 1),
    "peak": (0.5, 0.6),
    "backlog": (np.log(121) / np.log(10001), np.log(361) / np.log(10001)),
    "least": (np.log(21) / np.log(10001), np.log(5.8) / np.log(10001)),  # 25 and 6 kB
    "above": (np.log(101) / np.log(10001), 0.0),
    "cut": (1.0, 1.0),
    "drop_age": (1.0, 0.0),
    "delay": (np.log(101) / np.log(10001), np.log(301) / np.log(10001)),
    "arrivals": (np.log(2.2) / np.log(17), np.log(1.3) / np.log(17)),  # 83.3 packets can be sent
    "load": (1.2 * (1 - np.exp(-0.02)) - 1, 0.3 * (1 - np.exp(-0.02)) - 1),
    "drained": (0.2, -0.28),
    "drops": (0.0, 0.6),
    "starts": (np.log(4) / np.log(101), 0.0),
    "starts_lately": (np.log(4) / np.log(101), 0.0),
    "starts_most": (np.log(4) / np.log(101), 0.0),
    "flows_seen": (np.log(2) / np.log(101), 0.0),
}


UNTOLD = (np.nan,) * 5
"""Of two queues: no cut, drop place and marks as they are."""


def decoded(task, actions, made):
    return task.decode(actions, made, np.empty((len(actions), 2 * task.queues + 3)))


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
    assert differ <= {"buffer_ti", "packet_ti", "limit", "backlog", "least", "above", "load"}


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


WITHOUT_LEVERS = [recipe for recipe in QueueThreshold.recipes if recipe != "levers"]  # see test_switch_levers.py


@pytest.mark.parametrize("recipe", WITHOUT_LEVERS)
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
    np.testing.assert_allclose(task.decode_alphas(checked), alphas, rtol=1e-12)


def test_limits_become_alphas_by_what_is_free():
    """Of 1000 packets of 1.2 ms 600 are free, 0.72 s; queue 1 has beta 0.5."""
    task, made = QueueThreshold(actions="limits"), tracker()
    made.update(telemetry(**BUSY))
    actions = task.check_actions(np.array([[0.0, 1.0]]), 1)
    np.testing.assert_allclose(decoded(task, actions, made), [[np.sqrt(1e-3) / 0.72, 1 / (0.5 * 0.72), *UNTOLD]], rtol=1e-6)
    beyond = task.check_actions(np.array([[-np.inf, 7.0]]), 1)
    np.testing.assert_allclose(decoded(task, beyond, made), [[1e-3 / 0.72, 1 / 0.36, *UNTOLD]], rtol=1e-6)
    made.free[:] = 0
    assert (decoded(task, actions, made)[:, :2] == 1000).all()
    assert task.to_dict()["actions"] == {"kind": "limits", "levels": [1e-3, 1.0]}
    with pytest.raises(ConfigError, match="limits"):
        task.encode((1, 1))
    with pytest.raises(ConfigError, match="limits"):
        QueueThreshold("thesis-text", actions="limits")


def test_changes_widen_and_narrow_the_limits_that_there_were():
    task, made = QueueThreshold(actions="changes"), tracker(rows=2, betas=(1.0, 1.0))  # 1.2 s are free
    said = []
    for action in ([-1, 0], [-0.5, 1], [1, -3], [-np.inf, -1]):
        both = task.check_actions(np.array([action, [0, 0]]), 2)
        said.append(decoded(task, both, made)[:, :2] * 1.2)
    np.testing.assert_allclose([one[0] for one in said], [[0.25, 1], [0.125, 1], [0.5, 0.25], [0.125, 0.0625]], rtol=1e-6)
    assert np.allclose([one[1] for one in said], 1)
    for _ in range(9):
        least = decoded(task, task.check_actions(np.full((2, 2), -1.0), 2), made)[:, :2] * 1.2
    np.testing.assert_allclose(least, 1e-3, rtol=1e-6)
    made.reset(slice(0, 1), capacity_bps=10e6, capacity=1000, in_bytes=False, packet_bytes=1500, alphas=(1, 1), betas=(1, 1))
    np.testing.assert_allclose(decoded(task, task.check_actions(np.zeros((2, 2)), 2), made)[:, 0] * 1.2, [1, 1e-3], rtol=1e-6)


def test_grids_of_limits_and_of_pulses():
    made = tracker(betas=(1.0, 1.0))  # 1.2 s are free
    limits = QueueThreshold(actions="limit_grid")
    assert limits.action_space == gym.spaces.Discrete(len(LIMIT_LEVELS_S) ** 2)
    for action, expected in ((0, [1e-3, 1e-3]), (6, [1e-3, 1]), (2 * 7 + 4, [0.01, 0.05]), (48, [1, 1])):
        controls = decoded(limits, limits.check_actions([action], 1), made)
        np.testing.assert_allclose(controls, [[*np.array(expected) / 1.2, *UNTOLD]], rtol=1e-6)
    pulses = QueueThreshold(actions="pulse_grid", drop="agent")
    assert pulses.action_space == gym.spaces.Discrete(2 * len(PULSE_LEVELS_S) ** 2)
    nan = np.nan
    for action, alphas, cuts, head, cut_s in (
        (0, [1e-3, 1e-3], [nan, nan], 0, nan),
        (2 * (7 * 8 + 4) + 1, [1, 1], [0.005, nan], 1, 0.01),
        (2 * (2 * 8 + 5), [0.02, 1], [nan, 0.005], 0, 0.001),
        (2 * (6 * 8 + 7), [1, 1], [0.005, 0.005], 0, 0.01),
    ):
        controls = decoded(pulses, pulses.check_actions([action], 1), made)
        np.testing.assert_allclose(controls, [[*np.array(alphas) / 1.2, *np.array(cuts) / 1.2, cut_s, head, nan]], rtol=1e-6)
    with pytest.raises(ConfigError, match="128"):
        pulses.check_actions([128], 1)


def test_a_box_chooses_the_drop_place_by_one_component_more():
    for kind in ("continuous", "limits", "changes"):
        task = QueueThreshold(actions=kind, drop="agent")
        assert task.action_space.shape == (3,)
        both = task.check_actions(np.array([[1, 1, 0.01], [1, 1, 0]]), 2)
        assert decoded(task, both, tracker(rows=2))[:, -2].tolist() == [1, 0]
    for given in ("tail", "head", None):
        task = QueueThreshold(actions="limits", drop=given)
        assert np.isnan(decoded(task, task.check_actions(np.zeros((1, 2)), 1), tracker())[:, -2:]).all()
        world = get("rlbm/default", drop="head")
        assert task.control(world).switches[0].drop == (given or "head")
    with pytest.raises(ConfigError, match="drop"):
        QueueThreshold(drop="agent").encode((1, 1))


@pytest.mark.parametrize("elapsed_s", [0.1, 0.01, 0.005, 0.03, 0.3])
def test_the_least_queue_is_that_of_100_to_200_ms(elapsed_s):
    """Against the least of the intervals in question, at every decision."""
    made, rng, seen = tracker(), np.random.default_rng(4), []
    window = max(1, round(np.ceil(0.1 / elapsed_s - 1e-4)))
    for k in range(1, 200):
        seen.append(int(rng.integers(1, 1000)))
        made.update(telemetry(elapsed_s=elapsed_s, queue_bytes_min_0=seen[-1]))
        in_question = seen[(k // window - 1) * window :] if k >= window else [0]  # it began empty
        assert made.least_bytes[0, 0] == min(in_question) and made.least_bytes[1, 0] == 0
        assert k < window or window <= len(in_question) < 2 * window


def test_times_since_things_happened():
    """In an interval of 0.1 s each; 12.5 kB are 10 ms."""
    made = tracker(rows=2)
    assert made.since_s[:, 0, 0].tolist() == [0, 10, 10]
    steps = (({"queue_bytes_min_0": 12_500}, [0, 10, 10]), ({"queue_bytes_min_0": 12_501, "drops_0": 1}, [0.1, 10, 0]))
    for fields, expected in (*steps, ({"queue_bytes_min_0": 12_501}, [0.2, 10, 0.1])):
        made.update(telemetry(2, **fields))
        np.testing.assert_allclose(made.since_s[:, 0, 0], expected, rtol=1e-6)
    made.update(telemetry(2, queue_packets_0=100, free=900, free_fraction=0.9))
    made.note_decision(np.array([[0.11, 0.112], [1, 1]]))  # 99 and 100.8 packets
    made.update(telemetry(2))
    assert made.since_s[1].tolist() == pytest.approx(np.array([[0.1, 10], [10, 10]]))
    for _ in range(120):
        made.update(telemetry(2, queue_bytes_min_0=1e6))
    np.testing.assert_allclose(made.since_s[:, 0], 10)
    made.update(telemetry(2, flows_opened_0=2))
    made.update(telemetry(2, flows_closed_0=3))
    assert made.flows_seen[0].tolist() == [0, 0]


def test_what_keeps_an_open_queue_from_growing_is_no_cut():
    made = tracker()
    made.update(telemetry(queue_packets_0=500, queue_bytes_0=750_000, free=0, free_fraction=0))  # 0.6 s of packets
    task = QueueThreshold(actions="pulse_grid")
    for said, cut_age_s in (((1.0, 0), 10.0), ((1.0, 0.003), 0.0)):
        level = PULSE_LEVELS_S.index(said)
        decoded(task, np.array([level * len(PULSE_LEVELS_S) + 4]), made)
        assert made.since_s[1, 0, 0] == pytest.approx(cut_age_s)
        assert made.since_s[1, 1, 0] == 10


def test_bursts_are_remembered_for_seconds():
    made = tracker()
    made.update(telemetry(syns_0=12))
    for _ in range(50):
        made.update(telemetry(syns_0=0))
    assert made.starts_lately[0, 0] < 1e-5
    assert made.starts_most[0, 0] == pytest.approx(12 * np.exp(-0.5), rel=1e-4) and made.starts_most[1, 0] == 0
    made.update(telemetry(syns_0=9))
    assert made.starts_most[0, 0] == pytest.approx(9, rel=1e-3)


@pytest.mark.parametrize("recipe", WITHOUT_LEVERS)
@pytest.mark.parametrize("queues", [1, 2, 3])
def test_a_grid_is_a_set_of_continuous_actions(recipe, queues):
    grid, box = QueueThreshold(recipe, actions="grid", queues=queues), QueueThreshold(recipe, queues=queues)
    count = len(GRIDS[recipe]) ** queues
    assert grid.action_space == gym.spaces.Discrete(count)
    chosen = np.arange(count)
    alphas = grid.decode_alphas(grid.check_actions(chosen, count))
    assert len(np.unique(alphas, axis=0)) == count
    continuous = np.stack([box.encode(one) for one in alphas.tolist()])
    assert box.action_space.contains(continuous[0])
    again = box.decode_alphas(box.check_actions(continuous, count))
    np.testing.assert_allclose(again, alphas, rtol=1e-6 if recipe == "thesis-text" else 0)
    assert [int(grid.encode(one)) for one in alphas.tolist()] == chosen.tolist()


@pytest.mark.parametrize("recipe", ["default", "thesis-code"])
def test_the_thesis_static_buffers_are_exactly_reachable(recipe):
    task = QueueThreshold(recipe)
    for alphas in ((1.0, 1.0), (8.0, 1.0)):
        checked = task.check_actions(task.encode(alphas)[None], 1)
        assert task.decode_alphas(checked)[0].tolist() == list(alphas)


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
        ({"actions": "changes", "recipe": "thesis-code"}, 'actions = "changes" with recipe'),
        ({"drop": "agent", "recipe": "thesis-text"}, 'drop = "agent" with recipe'),
        ({"drop": "both"}, "drop"),
        ({"actions": "pulse_grid", "queues": 5}, "32768 actions of 5 queues; valid: at most 4096"),
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
        QueueThreshold.world_arguments(get("ppcc/1"))
    with pytest.raises(ConfigError, match="2 queues"):
        QueueThreshold(queues=3).control(get("rlbm/default"))


def test_the_default_recipe_observes_nothing_that_a_switch_cannot_count():
    """Whatever completes, and whatever senders and receivers know: the observation is the same."""
    task, seen = QueueThreshold(), []
    privileged = [field.name for field in task.telemetry.fields if field.privileged]
    assert {"flows_started", "ratio_sum_0", "worst_ratio", "at_elapsed_s", "delivered_bytes"} <= set(privileged)
    assert not {"arrivals_0", "syns_0", "flows_closed_1", "queue_bytes_min_0", "packets_dropped"} & set(privileged)
    for value in (1.0, 7.0):
        made = tracker()
        for _ in range(3):
            made.update(telemetry(**{**BUSY, **dict.fromkeys(privileged, value)}))
        seen.append(observe(task, made))
    assert np.array_equal(*seen)


def test_actions_reach_the_default_recipe_alone_where_they_name_times():
    for kind in ("limits", "changes", "limit_grid", "pulse_grid"):
        assert QueueThreshold(actions=kind).to_dict()["actions"]["kind"] == kind
        with pytest.raises(ConfigError, match='valid: recipe "default"'):
            QueueThreshold("thesis-code", actions=kind)


def test_arrays_of_other_shapes_are_refused():
    made = tracker(rows=4)
    native, scales, few = made.arithmetic, np.ones((3, 3), np.float32), np.ones((5, 4), np.float32)
    logs, log1ps = np.ones((6, 4), np.float32), np.ones((24, 4), np.float32)
    with pytest.raises(ValueError, match=r"telemetry must have shape \(rows, fields\)"):
        native.take_in(telemetry(rows=3))
    with pytest.raises(ValueError, match=r"logs must have shape \(2 \+ 2 \* queues, rows\)"):
        native.ratios(scales, few, log1ps)
    with pytest.raises(ValueError, match=r"log1ps must have shape \(12 \* queues, rows\)"):
        native.ratios(scales, logs, few)
    with pytest.raises(ValueError, match=r"log_scales must have shape \(3, 3\)"):
        native.ratios(scales[:2], logs, log1ps)
    with pytest.raises(ValueError, match=r"out must have shape \(5 \+ 18 \* queues, rows\)"):
        native.features(scales, np.ones(12, np.float32), logs, log1ps, few)
    with pytest.raises(ValueError, match=r"log1p_scales must have shape \(12,\)"):
        native.features(scales, np.ones(11, np.float32), logs, log1ps, np.ones((41, 4), np.float32))


@pytest.mark.parametrize("queues", [1, 2, 9])
def test_a_switch_observes_the_same_alone_and_beside_others(queues):
    names, rng = switch_telemetry(queues).names, np.random.default_rng(2)
    measured = telemetry(rows=5, queues=queues, free_fraction=0.5, free=500)
    for name in ("arrivals", "queue_bytes", "queue_packets_max", "drained_bytes", "syns", "drops", "ratio_sum"):
        columns = [names.index(f"{name}_{q}") for q in range(queues)]
        measured[:, columns] = rng.integers(1, 1000, (5, queues))
    task, betas = QueueThreshold(queues=queues), (1.0,) * queues
    beside, alone = (tracker(rows=rows, queues=queues, betas=betas) for rows in (5, 1))
    beside.update(measured)
    alone.update(measured[3:4].copy())
    both = [task.observe(made, np.empty((task.width, made.rows), np.float32)) for made in (beside, alone)]
    np.testing.assert_array_equal(both[0][:, 3], both[1][:, 0])
