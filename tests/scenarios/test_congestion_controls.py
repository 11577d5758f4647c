import pickle

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import AGENT, CONGESTION_CONTROLS, STACKS, CongestionControl, Flow, Sender
from netbuf_gym.scenarios.native import build_world_config

PATH = {"path": [0], "return_path": [1]}
PARAMETERS = [
    (record.name, stack, parameter)
    for record in CONGESTION_CONTROLS.values()
    for parameter in record.parameters
    for stack in STACKS
    if stack in parameter.stacks and stack in record.stacks
]


def name_of(value):
    return getattr(value, "name", str(value))


def world(cc, **changes):
    return scenarios.dumbbell(**{"senders": [cc, "newreno"], "duration_s": 4, "loss": 1e-3} | changes)


def totals(scenario):
    return [(flow.packets_sent, flow.packets_retransmitted, flow.delivered_bytes) for flow in nb.simulate(scenario, 2).flows]


def test_names_are_the_cores():
    assert list(CONGESTION_CONTROLS) == [data["name"] for data in _core.congestion_controls()]
    for stack in STACKS:
        names = scenarios.congestion_controls(stack)
        assert set(names) - set(scenarios.sender_controls(stack)) == {AGENT}
        assert set(names) == {record.name for record in CONGESTION_CONTROLS.values() if stack in record.stacks}
    assert all(record.stacks and record.meaning for record in CONGESTION_CONTROLS.values())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stack", "parameter"), PARAMETERS, ids=name_of)
def test_every_parameter_runs_at_both_ends_of_its_range_and_at_its_default(name, stack, parameter):
    assert parameter.low < parameter.high and parameter.meaning
    assert parameter.default is None or parameter.low <= parameter.default <= parameter.high
    for value in (parameter.low, parameter.high):
        given = {"name": name, parameter.name: bool(value) if parameter.kind == "truth" else value}
        flows = nb.simulate(world(given, stack=stack), 2).flows
        assert flows[0].delivered_bytes > 0  # what it leaves to the other is another matter
        assert all(flow.delivered_bytes <= flow.packets_sent * 1448 for flow in flows)
    if parameter.default is not None:  # to the bit what it is without
        assert totals(world({"name": name, parameter.name: parameter.default}, stack=stack)) == totals(world(name, stack=stack))


@pytest.mark.parametrize(("name", "stack", "parameter"), PARAMETERS, ids=name_of)
def test_what_is_out_of_range_is_named_with_what_is_valid(name, stack, parameter):
    bad = [2, "x"] if parameter.kind == "truth" else [parameter.low - 1, parameter.high * 2 + 1, float("nan"), "5", True, None]
    if parameter.kind == "whole":
        bad.append(parameter.low + 0.5)
    for value in bad:
        with pytest.raises(ScenarioError, match=rf"flow\.cc\.{parameter.name} = .*; valid: "):
            Flow(cc={"name": name, parameter.name: value}, **PATH)
        with pytest.raises(ScenarioError, match=rf"sender\.cc\.{parameter.name} = .*; valid: "):
            Sender(cc={"name": name, parameter.name: value}, **PATH)


@pytest.mark.parametrize("name", CONGESTION_CONTROLS)
def test_an_unknown_parameter_is_named_with_the_valid_ones(name):
    valid = ", ".join(dict.fromkeys(parameter.name for parameter in CONGESTION_CONTROLS[name].parameters)) or "none"
    with pytest.raises(ScenarioError, match=f"flow.cc: {name} has no parameter 'colour'; valid: {valid}$"):
        Flow(cc={"name": name, "colour": 1}, **PATH)


def test_a_parameter_of_the_other_stack_is_refused_where_the_stack_is_known():
    message = r"flows\[0\].cc: westwood has no parameter 'pole' in the linux stack; valid: filter, sample_min_ms"
    with pytest.raises(ScenarioError, match=message):
        world({"name": "westwood", "pole": 0.5})
    with pytest.raises(ScenarioError, match=r"flows\[0\].cc = 'linuxreno' is not in the linux stack; valid: .*bbr, "):
        world({"name": "linuxreno", "beta": 0.6})
    assert world({"name": "westwood", "pole": 0.5}, stack="ns3").flows[0].cc.parameters == (("pole", 0.5),)


def test_what_is_neither_name_nor_dict_is_refused():
    for wrong in (3, None, {"beta": 0.7}, {"name": 3}):
        with pytest.raises(ScenarioTypeError, match=r"flow.cc = .*; valid: a name, or a dict of name and parameters"):
            Flow(cc=wrong, **PATH)
    with pytest.raises(ScenarioError, match=r"flow.cc = 'tahoe' is unknown; valid: .*agent, .*bbr, "):
        Flow(cc={"name": "tahoe"}, **PATH)
    with pytest.raises(ScenarioError, match=r"sender.cc = 'agent' is unknown; valid: .*bbr, "):
        Sender(cc={"name": "agent"}, **PATH)


def test_a_name_with_parameters_is_a_value():
    flow = Flow(cc={"name": "cubic", "c": 0.2, "beta": 0.8}, **PATH)
    assert flow.cc == CongestionControl("cubic", (("beta", 0.8), ("c", 0.2))) and str(flow.cc) == "cubic(beta=0.8, c=0.2)"
    assert flow == Flow(cc={"beta": 0.8, "name": "cubic", "c": 0.2}, **PATH) == Flow(cc=flow.cc, **PATH)
    assert hash(flow) == hash(Flow(cc=flow.cc, **PATH)) and flow != Flow(cc="cubic", **PATH)
    assert Flow(cc={"name": "cubic"}, **PATH) == Flow(cc="cubic", **PATH)
    assert flow.cc.to_dict() == {"name": "cubic", "beta": 0.8, "c": 0.2}


def test_parameters_act():
    gentle, harsh = ({"name": "cubic", "beta": beta} for beta in (0.9, 0.3))
    result = nb.simulate(scenarios.dumbbell(senders=[gentle, harsh], duration_s=60), 1)
    assert result.flows[0].goodput_mbps > 1.5 * result.flows[1].goodput_mbps
    assert [flow.cc for flow in result.flows] == ["cubic(beta=0.9)", "cubic(beta=0.3)"]
    more, fewer = ({"name": "vegas", "alpha": n, "beta": 2 * n} for n in (20, 2))
    worlds = [scenarios.dumbbell(senders=vegas) for vegas in (more, fewer)]
    queue = [nb.simulate(scenario, 1, warmup_s=20).links[0].queue_mean_packets for scenario in worlds]
    assert 15 < queue[0] < 45 and 1 < queue[1] < 5


TUNED = {"name": "cubic", "beta": 0.8}


def drawn(name, **arguments):
    return scenarios.get(name, **arguments, duration_s=2).sample(np.random.default_rng(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: world(TUNED),
        lambda: scenarios.dumbbell(senders=TUNED, duration_s=2),
        lambda: scenarios.dumbbell(senders=["bbr", "bbr"], duration_s=2).with_senders([TUNED, "cubic"]),
        lambda: scenarios.dumbbell(senders=["bbr"], duration_s=2).with_senders(TUNED),
        lambda: scenarios.get("ppcc/2", senders=TUNED, n=3, duration_s=2),
        lambda: drawn("ppcc/any", senders=[TUNED]),
        lambda: drawn("ppcc/random", senders=[TUNED, "bbr"]),
        lambda: scenarios.get("rlbm/default", cc=TUNED, duration_s=2),
        lambda: drawn("rlbm/random", cc=[TUNED]),
        lambda: drawn("rlbm/random", cc=TUNED),
    ],
)
def test_wherever_a_congestion_control_is_named_it_may_have_parameters(make):
    made = make()
    ends = made.flows or made.traffic.senders
    assert ends[0].cc == CongestionControl("cubic", (("beta", 0.8),))
    assert scenarios.Scenario.from_dict(made.to_dict()) == made == pickle.loads(pickle.dumps(made))
    assert len({made, make()}) == 1
    config = build_world_config(made)
    core = config.flows[0] if made.flows else config.traffic.senders[0]
    assert (core.cc, core.cc_parameters) == ("cubic", {"beta": 0.8})
    nb.simulate(made, 1)


def test_many_stand_for_themselves_and_one_for_all():
    assert len(scenarios.get("ppcc/2", senders=TUNED, n=3).flows) == 3
    senders = scenarios.get("rlbm/default", cc=TUNED, hosts=4).traffic.senders
    assert len(senders) == 4 and {sender.cc for sender in senders} == {Flow(cc=TUNED, **PATH).cc}
    with pytest.raises(ScenarioError, match=r"senders.beta = 3.0 is out of range; valid: 0\.1 to 0\.99"):
        scenarios.dumbbell(senders=[{"name": "cubic", "beta": 3}])


def test_the_core_refuses_what_the_types_would():
    for parameters, message in (
        ({"beta": 2.0}, r"flows\[0\].cc_parameters\[beta\] = 2: must be in \[0.1, 0.99\]"),
        ({"colour": 2.0}, r"flows\[0\].cc_parameters\[colour\] = 2: must be one of beta c "),
        ({"hystart_low_window": 2.5}, r"cc_parameters\[hystart_low_window\] = 2.5: must be a whole number in \[2, 1e\+06\]"),
        ({"hystart": 0.5}, r"cc_parameters\[hystart\] = 0.5: must be 0 or 1"),
    ):
        config = build_world_config(world("cubic"))
        flows = config.flows
        flows[0].cc_parameters = parameters
        config.flows = flows
        with pytest.raises(ValueError, match=message):
            _core.World(config, 1)
