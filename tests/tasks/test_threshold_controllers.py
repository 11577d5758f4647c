"""Buffer schemes and thresholds in the agent's place: same worlds, same traffic, same reports."""

import math

import numpy as np
import pytest

from netbuf_gym import simulate, tasks
from netbuf_gym.controllers import RandomAction
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import Flow, Link, Scenario, Switch
from netbuf_gym.tasks.queue_threshold.baselines import BufferScheme, FixedThresholds

TASK = "queue_threshold"
SHORT = {"name": "rlbm/cubic-100-0.8", "duration_s": 20.0}
RANDOM = {"name": "rlbm/random", "duration_s": 10.0, "load": [0.5, 2.0], "queue_packets": [20, 100]}


def evaluate(controller, scenario=SHORT, seeds=(4, 5, 6), **kwargs):
    return rollout.evaluate(controller, TASK, scenario, seeds, **kwargs)


def played(controller, world, interval_s=0.1):
    """The report and the states over time of one world."""
    controller = rollout.get_controller(controller, TASK) if isinstance(controller, str) else controller
    reports, seen = [], []
    watch = {0: lambda view: seen.append(view.show())}
    rollout.play(controller, [world], lambda view: reports.extend(view.report()), task=TASK, watch=watch, interval_s=interval_s)
    return reports[0], {key: np.array([one[key] for one in seen]) for key in seen[0]}


def same(a, b):
    return a.keys() == b.keys() and all(
        a[key] == b[key] or (isinstance(a[key], float) and math.isnan(a[key]) and math.isnan(b[key])) for key in a
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", tasks.get(TASK).controllers)
def test_every_controller_reports_every_seed(name):
    reports, again = (evaluate(name, threads=threads) for threads in (1, 2))
    assert len(reports) == 3 and all(same(a, b) for a, b in zip(reports, again, strict=True))
    assert same(evaluate(name, seeds=[4])[0], reports[0])
    for report in reports:
        assert 0 < report["goodput_mbps"] < 10 and report["slowdown_p99_p0"] >= 1 and report["duration_s"] == 20
        assert {"slowdown_p99_p1", "occupancy_p99", "queue_mean_packets_1", "difference_p99_s"} <= set(report)


@pytest.mark.parametrize("scenario", [SHORT, RANDOM, {"name": "rlbm/incast", "duration_s": 10}])
def test_constant_thresholds_are_the_static_schemes_exactly(scenario):
    for alphas, name in (((1, 1), "naive"), ((8, 1), "sophisticated")):
        both = zip(evaluate(FixedThresholds(alphas), scenario), evaluate(name, scenario), strict=True)
        assert all(same(a, b) for a, b in both)


def test_constant_thresholds_are_encoded_as_the_environments_actions_are():
    naive = evaluate("naive", seeds=[4])[0]
    for kwargs in ({"actions": "grid"}, {"recipe": "thesis-code", "betas": [1, 1]}):
        assert same(evaluate(FixedThresholds((1, 1)), seeds=[4], **kwargs)[0], naive)


def test_reports_are_those_of_simulate():
    world = rollout.draw_worlds(TASK, RANDOM, [8])[0]
    for name in ("naive", "abm", "dt", "static_bdp", "codel"):
        report = evaluate(name, RANDOM, [8])[0]
        result = simulate(world.scenario.with_scheme(name), seed=world.seed)
        assert report["goodput_mbps"] == pytest.approx(result.goodput_mbps)
        assert report["flows_completed"] == result.traffic.flows_completed
        for priority in (0, 1):
            expected = result.slowdown(99, priority)
            assert report[f"slowdown_p99_p{priority}"] == pytest.approx(expected, nan_ok=True)
        assert report["difference_max_s"] == pytest.approx(result.completed()["difference_s"].max())
        if result.switches:
            share = result.switches[0].capacity / world.scenario.switches[0].capacity  # of the scenario's own buffer
            assert report["occupancy_p99"] == pytest.approx(result.switches[0].occupancy_p99 * share)
            assert report["occupancy_mean"] == pytest.approx(result.switches[0].occupancy_mean * share)
            assert (share < 0.5) == (name == "static_bdp")
            assert report["drops"] == result.switches[0].drops
        assert report["probe_delay_mean_ms"] == pytest.approx(result.probes[0].mean_ms)


def test_controllers_meet_the_same_worlds_and_traffic():
    env = VectorEnv(3, task=TASK, scenario=RANDOM)
    env.reset(seed=[4, 5, 6])
    drawn = rollout.draw_worlds(TASK, RANDOM, [4, 5, 6])
    assert [(one.scenario, one.seed) for one in drawn] == list(
        zip(env.engine.scenarios, env.engine.seeds.tolist(), strict=True)
    )
    started, opened = set(), []  # start, sender, size and priority of every flow of the first world

    def look(view):
        if view.index == 0:
            opened.append(np.array(view.simulated.flows_opened())[:, :4])

    for name in ("naive", "abm", "static_bdp", "fq_codel", "random"):
        started.add(tuple(report["flows_started"] for report in evaluate(name, RANDOM)))
        rollout.play(rollout.get_controller(name, TASK), drawn, look, task=TASK)
    assert len(started) == 1 and len(opened) == 5
    assert len(opened[0]) > 3 and all(np.array_equal(one, opened[0]) for one in opened)


@pytest.mark.parametrize("below", [[], [100_000], [100_000, 1_000_000], [50_000, 100_000, 1_000_000]])
@pytest.mark.parametrize("kwargs", [{}, {"recipe": "thesis-text"}, {"actions": "grid"}])
def test_chance_takes_recipe_actions_and_queues_of_the_worlds(below, kwargs):
    world = {"name": "rlbm/default", "duration_s": 2.0, "priority_below": below}
    report = evaluate("random", world, [1], **kwargs)[0]
    assert f"queue_mean_packets_{len(below)}" in report and f"queue_mean_packets_{len(below) + 1}" not in report


def test_chance_is_uniform_in_the_environment():
    env = Env(task=TASK, scenario=SHORT)
    env.reset(seed=4)
    stream = np.random.default_rng((2, 4, 0))  # the controller's seed, the world's, the agent
    while not env.out_of_time:
        env.step(stream.uniform(-1, 1, 2).astype(np.float32))
    assert same(evaluate(RandomAction(2), seeds=[4])[0], env.report())


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
    scenario = Scenario(links=links, flows=tuple(flows), switches=(switch,), duration_s=20)
    world, scheme = rollout.World(scenario, 1, 0), BufferScheme("droptail")
    (report, series), core = played(scheme, world), Simulator(scheme.place(scenario), 1)
    core.run(20_000_000_000)
    ports = core.link_stats()
    assert ports[2]["queue_drops"] > 0
    assert report["drops"] == ports[0]["queue_drops"] + ports[1]["queue_drops"] > 0
    length = (ports[0]["queue_integral_packet_s"] + ports[1]["queue_integral_packet_s"]) / 20
    assert report["queue_mean_packets"] == pytest.approx(length) and length > ports[0]["queue_integral_packet_s"] / 20
    assert report["occupancy_mean"] == pytest.approx(length * (scenario.data_bytes / 300_000 if octets else 1 / 200))
    assert series["drops"].sum() == report["drops"]
    assert series["queue_packets"].mean() == pytest.approx(length, rel=0.05)
    shared = played("naive", world)[0]
    assert shared["drops"] > 0 and 0.5 < shared["occupancy_mean"] <= 1


def test_means_over_a_switch_are_of_all_queues():
    world = rollout.draw_worlds(TASK, {"name": "rlbm/default", "load": 0.9, "duration_s": 20}, [3])[0]
    report = played("naive", world)[0]
    assert min(report["queue_mean_packets_0"], report["queue_mean_packets_1"]) > 0
    assert report["queue_mean_packets"] == pytest.approx(report["queue_mean_packets_0"] + report["queue_mean_packets_1"])
    result = simulate(world.scenario.with_scheme("naive"), seed=world.seed)
    differences = np.sort(result.completed()["difference_s"])
    assert report["difference_p99_s"] == differences[math.ceil(0.99 * len(differences)) - 1] > 2 * np.median(differences)


def test_a_scheme_over_time():
    world = rollout.draw_worlds(TASK, SHORT, [1])[0]
    for name in ("naive", "codel"):
        report, series = played(name, world)
        assert len(series["time_s"]) == 200 and series["time_s"][-1] == 20
        assert series["drops"].sum() == report["drops"] and same(report, evaluate(name, seeds=[1])[0])
        assert series["queue_packets"].max() > 20
    naive = played("naive", world)[1]
    assert np.array_equal(naive["queue_packets"], naive["queue_packets_0"] + naive["queue_packets_1"])
    constant = played(FixedThresholds((1, 1)), world)[1]  # an agent that decides so is shown alike
    for key, values in naive.items():
        # a link counts what it has sent, an agent what has left its queues
        one_packet = 1500 * 8e-6 / 0.1 if key == "throughput_mbps" else 0
        np.testing.assert_allclose(values, constant[key], rtol=1e-6, atol=one_packet, err_msg=key)


@pytest.mark.parametrize(
    "make",
    [
        lambda: evaluate("best"),
        lambda: evaluate("cubic"),
        lambda: rollout.evaluate("naive", "congestion_window"),
        lambda: rollout.evaluate("naive", "switching"),
        lambda: BufferScheme("agent"),
        lambda: BufferScheme("dt", beta=1),
        lambda: evaluate(BufferScheme("dt", alphas=(-1, 1))),
        lambda: evaluate("naive", "ppcc/1"),
        lambda: FixedThresholds((0, 1)),
        lambda: FixedThresholds(1),
        lambda: evaluate(FixedThresholds((16, 1))),
        lambda: evaluate(FixedThresholds((0.001, 1))),
        lambda: evaluate(FixedThresholds((8, 1)), recipe="thesis-text"),
        lambda: evaluate(FixedThresholds((3, 1)), actions="grid"),
        lambda: evaluate(FixedThresholds((1, 1)), {"name": "rlbm/default", "priority_below": []}),
        lambda: evaluate("naive", seeds=[]),
        lambda: evaluate("random", seeds=[]),
        lambda: evaluate("naive", senders=2),
        lambda: evaluate("naive", beta=2),
        lambda: rollout.draw_worlds("switching", SHORT, [1]),
        lambda: evaluate("random", recipe="ppcc"),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(ConfigError):
        make()
