"""Observations of a switch's agent: ratios that carry over between rates and buffers, or the state of RLBM."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym.scenarios.switches import compute_alpha, compute_limit
from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.queue_threshold.actions import LOG2_ALPHA
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker

SHARED_FEATURES = (
    Feature("buffer_time", 1e-3, 10, "log of the time in s that the ports take to send a full buffer", floor=-1),
    Feature("packet_time", 1e-5, 0.1, "log of the time in s that they take to send a full packet", floor=-1),
    Feature("occupancy", 0, 1, "buffer in use / buffer", floor=-1),
    Feature("utilisation", 0, 1, "bytes sent / bytes that the ports can send", floor=-1),
    Feature("drop_head", 0, 1, "1 where a queue's oldest packet is dropped, 0 where the one that arrives"),
)
QUEUE_FEATURES = (
    Feature("alpha", 2**-8, 2**3, "log of alpha in force", floor=-1),
    Feature("limit", 0, 10, "log of 1 + time in ms that the ports take to send as much as the threshold; the range in s"),
    Feature("level", 2**-8, 2**3, "log of the alpha whose threshold is the queue as it is", floor=-1),
    Feature("peak", 0, 1, "sqrt of longest queue in the interval / buffer"),
    Feature("backlog", 0, 10, "log of 1 + time in ms that the ports take to send the queue; the range in s"),
    Feature("least", 0, 10, "the same of the least that it has held in the last 100 to 200 ms"),
    Feature("above", 0, 10, "log of 1 + time in ms since the queue was last sent within 10 ms; the range in s"),
    Feature("cut", 0, 10, "log of 1 + time in ms since a decision limited the queue to less than it held; the range in s"),
    Feature("drop_age", 0, 10, "log of 1 + time in ms since it dropped a packet; the range in s"),
    Feature("delay", 0, 10, "log of 1 + mean time in ms in the queue; the range in s"),
    Feature("arrivals", 0, 16, "log of 1 + packets arrived / packets that the ports can send"),
    Feature("load", 0, 2, "the same ratio, not its log, over the last seconds", floor=-1),
    Feature("drained", 0, 1, "bytes sent / bytes that the ports can send", floor=-1),
    Feature("drops", 0, 1, "sqrt of packets dropped / packets arrived"),
    Feature("starts", 0, 100, "log of 1 + flow starts (SYNs) that arrived"),
    Feature("starts_lately", 0, 100, "the same of the last third of a second, forgotten by and by"),
    Feature("starts_most", 0, 100, "the most that this has been in the last ten seconds, forgotten by and by"),
    Feature("flows_seen", 0, 100, "log of 1 + flows whose SYN has left the queue and whose last segment (FIN) has not"),
)
"""Ratios and times: the same policy reads 10 and 100 Mbit/s, buffers of 200 and of 2000 packets alike."""

THESIS_SHARED = (
    Feature("remaining", 0, 1, "free buffer / buffer"),
    Feature("flows_completed", 0, 50, "flows completed since the interval began"),
    Feature("packets_dropped", 0, 1000, "packets dropped since the interval began"),
)
THESIS_QUEUE = (
    Feature("beta", 0, 1, "the queue's fixed weight"),
    Feature("drain_rate", 0, 1, "bytes sent since the interval began / bytes that the ports can send in that time"),
)
"""State variables of RLBM's Table 2; the ranges are ours."""


def _log1p_scaled(values: np.ndarray, high: float) -> np.ndarray:
    """Return log(1 + values), scaled to 1 at `high`."""
    return np.log1p(values) * np.float32(1 / math.log1p(high))


def _log_scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the logarithm of values, scaled to -1 at `low` and 1 at `high`."""
    span = math.log(high / low)
    return np.log(np.maximum(values, np.float32(low / 2))) * np.float32(2 / span) - np.float32(2 * math.log(low) / span + 1)


def observe_thesis(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """Write RLBM's state to `out`, `(3 + 2 * queues, rows)`, each variable scaled from its range to [0, 1].

    The state is that of the moment when a flow last completed: counts and drain rates cover the time from the start of the
    interval to that moment. Before the first completion the buffer is empty and everything else 0.
    """
    queues = tracker.queues
    time_s = np.maximum(tracker.at.elapsed_s, np.float32(1e-9))
    out[0] = tracker.at.free_fraction
    np.multiply(tracker.at.flows_completed, np.float32(1 / THESIS_SHARED[1].high), out=out[1])
    np.multiply(tracker.at.packets_dropped, np.float32(1 / THESIS_SHARED[2].high), out=out[2])
    out[3 : 3 + queues] = tracker.betas
    out[3 + queues :] = tracker.at.drained_bytes * np.float32(8) / (tracker.capacity_bps * time_s)
    return np.clip(out, 0, 1, out=out)


def observe_default(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """Write `SHARED_FEATURES` and, feature by feature for all queues, `QUEUE_FEATURES` to `out`, clipped to [-1, 1]."""
    queue, queues, one, two = tracker.queue, tracker.queues, np.float32(1), np.float32(2)
    can_send = tracker.capacity_bps * np.maximum(tracker.elapsed_s, np.float32(1e-9)) * np.float32(1 / 8)  # bytes
    bytes_per_unit = tracker.service_s * tracker.capacity_bps / (8 * tracker.packet_units)
    shared, own = out[: len(SHARED_FEATURES)], out[len(SHARED_FEATURES) :].reshape(-1, queues, tracker.rows)

    drained = queue.drained_bytes / can_send
    buffer_s = tracker.capacity * bytes_per_unit * np.float32(8) / tracker.capacity_bps
    shared[0] = _log_scaled(buffer_s, 1e-3, 10)
    shared[1] = _log_scaled(tracker.service_s, 1e-5, 0.1)
    shared[2] = one - two * tracker.free_fraction
    shared[3] = two * drained.sum(axis=0) - one
    shared[4] = tracker.drop_head

    threshold = compute_limit(queue.alpha, tracker.betas, tracker.free_fraction, tracker.cap_share)  # shares of the buffer
    threshold *= tracker.ports
    packets = np.maximum(tracker.capacity / tracker.packet_units, one)
    own[0] = _log_scaled(queue.alpha, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    own[1] = _log1p_scaled(np.minimum(threshold, one) * buffer_s * np.float32(1e3), 1e4)
    level = compute_alpha(tracker.share_of_buffer, tracker.ports * tracker.betas, tracker.free_fraction, least=np.float32(1e-6))
    own[2] = _log_scaled(level, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    np.sqrt(queue.queue_packets_max / packets, out=own[3])
    own[4] = _log1p_scaled(queue.queue_bytes * np.float32(8e3) / tracker.capacity_bps, 1e4)
    own[5] = _log1p_scaled(tracker.least_bytes * np.float32(8e3) / tracker.capacity_bps, 1e4)
    own[6:9] = _log1p_scaled(tracker.since_s * np.float32(1e3), 1e4)
    own[9] = _log1p_scaled(queue.queue_delay_mean_s * np.float32(1e3), 1e4)
    own[10] = _log1p_scaled(queue.arrivals * tracker.service_s / np.maximum(tracker.elapsed_s, np.float32(1e-9)), 16)
    np.subtract(tracker.load, one, out=own[11])
    np.subtract(two * drained, one, out=own[12])
    np.sqrt(queue.drops / np.maximum(queue.arrivals, one), out=own[13])
    own[14] = _log1p_scaled(queue.syns, 100)
    own[15] = _log1p_scaled(tracker.starts_lately, 100)
    own[16] = _log1p_scaled(tracker.starts_most, 100)
    own[17] = _log1p_scaled(tracker.flows_seen, 100)
    return np.clip(out, -1, 1, out=out)
