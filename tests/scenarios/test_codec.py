import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import DeliveryTrace, GilbertElliott, OnOff, RateTrace, Scenario, Sized

WORLDS = [
    scenarios.dumbbell(),
    scenarios.dumbbell(stack="ns3", senders=["cubic", "linuxreno"], hystart=False),
    scenarios.dumbbell(trace=RateTrace([0, 1], [5, 6], period_s=2), app=Sized(size_bytes=10)),
    scenarios.dumbbell(trace=DeliveryTrace([1, 1, 3]), app=OnOff(on_s=1, off_s=2, rate_mbps=3, random=True)),
    scenarios.dumbbell(gilbert_elliott=GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.2), buffer_packets=None),
    scenarios.last_hop(trace=RateTrace([0, 1], [5, 6])),
]


@pytest.mark.parametrize("scenario", WORLDS)
def test_scenarios_survive_json(scenario):
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


@given(st.integers(0, 2**32))
def test_random_scenarios_survive_json(seed):
    scenario = scenarios.get("ppcc/random", n=3).sample(np.random.default_rng(seed))
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


def changed(path, value) -> dict:
    data = json.loads(json.dumps(WORLDS[2].to_dict()))
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


@pytest.mark.parametrize("data", [None, 3, [], "x"])
def test_what_is_no_mapping_is_refused(data):
    with pytest.raises(ScenarioError, match="is not a mapping"):
        Scenario.from_dict(data)
