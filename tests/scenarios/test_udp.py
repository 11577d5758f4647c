import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import Flow, Link, Scenario, StaticThresholds, Switch, UdpSource
from netbuf_gym.scenarios.native import build_udp_config, build_world_config


def world(*udp, **kwargs):
    links = [Link(name="ahead", rate_mbps=10, delay_ms=10, queue_packets=60), Link(name="back", rate_mbps=5, delay_ms=10)]
    flows = [Flow(cc="newreno", path=["ahead"], return_path=["back"])]
    return Scenario(**{"links": links, "flows": flows, "duration_s": 5, "udp": udp} | kwargs)


def test_sources_become_the_cores():
    periods = {"on_s": 0.1, "off_s": 0.2, "random": True}
    made = world(UdpSource(path=["back"], rate_mbps=2.5, packet_bytes=200, start_s=1, stop_s=3, **periods))
    source = build_world_config(made).udp[0]
    assert (list(source.path), source.rate_bps, source.bytes) == ([1], 2.5e6, 200)
    assert (source.on_ns, source.off_ns, source.random_on_off) == (100_000_000, 200_000_000, True)
    assert (source.start_ns, source.stop_ns, source.priority) == (10**9, 3 * 10**9, 0)
    always = build_udp_config(UdpSource(path=[0], rate_mbps=1, priority=3))
    assert (always.on_ns, always.off_ns, always.stop_ns, always.bytes, always.priority) == (0, 0, 0, 1500, 3)


def test_mean_rate():
    assert UdpSource(path=[0], rate_mbps=3).mean_mbps == 3
    assert UdpSource(path=[0], rate_mbps=3, on_s=1, off_s=2).mean_mbps == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": []}, "udp.path is empty"),
        ({"rate_mbps": 8001, "packet_bytes": 1}, "udp.rate_mbps = 8001 is more than 1e9 packets a second; valid: 8000 or less"),
        ({"on_s": 1}, "udp.on_s = 1, udp.off_s = None; valid: both"),
        ({"off_s": 1}, "udp.off_s = 1, udp.on_s = None; valid: both"),
        ({"random": True}, "udp.random = True without periods"),
        ({"start_s": 2, "stop_s": 2}, "udp.stop_s = 2 is not after start_s = 2"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ScenarioError, match=message):
        UdpSource(**{"path": [0], "rate_mbps": 1} | changes)


def test_worlds_of_datagrams_alone_have_no_flows():
    lone = world(UdpSource(path=["ahead"], rate_mbps=1), flows=(), duration_s=0.1)
    for ask in (lambda: lone.bdp_packets, lone.propagation_rtt_ms, lambda: lone.links_of(0)):
        with pytest.raises(ScenarioError, match="the world has no flows; valid: a world with a flow, or with traffic"):
            ask()
    with pytest.raises(ScenarioError, match="no finite flow started; valid: a world whose traffic opens flows"):
        nb.simulate(lone).flow_list()


def test_refused_in_a_world():
    with pytest.raises(ScenarioError, match=r"udp\[0\].path has no link 'up'; valid: ahead, back"):
        world(UdpSource(path=["up"], rate_mbps=1))
    with pytest.raises(ScenarioTypeError, match=r"udp\[0\] = 3 is not a UdpSource"):
        world(3)
    with pytest.raises(ScenarioTypeError, match="udp = 3 is not a list"):
        world(udp=3)
    with pytest.raises(ScenarioError, match=r"udp\[1\].name = 'x' is taken by udp\[0\]; valid: unique names"):
        world(*[UdpSource(path=["back"], rate_mbps=1, name="x")] * 2)
    with pytest.raises(ScenarioError, match=r"udp\[1\].name = 'udp-1' is taken by udp\[0\]"):  # as results call the second
        world(UdpSource(path=["back"], rate_mbps=1, name="udp-1"), UdpSource(path=["back"], rate_mbps=1))
    with pytest.raises(ScenarioError, match="flows is empty; valid: at least one flow, or a traffic, or udp"):
        world(flows=())
    links = [Link(name="ahead", rate_mbps=10, delay_ms=10), Link(name="back", delay_ms=10)]
    switch = Switch(name="s", ports=["ahead"], queues=2, buffer_packets=10, admission=StaticThresholds(limits=[5, 5]))
    with pytest.raises(ScenarioError, match=r"udp\[0\].priority = 2 is beyond the 2 queues of switch 's'"):
        world(UdpSource(path=["ahead"], rate_mbps=1, priority=2), links=links, switches=[switch])
    with pytest.raises(ScenarioError, match=r"udp\[0\]: udp.rate_mbps = -1"):
        Scenario.from_dict({**world().to_dict(), "udp": [{"path": [0], "rate_mbps": -1}]})


def test_results_of_a_source():
    made = world(UdpSource(path=["ahead"], rate_mbps=4), UdpSource(path=["back"], rate_mbps=1, packet_bytes=500, name="up"))
    result = nb.simulate(made, seed=1, warmup_s=1)
    ahead, up = result.udp
    assert result.udp["up"] is up and ahead.name == "udp-0"
    assert ahead.sent_mbps == pytest.approx(4, rel=1e-3) and ahead.packets_sent == pytest.approx(4e6 * 4 / 12e3, abs=1)
    assert ahead.received_mbps == pytest.approx(ahead.sent_mbps * (1 - ahead.loss_rate), rel=0.05)
    assert 11.2 - 1e-6 <= ahead.delay_min_ms_total <= ahead.delay_mean_ms <= ahead.delay_max_ms_total <= 11.2 + 60 * 1.2 + 1e-6
    assert up.received_mbps == pytest.approx(1, rel=0.01) and up.loss_rate == 0
    assert result.flows[0].goodput_mbps == pytest.approx((10 - ahead.received_mbps) * 1448 / 1500, rel=0.03)
    assert "udp-0 (udp)" in repr(result) and result.to_dict()["udp"][1]["name"] == "up"
    assert result.to_dict()["scenario"]["udp"][1] == {"path": [1], "rate_mbps": 1.0, "packet_bytes": 500, "name": "up"}


def test_on_off_beside_a_flow_by_seed():
    made = world(UdpSource(path=["ahead"], rate_mbps=8, on_s=0.2, off_s=0.2, random=True))
    sent = [nb.simulate(made, seed=seed, sample_interval_s=None).udp[0].packets_sent for seed in (1, 1, 2)]
    assert sent[0] == sent[1] != sent[2]


def test_without_sources_there_are_none():
    result = nb.simulate(world(), seed=1, sample_interval_s=None)
    assert not result.udp and "udp" not in result.to_dict()


def test_worlds_of_datagrams_alone():
    made = world(UdpSource(path=["ahead", "back"], rate_mbps=4), flows=())
    assert made.links[made.bottleneck].name == "back" and made.buffer_packets is None and made.agents == 0
    result = nb.simulate(made, sample_interval_s=0.5)
    assert result.udp[0].received_mbps == pytest.approx(4, rel=0.02) and result.bottleneck == "back"
    assert len(result.flows) == 0 and "udp-0" in repr(result) and result.goodput_mbps == 0
