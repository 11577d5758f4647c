"""The worlds that the receiver-window task brings."""

import json

import numpy as np
import pytest

from netbuf_gym import scenarios, simulate, tasks, traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.receiver_window import NETWORKS, ReceiverPaths, ReceiverWindow
from netbuf_gym.traces.types import RateTrace
from netbuf_gym.traces.windows import cut_window

SHORT = {"duration_s": 5.0}


def draw(name, count=200, **kwargs):
    rng, distribution = np.random.default_rng(7), scenarios.get(name, **{**SHORT, **kwargs})
    return [distribution.sample(rng) for _ in range(count)]


@pytest.mark.parametrize("network", NETWORKS)
def test_paths_differ_in_all_that_is_drawn(network):
    worlds = draw(f"nuwa/{network}", 60)
    rtt = np.array([world.propagation_rtt_ms() for world in worlds])
    assert 20 <= rtt.min() < 23 and 70 < rtt.max() <= 80
    offsets = np.array([world.flows[0].clock_offset_ms for world in worlds])
    assert -50 <= offsets.min() < -40 and 40 < offsets.max() <= 50
    assert {world.flows[0].timestamp_resolution_us for world in worlds} == {1, 1000}
    assert len({world.capacity_mbps for world in worlds}) == 60
    bdp = np.array([world.bdp_packets for world in worlds])
    buffers = np.array([world.buffer_packets for world in worlds])
    assert (buffers >= 20).all() and (buffers <= 4 * bdp + 20).all()
    assert (buffers[bdp > 30] >= bdp[bdp > 30] * 0.99).all()
    assert all(world.traffic is None and world.links[1].rate_mbps is None for world in worlds)


def test_the_generator_decides_the_world_and_json_holds_it():
    distribution = scenarios.get("nuwa/training", n=2, **SHORT)
    one, same = (distribution.sample(np.random.default_rng(3)) for _ in range(2))
    assert one == same != distribution.sample(np.random.default_rng(4))
    assert len(one.flows) == distribution.flows == 2
    assert Scenario.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_training_worlds_have_what_they_say():
    worlds = draw("nuwa/training", 400, duration_s=2.0)
    senders = [[sender.cc for sender in world.traffic.senders] if world.traffic else [] for world in worlds]
    back = [world for world in worlds if world.links[1].rate_mbps is not None]
    assert 15 < len(back) < 70
    for world in back:
        assert world.traffic.senders[-1].path == (1,) and 1 <= world.links[1].rate_mbps <= 20
    assert 20 < sum(len(one) for one in senders) < 140
    unchanged = [world for world in worlds if world.flows[0].cc == "cubic"]
    assert 15 < len(unchanged) < 70
    assert 15 < sum(world.links[0].loss > 0 for world in worlds) < 70
    assert 60 < sum(world.links[0].trace.time_s.tolist() == [0, 1] for world in worlds if _by_rates(world)) < 140


def _by_rates(world):
    return isinstance(world.links[0].trace, RateTrace)


def test_seconds_carry_evenly_what_they_carried():
    plain, even = (scenarios.get("nuwa/5g", duration_s=12.0, seconds_probability=share) for share in (0, 1))
    for seed in range(4):
        one, other = (distribution.sample(np.random.default_rng(seed)) for distribution in (plain, even))
        trace = other.links[0].trace
        assert trace.time_s.tolist() == list(range(12)) and trace.period_s == 12
        parts = [cut_window(one.links[0].trace, second, 1.0) for second in range(12)]
        expected = [0.0 if part is None else part.mean_mbps(1.0) for part in parts]
        np.testing.assert_allclose(trace.rate_mbps, expected, rtol=1e-9, atol=1e-12)
    granted = draw("nuwa/4g", 2, duration_s=3.0, seconds_probability=1)
    assert all(_by_rates(world) for world in granted)


def test_arguments_reach_the_world():
    worlds = draw("nuwa/4g", 5, rtt_ms=40, buffer_packets=77, mean_mbps=8.0, clock_offset_ms=0, timestamp_us=[1])
    for world in worlds:
        assert (world.propagation_rtt_ms(), world.buffer_packets) == (40, 77)
        assert world.flows[0].clock_offset_ms == 0 and world.flows[0].timestamp_resolution_us == 1
    mixed = scenarios.get("nuwa/wifi", senders=["receiver_driven", "bbr"], **SHORT).sample(np.random.default_rng(0))
    assert [flow.receiver is None for flow in mixed.flows] == [False, True]


def test_names_say_the_networks():
    assert scenarios.get("nuwa/any", **SHORT).networks == NETWORKS
    assert set(scenarios.get("nuwa/training", **SHORT).networks) == set(NETWORKS)
    assert scenarios.get("nuwa/4g", **SHORT).networks == ("4g",)


def test_fairness_as_in_the_paper():
    world = scenarios.get("nuwa/fairness")
    assert [flow.cc for flow in world.flows] == ["receiver_driven"] * 2 + ["cubic"] * 2
    assert [flow.start_s for flow in world.flows] == [0, 10, 20, 30] and world.capacity_mbps == 10
    assert len(scenarios.get("nuwa/fairness", n=3).flows) == 3


def test_a_trace_of_ones_own(tmp_path):
    path = tmp_path / "walk.csv"
    traces.write(traces.generate("walk", duration_s=20), path)
    world = scenarios.get("nuwa/trace", path=str(path), rtt_ms=30)
    assert world.links[0].trace.name == "walk.csv" and world.propagation_rtt_ms() == 30 and world.buffer_packets == 250
    one, other = (scenarios.get("nuwa/trace", network="4g", trace_seed=seed, **SHORT) for seed in (1, 2))
    assert one == scenarios.get("nuwa/trace", **SHORT) and one != other


def test_without_an_agent_nuwa_steers():
    world = scenarios.get("nuwa/fairness", n=1, duration_s=10)
    driven, free = simulate(world, seed=1).flows[0], simulate(world.with_senders("cubic"), seed=1).flows[0]
    assert driven.goodput_mbps > 8 and free.goodput_mbps > 5


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rtt_ms": 0}, "rtt_ms"),
        ({"rtt_ms": [50, 20]}, "rtt_ms"),
        ({"rtt_ms": "fast"}, "rtt_ms"),
        ({"buffer_bdp": -1}, "buffer_bdp"),
        ({"buffer_packets": 0}, "buffer_packets"),
        ({"unchanged_probability": 2}, "unchanged_probability"),
        ({"clock_drift_ppm": -1}, "clock_drift_ppm"),
        ({"competitors": ["x"], "competitor_probability": 1}, r"competitors\[0\] = 'x'"),
        ({"competitors": ["cubic", "receiver"], "competitor_probability": 0.01}, r"competitors\[1\] = 'receiver'"),
        ({"competitors": ["agent"]}, r"competitors\[0\] = 'agent'"),
        ({"timestamp_us": [1000, 7]}, r"timestamp_us\[1\] = 7; valid: 1000 or 1"),
        ({"senders": ["x"]}, r"senders\[0\] = 'x'"),
        ({"senders": ["cubic", float("nan")]}, r"senders\[1\] = nan; valid: a name"),
        ({"senders": [None]}, r"senders\[0\] = None; valid: a name"),
        ({"receiver": "x"}, "receiver = 'x'"),
        ({"mean_mbps": -1}, "mean_mbps"),
        ({"network": "6g"}, "network"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.get("nuwa/4g", **{**SHORT, **kwargs})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"network": "6g"}, "network = '6g'"),
        ({"trace_seed": -1}, "trace_seed = -1"),
        ({"path": 5}, "path = 5; valid: the name of a trace file"),
        ({"senders": [[1]]}, r"senders\[0\] = \[1\]; valid: a name"),
    ],
)
def test_bad_arguments_of_one_trace_are_named(kwargs, message):
    with pytest.raises((ScenarioError, ScenarioTypeError), match=message):
        scenarios.get("nuwa/trace", **{**SHORT, **kwargs})


def test_networks_are_generators():
    assert ReceiverPaths(networks=("constant",), duration_s=1).sample(np.random.default_rng(0)).capacity_mbps == 12
    with pytest.raises(ScenarioError, match="network = '6g'"):
        ReceiverPaths(networks=("6g",))


@pytest.mark.parametrize("arguments", [{"duration_s": 3}, {1: 2}, {"spread": 0.5}])
def test_arguments_are_those_of_each_network(arguments):
    networks = ("4g",) * 50 + ("constant",)  # which is hardly the first that is drawn
    with pytest.raises(ScenarioError, match="has no parameter"):
        ReceiverPaths(networks=networks, arguments=arguments, duration_s=1)


def test_senders_may_be_ones_own():
    world = scenarios.get("nuwa/4g", senders=[lambda ack: 50 * ack.mss_bytes, "receiver_driven"], **SHORT)
    assert [flow.receiver for flow in world.sample(np.random.default_rng(0)).flows] == [None, "nuwa"]


def test_agents_take_the_first_receivers():
    world = scenarios.get("nuwa/fairness")
    placed = ReceiverWindow(agents=2).control(world)
    assert placed.agent_receivers == (0, 1) and [flow.cc for flow in placed.flows] == [flow.cc for flow in world.flows]
    assert ReceiverWindow(agents=2).control(placed) is placed
    other = ReceiverWindow(agents=2, acts_on="k", sender="cubic").control(placed)
    assert {flow.cc for flow in other.flows} == {"cubic"} and other.agent_receivers == (0, 1)
    assert tasks.ReceiverWindow().control(scenarios.get("ppcc/4")).flows[0].cc == "cubic"
