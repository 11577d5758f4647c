"""No link carries more than it can: over any window and any interval, whatever its rate does and whatever stands before it."""

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.scenarios import DISCIPLINES, DeliveryTrace, Flow, Link, RateTrace, Scenario, Switch

CONTROLS = ("cubic", "newreno", "bbr", "vegas", "westwood")
LEAST_BYTES = 40


def random_rate(rng, duration_s):
    """What a link is made with: a rate, steps with outages, or delivery opportunities; periods of any length or none."""
    kind, rate = rng.integers(4), float(10 ** rng.uniform(-0.5, 1.7))
    if kind == 0:
        return {"rate_mbps": rate}
    if kind == 1:
        times = np.sort(rng.uniform(0, duration_s * 1.2, 200 if rng.random() < 0.3 else 12))
        return {"trace": DeliveryTrace(times * 1e3, period_ms=float(times[-1] * 1e3 * rng.choice([1, 1.1])))}
    time_s = np.append(0, np.cumsum(rng.exponential(duration_s / 10, 6) + 1e-4))
    rates = np.where(rng.random(7) < 0.3, 0.0, rate * 10 ** rng.uniform(-2, 0.5, 7))
    rates[-1] = rate
    return {"trace": RateTrace(time_s, rates, period_s=float(time_s[-1] + 0.1) if kind == 2 else None)}


def random_world(rng):
    duration_s = float(rng.uniform(0.5, 4))
    queue = {"queue_packets": int(rng.integers(2, 60))}
    links = [Link(name="bottleneck", delay_ms=float(rng.uniform(0, 40)), **queue, **random_rate(rng, duration_s))]
    switches = []
    if rng.random() < 0.3:
        links[0] = Link(name="bottleneck", delay_ms=5, device_packets=int(rng.integers(0, 200)), **random_rate(rng, duration_s))
        switches.append(Switch(name="switch", ports=[0], buffer_packets=100))
    elif rng.random() < 0.6:
        discipline, device = str(rng.choice(list(DISCIPLINES))), int(rng.choice([0, 1, 300]))
        links[0] = Link(
            name="bottleneck", delay_ms=5, device_packets=device, discipline=discipline, **queue, **random_rate(rng, duration_s)
        )
    links.append(Link(name="back", delay_ms=float(rng.uniform(0, 200)), rate_mbps=float(10 ** rng.uniform(-1, 2))))
    flows = []
    for i in range(int(rng.integers(1, 4))):  # with links of their own on either side, some of them slow
        ends = []
        for end in ("before", "after", "last"):
            rate = float(10 ** rng.uniform(0, 2))
            ends.append(Link(name=f"{end}-{i}", delay_ms=float(rng.uniform(0, 100)), rate_mbps=rate, loss=0.01))
        first = len(links)
        links += ends
        cc = str(rng.choice(CONTROLS))
        flows.append(Flow(cc=cc, path=(first, 0, first + 1), return_path=(1, first + 2), start_s=float(rng.uniform(0, 0.2))))
    return Scenario(links=links, flows=flows, switches=switches, duration_s=duration_s)


def carried_mbit(link, time_s):
    return np.array([link.mean_mbps(float(t)) * t if t else 0.0 for t in time_s])


def peak_mbps(link):
    return float(link.trace.rate_mbps.max()) if isinstance(link.trace, RateTrace) else link.rate_mbps or 0.0


@pytest.mark.parametrize("seed", range(40))
def test_no_link_carries_more_than_it_can(seed):
    rng = np.random.default_rng(seed)
    world = random_world(rng)
    warmup_s = float(rng.choice([0.0, rng.uniform(0, world.duration_s * 0.999)]))
    result = nb.simulate(world, seed=seed, sample_interval_s=float(10 ** rng.uniform(-3, -0.5)), warmup_s=warmup_s)
    time_s, throughput = result.series["time_s"], result.series["throughput_mbps"]
    spans_s = np.diff(time_s, prepend=0.0)
    total = 0.0
    for i, link in enumerate(world.links):
        seen = result.links[i]
        assert np.isnan(seen.utilisation) or -1e-9 <= seen.utilisation <= 1 + 1e-9, link
        sent = throughput[:, i] * spans_s
        # Every transmission ends at a whole nanosecond, at most half of one early.
        early = peak_mbps(link) * 1e-9 * (2 + sent * 1e6 / 8 / LEAST_BYTES)
        assert (sent >= -1e-12).all(), link
        assert (sent <= np.diff(carried_mbit(link, time_s), prepend=0.0) + early + 1e-9).all(), link
        window_s = world.duration_s - warmup_s
        offered = np.diff(carried_mbit(link, [warmup_s, world.duration_s]))[0]
        assert seen.throughput_mbps * window_s <= offered + 1e-9 + early.max() * len(time_s), link
        total += sent.sum()
    assert total > 0


def test_what_a_device_holds_is_not_sent():
    """200 packets in a device's ring: a link of 8 Mbit/s has sent what 8 Mbit/s carry."""
    links = [Link(name="bottleneck", rate_mbps=8, delay_ms=10, discipline="codel", device_packets=1000)]
    links.append(Link(name="back", delay_ms=10))
    flow = Flow(cc="newreno", path=(0,), return_path=(1,), initial_cwnd_packets=300)
    result = nb.simulate(Scenario(links=links, flows=[flow], duration_s=0.1), sample_interval_s=0.01)
    link = result.links["bottleneck"]
    assert link.packets_out > 300 and link.utilisation == pytest.approx(0.8, rel=1e-3)  # from the handshake on, 20 ms
    assert result.series["throughput_mbps"][:, 0].max() == pytest.approx(8, rel=1e-9)


@pytest.mark.parametrize("warmup_s", [0.3, 1.234, 2.9])
@pytest.mark.parametrize("trace", [None, RateTrace([0, 0.5, 1.1], [0.05, 0, 0.15], 2.0), RateTrace([0, 1], [100, 1e-4])])
def test_a_busy_link_is_used_at_most_whole(trace, warmup_s):
    """Counters of a window are differences of large sums, whose rounding is no utilisation."""
    for device, packets in ((None, 0), ("codel", 10)):
        bottleneck = Link(
            name="bottleneck",
            rate_mbps=None if trace else 0.05,
            trace=trace,
            delay_ms=5,
            queue_packets=1000,
            discipline=device,
            device_packets=packets,
        )
        flows = [Flow(cc="cubic", path=(0,), return_path=(1,))] * 5
        world = Scenario(links=[bottleneck, Link(name="back", delay_ms=5)], flows=flows, duration_s=3.37)
        used = nb.simulate(world, sample_interval_s=None, warmup_s=warmup_s).links["bottleneck"].utilisation
        assert 0.9 < used <= 1


def test_a_link_of_one_flow_counts_what_has_reached_it():
    """As fast as the first and 400 ms behind it: what is under way to it has not been sent by it."""
    links = [Link(name="first", rate_mbps=8, delay_ms=400), Link(name="second", rate_mbps=8, delay_ms=0), Link(name="back")]
    flow = Flow(cc="newreno", path=(0, 1), return_path=(2,), initial_cwnd_packets=1000)
    for duration_s in (0.6, 1.0, 1.3):
        result = nb.simulate(Scenario(links=links, flows=[flow], duration_s=duration_s), sample_interval_s=0.1)
        sent = result.links["second"].throughput_mbps * duration_s / 8 * 1e6
        # The SYN gets there at 400.06 ms; its answer lets data set out at once, which gets there 400 ms later.
        at = duration_s * 1e6
        assert sent == pytest.approx(60 + max(0.0, at - 800_120 - 60), abs=2000)
        assert result.links["second"].packets_in <= 2 + max(0, at - 800_120) / 1500 + 1
        assert result.links["second"].utilisation <= 1


def test_a_packet_in_an_outage_goes_on_when_the_link_is_back():
    """1 kbit/s from 0.1 to 0.2 s: the packet in service is done a millisecond after that, not after 12 s."""
    trace = RateTrace([0, 0.1, 0.2], [12, 0.001, 12])
    links = [Link(name="bottleneck", trace=trace, delay_ms=5), Link(name="back", delay_ms=5)]
    flow = Flow(cc="newreno", path=(0,), return_path=(1,))
    result = nb.simulate(Scenario(links=links, flows=[flow], duration_s=0.4), sample_interval_s=0.05)
    sent = result.series["throughput_mbps"][:, 0]
    assert sent[2:4] == pytest.approx(0.001, rel=1e-6) and sent[5:] == pytest.approx(12, rel=0.01)


@pytest.mark.parametrize("queue", [{}, {"discipline": "codel"}, {"discipline": "droptail", "device_packets": 2}], ids=str)
def test_a_packet_is_too_late_for_an_opportunity_of_its_instant(queue):
    """What the SYN of 10 ms sets off comes at 50 ms and waits for 60 and 70 ms: as if it came a nanosecond later."""
    trace, found = DeliveryTrace(np.arange(10.0, 1001.0, 10.0), packet_overhead_bytes=0), []
    flow = Flow(cc="newreno", path=(0,), return_path=(1,), initial_cwnd_packets=1)
    for delay_ms in (20, 20 + 1e-6, 20 - 1e-6):
        links = [Link(name="bottleneck", trace=trace, delay_ms=20, **queue), Link(name="back", delay_ms=delay_ms)]
        found.append(nb.simulate(Scenario(links=links, flows=[flow], duration_s=0.115)).flows[0].rtt_min_ms)
    assert found == pytest.approx([60, 60, 50], abs=1e-3)
