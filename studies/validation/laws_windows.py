"""Laws of congestion windows: response to losses, sawteeth, queues that are held, and shares of a bottleneck."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median
from typing import Any

import numpy as np

import netbuf_gym as nb
from netbuf_gym.scenarios import Scenario, dumbbell
from netbuf_gym.scenarios.limits import MSS_BYTES, compute_bdp_packets
from netbuf_gym.simulation.results import Result
from netbuf_gym.simulation.results.flows import FlowResult, LinkResult
from studies.validation.laws import Comparison, Law, make_grid

LINUX, NS3 = "linux", "ns3"
SEGMENTS_COUNTED = {LINUX: 1, NS3: 2}
"""Segments that count as one as a window grows: 2 where ACKs are counted, each of two segments (b of Mathis et al.)."""
DROPTAIL, RED = "droptail", "red"
LOSSES = 1500
"""Number of losses that a response is measured over."""
START_JITTER_MS = 200.0
"""Makes worlds without chance differ from seed to seed."""


def _simulate(world: Scenario, seed: int = 1, warmup: float = 0.2) -> Result:
    return nb.simulate(world, seed, warmup_s=warmup * world.duration_s, sample_interval_s=None)


def _simulate_jittered(world: Scenario, seeds: int, warmup: float = 0.3) -> list[Result]:
    """Return the results of a world whose flows start at times drawn by the seed."""
    world = replace(world, start_jitter_ms=START_JITTER_MS)
    return [_simulate(world, seed, warmup) for seed in range(1, seeds + 1)]


def _compute_window(flow: FlowResult) -> float:
    """Return segments delivered in a mean round trip."""
    return flow.goodput_mbps * 1e3 / 8 / MSS_BYTES * flow.rtt_mean_ms


def _simulate_losses(cc: Any, loss: float, rtt_ms: float, window: float, stack: str, **settings: Any) -> FlowResult:
    """Return a flow that only random loss limits, over some `LOSSES` losses at a mean window of so many segments."""
    duration_s = max(100.0, LOSSES / loss / window * rtt_ms * 1e-3)
    world = dumbbell(
        rate_mbps=5000, rtt_ms=rtt_ms, senders=[cc], buffer_packets=None, loss=loss, duration_s=duration_s, stack=stack
    )
    return _simulate(replace(world, hystart=False, **settings), warmup=0.1).flows[0]


def compare_mathis(loss: float, rtt_ms: float, stack: str) -> Comparison:
    """Compare Reno's mean window, segments, with sqrt(3 / 2 b p), b being 1 for a sender that counts segments, else 2."""
    acked = SEGMENTS_COUNTED[stack]
    window = float(np.sqrt(1.5 / acked / loss))
    flow = _simulate_losses("newreno", loss, rtt_ms, window, stack)
    return Comparison.of_value(float(np.sqrt(1.5 / acked / flow.loss_rate)), _compute_window(flow))


def compare_pftk(loss: float, rtt_ms: float) -> Comparison:
    """Compare Reno's goodput without SACK, segments a second, with the full model of Padhye et al.; windows count segments."""
    flow = _simulate_losses("newreno", loss, rtt_ms, 1.2 / np.sqrt(loss), LINUX, sack=False)
    rtt_s, p = flow.rtt_mean_ms * 1e-3, flow.loss_rate
    rto_s = rtt_s + 0.2
    per_segment_s = rtt_s * np.sqrt(2 * p / 3) + rto_s * min(1.0, 3 * np.sqrt(3 * p / 8)) * p * (1 + 32 * p**2)
    return Comparison.of_value(float(1 / per_segment_s), flow.goodput_mbps * 1e6 / 8 / MSS_BYTES)


def compare_cubic_response(loss: float, rtt_ms: float) -> Comparison:
    """Compare CUBIC's mean window, segments, with RFC 9438's figure 5."""

    def due(p: float) -> float:
        return float((0.4 * 3.7 / (4 * 0.3)) ** 0.25 * (rtt_ms * 1e-3 / p) ** 0.75)

    flow = _simulate_losses("cubic", loss, rtt_ms, due(loss), LINUX)
    return Comparison.of_value(due(flow.loss_rate), _compute_window(flow))


def compare_cubic_friendly(loss: float, rtt_ms: float) -> Comparison:
    """Compare CUBIC's mean window, segments, where the round trip is short, with Reno's."""
    flow = _simulate_losses("cubic", loss, rtt_ms, float(np.sqrt(1.5 / loss)), LINUX)
    return Comparison.of_value(float(np.sqrt(1.5 / flow.loss_rate)), _compute_window(flow))


def _simulate_sawtooth(cc: Any, rate_mbps: float, rtt_ms: float, buffer: float, teeth_s: float) -> float:
    """Return the bottleneck's utilisation over 15 teeth of this length."""
    pipe = compute_bdp_packets(rate_mbps, rtt_ms) + 1
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc], buffer_packets=max(1, round(buffer * pipe)))
    result = _simulate(replace(world, duration_s=20 * teeth_s), warmup=0.25)
    return result.links["bottleneck"].utilisation


def compare_reno_sawtooth(rate_mbps: float, rtt_ms: float, buffer: float) -> Comparison:
    """Compare a Reno flow's utilisation with that of a linear sawtooth between half of path and buffer and all of both."""
    pipe = compute_bdp_packets(rate_mbps, rtt_ms) + 1
    top = 1 + buffer
    low = top / 2
    starved = max(0.0, 1 - low)
    rounds = starved + (top**2 - max(low, 1) ** 2) / 2  # in round trips of the empty path, times its packets
    due = (top**2 - low**2) / 2 / rounds
    teeth_s = pipe * rounds * rtt_ms * 1e-3
    return Comparison.of_value(due, _simulate_sawtooth("newreno", rate_mbps, rtt_ms, buffer, teeth_s))


def compare_cubic_sawtooth(rate_mbps: float, rtt_ms: float, buffer: float) -> Comparison:
    """Compare a CUBIC flow's utilisation with that of the cubic curve between 0.7 of path and buffer and all of both."""
    pipe = compute_bdp_packets(rate_mbps, rtt_ms) + 1
    top = (1 + buffer) * pipe
    teeth_s = float(np.cbrt(0.3 * top / 0.4))
    time_s = (np.arange(10_000) + 0.5) / 10_000 * teeth_s
    due = float(np.minimum(0.4 * (time_s - teeth_s) ** 3 + top, pipe).mean() / pipe)
    cc = {"name": "cubic", "fast_convergence": False}
    return Comparison.of_value(due, _simulate_sawtooth(cc, rate_mbps, rtt_ms, buffer, teeth_s))


def compare_small_buffers(rate_mbps: float, rtt_ms: float, flows: int, buffers: float) -> Comparison:
    """Compare the utilisation by Reno flows of different round trips with what Appenzeller et al. measured."""
    rtts_ms = np.linspace(0.75, 1.25, flows) * rtt_ms
    buffer = round(buffers * compute_bdp_packets(rate_mbps, rtt_ms) / flows**0.5)
    world = dumbbell(
        rate_mbps=rate_mbps, rtt_ms=rtts_ms.tolist(), senders=["newreno"] * flows, buffer_packets=buffer, duration_s=60
    )
    world = replace(world, start_jitter_ms=5000)
    return Comparison(0.97 if buffers == 1 else 0.98, 1.0, _simulate(world, warmup=0.4).links["bottleneck"].utilisation)


def _measure_rtt_exponent(cc: str, rate_mbps: float, rtt_ms: float, ratio: float, queue: str, red: dict[str, Any]) -> float:
    """Return a of rates ~ RTT^-a of two flows, their mean round-trip times with the queue, median of 5 seeds.

    The queue is drop-tail, a third of the longer path, in which both lose together, or RED, in which each loses by itself.
    """
    pipe = compute_bdp_packets(rate_mbps, rtt_ms * ratio)
    world = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=[rtt_ms, rtt_ms * ratio],
        senders=[cc, cc],
        buffer_packets=round((0.3 if queue == DROPTAIL else 4) * pipe),
        discipline=None if queue == DROPTAIL else {"name": RED, **red},
        duration_s=300,
    )
    exponents = []
    for result in _simulate_jittered(world, seeds=5):
        near, far = result.flows
        exponents.append(-np.log(near.goodput_mbps / far.goodput_mbps) / np.log(near.rtt_mean_ms / far.rtt_mean_ms))
    return float(median(exponents))


def compare_reno_rtts(rate_mbps: float, ratio: float, queue: str) -> Comparison:
    """Compare the exponent of two Reno flows with 1 where each loses by itself, 2 where they lose together."""
    red = {"min_packets": 20, "max_packets": 200, "max_probability": 0.02}
    ours = _measure_rtt_exponent("newreno", rate_mbps, 30, ratio, queue, red)
    return Comparison.of_value(2.0 if queue == DROPTAIL else 1.0, ours)


def compare_cubic_rtts(rate_mbps: float, ratio: float, queue: str) -> Comparison:
    """Compare the exponent of two CUBIC flows with one around 1/4 where each loses by itself, up to 1 otherwise."""
    red = {"min_packets": 100, "max_packets": 1000, "max_probability": 0.002}
    ours = _measure_rtt_exponent("cubic", rate_mbps, 60, ratio, queue, red)
    return Comparison(*((0.25, 1.0) if queue == DROPTAIL else (0.0, 0.5)), ours)


def compare_bbr_share(rate_mbps: float, rtt_ms: float, buffer: float, cubic: int) -> Comparison:
    """Compare the share of one BBR flow among CUBIC flows with the model of Ware et al."""
    bdp = compute_bdp_packets(rate_mbps, rtt_ms)
    queue = buffer * bdp
    others = 0.5 - 0.5 / buffer - 4 / queue
    probing = (buffer * rtt_ms * 1e-3 + 0.2 + rtt_ms * 1e-3) / 10
    due = (1 - others) * (1 - probing)
    world = dumbbell(
        rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=["bbr", *["cubic"] * cubic], buffer_packets=round(queue), duration_s=300
    )
    shares = [one.flows[0].goodput_mbps / one.goodput_mbps for one in _simulate_jittered(world, seeds=5)]
    return Comparison.of_value(due, fmean(shares))


def compare_bbr_queue(rate_mbps: float, rtt_ms: float, flows: int) -> Comparison:
    """Compare the queue of several BBR flows in a deep buffer, bandwidth-delay products, with 1 to 1.5."""
    buffer = round(8 * compute_bdp_packets(rate_mbps, rtt_ms))
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=["bbr"] * flows, buffer_packets=buffer, duration_s=120)
    delays_ms = [one.links["bottleneck"].queue_delay_mean_ms for one in _simulate_jittered(world, seeds=3)]
    return Comparison(1.0, 1.5, fmean(delays_ms) / rtt_ms)


def _measure_queue(cc: Any, rate_mbps: float, rtt_ms: float, buffer_packets: int | None = None) -> LinkResult:
    """Return the bottleneck of one flow over the second half of 2000 round trips."""
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc], buffer_packets=buffer_packets, hystart=False)
    return _simulate(replace(world, duration_s=2 * rtt_ms), warmup=0.5).links["bottleneck"]


def compare_vegas_queue(rate_mbps: float, rtt_ms: float) -> Comparison:
    """Compare Vegas' packets in the queue, that in transmission included, with alpha = 2 to beta = 4."""
    pipe = round(compute_bdp_packets(rate_mbps, rtt_ms))
    return Comparison(2.0, 4.0, _measure_queue("vegas", rate_mbps, rtt_ms, max(pipe, 10)).queue_mean_packets)


def compare_copa_queue(rate_mbps: float, rtt_ms: float, delta: float) -> Comparison:
    """Compare Copa's mean queue, packets, with that of its oscillation between none and 2.5 / delta."""
    cc = {"name": "copa", "delta": delta, "competitive_mode": False}
    return Comparison.of_value(1.25 / delta, _measure_queue(cc, rate_mbps, rtt_ms).queue_mean_packets)


def compare_ledbat_delay(rate_mbps: float, rtt_ms: float, target_ms: float) -> Comparison:
    """Compare the queueing delay of a LEDBAT flow, ms, with its target."""
    cc = {"name": "ledbat", "target_ms": target_ms}
    settling_s = compute_bdp_packets(rate_mbps, target_ms) * (rtt_ms + target_ms) * 1e-3  # a queue too long shrinks to 1 / e
    duration_s = min(60 + 12 * settling_s, 540.0)  # of the base delay ten minutes are remembered
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc], buffer_packets=None, duration_s=duration_s)
    return Comparison.of_value(target_ms, _simulate(world, warmup=0.5).links["bottleneck"].queue_delay_mean_ms)


def _simulate_dctcp(
    rate_mbps: float, rtt_ms: float, flows: int, threshold: int, access_mbps: float | None = None
) -> LinkResult:
    pipe = compute_bdp_packets(rate_mbps, rtt_ms)
    world = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        senders=["dctcp"] * flows,
        buffer_packets=None,
        discipline={"name": "droptail", "mark_packets": threshold},
        access_mbps=access_mbps,
        duration_s=max(60.0, 3 * pipe * rtt_ms * 1e-3),
    )
    return _simulate_jittered(world, seeds=1, warmup=0.5)[0].links["bottleneck"]


def compare_dctcp_marks(rate_mbps: float, rtt_ms: float, flows: int, threshold: float) -> Comparison:
    """Compare the share of packets marked with DCTCP's alpha; a slow access link spreads groups of segments."""
    pipe = compute_bdp_packets(rate_mbps, rtt_ms)
    limit = round(threshold * pipe)
    window = (pipe + limit) / flows
    roots = np.roots([-0.25, 1, 0, -(2 * window + 1) / (window + 1) ** 2])
    due = min(float(root.real) for root in roots if abs(root.imag) < 1e-9 and root.real > 0)
    link = _simulate_dctcp(rate_mbps, rtt_ms, flows, limit, 1.05 * rate_mbps)
    return Comparison.of_value(due, link.marks / link.packets_in)


def compare_dctcp_queue(rate_mbps: float, rtt_ms: float, flows: int, threshold: float) -> Comparison:
    """Compare DCTCP's mean queue, packets, with the middle of its sawtooth below threshold and flows."""
    pipe = compute_bdp_packets(rate_mbps, rtt_ms)
    limit = round(threshold * pipe)
    amplitude = float(np.sqrt(2 * flows * (pipe + limit))) / 2
    link = _simulate_dctcp(rate_mbps, rtt_ms, flows, limit)
    return Comparison.of_value(limit + flows - amplitude / 2, link.queue_mean_packets)


def compare_dctcp_threshold(rate_mbps: float, rtt_ms: float, flows: int) -> Comparison:
    """Compare the utilisation under a threshold of a little more than a seventh of the path with 1."""
    limit = int(compute_bdp_packets(rate_mbps, rtt_ms) / 7) + 1
    return Comparison.of_value(1.0, _simulate_dctcp(rate_mbps, rtt_ms, flows, limit).utilisation)


def compare_late_flow(rate_mbps: float, rtt_ms: float, cc: str) -> Comparison:
    """Compare the share of a flow that starts 30 s after another with a half, over the time after 100 s more."""
    buffer = round(compute_bdp_packets(rate_mbps, rtt_ms))
    world = dumbbell(
        rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc, cc], buffer_packets=buffer, start_s=[0, 30], duration_s=430
    )
    shares = [one.flows[1].goodput_mbps / one.goodput_mbps for one in _simulate_jittered(world, seeds=5)]
    return Comparison.of_value(0.5, float(median(shares)))


def compare_fairness(rate_mbps: float, rtt_ms: float, cc: str, flows: int) -> Comparison:
    """Compare Jain's index of equal flows over several minutes with 1."""
    buffer = round(compute_bdp_packets(rate_mbps, rtt_ms))
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=[cc] * flows, buffer_packets=buffer, duration_s=300)
    return Comparison.of_value(1.0, fmean(one.fairness for one in _simulate_jittered(world, seeds=3)))


LAWS = (
    Law(
        name="mathis",
        title="Reno's response to loss",
        source="Mathis et al. 1997",
        formula="W = sqrt(3 / (2 b p)): 1.22 / sqrt(p), 0.87 / sqrt(p) where a delayed ACK counts as one (ns3)",
        compare=compare_mathis,
        worlds=make_grid(loss=(1e-4, 1e-3, 3e-3), rtt_ms=(20, 100), stack=(LINUX, NS3)),
        middle=0.1,
        largest=0.2,
    ),
    Law(
        name="pftk",
        title="Reno's response with time-outs",
        source="Padhye et al. 1998, equation 30",
        formula="1 / (RTT sqrt(2bp/3) + RTO min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)), b = 1",
        compare=compare_pftk,
        worlds=make_grid(loss=(1e-3, 1e-2, 3e-2, 6e-2), rtt_ms=(50, 100, 200)),
        middle=0.1,
        largest=0.3,
    ),
    Law(
        name="cubic-response",
        title="CUBIC's response to loss",
        source="RFC 9438, 5.1",
        formula="W = (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4)",
        compare=compare_cubic_response,
        worlds=make_grid(loss=(3e-5, 1e-4, 3e-4), rtt_ms=(100, 200)),
        middle=0.2,
        largest=0.25,
    ),
    Law(
        name="cubic-friendly",
        title="CUBIC on short paths",
        source="RFC 9438, 4.3",
        formula="Reno's 1.22 / sqrt(p)",
        compare=compare_cubic_friendly,
        worlds=make_grid(loss=(3e-4, 1e-3, 3e-3), rtt_ms=(5, 10)),
        middle=0.15,
        largest=0.25,
    ),
    Law(
        name="reno-sawtooth",
        title="one Reno flow by buffer",
        source="Appenzeller et al. 2004; by integration",
        formula="75 % without a buffer to 100 % at one BDP",
        compare=compare_reno_sawtooth,
        worlds=make_grid(rate_mbps=(20, 50), rtt_ms=(40, 100), buffer=(0.05, 0.25, 0.5, 1.0)),
        middle=0.02,
        largest=0.05,
    ),
    Law(
        name="cubic-sawtooth",
        title="one CUBIC flow by buffer",
        source="RFC 9438, 4.2; by integration",
        formula="92.5 % without a buffer to 100 % at 0.43 BDP",
        compare=compare_cubic_sawtooth,
        worlds=make_grid(rate_mbps=(100, 200), rtt_ms=(80, 150), buffer=(0.05, 0.2, 0.43, 1.0)),
        middle=0.02,
        largest=0.05,
    ),
    Law(
        name="small-buffers",
        title="buffers of many flows",
        source="Appenzeller et al. 2004, table 10",
        formula="97 % at least at BDP / sqrt(n), 98 % at twice that",
        compare=compare_small_buffers,
        worlds=make_grid(rate_mbps=(100, 155), rtt_ms=(80,), flows=(100, 200), buffers=(1, 2)),
        middle=0.01,
        largest=0.03,
    ),
    Law(
        name="reno-rtts",
        title="two Reno flows by RTT",
        source="Lakshman and Madhow 1997",
        formula="rates ~ RTT^-a: 1 with losses apart (RED), 2 with losses together (drop-tail)",
        compare=compare_reno_rtts,
        worlds=make_grid(rate_mbps=(10, 30), ratio=(2, 4), queue=(DROPTAIL, RED)),
        middle=0.15,
        largest=0.35,
    ),
    Law(
        name="cubic-rtts",
        title="two CUBIC flows by RTT",
        source="Ha et al. 2008; RFC 9438, 5.1",
        formula="rates ~ RTT^-a: about 1/4 with losses apart (RED), at most 1 with losses together (drop-tail)",
        compare=compare_cubic_rtts,
        worlds=make_grid(rate_mbps=(100, 200), ratio=(2, 4), queue=(DROPTAIL, RED)),
        middle=0.1,
        largest=0.25,
    ),
    Law(
        name="bbr-share",
        title="BBR beside CUBIC by buffer",
        source="Ware et al. 2019, equations 5 to 8",
        formula="(1/2 + 1/(2X) + 4/q) of the time it does not probe, X buffer in BDP, q in packets",
        compare=compare_bbr_share,
        worlds=make_grid(rate_mbps=(10, 40), rtt_ms=(40,), buffer=(4, 8, 16), cubic=(1, 4)),
        middle=0.2,
        largest=0.35,
    ),
    Law(
        name="bbr-queue",
        title="queue of several BBR flows",
        source="Hock et al. 2017",
        formula="1 to 1.5 BDP in a deep buffer",
        compare=compare_bbr_queue,
        worlds=make_grid(rate_mbps=(30, 50, 100), rtt_ms=(40, 80), flows=(2, 6)),
        middle=0.1,
        largest=0.3,
    ),
    Law(
        name="vegas-queue",
        title="Vegas' queue",
        source="Brakmo and Peterson 1995; tcp_vegas.c",
        formula="alpha to beta packets",
        compare=compare_vegas_queue,
        worlds=make_grid(rate_mbps=(2, 5, 20), rtt_ms=(20, 50, 100)),
        middle=0.1,
        largest=0.35,
    ),
    Law(
        name="copa-queue",
        title="Copa's queue",
        source="Arun and Balakrishnan 2018, 3.1",
        formula="1.25 / delta packets",
        compare=compare_copa_queue,
        worlds=make_grid(rate_mbps=(5, 20), rtt_ms=(40, 100), delta=(0.1, 0.5)),
        middle=0.1,
        largest=0.35,
    ),
    Law(
        name="ledbat-delay",
        title="LEDBAT's target",
        source="RFC 6817, 2.4.2",
        formula="queueing delay = target, within the ten minutes of the base delay",
        compare=compare_ledbat_delay,
        worlds=make_grid(rate_mbps=(5, 20, 50), rtt_ms=(20, 100), target_ms=(25, 100)),
        middle=0.05,
        largest=0.15,
    ),
    Law(
        name="dctcp-marks",
        title="DCTCP's share of marks",
        source="Alizadeh et al. 2010, 3.3",
        formula="alpha of a^2 (1 - a/4) = (2W + 1) / (W + 1)^2, W = (C RTT + K) / n",
        compare=compare_dctcp_marks,
        worlds=make_grid(rate_mbps=(10, 20, 40), rtt_ms=(50, 100), flows=(1,), threshold=(0.2, 0.4)),
        middle=0.25,
        largest=0.4,
    ),
    Law(
        name="dctcp-queue",
        title="DCTCP's queue",
        source="Alizadeh et al. 2010, equations 8 to 10",
        formula="K + n - A / 2, A = sqrt(2 n (C RTT + K)) / 2",
        compare=compare_dctcp_queue,
        worlds=make_grid(rate_mbps=(20, 100), rtt_ms=(40, 100), flows=(1, 2), threshold=(0.3, 0.5)),
        middle=0.05,
        largest=0.15,
    ),
    Law(
        name="dctcp-threshold",
        title="DCTCP's least threshold",
        source="Alizadeh et al. 2010, equation 13",
        formula="full utilisation with K above C RTT / 7",
        compare=compare_dctcp_threshold,
        worlds=make_grid(rate_mbps=(20, 100), rtt_ms=(40, 100), flows=(1, 2, 4)),
        middle=0.01,
        largest=0.02,
    ),
    Law(
        name="late-flow",
        title="convergence to fairness",
        source="Chiu and Jain 1989",
        formula="a late flow ends at half of the link",
        compare=compare_late_flow,
        worlds=make_grid(rate_mbps=(5, 20), rtt_ms=(20, 60), cc=("newreno", "cubic")),
        middle=0.1,
        largest=0.2,
    ),
    Law(
        name="fairness",
        title="equal flows",
        source="Jain et al. 1984",
        formula="index 1",
        compare=compare_fairness,
        worlds=make_grid(rate_mbps=(10, 40), rtt_ms=(40,), cc=("newreno", "cubic"), flows=(2, 4, 8)),
        middle=0.03,
        largest=0.1,
    ),
)
