"""Measures kept of a run: what its senders achieved, and how long they took to get there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.utils.statistics import jain_index
from studies.sender import strangers
from studies.sender.sender_worlds import JOIN, StudyWorld

OVER_S = 0.5
"""Time over which deliveries are averaged, and distance of the samples of a series."""
QUEUE_OVER_S = 1.0
"""Time over which round trips are averaged."""
JAIN_OVER_S = 2.0
"""Time whose deliveries Jain's index of the live senders is computed from."""
FILLED, RECOVERED, EVEN = 0.9, 0.8, 0.9
"""Thresholds: share of a filled link, share of a recovered link, Jain's index of an even allocation."""
SETTLED_MS = 10.0
"""Queueing below which a queue has settled."""
BEFORE = 1 / 2
"""Share of the time until a change after which delivery counts as before the change."""
FROM = 1 / 4
"""Share of a run after which shares and Jain's index are measured."""

RUN_MEASURES = {
    "utility": "0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT), mean over the senders; higher is better",
    "goodput_mbps": "bytes delivered in order over the time since the flow's start, mean over the senders",
    "use": "what all senders delivered in order over what the bottleneck can carry in the run, headers included",
    "rtt_ms": "mean RTT, mean over the senders",
    "queue_delay_ms": "mean time of a packet in the bottleneck's queue",
    "loss": "packets dropped or lost, of those sent, mean over the senders",
    "timeouts": "retransmission time-outs of all senders",
    "choice": "of bounds the best scale",
}
TIMED_MEASURES = {
    "reach_s": "start: from the flow's start until 0.5 s have delivered 90 % of the link; the length of the run where none has",
    "first_s": "outage: from the link's return until the first delivery; what is left of the run where there is none",
    "recover_s": "outage: from the link's return (held) or the first delivery after it (dropped) until 0.5 s have delivered"
    " 80 % of the link; what is left of the run where none has",
    "before_mbps": "delay_step: delivery in the second half of the time before the change",
    "after_mbps": "delay_step: delivery after the change",
    "kept": "delay_step: after_mbps over before_mbps",
    "settle_s": "delay_step, down: from the change until queueing over 1 s is below 10 ms; what is left of the run where it"
    " never is",
    "queue_after_ms": "delay_step: mean RTT less the least that the path can have, over the second half of the time after",
    "share": "rivals, strangers: of the delivery of all over the bottleneck in the last three quarters of the run",
    "jain": "agents, strangers: Jain's index of deliveries in the last three quarters of the run",
    "queue_bdp": "agents: mean time of a packet in the bottleneck's queue over the propagation RTT",
    "converge_s": "agents, joining: from a start until Jain's index over 2 s of those that are there is 0.9, the longest of"
    " all; until the next start where it never is",
}
MOMENT_MEASURES = {
    "throughput_mbps": "of the first sender's packets that arrived in the half second that ends then",
    "queueing_ms": "its RTT over the same less the path's least then",
}
MEASURES = RUN_MEASURES | TIMED_MEASURES | strangers.MEASURES | MOMENT_MEASURES
"""Measured columns of the results. NaN (an empty field) in studies that do not measure the column."""


def measure_run(view: View) -> dict[str, float]:
    """Return the measures `RUN_MEASURES` of a world that has run to its end."""
    reports = view.whole_report()

    def mean(name: str) -> float:
        found = [report[name] for report in reports if math.isfinite(report[name])]
        return float(np.mean(found)) if found else math.nan

    delivered = sum(report["goodput_mbps"] * report["duration_s"] for report in reports)
    return {
        "utility": mean("utility"),
        "goodput_mbps": mean("goodput_mbps"),
        "use": delivered / view.scenario.capacity_mbps / view.scenario.duration_s,
        "rtt_ms": mean("mean_rtt_ms"),
        "queue_delay_ms": mean("queue_delay_mean_ms"),
        "loss": mean("loss_rate"),
        "timeouts": float(sum(report["timeouts"] for report in reports)),
    }


class DeliveryLog:
    """Log of a world's deliveries, sampled after each decision.

    Args:
        made: World to sample.
    """

    def __init__(self, made: StudyWorld):
        self.made = made
        flows = len(made.scenario.flows)
        self._times: list[float] = [0.0]
        self._arrived: list[list[int]] = [[0] * flows]
        self._rtts: list[tuple[float, int]] = [(0.0, 0)]

    def sample(self, view: View) -> None:
        """Sample the world's current state."""
        world = view.simulated
        stats = world.flow_stats()[0]
        self._times.append(world.now_ns * 1e-9)
        self._arrived.append(world.flow_arrivals())
        self._rtts.append((stats["rtt_sum_s"], stats["rtt_count"]))

    @property
    def end_s(self) -> float:
        """Time of the last sample in seconds."""
        return self._times[-1]

    @property
    def times_s(self) -> np.ndarray:
        """Times of the samples in seconds, from 0 on."""
        return np.array(self._times)

    def delivered_mbps(self, flow: int, from_s: np.ndarray | float, to_s: np.ndarray | float) -> np.ndarray:
        """Return the mean rate at which a flow's data arrived between two moments."""
        megabits = np.array([row[flow] for row in self._arrived]) * 8e-6
        at = np.interp(to_s, self._times, megabits) - np.interp(from_s, self._times, megabits)
        return at / np.maximum(np.asarray(to_s) - from_s, 1e-9)

    def rtt_ms(self, from_s: np.ndarray | float, to_s: np.ndarray | float) -> np.ndarray:
        """Return the first sender's mean RTT over the RTT samples between two moments; NaN without a sample."""
        sums, counts = np.array(self._rtts, float).T
        total, samples = (np.interp(to_s, self._times, one) - np.interp(from_s, self._times, one) for one in (sums, counts))
        return np.where(samples > 0.5, total / np.maximum(samples, 0.5) * 1e3, np.nan)

    def least_ms(self, at_s: np.ndarray | float) -> np.ndarray:
        """Return the least round trip that the first sender's path can have at a moment, in ms."""
        scenario = self.made.scenario
        delay = scenario.links[0].delay_ms
        more = 0.0 if isinstance(delay, float) else delay.delay_at_ms(at_s) - delay.least_ms
        return scenario.base_rtt_ms(0) + more + np.zeros_like(np.asarray(at_s, float))

    def compute_time_to_share(self, share: float, from_s: float) -> float:
        """Return the seconds from a moment until 0.5 s have delivered a share of the link; the rest of the run if none have."""
        ends_s = self.times_s[self.times_s >= from_s + OVER_S - 1e-6]
        rates = self.delivered_mbps(0, ends_s - OVER_S, ends_s)
        link = self.made.scenario.links[0]
        peak_mbps = cast(float, link.rate_mbps) if link.trace is None else link.trace.peak_mbps
        reached = ends_s[rates >= share * peak_mbps]
        return float((reached[0] if len(reached) else self.end_s) - from_s)

    def list_moments(self) -> list[dict[str, float]]:
        """Return the measures `MOMENT_MEASURES` at each half second."""
        at_s = OVER_S * np.arange(1, int(self.end_s / OVER_S + 1e-6) + 1)
        rates = self.delivered_mbps(0, at_s - OVER_S, at_s)
        queueing = self.rtt_ms(at_s - OVER_S, at_s) - self.least_ms(at_s)
        return [{"throughput_mbps": float(r), "queueing_ms": float(q)} for r, q in zip(rates, queueing, strict=True)]


def measure_start(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure how long filling the link takes."""
    return {"reach_s": log.compute_time_to_share(FILLED, 0.0)}


def measure_outage(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure how long recovery from an outage takes."""
    until_s, link = log.made.until_s, log.made.scenario.links[0]
    after_s = log.times_s[log.times_s > until_s]
    arrived = log.delivered_mbps(0, until_s, after_s) > 0
    first_s = float((after_s[arrived][0] if arrived.any() else log.end_s) - until_s)
    from_s = until_s if link.on_outage == "hold" else min(until_s + first_s, log.end_s)
    return {"first_s": first_s, "recover_s": log.compute_time_to_share(RECOVERED, from_s)}


def measure_delay_step(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure what a change of the round trip costs, and how long a queue remains."""
    at_s, end_s = log.made.at_s, log.end_s
    before, after = (float(log.delivered_mbps(0, *times)) for times in ((at_s * BEFORE, at_s), (at_s, end_s)))
    ends_s = log.times_s[log.times_s >= at_s + QUEUE_OVER_S - 1e-6]
    queueing = log.rtt_ms(ends_s - QUEUE_OVER_S, ends_s) - log.least_ms(ends_s)
    settled = ends_s[queueing < SETTLED_MS]
    half_s, shorter = (at_s + end_s) / 2, log.least_ms(end_s) < log.least_ms(0.0)
    return {
        "before_mbps": before,
        "after_mbps": after,
        "kept": after / before if before > 0 else math.nan,
        "settle_s": float((settled[0] if len(settled) else end_s) - at_s) if shorter else math.nan,
        "queue_after_ms": float(log.rtt_ms(half_s, end_s) - log.least_ms(end_s)),
    }


def measure_rivals(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure the first sender's share beside the other sender."""
    own, other = (float(log.delivered_mbps(flow, FROM * log.end_s, log.end_s)) for flow in (0, 1))
    return {"share": own / (own + other) if own + other > 0 else math.nan}


def measure_strangers(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure what the senders and the others over their bottleneck have, and the queue that stands."""
    made = log.made
    rates = [float(log.delivered_mbps(flow, FROM * log.end_s, log.end_s)) for flow in range(len(made.scenario.flows))]
    return strangers.measure_deliveries(made, rates, row["rtt_ms"])


def measure_agents(log: DeliveryLog, row: Mapping[str, Any]) -> dict[str, float]:
    """Measure the queue and how evenly several senders share the link; where senders join, how long convergence takes."""
    made = log.made
    rates = [float(log.delivered_mbps(flow, FROM * log.end_s, log.end_s)) for flow in range(made.agents)]
    found: dict[str, Any] = {"queue_bdp": row["queue_delay_ms"] / made.scenario.propagation_rtt_ms(0)}
    if not made.scenario.name.startswith(JOIN):
        return found | {"jain": jain_index(np.array(rates))}
    starts_s = [*made.starts_s, log.end_s]
    waits = []
    for there in range(2, made.agents + 1):
        joined_s, next_s = starts_s[there - 1], starts_s[there]
        ends_s = log.times_s[(log.times_s >= joined_s + JAIN_OVER_S) & (log.times_s <= next_s)]
        shared = np.array([log.delivered_mbps(flow, ends_s - JAIN_OVER_S, ends_s) for flow in range(there)])
        even = ends_s[[jain_index(column) >= EVEN for column in shared.T]]
        waits.append(float((even[0] if len(even) else next_s) - joined_s))
    return found | {"converge_s": max(waits)}
