"""Observations of a sender: ratios that carry over between networks, evidence on them, or the features of TCP-PPCC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netbuf_gym.tasks.congestion_window.evidence_tracker import EvidenceTracker
from netbuf_gym.tasks.congestion_window.path_tracker import PathTracker
from netbuf_gym.tasks.congestion_window.tracker import FIELD, Tracker
from netbuf_gym.tasks.features import Feature

PPCC_FEATURES = (
    Feature("ssthresh_bytes", 0, 1e6, "slow-start threshold as last set; the upper end while infinite"),
    Feature("cwnd_bytes", 0, 1e6, "congestion window"),
    Feature("mss_bytes", 0, 1500, "segment size"),
    Feature("bytes_in_flight_sum", 0, 5e7, "bytes in flight, summed over the ACKs of the interval"),
    Feature("bytes_in_flight_mean", 0, 1e6, "bytes in flight, mean over the ACKs"),
    Feature("segments_acked_sum", 0, 250, "segments acknowledged"),
    Feature("segments_acked_mean", 0, 10, "segments acknowledged per ACK"),
    Feature("rtt_mean_s", 0, 0.5, "mean RTT"),
    Feature("rtt_min_ever_s", 0, 0.5, "least RTT of the connection"),
    Feature("send_interval_mean_s", 0, 0.1, "mean send gap of consecutively acknowledged packets"),
    Feature("receive_interval_mean_s", 0, 0.1, "mean gap between ACKs"),
    Feature("throughput_bps", 0, 20e6, "throughput"),
)
"""The paper's Table I in order; the paper does not state the ranges of its Eq. 8, and these are ours."""

DEFAULT_FEATURES = (
    Feature("queueing", 1, 16, "sqrt of log(RTT / least RTT)"),
    Feature("standing_queue", 1, 16, "sqrt of log(least RTT of the interval / least RTT)"),
    Feature("rate", 0, 1, "delivery rate / highest one lately", floor=-1),
    Feature("window_in_bdp", 1 / 2, 2, "log of window / (highest delivery rate lately * least RTT)", floor=-1),
    Feature("window_use", 1 / 2, 2, "log of delivery rate * RTT / window", floor=-1),
    Feature("rtt_change", 1 / 2, 2, "log of RTT / RTT one interval earlier", floor=-1),
    Feature("rate_change", 1 / 2, 2, "log of delivery rate / the one of an interval earlier", floor=-1),
    Feature("window_change", 1 / 2, 2, "log of window / window one interval earlier", floor=-1),
    Feature("rtt_in_intervals", 1 / 64, 64, "log of RTT / decision interval", floor=-1),
    Feature("window_size", 1, 65536, "log of the window in segments"),
    Feature("segments_acked", 0, 4095, "log of 1 + segments acknowledged"),
    Feature("segments_queued", 0, 63, "log of 1 + window in segments * (1 - least RTT / RTT), as Vegas counts them"),
    Feature("loss", 0, 1, "sqrt of lost / (lost + acknowledged) packets"),
    Feature("in_flight", 0, 2, "bytes in flight / window", floor=-1),
    Feature("timeouts", 0, 1, "whether a retransmission time-out fired"),
    Feature("age", 0, 1, "seconds since the last ACK"),
    Feature("rate_trend", 1 / 4, 4, "log of delivery rate / its mean lately", floor=-1),
    Feature("window_in_mean_bdp", 1 / 4, 4, "log of window / (mean delivery rate lately * least RTT)", floor=-1),
    Feature("queue_lately", 1, 16, "sqrt of log(least RTT lately / least RTT)"),
    Feature("loss_lately", 0, 1, "sqrt of lost / (lost + acknowledged) packets lately"),
    Feature("roughness", 0, 2, "mean of |log2 of delivery rate / the one of an interval earlier| lately"),
    Feature("least_rtt_unseen", 0, 10, "seconds since the least RTT was seen"),
    Feature("draining", 0, 1, "whether the queue is being drained to see the least RTT"),
    Feature("started", 0, 1, "whether an RTT was 1.25 times the least one, or a packet lost, since the start"),
    Feature("queue_long", 1, 16, "sqrt of mean of log(least RTT of the interval / least RTT) for long"),
    Feature("loss_long", 0, 1, "sqrt of lost / (lost + acknowledged) packets for long"),
    Feature("least_rtt_risen", 1, 16, "log of least RTT / the connection's, which no drain replaces"),
)
"""Features of the recipes default and bare, ratios only: the same policy reads 1 Mbit/s and 100 Mbit/s, 5 ms and 200 ms alike.
The first 16 describe the interval; the others cover recent and long-term history, by which a sender can tell that other flows
keep the queue filled. All are computed natively."""

EVIDENCE_FEATURES = (
    Feature("queue_ms", 0, 1000, "log of 1 + ms of RTT - least RTT"),
    Feature("standing_queue_ms", 0, 1000, "log of 1 + ms of least RTT of the interval - least RTT"),
    Feature("low_rtt_ms", 0, 1000, "log of 1 + ms of least RTT lately - least RTT of any packet since the start"),
    Feature("spread_ms", 0, 1000, "log of 1 + ms of RTT - least RTT of the interval, mean lately"),
    Feature("spread", 0, 15, "log of 1 + the same over the least RTT"),
    Feature("swing_ms", 0, 1000, "log of 1 + ms of standard deviation of RTT from interval to interval"),
    Feature("rtt_response", -2, 2, "slope of RTT on segments in flight, times segments acknowledged per second", floor=-1),
    Feature("rtt_correlation", -1, 1, "correlation of RTT with segments in flight", floor=-1),
    Feature("rate_response", -2, 2, "slope of segments acknowledged per second on segments in flight, times RTT", floor=-1),
    Feature("in_flight_swing", 0, 1, "standard deviation of segments in flight over their mean"),
    Feature("loss_share", 0, 1, "share of intervals with losses for long"),
    Feature("loss_burst", 0, 1023, "log of 1 + lost packets of an interval with losses, mean for long"),
    Feature("loss_queue_ms", 0, 1000, "log of 1 + ms of RTT - least RTT at losses, mean for long"),
    Feature("loss_rate", 1 / 4, 4, "log of acknowledged and lost packets' rate at losses / delivery rate for long", floor=-1),
    Feature("loss_age", 0, 599, "log of 1 + seconds since the last loss, or the start"),
    Feature("long_rate_trend", 1 / 4, 4, "log of mean delivery rate lately / the one for long", floor=-1),
    Feature("peak_to_long_rate", 1 / 16, 16, "log of highest delivery rate lately / mean for long", floor=-1),
    Feature("segments_per_ack", 1, 64, "log of segments acknowledged per ACK"),
    Feature("least_rtt_ms", 1, 1000, "log of ms of least RTT"),
    Feature("rate_mbps", 0.01, 10_000, "log of mean delivery rate lately in Mbit/s"),
)
"""Features of the recipe robust after those of default, where "least RTT" is the least of the intervals' mean RTTs.

Regressions (`rtt_response` to `in_flight_swing`, `swing_ms`) forget intervals with a time constant of 2 s. A response of 1 is
the full one: of the round trip where a queue is the sender's own, of the rate where there is none. Where what is in flight
changes by less than 2 %, responses go to 0."""

_FINE = replace(next(one for one in DEFAULT_FEATURES if one.name == "window_size"), low=1 / 65536, floor=-1)
ROBUST_FEATURES = (*(_FINE if one.name == _FINE.name else one for one in DEFAULT_FEATURES), *EVIDENCE_FEATURES)
"""Features of the recipe robust: those of default, where windows below a segment go on along the same scale, and the others."""

_PPCC_ROWS = np.array([FIELD[feature.name] for feature in PPCC_FEATURES])
_PPCC_LOW = np.array([feature.low for feature in PPCC_FEATURES], np.float32)
_PPCC_SCALE = np.array([1 / (feature.high - feature.low) for feature in PPCC_FEATURES], np.float32)


def observe_ppcc(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the 12 PPCC features, each clipped to its range and scaled to [0, 1], into `out` of shape `(12, rows)`; return it.

    A field without a measurement keeps its last value; before the first it is 0 (the slow-start threshold: 1).
    """
    tracker.arithmetic.scaled(_PPCC_ROWS, _PPCC_LOW, _PPCC_SCALE, out)
    return out


_LOG_HIGH = (16, 16, 2, 2, 2, 2, 2, 64, 65536, 4096, 64, 4, 4, 16, 16)
_LOG_SCALE = np.array([1 / np.log(high) for high in _LOG_HIGH], np.float32)


def observe_default(tracker: PathTracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `DEFAULT_FEATURES`, each clipped to [-1, 1], into `out` of shape `(27, rows)`; return `out`.

    A field without a measurement keeps its last value, and `age` says for how long; before the first round trip all
    RTT ratios are 1, so that their logarithms are 0.
    """
    logs = np.empty((len(_LOG_SCALE), tracker.rows), np.float32)
    tracker.path_arithmetic.ratios(logs)
    np.log(logs, out=logs)
    tracker.path_arithmetic.features(logs, _LOG_SCALE, out)
    return out


_EVIDENCE_LOG_HIGH = (1001, 1001, 1001, 1001, 16, 1001, 1024, 1001, 4, 600, 4, 16, 64, 1000, 1e6)
_EVIDENCE_LOG_SCALE = np.array([1 / np.log(high) for high in _EVIDENCE_LOG_HIGH], np.float32)


def observe_robust(tracker: EvidenceTracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `ROBUST_FEATURES`, each clipped to [-1, 1], into `out` of shape `(47, rows)`; return `out`.

    Those of `EVIDENCE_FEATURES` are 0 before the first round trip, but for the times and rates.
    """
    first = len(DEFAULT_FEATURES)
    observe_default(tracker, out[:first])
    logs = np.empty((len(_EVIDENCE_LOG_SCALE), tracker.rows), np.float32)
    tracker.evidence_arithmetic.arguments(logs)
    np.log(logs, out=logs)
    tracker.evidence_arithmetic.features(logs, _EVIDENCE_LOG_SCALE, out[first:])
    return out
