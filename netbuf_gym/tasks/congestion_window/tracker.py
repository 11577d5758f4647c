"""Per-row memory of each sender's telemetry, for observations and rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.plants.plant import Plant
from netbuf_gym.tasks.congestion_window.rivals import Surroundings
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from netbuf_gym.tasks.flows import FlowTracker, PerRow
from netbuf_gym.tasks.tracking import Quantity

FIELD = {name: column for column, name in enumerate(TELEMETRY.names)}
SSTHRESH, CWND, MSS = FIELD["ssthresh_bytes"], FIELD["cwnd_bytes"], FIELD["mss_bytes"]
ELAPSED, THROUGHPUT, RTT = FIELD["elapsed_s"], FIELD["throughput_bps"], FIELD["rtt_mean_s"]
SEGMENTS_ACKED, PACKETS_LOST, ACKS = FIELD["segments_acked_sum"], FIELD["packets_lost"], FIELD["acks"]

PEAK_MEMORY_S = 10.0
"""Time constant with which the highest rate so far is forgotten."""

_ONE = np.ones(1, np.float32)  # an array: numpy takes twice as long with a number


class Tracker(FlowTracker):
    """Last measured value of every telemetry field, and quantities derived from more than one interval.

    Before the first measurement the slow-start threshold is +inf in `last` (a threshold that was never set is infinite).
    `means` begin with the first ACK.

    Attributes beside those of `FlowTracker` (all float32 of shape `(rows,)` unless stated):
        rate: bits acknowledged over the time from the last ACK of earlier intervals to the last one of this, in bit/s:
            throughput independent of how many ACKs happen to fall into an interval. 0 without an ACK.
        previous_cwnd, previous_rtt, previous_throughput, previous_rate: values of one interval earlier.
        least_rtt: least of `base_field` so far in seconds, of a data packet's round trips, +inf before the first.
        peak_rate: highest rate so far in bit/s, forgotten with time constant `PEAK_MEMORY_S`.
        age_s: time since the last ACK arrived, in seconds.
        rtt_known, previous_rtt_known: bool, whether a round trip had been measured by now, and one interval earlier.
        lowest_window, highest_window: float64, the bounds of the congestion window in bytes.
        cwnd: float64, the window in force in bytes (exact, since actions build on it).
        surroundings: what rewards may know of a sender's rivals and path; never observed.
        arithmetic: native computation of these arrays from telemetry, and of the features observed from them.
    """

    time_constants_s: ClassVar[tuple[float, ...]] = (PEAK_MEMORY_S,)
    """Time constants with which quantities are forgotten, that of the highest rate first."""
    base_field: ClassVar[str] = "rtt_min_s"
    """Field of an interval's telemetry that the least round trip is the least of."""

    lowest_segments: float = 2
    """Least window in segments."""

    def __init__(self, rows: int, interval_s: float):
        super().__init__(TELEMETRY, rows, interval_s)
        self._memory = np.zeros((8, rows), np.float32)
        self.previous_cwnd, self.previous_rtt, self.previous_throughput, self.previous_rate = self._memory[:4]
        self.rate, self.peak_rate, self.age_s, self.least_rtt = self._memory[4:]
        self.least_rtt[:] = np.inf
        self.lowest_window, self.highest_window, self.cwnd = np.ones((3, rows))
        self.surroundings = Surroundings(rows)
        self._known = np.zeros((2, rows), bool)
        self.rtt_known, self.previous_rtt_known = self._known
        self._beginning = _core.RowStarts([self._memory, self._known])
        windows = self.last[SSTHRESH], self.last[CWND], self.previous_cwnd, self.cwnd
        self._windows_begin = _core.RowValues([*windows, self.last[MSS], self.lowest_window, self.highest_window])
        self._kept = np.empty((len(self.time_constants_s), rows), np.float32)
        self.arithmetic = _core.SenderFeatures(
            *(TELEMETRY.names, interval_s, self.time_constants_s, self.base_field),
            last=self.last,
            memory=self._memory,
            window=self.cwnd,
            known=self._known,
            kept=self._kept,
            means=self.means.sums,
            begun=self.means.begun,
            path=self.share_and_rtt,
        )

    def reset(self, rows: slice, *, initial_window: PerRow, highest_window: PerRow, mss_bytes: PerRow, **path: PerRow) -> None:
        """Forget all measurements of these rows, whose world starts anew.

        Args:
            rows: Rows of the world, a slice with a start.
            initial_window, highest_window: In bytes; the highest is at least two segments.
            mss_bytes: Largest segments; the lowest window is two.
            path: As for `reset_path`.
        """
        self.reset_path(rows, **path)
        self._beginning.restore(rows.start, rows.stop)
        least = self.lowest_segments
        lowest = [least * mss for mss in mss_bytes] if isinstance(mss_bytes, Sequence) else least * mss_bytes
        windows = [np.inf, initial_window, initial_window, initial_window, mss_bytes, lowest, highest_window]
        self._windows_begin.write(rows.start, rows.stop, windows)

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self.note(telemetry)
        self.surroundings.note()
        self.arithmetic.take_in(telemetry)
        np.exp(self._kept, out=self._kept)
        self.arithmetic.follow(telemetry)

    def attach(self, plant: Plant, seeds: np.ndarray) -> None:
        self.surroundings.attach(plant, seeds)

    def throughput_ratio(self) -> np.ndarray:
        """Return throughput over the fair share, float32 `(rows,)`."""
        return self.last[THROUGHPUT] / self.share_bps

    def rtt_ratio(self) -> np.ndarray:
        """Return RTT over base RTT, at least 1; 1 before the first round trip."""
        return np.maximum(self.last[RTT] / self.base_rtt_s, _ONE)

    def queueing_s(self) -> np.ndarray:
        """Return RTT less base RTT in seconds, at least 0."""
        return np.maximum(self.last[RTT] - self.base_rtt_s, np.float32(0))

    def loss_ratio(self) -> np.ndarray:
        """Return packets marked lost over packets marked lost or acknowledged, 0 when there were none."""
        lost = self.last[PACKETS_LOST]
        return lost / np.maximum(lost + self.last[SEGMENTS_ACKED], np.float32(1))

    quantities = (
        Quantity("throughput_ratio", "1", "throughput / fair share", throughput_ratio),
        Quantity("rtt_ratio", "1", "RTT / base RTT, at least 1; 1 before the first round trip", rtt_ratio),
        Quantity("queueing_s", "s", "RTT less base RTT, at least 0", queueing_s),
        Quantity("loss_ratio", "1", "lost / (lost + acknowledged) packets; 0 when there were none", loss_ratio),
        *FlowTracker.quantities,
        Quantity(
            "rival_share", "1", "recent rate of rivals over the fair one; 1 without", lambda self: self.surroundings.share()
        ),
        Quantity(
            "random_loss", "1", "share of packets that the path loses at random", lambda self: self.surroundings.random_loss()
        ),
        Quantity("delivery_rate_bps", "bit/s", "of ACKs, from the last one before the interval on", lambda self: self.rate),
        Quantity("previous_throughput_bps", "bit/s", "an interval earlier", lambda self: self.previous_throughput),
        Quantity("previous_rtt_s", "s", "RTT an interval earlier; 0 before the first", lambda self: self.previous_rtt),
        Quantity("previous_cwnd_bytes", "B", "window an interval earlier", lambda self: self.previous_cwnd),
        Quantity("rtt_known", "bool", "whether there was a round trip by now", lambda self: self.rtt_known),
        Quantity("previous_rtt_known", "bool", "whether there was an interval earlier", lambda self: self.previous_rtt_known),
        Quantity("age_s", "s", "time since the last ACK", lambda self: self.age_s),
    )
