"""Path properties that a sender infers from its ACKs alone, for all recipes but `ppcc`.

A minimum over all time stays wrong once the route becomes longer, and a minimum over a window rises with every queue that
stands for as long. The least round trip is therefore kept as long as it is seen; when it has not been seen for a while, the
sender drains its share of the queue, measures again, and accepts the result.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.tasks.congestion_window.tracker import FIELD, PEAK_MEMORY_S, Tracker
from netbuf_gym.tasks.flows import PerRow

SEEN_WITHIN = 0.02
"""Share of the least round trip by which another one may be longer and still count as having seen it."""

DRAIN_AFTER_S = 8.0
"""Time with ACKs, but without the least round trip being seen, after which a drain begins."""

DRAIN_ROUND_TRIPS, LEAST_DRAIN_INTERVALS = 2, 2
"""Length of a drain: in round trips as they are when it begins, so that the queue of an unlimited buffer is gone by the end
however long it is, and the least number of decision intervals."""

DRAIN_SHARE, DRAIN_OF_PRODUCT = 0.5, 0.75
"""Upper bounds on the window during a drain, in shares of the previous window and of the product of recent mean rate and least
round trip. The highest rate is unsuitable: senders that share a queue remember it from times when they had more of the queue,
which then would not drain."""

LATELY_S, LOSS_MEMORY_S, LONG_S = 1.0, 2.0, 10.0
"""Time constants of recent rates and round trips, of losses and rate changes, and of long-term means."""

PEAK_GAIN, RATE_GAIN, CAP_SEGMENTS = 2.0, 1.5, 10
"""Cap of the window: factors of the products of highest rate and least round trip, and of latest rate and latest round trip;
and the segments added to the larger of these."""

STARTED_RTT = 1.25
"""Ratio of a round trip to the least one from which a path counts as having been filled once; a lost packet counts as well."""

LEAST_DRAINED = 4
"""Least window in segments during a drain, for windows that were at least as large; where windows may be less than two segments
twice the least window."""

HEAVY_LOSS, HEAVY_ROUNDS, LEAST_COUNTED = 0.1, 3, 8
"""Share of lost segments that counts as heavy, the number of consecutive heavy round trips, and the least segments of each. The
window is then held for a round trip to what arrived of it: senders whose windows exceed what a path and its queue hold lose the
excess in every round trip, and no drain of one of them shortens the queue. A burst of losses at a fall of the rate ends
before."""

GROWTH_ROUNDS, GROWTH_COUNTED = 2, 64
"""Number of consecutive round trips, and least segments of each, with a loss share above `growth_loss` after which a window
grows no faster than in congestion avoidance (RFC 5681, Eq. 3), until one of them loses less. On a path so crowded that
time-outs are the rule, a sender has never seen the queue empty and takes the losses in it for random ones. Losses in intervals
without ACKs do not count, since they indicate an outage rather than crowding."""


class PathTracker(Tracker):
    """Tracker of each sender's path, which also decides when to look for the least round trip anew.

    Args:
        rows, interval_s: As for `Tracker`.
        drain: Whether queues are drained; without drains the least round trip is that of all time.
        slow_start: Whether connections begin with a slow start, in which nothing is decided.
        drain_after_s, seen_within: Conditions of a drain, see `DRAIN_AFTER_S` and `SEEN_WITHIN`.
        growth_loss: Share of lost segments above which a window grows slowly, see `GROWTH_ROUNDS`; 1: never.

    Attributes (all float32 of shape `(rows,)` unless stated):
        unseen_s: time, while ACKs came, since the least round trip was seen.
        draining_s: remaining time of the present drain, 0 outside one.
        rate_lately: mean rate, of time constant `LATELY_S`, in bit/s.
        low_rtt: least recent round trip in seconds, which rises to the intervals' own with time constant `LATELY_S`.
        lost_lately, acked_lately: segments, forgotten with time constant `LOSS_MEMORY_S`.
        queue_long: long-term mean, of time constant `LONG_S`, of the logarithm of intervals' least round trips over the least.
        lost_long, acked_long: segments, forgotten with time constant `LONG_S`.
        started: 1 since a round trip was `STARTED_RTT` times the least one or a packet was lost, 0 before.
        roughness: mean change of the rate from interval to interval, as a logarithm to base 2, at most 2.
        base_ever: least `base_field` of the connection in seconds, which no drain replaces; 0 before the first.
        wanted: float64, the last decided window in bytes; a time-out leaves less of it.
        resumed: float64, the window in bytes that a drain interrupted, from its start to the first decision after it, else 0.
        drained: float64, the window in bytes that a drain holds, from its start on.
        held_s: remaining time for which heavy losses hold the window down, else 0.
        arrived: float64, the window in bytes that heavy losses hold, from their detection on.
        careful_s: remaining time for which they let a window grow slowly only, else 0.
        acked: bool, whether an ACK came in the last interval.
        acknowledged: bool, whether an ACK has come since the start.
        starting: bool, whether the slow start goes on: no threshold is known yet, no mean RTT of an interval was `STARTED_RTT`
            times the least one, and the window has grown in every round trip with ACKs.
        path_arithmetic: native computation of these arrays, of windows, and of the features observed.
    """

    spreads: ClassVar[float] = 0.0
    """0: the least round trip is the least of `base_field`; else that, or the least one of a packet and so many spreads, if
    that is less. The spread is how much intervals' mean round trips exceed their least ones, a mean of time constant
    `LOSS_MEMORY_S` as it falls, `LONG_S` as it rises."""
    heavy_loss: ClassVar[float] = HEAVY_LOSS
    heavy_rounds: ClassVar[float] = HEAVY_ROUNDS
    least_counted: ClassVar[float] = LEAST_COUNTED
    """Share, number of round trips and segments of each for heavy losses."""
    heavy_kept: ClassVar[float] = 1.0
    """Part of what arrived of a window that heavy losses leave."""
    most_cut: ClassVar[float] = 1.0
    """Largest part of a window that the first of several heavy round trips takes; losses of more than it are an outage's."""
    care_s: ClassVar[float] = 0.0
    """Time after heavy losses, but for those of an outage, for which a window grows no faster than in congestion avoidance
    (RFC 5681, Eq. 3): what it had before is what was too much."""
    time_constants_s: ClassVar[tuple[float, ...]] = (PEAK_MEMORY_S, LATELY_S, LOSS_MEMORY_S, LONG_S)

    def __init__(
        self,
        rows: int,
        interval_s: float,
        drain: bool = True,
        slow_start: bool = True,
        drain_after_s: float = DRAIN_AFTER_S,
        seen_within: float = SEEN_WITHIN,
        growth_loss: float = 1.0,
    ):
        super().__init__(rows, interval_s)
        self.slow_start = slow_start
        self._path = np.zeros((19, rows), np.float32)
        self.unseen_s, self.draining_s, self._least_found, self.rate_lately = self._path[:4]
        self.low_rtt, self.lost_lately, self.acked_lately, self.roughness, self.started = self._path[4:9]
        self.queue_long, self.lost_long, self.acked_long, self._standing_s, self.held_s = self._path[9:14]
        self._least_packet, self._least_mean, self._packet_found, self._spread, self.careful_s = self._path[14:]
        self._rounds = np.zeros((8, rows), np.float32)  # lost, acknowledged, seconds, heavy in a row; twice: heavy, growth
        self._windows = np.zeros((4, rows))
        self.wanted, self.resumed, self.drained, self.arrived = self._windows
        self._flags = np.zeros((3, rows), bool)
        self.acked, self.acknowledged, self.starting = self._flags
        self._path_begins = _core.RowStarts([self._path, self._rounds, self._windows, self._flags])
        self._logs = np.zeros((2, rows), np.float32)
        self._jump, self._queue = self._logs
        self.base_ever = self._make_base_ever()
        self._rules = {
            "drain": drain,
            "interval_s": interval_s,
            "started_rtt": STARTED_RTT,
            "drain_due_s": drain_after_s - 1e-3,  # margin for rounding in the float32 sum of intervals
            "seen_ratio": 1 + seen_within,
            "drain_round_trips": DRAIN_ROUND_TRIPS,
            "least_drain_intervals": LEAST_DRAIN_INTERVALS,
            "heavy_loss": self.heavy_loss,
            "heavy_rounds": self.heavy_rounds,
            "least_counted": self.least_counted,
            "heavy_kept": self.heavy_kept,
            "most_cut": self.most_cut,
            "care_s": self.care_s,
            "growth_loss": growth_loss,
            "growth_rounds": GROWTH_ROUNDS,
            "growth_counted": GROWTH_COUNTED,
            "peak_gain": PEAK_GAIN,
            "rate_gain": RATE_GAIN,
            "drain_share": DRAIN_SHARE,
            "drain_of_product": DRAIN_OF_PRODUCT,
            "least_drained": min(LEAST_DRAINED, 2 * self.lowest_segments),
            "cap_segments": CAP_SEGMENTS,
            "spreads": self.spreads,
        }
        self.path_arithmetic = _core.SenderPath(
            *(self.arithmetic, self._rules, self.lowest_window, self.base_ever),
            path=self._path,
            rounds=self._rounds,
            windows=self._windows,
            flags=self._flags,
            logs=self._logs,
        )

    def path_rules(self) -> dict[str, float]:
        """Return the constants that windows and drains follow, by name, and `lowest_segments`, the least window."""
        return {**self._rules, "lowest_segments": self.lowest_segments}

    def _make_base_ever(self) -> np.ndarray:
        """Return the array of the least `base_field` of each connection, float32 `(rows,)`; 0 before the first."""
        return self.last[FIELD["rtt_min_ever_s"]]

    def reset(self, rows: slice, *, mss_bytes: PerRow, **world: PerRow) -> None:
        """Reset rows, see `Tracker.reset`."""
        super().reset(rows, mss_bytes=mss_bytes, **world)
        self._path_begins.restore(rows.start, rows.stop)
        self.wanted[rows] = self.cwnd[rows]
        self.starting[rows] = self.slow_start

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        super().update(telemetry)
        self.path_arithmetic.compare_rates()
        np.log2(self._jump, out=self._jump)
        self.path_arithmetic.follow(telemetry)
        np.log(self._queue, out=self._queue)
        self.path_arithmetic.follow_queue(telemetry)

    def compute_window_cap(self) -> np.ndarray:
        """Return the measured cap of the window in bytes, float64 `(rows,)`.

        The cap is the larger of `PEAK_GAIN` times the product of the highest recent rate and the least round trip, and
        `RATE_GAIN` times the product of the latest rate and the latest round trip; plus `CAP_SEGMENTS`.
        """
        caps = np.empty(self.rows)
        self.path_arithmetic.caps(caps)
        return caps

    def decide(self, factors: np.ndarray, cap: np.ndarray | None, out: np.ndarray) -> np.ndarray:
        """Write windows in bytes for factors, by rules that a real sender can follow, into `out`, float64 `(rows,)`; return it.

        Nothing is decided in the slow start, nor after an interval without an ACK: NaN. The window grows by at most what was
        acknowledged in the interval, up to the cap. A window reduced by a time-out first grows back, by what was acknowledged,
        towards the earlier one, and is then multiplied. A drain holds the window down and restores it afterwards.

        Args:
            factors: Factors of the window, float64 `(rows,)`.
            cap: Largest windows, float64 `(rows,)`; None: unlimited.
            out: Array that is written to.
        """
        self.path_arithmetic.decide(factors, cap, out)
        return out
