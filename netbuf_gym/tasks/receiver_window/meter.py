"""Utility and delays of a receiver's flow by interval, measured alike for agents and for the controls that replace them.

Nuwa's utility of an interval is 0.4 U(x) - 0.4 U(d) - 0.2 U(l), U(z) = z^0.4 / 0.4, with x = goodput / mean capacity of the
bottleneck, d = queueing delay / 500 ms, l = packets marked lost / packets sent, each clipped to [0, 1]. The weights and
alpha = 0.6 are the paper's, which does not state the divisors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ALPHA = 0.6
WEIGHTS = (0.4, 0.4, 0.2)
"""Weights of throughput, delay and loss."""

DELAY_SCALE_S = 0.5
"""Queueing delay in seconds that counts as 1."""

MAX_INTERVALS = 16_384
"""Number of the latest delays of a row that are kept for their percentiles."""


def nuwa_utility(share: np.ndarray, delay_s: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Return the utility of an interval, -1.5 to 1.

    Args:
        share: Goodput / capacity, 0 or more.
        delay_s: Queueing delay in seconds, 0 or more.
        loss: Packets lost / packets sent, 0 or more.
    """
    return compute_utility(np.stack(np.broadcast_arrays(share, np.divide(delay_s, DELAY_SCALE_S), loss)))


def compute_utility(parts: np.ndarray) -> np.ndarray:
    """Return the utility of x, d and l, `(3, ...)`, not yet clipped; `parts` is overwritten."""
    np.minimum(parts, 1, out=parts)
    np.power(parts, 1 - ALPHA, out=parts)
    a, b, c = (weight / (1 - ALPHA) for weight in WEIGHTS)
    return a * parts[0] - b * parts[1] - c * parts[2]


class UtilityMeter:
    """Sum of the utility of intervals, and record of their queueing delays.

    An interval in which no packet left the queue has the delay of the last one in which one did, 0 before the first. Intervals
    that begin before a row's flow do not count.

    Args:
        rows: Number of flows measured.
    """

    def __init__(self, rows: int):
        self.rows = rows
        self.capacity_bps, self.start_s = np.ones(rows), np.zeros(rows)
        self._time_s, self._sum, self._delay = np.zeros((3, rows))
        self._count, self._passed = np.zeros((2, rows), np.int64)
        self._delays = np.zeros((64, rows), np.float32)
        self._each = np.arange(rows)
        self._parts = np.zeros((3, rows), np.float32)

    def reset(self, rows: slice, capacity_bps: float | Sequence[float], start_s: float | Sequence[float]) -> None:
        """Forget everything about these rows, whose worlds start anew."""
        self.capacity_bps[rows], self.start_s[rows] = capacity_bps, start_s
        for one in (self._time_s, self._sum, self._delay, self._count, self._passed):
            one[rows] = 0

    def add(
        self, elapsed_s: np.ndarray, goodput_bps: np.ndarray, delay_s: np.ndarray, sent: np.ndarray, lost: np.ndarray
    ) -> None:
        """Add an interval of every row; each argument `(rows,)`, NaN where nothing was measured."""
        begun = self._time_s >= self.start_s - 1e-9
        self._time_s += np.fmax(elapsed_s, 0)  # 0 of a NaN
        passed = delay_s == delay_s
        np.copyto(self._delay, delay_s, where=passed)
        parts = self._parts
        np.divide(np.fmax(goodput_bps, 0), self.capacity_bps, out=parts[0], casting="same_kind")
        np.divide(self._delay, DELAY_SCALE_S, out=parts[1], casting="same_kind")
        np.divide(np.fmax(lost, 0), np.fmax(sent, 1), out=parts[2], casting="same_kind")
        self._sum += compute_utility(parts) * begun
        self._count += begun
        rows = self._each[begun & passed]
        if not len(rows):
            return
        at = self._passed[rows] % MAX_INTERVALS
        if np.maximum.reduce(at) >= len(self._delays):
            self._delays = np.concatenate((self._delays, np.zeros_like(self._delays)))[:MAX_INTERVALS]
        self._delays[at, rows] = delay_s[rows]
        self._passed[rows] += 1

    def summarize(self, row: int) -> dict[str, float]:
        """Return a row's results so far, NaN before the first interval.

        Returns:
            utility: mean of the intervals' utility.
            queue_delay_p95_s: 95th percentile (nearest rank) of the mean time in the queue, over the intervals in which packets
                left the queue.
        """
        kept = np.sort(self._delays[: min(self._passed[row], MAX_INTERVALS), row])
        return {
            "utility": float(self._sum[row] / self._count[row]) if self._count[row] else float("nan"),
            "queue_delay_p95_s": float(kept[max(-(-95 * len(kept) // 100) - 1, 0)]) if len(kept) else float("nan"),
        }
