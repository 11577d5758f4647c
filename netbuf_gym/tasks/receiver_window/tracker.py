"""Row-by-row memory of each receiver's telemetry in an environment, for decisions, observations and rewards."""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.flows import FlowTracker, PerRow
from netbuf_gym.tasks.receiver_window.meter import UtilityMeter
from netbuf_gym.tasks.receiver_window.telemetry import TELEMETRY
from netbuf_gym.tasks.tracking import Quantity

FIELD = {name: column for column, name in enumerate(TELEMETRY.names)}
ELAPSED, RECEIVED, PACKETS, RATE = (
    FIELD[name] for name in ("elapsed_s", "received_bytes", "packets_received", "receive_rate_bps")
)
WINDOW, K, TARGET, MSS = (FIELD[name] for name in ("window_bytes", "k", "target_delay_s", "mss_bytes"))
RTT, RTT_MIN = FIELD["rtt_s"], FIELD["rtt_min_s"]
DELAY, DELAY_MIN = FIELD["queue_delay_mean_s"], FIELD["queue_delay_min_s"]
GOODPUT, TRUE_DELAY, SENT, LOST = (
    FIELD[name] for name in ("goodput_bps", "true_queue_delay_mean_s", "packets_sent", "packets_lost")
)

_METERED = np.array([ELAPSED, GOODPUT, TRUE_DELAY, SENT, LOST])

PEAK_MEMORY_S = 10.0
"""Time constant with which the highest rate seen so far decays, in time in which data arrived."""

DRAIN_AFTER_S = 8.0
"""Time without the least delay after which a drain is due: before a windowed minimum of 10 s forgets it."""

SEEN_SHARE, SEEN_S = 0.05, 2e-3
"""A queueing delay counts as the least one within this share of the least round trip, or this many seconds."""

DRAIN_INTERVALS = (2, 4)
"""Least and greatest length of a drain in intervals; in between it lasts two round trips."""

FIRST_SEGMENTS = 20
"""Window in segments before anything was measured, as in Nuwa's receiver."""

CAP_SEGMENTS = 10
"""Segments that the cap of the window leaves beyond the measured product."""


class Tracker(FlowTracker):
    """The last measured value of every telemetry field, and quantities that span several intervals.

    The tracker also decides when a drain is due, from the measurements that it holds.

    Args:
        rows, interval_s: As for `FlowTracker`.
        drain: Whether drains are held by halving the window for some intervals.

    Attributes beside those of `FlowTracker` (all float32 of shape `(rows,)` unless stated):
        rate: bits that arrived over the interval, in bit/s; 0 without a packet.
        previous_rate, previous_delay, previous_window: rate, mean queueing delay and window one interval earlier.
        peak_rate: the highest rate so far in bit/s, decaying with time constant `PEAK_MEMORY_S`, but not in silence.
        least_seen_s: time since a queueing delay close to 0 was seen, in seconds.
        window, k, target_s: float64, in force: bytes, gain and target of Nuwa's rule.
        received: float64, bytes that arrived in the interval: 0 before the first one, and in silence.
        draining: float32, intervals that the drain still lasts, 0 outside one.
        resumed: float64, the window in bytes that the next decision starts from: after a drain the window before it.
        meter: sum of Nuwa's utility.
    """

    def __init__(self, rows: int, interval_s: float, drain: bool = True):
        super().__init__(TELEMETRY, rows, interval_s)
        self.drain = drain
        self._memory = np.zeros((7, rows), np.float32)
        self.rate, self.previous_rate, self.previous_delay, self.previous_window = self._memory[:4]
        self.peak_rate, self.least_seen_s, self.draining = self._memory[4:]
        self._exact = np.ones((5, rows))
        self.window, self.k, self.target_s, self.received, self.resumed = self._exact
        self.meter = UtilityMeter(rows)
        self.last[[MSS, WINDOW]] = self.previous_window[:] = 1  # of rows whose world has not started: nothing divides by 0

    def reset(
        self,
        rows: slice,
        *,
        capacity_bps: PerRow,
        start_s: PerRow,
        mss_bytes: np.ndarray | float,
        k: float,
        target_s: float,
        **path: PerRow,
    ) -> None:
        """Forget everything measured on these rows, whose world starts anew; `path` as for `reset_path`."""
        self.reset_path(rows, capacity_bps=capacity_bps, **path)
        self.last[MSS, rows] = mss_bytes
        self._memory[:, rows] = 0
        self.window[rows] = self.resumed[rows] = FIRST_SEGMENTS * mss_bytes
        self.last[WINDOW, rows] = self.previous_window[rows] = FIRST_SEGMENTS * mss_bytes
        self.k[rows], self.target_s[rows], self.received[rows] = k, target_s, 0
        self.last[K, rows], self.last[TARGET, rows] = k, target_s
        self.meter.reset(rows, capacity_bps, start_s)

    def update(self, telemetry: np.ndarray) -> None:
        """Update from the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        last = self.last
        self.previous_rate[:], self.previous_delay[:], self.previous_window[:] = self.rate, last[DELAY], last[WINDOW]
        super().update(telemetry)
        np.fmax(telemetry[:, RECEIVED], 0, out=self.received)
        elapsed, arrived = last[ELAPSED], self.received > 0
        np.multiply(last[RATE], arrived, out=self.rate)
        kept = np.exp(elapsed * arrived * np.float32(-1 / PEAK_MEMORY_S))
        np.maximum(self.peak_rate * kept, self.rate, out=self.peak_rate)
        outside = self.draining == 0
        for exact, column in ((self.window, WINDOW), (self.k, K), (self.target_s, TARGET)):
            now = telemetry[:, column]
            np.copyto(exact, now, where=~np.isnan(now))
        self._update_drains(elapsed, arrived, outside)

        self.means.add(arrived, elapsed, self.throughput_ratio(), self.rtt_ratio())
        self.meter.add(*telemetry.T[_METERED])

    def _update_drains(self, elapsed: np.ndarray, arrived: np.ndarray, outside: np.ndarray) -> None:
        """Update the time since the least delay was seen and the progress of drains; silence suspends both."""
        np.copyto(self.resumed, self.window, where=outside)
        seen = self.last[DELAY_MIN] <= np.maximum(np.float32(SEEN_SHARE) * self.last[RTT_MIN], np.float32(SEEN_S))
        self.least_seen_s += elapsed * arrived
        np.copyto(self.least_seen_s, 0, where=seen & arrived)
        if not self.drain:
            return
        self.draining -= ~outside & arrived
        np.copyto(self.least_seen_s, 0, where=~outside)
        due = outside & arrived & (self.least_seen_s >= DRAIN_AFTER_S - 1e-3)  # float32 adds up intervals
        if due.any():
            lasting = np.clip(np.ceil(2 * self.last[RTT] / self.interval_s), *DRAIN_INTERVALS)
            np.copyto(self.draining, lasting, where=due)

    @property
    def highest_window(self) -> np.ndarray:
        """The measured cap of the window in bytes, float64 `(rows,)`.

        It is the larger of twice what the highest rate fills in the least round trip and of one and a half of what the recent
        rate fills in the last round trip, plus 10 segments.
        """
        recent = np.maximum(self.rate, self.previous_rate)
        bits = np.maximum(2 * self.peak_rate * self.last[RTT_MIN], np.float32(1.5) * recent * self.last[RTT])
        return np.asarray(bits, np.float64) / 8 + CAP_SEGMENTS * np.asarray(self.last[MSS], np.float64)

    def throughput_ratio(self) -> np.ndarray:
        """See `Path`."""
        return self.last[GOODPUT] / self.share_bps

    def rtt_ratio(self) -> np.ndarray:
        """See `Path`."""
        return self.last[TRUE_DELAY] / self.base_rtt_s + np.float32(1)

    def queueing_s(self) -> np.ndarray:
        """See `Path`."""
        return self.last[TRUE_DELAY].copy()

    def loss_ratio(self) -> np.ndarray:
        """Return packets marked lost over packets sent, at most 1."""
        return np.minimum(self.last[LOST] / np.maximum(self.last[SENT], np.float32(1)), np.float32(1))

    quantities = (
        Quantity("throughput_ratio", "1", "goodput / fair share", throughput_ratio),
        Quantity("rtt_ratio", "1", "1 + queueing delay at the bottleneck / base RTT", rtt_ratio),
        Quantity("queueing_s", "s", "queueing delay at the bottleneck, mean over the packets that left it last", queueing_s),
        Quantity("loss_ratio", "1", "packets marked lost / sent, at most 1; 0 when there were none", loss_ratio),
        *FlowTracker.quantities,
        Quantity("arrival_rate_bps", "bit/s", "what arrived, over the interval; 0 without a packet", lambda self: self.rate),
        Quantity("peak_rate_bps", "bit/s", "highest arrival rate lately", lambda self: self.peak_rate),
        Quantity("previous_rate_bps", "bit/s", "arrival rate an interval earlier", lambda self: self.previous_rate),
        Quantity("previous_delay_s", "s", "measured queueing delay an interval earlier", lambda self: self.previous_delay),
        Quantity("least_seen_s", "s", "time since the least queueing delay was seen", lambda self: self.least_seen_s),
    )
