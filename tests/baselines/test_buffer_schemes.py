"""Buffer schemes and thresholds in the agent's place: same worlds, same traffic, same reports."""

import math

import numpy as np
import pytest

from netbuf_gym import baselines, simulate
from netbuf_gym.env import Env
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import Flow, Link, Scenario, Switch
from netbuf_gym.vector import VectorEnv

SHORT = {"name": "rlbm/cubic-100-0.8", "duration_s": 20.0}
RANDOM = {"name": "rlbm/random", "duration_s": 10.0, "load": [0.5, 2.0], "queue_packets": [20, 100]}
NAMES = baselines.CONTROLLERS["queue_threshold"]


def same(a, b):
    return a.keys() == b.keys() and all(
        a[key] == b[key] or (isinstance(a[key], float) and math.isnan(a[key]) and math.isnan(b[key])) for key in a
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_controller_reports_every_seed(name):
    make = lambda: baselines.make(name, "queue_threshold")  # noqa: E731
    reports, again = (make().evaluate(SHORT, seeds=[1, 2, 3], threads=threads) for threads in (1, 2))
    assert len(reports) == 3 and all(same(a, b) for a, b in zip(reports, again, strict=True))
    for report in reports:
        assert 0 < report["goodput_mbps"] < 10 and report["slowdown_p99_p0"] >= 1 and report["duration_s"] == 20
        assert {"slowdown_p99_p1", "occupancy_p99", "queue_mean_packets_1", "difference_p99_s"} <= set(report)


@pytest.mark.parametrize("scenario", [SHORT, RANDOM, {"name": "rlbm/incast", "duration_s": 10}])
def test_constant_thresholds_are_the_static_schemes_exactly(scenario):
    for alphas, name in (((1, 1), "naive"), ((8, 1), "sophisticated")):
        fixed = baselines.FixedThresholds(alphas).evaluate(scenario, seeds=[4, 5, 6])
        scheme = baselines.BufferScheme(name).evaluate(scenario, seeds=[4, 5, 6])
        assert all(same(a, b) for a, b in zip(fixed, scheme, strict=True))
    assert baselines.FixedThresholds((1, 1)).evaluate(SHORT, [4], actions="grid")  # encoded as the environment's actions are
    coded = baselines.FixedThresholds((1, 1), "thesis-code").evaluate(SHORT, seeds=[4], betas=[1, 1])
    assert same(coded[0], baselines.BufferScheme("naive").evaluate(SHORT, seeds=[4])[0])


def test_reports_are_those_of_simulate():
    drawn = baselines.draw_worlds(RANDOM, [8])
    for name in ("naive", "abm", "dt", "static_bdp", "codel"):
        report = baselines.BufferScheme(name).evaluate(RANDOM, seeds=[8])[0]
        result = simulate(drawn[0][0].with_scheme(name), seed=drawn[0][1])
        assert report["goodput_mbps"] == pytest.approx(result.goodput_mbps)
        assert report["flows_completed"] == result.traffic.flows_completed
        for priority in (0, 1):
            expected = result.slowdown(99, priority)
            assert report[f"slowdown_p99_p{priority}"] == pytest.approx(expected, nan_ok=True)
        assert report["difference_max_s"] == pytest.approx(result.completed()["difference_s"].max())
        if result.switches:
            share = result.switches[0].capacity / drawn[0][0].switches[0].capacity  # of the scenario's own buffer
            assert report["occupancy_p99"] == pytest.approx(result.switches[0].occupancy_p99 * share)
            assert report["occupancy_mean"] == pytest.approx(result.switches[0].occupancy_mean * share)
            assert (share < 0.5) == (name == "static_bdp")
            assert report["drops"] == result.switches[0].drops
        assert report["probe_delay_mean_ms"] == pytest.approx(result.probes[0].mean_ms)


def test_controllers_meet_the_same_worlds_and_traffic():
    env = VectorEnv(3, task="queue_threshold", scenario=RANDOM)
    env.reset(seed=[4, 5, 6])
    drawn = baselines.draw_worlds(RANDOM, [4, 5, 6])
    assert drawn == list(zip(env.engine.scenarios, env.engine.seeds.tolist(), strict=True))
    started = {
        name: [r["flows_started"] for r in baselines.make(name, "queue_threshold").evaluate(RANDOM, seeds=[4, 5, 6])]
        for name in ("naive", "abm", "fq_codel", "random")
    }
    assert len({tuple(one) for one in started.values()}) == 1
    scenario, seed = drawn[0]
    opened = []  # start, sender, size and priority of every flow
    for name in ("naive", "abm", "static_bdp", "fq_codel", "agent"):
        world = Simulator(scenario.with_scheme(name), seed)
        world.run(10_000_000_000)
        opened.append(np.array(world.flows_opened())[:, :4])
    env = Env(task="queue_threshold", scenario=RANDOM)
    env.reset(seed=4)
    for _ in range(100):
        env.step(np.array([-1.0, 0.3]))
    opened.append(np.array(env.engine.plant.world(0).flows_opened())[:, :4])
    assert len(opened[0]) > 3 and all(np.array_equal(one, opened[0]) for one in opened)


@pytest.mark.parametrize("below", [[], [100_000], [100_000, 1_000_000], [50_000, 100_000, 1_000_000]])
@pytest.mark.parametrize("kwargs", [{}, {"recipe": "thesis-text"}, {"actions": "grid"}])
def test_random_thresholds_take_recipe_actions_and_queues_of_the_worlds(below, kwargs):
    world = {"name": "rlbm/default", "duration_s": 2.0, "priority_below": below}
    report = baselines.RandomThresholds().evaluate(world, seeds=[1], **kwargs)[0]
    assert f"queue_mean_packets_{len(below)}" in report and f"queue_mean_packets_{len(below) + 1}" not in report


def test_random_thresholds_draw_from_a_grid_too():
    controller = baselines.RandomThresholds(2, actions="grid")
    actions, _ = controller.predict(np.zeros((400, 3)))
    assert actions.dtype.kind == "i" and set(actions.tolist()) <= set(range(49)) and len(set(actions.tolist())) > 40
    assert np.ndim(controller.predict(np.zeros(3))[0]) == 0


@pytest.mark.parametrize("octets", [False, True])
def test_disciplines_are_reported_over_all_former_ports_as_shares_of_the_switchs_buffer(octets):
    size = {"buffer_bytes": 300_000} if octets else {"buffer_packets": 200}
    links = (
        Link(name="left", rate_mbps=5, delay_ms=10),
        Link(name="right", rate_mbps=5, delay_ms=10),
        Link(name="elsewhere", rate_mbps=4, delay_ms=1, queue_packets=5),
        Link(name="back", delay_ms=10),
    )
    flows = [Flow(cc="cubic", path=(port,), return_path=("back",)) for port in ("left", "right", "elsewhere")]
    switch = Switch(ports=("left", "right"), **size)
    world = Scenario(links=links, flows=tuple(flows), switches=(switch,), duration_s=20)
    scheme = baselines.BufferScheme("droptail")
    report, core = scheme.episode(world, 1), Simulator(scheme.place(world), 1)
    core.run(20_000_000_000)
    ports = core.link_stats()
    assert ports[2]["queue_drops"] > 0
    assert report["drops"] == ports[0]["queue_drops"] + ports[1]["queue_drops"] > 0
    length = (ports[0]["queue_integral_packet_s"] + ports[1]["queue_integral_packet_s"]) / 20
    assert report["queue_mean_packets"] == pytest.approx(length) and length > ports[0]["queue_integral_packet_s"] / 20
    assert report["occupancy_mean"] == pytest.approx(length * (world.data_bytes / 300_000 if octets else 1 / 200))
    series = scheme.series(world, 1, 0.1)
    assert series["drops"].sum() == report["drops"]
    assert series["queue_packets"].mean() == pytest.approx(length, rel=0.05)
    shared = baselines.BufferScheme("naive").episode(world, 1)
    assert shared["drops"] > 0 and 0.5 < shared["occupancy_mean"] <= 1


def test_means_over_a_switch_are_of_all_queues():
    world, seed = baselines.draw_worlds({"name": "rlbm/default", "load": 0.9, "duration_s": 20}, [3])[0]
    report = baselines.BufferScheme("naive").episode(world, seed)
    assert min(report["queue_mean_packets_0"], report["queue_mean_packets_1"]) > 0
    assert report["queue_mean_packets"] == pytest.approx(report["queue_mean_packets_0"] + report["queue_mean_packets_1"])
    result = simulate(world.with_scheme("naive"), seed=seed)
    differences = np.sort(result.completed()["difference_s"])
    assert report["difference_p99_s"] == differences[math.ceil(0.99 * len(differences)) - 1] > 2 * np.median(differences)


def test_series_of_a_scheme():
    scenario, seed = baselines.draw_worlds(SHORT, [1])[0]
    for name in ("naive", "codel"):
        series = baselines.BufferScheme(name).series(scenario, seed, 0.1)
        assert len(series["time_s"]) == 200 and series["time_s"][-1] == 20
        assert series["drops"].sum() == baselines.BufferScheme(name).episode(scenario, seed)["drops"]
        assert series["queue_packets"].max() > 20
    naive = baselines.BufferScheme("naive").series(scenario, seed, 0.1)
    assert np.array_equal(naive["queue_packets"], naive["queue_packets_0"] + naive["queue_packets_1"])


@pytest.mark.parametrize("recipe", ["default", "thesis-text", "thesis-code"])
def test_predict_takes_rows_or_one_switch(recipe):
    for controller in (baselines.FixedThresholds((1, 0.5), recipe), baselines.RandomThresholds(3, recipe)):
        vector = VectorEnv(3, task="queue_threshold", scenario=SHORT, recipe=recipe)
        scalar = Env(task="queue_threshold", scenario=SHORT, recipe=recipe)
        rows, _ = vector.reset(seed=0)
        actions, _ = controller.predict(rows, None, np.ones(3, bool), deterministic=True)
        assert actions in vector.action_space
        one, _ = controller.predict(scalar.reset(seed=0)[0])
        assert one in scalar.action_space and np.array_equal(one, actions[0])


def test_random_thresholds_are_uniform_and_seeded():
    obs = np.zeros((200, 5))
    controller, state, seen = baselines.RandomThresholds(1), None, []
    for _ in range(50):
        actions, state = controller.predict(obs, state)
        seen.append(actions)
    seen = np.stack(seen)
    assert np.abs(seen).max() <= 1 and abs(seen.mean()) < 0.02 and seen.std() == pytest.approx(3**-0.5, abs=0.01)
    assert np.array_equal(baselines.RandomThresholds(1).predict(obs)[0], seen[0])
    assert not np.array_equal(baselines.RandomThresholds(2).predict(obs)[0], seen[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: baselines.make("best", "queue_threshold"),
        lambda: baselines.make("naive"),
        lambda: baselines.make("naive", "switching"),
        lambda: baselines.BufferScheme("agent"),
        lambda: baselines.BufferScheme("dt", beta=1),
        lambda: baselines.BufferScheme("dt", alphas=(-1, 1)).evaluate(SHORT, [1]),
        lambda: baselines.BufferScheme("naive").evaluate("ppcc/1", [1]),
        lambda: baselines.FixedThresholds((0, 1)),
        lambda: baselines.FixedThresholds(1),
        lambda: baselines.FixedThresholds((16, 1)),
        lambda: baselines.FixedThresholds((0.001, 1)),
        lambda: baselines.FixedThresholds((8, 1), "thesis-text"),
        lambda: baselines.FixedThresholds((3, 1), actions="grid"),
        lambda: baselines.FixedThresholds((1, 1)).evaluate({"name": "rlbm/default", "priority_below": []}, [1]),
        lambda: baselines.BufferScheme("naive").evaluate(SHORT, []),
        lambda: baselines.RandomThresholds().evaluate(SHORT, []),
        lambda: baselines.CongestionControl("cubic").evaluate("ppcc/1", []),
        lambda: baselines.CongestionControl("cubic").evaluate("ppcc/1", [1.5]),
        lambda: baselines.BufferScheme("naive").evaluate(SHORT, [1], senders=2),
        lambda: baselines.BufferScheme("naive").evaluate(SHORT, [1], beta=2),
        lambda: baselines.draw_worlds(SHORT, [1], "switching"),
        lambda: baselines.FixedThresholds((1, 1), "ppcc"),
        lambda: baselines.RandomThresholds(-1),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(ConfigError):
        make()
