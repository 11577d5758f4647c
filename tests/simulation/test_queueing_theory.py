"""Single links with random sources of datagrams against the formulas of queueing theory."""

import math
from math import comb

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import (
    IMIX,
    Constant,
    DynamicThresholds,
    Exponential,
    Flow,
    Link,
    Lognormal,
    Scenario,
    SizeDistribution,
    Switch,
    UdpSource,
    make_self_similar_sources,
)

RATE_MBPS = 10.0


def simulate(*udp, duration_s, seed=1, **fields):
    link = Link(name="bottleneck", rate_mbps=RATE_MBPS)
    return nb.simulate(Scenario(links=[link], udp=udp, duration_s=duration_s), seed=seed, **fields)


def poisson(load, packet_bytes):
    return UdpSource(path=[0], rate_mbps=load * RATE_MBPS, packet_bytes=packet_bytes, arrivals="poisson")


def moments(packet_bytes):
    """Mean of the service time, s, and its second moment over the square of the mean."""
    law = Constant(value=packet_bytes) if isinstance(packet_bytes, int) else packet_bytes
    imix = 12 * (7 * 40**2 + 4 * 576**2 + 1500**2) / (7 * 40 + 4 * 576 + 1500) ** 2
    second = {int: 1.0, Exponential: 2.0, Lognormal: 2.0, SizeDistribution: imix}[type(packet_bytes)]
    return law.compute_mean() * 8e-6 / RATE_MBPS, second


SIZES = {
    "M/D/1": 1000,
    "M/M/1": Exponential(mean=1000),
    "M/G/1 (IMIX)": IMIX,
    "M/G/1 (lognormal)": Lognormal.of_mean(500, 500),
}


@pytest.mark.parametrize("load", [0.3, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("queue", SIZES)
def test_mean_wait_is_pollaczek_and_khinchines(queue, load):
    mean_s, second = moments(SIZES[queue])
    wait_s = load * mean_s * second / (2 * (1 - load))
    packets = 400_000
    result = simulate(poisson(load, SIZES[queue]), duration_s=packets * mean_s / load, seed=3)
    source = result.udp[0]
    assert source.sent_mbps == pytest.approx(load * RATE_MBPS, rel=4 * math.sqrt(second / packets))
    # Asymptotic deviation of a mean wait (of M/M/1: Daley, 1968), which that of steadier sizes does not exceed.
    deviation_s = mean_s * math.sqrt(load * (2 + 5 * load - 4 * load**2 + load**3) / packets) / (1 - load) ** 2 * second / 2
    assert source.delay_mean_ms * 1e-3 - mean_s == pytest.approx(wait_s, abs=3.5 * deviation_s + 1e-7)
    assert result.links["bottleneck"].queue_delay_mean_ms * 1e-3 == pytest.approx(
        source.delay_mean_ms * 1e-3 - mean_s, rel=0.02
    )


def waits(result):
    """Wait of each packet at the link, s."""
    got = result.packets[result.packets["event"] == "received"]
    return got["time_s"] - got["stamp_s"] - got["wire_bytes"] * 8e-6 / RATE_MBPS


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_waits_of_m_m_1(load):
    mean_s = moments(SIZES["M/M/1"])[0]
    wait_s = waits(simulate(poisson(load, SIZES["M/M/1"]), duration_s=150_000 * mean_s / load, packets=True))
    for times in (0.0, 0.5, 1.0, 2.0, 4.0):  # P(W > t) = load exp(-(1 - load) t / E[S])
        exceeding = (wait_s > max(times * mean_s, 1e-9)).mean()
        assert exceeding == pytest.approx(load * math.exp(-(1 - load) * times), abs=0.02)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_waits_of_m_d_1(load):
    mean_s = moments(1000)[0]
    wait_s = waits(simulate(poisson(load, 1000), duration_s=150_000 * mean_s / load, packets=True))
    for times in (0.0, 0.5, 0.9, 1.5, 2.5):  # Erlang, 1909: P(W <= t) of k <= t / D
        below = (1 - load) * sum(
            math.exp(-load * (k - times)) * (load * (k - times)) ** k / math.factorial(k) for k in range(int(times) + 1)
        )
        assert (wait_s <= times * mean_s + 1e-9).mean() == pytest.approx(below, abs=0.015)


def test_periodic_sources():
    """Of N sources of one period, N - 1 are there when a packet arrives (sum D/D/1; Roberts and Virtamo, 1991)."""
    sources, period = 10, 12.0  # in times of a packet
    packet_s = 1000 * 8e-6 / RATE_MBPS

    def exceeding(x, n=sources - 1):
        terms = range(math.floor(x) + 1, n + 1)
        share = [comb(n, k) * ((k - x) / period) ** k * (1 - (k - x) / period) ** (n - k) for k in terms]
        return sum(s * (period - n + x) / (period - k + x) for s, k in zip(share, terms, strict=True))

    grid = np.arange(0, sources, 0.01) + 0.005
    mean_wait_s = sum(exceeding(x) for x in grid) * 0.01 * packet_s
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        starts = rng.random(sources) * period * packet_s
        udp = [UdpSource(path=[0], rate_mbps=RATE_MBPS / period, packet_bytes=1000, start_s=s) for s in starts]
        result = simulate(*udp, duration_s=4 * period * packet_s, warmup_s=2 * period * packet_s)
        found.append(np.mean([one.delay_mean_ms for one in result.udp]) * 1e-3 - packet_s)
    assert np.mean(found) == pytest.approx(mean_wait_s, abs=4 * np.std(found) / math.sqrt(len(found)))


def test_poisson_gaps_are_exponential():
    result = simulate(poisson(0.5, 100), duration_s=20, packets=True)
    sent = result.packets[result.packets["event"] == "sent"]["time_s"]
    gaps = np.diff(sent) / (100 * 8e-6 / 5)
    assert gaps.mean() == pytest.approx(1, rel=0.02) and gaps.std() == pytest.approx(1, rel=0.02)
    for level in (0.1, 1, 3):
        assert (gaps > level).mean() == pytest.approx(math.exp(-level), abs=0.01)
    assert np.corrcoef(gaps[1:], gaps[:-1])[0, 1] == pytest.approx(0, abs=0.015)


def test_laws_work_at_switches_and_disciplines():
    source = UdpSource(path=[0], rate_mbps=12, packet_bytes="imix", arrivals="poisson", priority=1)
    switch = Switch(name="s", ports=[0], queues=2, buffer_bytes=20_000, admission=DynamicThresholds(alphas=[1, 1]))
    at_switch = Scenario(links=[Link(name="l", rate_mbps=10)], udp=[source], switches=[switch], duration_s=10)
    codel = Scenario(links=[Link(name="l", rate_mbps=10, queue_packets=500, discipline="codel")], udp=[source], duration_s=10)
    for world in (at_switch, codel):
        result = nb.simulate(world, seed=2)
        one = result.udp[0]
        assert one.sent_mbps == pytest.approx(12, rel=0.03) and one.loss_rate > 0.1
        assert one.received_mbps == pytest.approx(10, rel=0.02)


def test_sizes_beside_tcp():
    source = UdpSource(path=["ahead"], rate_mbps=3, packet_bytes=Exponential(mean=400), arrivals="poisson")
    links = [Link(name="ahead", rate_mbps=10, delay_ms=10, queue_packets=60), Link(name="back", delay_ms=10)]
    flow = Flow(cc="cubic", path=["ahead"], return_path=["back"])
    result = nb.simulate(Scenario(links=links, flows=[flow], udp=[source], duration_s=20), seed=1)
    assert result.udp[0].sent_mbps == pytest.approx(3, rel=0.05)
    assert result.links["ahead"].throughput_mbps == pytest.approx(10, rel=0.03)
    again = nb.simulate(Scenario(links=links, flows=[flow], udp=[source], duration_s=20), seed=1)
    assert again.udp[0] == result.udp[0]


# ---- periods


def test_periods_of_laws_have_their_share_of_time():
    fields = {"path": [0], "rate_mbps": 4.0, "packet_bytes": 500}
    for on_s, off_s in ((Exponential(mean=0.2), Exponential(mean=0.3)), (0.2, Lognormal.of_mean(0.3, 0.3))):
        source = UdpSource(**fields, on_s=on_s, off_s=off_s)
        assert source.mean_mbps == pytest.approx(1.6)
        assert simulate(source, duration_s=2000).udp[0].sent_mbps == pytest.approx(1.6, rel=0.05)
    mixed = UdpSource(**fields, on_s=0.2, off_s=0.3, random=True, arrivals="poisson")
    assert simulate(mixed, duration_s=2000).udp[0].sent_mbps == pytest.approx(1.6, rel=0.05)


def test_sources_are_found_running():
    """At a start in equilibrium the mean rate of the first moments is that of all times."""
    sources = make_self_similar_sources([0], mean_mbps=5, sources=400, hurst=0.8, peak_mbps=5 / 400 * 4, packet_bytes=100)
    result = nb.simulate(Scenario(links=[Link(name="l")], udp=sources, duration_s=0.2), seed=4)
    assert sum(one.sent_mbps for one in result.udp) == pytest.approx(5, rel=0.25)


def estimate_hurst(counts, scales):
    """H of the aggregated variance: Var of means over m counts falls as m^(2H - 2) (Leland et al., 1994)."""
    variances = [counts[: len(counts) // m * m].reshape(-1, m).mean(axis=1).var() for m in scales]
    return 1 + np.polyfit(np.log(scales), np.log(variances), 1)[0] / 2


def count_packets(sources, duration_s, bin_s, seed):
    world = Scenario(links=[Link(name="l")], udp=sources, duration_s=duration_s)
    packets = nb.simulate(world, seed=seed, packets=True).packets
    sent = packets[packets["event"] == "sent"]["time_s"]
    return np.histogram(sent, bins=int(duration_s / bin_s), range=(0, duration_s))[0]


@pytest.mark.parametrize("hurst", [0.7, 0.8, 0.9])
def test_pareto_periods_are_self_similar(hurst):
    sources = make_self_similar_sources([0], mean_mbps=1, hurst=hurst, sources=50, cycle_s=0.2, packet_bytes=1500)
    assert sum(one.mean_mbps for one in sources) == pytest.approx(1)
    counts = count_packets(sources, 2000, 0.2, seed=7)
    found = estimate_hurst(counts, np.unique(np.logspace(1, 2.3, 10).astype(int)))
    assert found == pytest.approx(hurst, abs=0.08)


def test_exponential_periods_are_not():
    periods = {"on_s": Exponential(mean=0.1), "off_s": Exponential(mean=0.1)}
    sources = [UdpSource(path=[0], rate_mbps=0.04, packet_bytes=1500, **periods) for _ in range(50)]
    counts = count_packets(sources, 2000, 0.2, seed=7)
    assert estimate_hurst(counts, np.unique(np.logspace(1, 2.3, 10).astype(int))) == pytest.approx(0.5, abs=0.08)


def test_self_similar_sources_take_fields():
    sources = make_self_similar_sources(["l"], 2, sources=4, peak_mbps=2, packet_bytes=IMIX, priority=1, name="lrd")
    assert [one.name for one in sources] == ["lrd-0", "lrd-1", "lrd-2", "lrd-3"]
    assert all(one.rate_mbps == 2 and one.priority == 1 and one.packet_bytes is IMIX for one in sources)
    with pytest.raises(ScenarioError, match=r"hurst = 0.5 is out of range; valid: 0.501 to 0.999"):
        make_self_similar_sources([0], 1, hurst=0.5)
    with pytest.raises(ScenarioError, match=r"peak_mbps = 0.1 is out of range"):
        make_self_similar_sources([0], 1, sources=5, peak_mbps=0.1)
    assert isinstance(sources[0].packet_bytes, SizeDistribution)
