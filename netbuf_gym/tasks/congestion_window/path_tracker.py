"""What a sender comes to know of its path, by its ACKs alone: the recipe `default`.

A minimum over all time is wrong for good once the route is longer, and one over a window rises with every queue that stands
for as long. So the least round trip stands as long as it is seen; where it has not been for a while, the sender drains what it
has in the queue and looks again, and then believes what it sees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.tasks.congestion_window.tracker import ACKS, ELAPSED, FIELD, MSS, PACKETS_LOST, RTT, SEGMENTS_ACKED, Tracker


class Rounds:
    """What was lost and acknowledged, round trip by round trip of at least so many segments.

    Args:
        rows: of senders.
        least: segments, lost or acknowledged.

    Attributes:
        lost, acked: segments of the round trip that goes on, float32 `(rows,)`.
        on_end: how many round trips on end were heavy, float32 `(rows,)`.
    """

    def __init__(self, rows: int, least: int):
        self.least, self._all = np.float32(least), np.zeros((4, rows), np.float32)
        self.lost, self.acked, self._seconds, self.on_end = self._all

    def add(self, last: np.ndarray, share: float, counts: np.ndarray, losses: np.ndarray | bool = True) -> np.ndarray:
        """Takes in an interval; where a round trip is over with it, bool `(rows,)`.

        Args:
            last: the telemetry, `(fields, rows)`.
            share: of lost segments, above which a round trip is heavy.
            counts: which senders' round trips can be heavy, bool `(rows,)`.
            losses: whose losses in this interval count, bool `(rows,)`.
        """
        self.lost += last[PACKETS_LOST] * losses
        self.acked += last[SEGMENTS_ACKED]
        self._seconds += last[ELAPSED]
        sent = self.lost + self.acked
        over = (self._seconds >= last[RTT]) & (sent >= self.least)
        heavy = over & (self.lost > np.float32(share) * sent) & counts
        self.on_end[:] = np.where(over, np.where(heavy, self.on_end + 1, np.float32(0)), self.on_end)
        return over

    def begin(self, rows: np.ndarray) -> None:
        """A new round trip of these."""
        self._all[:3, rows] = 0

    def reset(self, rows: slice) -> None:
        """Nothing is known of these."""
        self._all[:, rows] = 0


RTT_MIN, TIMEOUTS, SSTHRESH, CWND = (FIELD[name] for name in ("rtt_min_s", "timeouts", "ssthresh_bytes", "cwnd_bytes"))

SEEN_WITHIN = 0.02
"""A round trip that is longer than the least one by up to this share of it counts as having seen it."""

DRAIN_AFTER_S = 8.0
"""A drain begins when the least round trip has not been seen for so long, while ACKs came."""

DRAIN_ROUND_TRIPS, LEAST_DRAIN_INTERVALS = 2, 2
"""How long a drain lasts: in round trips as they are when it begins, so that the queue of an unlimited buffer is gone by its
end however long it is, and in decision intervals at least."""

DRAIN_SHARE, DRAIN_OF_PRODUCT = 0.5, 0.75
"""What the window is meanwhile at most: of what it was, and of the mean rate lately times the least round trip so far. The
highest rate would not do, which senders that share a queue keep from when they had more of it, and then none of it drains."""

LATELY_S, LOSS_MEMORY_S, LONG_S = 1.0, 2.0, 10.0
"""Time constants of what is remembered of rates and of round trips lately, of losses and of how rates jump, and for long."""

PEAK_GAIN, RATE_GAIN, CAP_SEGMENTS = 2.0, 1.5, 10
"""The cap: how many times what the highest rate fills of the least round trip, or the latest one of the latest; and beyond."""

STARTED_RTT = 1.25
"""A path has been filled once, or holds no more, where a round trip was so many times the least one, or a packet was lost."""

LEAST_DRAINED = 4
"""Segments that a drain leaves at least, of a window that had as many."""

HEAVY_LOSS, HEAVY_ROUNDS, LEAST_COUNTED = 0.1, 3, 8
"""A share of lost segments that is heavy, in how many round trips on end, of at least how many segments each. The window is
then held for a round trip to what arrived of it: senders whose windows exceed what a path and its queue hold lose the excess in
every one, and no drain of one of them shortens the queue. A burst of losses where a rate falls is over before."""

GROWTH_ROUNDS, GROWTH_COUNTED = 2, 64
"""In how many round trips on end, of at least how many segments each, a share of more than `growth_loss` is lost before a
window grows no faster than in congestion avoidance (RFC 5681, Eq. 3), until one of them loses less. On a path so crowded that
time-outs are the rule, a sender has never seen the queue empty, and takes what is lost in it for chance. What is lost in
silence does not count: that is an outage, and no crowd."""


class PathTracker(Tracker):
    """What is remembered of each sender, and when it has to look for the least round trip anew.

    Args:
        rows, interval_s: as of `Tracker`.
        drain: whether drains are held; without them the least round trip is that of all time.
        slow_start: whether connections begin with a slow start, in which nothing is decided.
        drain_after_s, seen_within: when a drain is due, see `DRAIN_AFTER_S` and `SEEN_WITHIN`.
        growth_loss: the share of lost segments above which a window grows slowly, see `GROWTH_ROUNDS`; 1: none is.

    Attributes (all float32 of shape `(rows,)` unless stated):
        unseen_s: time, while ACKs came, since the least round trip was seen.
        draining_s: how long the drain that goes on still lasts, 0 outside one.
        rate_lately: mean rate, of time constant `LATELY_S`, in bit/s.
        low_rtt: the least round trip lately in seconds, which rises to the intervals' own with time constant `LATELY_S`.
        lost_lately, acked_lately: segments, forgotten with time constant `LOSS_MEMORY_S`.
        queue_long: mean for long, of time constant `LONG_S`, of the logarithm of intervals' least round trips over the least.
        lost_long, acked_long: segments, forgotten with time constant `LONG_S`.
        started: 1 since a round trip was `STARTED_RTT` times the least one or a packet was lost, 0 before.
        roughness: mean of what the rate jumps by from interval to interval, as a logarithm to base 2, at most 2.
        wanted: float64, the window in bytes that was decided on last; a time-out leaves less of it.
        resumed: float64, the window in bytes that a drain interrupted, from its start to the first decision after it, else 0.
        drained: float64, the window in bytes that a drain holds, from its start on.
        held_s: how long heavy losses still hold the window down, 0 where they do not.
        arrived: float64, the window in bytes that heavy losses hold, from when they were found.
        acked: bool, whether an ACK came in the last interval.
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
        self._due_s = np.float32(drain_after_s - 1e-3)  # float32 adds up intervals
        self._seen_at = np.float32(1 + seen_within)
        self.growth_loss = growth_loss
        self._path = np.zeros((14, rows), np.float32)
        self._counted, self._growth = Rounds(rows, LEAST_COUNTED), Rounds(rows, GROWTH_COUNTED)
        self.unseen_s, self.draining_s, self._found, self.rate_lately = self._path[:4]
        self.low_rtt, self.lost_lately, self.acked_lately, self.roughness, self.started = self._path[4:9]
        self.queue_long, self.lost_long, self.acked_long, self._stood_s, self.held_s = self._path[9:]
        self.wanted, self.resumed, self.drained, self.arrived = np.zeros((4, rows))
        self.acked, self.starting = np.zeros((2, rows), bool)

    def reset(self, rows: slice, **world: Any) -> None:
        """See `Tracker.reset`."""
        super().reset(rows, **world)
        self._path[:, rows] = 0
        self._counted.reset(rows)
        self._growth.reset(rows)
        self.wanted[rows] = self.cwnd[rows]
        self.resumed[rows] = self.drained[rows] = 0
        self.acked[rows] = False
        self.starting[rows] = self.slow_start

    def update(self, telemetry: np.ndarray) -> None:
        """Takes in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        super().update(telemetry)
        last, elapsed = self.last, self.last[ELAPSED]
        np.greater(telemetry[:, ACKS], 0, out=self.acked)  # False of what was not measured
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
        self._stood_s += elapsed * self.acked
        np.copyto(self._stood_s, 0, where=last[CWND] > self.previous_cwnd)  # as ACKs let a slow start's window
        stands = (self._stood_s > 0) & (self._stood_s >= last[RTT])
        self.starting &= np.isnan(telemetry[:, SSTHRESH]) & ~filled & ~stands
        measured = (self.rate > 0) & (self.previous_rate > 0)
        jump = np.log2(np.where(measured, self.rate, 1) / np.where(measured, self.previous_rate, 1))
        jump = np.minimum(np.abs(jump, out=jump), np.float32(2))
        self.roughness += np.where(measured, np.float32(1) - kept[1], np.float32(0)) * (jump - self.roughness)
        if self.drain:
            self._follow_least(rtt_min, elapsed * self.acked)
        self._count_lost()
        kept = np.exp(elapsed * np.float32(-1 / LONG_S))
        queue = np.log(np.maximum(np.where(rtt_min > 0, rtt_min / self.least_rtt, np.float32(1)), np.float32(1)))
        self.queue_long += np.where(rtt_min > 0, np.float32(1) - kept, np.float32(0)) * (queue - self.queue_long)
        self.lost_long *= kept
        self.lost_long += last[PACKETS_LOST]
        self.acked_long *= kept
        self.acked_long += last[SEGMENTS_ACKED]

    def _follow_least(self, rtt_min: np.ndarray, elapsed: np.ndarray) -> None:
        """Counts the time since the least round trip was seen, and through drains; silence holds both up."""
        draining = self.draining_s > 0
        seen = rtt_min <= self.least_rtt * self._seen_at  # False of a NaN
        self.unseen_s += elapsed
        np.copyto(self._found, np.fmin(self._found, rtt_min), where=draining)
        self.draining_s -= elapsed * draining
        over = draining & ((self.draining_s <= np.float32(1e-4)) | seen)
        if over.any():
            believed = over & ~seen & np.isfinite(self._found)
            np.copyto(self.least_rtt, self._found, where=believed)
            self.draining_s[over] = 0
        np.copyto(self.unseen_s, 0, where=seen | over)
        due = ~draining & self.acked & (self.unseen_s >= self._due_s)
        if due.any():
            intervals = np.maximum(np.ceil(DRAIN_ROUND_TRIPS * self.last[RTT] / self.interval_s), LEAST_DRAIN_INTERVALS)
            np.copyto(self.draining_s, intervals * np.float32(self.interval_s), where=due)
            np.copyto(self._found, np.float32(np.inf), where=due)
            np.copyto(self.resumed, self.cwnd, where=due)
            product = np.asarray(self.rate_lately, np.float64) * np.where(self.rtt_known, self.least_rtt, np.float32(0)) / 8
            held = np.minimum(DRAIN_SHARE * self.cwnd, DRAIN_OF_PRODUCT * product)
            held = np.maximum(held, LEAST_DRAINED * np.asarray(self.last[MSS], np.float64))
            np.copyto(self.drained, np.minimum(held, self.cwnd), where=due)
        halted = (self.last[TIMEOUTS] > 0) & (self.resumed > 0)
        if halted.any():  # what was before a drain is no more confirmed than any other window
            self.draining_s[halted] = self.resumed[halted] = 0

    def _count_lost(self) -> None:
        """Holds the window where losses stay heavy, but not in the round trip after that, whose losses were on their way."""
        rounds = self._counted
        over = rounds.add(self.last, HEAVY_LOSS, ~self.starting)
        self.held_s -= self.last[ELAPSED]
        self.held_s[self.held_s < np.float32(1e-4)] = 0  # float32 adds up intervals
        heavy = over & (rounds.on_end >= HEAVY_ROUNDS)
        if heavy.any():
            sent = np.maximum(rounds.lost + rounds.acked, np.float32(1))
            np.copyto(self.arrived, self.cwnd * np.asarray(rounds.acked, np.float64) / sent, where=heavy)
            np.copyto(self.held_s, self.last[RTT], where=heavy)
        halted = self.last[TIMEOUTS] > 0
        self.held_s[halted] = 0
        rounds.begin(over | halted | (self.held_s > 0))
        if self.growth_loss < 1:
            self._growth.begin(self._growth.add(self.last, self.growth_loss, ~self.starting, self.acked))

    def highest_measured(self) -> np.ndarray:
        """The cap of the window in bytes, float64 `(rows,)`, from what was measured.

        The larger of `PEAK_GAIN` times what the highest rate lately fills of the least round trip, and `RATE_GAIN` times what
        the latest rate fills of the latest one; `CAP_SEGMENTS` more.
        """
        known = self.rtt_known
        least = np.where(known, self.least_rtt, np.float32(0))
        bits = np.maximum(PEAK_GAIN * self.peak_rate * least, RATE_GAIN * self.rate * self.last[RTT])
        return np.asarray(bits, np.float64) / 8 + CAP_SEGMENTS * np.asarray(self.last[MSS], np.float64)

    def decide(self, factors: np.ndarray, cap: np.ndarray | None, out: np.ndarray) -> np.ndarray:
        """Windows in bytes for factors, by rules that a real sender can keep, into `out`, float64 `(rows,)`.

        Nothing is decided in the slow start, nor after an interval without an ACK: NaN. The window grows by what was
        acknowledged in the interval at most, up to the cap. What a time-out left of it is multiplied after it has grown, by
        what was acknowledged, towards what it was before. A drain holds it down, and afterwards it is what it was.

        Args:
            factors: float64 `(rows,)`.
            cap: the largest windows, float64 `(rows,)`; None: any.
            out: written to.
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
            lossy = self._growth.on_end >= GROWTH_ROUNDS
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
