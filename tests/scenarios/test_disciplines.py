import copy
import pickle

import pytest

import netbuf_gym as nb
from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import DISCIPLINES, PIE, QUEUE_DISCIPLINES, RED, CoDel, DropTail, DualPI2, FqCoDel, Link

PARAMETERS = [(record, parameter) for record in QUEUE_DISCIPLINES.values() for parameter in record.parameters]


def name_of(value):
    return value.name


def made(name, **changes):
    """A discipline by its name; None: these parameters do not go together."""
    try:
        return DISCIPLINES[name](**changes)
    except ScenarioError as error:
        assert "is not above" in str(error)
        return None


def test_there_is_a_class_for_each_of_the_cores():
    assert set(DISCIPLINES) == {data["name"] for data in _core.queue_disciplines()}
    assert [cls.kind for cls in (DropTail, RED, CoDel, FqCoDel, PIE)] == ["droptail", "red", "codel", "fq_codel", "pie"]
    assert DualPI2.kind == "dualpi2"
    assert [scenarios.FQ.kind, scenarios.FqPIE.kind, scenarios.CAKE.kind] == ["fq", "fq_pie", "cake"]
    assert len({cls.__name__ for cls in DISCIPLINES.values()}) == len(DISCIPLINES)


BUCKETS = ("tbf", "policer")
"""They have rates of their own."""
SLOW = {("cake", "rate_mbps"), ("fq", "max_rate_mbps")}
"""Rates whose least lets hardly a packet through."""


def in_python(parameter, number):
    """A parameter's value for the core's number; None: left to the core."""
    if number is None or isinstance(number, str):
        return number
    return {"truth": bool, "named": lambda index: parameter.names[int(index)]}.get(parameter.kind, lambda same: same)(number)


@pytest.mark.parametrize(("record", "parameter"), PARAMETERS, ids=name_of)
def test_every_parameter_runs_at_both_ends_of_its_range_and_at_its_default(record, parameter):
    assert parameter.low < parameter.high and parameter.meaning
    for value in (parameter.low, parameter.default, parameter.high):
        value = in_python(parameter, value)
        if value is None or (discipline := made(record.name, **{parameter.name: value})) is None:
            continue
        assert getattr(discipline, parameter.name) == value
        world = scenarios.dumbbell(duration_s=2, senders=["cubic", "newreno"]).with_scheme(discipline)
        result = nb.simulate(world, 1)
        link = result.links["bottleneck"]
        assert link.packets_in >= link.packets_out + link.queue_drops
        if record.name in BUCKETS and discipline.burst_bytes < 60:  # no packet ever fits in
            assert link.packets_out == 0 < link.queue_drops
        elif (record.name, parameter.name) not in SLOW or value > parameter.low:
            assert sum(f.packets_sent for f in result.flows) > 10


@pytest.mark.parametrize(("record", "parameter"), PARAMETERS, ids=name_of)
def test_what_is_out_of_range_is_named_with_what_is_valid(record, parameter):
    cls, field = DISCIPLINES[record.name], rf"{record.name}\.{parameter.name}"
    bad = [None] if parameter.default is not None else []
    out = [parameter.low - 1, parameter.high * 2 + 1, float("nan"), "5", True]
    bad += {"truth": [2, "x"], "named": ["x", 0, True]}.get(parameter.kind, out)
    if parameter.kind == "whole":
        bad.append(parameter.low + 0.5)
    for value in bad:
        with pytest.raises(ScenarioError, match=rf"{field} = .*; valid: "):
            cls(**{parameter.name: value})


def test_an_unknown_parameter_is_named_with_the_valid_ones():
    for record in QUEUE_DISCIPLINES.values():
        valid = ", ".join(parameter.name for parameter in record.parameters) or "none"
        message = f"link 'a': discipline: {record.name} has no parameter 'colour'; valid: {valid}"
        with pytest.raises(ScenarioError, match=message):
            Link(name="a", rate_mbps=1, discipline={"name": record.name, "colour": 1})


@pytest.mark.parametrize("name", DISCIPLINES)
def test_by_name_dict_and_class_a_link_has_the_same_discipline(name):
    link = Link(name="a", rate_mbps=1, discipline=name)
    for same in ({"name": name}, DISCIPLINES[name]()):
        assert link == Link(name="a", rate_mbps=1, discipline=same) and len({link, Link(name="a", discipline=same)}) == 2
    for parameter in QUEUE_DISCIPLINES[name].parameters:
        value = in_python(parameter, parameter.high)
        given = Link(name="a", rate_mbps=1, discipline={"name": name, parameter.name: value})
        assert getattr(given.discipline, parameter.name) == value
        world = scenarios.Scenario(links=[given], flows=[scenarios.Flow(path=[0], return_path=[0])], duration_s=1)
        assert scenarios.Scenario.from_dict(world.to_dict()) == world
        assert pickle.loads(pickle.dumps(world)) == world == copy.deepcopy(world)
        assert len({world, pickle.loads(pickle.dumps(world))}) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoDel(target_ms=0), "codel.target_ms = 0.0 is out of range; valid: 0.01 to 10000"),
        (lambda: FqCoDel(flows=1.5), r"fq_codel.flows = 1.5 is not a whole number; valid: 1\.\.65536"),
        (lambda: PIE(cap_increase=1), "pie.cap_increase = 1 is not a truth value"),
        (lambda: RED(min_packets=5, max_packets=5), "red.max_packets = 5 is not above min_packets = 5"),
        (lambda: Link(name="a", rate_mbps=1, device_packets=-1), "link 'a': device_packets = -1"),
        (
            lambda: Link(name="a", rate_mbps=1, discipline="sfq"),
            "link 'a': discipline = 'sfq' is unknown; did you mean 'fq'.* valid: .*codel, ",
        ),
        (
            lambda: Link(name="a", rate_mbps=1, discipline={"name": "codel", "target_ms": 0}),
            "link 'a': discipline: codel.target_ms = 0",
        ),
    ],
)
def test_fields_out_of_range_are_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def test_wrong_types_are_named():
    for wrong in (5, {"target_ms": 5}, {"name": 5}):
        with pytest.raises(ScenarioTypeError, match=r"link 'a': discipline = .*; valid: a name, or a dict of name and"):
            Link(name="a", rate_mbps=1, discipline=wrong)
    with pytest.raises(ScenarioTypeError, match=r"codel.target_ms = '5' is not a number"):
        CoDel(target_ms="5")


def test_what_is_left_to_the_core_is_not_handed_on():
    assert DropTail().parameters() == {}
    assert "min_packets" not in RED().parameters() and RED().parameters()["gentle"] == 1.0
    assert all(isinstance(value, float) for cls in DISCIPLINES.values() for value in cls().parameters().values())


def test_one_of_reds_thresholds_gives_the_other():
    def drops(**thresholds):
        world = scenarios.dumbbell(duration_s=20, senders=["cubic"] * 4).with_scheme(RED(**thresholds))
        return nb.simulate(world, 1).links["bottleneck"].queue_drops

    assert drops(min_packets=10) == drops(max_packets=30) == drops(min_packets=10, max_packets=30) > 0


def test_a_device_queue_needs_something_before_it():
    with pytest.raises(ScenarioError, match=r"links\[0\].device_packets = 1 without a discipline or a switch"):
        link = Link(name="a", rate_mbps=1, device_packets=1)
        scenarios.Scenario(links=[link], flows=[scenarios.Flow(path=[0], return_path=[0])], duration_s=1)


@pytest.mark.parametrize(
    "discipline", [*(cls() for cls in DISCIPLINES.values() if cls.kind not in BUCKETS), RED(adaptive=True)]
)
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
