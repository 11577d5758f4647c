import math

import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import RateTrace


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
        ({"rate_mbps": -1}, "rate_mbps = -1"),
        ({"rate_mbps": math.nan}, "rate_mbps = nan"),
        ({"rtt_ms": -1}, "rtt_ms = -1"),
        ({"rtt_ms": math.inf}, "rtt_ms = inf"),
        ({"rtt_ms": "48"}, "rtt_ms = '48' is not a number"),
        ({"rtt_ms": 3, "stack": "ns3"}, "rtt_ms = 3 is less than four access delays; valid: 4 or more"),
        ({"buffer_packets": 0}, "buffer_packets = 0"),
        ({"buffer_packets": -5}, "buffer_packets = -5"),
        ({"buffer_packets": 1.5}, "buffer_packets = 1.5"),
        ({"loss": 1.5}, "loss = 1.5"),
        ({"senders": []}, "senders is empty"),
        ({"senders": 3}, "senders = 3 is not a list"),
        ({"senders": ["tahoe"]}, "cc = 'tahoe'"),
        ({"stagger_s": -1}, "stagger_s = -1"),
        ({"access_mbps": 0}, "access_mbps = 0"),
        ({"access_delay_ms": math.nan}, "access_delay_ms = nan"),
        ({"stack": "bsd"}, "stack = 'bsd'"),
        ({"trace": RateTrace([0], [5]), "rate_mbps": 5}, "rate_mbps = 5 beside a trace"),
        ({"trace": "x"}, "trace = 'x' is not a RateTrace"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.dumbbell(**kwargs)
