"""Web users and flows of any law of gaps and sizes, in several topologies."""

import math

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.scenarios import (
    Constant,
    Exponential,
    Flow,
    Link,
    Lognormal,
    Pareto,
    PoissonArrivals,
    RenewalArrivals,
    Scenario,
    Sender,
    Traffic,
    WebSessions,
)

LAWS = {
    "main_bytes": Constant(value=14_480),
    "objects": Constant(value=4),
    "object_bytes": Constant(value=1448),
    "reading_s": Constant(value=1.0),
    "parsing_s": Constant(value=0.1),
}


def dumbbell(arrivals, senders=1, duration_s=10.0, **fields):
    links = [Link(name="ahead", rate_mbps=100, delay_ms=10, queue_packets=1000), Link(name="back", delay_ms=10)]
    ends = [Sender(cc="cubic", path=["ahead"], return_path=["back"])] * senders
    traffic = Traffic(senders=ends, arrivals=[arrivals])
    return Scenario(**{"links": links, "traffic": traffic, "duration_s": duration_s} | fields)


def test_a_page_takes_round_trips():
    result = nb.simulate(dumbbell(WebSessions(users=1, connections=6, **LAWS)), seed=1)
    page = result.pages[0]
    # Request 10 ms, handshake and first window 30 ms, 10 segments; the same of four objects, a segment each, after 0.1 s.
    main_s, objects_s = 0.04 + 10 * 0.12e-3, 0.04 + 4 * 0.12e-3
    assert page["load_s"] == pytest.approx(main_s + 0.1 + objects_s, abs=1e-3)
    assert (page["user"], page["sender"], page["objects"], page["size_bytes"]) == (0, 0, 5, 14_480 + 4 * 1448)
    clicks = result.pages["start_s"]
    assert 0 <= clicks[0] <= 1 and np.diff(clicks) == pytest.approx(result.pages["load_s"][:-1] + 1.0, abs=1e-6)
    assert result.page_load_s(50) == pytest.approx(float(page["load_s"]), rel=0.02)
    assert result.traffic.flows_completed >= 5 * len(result.pages)
    assert result.to_dict()["pages"]["objects"][0] == 5 and math.isnan(nb.simulate(dumbbell(FLOWS)).page_load_s())


FLOWS = PoissonArrivals(flows_per_s=5, sizes=Constant(value=1e4))


def test_connections_bound_what_is_under_way():
    loads = {}
    for connections in (1, 2, 4, None):
        arrivals = WebSessions(users=1, connections=connections, **LAWS)
        loads[connections] = nb.simulate(dumbbell(arrivals), seed=1).pages["load_s"][0]
    # One after the other: a connection of two round trips each; in one connection there is nothing to wait for.
    assert loads[1] - loads[2] == pytest.approx(2 * 0.04, abs=2e-3) and loads[2] - loads[4] == pytest.approx(0.04, abs=2e-3)
    assert loads[None] == pytest.approx(0.04 + 0.02 + 14 * 0.12e-3, abs=2e-3)


def test_users_go_to_their_servers():
    result = nb.simulate(dumbbell(WebSessions(users=5, **LAWS), senders=2), seed=2)
    assert set(result.pages["user"].tolist()) == {0, 1, 2, 3, 4}
    assert (result.pages["sender"] == result.pages["user"] % 2).all()
    assert nb.simulate(dumbbell(WebSessions(users=5, **LAWS), senders=2), seed=2).pages.tolist() == result.pages.tolist()


def test_clicks_end():
    result = nb.simulate(dumbbell(WebSessions(users=20, stop_s=3.0, **LAWS)), seed=1)
    assert result.pages["start_s"].max() < 3 and (result.pages["objects"] == 5).all()
    assert result.traffic.flows_started == 5 * len(result.pages)  # pages under way at the end are loaded whole


def test_pages_that_fail_are_given_up():
    lost = [Link(name="ahead", rate_mbps=100, delay_ms=10, loss=0.999), Link(name="back", delay_ms=10)]
    world = dumbbell(WebSessions(users=3, **LAWS), links=lost, duration_s=400, syn_retries=1)
    result = nb.simulate(world, seed=1)
    assert result.traffic.flows_failed >= 3 and len(result.pages) == 0
    assert result.traffic.flows_started > 3  # users go on


@pytest.mark.parametrize(("model", "page_bytes", "objects"), [("3gpp", 10_710 + 5.6 * 7758, 5.64), ("surge", None, 1.7)])
def test_models(model, page_bytes, objects):
    arrivals = WebSessions.of_model(model, users=20)
    assert arrivals.objects.compute_mean(1e4) == pytest.approx(objects, rel=0.03)
    if page_bytes is not None:
        assert arrivals.page_bytes == pytest.approx(page_bytes, rel=0.06)
    world = dumbbell(arrivals, senders=3, duration_s=60)
    result = nb.simulate(world, seed=3)
    assert len(result.pages) > 20 and np.median(result.pages["load_s"]) > 0.04
    assert Scenario.from_dict(world.to_dict()) == world


def test_many_users_offer_what_they_say():
    fast = {**LAWS, "reading_s": Exponential(mean=2.0), "objects": Constant(value=0)}
    arrivals = WebSessions(users=200, **fast)
    result = nb.simulate(dumbbell(arrivals, duration_s=30), seed=1)
    assert len(result.pages) == pytest.approx(200 * 30 / 2.041, rel=0.05)  # and 41 ms to load


def test_load_grows_page_times():
    times = []
    for rate_mbps in (100, 2):
        links = [Link(name="ahead", rate_mbps=rate_mbps, delay_ms=10, queue_packets=60), Link(name="back", delay_ms=10)]
        world = dumbbell(WebSessions.of_model("3gpp", users=60, reading_s=Exponential(mean=10)), links=links, duration_s=60)
        times.append(nb.simulate(world, seed=1).page_load_s(50))
    assert times[1] > 2 * times[0]


# ---- gaps and sizes of laws


def network(arrivals, **fields):
    """Two senders that share the last of three links."""
    links = [
        Link(name="a", rate_mbps=100, delay_ms=2, queue_packets=100),
        Link(name="b", rate_mbps=50, delay_ms=3, queue_packets=100),
        Link(name="bottleneck", rate_mbps=40, delay_ms=5, queue_packets=200),
        Link(name="back", delay_ms=10),
    ]
    senders = [Sender(cc="cubic", path=[name, "bottleneck"], return_path=["back"]) for name in "ab"]
    return Scenario(links=links, traffic=Traffic(senders=senders, arrivals=[arrivals]), **{"duration_s": 200} | fields)


def test_settings_of_named_scenarios():
    arrivals = [{"kind": "poisson", "flows_per_s": 5, "sizes": {"kind": "pareto", "minimum": 3000, "shape": 1.5}}]
    traffic = {"senders": [{"cc": "cubic", "path": ["bottleneck"], "return_path": ["return"]}], "arrivals": arrivals}
    udp = [{"path": ["bottleneck"], "rate_mbps": 1, "packet_bytes": "imix", "arrivals": "poisson"}]
    world = nb.scenarios.get("ppcc/2", udp=udp, traffic=traffic)
    assert world.udp[0].arrivals == "poisson" and world.traffic.arrivals[0].sizes == Pareto(minimum=3000, shape=1.5)
    env = gym.make("netbuf/CongestionWindow-v0", scenario={"name": "ppcc/2", "udp": udp, "traffic": traffic})
    env.reset(seed=1)
    assert not env.step(env.action_space.sample())[2]
    with pytest.raises(ScenarioError, match=r"udp\[0\] has no field 'rate'; valid: path, rate_mbps"):
        nb.scenarios.get("ppcc/2", udp=[{"path": [0], "rate": 1}])


@pytest.mark.parametrize("make", [dumbbell, network])
@pytest.mark.parametrize("gap", [Exponential(mean=0.1), Lognormal.of_mean(0.1, 0.2), Constant(value=0.1)])
def test_gaps_follow_their_law(make, gap):
    result = nb.simulate(make(RenewalArrivals(gap_s=gap, sizes=Constant(value=5000)), duration_s=400), seed=2)
    gaps = np.diff(result.opened["start_s"])
    assert len(gaps) == pytest.approx(4000, rel=0.12)
    draws = gap.draw(100_000)
    for level in (0.02, 0.1, 0.3):
        assert (gaps > level + 1e-8).mean() == pytest.approx((draws > level + 1e-8).mean(), abs=0.03)
    assert (result.opened["size_bytes"] == 5000).all()


@pytest.mark.parametrize("sizes", [Pareto(minimum=3000, shape=1.3, high=1e7), Lognormal.of_mean(2e4, 5e4)])
def test_sizes_follow_their_law(sizes):
    arrivals = PoissonArrivals.for_load(0.3, rate_mbps=40, sizes=sizes)
    assert arrivals.offered_mbps == pytest.approx(12)
    result = nb.simulate(network(arrivals), seed=1)
    draws = sizes.draw(200_000)
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(result.opened["size_bytes"], share) == pytest.approx(np.quantile(draws, share), rel=0.06)
    assert set(result.opened["sender"].tolist()) == {0, 1}
    assert len(result.opened) == pytest.approx(arrivals.flows_per_s * 200, rel=0.05)


def test_flows_beside_others():
    flow = Flow(cc="cubic", path=["a", "bottleneck"], return_path=["back"])
    result = nb.simulate(network(FLOWS, flows=[flow], duration_s=20), seed=1)
    assert result.flows[0].goodput_mbps > 20 and result.traffic.flows_completed > 50


def test_web_is_refused_where_it_cannot_be():
    with pytest.raises(ConfigError, match=r"traffic\.arrivals\[0\] = 'web'; valid on plant 'linux': arrivals that do not wait"):
        Setup(dumbbell(WebSessions(users=1, **LAWS)), Agents())
    with pytest.raises(
        ScenarioError, match=r"traffic.arrivals\[0\].users = 1e\+06 makes .* flows in duration_s = 1000; valid: "
    ):
        dumbbell(WebSessions(users=1_000_000, **LAWS), duration_s=1000)
    with pytest.raises(ScenarioError, match=r"web\.connections = 0"):
        WebSessions(users=1, connections=0, **LAWS)
