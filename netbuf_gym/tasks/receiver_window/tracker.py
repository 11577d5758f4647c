"""Row-by-row memory of each receiver's telemetry in an environment, for decisions, observations and rewards."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym import _core
from netbuf_gym.tasks.flows import FlowTracker, PerRow
from netbuf_gym.tasks.receiver_window.long_memory import LongMemory
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

K_RANGE, TARGET_RANGE_S, LEAST_GAIN = (0.25, 16.0), (0.002, 1.0), 1 / 4
"""Ranges of Nuwa's gain and of its target delay, and the least window in measured products that is observed."""


class Tracker(FlowTracker):
    """The last measured value of every telemetry field, and quantities that span several intervals.

    The tracker also decides when a drain is due, from the measurements that it holds.

    Args:
        rows, interval_s: As for `FlowTracker`.
        drain: Whether drains are held by halving the window for some intervals.
        long_memory: Whether the last minute is remembered.

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
        long_memory: memory of the last minute; None: not kept.
        arithmetic: native computation of these arrays, and of the features observed.
    """

    def __init__(self, rows: int, interval_s: float, drain: bool = True, long_memory: bool = False):
        super().__init__(TELEMETRY, rows, interval_s)
        self._memory = np.zeros((7, rows), np.float32)
        self.rate, self.previous_rate, self.previous_delay, self.previous_window = self._memory[:4]
        self.peak_rate, self.least_seen_s, self.draining = self._memory[4:]
        self._exact = np.ones((5, rows))
        self.window, self.k, self.target_s, self.received, self.resumed = self._exact
        self._kept = np.empty(rows, np.float32)
        rules = {
            "drain": drain,
            "peak_memory_s": PEAK_MEMORY_S,
            "seen_share": SEEN_SHARE,
            "seen_s": SEEN_S,
            "drain_after_s": DRAIN_AFTER_S,
            "least_drain_intervals": DRAIN_INTERVALS[0],
            "greatest_drain_intervals": DRAIN_INTERVALS[1],
            "k_middle": math.sqrt(K_RANGE[0] * K_RANGE[1]),
            "target_middle_s": math.sqrt(TARGET_RANGE_S[0] * TARGET_RANGE_S[1]),
            "least_gain": LEAST_GAIN,
        }
        self.arithmetic = _core.ReceiverFeatures(
            *(TELEMETRY.names, interval_s, rules),
            last=self.last,
            memory=self._memory,
            exact=self._exact,
            kept=self._kept,
            means=self.means.sums,
            begun=self.means.begun,
            path=self.share_and_rtt,
        )
        self.meter = UtilityMeter(rows)
        self.long_memory = LongMemory(rows) if long_memory else None
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
        if self.long_memory is not None:
            self.long_memory.forget(rows)

    def update(self, telemetry: np.ndarray) -> None:
        """Update from the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self.note(telemetry)
        self.arithmetic.take_in(telemetry)
        np.exp(self._kept, out=self._kept)
        self.arithmetic.follow(telemetry)
        self.meter.add(*telemetry.T[_METERED])
        if self.long_memory is not None:
            close_s = np.maximum(np.float32(SEEN_SHARE) * self.last[RTT_MIN], np.float32(SEEN_S))
            own = self.last[ELAPSED], self.rate, self.last[DELAY], close_s
            self.long_memory.follow(self.received > 0, *own)

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
