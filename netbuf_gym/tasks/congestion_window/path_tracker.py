"""Path properties that a sender infers from its ACKs alone, for the recipes `default` and `bare`.

A minimum over all time stays wrong once the route becomes longer, and a minimum over a window rises with every queue that
stands for as long. The least round trip is therefore kept as long as it is seen; when it has not been seen for a while, the
sender drains its share of the queue, measures again, and accepts the result.
"""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.congestion_window.tracker import (
    ACKS,
    CWND,
    ELAPSED,
    FIELD,
    MSS,
    PACKETS_LOST,
    RTT,
    SEGMENTS_ACKED,
    SSTHRESH,
    Tracker,
)
from netbuf_gym.tasks.flows import PerRow

RTT_MIN, TIMEOUTS = FIELD["rtt_min_s"], FIELD["timeouts"]


class LossRounds:
    """Counters of lost and acknowledged segments per round trip of at least a given number of segments.

    Args:
        rows: Number of senders.
        least: Least number of segments, lost or acknowledged, in a round trip.

    Attributes:
        lost, acked: Segments of the present round trip, float32 `(rows,)`.
        heavy_in_a_row: Number of consecutive round trips with heavy loss, float32 `(rows,)`.
    """

    def __init__(self, rows: int, least: int):
        self.least, self._all = np.float32(least), np.zeros((4, rows), np.float32)
        self.lost, self.acked, self._seconds, self.heavy_in_a_row = self._all

    def add(self, last: np.ndarray, share: float, counts: np.ndarray, losses: np.ndarray | bool = True) -> np.ndarray:
        """Add an interval and return which senders completed a round trip with it, bool `(rows,)`.

        Args:
            last: Telemetry, `(fields, rows)`.
            share: Share of lost segments above which the loss of a round trip is heavy.
            counts: Which senders' round trips can count as heavy, bool `(rows,)`.
            losses: Which senders' losses in this interval count, bool `(rows,)`.
        """
        self.lost += last[PACKETS_LOST] * losses
        self.acked += last[SEGMENTS_ACKED]
        self._seconds += last[ELAPSED]
        sent = self.lost + self.acked
        over = (self._seconds >= last[RTT]) & (sent >= self.least)
        heavy = over & (self.lost > np.float32(share) * sent) & counts
        self.heavy_in_a_row[:] = np.where(over, np.where(heavy, self.heavy_in_a_row + 1, np.float32(0)), self.heavy_in_a_row)
        return over

    def start_round(self, rows: np.ndarray) -> None:
        """Start a new round trip of these rows."""
        self._all[:3, rows] = 0

    def reset(self, rows: slice) -> None:
        """Forget everything about these rows."""
        self._all[:, rows] = 0


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
"""Least window in segments during a drain, for windows that were at least as large."""

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
        wanted: float64, the last decided window in bytes; a time-out leaves less of it.
        resumed: float64, the window in bytes that a drain interrupted, from its start to the first decision after it, else 0.
        drained: float64, the window in bytes that a drain holds, from its start on.
        held_s: remaining time for which heavy losses hold the window down, else 0.
        arrived: float64, the window in bytes that heavy losses hold, from their detection on.
        acked: bool, whether an ACK came in the last interval.
        acknowledged: bool, whether an ACK has come since the start.
        starting: bool, whether the slow start goes on: no threshold is known yet, no mean RTT of an interval was `STARTED_RTT`
            times the least one, and the window has grown in every round trip with ACKs.
    """

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
        self.drain, self.slow_start = drain, slow_start
        self._drain_due_s = np.float32(drain_after_s - 1e-3)  # margin for rounding in the float32 sum of intervals
        self._seen_ratio = np.float32(1 + seen_within)
        self.growth_loss = growth_loss
        self._path = np.zeros((14, rows), np.float32)
        self._heavy_rounds, self._growth_rounds = LossRounds(rows, LEAST_COUNTED), LossRounds(rows, GROWTH_COUNTED)
        self.unseen_s, self.draining_s, self._least_found, self.rate_lately = self._path[:4]
        self.low_rtt, self.lost_lately, self.acked_lately, self.roughness, self.started = self._path[4:9]
        self.queue_long, self.lost_long, self.acked_long, self._standing_s, self.held_s = self._path[9:]
        self.wanted, self.resumed, self.drained, self.arrived = np.zeros((4, rows))
        self.acked, self.acknowledged, self.starting = np.zeros((3, rows), bool)

    def reset(self, rows: slice, *, mss_bytes: np.ndarray | float, **world: PerRow) -> None:
        """Reset rows, see `Tracker.reset`."""
        super().reset(rows, mss_bytes=mss_bytes, **world)
        self._path[:, rows] = 0
        self._heavy_rounds.reset(rows)
        self._growth_rounds.reset(rows)
        self.wanted[rows] = self.cwnd[rows]
        self.resumed[rows] = self.drained[rows] = 0
        self.acked[rows] = self.acknowledged[rows] = False
        self.starting[rows] = self.slow_start

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        super().update(telemetry)
        last, elapsed = self.last, self.last[ELAPSED]
        np.greater(telemetry[:, ACKS], 0, out=self.acked)  # False for NaN
        self.acknowledged |= self.acked
        rtt_min = telemetry[:, RTT_MIN].astype(np.float32)
        kept = np.exp(np.stack((elapsed * np.float32(-1 / LATELY_S), elapsed * np.float32(-1 / LOSS_MEMORY_S))))

        new = np.where(self.rate_lately > 0, np.float32(1) - kept[0], np.float32(1))
        self.rate_lately += new * (self.rate - self.rate_lately)
        low = self.low_rtt + (np.float32(1) - kept[0]) * (last[RTT_MIN] - self.low_rtt)
        np.copyto(self.low_rtt, np.where(self.low_rtt > 0, np.fmin(low, rtt_min), rtt_min), where=rtt_min > 0)
        self.lost_lately *= kept[1]
        self.lost_lately += last[PACKETS_LOST]
        self.acked_lately *= kept[1]
        self.acked_lately += last[SEGMENTS_ACKED]
        filled = last[RTT] > np.float32(STARTED_RTT) * self.least_rtt
        np.copyto(self.started, 1, where=filled | (last[PACKETS_LOST] > 0))
        self._standing_s += elapsed * self.acked
        np.copyto(self._standing_s, 0, where=last[CWND] > self.previous_cwnd)  # ACKs grow the window of a slow start
        stands = (self._standing_s > 0) & (self._standing_s >= last[RTT])
        self.starting &= np.isnan(telemetry[:, SSTHRESH]) & ~filled & ~stands
        measured = (self.rate > 0) & (self.previous_rate > 0)
        jump = np.log2(np.where(measured, self.rate, 1) / np.where(measured, self.previous_rate, 1))
        jump = np.minimum(np.abs(jump, out=jump), np.float32(2))
        self.roughness += np.where(measured, np.float32(1) - kept[1], np.float32(0)) * (jump - self.roughness)
        if self.drain:
            self._track_least_rtt(rtt_min, elapsed * self.acked)
        self._count_losses()
        kept = np.exp(elapsed * np.float32(-1 / LONG_S))
        queue = np.log(np.maximum(np.where(rtt_min > 0, rtt_min / self.least_rtt, np.float32(1)), np.float32(1)))
        self.queue_long += np.where(rtt_min > 0, np.float32(1) - kept, np.float32(0)) * (queue - self.queue_long)
        self.lost_long *= kept
        self.lost_long += last[PACKETS_LOST]
        self.acked_long *= kept
        self.acked_long += last[SEGMENTS_ACKED]

    def _track_least_rtt(self, rtt_min: np.ndarray, elapsed: np.ndarray) -> None:
        """Track the time since the least round trip was seen, and drains; time without ACKs counts for neither."""
        draining = self.draining_s > 0
        seen = rtt_min <= self.least_rtt * self._seen_ratio  # False for NaN
        self.unseen_s += elapsed
        np.copyto(self._least_found, np.fmin(self._least_found, rtt_min), where=draining)
        self.draining_s -= elapsed * draining
        over = draining & ((self.draining_s <= np.float32(1e-4)) | seen)
        if over.any():
            believed = over & ~seen & np.isfinite(self._least_found)
            np.copyto(self.least_rtt, self._least_found, where=believed)
            self.draining_s[over] = 0
        np.copyto(self.unseen_s, 0, where=seen | over)
        due = ~draining & self.acked & (self.unseen_s >= self._drain_due_s)
        if due.any():
            intervals = np.maximum(np.ceil(DRAIN_ROUND_TRIPS * self.last[RTT] / self.interval_s), LEAST_DRAIN_INTERVALS)
            np.copyto(self.draining_s, intervals * np.float32(self.interval_s), where=due)
            np.copyto(self._least_found, np.float32(np.inf), where=due)
            np.copyto(self.resumed, self.cwnd, where=due)
            product = np.asarray(self.rate_lately, np.float64) * np.where(self.rtt_known, self.least_rtt, np.float32(0)) / 8
            held = np.minimum(DRAIN_SHARE * self.cwnd, DRAIN_OF_PRODUCT * product)
            held = np.maximum(held, LEAST_DRAINED * np.asarray(self.last[MSS], np.float64))
            np.copyto(self.drained, np.minimum(held, self.cwnd), where=due)
        halted = (self.last[TIMEOUTS] > 0) & (self.resumed > 0)
        if halted.any():  # after a time-out the window from before the drain is no better confirmed than any other
            self.draining_s[halted] = self.resumed[halted] = 0

    def _count_losses(self) -> None:
        """Hold the window while losses stay heavy, except in the round trip after a hold, whose losses were on their way."""
        rounds = self._heavy_rounds
        over = rounds.add(self.last, HEAVY_LOSS, ~self.starting)
        self.held_s -= self.last[ELAPSED]
        self.held_s[self.held_s < np.float32(1e-4)] = 0  # rounding in the float32 sum of intervals
        heavy = over & (rounds.heavy_in_a_row >= HEAVY_ROUNDS)
        if heavy.any():
            sent = np.maximum(rounds.lost + rounds.acked, np.float32(1))
            np.copyto(self.arrived, self.cwnd * np.asarray(rounds.acked, np.float64) / sent, where=heavy)
            np.copyto(self.held_s, self.last[RTT], where=heavy)
        halted = self.last[TIMEOUTS] > 0
        self.held_s[halted] = 0
        rounds.start_round(over | halted | (self.held_s > 0))
        if self.growth_loss < 1:
            self._growth_rounds.start_round(self._growth_rounds.add(self.last, self.growth_loss, ~self.starting, self.acked))

    def compute_window_cap(self) -> np.ndarray:
        """Return the measured cap of the window in bytes, float64 `(rows,)`.

        The cap is the larger of `PEAK_GAIN` times the product of the highest recent rate and the least round trip, and
        `RATE_GAIN` times the product of the latest rate and the latest round trip; plus `CAP_SEGMENTS`.
        """
        known = self.rtt_known
        least = np.where(known, self.least_rtt, np.float32(0))
        bits = np.maximum(PEAK_GAIN * self.peak_rate * least, RATE_GAIN * self.rate * self.last[RTT])
        return np.asarray(bits, np.float64) / 8 + CAP_SEGMENTS * np.asarray(self.last[MSS], np.float64)

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
        mss = np.asarray(self.last[MSS], np.float64)
        acknowledged = np.asarray(self.last[SEGMENTS_ACKED], np.float64) * mss
        reach = np.maximum(self.cwnd, self.resumed) + acknowledged
        start = np.where(self.resumed > 0, self.resumed, np.maximum(self.cwnd, np.minimum(self.wanted, reach)))
        np.minimum(start * factors, reach, out=out)
        if cap is not None:
            np.minimum(out, cap, out=out)
        if self.growth_loss < 1:
            window = np.maximum(np.maximum(self.cwnd, self.resumed), self.lowest_window)
            lossy = self._growth_rounds.heavy_in_a_row >= GROWTH_ROUNDS
            np.minimum(out, window + acknowledged * mss / window, out=out, where=lossy)
        draining = self.draining_s > 0
        np.copyto(out, self.drained, where=draining)
        np.minimum(out, self.arrived, out=out, where=self.held_s > 0)
        np.maximum(out, self.lowest_window, out=out)
        decided = self.acked & ~self.starting
        np.copyto(self.wanted, out, where=decided)
        np.copyto(self.resumed, 0, where=decided & ~draining)
        np.copyto(out, np.nan, where=~decided)
        return out
