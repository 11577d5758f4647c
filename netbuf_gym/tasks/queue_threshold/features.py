"""What a switch's agent observes: ratios that carry over between rates and buffers, or the state of RLBM."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym.scenarios.switches import alpha_of, limit_of
from netbuf_gym.tasks.queue_threshold.actions import LOG2_ALPHA
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker
from netbuf_gym.tasks.task import Feature

SHARED_FEATURES = (
    Feature("buffer_time", 1e-3, 10, "log of the time in s that the ports take to send a full buffer", floor=-1),
    Feature("occupancy", 0, 1, "buffer in use / buffer", floor=-1),
    Feature("utilisation", 0, 1, "bytes sent / bytes that the ports can send", floor=-1),
    Feature("flows_open", 0, 1000, "log of 1 + flows started and not completed"),
    Feature("flows_started", 0, 100, "log of 1 + flows started"),
)
QUEUE_FEATURES = (
    Feature("alpha", 2**-8, 2**3, "log of alpha in force", floor=-1),
    Feature("limit", 0, 10, "log of 1 + time in ms that the ports take to send as much as the threshold; the range in s"),
    Feature("level", 2**-8, 2**3, "log of the alpha whose threshold is the queue as it is", floor=-1),
    Feature("peak", 0, 1, "sqrt of longest queue in the interval / buffer"),
    Feature("backlog", 0, 10, "log of 1 + time in ms that the ports take to send the queue; the range in s"),
    Feature("delay", 0, 10, "log of 1 + mean time in ms in the queue; the range in s"),
    Feature("arrivals", 0, 16, "log of 1 + packets arrived / packets that the ports can send"),
    Feature("load", 0, 2, "the same ratio, not its log, over the last seconds", floor=-1),
    Feature("drained", 0, 1, "bytes sent / bytes that the ports can send", floor=-1),
    Feature("drops", 0, 1, "sqrt of packets dropped / packets arrived"),
    Feature("flows_completed", 0, 100, "log of 1 + flows completed"),
    Feature("worst_slowdown", 1, 1000, "log of the largest FCT / ideal FCT of the last interval with a completion"),
    Feature("slowdown", 1, 1000, "log of FCT / ideal FCT, its mean over the last flows completed"),
    Feature("age", 0, 10, "seconds since a flow completed"),
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
"""RLBM's Table 2; the ranges are ours."""


def _log1p_scaled(values: np.ndarray, high: float) -> np.ndarray:
    """log(1 + values), 1 at `high`."""
    return np.log1p(values) * np.float32(1 / math.log1p(high))


def _log_scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """The logarithm, -1 at `low` and 1 at `high`."""
    span = math.log(high / low)
    return np.log(np.maximum(values, np.float32(low / 2))) * np.float32(2 / span) - np.float32(2 * math.log(low) / span + 1)


def observe_thesis(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """RLBM's state into `out`, `(3 + 2 * queues, rows)`, each scaled from its range to [0, 1].

    It is as it was when a flow last completed: counts and drain rates cover the time from the start of that interval to
    that moment. Before the first completion the buffer is empty and everything else 0.
    """
    queues = tracker.queues
    time_s = np.maximum(tracker.at_elapsed_s, np.float32(1e-9))
    out[0] = tracker.at_free_fraction
    np.multiply(tracker.at_flows_completed, np.float32(1 / THESIS_SHARED[1].high), out=out[1])
    np.multiply(tracker.at_packets_dropped, np.float32(1 / THESIS_SHARED[2].high), out=out[2])
    out[3 : 3 + queues] = tracker.betas
    out[3 + queues :] = tracker.at_drained_bytes * np.float32(8) / (tracker.capacity_bps * time_s)
    return np.clip(out, 0, 1, out=out)


def observe_default(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """`SHARED_FEATURES` and, feature by feature for all queues, `QUEUE_FEATURES` into `out`, clipped to [-1, 1]."""
    queue, queues, one, two = tracker.queue, tracker.queues, np.float32(1), np.float32(2)
    can_send = tracker.capacity_bps * np.maximum(tracker.elapsed_s, np.float32(1e-9)) * np.float32(1 / 8)  # bytes
    bytes_per_unit = tracker.service_s * tracker.capacity_bps / (8 * tracker.packet_units)
    shared, own = out[: len(SHARED_FEATURES)], out[len(SHARED_FEATURES) :].reshape(-1, queues, tracker.rows)

    drained = queue.drained_bytes / can_send
    buffer_s = tracker.capacity * bytes_per_unit * np.float32(8) / tracker.capacity_bps
    shared[0] = _log_scaled(buffer_s, 1e-3, 10)
    shared[1] = one - two * tracker.free_fraction
    shared[2] = two * drained.sum(axis=0) - one
    shared[3] = _log1p_scaled(np.maximum(tracker.flows_open, 0), 1000)
    shared[4] = _log1p_scaled(tracker.flows_started, 100)

    threshold = limit_of(queue.alpha, tracker.betas, tracker.free_fraction, tracker.cap_share)  # shares of the buffer
    threshold *= tracker.ports
    packets = np.maximum(tracker.capacity / tracker.packet_units, one)
    own[0] = _log_scaled(queue.alpha, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    own[1] = _log1p_scaled(np.minimum(threshold, one) * buffer_s * np.float32(1e3), 1e4)
    level = alpha_of(tracker.share_of_buffer, tracker.ports * tracker.betas, tracker.free_fraction, least=np.float32(1e-6))
    own[2] = _log_scaled(level, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    np.sqrt(queue.queue_packets_max / packets, out=own[3])
    own[4] = _log1p_scaled(queue.queue_bytes * np.float32(8e3) / tracker.capacity_bps, 1e4)
    own[5] = _log1p_scaled(queue.queue_delay_mean_s * np.float32(1e3), 1e4)
    own[6] = _log1p_scaled(queue.arrivals * tracker.service_s / np.maximum(tracker.elapsed_s, np.float32(1e-9)), 16)
    np.subtract(tracker.load, one, out=own[7])
    np.subtract(two * drained, one, out=own[8])
    np.sqrt(queue.drops / np.maximum(queue.arrivals, one), out=own[9])
    own[10] = _log1p_scaled(queue.flows_completed, 100)
    own[11] = np.log(np.maximum(queue.worst_ratio, one)) * np.float32(1 / math.log(1000))
    own[12] = tracker.slowdown_level * np.float32(1 / math.log(1000))
    own[13] = tracker.age_s * np.float32(1 / 10)
    return np.clip(out, -1, 1, out=out)
