"""The recipe levers: spaces, decoding, features, worlds and rules."""

from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import DRR, FlowTable, RoundRobin, Scenario, StrictPriority, Switch, get
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.tasks.queue_threshold.actions import make_scheduler
from netbuf_gym.tasks.queue_threshold.brief_pulse import FlowBriefPulse, StrictBriefPulse
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker
from tests.tasks.hand_made_switch import tracker

WORLD = {"name": "rlbm/default", "duration_s": 10, "load": 0.9}
FIXED = {"recipe": "levers", "scheduler": "drr", "victims": "any"}
NAN = float("nan")


def decode(rules, actions, queues=2):
    """The controls behind thresholds and cuts of hand-made switches that take these actions."""
    actions = rules.check_actions(np.array(actions), len(actions))
    out = np.empty((len(actions), 3 * queues + 5))
    return rules.decode(actions, tracker(len(actions), queues), out)[:, 2 * queues :]


def test_a_grid_has_the_choices_behind_the_levels():
    rules = QueueThreshold("levers", actions="pulse_grid")
    assert rules.action_space.n == 64 * 4 * 2
    chosen = [rules.number_action(np.int64(9), scheduler=s, victims=v) for s, v in ((0, 0), (1, 1), (2, 0), (3, 1))]
    assert chosen == [72, 75, 76, 79]
    quanta = [[NAN, NAN], [1500, 1500], [6000, 1500], [NAN, NAN]]
    expected = [[NAN, NAN, NAN, code, *own, v] for code, own, v in zip((0, 1, 1, 2), quanta, (0, 1, 0, 1), strict=True)]
    np.testing.assert_array_equal(decode(rules, chosen), expected)


def test_all_choices_together_vary_in_their_order():
    rules = QueueThreshold("levers", actions="limit_grid", drop="agent", congested="agent")
    assert [choice.name for choice in rules.choices] == ["scheduler", "victims", "drop", "congested"]
    number = rules.number_action(np.int64(5), scheduler=3, victims=0, drop=1, congested=0)
    assert number == (((5 * 4 + 3) * 2 + 0) * 2 + 1) * 2
    np.testing.assert_array_equal(decode(rules, [number]), [[NAN, 1, 0, 2, NAN, NAN, 0]])


def test_components_of_a_box_name_equal_parts():
    rules = QueueThreshold("levers", actions="limits")
    assert rules.action_space.shape == (4,)
    components = [(-1, -1), (-0.5, 0), (-0.4, 0.01), (0.01, 1), (0.5, 0), (0.51, 0), (9, 9)]
    controls = decode(rules, [(0, 0, *one) for one in components])
    assert controls[:, 3].tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert controls[:, -1].tolist() == [0, 0, 1, 1, 0, 0, 1]
    assert controls[:, 4].tolist()[2:5] == [1500, 6000, 6000]
    with pytest.raises(ConfigError, match="a number for each queue and one for the scheduler and one for the victims"):
        rules.check_actions(np.zeros((1, 2)), 1)


def test_what_is_fixed_is_no_part_of_actions():
    rules = QueueThreshold(**FIXED, actions="pulse_grid")
    assert rules.action_space.n == 64 and rules.choices == ()
    np.testing.assert_array_equal(decode(rules, [7])[:, 3:], np.full((1, 4), np.nan))


def test_worlds_get_the_scheduler_and_the_table():
    scenario = get("rlbm/default")
    switch = QueueThreshold(**FIXED).control(scenario).switches[0]
    assert switch.scheduler == DRR(quanta_bytes=(1500, 1500))
    assert switch.flow_table == FlowTable() and switch.victims == "any"
    own = QueueThreshold("levers", flow_slots=64, flow_service="fifo", victims="large").control(scenario).switches[0]
    assert own.flow_table == FlowTable(slots=64, service="fifo") and own.victims == "large"
    assert own.scheduler == RoundRobin()
    bare = QueueThreshold("levers", flow_slots=0).control(scenario).switches[0]
    assert bare.flow_table is None and bare.victims == "any"
    plain = QueueThreshold().control(scenario).switches[0]
    assert plain.flow_table is None and plain.scheduler == scenario.switches[0].scheduler


def test_weighted_turns():
    assert make_scheduler("weighted", 4).quanta_bytes == (6000, 1500, 375, 375)
    assert make_scheduler("drr", 3).compute_shares(3) == (1 / 3, 1 / 3, 1 / 3)
    assert StrictPriority().compute_shares(3) == (1, 0, 0) and RoundRobin().compute_shares(4) == (0.25,) * 4


def test_features():
    rules = QueueThreshold("levers", history=1)
    assert [feature.name for feature in rules.features[41:]] == [
        *("share_0", "share_1", "slots_used_0", "slots_used_1", "largest_share_0", "largest_share_1"),
    ]
    made = SwitchTracker(2, 2, levers=True)
    world = {"capacity_bps": 10e6, "capacity": 1000, "in_bytes": False, "packet_bytes": 1500, "alphas": (1, 1), "betas": (1, 1)}
    made.reset(slice(0, 2), **world, shares=(0.75, 0.25))
    seen = rules.observe(made, np.empty((rules.width, 2), np.float32))
    assert seen[41:, 0].tolist() == [0.75, 0.25, 0, 0, 0, 0]
    telemetry = np.zeros((2, len(rules.telemetry.fields)))
    for name, value in {"elapsed_s": 0.1, "capacity": 1000, "free": 900, "free_fraction": 0.9}.items():
        telemetry[:, rules.telemetry.index(name)] = value
    for name, value in {"share_1": 1, "slots_used_0": 31, "slots_used_1": 5000, "largest_share_0": 0.5}.items():
        telemetry[:, rules.telemetry.index(name)] = value
    made.update(telemetry)
    seen = rules.observe(made, np.empty((rules.width, 2), np.float32))
    np.testing.assert_allclose(seen[41:, 1], [0, 1, 0.5, 1, 0.5, 0], rtol=1e-6, atol=1e-3)
    plain = QueueThreshold(history=1).observe(made, np.empty((41, 2), np.float32))
    np.testing.assert_array_equal(seen[:41], plain)


def test_a_switch_does_as_it_is_told():
    env = Env(task="queue_threshold", scenario=WORLD, recipe="levers", actions="limits", flow_slots=64)
    observation, _ = env.reset(seed=3)
    assert env.observation_space.contains(observation)
    shares = {-1: 0.5, -0.4: 0.5, 0.4: 0.8, 1: 1.0}
    slots = 0
    for turn in range(96):
        component = list(shares)[turn % 4]
        observation, *_ = env.step(np.array([1, 1, component, 1], np.float32))
        assert env.observation_space.contains(observation)
        assert env.telemetry["share_0"] == pytest.approx(shares[component]) and 0 <= env.telemetry["largest_share_0"] <= 1
        slots = max(slots, env.telemetry["slots_used_0"], env.telemetry["slots_used_1"])
    assert 1 < slots <= 64


def test_a_table_spares_small_flows_where_the_limit_is_the_same():
    limits = {"tail_rest_ms": 20, "others_ms": 20, "tail_ms": 1000}
    on = {"task": "queue_threshold", "scenario": {**WORLD, "duration_s": 20}, "seeds": range(4)}
    without, sparing = (rollout.evaluate(rule(**limits), **on) for rule in (StrictBriefPulse, FlowBriefPulse))
    means = [np.mean([one["slowdown_mean_p0"] for one in reports]) for reports in (without, sparing)]
    assert means[1] < 0.9 * means[0]


@pytest.mark.parametrize("name", ["brief_pulse-strict", "brief_pulse-sparing", "brief_pulse-flows:tail_ms=30:shut_ms=5"])
def test_rules_play(name):
    reports = rollout.evaluate(name, "queue_threshold", WORLD, range(2))
    assert all(one["flows_completed_p0"] > 0 for one in reports)
    again = rollout.evaluate(name, "queue_threshold", WORLD, range(2), threads=2)
    assert again == reports


@pytest.mark.parametrize("rule", [StrictBriefPulse, FlowBriefPulse])
@pytest.mark.parametrize("env", [{}, {"recipe": "default"}, {"recipe": "levers", "scheduler": "drr", "victims": "agent"}])
def test_levers_of_a_rule_are_its_own(rule, env):
    merged = rule().merge_arguments({**env, "interval_s": 0.05})
    assert merged == {**rule().env, "interval_s": 0.05}
    assert rule().match_arguments({**env, "interval_s": 0.05}) == merged


def test_the_rule_chooses_strict_priority_and_large_victims_where_it_may():
    env = Env(task="queue_threshold", scenario=WORLD, recipe="levers", actions="pulse_grid", drop="agent")
    observation, _ = env.reset(seed=1)
    policy = BriefPulse().start(env.engine.task, (1,))
    actions, _ = policy(observation[None], None, np.ones(1, bool))
    env.step(actions[0])
    assert env.telemetry["share_0"] == 1 and env.telemetry["drop_head"] == 1


def test_scenarios_keep_their_table():
    world = get("rlbm/default")
    table = FlowTable(slots=128, service="fifo", quantum_bytes=3000)
    own = replace(world, switches=(replace(world.switches[0], flow_table=table, victims="large"),))
    assert Scenario.from_dict(own.to_dict()) == own != world
    assert "flow_table" not in world.to_dict()["switches"][0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FlowTable(slots=0), ScenarioError, "flow_table.slots = 0"),
        (lambda: FlowTable(service="lifo"), ScenarioError, "flow_table.service"),
        (lambda: FlowTable(quantum_bytes=10), ScenarioError, "flow_table.quantum_bytes = 10"),
        (lambda: Switch(buffer_packets=9, victims="large"), ScenarioError, 'victims = "large" without a flow_table'),
        (lambda: Switch(buffer_packets=9, flow_table=64), ScenarioError, "flow_table = 64"),
        (
            lambda: QueueThreshold(scheduler="drr"),
            ConfigError,
            'scheduler = "drr" with recipe .default.; valid: recipe "levers"',
        ),
        (lambda: QueueThreshold(flow_slots=64), ConfigError, "flow_slots = 64 with recipe 'default'"),
        (lambda: QueueThreshold("levers", scheduler="fifo"), ConfigError, "scheduler = 'fifo'"),
        (lambda: QueueThreshold("levers", flow_slots=0, victims="large"), ConfigError, "flow_slots = 0"),
        (lambda: QueueThreshold("levers").encode((1, 1)), ConfigError, 'scheduler = "agent" makes the scheduler part'),
        (
            lambda: QueueThreshold("thesis-text", drop="agent"),
            ConfigError,
            'drop = "agent" with recipe .thesis-text.; valid: recipe "default" or "levers"',
        ),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_other_recipes_are_as_they_were():
    rules = QueueThreshold(actions="pulse_grid", drop="agent", congested="agent")
    assert rules.action_space.n == 256 and len(rules.kind.controls) == 7 and rules.kind.parameters == {"queues": 2}
    assert "scheduler" not in rules.to_dict()
    out = rules.decode(np.array([4 * 9 + 2]), tracker(1), np.empty((1, 7)))
    assert out[0, 5:].tolist() == [1, 0]
