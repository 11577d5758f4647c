import math

import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import (
    ABM,
    DT_ALPHAS,
    PIE,
    SCHEMES,
    AgentThresholds,
    CoDel,
    DynamicThresholds,
    Flow,
    Link,
    Scenario,
    StaticThresholds,
    StrictPriority,
    Switch,
    Traffic,
)

WORLD = scenarios.get("rlbm/default", queue_packets=300)


def admission(scheme) -> object:
    return WORLD.with_scheme(scheme).switches[0].admission


def test_thresholds_of_the_named_schemes():
    assert admission("naive") == DynamicThresholds(alphas=(1, 1))
    assert admission("sophisticated") == DynamicThresholds(alphas=(8, 1))
    assert admission("dt") == DynamicThresholds(alphas=DT_ALPHAS)
    assert admission({"name": "dt", "alphas": [2, 0.5]}) == DynamicThresholds(alphas=(2, 0.5))
    assert admission("abm") == ABM(alphas=(8, 1))
    assert admission("agent") == AgentThresholds(betas=(1, 1), alphas=(1, 1))
    assert admission({"name": "agent", "betas": [1, 0.5]}) == AgentThresholds(betas=(1, 0.5))
    assert admission(ABM(alphas=(3, 2))) == ABM(alphas=(3, 2))
    assert {s.name for s in SCHEMES.values()} == set(SCHEMES) and all(len(s.description) > 10 for s in SCHEMES.values())


def test_everything_else_of_the_world_stays():
    for name in SCHEMES:
        made = WORLD.with_scheme(name)
        assert (made.traffic, made.probes, made.duration_s, made.name) == (
            WORLD.traffic,
            WORLD.probes,
            WORLD.duration_s,
            WORLD.name,
        )
        assert made.links[1:] == WORLD.links[1:]
        if made.switches and not name.startswith("static"):
            assert made.buffer_packets == 600 and made.links == WORLD.links


def test_static_buffers_hold_a_round_trip():
    rtt_times_rate = 10e6 * 20.2e-3 / 8 / 1500  # 16.8 packets
    made = WORLD.with_scheme("static_bdp")
    assert admission("static_bdp") == StaticThresholds(limits=(8, 8)) and made.buffer_packets == 16 == 2 * int(
        rtt_times_rate / 2
    )
    root = WORLD.with_scheme("static_bdp_sqrt_n")
    assert root.switches[0].capacity == 2 * int(rtt_times_rate / math.sqrt(10) / 2) == 4
    assert WORLD.with_scheme({"name": "static_bdp_sqrt_n", "n": 10**6}).switches[0].capacity == 2  # a packet a queue
    small = scenarios.get("rlbm/default", queue_packets=3)
    assert small.with_scheme("static_bdp").switches[0].capacity == 6  # never more than there is
    in_bytes = scenarios.get("rlbm/thesis-code").with_scheme("static_bdp").switches[0]
    assert in_bytes.capacity == int(10e6 * 20.2e-3 / 8) // 2 * 2 and in_bytes.in_bytes


def test_disciplines_take_the_place_of_the_switch_with_the_same_buffer():
    others = {"tbf", "policer", "ack_filter"}  # rates of their own, and a filter of ACKs
    assert others.isdisjoint(SCHEMES) and others < set(scenarios.DISCIPLINES)
    for name in set(scenarios.DISCIPLINES) - others:
        made = WORLD.with_scheme(name)
        link = made.links[made.bottleneck]
        assert not made.switches and link.discipline.kind == name and link.queue_packets == 600 == made.buffer_packets
    made = WORLD.with_scheme({"name": "codel", "target_ms": 10})
    assert made.links[0].discipline == CoDel(target_ms=10)
    assert WORLD.with_scheme(PIE(update_ms=30)).links[0].discipline == PIE(update_ms=30)
    assert scenarios.get("rlbm/thesis-code", scheme="pie").links[0].queue_bytes == 10**6
    assert scenarios.get("rlbm/default", stack="ns3", scheme="pie").links[0].device_packets == 1


def test_without_a_switch_disciplines_manage_the_bottleneck():
    made = scenarios.dumbbell().with_scheme("codel")
    assert made.links[made.bottleneck].discipline == CoDel() and made.buffer_packets == 150


def test_more_ports_and_queues():
    links = [Link(name=name, rate_mbps=10, delay_ms=10) for name in ("bottleneck", "b", "back")]
    switch = Switch(ports=["bottleneck", "b"], queues=3, buffer_packets=100, scheduler=StrictPriority(), queue_cap=50)
    world = Scenario(
        links=links,
        duration_s=1,
        switches=[switch],
        flows=[Flow(path=["bottleneck"], return_path=["back"]), Flow(path=["b"], return_path=["back"])],
    )
    assert world.with_scheme("sophisticated").switches[0].admission.alphas == (8, 1, 1)
    assert world.with_scheme({"name": "dt", "alphas": [4]}).switches[0].admission.alphas == (4, 4, 4)
    static = world.with_scheme("static_bdp").switches[0]
    assert static.capacity == 6 * 5 and static.admission.limits == (5, 5, 5)  # two ports of 16.7 packets, six queues
    assert (static.scheduler, static.queue_cap) == (StrictPriority(), 50)
    made = world.with_scheme("codel")
    assert [link.queue_packets for link in made.links] == [50, 50, None]


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ("best", "scheme = 'best' is unknown; valid: naive, sophisticated, dt, abm"),
        ({"name": "dt", "alpha": [1]}, "scheme dt has no parameter 'alpha'; did you mean 'alphas'\\? valid: alphas"),
        ({"name": "naive", "alphas": [1]}, "scheme naive has no parameter 'alphas'; valid: none"),
        ({"name": "dt", "alphas": [1, 2, 3]}, "admission is for 3 queues; valid: 2"),
        ({"name": "dt", "alphas": []}, "alphas is empty"),
        ({"name": "dt", "alphas": "8"}, "alphas = '8' is not a list"),
        ({"name": "dt", "alphas": [1, -1]}, r"dynamic.alphas\[1\] = -1"),
        ({"name": "codel", "target_ms": 0}, "codel.target_ms = 0"),
        ({"name": "static_bdp_sqrt_n", "n": 0}, "n = 0"),
    ],
)
def test_bad_schemes_are_named(scheme, message):
    with pytest.raises(ScenarioError, match=message):
        WORLD.with_scheme(scheme)


@pytest.mark.parametrize("scheme", [3, None, {"alphas": [1]}, ["naive"]])
def test_what_is_no_scheme_is_refused(scheme):
    with pytest.raises(ScenarioTypeError, match="valid: a name, a dict of name and parameters, an admission or a queue disc"):
        WORLD.with_scheme(scheme)


@pytest.mark.parametrize("scheme", ["naive", "dt", "static_bdp", "agent"])
def test_thresholds_need_a_switch(scheme):
    with pytest.raises(ScenarioError, match="the scenario has no switch"):
        scenarios.dumbbell().with_scheme(scheme)


def test_a_scheme_with_fewer_packets_than_queues():
    world = scenarios.get("rlbm/default", queue_packets=1)
    assert world.with_scheme("static_bdp").switches[0].admission.limits == (1, 1)
    one = Scenario(
        links=world.links,
        duration_s=1,
        switches=[Switch(ports=[0], buffer_packets=1)],
        traffic=Traffic(senders=world.traffic.senders, arrivals=world.traffic.arrivals),
    )
    with pytest.raises(ScenarioError, match="switch 'switch' has a buffer of 1; valid: at least 2"):
        one.with_scheme("static_bdp")
