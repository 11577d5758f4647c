"""Worlds whose paths change: arrivals against times computed here, distributions, outages, reordering, traffic both ways."""

from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.scenarios import (
    DelaySchedule,
    DeliveryTrace,
    Flow,
    Jitter,
    Link,
    LossSchedule,
    Probe,
    RateTrace,
    Scenario,
    Sized,
    delay_walk,
    dumbbell,
    leo_delays,
    route_change,
)

MS = 1_000_000
DELAYS = DelaySchedule([0, 1.5, 2.25, 3, 3.0005], [20, 70.25, 5, 90, 1], period_s=4.003)


def probed(link, interval_s=0.01, size_bytes=64, duration_s=10.0, seed=1):
    """One-way delays of packets over a link, in the order in which they arrive, s; and the result."""
    quiet = [Link(name="quiet", rate_mbps=1), Link(name="back", delay_ms=1)]
    flow = Flow(cc="cubic", path=["quiet"], return_path=["back"], app=Sized(size_bytes=1))
    probe = Probe(path=[link.name], interval_s=interval_s, bytes=size_bytes)
    world = Scenario(links=[link, *quiet], flows=[flow], probes=[probe], duration_s=duration_s)
    result = nb.simulate(world, seed=seed)
    return result.probes[0].delays_s, result


def expected(delays, rate_mbps, interval_ns, size_bytes, end_ns):
    """The same from the definition: sent every interval, first in first out, each with the delay of its beginning."""
    service = round(size_bytes * 8e3 / rate_mbps)
    period = round(delays.period_s * 1e9)
    times = [round(t * 1e9) for t in delays.time_s]
    free = last = 0
    found = []
    for sent in range(0, end_ns + 1, interval_ns):
        begin = max(sent, free)
        free = begin + service
        step = max(i for i, t in enumerate(times) if t <= begin % period)
        arrival = free + round(delays.delay_ms[step] * MS)
        if not delays.reorder:
            arrival = last = max(last, arrival)
        found.append((arrival, sent))
    return [(arrival - sent) * 1e-9 for arrival, sent in sorted(found) if arrival <= end_ns]


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("interval_s, size_bytes", [(0.01, 64), (0.001, 1000), (0.001, 1260)])
def test_arrivals_are_those_of_the_definition(reorder, interval_s, size_bytes):
    delays = DelaySchedule(DELAYS.time_s, DELAYS.delay_ms, DELAYS.period_s, reorder)
    found, result = probed(Link(name="a", rate_mbps=10, delay_ms=delays), interval_s, size_bytes)
    due = expected(delays, 10, round(interval_s * 1e9), size_bytes, 10**10)
    assert len(found) == len(due) and result.probes[0].sent == round(10 / interval_s) + 1
    np.testing.assert_allclose(np.sort(found), np.sort(due), rtol=0, atol=1.1e-9)  # some arrive together
    other = expected(replace(delays, reorder=not reorder), 10, round(interval_s * 1e9), size_bytes, 10**10)
    assert not np.isclose(np.sum(due), np.sum(other))


@pytest.mark.parametrize("fields", [{"trace": RateTrace([0], [10])}, {"rate_mbps": 10, "discipline": "droptail"}])
def test_links_of_every_kind_have_the_same_delays(fields):
    plain, _ = probed(Link(name="a", rate_mbps=10, delay_ms=DELAYS), 0.001, 1000)
    other, _ = probed(Link(name="a", delay_ms=DELAYS, **fields), 0.001, 1000)
    np.testing.assert_allclose(np.sort(other), np.sort(plain), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "jitter, mean, quantiles",
    [
        (Jitter(scale_ms=10), 5, {10: 1, 50: 5, 90: 9}),
        (Jitter(distribution="exponential", scale_ms=10), 10, {10: 1.0536, 50: 6.9315, 90: 23.026}),
        (Jitter(distribution="normal", scale_ms=2, mean_ms=10), 10, {10: 7.4369, 50: 10, 90: 12.563}),
        (Jitter(distribution="pareto", scale_ms=10, shape=3), 5, {10: 0.3574, 50: 2.5992, 90: 11.544}),
    ],
    ids=lambda value: getattr(value, "distribution", None),
)
@pytest.mark.parametrize("correlation", [0, 0.8])
def test_jitter_is_distributed_as_said(jitter, mean, quantiles, correlation):
    jitter = replace(jitter, correlation=correlation, reorder=True)
    found, _ = probed(Link(name="a", rate_mbps=1000, delay_ms=3, jitter=jitter), 0.001, 100, duration_s=60)
    extra = found * 1e3 - 3 - 0.0008
    assert extra.min() >= -1e-6 and len(extra) > 59_000
    wide = 3 if correlation else 1  # correlated samples tell less
    assert extra.mean() == pytest.approx(mean, rel=0.03 * wide)
    for percent, value in quantiles.items():
        assert np.percentile(extra, percent) == pytest.approx(value, rel=0.05 * wide, abs=0.05)


def test_jitter_is_correlated_as_said():
    found = {}
    for correlation in (0.0, 0.9):
        jitter = Jitter(distribution="normal", scale_ms=1, mean_ms=10, correlation=correlation)
        extra = probed(Link(name="a", rate_mbps=1000, jitter=jitter), 0.1, 100, duration_s=1000)[0]
        found[correlation] = np.corrcoef(extra[:-1], extra[1:])[0, 1]
    assert abs(found[0.0]) < 0.03 and found[0.9] == pytest.approx(0.9, abs=0.02)


def test_jitter_in_order_holds_back_what_would_overtake():
    jitter = Jitter(distribution="exponential", scale_ms=10)
    found, _ = probed(Link(name="a", rate_mbps=1000, jitter=jitter), 0.001, 100)
    free = probed(Link(name="a", rate_mbps=1000, jitter=replace(jitter, reorder=True)), 0.001, 100)[0]
    assert found.mean() > 1.5 * free.mean()
    for stack in ("linux", "ns3"):
        endless = {"stack": stack, "queue_packets": None, "rate_mbps": 100, "duration_s": 5}
        in_order, not_so = (
            nb.simulate(world(**endless, jitter=replace(jitter, reorder=reorder))).flows[0] for reorder in (False, True)
        )
        assert in_order.packets_retransmitted == 0 < not_so.packets_retransmitted


def test_losses_follow_their_schedule():
    losses = LossSchedule([0, 2, 3, 6], [0, 1, 0.25, 0])
    found, result = probed(Link(name="a", rate_mbps=1000, loss=losses, loss_on_acks=True), 0.001, 100)
    assert result.links["a"].random_losses == 10_000 - len(found)  # the last, sent at the end, is on its way
    assert 10_000 - len(found) == pytest.approx(1000 + 750, abs=4 * np.sqrt(3000 * 0.25 * 0.75))


def world(stack="linux", senders=("cubic",), duration_s=20.0, **fields):
    bottleneck = {"name": "bottleneck", "delay_ms": 20, "queue_packets": 60, **fields}
    if "trace" not in fields:
        bottleneck.setdefault("rate_mbps", 10)
    flows = [Flow(cc=cc, path=["bottleneck"], return_path=["return"]) for cc in senders]
    links = [Link(**bottleneck), Link(name="return", delay_ms=20)]
    return Scenario(links=links, flows=flows, duration_s=duration_s, stack=stack)


GONE = RateTrace([0, 8, 11], [10, 0, 10])
GAP = DeliveryTrace(np.r_[np.arange(0, 8000, 1.2), np.arange(11_000, 20_000, 1.2)], period_ms=20_000)


@pytest.mark.parametrize("trace", [GONE, GAP], ids=["rates", "deliveries"])
@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_queues_outlast_outages_or_not(trace, stack):
    held = nb.simulate(world(stack, trace=trace), sample_interval_s=0.1)
    dropped = nb.simulate(world(stack, trace=trace, on_outage="drop"), sample_interval_s=0.1)
    time_s = held.series["time_s"]
    out = (time_s > 8.05) & (time_s < 10.95)
    assert held.series["queue_packets"][out, 0].min() >= 5 and dropped.series["queue_packets"][out, 0].max() == 0
    link = dropped.links["bottleneck"]
    assert link.packets_in == link.packets_out + link.queue_drops + dropped.series["queue_packets"][-1, 0]
    before = dropped.series["queue_packets"][time_s < 7.95, 0][-1]
    drops = np.diff(dropped.series["queue_drops"][:, 0], prepend=0) if dropped.series["queue_drops"][-1, 0] > 60 else None
    assert before > 5 and (drops is None or link.queue_drops >= before)
    for result in (held, dropped):
        assert result.flows[0].delivered_bytes > 8 * 10e6 / 8 * 0.85  # and goes on after the outage
        assert result.series["throughput_mbps"][time_s > 15, 0].mean() > 6


def test_short_gaps_are_no_outages():
    pauses = RateTrace([0, 0.5, 0.55], [10, 0, 10], period_s=1)
    held, short, long = (
        nb.simulate(world(trace=pauses, discipline="droptail", **fields)).flows[0]
        for fields in ({}, {"on_outage": "drop", "outage_ms": 51}, {"on_outage": "drop", "outage_ms": 50})
    )
    assert short.packets_sent == held.packets_sent and short.delivered_bytes == held.delivered_bytes
    assert long.queue_drops > short.queue_drops


@pytest.mark.parametrize("stack", ["linux", "ns3"])
@pytest.mark.parametrize(
    "fields",
    [
        {"delay_ms": route_change(delay_ms=20, at_s=5)},
        {"delay_ms": route_change(delay_ms=70, change_ms=-50, at_s=5, reorder=True)},
        {"delay_ms": leo_delays(duration_s=20, seed=1, first_s=3)},
        {"delay_ms": delay_walk(low_ms=20, high_ms=40, duration_s=20, seed=1)},
        {"jitter": Jitter(scale_ms=8, correlation=0.5)},
        {"jitter": Jitter(distribution="pareto", scale_ms=3, reorder=True)},
        {"loss": LossSchedule([0, 5, 5.3], [0, 1, 1e-3])},
        {"trace": GONE, "on_outage": "drop", "jitter": Jitter(scale_ms=5, reorder=True), "discipline": "codel"},
    ],
    ids=["up", "down", "leo", "walk", "jitter", "reordering", "loss", "all"],
)
def test_nothing_is_made_or_forgotten_on_paths_that_change(stack, fields):
    result = nb.simulate(world(stack, ("cubic", "bbr"), **fields), seed=2, sample_interval_s=1)
    link = result.links["bottleneck"]
    assert link.packets_in == link.packets_out + link.queue_drops + result.series["queue_packets"][-1, 0]
    for flow in result.flows:
        assert flow.delivered_bytes <= (flow.packets_sent - flow.packets_retransmitted) * 1448
        assert flow.queue_drops + flow.random_losses <= flow.packets_sent
        assert flow.delivered_bytes > 1e6 and flow.rtt_min_ms >= 40
    again = nb.simulate(world(stack, ("cubic", "bbr"), **fields), seed=2, sample_interval_s=None)
    assert [f.packets_sent for f in again.flows] == [f.packets_sent for f in result.flows]


def test_acks_may_overtake_each_other():
    for jitter in (Jitter(scale_ms=15, reorder=True), Jitter(distribution="exponential", scale_ms=15, reorder=True)):
        links = [Link(name="bottleneck", rate_mbps=10, delay_ms=20, queue_packets=60)]
        links += [Link(name="return", delay_ms=20, jitter=jitter), Link(name="on", rate_mbps=50, queue_packets=10)]
        flows = [Flow(cc=cc, path=[0], return_path=path) for cc in ("cubic", "newreno") for path in ([1], [1, 2])]
        result = nb.simulate(Scenario(links=links, flows=flows, duration_s=20), seed=4)
        assert result.goodput_mbps > 8 and sum(flow.timeouts for flow in result.flows) <= 2


def test_linux_learns_to_live_with_reordering_and_ns3_does_not():
    jitter = Jitter(scale_ms=12, reorder=True)
    found = {stack: nb.simulate(world(stack, duration_s=60, jitter=jitter), seed=1).flows[0] for stack in ("linux", "ns3")}
    linux, ns3 = found["linux"], found["ns3"]
    assert linux.goodput_mbps > 8.5 and linux.goodput_mbps > 1.5 * ns3.goodput_mbps
    late = nb.simulate(world(duration_s=60, jitter=jitter), seed=1, warmup_s=30).flows[0]
    assert late.packets_retransmitted < 0.01 * late.packets_sent  # of which a queue of 60 packets costs some


def test_the_way_back_is_shared_with_data_and_has_a_queue():
    fields = {"rate_mbps": 10, "rtt_ms": 40, "buffer_packets": 60, "duration_s": 30}
    alone = nb.simulate(dumbbell(**fields, senders=["cubic"]))
    both = nb.simulate(dumbbell(**fields, senders=["cubic"], reverse=["cubic"], return_buffer_packets=40))
    assert both.scenario.links[1].rate_mbps == 10 and both.scenario.links[1].queue_packets == 40
    assert both.flows[1].goodput_mbps > 6.5 and both.links["return"].queue_drops > 0
    there = both.flows[0]
    assert 0.6 * alone.flows[0].goodput_mbps < there.goodput_mbps < alone.flows[0].goodput_mbps
    waits_ms = [both.links[name].queue_delay_mean_ms for name in ("bottleneck", "return")]
    assert min(waits_ms) > 5 and there.rtt_mean_ms > 40 + waits_ms[0] + waits_ms[1] / 2  # ACKs wait among the data
    ns3 = dumbbell(**fields, stack="ns3", reverse="newreno", return_rate_mbps=2)
    assert [flow.path for flow in ns3.flows] == [(2, 0, 3), (6, 1, 7)] and ns3.flows[1].return_path == (8, 0, 9)
    assert nb.simulate(ns3).flows[1].goodput_mbps > 1.2
    with pytest.raises(nb.errors.ScenarioError, match="return_buffer_packets = 0"):
        dumbbell(return_buffer_packets=0)
    named = nb.scenarios.get("dumbbell", reverse=["cubic", "bbr"], return_rate_mbps=5)
    assert [flow.path for flow in named.flows] == [(0,), (1,), (1,)] and named.links[1].queue_packets == 150


def test_worlds_are_the_same_on_any_number_of_threads():
    import gymnasium as gym

    jitter = Jitter(distribution="normal", scale_ms=4, reorder=True)
    scenario = world(senders=["agent"], jitter=jitter, loss=LossSchedule([0], [0.01]))
    rewards = []
    for threads in (1, 3):
        env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=6, scenario=scenario, threads=threads)
        env.reset(seed=5)
        env.action_space.seed(5)
        rewards.append([env.step(env.action_space.sample())[1].tolist() for _ in range(40)])
        env.close()
    assert rewards[0] == rewards[1] and len(set(rewards[0][-1])) > 1
