"""Meter of a host's results interval by interval, the same for agents and for baselines.

The utility of an interval is ln(x) - 0.2 (y - 1) - 0.03 ln(1 + m), with x = throughput of a connection / its fair share, within
0.001 and 10; y = latency / base RTT, within 1 and 8; m = memory / twice the path's product. All three are as last measured.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from netbuf_gym.tasks.host_buffers.telemetry import TELEMETRY


class MeteredTracker(Protocol):
    """Tracked state of the hosts that a meter reads (`tracker.Tracker`)."""

    rate: np.ndarray
    memory: np.ndarray

    def throughput_ratio(self) -> np.ndarray: ...

    def rtt_ratio(self) -> np.ndarray: ...

    def memory_ratio(self) -> np.ndarray: ...


DELAY_WEIGHT, MEMORY_WEIGHT = 0.2, 0.03
LEAST_SHARE, MOST_SHARE, MOST_INFLATION = 1e-3, 10.0, 8.0

_ELAPSED, _RATE, _LATENCY, _INTERRUPTED = (
    TELEMETRY.index(name) for name in ("elapsed_s", "throughput_bps", "latency_s", "interrupted_s")
)


def compute_terms(tracker: MeteredTracker, out: np.ndarray) -> np.ndarray:
    """Write ln(x), y - 1 and ln(1 + m) of the interval just ended, `(3, rows)`, into `out` and return it."""
    np.log(np.clip(tracker.throughput_ratio(), np.float32(LEAST_SHARE), np.float32(MOST_SHARE)), out=out[0])
    np.minimum(tracker.rtt_ratio(), np.float32(MOST_INFLATION), out=out[1])
    out[1] -= np.float32(1)
    np.log1p(tracker.memory_ratio(), out=out[2])
    return out


class Meter:
    """Accumulator of each host's utility and of the quantities behind it.

    Intervals before something was sent or received do not count for the utility, and intervals without a throughput or latency
    measurement do not count for their means.

    Args:
        rows: Number of hosts that are measured.
    """

    def __init__(self, rows: int):
        self._terms = np.zeros((3, rows), np.float32)
        self._sums = np.zeros((9, rows))

    def reset(self, rows: slice) -> None:
        """Forget everything about these rows, whose worlds start anew."""
        self._sums[:, rows] = 0

    def add(self, tracker: MeteredTracker, telemetry: np.ndarray) -> None:
        """Add an interval of every row: the telemetry, `(rows, fields)`, and the tracker already updated with it."""
        elapsed = np.fmax(telemetry[:, _ELAPSED], 0)  # 0 for NaN
        begun = elapsed * (tracker.rate > 0)
        throughput, delay, memory = compute_terms(tracker, self._terms)
        self._sums[0] += begun
        self._sums[1] += begun * (throughput - DELAY_WEIGHT * delay - MEMORY_WEIGHT * memory)
        for row, column in ((2, _RATE), (4, _LATENCY)):
            value = telemetry[:, column]
            measured = elapsed * ~np.isnan(value)
            self._sums[row] += measured
            self._sums[row + 1] += measured * np.nan_to_num(value)
        self._sums[6] += elapsed * tracker.memory
        self._sums[7] += elapsed
        self._sums[8] += np.nan_to_num(telemetry[:, _INTERRUPTED])

    def compute_results(self, row: int) -> dict[str, float]:
        """Return the results of a row so far; NaN where nothing was measured.

        Returns:
            utility: mean of the intervals' utility.
            flow_bps: mean of the intervals' throughput of a connection.
            latency_s: mean of the intervals' latency.
            memory_bytes: mean of TCP's and the ring's memory.
            interrupted_s: time for which rings were being resized.
        """
        begun, utility, sending, rate, timed, latency, memory, time, interrupted = self._sums[:, row].tolist()
        return {
            "utility": _divide(utility, begun),
            "flow_bps": _divide(rate, sending),
            "latency_s": _divide(latency, timed),
            "memory_bytes": _divide(memory, time),
            "interrupted_s": interrupted,
        }


def _divide(total: float, time: float) -> float:
    return total / time if time > 0 else float("nan")
