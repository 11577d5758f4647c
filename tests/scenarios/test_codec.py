import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import (
    ABM,
    DRR,
    AgentThresholds,
    DeliveryTrace,
    FlowList,
    GilbertElliott,
    Incast,
    OnOff,
    RateTrace,
    Scenario,
    Sized,
    StaticThresholds,
    UdpSource,
    shared_buffer,
)

FLOWS = FlowList(start_s=[2, 1], sender=[0, 9], size_bytes=[10, 20], priority=[0, 1], flow_id=[7, 3])

WORLDS = [
    scenarios.dumbbell(),
    scenarios.dumbbell(stack="ns3", senders=["cubic", "linuxreno"], hystart=False),
    scenarios.dumbbell(trace=RateTrace([0, 1], [5, 6], period_s=2), app=Sized(size_bytes=10)),
    scenarios.dumbbell(trace=DeliveryTrace([1, 1, 3]), app=OnOff(on_s=1, off_s=2, rate_mbps=3, random=True)),
    scenarios.dumbbell(gilbert_elliott=GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.2), buffer_packets=None),
    scenarios.last_hop(trace=RateTrace([0, 1], [5, 6])),
    shared_buffer(arrivals=FLOWS, stack="ns3", mss_bytes=1000, min_rto_ms=10, delayed_ack=1),
    shared_buffer(arrivals=[Incast(interval_s=1, fan_in=3, size_bytes=5), FLOWS], buffer_bytes=10**6, scheduler="drr"),
    shared_buffer(arrivals=FLOWS, scheme=ABM(alphas=[8, 1]), scheduler=DRR(quanta_bytes=[1, 2]), queue_cap=5),
    shared_buffer(arrivals=FLOWS, drop="head", protect_syn=True),
    shared_buffer(arrivals=FLOWS, scheme=StaticThresholds(limits=[3, 4]), scheduler="strict_priority", ping=False),
    shared_buffer(arrivals=FLOWS, scheme=AgentThresholds(betas=[1, 0.5], alphas=[0.25, 1])),
    *(scenarios.get("rlbm/default", scheme=scheme) for scheme in tuple(scenarios.SCHEMES)),
    scenarios.get("rlbm/thesis-code", cc=["cubic", "newreno"]),
    replace(
        scenarios.dumbbell(),
        udp=[
            UdpSource(path=["bottleneck"], rate_mbps=1),
            UdpSource(path=[1, 0], rate_mbps=2, packet_bytes=99, on_s=1, off_s=0.5, random=True, start_s=1, stop_s=2, name="u"),
        ],
    ),
]


@pytest.mark.parametrize("scenario", WORLDS)
def test_scenarios_survive_json(scenario):
    again = Scenario.from_dict(json.loads(json.dumps(scenario.to_dict())))
    assert again == scenario and hash(again) == hash(scenario)


@given(st.integers(0, 2**32))
def test_random_scenarios_survive_json(seed):
    scenario = scenarios.get("ppcc/random", n=3).sample(np.random.default_rng(seed))
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


def changed(path, value, world=WORLDS[2]) -> dict:
    data = json.loads(json.dumps(world.to_dict()))
    *front, last = path
    at = data
    for key in front:
        at = at[key]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], "netbuf-gym/scenario/9", "schema = 'netbuf-gym/scenario/9'; valid: 'netbuf-gym/scenario/1'"),
        (["schema"], KeyError, "schema = None"),
        (["links"], KeyError, "links = None is not a list"),
        (["flows"], {}, "flows = {} is not a list"),
        (["duration_s"], KeyError, "scenario.duration_s is missing"),
        (["duration_s"], -1, "duration_s = -1"),
        (["colour"], 1, "scenario has no field 'colour'"),
        (["links", 0], 3, r"links\[0\] = 3 is not a mapping"),
        (["links", 0, "name"], KeyError, r"links\[0\].name is missing"),
        (["links", 0, "rate"], 3, r"links\[0\] has no field 'rate'; valid: name"),
        (["links", 0, "loss"], None, "loss = None is not a number"),
        (["links", 0, "trace", "kind"], "steps", r"links\[0\].trace.kind = 'steps' is unknown; valid: rates, deliveries"),
        (["links", 0, "trace", "rate_mbps"], [5], r"links\[0\].trace: rate_mbps has 1 values for 2"),
        (["flows", 0, "app", "kind"], "ftp", r"flows\[0\].app.kind = 'ftp' is unknown; valid: bulk, sized, on_off"),
        (["flows", 0, "app", "size_bytes"], 0, r"flows\[0\].app: size_bytes = 0"),
        (["flows", 0, "path"], [9], r"flows\[0\].path link = 9"),
    ],
)
def test_damaged_descriptions_are_named(path, value, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["switches"], 3, "switches = 3 is not a list"),
        (["switches", 0, "admission", "kind"], "none", r"switches\[0\].admission.kind = 'none' is unknown; valid: static, dyn"),
        (["switches", 0, "scheduler", "kind"], "fifo", r"switches\[0\].scheduler.kind = 'fifo' is unknown; valid: round_robin"),
        (["switches", 0, "buffer_packets"], 0, r"switches\[0\]: switch 'switch': buffer_packets = 0"),
        (["switches", 0, "ports"], [99], r"switches\[0\].ports link = 99"),
        (["traffic", "senders"], KeyError, "traffic.senders = None is not a list"),
        (["traffic", "senders", 3, "cc"], "agent", r"traffic.senders\[3\]: sender.cc = 'agent'"),
        (
            ["traffic", "arrivals", 0, "kind"],
            "now",
            r"traffic.arrivals\[0\].kind = 'now' is unknown; valid: poisson, inc",
        ),
        (["traffic", "arrivals", 0, "sizes", "cumulative"], [0], r"traffic.arrivals\[0\].sizes: sizes.cumulative has 1 values"),
        (["traffic", "colour"], 1, "traffic has no field 'colour'"),
        (["traffic"], 1, "traffic = 1 is not a mapping"),
        (["probes", 0, "interval_s"], 0, r"probes\[0\]: probe.interval_s = 0"),
        (
            ["links", 0, "discipline"],
            {"kind": "wfq"},
            r"links\[0\].discipline = 'wfq' is unknown; .*valid: ack_filter, cake, codel, droptail",
        ),
        (["mss_bytes"], 5, "mss_bytes = 5"),
    ],
)
def test_damaged_descriptions_of_switches_and_traffic_are_named(path, value, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict(changed(path, value, scenarios.get("rlbm/default")))


@pytest.mark.parametrize("data", [None, 3, [], "x"])
def test_what_is_no_mapping_is_refused(data):
    with pytest.raises(ScenarioError, match="is not a mapping"):
        Scenario.from_dict(data)
