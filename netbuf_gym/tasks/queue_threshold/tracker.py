"""What an environment remembers of each switch's telemetry, row by row, for observations and rewards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from netbuf_gym.tasks.queue_threshold.telemetry import PER_QUEUE, SHARED, switch_telemetry
from netbuf_gym.tasks.tracking import LastMeasured, Quantity

LOAD_MEMORY_S = 5.0
"""Time constant with which the arrival rate seen so far is forgotten."""

SLOWDOWN_MEMORY = 0.9
"""What each completed flow leaves of the slowdown level known before it."""


class SwitchTracker(LastMeasured):
    """The last measured value of every telemetry field, and what needs more than one interval to know.

    Before the first measurement `last` holds the alphas as the world sets them, and a free fraction of 1. Every shared field
    is an attribute by its name, a view.

    Attributes (all float32 of shape `(rows,)` unless stated):
        queue: the fields of queues by name without number, each `(queues, rows)`, views of `last`.
        at_drained_bytes: `(queues, rows)`, a view of `last`.
        load: `(queues, rows)`, packets that arrived over packets that the ports can send, forgotten with time constant
            `LOAD_MEMORY_S`.
        slowdown_level: `(queues, rows)`, mean logarithm of FCT / ideal FCT over the flows lately completed.
        age_s: `(queues, rows)`, time since a flow of the priority completed.
        flows_open: flows started and not completed.
        flow_known: bool, whether any flow has completed.
        share_of_buffer: `(queues, rows)`, what each queue holds of the buffer.
        capacity_bps: rate of the switch's ports. service_s: time that a full packet takes at this rate.
        packet_units: a full packet in the unit in which the switch counts its buffer.
        betas: `(queues, rows)`, fixed factors of the thresholds.
        in_bytes: bool, whether the switch counts bytes.
        ports: how many ports the switch has: the fields of a queue are sums over them, a threshold is each one's.
        cap_share: the share of the buffer beyond which no queue of a port grows; infinite without such a cap.
    """

    elapsed_s: np.ndarray
    capacity: np.ndarray
    free: np.ndarray
    free_fraction: np.ndarray
    flows_started: np.ndarray
    flows_completed: np.ndarray
    packets_dropped: np.ndarray
    packets_received: np.ndarray
    delivered_bytes: np.ndarray
    worst_difference_s: np.ndarray
    worst_ratio: np.ndarray

    def __init__(self, rows: int, queues: int):
        super().__init__(switch_telemetry(queues), rows)
        self.queues = queues
        for column, field in enumerate(SHARED):
            setattr(self, field.name, self.last[column])
        block, end = len(SHARED), len(SHARED) + queues * len(PER_QUEUE)
        self.queue = _by_name(self.last[block:end].reshape(queues, len(PER_QUEUE), rows))
        at = self.last[end:]
        self.at_free_fraction, self.at_flows_completed, self.at_packets_dropped, self.at_elapsed_s = at[:4]
        self.at_drained_bytes = at[4:]
        self._memory = np.zeros((4 * queues + 1, rows), np.float32)
        self.load, self.slowdown_level, self.age_s, self.share_of_buffer = self._memory[:-1].reshape(4, queues, rows)
        self.flows_open = self._memory[-1]
        self.flow_known = np.zeros(rows, bool)
        self.capacity_bps, self.service_s, self.packet_units = np.ones((3, rows), np.float32)
        self.betas = np.ones((queues, rows), np.float32)
        self.in_bytes = np.zeros(rows, bool)
        self.ports = np.ones(rows, np.float32)
        self.cap_share = np.full(rows, np.inf, np.float32)

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
    ) -> None:
        """Forgets everything measured on these rows; their world starts anew. Capacity and cap are in the switch's unit."""
        self.forget(rows)
        self._memory[:, rows] = 0
        self.capacity[rows] = capacity
        self.free[rows] = capacity
        self.free_fraction[rows] = 1
        self.at_free_fraction[rows] = 1
        self.queue.alpha[:, rows] = np.reshape(alphas, (-1, 1))
        self.betas[:, rows] = np.reshape(betas, (-1, 1))
        self.flow_known[rows] = False
        self.capacity_bps[rows] = capacity_bps
        self.service_s[rows] = packet_bytes * 8 / capacity_bps
        self.packet_units[rows] = packet_bytes if in_bytes else 1
        self.in_bytes[rows] = in_bytes
        self.ports[rows] = ports
        self.cap_share[rows] = np.inf if queue_cap is None else queue_cap / capacity

    def update(self, telemetry: np.ndarray) -> None:
        """Takes in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        super().update(telemetry)
        queue, elapsed = self.queue, self.elapsed_s
        np.copyto(self.share_of_buffer, np.where(self.in_bytes, queue.queue_bytes, queue.queue_packets))
        self.share_of_buffer /= self.capacity
        kept = np.exp(elapsed * np.float32(-1 / LOAD_MEMORY_S))
        rate = queue.arrivals * self.service_s / np.maximum(elapsed, np.float32(1e-9))
        self.load += (1 - kept) * (rate - self.load)

        completed = queue.flows_completed
        mean = queue.log_ratio_sum / np.maximum(completed, np.float32(1))
        gain = 1 - np.float32(SLOWDOWN_MEMORY) ** completed
        self.slowdown_level += gain * (mean - self.slowdown_level)
        self.age_s += elapsed
        np.copyto(self.age_s, 0, where=completed > 0)
        self.flows_open += self.flows_started - self.flows_completed
        np.logical_or(self.flow_known, self.flows_completed > 0, out=self.flow_known)

    def throughput_ratio(self) -> np.ndarray:
        """Bytes delivered in order over what the ports can send in the interval."""
        can_send = self.capacity_bps * np.maximum(self.elapsed_s, np.float32(1e-9))
        return self.delivered_bytes * np.float32(8) / can_send

    def queueing_s(self) -> np.ndarray:
        """Time that the ports take to send what is queued at the end of the interval, in seconds."""
        return self.queue.queue_bytes.sum(axis=0) * np.float32(8) / self.capacity_bps

    def loss_ratio(self) -> np.ndarray:
        """Packets not admitted over packets that arrived, 0 when there were none."""
        return np.minimum(self.packets_dropped / np.maximum(self.queue.arrivals.sum(axis=0), np.float32(1)), np.float32(1))

    quantities = (
        Quantity("throughput_ratio", "1", "bytes delivered in order / what the ports can send", throughput_ratio),
        Quantity("queueing_s", "s", "time that the ports take to send what is queued at the end of the interval", queueing_s),
        Quantity("loss_ratio", "1", "packets not admitted / arrived; 0 when there were none", loss_ratio),
        Quantity("capacity_bps", "bit/s", "rate of the switch's ports", lambda self: self.capacity_bps),
        Quantity("service_s", "s", "time that a full packet takes at this rate", lambda self: self.service_s),
        Quantity("occupancy", "1", "buffer in use as a share of it", lambda self: 1 - self.free_fraction),
        Quantity("flows_open", "1", "flows started and not completed", lambda self: self.flows_open),
        Quantity("flow_known", "bool", "whether any flow has completed by now", lambda self: self.flow_known),
        Quantity("ports", "1", "ports of the switch; the fields of a queue are sums over them", lambda self: self.ports),
    )


def _by_name(block: np.ndarray) -> SimpleNamespace:
    """Views `(queues, rows)` of a block `(queues, fields of a queue, rows)`."""
    return SimpleNamespace(**{field.name: block[:, column] for column, field in enumerate(PER_QUEUE)})
