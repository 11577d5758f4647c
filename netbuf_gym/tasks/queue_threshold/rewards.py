"""Rewards of a shared-buffer switch, as sums of named terms over one decision interval.

They read a :class:`~netbuf_gym.tasks.queue_threshold.tracker.SwitchTracker` and are finite for every interval.

| name             | terms                            | value                                                                  |
|------------------|----------------------------------|------------------------------------------------------------------------|
| `switch_utility` | throughput, slowdown, buffer,    | a g/C - b sum over flows completed of w_p f(S) - c T sum over queues   |
|                  | loss, delay, burst               | of v_q n_q/B - d sum over queues of u_q dropped * s                    |
|                  |                                  | - T sum over queues of (e x_q b_q/C + h y_q (1 - room_q/N)+)           |
| `switch_log`     | goodput, short_flows, long_flows | a g/C - sum over flows completed of w_p ln(S) / r_p                    |
| `thesis_text`    | slowdown, throughput             | -ln(W) + ln(1 + packets/s)                         (RLBM as described) |
| `thesis_code`    | slowdown, throughput             | -log2(worst S) + log2(1 + Gbit/s)                      (RLBM as coded) |

with g the bits delivered in order to receivers, C the rate of the switch's ports, S = FCT / ideal FCT of a flow, f = ln(S),
S - 1, or S - 1 over its recent mean, r_p the flows of priority p completed a second lately, n_q/B the share of the buffer
that queue q holds, b_q its bits, T the interval's length and s a full packet's time at rate C in seconds, room_q the number
of packets that the queue would still admit, N a burst, (x)+ the larger of x and 0, W the worst FCT - ideal FCT in seconds.

Flows start at random (Poisson) times, independently of the queues: a new flow meets the delay and the room of an average
moment. The terms `delay` and `burst` (the share of a burst that would be lost) measure these every interval, whereas
`slowdown` waits for the few flows that complete. Both ignore what happens to a flow after its first packets, and both
look at the end of the interval: as the main part of a reward they favour cutting flows off while they start. `loss`
counts all packets that were dropped: most belong to the flows that fill the queue, whose senders learn of it by these losses.
With several ports, room_q is that of one port's queue, the ports' queues counting as equally long.

From `netbuf_gym.rewards` a switch supports `alpha_fair` and `range_normalized`: throughput is relative to the rate of its
ports, delay is the time that they take to send what is queued, and loss is the share of arriving packets not admitted.

`switch_log` pursues the metric `fct_utility` of a switch: divided by r_p, the logarithms of an episode come near its length in
seconds times their mean where flows complete often; of fewer than one in two seconds each weighs less, and in the first 10 s
more. Goodput is an integral over the same seconds.

The terms of `switch_utility` and of the goodput of `switch_log` are integrals over time and sums over events: an episode's sum
does not depend on the decision interval. The terms of the thesis are values, the worst of the last interval in which a flow
completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbuf_gym.rewards import AlphaFair, RangeNormalized, index_rewards
from netbuf_gym.scenarios.switches import compute_limit
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker
from netbuf_gym.utils.arguments import check_choice, check_real, check_sequence

SLOWDOWN_MEASURES = ("log", "excess", "relative")


@dataclass(frozen=True)
class SwitchUtility:
    """An operator's goals for a buffer: full links, short flows unharmed, and no more buffer than that takes.

    Weights of priorities and queues are lists from queue 0 on; the last one applies to all further queues.

    Args:
        throughput_weight, slowdown_weight, buffer_weight, loss_weight, delay_weight, burst_weight: Weights a
            to e and h, 0 to 100.
        measure: Function f of a completed flow's slowdown S: `"log"`, ln(S); `"excess"`, S - 1, in which the worst
            flows weigh more; or `"relative"`, S - 1 over its recent mean, the flow's contribution to the logarithm of the
            mean: a world in which all flows are slow weighs no more than another.
        slowdown_priorities: Weights w of flows by priority, 0 to 100.
        buffer_queues: Weights v of queues' lengths, 0 to 100.
        loss_queues: Weights u of queues' drops, 0 to 100; drops count as shares of what the ports can send in a second.
        delay_queues: Weights x of the time that the ports take to send what a queue holds, in seconds, 0 to 100.
        burst_queues: Weights y of the share of a burst that a queue would not admit, 0 to 100.
        burst_packets: Packets N of a burst, 1 to 1000.
    """

    throughput_weight: float = 1.0
    slowdown_weight: float = 1.0
    buffer_weight: float = 0.1
    loss_weight: float = 0.0
    delay_weight: float = 0.0
    burst_weight: float = 0.0
    measure: str = "log"
    slowdown_priorities: Sequence[float] = (1.0, 0.1)
    buffer_queues: Sequence[float] = (1.0,)
    loss_queues: Sequence[float] = (1.0,)
    delay_queues: Sequence[float] = (1.0,)
    burst_queues: Sequence[float] = (1.0,)
    burst_packets: float = 10.0
    name: ClassVar[str] = "switch_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "slowdown", "buffer", "loss", "delay", "burst")
    requires: ClassVar[tuple[str, ...]] = (
        *("elapsed_s", "delivered_bytes", "capacity_bps", "log_ratio_sum_0", "ratio_sum_0", "flows_completed_0", "drops_0"),
        *("service_s", "queue_bytes_0", "alpha_0", "capacity", "free_fraction", "ports"),
    )

    def __post_init__(self) -> None:
        for term in self.terms:
            check_real(f"{term}_weight", getattr(self, f"{term}_weight"), 0, 100)
        check_real("burst_packets", self.burst_packets, 1, 1000)
        check_choice("measure", self.measure, SLOWDOWN_MEASURES)
        for field in ("slowdown_priorities", "buffer_queues", "loss_queues", "delay_queues", "burst_queues"):
            values = check_sequence(field, getattr(self, field), "weights")
            weights = tuple(check_real(f"{field}[{q}]", value, 0, 100) for q, value in enumerate(values))
            object.__setattr__(self, field, weights)

    def __call__(self, tracker: SwitchTracker, out: np.ndarray) -> None:
        """Write the terms, `(6, rows)`, to `out`."""
        queue, time_s = tracker.queue, tracker.elapsed_s
        np.multiply(tracker.delivered_bytes, np.float32(8 * self.throughput_weight) / tracker.capacity_bps, out=out[0])
        slowdown = queue.log_ratio_sum if self.measure == "log" else queue.ratio_sum - queue.flows_completed
        if self.measure == "relative":
            slowdown = slowdown / tracker.excess_lately
        out[1] = self._weighted_sum(self.slowdown_priorities, slowdown, -self.slowdown_weight)
        out[2:] = 0  # terms without a weight, by default most of them, are not worth their arithmetic
        if self.buffer_weight:
            out[2] = self._weighted_sum(self.buffer_queues, tracker.share_of_buffer, -self.buffer_weight) * time_s
        if self.loss_weight:
            out[3] = self._weighted_sum(self.loss_queues, queue.drops, -self.loss_weight) * tracker.service_s
        if self.delay_weight:
            seconds = queue.queue_bytes * np.float32(8) / tracker.capacity_bps
            out[4] = self._weighted_sum(self.delay_queues, seconds, -self.delay_weight) * time_s
        if self.burst_weight:
            out[5] = self._weighted_sum(self.burst_queues, self._refused(tracker), -self.burst_weight) * time_s

    def _refused(self, tracker: SwitchTracker) -> np.ndarray:
        """Return the share of a burst that each queue would not admit, `(queues, rows)`."""
        held = tracker.share_of_buffer / tracker.ports
        most = tracker.free_fraction + held
        limit = compute_limit(tracker.queue.alpha, tracker.betas, tracker.free_fraction, most, tracker.cap_share)
        room = (limit - held) * tracker.capacity / tracker.packet_units  # packets
        return np.clip(1 - room * np.float32(1 / self.burst_packets), 0, 1)

    @staticmethod
    def _weighted_sum(weights: Iterable[float], values: np.ndarray, factor: float) -> np.ndarray:
        """Return the sum over queues of weight times value, `(rows,)`, times `factor`, for values `(queues, rows)`."""
        weights = tuple(weights)
        padded = (weights + weights[-1:] * len(values))[: len(values)]
        return np.float32(factor) * (np.array(padded, np.float32) @ values)


@dataclass(frozen=True)
class SwitchLog:
    """Mean logarithm of the slowdown, by priority, and goodput: what the metric `fct_utility` is the outcome of.

    Args:
        goodput_weight: Weight a, 0 to 100; 1 over the load makes a per cent of goodput weigh as much as one of the short flows'
            slowdown, as in the metric: 2, the default, at half load.
        short_weight, long_weight: Weights w of priority 0 and of all others, 0 to 100.
    """

    goodput_weight: float = 2.0
    short_weight: float = 1.0
    long_weight: float = 0.05
    name: ClassVar[str] = "switch_log"
    terms: ClassVar[tuple[str, ...]] = ("goodput", "short_flows", "long_flows")
    requires: ClassVar[tuple[str, ...]] = ("delivered_bytes", "capacity_bps", "log_ratio_sum_0", "flows_completed_0")

    def __post_init__(self) -> None:
        for term in ("goodput", "short", "long"):
            check_real(f"{term}_weight", getattr(self, f"{term}_weight"), 0, 100)

    def __call__(self, tracker: SwitchTracker, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, to `out`."""
        np.multiply(tracker.delivered_bytes, np.float32(8 * self.goodput_weight) / tracker.capacity_bps, out=out[0])
        seconds = tracker.queue.log_ratio_sum / tracker.completion_rate
        np.multiply(seconds[0], np.float32(-self.short_weight), out=out[1])
        np.multiply(seconds[1:].sum(axis=0), np.float32(-self.long_weight), out=out[2])


@dataclass(frozen=True)
class ThesisText:
    """RLBM's reward as in its text: -ln(WFS) + ln(1 + throughput), throughput in packets received per second.

    WFS is the worst FCT - ideal FCT in seconds of the flows that completed in the interval, at least the time that one
    packet takes at the ports' rate; without a completion the last value stands, and before the first the term is 0.
    """

    name: ClassVar[str] = "thesis_text"
    terms: ClassVar[tuple[str, ...]] = ("slowdown", "throughput")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "worst_difference_s", "packets_received", "flow_known", "service_s")

    def __call__(self, tracker: SwitchTracker, out: np.ndarray) -> None:
        """Write the terms, `(2, rows)`, to `out`."""
        worst = np.where(tracker.flow_known, np.maximum(tracker.worst_difference_s, tracker.service_s), 1)
        np.log(worst, out=out[0], casting="same_kind")
        np.negative(out[0], out=out[0])
        np.log1p(tracker.packets_received / np.maximum(tracker.elapsed_s, np.float32(1e-9)), out=out[1])


@dataclass(frozen=True)
class ThesisCode:
    """RLBM's reward as in its code: -log2(worst FCT / ideal FCT) + log2(1 + throughput in Gbit/s).

    The worst is taken over the flows that completed in the interval; without a completion the last value stands, and before the
    first the term is 0. At 10 Mbit/s the throughput term is at most 0.014.
    """

    name: ClassVar[str] = "thesis_code"
    terms: ClassVar[tuple[str, ...]] = ("slowdown", "throughput")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "worst_ratio", "delivered_bytes", "flow_known")

    def __call__(self, tracker: SwitchTracker, out: np.ndarray) -> None:
        """Write the terms, `(2, rows)`, to `out`."""
        np.log2(np.where(tracker.flow_known, tracker.worst_ratio, 1), out=out[0], casting="same_kind")
        np.negative(out[0], out=out[0])
        gbps = tracker.delivered_bytes * np.float32(8e-9) / np.maximum(tracker.elapsed_s, np.float32(1e-9))
        np.log2(1 + gbps, out=out[1])


REWARDS = index_rewards(SwitchUtility, SwitchLog, ThesisText, ThesisCode, AlphaFair, RangeNormalized)
"""Rewards by name, with those of `netbuf_gym.rewards` whose terms a switch measures: it measures no round-trip times."""
