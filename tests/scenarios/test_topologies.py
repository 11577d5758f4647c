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
