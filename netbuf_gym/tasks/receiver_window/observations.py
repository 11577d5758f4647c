"""Observations of a receiver: ratios that carry over between networks, with more memory or less, or Nuwa-RL's four features."""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.receiver_window.tracker import (
    DRAIN_AFTER_S,
    DRAIN_INTERVALS,
    FIELD,
    K_RANGE,
    MSS,
    RTT_MIN,
    TARGET_RANGE_S,
    Tracker,
)

LARGEST_SEGMENTS = 16_384.0

NUWA_FEATURES = (
    Feature("received", 0, LARGEST_SEGMENTS, "log of 1 + segments that arrived in the interval"),
    Feature("window", 0, LARGEST_SEGMENTS, "log of 1 + receive window in segments"),
    Feature("buffered", 0, LARGEST_SEGMENTS, "log of 1 + segments held at the receiver, unread or out of order"),
    Feature("delay_s", 0, 0.5, "one-way queueing delay of the last packet in seconds"),
)
"""The paper's four features in its order; ranges and scales are ours, since the paper states neither."""

DEFAULT_FEATURES = (
    Feature("queueing", 1, 32, "sqrt of log(1 + mean queueing delay / least RTT)"),
    Feature("queueing_now", 1, 32, "likewise, of the queueing delay at the end of the interval, as filtered"),
    Feature("standing_queue", 1, 32, "likewise, of the least queueing delay of the interval"),
    Feature("worst_queue", 1, 32, "likewise, of the greatest one"),
    Feature("over_target", 1 / 8, 8, "log of mean queueing delay / target delay", floor=-1),
    Feature("delay_in_intervals", 1, 64, "sqrt of log(1 + mean queueing delay / decision interval)"),
    Feature("window_in_bdp", 1 / 4, 4, "log of window / (highest rate lately * least RTT)", floor=-1),
    Feature("window_use", 1 / 4, 4, "log of rate * RTT / window", floor=-1),
    Feature("rate_change", 1 / 4, 4, "log of rate / the one of an interval earlier", floor=-1),
    Feature("window_change", 1 / 4, 4, "log of window / window an interval earlier", floor=-1),
    Feature("rtt_in_intervals", 1 / 64, 64, "log of least RTT / decision interval", floor=-1),
    Feature("window_size", 1, LARGEST_SEGMENTS, "log of the window in segments"),
    Feature("packets", 1, 4096, "log of 1 + packets that arrived"),
    Feature("k", K_RANGE[0], K_RANGE[1], "log of the gain k; -1 while the rule is off", floor=-1),
    Feature("target", TARGET_RANGE_S[0], TARGET_RANGE_S[1], "log of the target delay in seconds", floor=-1),
    Feature("rate", 0, 1, "rate / highest one lately", floor=-1),
    Feature("delay_change", -1, 1, "change of the mean queueing delay since an interval ago / least RTT", floor=-1),
    Feature("delay_gradient", -1, 1, "seconds of one-way delay per second", floor=-1),
    Feature("missing", 0, 1, "sqrt of packets newly missing / (these + packets that arrived)"),
    Feature("repeated", 0, 1, "sqrt of packets that were sent again / packets that arrived"),
    Feature("buffered", 0, 2, "bytes held at the receiver / window", floor=-1),
    Feature("longest_gap", 0, 1, "sqrt of longest time between two packets / 1 s"),
    Feature("silence", 0, 1, "sqrt of time since the last packet / 1 s"),
    Feature("least_seen", 0, DRAIN_AFTER_S, "seconds since the least queueing delay was seen"),
    Feature("draining", 0, DRAIN_INTERVALS[1], "intervals that a drain still lasts"),
    Feature("bdp_gain", 1 / 4, 4, "log of the window in measured products, as decided; -1 while another rule runs", floor=-1),
)
"""Ratios only: the same policy reads 1 Mbit/s and 300 Mbit/s, 5 ms and 200 ms alike."""

LONG_FEATURES = (
    Feature("rate_of_minute", 0, 1, "rate / highest one of the last minute", floor=-1),
    Feature("rate_of_usual", 1 / 4, 4, "log of rate / its mean over some 10 s", floor=-1),
    Feature("usual_queueing", 1, 32, "sqrt of log(1 + mean queueing delay over some 10 s / least RTT)"),
    Feature("empty_for", 1, 128, "log of 1 + intervals in a row in which hardly anything waited"),
)
MEMORY_FEATURES = (*DEFAULT_FEATURES, *LONG_FEATURES)
"""The default features, and what is remembered for longer."""

_LOG_HIGH = np.array([32, 32, 32, 32, 8, 64, 4, 4, 4, 4, 64, LARGEST_SEGMENTS, 4096, 8, 22.360679775], np.float32)
_LOG_SCALE = np.array([*(1 / np.log(_LOG_HIGH)), 1 / np.log(4)], np.float32)
"""Factors of the logarithms: of the first features, and of the last one."""
_SCALES = {feature.name: np.float32(1 / np.log(feature.high)) for feature in LONG_FEATURES if feature.high > 1}
_SEGMENT_ROWS = np.array([FIELD[name] for name in ("received_bytes", "window_bytes", "buffered_bytes")])
_NUWA_LOG_SCALE = np.float32(1 / np.log1p(LARGEST_SEGMENTS))


def observe_nuwa(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the 4 features, each clipped to its range and scaled to [0, 1], to `out` of shape `(4, rows)`.

    A field without a measurement keeps its last value; before the first it is 0 (the window: 20 segments).
    """
    last = tracker.last
    np.divide(last[_SEGMENT_ROWS], last[MSS], out=out[:3])
    np.log1p(out[:3], out=out[:3])
    out[:3] *= _NUWA_LOG_SCALE
    np.multiply(last[FIELD["queue_delay_last_s"]], np.float32(2), out=out[3])
    return np.clip(out, 0, 1, out=out)


def observe_default(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `DEFAULT_FEATURES`, each clipped to [-1, 1], to `out` of shape `(26, rows)`.

    A field without a measurement keeps its last value, with the time since then in `silence`; before the first round trip all
    ratios to it are 1 or 0, so that their logarithms are 0. No value is assumed for anything that was never measured.
    """
    logs = np.empty((len(_LOG_SCALE), tracker.rows), np.float32)
    tracker.arithmetic.ratios(logs)
    np.log(logs, out=logs)
    tracker.arithmetic.features(logs, _LOG_SCALE, out)
    return out


def observe_memory(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `MEMORY_FEATURES`, each clipped to [-1, 1], to `out` of shape `(30, rows)`.

    As in `observe_default`; before the first packet the further ones are 0, and `rate_of_minute` is -1.
    """
    observe_default(tracker, out[: len(DEFAULT_FEATURES)])
    memory, own = tracker.long_memory, out[len(DEFAULT_FEATURES) :]
    assert memory is not None
    rate, least_rtt_s, known = tracker.rate, tracker.last[RTT_MIN], tracker.last[RTT_MIN] > 0
    own[0] = rate / np.maximum(memory.highest_rate, np.float32(1)) * 2 - 1
    own[1] = np.log(np.maximum(rate, np.float32(1)) / np.maximum(memory.mean_rate, np.float32(1))) * _SCALES["rate_of_usual"]
    waited = np.where(known, memory.mean_delay / np.where(known, least_rtt_s, np.float32(1)), np.float32(0))
    own[2] = np.sqrt(np.log1p(np.maximum(waited, np.float32(0))) * _SCALES["usual_queueing"])
    own[3] = np.log1p(memory.empty) * _SCALES["empty_for"]
    np.clip(own, -1, 1, out=own)
    return out
