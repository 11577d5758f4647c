import json
import time

import numpy as np
import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import (
    ABM,
    DRR,
    WEB_SEARCH,
    DynamicThresholds,
    Incast,
    PoissonArrivals,
    Scenario,
    StrictPriority,
    shared_buffer,
)
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.tasks.queue_threshold import RandomSharedBuffer

POISSON = PoissonArrivals(flows_per_s=1, sizes=WEB_SEARCH)


def test_the_topology_is_the_thesis():
    world = shared_buffer(arrivals=POISSON)
    forward, back = world.links[:2]
    assert (forward.name, forward.rate_mbps, forward.delay_ms, forward.queue_packets) == ("bottleneck", 10, 10, None)
    assert (back.rate_mbps, back.delay_ms, back.queue_packets, back.queue_bytes) == (10, 10, None, None)
    assert len(world.links) == 22 and len(world.traffic.senders) == 10
    for sender in world.traffic.senders:
        access, other = world.links[sender.path[0]], world.links[sender.return_path[1]]
        assert (access.rate_mbps, access.delay_ms) == (other.rate_mbps, other.delay_ms) == (100, 0.1)
        assert sender.path[1] == 0 and sender.return_path[0] == 1
    assert len({sender.path[0] for sender in world.traffic.senders}) == 10
    assert world.propagation_rtt_ms() == pytest.approx(20.2) and world.ideal_s(3, 10_000) == pytest.approx(0.0202 + 0.008)
    switch = world.switches[0]
    assert (switch.ports, switch.queues, switch.capacity, switch.queue_cap) == ((0,), 2, 1000, None)
    assert world.traffic.priority_below == (2_000_000,)
    probe = world.probes[0]
    assert (probe.path, probe.interval_s, probe.start_s, probe.priority, probe.bytes) == ((2, 0), 1, 0.5, 0, 92)


def test_the_ns3_stacks_device_holds_a_packet():
    assert shared_buffer(arrivals=POISSON).links[0].device_packets == 0
    world = shared_buffer(arrivals=POISSON, stack="ns3")
    assert world.links[0].device_packets == 1 and world.probes[0].bytes == 94
    assert shared_buffer(arrivals=POISSON, stack="ns3", device_packets=0).links[0].device_packets == 0


def test_arguments():
    world = shared_buffer(arrivals=POISSON, senders=["cubic", "newreno"], scheduler="drr", scheme="abm", priority_below=[5, 9])
    assert [s.cc for s in world.traffic.senders] == ["cubic", "newreno"] and len(world.links) == 6
    assert world.switches[0].scheduler == DRR(quanta_bytes=(1500, 1500, 1500))
    assert world.switches[0].admission == ABM(alphas=(8, 1, 1))
    world = shared_buffer(arrivals=POISSON, hosts=3, scheduler={"kind": "strict_priority"}, priority_below=1000, ping=False)
    assert world.switches[0].scheduler == StrictPriority() and world.traffic.priority_below == (1000,) and not world.probes
    assert shared_buffer(arrivals=POISSON, queues=5).switches[0].admission == DynamicThresholds(alphas=(1,) * 5)


def test_the_recipes():
    default = scenarios.get("rlbm/default", load=0.4, queue_packets=200)
    assert default.traffic.offered_mbps == pytest.approx(4) and default.switches[0].buffer_packets == 400
    assert (default.duration_s, default.mss, default.min_rto_ms) == (60, 1448, None)
    text = scenarios.get("rlbm/thesis-text", load=0.4, queue_packets=200)
    assert text.traffic.arrivals[0].flows_per_s == 200 and text.traffic.arrivals[0].stop_s is None
    assert text.switches[0].buffer_packets == 400
    code = scenarios.get("rlbm/thesis-code", load=0.4, queue_packets=200)
    arrivals = code.traffic.arrivals[0]
    assert (arrivals.flows_per_s, arrivals.stop_s) == (20, 45)
    assert (code.mss, code.min_rto_ms, code.switches[0].buffer_bytes) == (1000, 10, 400_000)
    assert scenarios.get("rlbm/thesis-code", cc=["cubic"] * 3, load=0.4).traffic.arrivals[0].flows_per_s == 6
    incast = scenarios.get("rlbm/incast")
    assert incast.traffic.arrivals[1] == Incast(interval_s=1, fan_in=10, size_bytes=20_000)
    for name, cap in (("default", 500), ("thesis-text", 500), ("thesis-code", 500_000), ("incast", 500)):
        assert scenarios.get(f"rlbm/{name}").switches[0].queue_cap is None
        assert scenarios.get(f"rlbm/{name}", per_queue_cap=True).switches[0].queue_cap == cap


@pytest.mark.parametrize("name", ["default", "incast", "thesis-text", "thesis-code", "random"])
def test_what_is_dropped_is_the_worlds(name):
    def switch(**options):
        world = scenarios.get(f"rlbm/{name}", **options)
        return (world.sample(np.random.default_rng(0)) if name == "random" else world).switches[0]

    assert (switch().drop, switch().protect_syn, switch().congested) == ("tail", False, "drop")
    chosen = switch(drop="head", protect_syn=True, congested="mark")
    assert (chosen.drop, chosen.protect_syn, chosen.congested) == ("head", True, "mark")


def test_sizes_flow_lists_and_bursts_by_arguments(tmp_path):
    sizes, flows = tmp_path / "sizes.csv", tmp_path / "flows.csv"
    sizes.write_text("1000,0\n3000,1\n")
    flows.write_text("start_s,sender,size_bytes,priority\n0.5,1,1000,1\n")
    world = scenarios.get("rlbm/default", sizes=str(sizes), load=0.5, incast={"interval_s": 2, "fan_in": 3, "size_bytes": 10})
    assert world.traffic.arrivals[0].flows_per_s == pytest.approx(0.5 * 10e6 / (8 * 2000))
    assert world.traffic.arrivals[1] == Incast(interval_s=2, fan_in=3, size_bytes=10)
    assert scenarios.get("rlbm/default", sizes="data_mining").traffic.arrivals[0].sizes.name == "data_mining"
    world = scenarios.get("rlbm/default", flow_list=str(flows))
    assert len(world.traffic.arrivals) == 1 and world.traffic.arrivals[0].size_bytes.tolist() == [1000]


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("default", {"load": 0}, "load = 0"),
        ("default", {"load": float("nan")}, "load = nan"),
        ("thesis-text", {"load": -1}, "load = -1"),
        ("thesis-code", {"load": "x"}, "load = 'x' is not a number"),
        ("default", {"queue_packets": 0.5}, "queue_packets = 0.5"),
        ("default", {"hosts": 0}, "hosts = 0"),
        ("default", {"scheduler": "fifo"}, "scheduler = 'fifo' is unknown; valid: round_robin, drr, strict_priority"),
        ("default", {"scheduler": 3}, "scheduler = 3; valid: round_robin"),
        ("default", {"scheduler": {"kind": "drr", "quantum": 3}}, "scheduler has no field 'quantum'; valid: quanta_bytes"),
        ("default", {"scheduler": {"kind": "drr", "quanta_bytes": [1]}}, "scheduler has 1 quanta for 2 queues"),
        ("default", {"incast": {"fan_in": 3}}, "incast.interval_s is missing"),
        ("default", {"incast": {"fan": 3}}, "incast has no field 'fan'"),
        ("default", {"incast": 3}, "incast = 3; valid: a dict"),
        ("default", {"incast": {"interval_s": 1, "fan_in": 11, "size_bytes": 1}}, r"arrivals\[1\]: fan_in = 11 of 10 senders"),
        ("default", {"sizes": "x"}, "sizes = 'x' is unknown"),
        ("default", {"flow_list": 3}, "flow_list = 3 is not a file's path"),
        ("default", {"flow_list": "/nowhere.csv"}, "/nowhere.csv: cannot be read"),
        ("default", {"scheme": "x"}, "scheme = 'x' is unknown"),
        ("default", {"per_queue_cap": 1}, "per_queue_cap = 1 is not a truth value"),
        ("default", {"drop": "random"}, "drop = 'random' is unknown; .*tail"),
        ("random", {"congested": "keep"}, "congested = 'keep' is unknown; .*mark"),
        ("random", {"protect_syn": "yes"}, "protect_syn = 'yes' is not a truth value"),
        ("default", {"rate_mbps": 0}, "rate_mbps = 0"),
        ("default", {"stack": "bsd"}, "stack = 'bsd'"),
        ("default", {"colour": 1}, "rlbm/default has no argument 'colour'"),
        ("random", {"load": (0.5, 0.1)}, r"load\[1\] = 0.1"),
        ("random", {"load": "x"}, "load = 'x'; valid: two numbers"),
        ("random", {"queue_packets": []}, "queue_packets is empty"),
        ("random", {"cc": ["tahoe"]}, "sender.cc = 'tahoe'"),
        ("random", {"incast_probability": 2}, "incast_probability = 2"),
    ],
)
def test_bad_arguments_are_named(name, kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.get(f"rlbm/{name}", **kwargs)


def test_random_worlds_cover_their_ranges():
    distribution = scenarios.get("rlbm/random", load=(0.2, 0.6), queue_packets=[100, 400], incast_probability=0.25)
    rng = np.random.default_rng(0)
    worlds = [distribution.sample(rng) for _ in range(400)]
    loads = np.array([world.traffic.arrivals[0].offered_mbps / 10 for world in worlds])
    assert loads.min() < 0.22 and loads.max() > 0.58 and (loads >= 0.2).all() and (loads <= 0.6).all()
    assert {world.switches[0].capacity for world in worlds} == {200, 800}
    assert {world.traffic.senders[0].cc for world in worlds} == {"cubic", "newreno"}
    assert 0.15 < np.mean([len(world.traffic.arrivals) == 2 for world in worlds]) < 0.35
    assert distribution.sample(np.random.default_rng(7)) == distribution.sample(np.random.default_rng(7))
    for world in worlds[:20]:
        assert Scenario.from_dict(json.loads(json.dumps(world.to_dict()))) == world and world.name == "rlbm/random"


def test_random_worlds_of_other_schemes_and_fixed_values():
    world = scenarios.get("rlbm/random", scheme="codel", load=0.3, queue_packets=100, cc="bbr").sample(np.random.default_rng(1))
    assert world.links[0].discipline.kind == "codel" and world.links[0].queue_packets == 200
    assert world.traffic.offered_mbps == pytest.approx(3) and world.traffic.senders[0].cc == "bbr"
    assert RandomSharedBuffer(load=(0.1, 0.2)) == RandomSharedBuffer(load=(0.1, 0.2)) != RandomSharedBuffer()


def test_drawing_a_world_costs_little():
    distribution, rng = scenarios.get("rlbm/random"), np.random.default_rng(0)
    for _ in range(100):
        build_world_config(distribution.sample(rng))
    best = min(_seconds(lambda: build_world_config(distribution.sample(rng).with_scheme("agent"))) for _ in range(200))
    assert best < 1e-3  # a fifth of it here


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def test_distributions_with_dicts_are_hashable():
    one, other = (scenarios.get("rlbm/random", scheme={"name": "dt", "alphas": [2, 1]}, incast_probability=0.5) for _ in "ab")
    assert hash(one) == hash(other) and one == other
    assert len({one, other, scenarios.get("rlbm/random", load=(0.1, 0.2))}) == 2


def test_rates_sizes_and_drop_places_are_drawn_too():
    several = scenarios.get("rlbm/random", rate_mbps=[10, 50], sizes=["web_search", "data_mining"], drop=["tail", "head"])
    worlds = [several.sample(np.random.default_rng(seed)) for seed in range(60)]
    assert {one.capacity_mbps for one in worlds} == {10, 50} and {one.switches[0].drop for one in worlds} == {"tail", "head"}
    assert {one.traffic.arrivals[0].sizes.name for one in worlds} == {"web_search", "data_mining"}
    for world in worlds:  # the load is one of the world's own rate
        assert 0.1 <= world.traffic.offered_mbps / world.capacity_mbps <= 0.8
    alone, one = (scenarios.get("rlbm/random", rate_mbps=rate) for rate in (25, [25]))
    assert alone.sample(np.random.default_rng(7)) == one.sample(np.random.default_rng(7))
    bad = (({"rate_mbps": []}, "rate_mbps is empty"), ({"drop": ["tail", "top"]}, "drop = 'top'"), ({"sizes": [3]}, "sizes"))
    for kwargs, said in bad:
        with pytest.raises(ScenarioError, match=said):
            scenarios.get("rlbm/random", **kwargs)
