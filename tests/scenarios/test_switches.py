import pytest

from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import (
    ABM,
    DRR,
    AgentThresholds,
    CoDel,
    DynamicThresholds,
    Flow,
    Link,
    Probe,
    RoundRobin,
    Scenario,
    StaticThresholds,
    Switch,
)


def world(*switches, **changes) -> Scenario:
    links = [Link(name="a", rate_mbps=10), Link(name="b", rate_mbps=5), Link(name="back")]
    fields = {"links": links, "flows": [Flow(path=["a"], return_path=["back"])], "duration_s": 1, "switches": switches}
    return Scenario(**{**fields, **changes})


def test_a_switch_is_naive_and_serves_by_turns_unless_said_otherwise():
    switch = Switch(ports=["a"], buffer_packets=10)
    assert switch.admission == DynamicThresholds(alphas=(1, 1)) and switch.scheduler == RoundRobin()
    assert (switch.capacity, switch.in_bytes) == (10, False)
    switch = Switch(ports=["a"], buffer_bytes=10, queues=1)
    assert (switch.capacity, switch.in_bytes, switch.admission.queues) == (10, True, 1)
    assert switch.with_capacity(20).buffer_bytes == 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buffer_packets": None}, "switch 's': neither of buffer_packets and buffer_bytes is given"),
        ({"buffer_bytes": 5}, "switch 's': both of buffer_packets and buffer_bytes is given"),
        ({"queues": 65}, "switch 's': queues = 65"),
        ({"queues": 3, "admission": ABM(alphas=[8, 1])}, "switch 's': admission is for 2 queues; valid: 3"),
        ({"scheduler": DRR(quanta_bytes=[1])}, "switch 's': scheduler has 1 quanta for 2 queues"),
        ({"ports": []}, "switch 's': ports is empty"),
        ({"drop": "front"}, "switch 's': drop = 'front' is unknown; .*tail"),
        ({"protect_syn": 1}, "switch 's': protect_syn = 1 is not a truth value"),
        ({"name": ""}, "switch.name is empty"),
    ],
)
def test_fields_out_of_range_are_named(changes, message):
    with pytest.raises(ScenarioError, match=message):
        Switch(**{"name": "s", "ports": ["a"], "buffer_packets": 10, **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DynamicThresholds(alphas=[1, -1]), r"dynamic.alphas\[1\] = -1"),
        (lambda: DynamicThresholds(alphas=[]), "dynamic.alphas is empty"),
        (lambda: DynamicThresholds(alphas=1), "dynamic.alphas = 1 is not a list"),
        (lambda: ABM(alphas=[2e6]), r"abm.alphas\[0\] = 2000000"),
        (lambda: StaticThresholds(limits=[1.5]), r"static.limits\[0\] = 1.5 is not a whole number"),
        (lambda: AgentThresholds(betas=[1], alphas=[1, 1]), "agent.alphas has 2 values for 1 betas"),
        (lambda: DRR(quanta_bytes=[0]), r"drr.quanta_bytes\[0\] = 0"),
    ],
)
def test_parts_out_of_range_are_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def test_wrong_types_are_named():
    with pytest.raises(ScenarioTypeError, match="switch 's': admission = 'naive'; valid: StaticThresholds"):
        Switch(name="s", ports=["a"], buffer_packets=1, admission="naive")
    with pytest.raises(ScenarioTypeError, match="switch 's': scheduler = 'drr'; valid: RoundRobin"):
        Switch(name="s", ports=["a"], buffer_packets=1, scheduler="drr")


def test_ports_become_indices_and_belong_to_one_switch():
    a = Switch(name="one", ports=["a"], buffer_packets=10)
    b = Switch(name="two", ports=[1], buffer_packets=10, admission=AgentThresholds())
    made = world(a, b)
    assert [s.ports for s in made.switches] == [(0,), (1,)] and made.agent_switches == (1,)
    with pytest.raises(ScenarioError, match=r"switches\[1\]: port 'a' is a port of 'one' already"):
        world(a, Switch(name="two", ports=[0], buffer_packets=10))
    with pytest.raises(ScenarioError, match=r"switches\[0\]: port 'a' is a port of 'one' already"):
        world(Switch(name="one", ports=["a", "a"], buffer_packets=10))
    with pytest.raises(ScenarioError, match=r"switches\[1\].name = 'one' is taken"):
        world(a, Switch(name="one", ports=["b"], buffer_packets=10))


@pytest.mark.parametrize(
    ("switch", "changes", "message"),
    [
        ({"ports": ["c"]}, {}, r"switches\[0\].ports has no link 'c'; valid: a, b, back"),
        ({"ports": [3]}, {}, r"switches\[0\].ports link = 3"),
        ({"ports": ["back"]}, {}, r"switches\[0\]: port 'back' has no rate"),
        ({}, {"links": [Link(name="a", rate_mbps=1, queue_packets=5), Link(name="back")]}, "port 'a' has a queue of its own"),
        ({}, {"links": [Link(name="a", rate_mbps=1, discipline=CoDel()), Link(name="back")]}, "has a queue of its own"),
        (
            {},
            {"flows": [Flow(path=["a"], return_path=["back"], priority=2)]},
            r"flows\[0\].priority = 2 is beyond the 2 queues",
        ),
        ({}, {"probes": [Probe(path=["a"], priority=2)]}, r"probes\[0\].priority = 2 is beyond the 2 queues of switch 's'"),
        ({}, {"switches": [3]}, r"switches\[0\] = 3 is not a Switch"),
        ({}, {"switches": 3}, "switches = 3 is not a list"),
    ],
)
def test_switches_that_do_not_fit_the_links_are_named(switch, changes, message):
    with pytest.raises(ScenarioError, match=message):
        world(Switch(**{"name": "s", "ports": ["a"], "buffer_packets": 5, **switch}), **changes)


def test_priorities_count_only_on_the_way_through_a_switch():
    world(Switch(ports=["b"], buffer_packets=5), flows=[Flow(path=["a"], return_path=["back"], priority=2)])
