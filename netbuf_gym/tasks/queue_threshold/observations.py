"""Observations of a switch's agent: ratios that carry over between rates and buffers, or the state of RLBM."""

from __future__ import annotations

import math

import numpy as np

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

LEVER_FEATURES = (
    Feature(
        "share", 0, 1, "share of the port that the scheduler gives the queue where all are backlogged; strict: 1 to queue 0"
    ),
    Feature("slots_used", 0, 1024, "log of 1 + slots of its flow table that have packets"),
    Feature("largest_share", 0, 1, "bytes of the largest slot / bytes of the queue"),
)
"""Features of each queue with the recipe `levers`, behind all others."""

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


def _scale_log(low: float, high: float) -> tuple[float, float, float]:
    """Return the least argument of a logarithm scaled to -1 at `low` and 1 at `high`, its factor, and what is subtracted."""
    span = math.log(high / low)
    return low / 2, 2 / span, 2 * math.log(low) / span + 1


_LOG_SCALES = np.array(
    [_scale_log(1e-3, 10), _scale_log(1e-5, 0.1), _scale_log(2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])], np.float32
)
"""Scales of the logarithms of a buffer's time, of a packet's and of alphas."""
_LOG1P_SCALES = np.array([1 / math.log1p(high) for high in (*[1e4] * 7, 16, *[100] * 4)], np.float32)
"""Factors of the logarithms of 1 + a value: seven times in ms, arrivals, and four counts, in the features' order."""


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
    queues, rows, arithmetic = tracker.queues, tracker.rows, tracker.arithmetic
    logs, log1ps = np.empty((2 + 2 * queues, rows), np.float32), np.empty((len(_LOG1P_SCALES) * queues, rows), np.float32)
    arithmetic.ratios(_LOG_SCALES, logs, log1ps)
    np.log(logs, out=logs)
    np.log1p(log1ps, out=log1ps)
    arithmetic.features(_LOG_SCALES, _LOG1P_SCALES, logs, log1ps, out)
    return out


def observe_levers(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `observe_default` and, feature by feature for all queues, `LEVER_FEATURES` to `out`."""
    queues, levers = tracker.queues, tracker.levers
    own = out[-len(LEVER_FEATURES) * queues :].reshape(len(LEVER_FEATURES), queues, -1)
    observe_default(tracker, out[: len(out) - len(own) * queues])
    own[0], own[2] = levers.share, levers.largest_share
    np.multiply(np.log1p(levers.slots_used), np.float32(1 / math.log1p(LEVER_FEATURES[1].high)), out=own[1])
    np.minimum(own, 1, out=own)
    return out
