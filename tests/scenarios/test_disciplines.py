from dataclasses import fields

import pytest

import netbuf_gym as nb
from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import DISCIPLINES, PIE, RED, CoDel, DropTail, FqCoDel, Link


def test_the_disciplines_are_the_cores():
    assert set(DISCIPLINES) == set(_core.queue_disciplines())


def test_the_core_takes_every_parameter_at_both_ends_of_its_range():
    for cls in DISCIPLINES.values():
        for name, ends in cls.RANGES.items():
            for value in ends:
                changes = {name: value}
                if name == "min_packets":
                    changes = {"min_packets": min(value, 9e8), "max_packets": 1e9}
                elif name == "max_packets":
                    changes = {"min_packets": 1e-3, "max_packets": max(value, 2e-3)}
                world = scenarios.dumbbell(duration_s=0.1).with_scheme(cls(**changes))
                Simulator(world, 1).run(1_000_000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoDel(target_ms=0), "codel.target_ms = 0"),
        (lambda: CoDel(interval_ms=float("nan")), "codel.interval_ms = nan"),
        (lambda: FqCoDel(flows=0), "fq_codel.flows = 0"),
        (lambda: FqCoDel(flows=1.5), "fq_codel.flows = 1.5 is not a whole number"),
        (lambda: FqCoDel(quantum_bytes=10), "fq_codel.quantum_bytes = 10"),
        (lambda: PIE(alpha=-1), "pie.alpha = -1"),
        (lambda: PIE(cap_increase=1), "pie.cap_increase = 1 is not a truth value"),
        (lambda: RED(min_packets=5), "one of red.min_packets and red.max_packets is given"),
        (lambda: RED(min_packets=5, max_packets=5), "red.max_packets = 5 is not above min_packets = 5"),
        (lambda: RED(max_probability=0), "red.max_probability = 0"),
        (lambda: Link(name="a", rate_mbps=1, device_packets=-1), "link 'a': device_packets = -1"),
    ],
)
def test_fields_out_of_range_are_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def test_wrong_types_are_named():
    with pytest.raises(ScenarioTypeError, match=r"link 'a': discipline = 'codel'; valid: RED, CoDel"):
        Link(name="a", rate_mbps=1, discipline="codel")
    with pytest.raises(ScenarioTypeError, match=r"codel.target_ms = '5' is not a number"):
        CoDel(target_ms="5")


def test_what_is_left_to_the_core_is_not_handed_on():
    assert DropTail().parameters() == {}
    assert "min_packets" not in RED().parameters() and RED().parameters()["gentle"] == 1.0
    assert all(isinstance(value, float) for cls in DISCIPLINES.values() for value in cls().parameters().values())
    assert all(f.name in cls.RANGES or isinstance(f.default, bool) for cls in DISCIPLINES.values() for f in fields(cls))


def test_a_device_queue_needs_something_before_it():
    with pytest.raises(ScenarioError, match=r"links\[0\].device_packets = 1 without a discipline or a switch"):
        link = Link(name="a", rate_mbps=1, device_packets=1)
        scenarios.Scenario(links=[link], flows=[scenarios.Flow(path=[0], return_path=[0])], duration_s=1)


@pytest.mark.parametrize("discipline", [*(cls() for cls in DISCIPLINES.values()), RED(adaptive=True)])
@pytest.mark.parametrize("limit", [None, 50])
def test_on_an_infinitely_fast_link_nothing_waits(discipline, limit):
    links = [
        Link(name="fast", delay_ms=1, discipline=discipline, queue_packets=limit, device_packets=1),
        Link(name="bottleneck", rate_mbps=10, delay_ms=10, queue_packets=100),
        Link(name="back", delay_ms=5, discipline=discipline),
    ]
    flows = [scenarios.Flow(path=[0, 1], return_path=[2]), scenarios.Flow(path=[1, 0], return_path=[2])]
    result = nb.simulate(scenarios.Scenario(links=links, flows=flows, duration_s=3), 1)
    assert result.goodput_mbps > 8
    for link in (result.links["fast"], result.links["back"]):
        assert link.packets_in == link.packets_out > 1000 and link.queue_drops == 0 and link.queue_delay_mean_ms == 0
