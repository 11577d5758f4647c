"""Counters of a world over time, from which suites score windows of it."""

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
"""Cumulative counters that are recorded, of flows (`FLOW`) and of links (`LINK`)."""
STATE = ("cwnd_packets", "in_flight_packets", "pacing_mbps")
"""State of each flow at a reading."""
ARRIVED = len(FLOW)
"""Column of the bytes that have arrived, in any order."""
_STATE = [FLOW_SAMPLE.index(name) for name in STATE]


class Recorder:
    """Recorder of a world's counters: called with its view after each decision and at its end.

    Args:
        scenario: Scenario of the world, with agents in it.
        sample_s: Time between two readings.
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
        """Return the record of a world that has ended."""
        self(view)
        flows, links, states = (np.stack(one) for one in (self._flows, self._links, self._states))
        return Record(self._scenario, np.array(self._times), flows, links, states, view.simulated)


class Record:
    """Counters of a world over its life; between two readings they are interpolated linearly.

    Times are seconds from the world's start; `flow` and `link` are indices. Values without a measurement are NaN.

    Attributes:
        scenario: Scenario of the world, with agents in it.
        time_s: Times of the readings, from 0 on, `(readings,)`.
        world: World at its end, for values that only exist then.
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
        """Return one of `STATE` at each reading, `(readings,)`; NaN at the first."""
        return self._states[:, flow, STATE.index(key)]

    def flow_count(self, flow: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return a counter of `FLOW`, or `"arrived_bytes"`, at these times."""
        column = ARRIVED if key == "arrived_bytes" else FLOW.index(key)
        return np.interp(np.asarray(times), self.time_s, self._flows[:, flow, column])

    def link_count(self, link: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return a counter of `LINK` at these times; NaN for the capacity of a link without a limit."""
        column = self._links[:, link, LINK.index(key)]
        return np.interp(np.asarray(times), self.time_s, np.where(np.isfinite(column), column, np.nan))

    def get_flow_increase(self, flow: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the increase of a flow's counter from each time to the next."""
        return np.diff(self.flow_count(flow, key, times))

    def get_link_increase(self, link: int, key: str, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the increase of a link's counter from each time to the next."""
        return np.diff(self.link_count(link, key, times))

    def goodput_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the rate delivered to the receiving application, between times."""
        return self.get_flow_increase(flow, "delivered_bytes", times) * 8e-6 / np.diff(times)

    def wire_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the rate that arrived at the receiver in any order, headers included, between times."""
        headers = self.scenario.data_bytes / self.scenario.mss
        return self.get_flow_increase(flow, "arrived_bytes", times) * headers * 8e-6 / np.diff(times)

    def rtt_ms(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the mean of a flow's round-trip times, between times."""
        return _divide(self.get_flow_increase(flow, "rtt_sum_s", times) * 1e3, self.get_flow_increase(flow, "rtt_count", times))

    def queue_ms(self, times: Sequence[float] | np.ndarray, link: int | None = None) -> np.ndarray:
        """Return the mean time of packets at a link (default: the bottleneck), transmission included, between times."""
        at = self.scenario.bottleneck if link is None else link
        return _divide(
            self.get_link_increase(at, "sojourn_sum_s", times) * 1e3, self.get_link_increase(at, "sojourn_count", times)
        )

    def queue_quantile_ms(self, share: float, times: Sequence[float] | np.ndarray, link: int | None = None) -> float:
        """Return the quantile of the time at a link over the packets between the first and the last time.

        Each packet counts with the mean of the interval between two times that contains it.
        """
        at = self.scenario.bottleneck if link is None else link
        return weighted_quantile(self.queue_ms(times, at), self.get_link_increase(at, "sojourn_count", times), share)

    def capacity_mbps(self, times: Sequence[float] | np.ndarray, link: int | None = None) -> np.ndarray:
        """Return the rate that a link could have carried, between times; with a token bucket at most its rate."""
        at = self.scenario.bottleneck if link is None else link
        offered = self.get_link_increase(at, "offered_bits", times) * 1e-6 / np.diff(times)
        return np.minimum(offered, self.scenario.links[at].throughput_limit_mbps)

    def compute_loss_share(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the share of a flow's packets that was lost, at queues and at random, between times."""
        drops = self.get_flow_increase(flow, "queue_drops", times) + self.get_flow_increase(flow, "random_losses", times)
        return _divide(drops, self.get_flow_increase(flow, "packets_sent", times))

    def retransmitted_mbps(self, flow: int, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the rate of a flow's retransmitted segments, without headers, between times."""
        return self.get_flow_increase(flow, "packets_retransmitted", times) * self.scenario.mss * 8e-6 / np.diff(times)


def finite_mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else float("nan")


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return the least value that at least this share of the weight does not exceed; NaN without any weight."""
    known = np.isfinite(values) & (weights > 0)
    values, weights = values[known], weights[known]
    if not len(values):
        return float("nan")
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(weights[order]), share * weights.sum())
    return float(values[order][min(reached, len(values) - 1)])


def _divide(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
