"""Evidence on what a path's delays and losses mean, for the recipe `robust`.

A minimum is an extreme, which jitter never repeats: the base round trip is here the least of the intervals' mean round trips. A
mean may hold a queue that stands since the start; as packets of one interval then differ little, the base is at most the least
round trip of a packet and three times what means exceed the least of their intervals by.
Regressions on what is in flight tell a queue of the sender's own from others' and from jitter; the queue and the offered rate
at losses tell overflow, policers and random loss apart.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.tasks.congestion_window.path_tracker import PathTracker
from netbuf_gym.tasks.flows import PerRow


class EvidenceTracker(PathTracker):
    """Tracker of each sender's path that judges by mean round trips and gathers evidence.

    `least_rtt`, and with it drains, caps and the end of a slow start, refers to the means of intervals' round trips, within
    three spreads of the least one of a packet.

    Args:
        rows, interval_s, options: As for `PathTracker`.
        lowest_segments: Least window in segments.

    Attributes (all float32 of shape `(rows,)`):
        base_ever: least mean round trip of an interval since the start, in seconds; 0 before the first.
        spread_s: mean lately, of time constant `LATELY_S`, of an interval's mean round trip less its least.
        rate_long: mean rate, of time constant `LONG_S`, in bit/s.
        weight, in_flight, rtt, rate_mean: weight of the intervals with ACKs, forgotten with time constant `LOSS_MEMORY_S`, and
            their weighted means of segments in flight (mean over the ACKs), of round trips in seconds, and of segments
            acknowledged a second.
        in_flight_squares, rtt_products, rtt_squares, rate_products: weighted sums of squared deviations from these means, and
            of products with the deviation of the segments in flight.
        counted, lossy: intervals, and those of them with losses, forgotten with time constant `LONG_S`.
        burst, loss_queue_s, loss_offered: means over the latter of lost segments, of round trip less the least one in seconds,
            and of the rate of acknowledged and lost segments over `rate_long`; 0 before the first loss.
        loss_age_s: time since the last loss, or since the start.
    """

    base_field: ClassVar[str] = "rtt_mean_s"
    spreads: ClassVar[float] = 3.0
    heavy_loss: ClassVar[float] = 0.02
    heavy_rounds: ClassVar[float] = 1
    least_counted: ClassVar[float] = 16
    heavy_kept: ClassVar[float] = 0.9
    most_cut: ClassVar[float] = 0.3
    care_s: ClassVar[float] = 3.0

    def __init__(self, rows: int, interval_s: float, lowest_segments: float = 2, **options: Any):
        self.lowest_segments = lowest_segments
        super().__init__(rows, interval_s, **options)
        self._evidence = np.zeros((16, rows), np.float32)
        self.spread_s, self.rate_long, self.weight, self.in_flight, self.rtt, self.rate_mean = self._evidence[:6]
        self.in_flight_squares, self.rtt_products, self.rtt_squares, self.rate_products = self._evidence[6:10]
        self.counted, self.lossy, self.burst, self.loss_queue_s, self.loss_offered, self.loss_age_s = self._evidence[10:]
        self.evidence_arithmetic = _core.PathEvidence(
            self.arithmetic, self.path_arithmetic, base_ever=self.base_ever, memory=self._evidence
        )

    def _make_base_ever(self) -> np.ndarray:
        return np.zeros(self.rows, np.float32)

    def reset(self, rows: slice, *, mss_bytes: PerRow, **world: PerRow) -> None:
        """Reset rows, see `Tracker.reset`."""
        super().reset(rows, mss_bytes=mss_bytes, **world)
        self._evidence[:, rows] = 0
        self.base_ever[rows] = 0

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        super().update(telemetry)
        self.evidence_arithmetic.follow(telemetry)
