"""Laws of queues, of their disciplines, and of random loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import netbuf_gym as nb
from netbuf_gym.scenarios import GilbertElliott, Link, Scenario, UdpSource, dumbbell
from netbuf_gym.scenarios.limits import MAX_DATAGRAM_BYTES
from netbuf_gym.simulation.results import Result
from netbuf_gym.simulation.results.flows import LinkResult
from studies.validation.laws import Comparison, Law, make_grid

QUEUE = 0
SOURCES = 2000
"""Sources whose sum stands for a Poisson process: each sends once in thousands of services."""
SETTLED = 5
"""CoDel's drops after which its inverse root, improved by one Newton step a drop, is accurate."""


def _make_datagram_world(sources: Sequence[UdpSource], duration_s: float, **link: Any) -> Scenario:
    """Return a world of datagrams over one link."""
    return Scenario(links=[Link(name="bottleneck", **link)], udp=sources, duration_s=duration_s)


def _make_sources(rates_mbps: Sequence[float], sizes: Sequence[int]) -> list[UdpSource]:
    """Return sources of these mean rates and datagrams, on half of the time for a datagram's time on average each."""
    made = []
    for rate_mbps, size in zip(rates_mbps, sizes, strict=True):
        on_s = size * 8e-6 / (2 * rate_mbps)
        made.append(UdpSource(path=(QUEUE,), rate_mbps=2 * rate_mbps, packet_bytes=size, on_s=on_s, off_s=on_s, random=True))
    return made


def _run(world: Scenario, seed: int = 1, warmup: float = 0.1) -> Result:
    return nb.simulate(world, seed, warmup_s=warmup * world.duration_s, sample_interval_s=None)


def _simulate_poisson(rate_mbps: float, load: float, sizes: Sequence[int], packets: float) -> LinkResult:
    """Return a link without limit under a sum of sources of equal packet rates and these sizes."""
    per_s = load * rate_mbps * 1e6 / 8 / float(np.mean(sizes))
    rates_mbps = [per_s / len(sizes) * size * 8e-6 for size in sizes]
    world = _make_datagram_world(_make_sources(rates_mbps, sizes), packets / per_s, rate_mbps=rate_mbps)
    return _run(world).links["bottleneck"]


def _compare_waiting(rate_mbps: float, load: float, sizes: Sequence[int]) -> Comparison:
    services_ms = np.asarray(sizes) * 8e-3 / rate_mbps
    due_ms = load * float((services_ms**2).mean() / services_ms.mean()) / (2 * (1 - load))
    return Comparison.of_value(due_ms, _simulate_poisson(rate_mbps, load, sizes, 1e6).queue_delay_mean_ms)


def compare_md1(rate_mbps: float, load: float) -> Comparison:
    """Compare the mean wait of datagrams of one size, ms, with Pollaczek and Khinchine's."""
    return _compare_waiting(rate_mbps, load, [1000] * SOURCES)


def compare_mm1(rate_mbps: float, load: float) -> Comparison:
    """Compare the mean wait of datagrams of exponential sizes, ms, with Pollaczek and Khinchine's."""
    sizes = -600 * np.log(1 - (np.arange(SOURCES) + 0.5) / SOURCES)
    return _compare_waiting(rate_mbps, load, np.clip(np.round(sizes), 1, MAX_DATAGRAM_BYTES).astype(int).tolist())


def compare_lindley(rate_mbps: float, load: float, sources: int) -> Comparison:
    """Compare the wait of the datagram that differs most from Lindley's recursion, ms, with it."""
    sizes = np.linspace(100, 1500, sources).astype(int).tolist()
    rates_mbps = [load * rate_mbps / sources] * sources
    world = _make_datagram_world(_make_sources(rates_mbps, sizes), 5000 * 800 * 8e-6 / rate_mbps, rate_mbps=rate_mbps)
    packets = nb.simulate(world, packets=True, sample_interval_s=None).packets
    packets = packets[packets["kind"] == "datagram"]
    sent, received = (packets[packets["event"] == event] for event in ("sent", "received"))
    arrivals_s, ends_s = sent["time_s"][: len(received)], received["time_s"]
    services_s = received["wire_bytes"] * 8e-6 / rate_mbps
    waits_s, wait_s = np.zeros(len(received)), 0.0
    for i in range(1, len(received)):
        wait_s = max(0.0, wait_s + services_s[i - 1] - (arrivals_s[i] - arrivals_s[i - 1]))
        waits_s[i] = wait_s
    ours_s = ends_s - arrivals_s - services_s
    worst = int(np.abs(ours_s - waits_s).argmax())
    spent = waits_s[worst] + services_s[worst]
    return Comparison.of_value(float(spent * 1e3), float((ours_s + services_s)[worst] * 1e3))


def compare_little(rate_mbps: float, rtt_ms: float, cc: str, discipline: str) -> Comparison:
    """Compare the mean number of packets that wait with their rate times their mean wait; drops are of arrivals alone."""
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc] * 3, discipline=discipline, duration_s=120)
    link = _run(world).links["bottleneck"]
    span_s = 0.9 * world.duration_s
    return Comparison.of_value(link.packets_out / span_s * link.queue_delay_mean_ms * 1e-3, link.queue_mean_packets)


def _simulate_burst_loss(good_to_bad: float, bad_to_good: float, loss_bad: float) -> np.ndarray:
    """Return whether each of half a million datagrams was lost."""
    chain = GilbertElliott(p_good_to_bad=good_to_bad, p_bad_to_good=bad_to_good, loss_bad=loss_bad)
    source = UdpSource(path=(QUEUE,), rate_mbps=10, packet_bytes=1250)
    world = _make_datagram_world([source], 500.0, rate_mbps=100, gilbert_elliott=chain)
    packets = nb.simulate(world, packets=True, sample_interval_s=None).packets
    ends = packets[(packets["kind"] == "datagram") & np.isin(packets["event"], ("received", "lost"))]
    return ends["event"] == "lost"


def compare_gilbert_loss(good_to_bad: float, bad_to_good: float, loss_bad: float) -> Comparison:
    """Compare the share of datagrams lost with that of the bad state times its loss."""
    lost = _simulate_burst_loss(good_to_bad, bad_to_good, loss_bad)
    return Comparison.of_value(good_to_bad / (good_to_bad + bad_to_good) * loss_bad, float(lost.mean()))


def compare_gilbert_bursts(good_to_bad: float, bad_to_good: float) -> Comparison:
    """Compare the mean length of runs of lost datagrams with the bad state's."""
    lost = _simulate_burst_loss(good_to_bad, bad_to_good, 1.0)
    runs = int((np.diff(lost.astype(int), prepend=0) == 1).sum())
    return Comparison.of_value(1 / bad_to_good, float(lost.sum() / runs))


def compare_policer(rate_mbps: float, token_mbps: float, burst_bytes: int, time_s: float) -> Comparison:
    """Compare the bytes that pass a token bucket in a time with its burst and its rate, to a datagram."""
    source = UdpSource(path=(QUEUE,), rate_mbps=rate_mbps, packet_bytes=1000)
    discipline = {"name": "policer", "rate_mbps": token_mbps, "burst_bytes": burst_bytes}
    world = _make_datagram_world([source], time_s, rate_mbps=10 * rate_mbps, discipline=discipline)
    due = min(burst_bytes + token_mbps * 1e6 / 8 * time_s, rate_mbps * 1e6 / 8 * time_s)
    passed = nb.simulate(world, sample_interval_s=None).links["bottleneck"].packets_out * 1000
    return Comparison(due - 1000, due + 1000, passed)


def compare_red(rate_mbps: float, overload: float, max_probability: float) -> Comparison:
    """Compare the mean queue, packets, with the one at which RED drops what is too much.

    Gaps between drops are uniform from 1 to 1/p arrivals, so that the share dropped is 2p / (1 + p).
    """
    least, most = 20, 120
    share = 1 - 1 / (1 + overload)
    due = least + share / (2 - share) / max_probability * (most - least)
    red = {"name": "red", "min_packets": least, "max_packets": most, "max_probability": max_probability, "weight": 0.002}
    sources = _make_sources([rate_mbps * (1 + overload) / 50] * 50, [1000] * 50)
    world = _make_datagram_world(sources, 200_000 * 8e-3 / rate_mbps, rate_mbps=rate_mbps, queue_packets=1000, discipline=red)
    return Comparison.of_value(due, _run(world).links["bottleneck"].queue_mean_packets)


def compare_codel(rate_mbps: float, overload: float, interval_ms: float, drops: int) -> Comparison:
    """Compare the time from CoDel's fifth drop to a later one, ms, with the sum of interval / sqrt(k)."""
    source = UdpSource(path=(QUEUE,), rate_mbps=(1 + overload) * rate_mbps, packet_bytes=1000)
    discipline = {"name": "codel", "interval_ms": interval_ms, "target_ms": interval_ms / 20}
    due_ms = interval_ms * float((1 / np.sqrt(np.arange(SETTLED, drops))).sum())
    world = _make_datagram_world([source], 3 * due_ms * 1e-3 + 2, rate_mbps=rate_mbps, discipline=discipline)
    packets = nb.simulate(world, packets=True, sample_interval_s=None).packets
    times_s = packets["time_s"][packets["event"] == "dropped"]
    return Comparison.of_value(due_ms, float(times_s[drops - 1] - times_s[SETTLED - 1]) * 1e3)


def compare_pie(rate_mbps: float, target_ms: float, flows: int) -> Comparison:
    """Compare the mean wait of TCP's packets under PIE, ms, with its target."""
    discipline = {"name": "pie", "target_ms": target_ms}
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=60, senders=["newreno"] * flows, buffer_packets=1000, discipline=discipline)
    return Comparison.of_value(target_ms, _run(world, warmup=0.3).links["bottleneck"].queue_delay_mean_ms)


def _simulate_dualpi2(rate_mbps: float, rtt_ms: float, flows: int, **parameters: Any) -> Result:
    """Return as many Prague as ECN-capable CUBIC flows under DualPI2."""
    discipline = {"name": "dualpi2", **parameters}
    senders = ["prague"] * flows + ["cubic"] * flows
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=senders, buffer_packets=10_000, discipline=discipline)
    marked = [replace(flow, ecn=True) if flow.cc == "cubic" else flow for flow in world.flows]
    return _run(replace(world, flows=marked, duration_s=200, start_jitter_ms=200), warmup=0.3)


def compare_coupling(rate_mbps: float, rtt_ms: float, flows: int, coupling: int) -> Comparison:
    """Compare the share of marked packets of the classic flows with the square of L4S' over k, where no step marks."""
    result = _simulate_dualpi2(rate_mbps, rtt_ms, flows, coupling_factor=coupling, step_thresh_ms=10_000)
    shares = []
    for part in (result.flows[:flows], result.flows[flows:]):
        shares.append(sum(one.marks for one in part) / sum(one.packets_sent for one in part))
    return Comparison.of_value((shares[0] / coupling) ** 2, shares[1])


def compare_balance(rate_mbps: float, rtt_ms: float, flows: int) -> Comparison:
    """Compare the ratio of Prague's to CUBIC's rate under DualPI2 with about 1."""
    result = _simulate_dualpi2(rate_mbps, rtt_ms, flows)
    rates = [sum(one.goodput_mbps for one in part) for part in (result.flows[:flows], result.flows[flows:])]
    return Comparison(0.5, 2.0, rates[0] / rates[1])


LAWS = (
    Law(
        name="lindley",
        title="waits in a queue",
        source="Lindley 1952",
        formula="W' = max(0, W + S - A), every datagram",
        compare=compare_lindley,
        worlds=make_grid(rate_mbps=(1, 40, 1000), load=(0.5, 0.9, 1.1), sources=(5, 50)),
        middle=1e-9,
        largest=1e-9,
    ),
    Law(
        name="md1",
        title="M/D/1",
        source="Pollaczek 1930, Khinchine 1932",
        formula="W = rho S / (2 (1 - rho))",
        compare=compare_md1,
        worlds=make_grid(rate_mbps=(10, 1000), load=(0.3, 0.6, 0.8)),
        middle=0.02,
        largest=0.05,
    ),
    Law(
        name="mm1",
        title="M/M/1",
        source="Pollaczek 1930, Khinchine 1932",
        formula="W = rho E[S^2] / (2 E[S] (1 - rho))",
        compare=compare_mm1,
        worlds=make_grid(rate_mbps=(10, 1000), load=(0.3, 0.6, 0.8)),
        middle=0.02,
        largest=0.05,
    ),
    Law(
        name="little",
        title="Little's law",
        source="Little 1961",
        formula="L = lambda W",
        compare=compare_little,
        worlds=make_grid(rate_mbps=(5, 50), rtt_ms=(20, 100), cc=("cubic", "bbr"), discipline=("droptail", "red", "pie")),
        middle=0.002,
        largest=0.01,
    ),
    Law(
        name="gilbert-loss",
        title="bursty loss",
        source="Gilbert 1960, Elliott 1963",
        formula="p / (p + r) h",
        compare=compare_gilbert_loss,
        worlds=make_grid(good_to_bad=(0.003, 0.03), bad_to_good=(0.1, 0.5), loss_bad=(0.5, 1.0)),
        middle=0.05,
        largest=0.15,
    ),
    Law(
        name="gilbert-bursts",
        title="length of bursts of loss",
        source="Gilbert 1960",
        formula="1 / r",
        compare=compare_gilbert_bursts,
        worlds=make_grid(good_to_bad=(0.003, 0.03), bad_to_good=(0.1, 0.25, 0.5)),
        middle=0.03,
        largest=0.1,
    ),
    Law(
        name="policer",
        title="token bucket",
        source="RFC 2697",
        formula="burst + rate x time, to a datagram",
        compare=compare_policer,
        worlds=make_grid(rate_mbps=(20,), token_mbps=(1, 10), burst_bytes=(5000, 100_000), time_s=(0.05, 1, 10)),
        middle=1e-9,
        largest=1e-9,
    ),
    Law(
        name="red",
        title="RED's probability",
        source="Floyd and Jacobson 1993",
        formula="p = max_p (q - min) / (max - min), share dropped 2p / (1 + p)",
        compare=compare_red,
        worlds=make_grid(rate_mbps=(5, 50), overload=(0.02, 0.05, 0.1), max_probability=(0.1, 0.2)),
        middle=0.05,
        largest=0.15,
    ),
    Law(
        name="codel",
        title="spacing of CoDel's drops",
        source="RFC 8289, 3.2",
        formula="interval / sqrt(k) after drop k, from the fifth on",
        compare=compare_codel,
        worlds=make_grid(rate_mbps=(10, 100), overload=(0.5,), interval_ms=(50, 100), drops=(10, 30, 100)),
        middle=0.01,
        largest=0.03,
    ),
    Law(
        name="pie",
        title="PIE's delay",
        source="RFC 8033, 4",
        formula="mean wait = target",
        compare=compare_pie,
        worlds=make_grid(rate_mbps=(10, 50), target_ms=(15, 30), flows=(5, 20)),
        middle=0.15,
        largest=0.3,
    ),
    Law(
        name="coupling",
        title="coupling of DualPI2",
        source="RFC 9332, 2.1",
        formula="p_C = (p_L / k)^2",
        compare=compare_coupling,
        worlds=make_grid(rate_mbps=(50, 100, 200), rtt_ms=(20, 50), flows=(10,), coupling=(2, 4)),
        middle=0.1,
        largest=0.2,
    ),
    Law(
        name="balance",
        title="L4S beside classic flows",
        source="RFC 9332, 2.1",
        formula="Prague's rate is half to twice CUBIC's",
        compare=compare_balance,
        worlds=make_grid(rate_mbps=(20, 50, 100), rtt_ms=(10, 25, 50), flows=(1, 2)),
        middle=0.1,
        largest=0.3,
    ),
)
