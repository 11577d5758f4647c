import math

import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import RateTrace, Sized


def test_linux_dumbbell_is_one_queue_and_a_pure_delay_back():
    scenario = scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, loss=1e-4, senders=["cubic", "bbr"])
    bottleneck, back = scenario.links
    assert (bottleneck.name, bottleneck.rate_mbps, bottleneck.delay_ms) == ("bottleneck", 10, 24)
    assert (bottleneck.queue_packets, bottleneck.loss) == (150, 1e-4)
    assert (back.name, back.rate_mbps, back.delay_ms, back.queue_packets, back.loss) == ("return", None, 24, None, 0)
    assert [(f.cc, f.path, f.return_path, f.start_s) for f in scenario.flows] == [
        ("cubic", (0,), (1,), 0),
        ("bbr", (0,), (1,), 0.1),
    ]


def test_ns3_dumbbell_is_the_reference_programs():
    scenario = scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, loss=1e-4, senders=["cubic"] * 2, stack="ns3")
    bottleneck, back, *access = scenario.links
    assert (bottleneck.delay_ms, bottleneck.queue_packets, bottleneck.loss) == (22, 150, 1e-4)
    assert (back.rate_mbps, back.delay_ms, back.queue_packets, back.loss) == (10, 22, None, 0)
    assert [(link.rate_mbps, link.delay_ms, link.queue_packets) for link in access] == [(1000, 1, None)] * 8
    used = [i for flow in scenario.flows for i in (flow.path[0], flow.path[2], flow.return_path[0], flow.return_path[2])]
    assert sorted(used) == list(range(2, 10))  # every flow has access links of its own
    assert all(flow.path[1] == 0 and flow.return_path[1] == 1 for flow in scenario.flows)
    assert scenario.propagation_rtt_ms(1) == 48


def test_linux_dumbbell_with_access_links_keeps_the_stated_rtt():
    scenario = scenarios.dumbbell(access_mbps=100, access_delay_ms=2)
    assert len(scenario.links) == 6 and scenario.propagation_rtt_ms() == 48
    assert scenario.links[1].rate_mbps is None


def test_each_flow_has_its_own_round_trip_time_and_start():
    scenario = scenarios.dumbbell(
        senders=["cubic", "bbr", "newreno"], rtt_ms=[80, 20, 20.5], start_s=[3, 0, 0.25], app=Sized(size_bytes=500)
    )
    assert [scenario.propagation_rtt_ms(i) for i in range(3)] == [80, 20, 20.5]
    assert [flow.start_s for flow in scenario.flows] == [3, 0, 0.25]
    assert [link.name for link in scenario.links] == [
        *("bottleneck", "return", "sender-0", "sender-back-0", "sender-2", "sender-back-2"),
    ]
    assert scenario.links[0].delay_ms == scenario.links[1].delay_ms == 10
    assert scenario.flows[0].path == (2, 0) and scenario.flows[0].return_path == (1, 3)
    result = nb.simulate(scenario, 1)
    service_ms = (52 + 552) * 8e-4  # of the handshake's last ACK and the data behind it
    assert [flow.rtt_min_ms - service_ms for flow in result.flows] == pytest.approx([80, 20, 20.5])


def test_equal_round_trip_times_are_one():
    assert scenarios.dumbbell(senders=["cubic"] * 2, rtt_ms=[48, 48], start_s=[0, 0.1]) == scenarios.dumbbell(
        senders=["cubic"] * 2
    )


@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_each_flow_has_its_own_round_trip_time_with_access_links_and_a_way_back(stack):
    given = {"senders": ["cubic"], "reverse": ["newreno"], "stack": stack, "access_mbps": 100, "access_delay_ms": 2}
    scenario = scenarios.dumbbell(**given, rtt_ms=[60, 30], start_s=[0, 1])
    assert [scenario.propagation_rtt_ms(i) for i in range(2)] == [60, 30]
    assert scenario.flows[1].path[1] == 1 and scenario.flows[1].return_path[1] == 0


def test_return_traces_of_all_flows_and_of_each():
    one, other = RateTrace([0, 1], [5, 6]), RateTrace([0, 1], [0.1, 0.2])
    shared = scenarios.dumbbell(senders=["cubic"] * 2, return_trace=one, return_buffer_packets=50)
    assert (shared.links[1].name, shared.links[1].trace, shared.links[1].queue_packets) == ("return", one, 50)
    assert shared.links[1].rate_mbps is None
    own = scenarios.dumbbell(senders=["cubic"] * 3, return_trace=[one, None, other], rtt_ms=[20, 30, 20])
    assert [(link.name, link.trace) for link in own.links[1:4]] == [("return-0", one), ("return-1", None), ("return-2", other)]
    assert [flow.return_path for flow in own.flows] == [(1,), (2, 5), (3,)]
    assert [own.propagation_rtt_ms(i) for i in range(3)] == [20, 30, 20]
    result = nb.simulate(scenarios.dumbbell(senders=["cubic"] * 2, return_trace=[None, other], rate_mbps=50, duration_s=20), 1)
    assert result.flows[0].goodput_mbps > 4 * result.flows[1].goodput_mbps  # ACKs of the second are held up
    assert scenarios.Scenario.from_dict(own.to_dict()) == own


def test_the_named_dumbbell_takes_lists():
    scenario = scenarios.get("dumbbell", n=2, rtt_ms=[10, 20], start_s=[0, 5])
    assert [scenario.propagation_rtt_ms(i) for i in range(2)] == [10, 20] and scenario.flows[1].start_s == 5


def test_last_hop_is_the_reference_programs():
    trace = RateTrace([0, 1], [5, 6])
    scenario = scenarios.last_hop(trace=trace, return_rate_mbps=100, rtt_ms=40, senders=["cubic"])
    hop, back, sender, receiver, receiver_back, sender_back = scenario.links
    assert (hop.trace, hop.delay_ms, hop.queue_packets) == (trace, 19, 300)
    assert (back.rate_mbps, back.delay_ms) == (100, 19)
    assert (sender.rate_mbps, sender.delay_ms) == (sender_back.rate_mbps, sender_back.delay_ms) == (1000, 1)
    assert (receiver.rate_mbps, receiver.delay_ms) == (receiver_back.rate_mbps, receiver_back.delay_ms) == (1e5, 0)
    assert scenario.flows[0].path == (2, 0, 3) and scenario.flows[0].return_path == (4, 1, 5)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rtt_ms": "48"}, "rtt_ms = '48' is not a number"),
        ({"rtt_ms": [10, 20]}, "rtt_ms has 2 values for 1 flows; valid: as many"),
        ({"rtt_ms": []}, "rtt_ms is empty"),
        ({"rtt_ms": [-1]}, r"rtt_ms\[0\] = -1"),
        ({"rtt_ms": [40, 3], "senders": ["cubic"] * 2, "stack": "ns3"}, "rtt_ms = 3 is less than four access delays"),
        ({"start_s": 3}, "start_s = 3 is not a list"),
        ({"start_s": [1, 2]}, "start_s has 2 values for 1 flows"),
        ({"start_s": [math.nan]}, r"start_s\[0\] = nan"),
        ({"return_trace": 5}, "trace = 5 is not a RateTrace or DeliveryTrace"),
        ({"return_trace": [None, None]}, "return_trace has 2 traces for 1 flows"),
        ({"return_trace": RateTrace([0], [5]), "return_rate_mbps": 3}, "return_rate_mbps = 3 beside return_trace"),
        ({"return_trace": [None, None], "reverse": ["cubic"]}, "return_trace is a list beside reverse"),
        ({"rtt_ms": 3, "stack": "ns3"}, "rtt_ms = 3 is less than four access delays; valid: 4 or more"),
        ({"loss": 1.5}, "loss = 1.5"),
        ({"senders": []}, "senders is empty"),
        ({"senders": 3}, "senders = 3 is not a list"),
        ({"senders": ["tahoe"]}, "cc = 'tahoe'"),
        ({"stack": "bsd"}, "stack = 'bsd'"),
        ({"trace": RateTrace([0], [5]), "rate_mbps": 5}, "rate_mbps = 5 beside a trace"),
        ({"trace": "x"}, "trace = 'x' is not a RateTrace"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.dumbbell(**kwargs)


def test_a_parking_lot_has_long_flows_and_those_that_cross_a_hop():
    world = scenarios.parking_lot(hops=3, senders=["cubic", "bbr"], cross="newreno", delay_ms=[1, 2, 3], rate_mbps=20)
    names = [link.name for link in world.links]
    assert names == ["hop-1", "hop-2", "hop-3", "back-1", "back-2", "back-3"]
    assert [link.delay_ms for link in world.links] == [1, 2, 3] * 2
    assert [link.rate_mbps for link in world.links] == [20.0] * 3 + [None] * 3
    paths = [(flow.cc, flow.path, flow.return_path, flow.name) for flow in world.flows]
    assert paths == [
        ("cubic", (0, 1, 2), (5, 4, 3), ""),
        ("bbr", (0, 1, 2), (5, 4, 3), ""),
        ("newreno", (0,), (3,), "cross-1"),
        ("newreno", (1,), (4,), "cross-2"),
        ("newreno", (2,), (5,), "cross-3"),
    ]


def test_flows_that_cross_the_same_hop_have_names_of_their_own():
    world = scenarios.parking_lot(hops=2, cross=["cubic", "bbr"])
    names = [(flow.cc, flow.name) for flow in world.flows[1:]]
    assert names == [("cubic", "cross-1-0"), ("bbr", "cross-1-1"), ("cubic", "cross-2-0"), ("bbr", "cross-2-1")]


def test_hops_differ_by_direction():
    back = {"return_rate_mbps": [1, None], "return_delay_ms": 30, "return_buffer_packets": 7, "return_discipline": "codel"}
    world = scenarios.chain(hops=2, rate_mbps=[10, 5], buffer_packets=[100, None], discipline=["fq", "cake"], **back)
    there, back = world.links[:2], world.links[2:]
    assert [(link.rate_mbps, link.queue_packets, link.discipline.kind) for link in there] == [
        (10, 100, "fq"),
        (5, None, "cake"),
    ]
    assert [(link.rate_mbps, link.delay_ms, link.queue_packets) for link in back] == [(1, 30, 7), (None, 30, 7)]
    assert [flow.name for flow in world.flows] == [""]


def test_hops_have_hosts_behind_access_links():
    world = scenarios.parking_lot(hops=2, stack="ns3", senders="newreno", cross="newreno")
    assert [link.rate_mbps for link in world.links[:4]] == [10] * 4
    assert [link.name for link in world.links[4:8]] == ["sender-0", "receiver-0", "receiver-back-0", "sender-back-0"]
    assert world.flows[0].path == (4, 0, 1, 5) and world.flows[0].return_path == (6, 3, 2, 7)
    assert world.flows[2].path == (12, 1, 13) and world.flows[2].return_path == (14, 3, 15)


def test_multi_hop_names_take_settings():
    world = scenarios.get("parking_lot/4", senders="bbr", rate_mbps=5, mss_bytes=1000, hystart="rfc9406", start_jitter_ms=50)
    assert (world.name, len(world.links), world.mss_bytes, world.start_jitter_ms) == ("parking_lot/4", 8, 1000, 50)
    assert scenarios.get("chain/2", n=3).flows == scenarios.chain(hops=2, senders=["cubic"] * 3).flows
    assert scenarios.get("chain", hops=7).name == "chain"
    assert "hops" in scenarios.parameters_of("parking_lot") and "hops" not in scenarios.parameters_of("parking_lot/3")
    for name, message in (("parking_lot/0", r"hops = 0 .*valid: 1\.\.50"), ("chain/x", "scenario = 'chain/x' is unknown")):
        with pytest.raises(ScenarioError, match=message):
            scenarios.get(name)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"hops": 51}, r"hops = 51 .*valid: 1\.\.50"),
        ({"rate_mbps": [1, 2]}, "rate_mbps has 2 values for 3 hops; valid: as many, or one for all"),
        ({"buffer_packets": 0}, "buffer_packets = 0"),
        ({"return_buffer_packets": [1, 0, 1]}, "return_buffer_packets = 0"),
        ({"delay_ms": -1}, "delay_ms = -1"),
        ({"cross": "sprinter"}, "sprinter"),
        ({"discipline": ["fq", "cake", "sfq"]}, "discipline = 'sfq' is unknown"),
        ({"stack": "bsd"}, "stack = 'bsd' is unknown"),
    ],
)
def test_bad_hops_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.parking_lot(**kwargs)


@pytest.mark.parametrize("cross", ["cubic", ()])
def test_a_chain_has_no_flows_that_cross_it(cross):
    with pytest.raises(ScenarioError, match=r"^cross = .* of a chain, which no flows cross; valid: only in parking_lot$"):
        scenarios.chain(cross=cross)


def share_rates(hops, seeds=3, **kwargs):
    """Goodput of the long flow and the mean of those that cross, in the mean of some seeds."""
    world = scenarios.parking_lot(hops=hops, duration_s=120, start_jitter_ms=200, **kwargs)
    results = [nb.simulate(world, seed) for seed in range(seeds)]
    long = [result.flows[0].goodput_mbps for result in results]
    cross = [flow.goodput_mbps for result in results for flow in result.flows[1:]]
    return sum(long) / len(long), sum(cross) / len(cross)


@pytest.mark.parametrize("discipline", ["cake", {"name": "fq", "flow_limit": 1000}])
def test_fair_queues_give_a_long_flow_its_max_min_share(discipline):
    for hops in (2, 3):
        long, cross = share_rates(hops, discipline=discipline, buffer_packets=1000)
        assert 0.42 < long / (long + cross) < 0.52 and long + cross > 9


def test_renos_long_flow_has_what_its_law_says():
    """By the law of the square root a flow over n equal hops meets n times the loss in n times the round trip: its share is
    less by n^1.5, between max-min (1) and what proportional fairness (n) comes to for round trips that are as long (n^2)."""
    for hops in (2, 3):
        long, cross = share_rates(hops, discipline="codel", senders="newreno", cross="newreno")
        assert cross / long == pytest.approx(hops**1.5, rel=0.25)
        assert long + cross > 9


def test_a_dumbbells_ways_differ_in_delay_and_queue():
    world = scenarios.dumbbell(rtt_ms=100, return_delay_ms=80, return_rate_mbps=1, return_discipline="cake")
    assert [link.delay_ms for link in world.links] == [20, 80]
    assert world.links[1].discipline.kind == "cake" and world.links[1].rate_mbps == 1
    assert nb.simulate(scenarios.dumbbell(rtt_ms=100, return_delay_ms=0, duration_s=5), 1).flows[0].rtt_min_ms == pytest.approx(
        nb.simulate(scenarios.dumbbell(rtt_ms=100, duration_s=5), 1).flows[0].rtt_min_ms, abs=0.1
    )
    with pytest.raises(ScenarioError, match="return_delay_ms = 101"):
        scenarios.dumbbell(rtt_ms=100, return_delay_ms=101)
