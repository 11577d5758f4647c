"""Laws of single connections that follow by arithmetic: times, windows and timers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import netbuf_gym as nb
from netbuf_gym.scenarios import LossSchedule, OnOff, Scenario, Sized, dumbbell
from netbuf_gym.scenarios.limits import ACK_BYTES, DATA_BYTES, MSS_BYTES
from studies.validation.laws import Comparison, Law, make_grid

LINUX, NS3 = "linux", "ns3"
SYN_BYTES = 60
FIRST_WINDOW = 10
WRITTEN_AHEAD = 135
"""Segments that a program without a rate writes before `TCP_NOTSENT_LOWAT` of 128 KiB lets it wait: whole packets of 45."""
LEAST_RTO_S = 0.2
MILLISECOND = 1e-3


def _compute_tx_s(wire_bytes: int, rate_mbps: float | None) -> float:
    return wire_bytes * 8e-6 / rate_mbps if rate_mbps else 0.0


def _handshake_s(rate_mbps: float) -> float:
    """Return the transmission times of the SYN and of the ACK that ends the handshake, without ends' time stamps' delay."""
    return _compute_tx_s(SYN_BYTES, rate_mbps) + _compute_tx_s(ACK_BYTES[LINUX], rate_mbps)


def _simulate_packets(world: Scenario) -> np.ndarray:
    return nb.simulate(world, packets=True, sample_interval_s=None).packets


def _find_sent_times(packets: np.ndarray) -> np.ndarray:
    """Return the times at which the sender's data set out, in order."""
    return packets["time_s"][(packets["event"] == "sent") & (packets["payload_bytes"] > 0)]


def _find_answer_times(packets: np.ndarray) -> np.ndarray:
    """Return the times at which ACKs came to the sender, in order."""
    return packets["time_s"][(packets["event"] == "received") & packets["to_sender"] & (packets["kind"] == "ack")]


def _lose_from(world: Scenario, from_s: float, to_s: float) -> Scenario:
    """Return a world whose bottleneck loses what it begins to transmit in a time."""
    lossy = replace(world.links[0], loss=LossSchedule([0, from_s, to_s], [0, 1, 0]))
    return replace(world, links=[lossy, *world.links[1:]])


def compare_least_rtt(rate_mbps: float, rtt_ms: float, stack: str) -> Comparison:
    """Compare the least round-trip time, ms, with propagation and transmission of a segment and its ACK on every link."""
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, senders=["newreno"], duration_s=20 * rtt_ms * MILLISECOND, stack=stack)
    crossed = [(DATA_BYTES[stack], at) for at in world.flows[0].path]
    crossed += [(ACK_BYTES[stack], at) for at in world.flows[0].return_path]
    due_ms = rtt_ms + sum(_compute_tx_s(size, world.links[int(at)].rate_mbps) for size, at in crossed) / MILLISECOND
    return Comparison.of_value(due_ms, nb.simulate(world, sample_interval_s=None).flows[0].rtt_min_ms)


def compare_completion(rate_mbps: float, rtt_ms: float, segments: int) -> Comparison:
    """Compare the completion time of a flow in slow start, s, with the sum of its rounds and transmissions.

    A round sends twice what the one before sent, and begins a transmission later after the start of its round trip.
    """
    rounds, last = 1, segments
    while last > (window := FIRST_WINDOW * 2 ** (rounds - 1)):
        last -= window
        rounds += 1
    app = Sized(size_bytes=segments * MSS_BYTES)
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=None, app=app, hystart=False, duration_s=20)
    due_s = (rounds + 0.5) * rtt_ms * MILLISECOND + _handshake_s(rate_mbps)
    due_s += (rounds - 1 + last) * _compute_tx_s(DATA_BYTES[LINUX], rate_mbps)
    result = nb.simulate(replace(world, delayed_ack=1), sample_interval_s=None)
    return Comparison.of_value(due_s, result.flows[0].completion_s)


def compare_slow_start(rtt_ms: float, round_trip: int) -> Comparison:
    """Compare the segments sent in a round trip of slow start, the first being number 0, with 10 x 2^n."""
    duration_s = (round_trip + 3) * rtt_ms * MILLISECOND
    world = dumbbell(rate_mbps=1e6, rtt_ms=rtt_ms, buffer_packets=None, senders=["newreno"], duration_s=duration_s)
    sent_s = _find_sent_times(_simulate_packets(replace(world, delayed_ack=1))) / (rtt_ms * MILLISECOND)
    own = (sent_s > round_trip + 0.5) & (sent_s < round_trip + 1.5)
    return Comparison.of_value(FIRST_WINDOW * 2**round_trip, float(own.sum()))


def compare_window_limit(rtt_ms: float, window_bytes: int) -> Comparison:
    """Compare the goodput on an empty path, Mbit/s, with the whole segments of the receiver's window in a round trip."""
    duration_s = 400 * rtt_ms * MILLISECOND
    world = dumbbell(rate_mbps=1e4, rtt_ms=rtt_ms, buffer_packets=None, senders=["newreno"], duration_s=duration_s)
    world = replace(world, flows=[replace(world.flows[0], receive_buffer_bytes=window_bytes)], delayed_ack=1)
    flow = nb.simulate(world, warmup_s=duration_s / 2, sample_interval_s=None).flows[0]
    return Comparison.of_value(window_bytes // MSS_BYTES * MSS_BYTES * 8e-3 / flow.rtt_min_ms, flow.goodput_mbps)


def compare_backoff(rtt_ms: float, stack: str, doublings: int) -> Comparison:
    """Compare the wait for a retransmission in an outage with the first such wait: 2^n times as long."""
    start_s = 10 * rtt_ms * MILLISECOND
    world = dumbbell(rate_mbps=10, rtt_ms=rtt_ms, senders=["newreno"], duration_s=start_s + 2 ** (doublings + 3), stack=stack)
    packets = _simulate_packets(_lose_from(world, start_s, 1e5))
    sent_s = _find_sent_times(packets)
    repeated_s = np.unique(sent_s[sent_s > _find_answer_times(packets)[-1] + 1.5 * LEAST_RTO_S])
    waits_s = np.diff(repeated_s)
    return Comparison.of_value(2.0**doublings, float(waits_s[doublings] / waits_s[0]))


def compare_tail_probe(rate_mbps: float, rtt_ms: float, lost: int) -> Comparison:
    """Compare the time from the last ACK to the probe of a lost tail, s, with RFC 8985's."""
    app = Sized(size_bytes=FIRST_WINDOW * MSS_BYTES)
    world = dumbbell(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=None, app=app, duration_s=5)
    tx_s = _compute_tx_s(DATA_BYTES[LINUX], rate_mbps)
    from_s = rtt_ms * MILLISECOND + _handshake_s(rate_mbps) + (FIRST_WINDOW - lost - 0.5) * tx_s
    result = nb.simulate(_lose_from(world, from_s, from_s + lost * tx_s), packets=True, sample_interval_s=MILLISECOND)
    probe_s = _find_sent_times(result.packets)[FIRST_WINDOW]
    answers_s = _find_answer_times(result.packets)
    series = result.flows[0].series
    srtt_s = float(series["srtt_ms"][np.searchsorted(series["time_s"], probe_s) - 1]) * MILLISECOND
    rto_s = srtt_s + max(LEAST_RTO_S, 2 * rtt_ms * MILLISECOND)  # the first round trip's deviation is half of it, RFC 6298, 2.2
    due_s = min(2 * srtt_s + (LEAST_RTO_S if lost == 1 else 0), rto_s)
    return Comparison.of_value(due_s, float(probe_s - answers_s[answers_s < probe_s][-1]))


def compare_idle_restart(rtt_ms: float, time_outs: float) -> Comparison:
    """Compare the window after a silence with the one before it, halved for every time-out that it lasted."""
    on_s, written = MILLISECOND, 2 * FIRST_WINDOW + WRITTEN_AHEAD  # 10, 20, 40 and 75 segments in as many round trips
    resumes_s = 4 * rtt_ms * MILLISECOND + time_outs * (rtt_ms * MILLISECOND + LEAST_RTO_S)
    app: Any = OnOff(on_s=on_s, off_s=resumes_s - on_s - rtt_ms * MILLISECOND)
    world = dumbbell(rate_mbps=1e4, rtt_ms=rtt_ms, buffer_packets=None, app=app, senders=["newreno"])
    world = replace(world, duration_s=resumes_s + rtt_ms * MILLISECOND, delayed_ack=1)
    series = nb.simulate(world, sample_interval_s=MILLISECOND).flows[0].series
    window = series["cwnd_packets"][np.searchsorted(series["time_s"], resumes_s + 0.4 * rtt_ms * MILLISECOND)]
    return Comparison.of_value(max(written // 2 ** int(time_outs), FIRST_WINDOW), float(window))


EXACT = 1e-7
"""Times are whole nanoseconds."""
LAWS = (
    Law(
        name="least-rtt",
        title="least round-trip time",
        source="by arithmetic",
        formula="propagation + transmission of a segment and of its ACK",
        compare=compare_least_rtt,
        worlds=make_grid(rate_mbps=(1, 10, 100), rtt_ms=(150, 300), stack=(LINUX, NS3))
        + make_grid(rate_mbps=(30, 1000), rtt_ms=(10, 40), stack=(LINUX, NS3)),
        middle=EXACT,
        largest=EXACT,
    ),
    Law(
        name="completion",
        title="completion time from a window of 10",
        source="RFC 6928, RFC 5681",
        formula="(k + 1/2) RTT + transmissions in k rounds",
        compare=compare_completion,
        worlds=make_grid(rate_mbps=(100, 1000), rtt_ms=(40, 100), segments=(1, 10, 11, 30, 70, 150)),
        middle=EXACT,
        largest=EXACT,
    ),
    Law(
        name="slow-start",
        title="slow start",
        source="RFC 5681, 3.1",
        formula="10 x 2^n segments in round trip n",
        compare=compare_slow_start,
        worlds=make_grid(rtt_ms=(20, 100), round_trip=(0, 1, 2, 3, 5, 7)),
        middle=EXACT,
        largest=EXACT,
    ),
    Law(
        name="window-limit",
        title="limit by the receiver's window",
        source="RFC 7323, 1.1",
        formula="rwnd / RTT",
        compare=compare_window_limit,
        worlds=make_grid(rtt_ms=(10, 50, 200), window_bytes=(16_384, 65_536, 262_144, 1_048_576)),
        middle=0.001,
        largest=0.005,
    ),
    Law(
        name="rto-backoff",
        title="back-off of the retransmission timer",
        source="RFC 6298, 5.5",
        formula="wait n is 2^n times the first",
        compare=compare_backoff,
        worlds=make_grid(rtt_ms=(20, 100), stack=(LINUX, NS3), doublings=(1, 2, 3, 4)),
        middle=0.05,
        largest=0.08,
    ),
    Law(
        name="tail-probe",
        title="tail loss probe",
        source="RFC 8985, 7.2",
        formula="2 SRTT, with one segment out 200 ms more, at most the RTO",
        compare=compare_tail_probe,
        worlds=make_grid(rate_mbps=(10, 100), rtt_ms=(40, 100, 250), lost=(1, 2)),
        middle=0.05,
        largest=0.15,
    ),
    Law(
        name="idle-restart",
        title="restart after silence",
        source="RFC 2861; tcp_cwnd_restart",
        formula="the window halves for every time-out of silence",
        compare=compare_idle_restart,
        worlds=make_grid(rtt_ms=(40, 120), time_outs=(0.9, 1.2, 2.2, 3.2, 8.2)),
        middle=EXACT,
        largest=EXACT,
    ),
)
