"""Row-by-row memory of each switch's telemetry in an environment, for observations and rewards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.scenarios.switches import compute_limit
from netbuf_gym.tasks.queue_threshold.telemetry import AT_LAST_COMPLETION, LEVERS_PER_QUEUE, PER_QUEUE, SHARED, switch_telemetry
from netbuf_gym.tasks.tracking import LastMeasured, Quantity

LOAD_MEMORY_S = 5.0
"""Time constant with which the observed arrival rate decays."""

STARTS_MEMORY_S = 0.3
"""Time constant with which the count of flow starts decays."""

BURST_MEMORY_S = 10.0
"""Time constant with which the largest recent count of flow starts decays."""

LEAST_S = 0.1
"""Least window of the minimum queue; a window has whole intervals, and the minimum covers one to two windows."""

EXCESS_MEMORY_S = 10.0
"""Time constant with which slowdowns of completed flows decay."""

TARGET_S = 0.01
"""A queue is short if the ports send it in this time or less."""

LONG_AGO_S = 10.0
"""Upper bound of the time since an event, and its value before the event has happened."""


class SwitchTracker(LastMeasured):
    """The last measured value of every telemetry field, and quantities that span several intervals.

    Before the first measurement `last` holds the alphas as the world sets them, and a free fraction of 1. Every shared field
    is an attribute of the same name, a view.

    Attributes (all float32 of shape `(rows,)` unless stated):
        queue: the fields of queues by name without number, each `(queues, rows)`, views of `last`.
        at: free_fraction, flows_completed, packets_dropped, elapsed_s and `(queues, rows)` drained_bytes when a flow last
            completed, views of `last`.
        levers: share, slots_used and largest_share of each queue, `(queues, rows)`, views of `last`; of a switch without such
            telemetry `(0, rows)`.
        load: `(queues, rows)`, packets that arrived over packets that the ports can send, decaying with time constant
            `LOAD_MEMORY_S`.
        starts_lately: `(queues, rows)`, SYNs that arrived, decaying with time constant `STARTS_MEMORY_S`.
        starts_most: `(queues, rows)`, largest recent value of `starts_lately`, decaying with time constant `BURST_MEMORY_S`.
        least_bytes: `(queues, rows)`, the fewest bytes that each queue has held in the last 100 to 200 ms (`LEAST_S`), or in
            the last interval where that is longer.
        since_s: `(3, queues, rows)`, time since an interval in which the queue was short (`TARGET_S`) at some moment, since a
            decision that limited it to less than it held, and since an interval in which it dropped something; at most
            `LONG_AGO_S`.
        flows_seen: `(queues, rows)`, flows whose SYN has left the queue and whose last segment has not, at least 0.
        excess_lately: `(queues, rows)`, mean of FCT / ideal FCT - 1 of the flows completed, decaying with time constant
            `EXCESS_MEMORY_S`, and of one more flow with the value 1: for rewards.
        completion_rate: `(queues, rows)`, flows completed a second, decaying with the same time constant, with one more: for
            rewards.
        flows_open: flows started and not completed.
        flow_known: bool, whether any flow has completed.
        share_of_buffer: `(queues, rows)`, share of the buffer that each queue holds.
        capacity_bps: line rate of the switch's ports; the highest one if it varies.
        service_s: time that a full packet takes at this rate.
        packet_units: size of a full packet in the unit in which the switch counts its buffer.
        betas: `(queues, rows)`, fixed factors of the thresholds.
        limit_s: `(queues, rows)`, the limits in seconds that actions last named; infinite before the first.
        ports: number of ports of the switch: the fields of a queue are sums over ports, a threshold is that of one port.
        cap_share: the share of the buffer beyond which no queue of a port grows; infinite without such a cap.
        arithmetic: native computation of these arrays from telemetry, and of the features observed from them.
    """

    elapsed_s: np.ndarray
    capacity: np.ndarray
    free: np.ndarray
    free_fraction: np.ndarray
    drop_head: np.ndarray
    flows_started: np.ndarray
    flows_completed: np.ndarray
    packets_dropped: np.ndarray
    packets_received: np.ndarray
    delivered_bytes: np.ndarray
    worst_difference_s: np.ndarray
    worst_ratio: np.ndarray

    def __init__(self, rows: int, queues: int, levers: bool = False):
        super().__init__(switch_telemetry(queues, levers), rows)
        self.queues = queues
        for column, field in enumerate(SHARED):
            setattr(self, field.name, self.last[column])
        block, end = len(SHARED), len(SHARED) + queues * len(PER_QUEUE)
        per_queue = self.last[block:end].reshape(queues, len(PER_QUEUE), rows)
        self.queue = SimpleNamespace(**{field.name: per_queue[:, column] for column, field in enumerate(PER_QUEUE)})
        at = {field.name.removeprefix("at_"): self.last[end + k] for k, field in enumerate(AT_LAST_COMPLETION)}
        self.at = SimpleNamespace(**at, drained_bytes=self.last[end + len(AT_LAST_COMPLETION) :][:queues])
        own = self.last[end + len(AT_LAST_COMPLETION) + queues :].reshape(-1, len(LEVERS_PER_QUEUE), rows)
        self.levers = SimpleNamespace(**{field.name: own[:, column] for column, field in enumerate(LEVERS_PER_QUEUE)})
        self._memory = np.zeros((7 * queues + 2, rows), np.float32)
        own = self._memory[:-2].reshape(7, queues, rows)
        self.load, self.starts_lately, self.starts_most, self.flows_seen = own[:4]
        self.share_of_buffer, self._excess_sum, self._excess_flows = own[4:]
        self.flows_open = self._memory[-2]
        self._leasts = np.zeros((3, queues, rows), np.float32)
        self.least_bytes = self._leasts[0]
        self.since_s = np.full((3, queues, rows), LONG_AGO_S, np.float32)
        self._above_s, self._cut_age_s = self.since_s[:2]
        self.limit_s = np.full((queues, rows), np.inf, np.float32)
        self._flags = np.zeros((2, rows), bool)
        self._in_bytes, self.flow_known = self._flags
        self._world = np.ones((5, rows), np.float32)
        self.capacity_bps, self.service_s, self.packet_units, self.ports, self.cap_share = self._world
        self.cap_share[:] = np.inf
        self.betas = np.ones((queues, rows), np.float32)
        self._kept = np.zeros((4, rows), np.float32)
        rules = {
            "load_memory_s": LOAD_MEMORY_S,
            "starts_memory_s": STARTS_MEMORY_S,
            "burst_memory_s": BURST_MEMORY_S,
            "excess_memory_s": EXCESS_MEMORY_S,
            "least_window_s": LEAST_S - 1e-6,  # margin for rounding in the float32 sum of intervals
            "target_s": TARGET_S,
            "long_ago_s": LONG_AGO_S,
        }
        self.arithmetic = _core.SwitchFeatures(
            *(self.names, queues, rules),
            last=self.last,
            memory=self._memory,
            leasts=self._leasts,
            since=self.since_s,
            world=self._world,
            betas=self.betas,
            flags=self._flags,
            kept=self._kept,
        )

    def reset(
        self,
        rows: slice,
        *,
        capacity_bps: float,
        capacity: float,
        in_bytes: bool,
        packet_bytes: float,
        alphas: Any,
        betas: Any,
        ports: int = 1,
        queue_cap: float | None = None,
        drop_head: bool = False,
        shares: Any = 0.0,
    ) -> None:
        """Forget everything measured on these rows, whose world starts anew. Capacity and cap are in the switch's unit."""
        self.forget(rows)
        self._memory[:, rows] = 0
        self._leasts[:, :, rows] = 0
        self.since_s[:, :, rows] = LONG_AGO_S
        self._above_s[:, rows] = 0
        self.limit_s[:, rows] = np.inf
        self.capacity[rows] = capacity
        self.free[rows] = capacity
        self.free_fraction[rows] = 1
        self.drop_head[rows] = drop_head
        self.at.free_fraction[rows] = 1
        self.queue.alpha[:, rows] = np.reshape(alphas, (-1, 1))
        self.betas[:, rows] = np.reshape(betas, (-1, 1))
        if len(self.levers.share):
            self.levers.share[:, rows] = np.reshape(shares, (-1, 1))
        self.flow_known[rows] = False
        self.capacity_bps[rows] = capacity_bps
        self.service_s[rows] = packet_bytes * 8 / capacity_bps
        self.packet_units[rows] = packet_bytes if in_bytes else 1
        self._in_bytes[rows] = in_bytes
        self.ports[rows] = ports
        self.cap_share[rows] = np.inf if queue_cap is None else queue_cap / capacity

    def update(self, telemetry: np.ndarray) -> None:
        """Update from the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self.note(telemetry)
        self.arithmetic.take_in(telemetry)
        np.exp(self._kept, out=self._kept)
        self.arithmetic.follow()

    def note_decision(self, alphas: np.ndarray) -> None:
        """Record the alphas `(queues, rows)` that now come into force."""
        limits = compute_limit(alphas, self.betas, self.free_fraction, self.cap_share) * self.ports
        np.copyto(self._cut_age_s, 0, where=limits < self.share_of_buffer)

    def note_limits(self, limit_s: np.ndarray) -> None:
        """Record the least limits in seconds, `(queues, rows)`, that now come into force, those of pulses included.

        The limit alone decides whether a queue counts as cut: a queue kept short by a full buffer below its limit is not cut.
        """
        np.copyto(self._cut_age_s, 0, where=limit_s * self.capacity_bps < self.queue.queue_bytes * np.float32(8))

    @property
    def excess_lately(self) -> np.ndarray:
        """See the class."""
        return (1 + self._excess_sum) / (1 + self._excess_flows)

    @property
    def completion_rate(self) -> np.ndarray:
        """See the class."""
        return (1 + self._excess_flows) * np.float32(1 / EXCESS_MEMORY_S)

    def throughput_ratio(self) -> np.ndarray:
        """Return the bytes delivered in order over the bytes that the ports can send in the interval."""
        can_send = self.capacity_bps * np.maximum(self.elapsed_s, np.float32(1e-9))
        return self.delivered_bytes * np.float32(8) / can_send

    def queueing_s(self) -> np.ndarray:
        """Return the time in seconds that the ports take to send what is queued at the end of the interval."""
        return self.queue.queue_bytes.sum(axis=0) * np.float32(8) / self.capacity_bps

    def loss_ratio(self) -> np.ndarray:
        """Return packets not admitted over packets that arrived, 0 when there were none."""
        return np.minimum(self.packets_dropped / np.maximum(self.queue.arrivals.sum(axis=0), np.float32(1)), np.float32(1))

    quantities = (
        Quantity("throughput_ratio", "1", "bytes delivered in order / what the ports can send", throughput_ratio),
        Quantity("queueing_s", "s", "time that the ports take to send what is queued at the end of the interval", queueing_s),
        Quantity("loss_ratio", "1", "packets not admitted / arrived; 0 when there were none", loss_ratio),
        Quantity("capacity_bps", "bit/s", "line rate of the ports, its highest if it varies", lambda self: self.capacity_bps),
        Quantity("service_s", "s", "time that a full packet takes at this rate", lambda self: self.service_s),
        Quantity("occupancy", "1", "buffer in use as a share of it", lambda self: 1 - self.free_fraction),
        Quantity("flows_open", "1", "flows started and not completed", lambda self: self.flows_open),
        Quantity("flow_known", "bool", "whether any flow has completed by now", lambda self: self.flow_known),
        Quantity("ports", "1", "ports of the switch; the fields of a queue are sums over them", lambda self: self.ports),
    )
