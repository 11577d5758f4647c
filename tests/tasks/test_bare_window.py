"""Recipe `bare`: from the first ACK on the window is the agent's, and nothing else moves it but a time-out."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.tasks import require_schema
from netbuf_gym.tasks.congestion_window import FACTORS, CongestionWindow
from netbuf_gym.tasks.congestion_window.task import MAX_BARE_SEGMENTS
from tests.helpers import machines
from tests.tasks.hand_made import MSS, acknowledged, decided, telemetry, tracker

ID = "netbuf/CongestionWindow-v0"
LAST = len(FACTORS) - 1
DOUBLE, HALVE = [1.0], [-1.0]


def bare(**options):
    task = CongestionWindow("bare", **{"actions": "continuous"} | options)
    return task, tracker(task=task)


def world(queue_packets=400, **link):
    return Scenario(
        links=[
            Link(name="there", **{"rate_mbps": 10, "delay_ms": 24, "queue_packets": queue_packets} | link),
            Link(name="back", delay_ms=24),
        ],
        flows=[Flow(cc="agent", path=["there"], return_path=["back"])],
        duration_s=20,
    )


# ---- what is decided


def test_the_window_is_the_action_times_the_one_in_force():
    """Also beyond what was acknowledged, after heavy losses, and however long the least round trip was not seen."""
    task, made = bare()
    assert np.isnan(decided(task, made, DOUBLE))
    made.update(telemetry(cwnd_bytes=10 * MSS))
    assert np.isnan(decided(task, made, DOUBLE)), "no ACK has come"
    made.update(acknowledged(1, cwnd_bytes=10 * MSS, ssthresh_bytes=np.nan))
    assert decided(task, made, DOUBLE) == [20] and decided(task, made, HALVE) == [5], "at the first ACK"
    for step in range(200):
        lost = {"packets_lost": 90 * (step > 100)}
        made.update(acknowledged(10, 0.05 if step == 0 else 0.5, cwnd_bytes=100 * MSS, **lost))
        assert (
            decided(task, made, DOUBLE) == [200] and decided(task, made, [0.0]) == [100] and decided(task, made, HALVE) == [50]
        )
    made.update(telemetry(cwnd_bytes=100 * MSS))
    assert decided(task, made, DOUBLE) == [200], "without an ACK, too"
    made.update(telemetry(cwnd_bytes=MSS, timeouts=1))
    assert decided(task, made, DOUBLE) == [2], "what a time-out left, not the window from before"
    made.reset(slice(0, 1), initial_window=10 * MSS, highest_window=100 * MSS, mss_bytes=MSS, capacity_bps=1e7, share_bps=1e7,
               base_rtt_s=0.05, first_beside=0)  # fmt: skip
    assert np.isnan(decided(task, made, DOUBLE))


def test_windows_stay_within_what_a_connection_and_a_machine_bear():
    task, made = bare()
    made.update(acknowledged(10, cwnd_bytes=3 * MSS))
    assert decided(task, made, HALVE) == [2]
    made.update(acknowledged(10, cwnd_bytes=(MAX_BARE_SEGMENTS - 1) * MSS))
    assert decided(task, made, DOUBLE) == [MAX_BARE_SEGMENTS]


def test_actions_and_observations_are_those_of_the_default_recipe():
    task, made = bare(actions=None)
    assert task.action_space == CongestionWindow().action_space and task.features == CongestionWindow().features
    made.update(acknowledged(10, cwnd_bytes=100 * MSS))
    assert [decided(task, made, at)[0] for at in range(len(FACTORS))] == pytest.approx(FACTORS * 100)
    task, made = bare(actions=[0.5, 1, 3])
    made.update(acknowledged(10, cwnd_bytes=100 * MSS))
    assert task.keep_action == 1 and [decided(task, made, at)[0] for at in range(3)] == [50, 100, 300]
    assert task.kind.parameters["slow_start"] == task.kind.parameters["paced"] == 0
    assert CongestionWindow("bare", paced=True).kind.parameters["paced"] == 1


@pytest.mark.parametrize(
    ("name", "value"), [("slow_start", True), ("drain", True), ("clamp", "measured"), ("clamp", "path"), ("growth_loss", 0.1)]
)
def test_what_is_not_bare_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf'^{name} = {value!r} with recipe "bare"; valid: .*, since the window is the agent'):
        CongestionWindow("bare", **{name: value})


def test_agents_of_other_recipes_are_no_agents_of_this_one():
    schemas = {recipe: VectorEnv(1, recipe=recipe).schema() for recipe in CongestionWindow.recipes}
    assert schemas["bare"]["clamp"] == "none" and not schemas["bare"]["slow_start"]
    for recipe in ("default", "ppcc"):
        with pytest.raises(CheckpointError, match="recipe"):
            require_schema(schemas[recipe], schemas["bare"], "agent")


# ---- in worlds


def windows(env, action, steps):
    """The window in force after each decision, in segments; the same action always."""
    env.reset(seed=1)
    return [env.step(action)[4]["telemetry"]["cwnd_bytes"] / MSS for _ in range(steps)]


def test_an_environment_follows_the_action_at_once_and_does_nothing_by_itself():
    """An RTT of 48 ms: the first ACK of data comes in the first interval of 100 ms."""
    env = gym.make(ID, scenario=world(), recipe="bare", actions="continuous", info="telemetry")
    doubled = windows(env, np.ones(1, np.float32), 6)
    assert doubled == [10, 20, 40, 80, 160, 320]
    kept = windows(env, np.zeros(1, np.float32), 190)
    assert kept == [10] * 190
    default = gym.make(ID, scenario=world(), actions="continuous", info="telemetry")
    assert max(windows(default, np.zeros(1, np.float32), 190)) > 40, "of a slow start"


def test_losses_and_queues_leave_the_window_alone():
    env = gym.make(ID, scenario=world(20, loss=0.05), recipe="bare", actions="continuous", info="telemetry")
    env.reset(seed=1)
    expected, lost = 10.0, 0
    for step in range(150):
        action = np.float32(step in (1, 2, 3))
        telemetry = env.step(np.array([action]))[4]["telemetry"]
        expected = 2 if telemetry["timeouts"] else expected * 2.0**action
        lost += telemetry["packets_lost"]
        if not telemetry["timeouts"]:
            assert telemetry["cwnd_bytes"] == expected * MSS
    assert lost > 100 and expected == 80


def test_no_rtt_but_the_first_decision_waits_for_the_first_ack():
    env = gym.make(ID, scenario=world(delay_ms=376), recipe="bare", info="telemetry")  # 400 ms: handshake, then data
    assert windows(env, LAST, 10) == [10] * 9 + [40]


def test_vectors_and_agents_of_one_world_have_it():
    parallel = pytest.importorskip("netbuf_gym.envs.parallel_env")
    rows = VectorEnv(3, scenario=world(), recipe="bare", actions="continuous", info="telemetry")
    rows.reset(seed=1)
    for step in range(4):
        infos = rows.step(np.array([[1.0], [0.0], [-0.5]], np.float32))[4]["telemetry"]
        factors = np.array([2.0, 1.0, 2.0**-0.5]) ** step
        assert infos["cwnd_bytes"] == pytest.approx(10 * MSS * factors, abs=2)
    env = parallel.ParallelEnv(agents=2, scenario="ppcc/2", recipe="bare", actions="continuous", info="telemetry")
    env.reset(seed=1)
    for step in range(5):
        *_, infos = env.step({agent: np.array([at], np.float32) for at, agent in enumerate(env.possible_agents)})
        found = [infos[agent]["telemetry"]["cwnd_bytes"] / MSS for agent in env.possible_agents]
        assert found == [10, 10 * 2 ** max(step - 1, 0)], "the second sender's first ACK comes in the second interval"


def test_a_runaway_agent_ends_in_time():
    """The largest factor always: at most 65,536 segments are in flight."""
    env = gym.make(ID, scenario=world(), recipe="bare", info="telemetry")
    assert max(windows(env, LAST, 199)) <= MAX_BARE_SEGMENTS


def test_rules_of_the_default_recipe_play_it():
    queue_target = rollout.evaluate("queue_target", "congestion_window", world(), [1], recipe="bare")[0]
    keep = rollout.evaluate("keep", "congestion_window", world(), [1], recipe="bare")[0]
    assert keep["goodput_mbps"] == pytest.approx(10 * MSS * 8 / 0.0493 * 1e-6, rel=0.05), "ten segments a round trip"
    assert queue_target["utility"] > keep["utility"] + 0.5


@pytest.mark.slow
def test_a_live_world_follows_it():
    machines.needs_bpf()
    env = gym.make(ID, scenario=world(), recipe="bare", actions="continuous", info="telemetry", plant="linux")
    try:
        found = windows(env, np.array([0.5], np.float32), 7)
        waiting = sum(at == found[0] for at in found) - 1  # a busy machine's first ACK comes an interval or two late
        assert waiting <= 2
        assert found == pytest.approx([10 * 2 ** (max(step - waiting, 0) / 2) for step in range(7)], rel=0.1)
    finally:
        env.close()
