"""What a world has counted, moment by moment, so that suites can score windows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.plants.simulator import FLOW_SAMPLE
from netbuf_gym.scenarios import Scenario

FLOW = (
    *("delivered_bytes", "packets_sent", "packets_retransmitted", "packets_received", "queue_drops", "random_losses"),
    *("rtt_sum_s", "rtt_count", "timeouts", "acks_received"),
)
LINK = (
    *("packets_in", "bytes_sent", "used_bits", "offered_bits", "queue_drops", "random_losses", "marks"),
    *("sojourn_sum_s", "sojourn_count"),
)
"""Cumulative counters that are kept of flows and of links."""
STATE = ("cwnd_packets", "in_flight_packets", "pacing_mbps")
"""Of each flow, as it is at a reading."""
ARRIVED = len(FLOW)
"""Column of the bytes that have arrived, in whatever order."""
_STATE = [FLOW_SAMPLE.index(name) for name in STATE]


class Recorder:
    """Reads a world's counters while it is played: called with its view, after each decision and at its end.

    Args:
        scenario: The world, with agents in it.
        sample_s: Between two readings.
    """

    def __init__(self, scenario: Scenario, sample_s: float):
        self._scenario, self._step_ns, self._next_ns = scenario, round(sample_s * 1e9), round(sample_s * 1e9)
        self._end_ns = round(scenario.duration_s * 1e9)
        self._times: list[float] = [0.0]
        self._flows = [np.zeros((len(scenario.flows), ARRIVED + 1))]
        self._links = [np.zeros((len(scenario.links), len(LINK)))]
        self._states = [np.full((len(scenario.flows), len(STATE)), np.nan)]

    def __call__(self, view: View) -> None:
        world = view.simulated
        now_ns = world.now_ns
        if now_ns < min(self._next_ns, self._end_ns) or now_ns * 1e-9 <= self._times[-1]:
            return
        self._next_ns = (now_ns // self._step_ns + 1) * self._step_ns
        self._times.append(now_ns * 1e-9)
        arrived = world.flow_arrivals()
        stats = world.flow_stats()
        self._flows.append(np.array([[*(one[k] for k in FLOW), n] for one, n in zip(stats, arrived, strict=True)], float))
        self._states.append(np.asarray(world.flow_sample())[:, _STATE])
        self._links.append(np.array([[one[key] for key in LINK] for one in world.link_stats()], float))

    def record(self, view: View) -> Record:
        """What was read, of a world that has come to its end."""
        self(view)
        flows, links, states = (np.stack(one) for one in (self._flows, self._links, self._states))
        return Record(self._scenario, np.array(self._times), flows, links, states, view.simulated)


class Record:
    """Counters of a world over its life; between two readings they are taken to rise evenly.

    Times are seconds from the world's start; `flow` and `link` are indices. What nothing was measured of is NaN.

    Attributes:
        scenario: The world, with agents in it.
        time_s: Of the readings, from 0 on, `(readings,)`.
        world: As it is at its end: what only its end tells.
    """

    def __init__(
        self,
        scenario: Scenario,
        time_s: np.ndarray,
        flows: np.ndarray,
        links: np.ndarray,
        states: np.ndarray,
        world: Any,
    ):
        self.scenario, self.time_s, self.world = scenario, time_s, world
        self._flows, self._links, self._states = flows, links, states

    def state(self, flow: int, key: str) -> np.ndarray:
        """One of `STATE` at each reading, `(readings,)`; NaN at the first."""
        return self._states[:, flow, STATE.index(key)]

    def flow_count(self, flow: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """A counter of `FLOW`, or `"arrived_bytes"`, at these times."""
        column = ARRIVED if key == "arrived_bytes" else FLOW.index(key)
        return np.interp(np.asarray(times), self.time_s, self._flows[:, flow, column])

    def link_count(self, link: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """A counter of `LINK` at these times; NaN for what a link without a limit could have carried."""
        column = self._links[:, link, LINK.index(key)]
        return np.interp(np.asarray(times), self.time_s, np.where(np.isfinite(column), column, np.nan))

    def of_flow(self, flow: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """What such a counter rose by from each time to the next."""
        return np.diff(self.flow_count(flow, key, times))

    def of_link(self, link: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """What a counter of a link rose by from each time to the next."""
        return np.diff(self.link_count(link, key, times))

    def goodput_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """What the receiving application was handed, between times."""
        return self.of_flow(flow, "delivered_bytes", times) * 8e-6 / np.diff(times)

    def wire_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """What arrived at the receiver in whatever order, with headers, between times."""
        headers = self.scenario.data_bytes / self.scenario.mss
        return self.of_flow(flow, "arrived_bytes", times) * headers * 8e-6 / np.diff(times)

    def rtt_ms(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Mean of a flow's round-trip times, between times."""
        return _over(self.of_flow(flow, "rtt_sum_s", times) * 1e3, self.of_flow(flow, "rtt_count", times))

    def queue_ms(self, times: Sequence[float] | np.ndarray, link: int | None = None) -> np.ndarray:
        """Mean time of packets at a link, transmission included, between times; of the bottleneck where none is named."""
        at = self.scenario.bottleneck if link is None else link
        return _over(self.of_link(at, "sojourn_sum_s", times) * 1e3, self.of_link(at, "sojourn_count", times))

    def queue_quantile_ms(self, share: float, times: Sequence[float] | np.ndarray, link: int | None = None) -> float:
        """The time at a link that this share of the packets between the first and the last time does not exceed, each packet
        counting with the mean of the interval between two times that it falls into."""
        at = self.scenario.bottleneck if link is None else link
        return weighted_quantile(self.queue_ms(times, at), self.of_link(at, "sojourn_count", times), share)

    def capacity_mbps(self, times: Sequence[float] | np.ndarray, link: int | None = None) -> np.ndarray:
        """What a link could have carried, between times; behind a token bucket no more than its rate."""
        at = self.scenario.bottleneck if link is None else link
        offered = self.of_link(at, "offered_bits", times) * 1e-6 / np.diff(times)
        return np.minimum(offered, self.scenario.links[at].passes_mbps)

    def lost(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Share of a flow's packets that was lost, at queues and at random, between times."""
        drops = self.of_flow(flow, "queue_drops", times) + self.of_flow(flow, "random_losses", times)
        return _over(drops, self.of_flow(flow, "packets_sent", times))

    def retransmitted_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Segments that a flow sent again, without headers, between times."""
        return self.of_flow(flow, "packets_retransmitted", times) * self.scenario.mss * 8e-6 / np.diff(times)


def known_mean(values: Sequence[float] | np.ndarray) -> float:
    """The mean of what is no NaN; NaN without any."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else float("nan")


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The least value that at least this share of the weight does not exceed; NaN without any weight."""
    known = np.isfinite(values) & (weights > 0)
    values, weights = values[known], weights[known]
    if not len(values):
        return float("nan")
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(weights[order]), share * weights.sum())
    return float(values[order][min(reached, len(values) - 1)])


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
