"""Hosts, sockets and relays as scenarios say them, and what they come to in the simulator."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from netbuf_gym.errors import ScenarioError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import Bulk, Flow, FlowList, Host, Link, Relay, Scenario, Sender, Switch, Traffic
from netbuf_gym.simulation import simulate
from netbuf_gym.traces import RateTrace

LINKS = [Link(name="bottleneck", rate_mbps=200, delay_ms=50, queue_packets=1700), Link(name="back", delay_ms=50)]
HOST = Host(name="server", tcp_wmem=(4096, 16384, 1 << 20))
FLOW = Flow(path=["bottleneck"], return_path=["back"], sender_host="server")


def world(host: Host = HOST, flow: Flow = FLOW, **changes) -> Scenario:
    return Scenario(**{"links": LINKS, "hosts": [host], "flows": [flow], "duration_s": 10.0, **changes})


def proxied(size_bytes: int = 20_000, flows: int = 1, **relay) -> Scenario:
    links = [Link(name="up", rate_mbps=1000, delay_ms=10), Link(name="up-back", delay_ms=10), *LINKS]
    to_client = Relay(**{"host": "proxy", "path": ["bottleneck"], "return_path": ["back"], **relay})
    sender = Sender(path=["up"], return_path=["up-back"], relay=to_client)
    starts, none = [0.1 * i for i in range(flows)], [0] * flows
    listed = FlowList(start_s=starts, sender=none, size_bytes=[size_bytes] * flows, priority=none)
    traffic = Traffic(senders=[sender], arrivals=[listed])
    return Scenario(links=links, hosts=[Host(name="proxy")], traffic=traffic, duration_s=30.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "host.name"),
        ({"tcp_rmem": (1, 2)}, "three numbers"),
        ({"tcp_wmem": (0, 1, 2)}, "host.tcp_wmem[0] = 0"),
        ({"tcp_mem": (8192, 4096, 16384)}, "does not rise"),
        ({"ring_packets": 64}, "without a device"),
        ({"device": "bottleneck", "ring_packets": 0}, "host.ring_packets = 0"),
        ({"ring_stall_s": -1}, "host.ring_stall_s"),
        ({"notsent_lowat_bytes": 0}, "host.notsent_lowat_bytes"),
        ({"kernel": "six"}, "host.kernel"),
        ({"agent": 2}, "host.agent"),
    ],
)
def test_what_no_host_has_is_refused(fields, said):
    with pytest.raises(ScenarioError) as refused:
        Host(**{"name": "server", **fields})
    assert said in str(refused.value) and "valid" in str(refused.value)


def test_ends_must_be_at_hosts_that_are_there():
    other = Relay(host="b", path=[0], return_path=[1])
    for make, said in (
        (lambda: world(flow=replace(FLOW, sender_host="nobody")), "sender_host = 'nobody' is no host; valid: 'server'"),
        (lambda: world(hosts=[]), "there are no hosts"),
        (lambda: world(hosts=[HOST, HOST]), "valid: unique names"),
        (lambda: world(stack="ns3"), "valid: stack = linux"),
        (lambda: replace(FLOW, send_buffer_bytes=10_000), "beside sender_host"),
        (lambda: Flow(path=[0], return_path=[1], rcvbuf_bytes=10_000), "without receiver_host"),
        (lambda: world(replace(HOST, device="nowhere")), "has no link 'nowhere'"),
        (lambda: proxied(host="other"), "is no host"),
        (lambda: proxied(buffer_bytes=0), "relay.buffer_bytes"),
        (lambda: proxied(path=["nowhere"]), "has no link 'nowhere'"),
        (lambda: Sender(path=[0], return_path=[1], receiver_host="a", relay=other), "beside relay.host"),
    ):
        with pytest.raises(ScenarioError) as refused:
            make()
        assert said in str(refused.value)
    switch = Switch(name="switch", ports=["bottleneck"], buffer_packets=100)
    links = [Link(name="bottleneck", rate_mbps=10), LINKS[1]]
    with pytest.raises(ScenarioError, match="the port of a switch"):
        world(replace(HOST, device="bottleneck"), links=links, switches=[switch])


def test_scenarios_with_hosts_are_written_and_read():
    host = replace(HOST, device=["bottleneck"], ring_packets=64, tcp_mem=(1 << 20, 2 << 20, 4 << 20), kernel="6.12", agent=True)
    for scenario in (world(host, replace(FLOW, sndbuf_bytes=100_000)), proxied(cc="bbr", sndbuf_bytes=65_536)):
        again = Scenario.from_dict(scenario.to_dict())
        assert again == scenario
        assert again.to_dict() == scenario.to_dict()
    assert world(host).hosts[0].device == (0,)
    assert world(host).agent_hosts == (0,)


def test_the_largest_buffer_decides_the_rate():
    rates = []
    for most in (212_992, 1 << 20, 64 << 20):
        simulator = Simulator(world(replace(HOST, tcp_wmem=(4096, 16384, most))), 1)
        simulator.run(10 * 10**9)
        rates.append(simulator.flow_stats()[0]["delivered_bytes"] * 8 / 10e6)
        sockets, host = simulator.socket_stats()[0], simulator.host_stats()[0]
        assert sockets["sndbuf_bytes"] <= most
        assert sockets["busy_s"] >= sockets["sndbuf_limited_s"] + sockets["rwnd_limited_s"]
        assert host["memory_max_bytes"] < most + 2 * 65_536
        assert host["connections"] == 1
    assert rates[0] == pytest.approx(10.1, rel=0.1)
    assert rates[1] == pytest.approx(5 * rates[0], rel=0.15)
    assert rates[2] > 150


def test_relayed_flows_arrive_whole_and_are_told_once():
    for size in (500, 20_000, 2_000_000):
        scenario = proxied(size, flows=20)
        simulator = Simulator(scenario, 1)
        simulator.run(30 * 10**9)
        done = simulator.completions()
        assert len(done) == len(simulator.flows_opened()) == simulator.traffic_stats()["flows_started"] == 20
        assert (done[:, 3] == size).all()
        assert (done[:, 2] >= done[:, 6]).all()  # none is faster than what is least possible
        assert done[0, 6] == pytest.approx(scenario.ideal_s(0, size))
        assert simulator.traffic_stats()["delivered_bytes"] == 20 * size
        host = simulator.host_stats()[0]
        assert host["sent_bytes"] == host["received_bytes"] == 20 * size
        assert host["connections_opened"] == host["connections_closed"] == 40
        assert host["memory_bytes"] == 0 < host["memory_mean_bytes"]
    # 240 ms are twice there and back on either leg.
    assert 0.24 <= first_completion_s(proxied(500)) < 0.2403


@pytest.mark.parametrize("delays_ms", [(10, 50, 5, 50), (50, 10, 50, 5), (1, 40, 60, 2), (40, 1, 2, 60), (0, 0, 80, 1)])
@pytest.mark.parametrize("varying", [False, True])
def test_no_relayed_flow_is_faster_than_its_ideal_whatever_its_ways(delays_ms, varying):
    scenario = proxied(500, flows=20)
    links = [replace(link, delay_ms=delay_ms) for link, delay_ms in zip(scenario.links, delays_ms, strict=True)]
    if varying:  # its rate falls while the first flow's data are on their way
        rates = RateTrace(time_s=[0, 0.1, 0.4, 2], rate_mbps=[500, 2, 100, 20], period_s=4)
        links[2] = replace(links[2], rate_mbps=None, trace=rates)
    scenario = replace(scenario, links=links)
    result = simulate(scenario)
    done = result.completions
    assert (done["slowdown"] >= 1 - 1e-9).all() and result.traffic.flows_connected == len(done) == 20
    assert done["ideal_s"][0] == pytest.approx(scenario.ideal_s(0, 500, 0.0), abs=1e-8)
    if not varying:  # without any queue nothing but headers lies between
        assert done["fct_s"] == pytest.approx(2e-3 * sum(delays_ms), abs=4e-4)


def first_completion_s(scenario: Scenario) -> float:
    simulator = Simulator(scenario, 1)
    simulator.run(5 * 10**9)
    return simulator.completions()[0, 2]


def test_a_flow_without_hosts_is_told_nothing_of():
    simulator = Simulator(world(hosts=[], flow=Flow(path=[0], return_path=[1], app=Bulk())), 1)
    simulator.run(10**9)
    assert simulator.host_stats() == [] and simulator.socket_stats() == [{}]
    host = Simulator(world(), 1).host_stats()[0]
    assert math.isnan(host["ring_mean_packets"]) and math.isnan(host["rtt_min_s"])
