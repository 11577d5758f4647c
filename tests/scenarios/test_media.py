"""Media that links share: types, ranges, messages, files, and the rest of the package beside them."""

import json
import pickle
from dataclasses import replace

import pytest

from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import (
    CELLULAR_GENERATIONS,
    MEDIA,
    WIFI_STANDARDS,
    Cellular,
    Flow,
    Link,
    RateTrace,
    Scenario,
    Wifi,
    cellular,
    dumbbell,
    wifi,
)
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.simulation import simulate

NAMED = [*(f"wifi/{one}" for one in WIFI_STANDARDS), *(f"cellular/{one}" for one in CELLULAR_GENERATIONS)]


def test_the_media_are_the_cores():
    assert set(MEDIA) == {data["name"] for data in _core.media()} == {"wifi", "cellular"}
    for kind, cls in MEDIA.items():
        assert cls().kind == kind and pickle.loads(pickle.dumps(cls())) == cls()


@pytest.mark.parametrize("kind", MEDIA)
def test_parameters_take_their_whole_range_and_no_more(kind):
    for parameter in MEDIA[kind].record.parameters:
        if parameter.kind == "truth":
            continue
        for value in (parameter.low, parameter.high):
            given = {parameter.name: int(value) if parameter.kind == "whole" else value}
            if parameter.name == "cw_min":
                given["cw_max"] = 32767
            if parameter.name == "cw_max":
                given["cw_min"] = 0
            assert getattr(MEDIA[kind](**given), parameter.name) == value
            assert MEDIA[kind](**given).capacity_mbps() > 0
            world = dumbbell(medium=MEDIA[kind](**given), duration_s=0.05)
            simulate(world, seed=1)
        with pytest.raises(ScenarioError, match=rf"{kind}\.{parameter.name} = "):
            MEDIA[kind](**{parameter.name: int(parameter.high) + 1})


@pytest.mark.parametrize("medium", [Wifi(stations=2), Cellular(snr_db=3), "wifi", {"name": "cellular", "users": 2}])
def test_a_world_survives_its_file(medium):
    world = dumbbell(medium=medium)
    data = json.loads(json.dumps(world.to_dict()))
    assert Scenario.from_dict(data) == world
    assert data["links"][0]["medium"]["kind"] in MEDIA and data["links"][1]["uplink"] is True


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link(name="a", uplink=True), "link 'a': uplink = True without a medium; valid: False"),
        (lambda: Link(name="a", gain_db=3), "link 'a': gain_db = 3 without a medium; valid: 0"),
        (lambda: Link(name="a", medium="wifi", gain_db=3), "link 'a': gain_db = 3 beside a medium that is not Cellular"),
        (lambda: Link(name="a", medium="wifi", rate_mbps=3), "link 'a': rate_mbps = 3 beside a medium; valid: one of them"),
        (lambda: Link(name="a", medium="wifi", trace=RateTrace([0], [1])), "link 'a': a trace beside a medium"),
        (lambda: Link(name="a", medium="wifi", device_packets=1), "link 'a': device_packets = 1 beside a medium; valid: 0"),
        (lambda: Link(name="a", medium="wlan"), "link 'a': medium = 'wlan' is unknown; .*valid: cellular, wifi"),
        (lambda: Link(name="a", medium={"name": "wifi", "x": 1}), "link 'a': medium: wifi has no parameter 'x'"),
        (lambda: Wifi(cw_min=31, cw_max=15), "wifi.cw_max = 15 is below cw_min"),
        (lambda: wifi("b"), "standard = 'b' is unknown; valid: a, n, ac, ax"),
        (lambda: cellular("3g"), "generation = '3g' is unknown; .*valid: lte, 5g"),
        (lambda: dumbbell(medium="wifi", rate_mbps=5), "rate_mbps = 5 beside a medium"),
        (lambda: dumbbell(medium="wifi", return_rate_mbps=5), "return_rate_mbps = 5 beside medium"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("medium", "wlan", r"links\[0\].medium = wlan: must be one of cellular wifi"),
        ("medium_parameters", {"x": 1.0}, r"links\[0\].medium_parameters\[x\]"),
        ("rate_bps", 1e6, r"links\[0\].rate_bps = .*: must be 0 beside a medium"),
        ("gain_db", 3.0, r"links\[0\].gain_db = 3: must be 0 on a medium whose channels are alike"),
        ("device_packets", 1, r"links\[0\].device_packets = 1: must be 0 beside a medium"),
    ],
)
def test_bad_input_to_the_core(field, value, message):
    config = build_world_config(dumbbell(medium="wifi"))
    links = config.links
    setattr(links[0], field, value)
    config.links = links
    with pytest.raises(ValueError, match=message):
        _core.World(config, 1)


def test_without_a_medium_the_core_takes_nothing_of_one():
    for field, value in (("uplink", True), ("gain_db", 1.0), ("medium_parameters", {"stations": 1.0})):
        config = build_world_config(dumbbell())
        links = config.links
        setattr(links[0], field, value)
        config.links = links
        with pytest.raises(ValueError, match=rf"links\[0\].{field} = .*without a medium"):
            _core.World(config, 1)


def capacity_shares(*media):
    """Mbit/s that each of several links carries whose flows take all they can."""
    links = [Link(name=f"l{i}", medium=medium, queue_packets=100, delay_ms=1) for i, medium in enumerate(media)]
    links.append(Link(name="back", delay_ms=1))
    flows = [Flow(path=[f"l{i}"], return_path=["back"]) for i in range(len(media))]
    result = simulate(Scenario(links=links, flows=flows, duration_s=4), seed=1, warmup_s=1)
    return [link.throughput_mbps for link in list(result.links)[:-1]]


@pytest.mark.parametrize("make", [wifi, cellular])
def test_equal_media_are_one_and_channels_tell_them_apart(make):
    (alone,) = capacity_shares(make())
    shared, apart = capacity_shares(make(), make()), capacity_shares(make(), make(channel=1))
    assert sum(shared) < 1.5 * alone and min(shared) > 0.25 * alone
    assert min(apart) > 0.85 * alone


@pytest.mark.parametrize("name", NAMED)
def test_named_scenarios(name):
    world = scenarios.get(name, senders=["cubic", "bbr"], duration_s=3)
    assert world.name == name and world.links[0].medium == world.links[1].medium and world.links[1].uplink
    result = simulate(world, seed=3, warmup_s=1)
    assert sum(flow.goodput_mbps for flow in result.flows) > 0.5 * world.links[0].mean_mbps()
    again, other = (json.dumps(simulate(world, seed=seed, warmup_s=1).to_dict()) for seed in (3, 4))
    first = json.dumps(result.to_dict())
    assert again == first and other.replace('"seed": 4', '"seed": 3') != first


@pytest.mark.parametrize("medium", ["wifi", "cellular"])
@pytest.mark.parametrize("discipline", ["fq_codel", "codel", {"name": "tbf", "rate_mbps": 3}])
def test_disciplines_manage_queues_of_media(medium, discipline):
    world = dumbbell(medium=medium, discipline=discipline, duration_s=4, buffer_packets=1000, senders=["cubic"] * 2)
    plain = simulate(replace(world, links=[replace(world.links[0], discipline=None), *world.links[1:]]), seed=1, warmup_s=2)
    managed = simulate(world, seed=1, warmup_s=2)
    if not isinstance(discipline, dict):
        assert managed.links[0].queue_delay_mean_ms < plain.links[0].queue_delay_mean_ms
    else:
        assert managed.links[0].throughput_mbps == pytest.approx(3, rel=0.02)


def test_loss_and_jitter_come_on_top():
    world = dumbbell(medium="wifi", loss=0.02, duration_s=3, jitter=scenarios.Jitter(distribution="uniform", scale_ms=5))
    flow = simulate(world, seed=1).flows[0]
    assert 0.01 < flow.random_losses / flow.packets_sent < 0.03


@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_both_stacks_and_access_links(stack):
    world = dumbbell(medium="wifi", stack=stack, access_mbps=1000, access_delay_ms=1, duration_s=3)
    assert simulate(world, seed=1, warmup_s=1).flows[0].goodput_mbps > 30


def test_the_live_plant_refuses():
    from netbuf_gym.plants.linux.setup import Agents, Setup

    with pytest.raises(ConfigError, match=r"links\[0\].medium = 'wifi'; valid on plant 'linux': None"):
        Setup(dumbbell(medium="wifi"), Agents(), realtime=False)
