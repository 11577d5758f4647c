"""What an environment remembers of each sender's telemetry, row by row, for observations and rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from netbuf_gym.tasks.tracking import LastMeasured

FIELD = {name: column for column, name in enumerate(TELEMETRY.names)}
SSTHRESH, CWND, MSS = FIELD["ssthresh_bytes"], FIELD["cwnd_bytes"], FIELD["mss_bytes"]
ELAPSED, THROUGHPUT, ACKS = FIELD["elapsed_s"], FIELD["throughput_bps"], FIELD["acks"]
RTT, RTT_MIN, RTT_MIN_EVER = FIELD["rtt_mean_s"], FIELD["rtt_min_s"], FIELD["rtt_min_ever_s"]
SEGMENTS_ACKED, PACKETS_LOST, TIMEOUTS = FIELD["segments_acked_sum"], FIELD["packets_lost"], FIELD["timeouts"]
IN_FLIGHT, RECEIVE_INTERVAL = FIELD["in_flight_bytes"], FIELD["receive_interval_mean_s"]

PEAK_MEMORY_S = 10.0
"""Time constant with which the highest rate seen so far is forgotten."""


class Tracker(LastMeasured):
    """The last measured value of every telemetry field, and what needs more than one interval to know.

    Before the first measurement the slow-start threshold is +inf in `last` (one that was never set is infinite). A
    `netbuf_gym.rewards.utility.Path`.

    Attributes (all float32 of shape `(rows,)` unless stated):
        rate: bits acknowledged over the time from the last ACK of earlier intervals to the last one of this, in bit/s:
            the throughput without the chance of how many ACKs fall into an interval. 0 without an ACK.
        previous_cwnd, previous_rtt, previous_throughput, previous_rate: as they were one interval earlier.
        least_rtt: the least round trip of a data packet so far in seconds, +inf before the first.
        peak_rate: the highest rate so far in bit/s, forgotten with time constant `PEAK_MEMORY_S`.
        age_s: time since the last ACK arrived, in seconds.
        rtt_known, previous_rtt_known: bool, whether a round trip had been measured by now, and one interval earlier.
        capacity_bps, share_bps, base_rtt_s: what the world offers: bottleneck rate, the equal share of it for each
            flow, and propagation plus serialisation. For rewards and reports; never observed.
        lowest_window, highest_window: float64, the bounds of the congestion window in bytes.
        cwnd: float64, the window in force in bytes (exact, since actions build on it).
        interval_s: the nominal length of a decision interval: what the agent's decisions are spaced by, and so the measure of
            what it can tell apart; what was measured is divided by the measured length, `last[ELAPSED]`.
    """

    def __init__(self, rows: int, interval_s: float):
        super().__init__(TELEMETRY, rows)
        self.interval_s = interval_s
        self._memory = np.zeros((7, rows), np.float32)
        self.previous_cwnd, self.previous_rtt, self.previous_throughput, self.previous_rate = self._memory[:4]
        self.rate, self.peak_rate, self.age_s = self._memory[4:]
        self.least_rtt = np.full(rows, np.inf, np.float32)
        self._world = np.ones((3, rows), np.float32)
        self.capacity_bps, self.share_bps, self.base_rtt_s = self._world
        self.lowest_window, self.highest_window, self.cwnd = np.ones((3, rows))
        self.rtt_known = np.zeros(rows, bool)
        self.previous_rtt_known = np.zeros(rows, bool)
        self._scratch = np.empty(rows, np.float32)
        self._flag = np.empty(rows, bool)

    def reset(
        self,
        rows: slice,
        *,
        capacity_bps: float,
        share_bps: float,
        base_rtt_s: float | Sequence[float],
        initial_window: float | Sequence[float],
        highest_window: float | Sequence[float],
        mss_bytes: float,
    ) -> None:
        """Forgets everything measured on these rows; their world starts anew. Windows in bytes."""
        self.forget(rows)
        self.last[SSTHRESH, rows] = np.inf
        self.last[MSS, rows] = mss_bytes
        self.last[CWND, rows] = initial_window
        self._memory[:, rows] = 0
        self.least_rtt[rows] = np.inf
        self.previous_cwnd[rows] = initial_window
        self.rtt_known[rows] = False
        self.previous_rtt_known[rows] = False
        self.capacity_bps[rows] = capacity_bps
        self.share_bps[rows] = share_bps
        self.base_rtt_s[rows] = base_rtt_s
        self.cwnd[rows] = initial_window
        self.lowest_window[rows] = 2 * mss_bytes
        self.highest_window[rows] = np.maximum(highest_window, 2 * mss_bytes)

    def update(self, telemetry: np.ndarray) -> None:
        """Takes in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        last, scratch = self.last, self._scratch
        np.copyto(self.previous_cwnd, last[CWND])
        np.copyto(self.previous_rtt, last[RTT])
        np.copyto(self.previous_throughput, last[THROUGHPUT])
        np.copyto(self.previous_rate, self.rate)
        np.copyto(self.previous_rtt_known, self.rtt_known)

        super().update(telemetry)
        np.copyto(self.cwnd, telemetry[:, CWND], where=self.measured[CWND])
        np.greater(last[RTT], 0, out=self.rtt_known)

        np.fmin(self.least_rtt, self.now[RTT_MIN], out=self.least_rtt)

        elapsed = last[ELAPSED]
        np.multiply(last[RECEIVE_INTERVAL], last[ACKS], out=scratch)
        np.greater(scratch, 0, out=self._flag)
        np.logical_and(self._flag, self.previous_rtt_known, out=self._flag)
        np.copyto(self.rate, last[THROUGHPUT])
        np.multiply(self.rate, elapsed, out=self.rate, where=self._flag)
        np.divide(self.rate, scratch, out=self.rate, where=self._flag)

        np.multiply(elapsed, -1 / PEAK_MEMORY_S, out=scratch)
        np.exp(scratch, out=scratch)
        np.multiply(self.peak_rate, scratch, out=self.peak_rate)
        np.maximum(self.peak_rate, self.rate, out=self.peak_rate)

        np.add(self.age_s, elapsed, out=self.age_s)
        np.greater(last[ACKS], 0, out=self._flag)
        np.copyto(self.age_s, 0, where=self._flag)

    def elapsed_s(self) -> np.ndarray:
        """See `Path`."""
        return self.last[ELAPSED]

    def throughput_ratio(self) -> np.ndarray:
        """See `Path`."""
        return self.last[THROUGHPUT] / self.share_bps

    def rtt_ratio(self) -> np.ndarray:
        """See `Path`."""
        return np.maximum(self.last[RTT] / self.base_rtt_s, np.float32(1))

    def queueing_s(self) -> np.ndarray:
        """See `Path`."""
        return np.maximum(self.last[RTT] - self.base_rtt_s, np.float32(0))

    def loss_ratio(self) -> np.ndarray:
        """See `Path`."""
        lost = self.last[PACKETS_LOST]
        return lost / np.maximum(lost + self.last[SEGMENTS_ACKED], np.float32(1))
