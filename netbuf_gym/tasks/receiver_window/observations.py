"""Observations of a receiver: ratios that carry over between networks, or the four features of Nuwa-RL."""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.receiver_window.tracker import DRAIN_AFTER_S, DRAIN_INTERVALS, FIELD, MSS, RTT, RTT_MIN, Tracker

LARGEST_SEGMENTS = 16_384.0
K_RANGE = (0.25, 16.0)
TARGET_RANGE_S = (0.002, 1.0)

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

_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}
_ROOTS = 4
_RATIOS = 15
"""Number of leading features that are logarithms; those after `delay_in_intervals` are signed."""

_LOG_HIGH = np.array([32, 32, 32, 32, 8, 64, 4, 4, 4, 4, 64, LARGEST_SEGMENTS, 4096, 8, 22.360679775], np.float32)
_LOG_SCALE = (1 / np.log(_LOG_HIGH))[:, None].astype(np.float32)
_K_MIDDLE = np.float32(np.sqrt(K_RANGE[0] * K_RANGE[1]))
_TARGET_MIDDLE = np.float32(np.sqrt(TARGET_RANGE_S[0] * TARGET_RANGE_S[1]))
_LEAST_GAIN, _PER_LOG_4 = np.float32(1 / 4), np.float32(1 / np.log(4))
_ONE, _TINY = np.float32(1), np.float32(1e-6)
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
    last = tracker.last

    def of(name: str) -> np.ndarray:
        return last[FIELD[name]]

    rtt, least, mss, window, rate = last[RTT], last[RTT_MIN], last[MSS], of("window_bytes"), tracker.rate
    known = least > 0
    per_rtt = known / np.where(known, least, _ONE)  # 0 before there is one
    delay = of("queue_delay_mean_s")
    packet_rate = mss * np.float32(8 / tracker.interval_s)
    packets = of("packets_received")

    ratios = out[:_RATIOS]
    ratios[0] = delay * per_rtt + _ONE
    ratios[1] = of("queue_delay_s") * per_rtt + _ONE
    ratios[2] = of("queue_delay_min_s") * per_rtt + _ONE
    ratios[3] = of("queue_delay_max_s") * per_rtt + _ONE
    np.divide(delay, tracker.target_s, out=ratios[4], casting="same_kind")
    ratios[5] = delay * np.float32(1 / tracker.interval_s) + _ONE
    bdp = np.maximum(tracker.peak_rate * least * np.float32(1 / 8), mss)
    ratios[6] = np.where(known, window / bdp, _ONE)
    ratios[7] = np.where(known, rate * rtt * np.float32(1 / 8) / window, _ONE)
    ratios[8] = np.maximum(rate, packet_rate) / np.maximum(tracker.previous_rate, packet_rate)
    ratios[9] = window / tracker.previous_window
    ratios[10] = np.where(known, least * np.float32(1 / tracker.interval_s), _ONE)
    ratios[11] = window / mss
    ratios[12] = packets + _ONE
    ratios[13] = of("k") * (_ONE / _K_MIDDLE)
    np.divide(tracker.target_s, _TARGET_MIDDLE, out=ratios[14], casting="same_kind")
    np.maximum(ratios, _TINY, out=ratios)
    np.log(ratios, out=ratios)
    ratios *= _LOG_SCALE
    for row in (*range(_ROOTS), _COLUMN["delay_in_intervals"]):
        np.sqrt(np.maximum(ratios[row], 0, out=ratios[row]), out=ratios[row])

    np.multiply(rate / np.maximum(tracker.peak_rate, _ONE), np.float32(2), out=out[15])
    out[15] -= _ONE
    out[16] = (delay - tracker.previous_delay) * per_rtt
    out[17] = of("delay_gradient")
    missing = of("packets_missing")
    out[18] = np.sqrt(missing / np.maximum(missing + packets, _ONE))
    out[19] = np.sqrt(of("packets_repeated") / np.maximum(packets, _ONE))
    out[20] = of("buffered_bytes") / window - _ONE
    out[21] = np.sqrt(of("longest_gap_s"))
    out[22] = np.sqrt(of("silence_s"))
    out[23] = tracker.least_seen_s * np.float32(1 / DRAIN_AFTER_S)
    out[24] = tracker.draining * np.float32(1 / DRAIN_INTERVALS[1])
    out[25] = np.log(np.maximum(of("bdp_gain"), _LEAST_GAIN)) * _PER_LOG_4
    return np.clip(out, -1, 1, out=out)
