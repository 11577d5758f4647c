"""What a host achieves interval by interval, in the same words for agents and for whatever plays in their place.

The utility of an interval is ln(x) - 0.2 (y - 1) - 0.03 ln(1 + m), with x = throughput of a connection / its fair share, within
0.001 and 10; y = latency / base RTT, within 1 and 8; m = memory / twice the path's product. All three are as last measured.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from netbuf_gym.tasks.host_buffers.telemetry import TELEMETRY


class Tracked(Protocol):
    """What is known of the hosts of rows (`tracker.Tracker`)."""

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


def terms_of(tracker: Tracked, out: np.ndarray) -> np.ndarray:
    """ln(x), y - 1 and ln(1 + m) of the interval just ended, `(3, rows)`, into `out`."""
    np.log(np.clip(tracker.throughput_ratio(), np.float32(LEAST_SHARE), np.float32(MOST_SHARE)), out=out[0])
    np.minimum(tracker.rtt_ratio(), np.float32(MOST_INFLATION), out=out[1])
    out[1] -= np.float32(1)
    np.log1p(tracker.memory_ratio(), out=out[2])
    return out


class Meter:
    """Adds up a host's utility, and what it is made of.

    Intervals before something was sent or received do not count for the utility, and those that measured no throughput or
    latency not for their means.

    Args:
        rows: number of hosts that are measured.
    """

    def __init__(self, rows: int):
        self._terms = np.zeros((3, rows), np.float32)
        self._sums = np.zeros((9, rows))

    def reset(self, rows: slice) -> None:
        """Forgets everything of these rows; their worlds start anew."""
        self._sums[:, rows] = 0

    def add(self, tracker: Tracked, telemetry: np.ndarray) -> None:
        """Takes in an interval of every row: the telemetry, `(rows, fields)`, and the tracker that has taken it in."""
        elapsed = np.fmax(telemetry[:, _ELAPSED], 0)  # 0 of a NaN
        begun = elapsed * (tracker.rate > 0)
        throughput, delay, memory = terms_of(tracker, self._terms)
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

    def achieved(self, row: int) -> dict[str, float]:
        """Of a row so far; NaN where nothing was measured.

        Returns:
            utility: mean of the intervals' utility.
            flow_bps: mean of the intervals' throughput of a connection.
            latency_s: mean of the intervals' latency.
            memory_bytes: mean of TCP's and the ring's memory.
            interrupted_s: time for which rings were being resized.
        """
        begun, utility, sending, rate, timed, latency, memory, time, interrupted = self._sums[:, row].tolist()
        return {
            "utility": _over(utility, begun),
            "flow_bps": _over(rate, sending),
            "latency_s": _over(latency, timed),
            "memory_bytes": _over(memory, time),
            "interrupted_s": interrupted,
        }


def _over(total: float, time: float) -> float:
    return total / time if time > 0 else float("nan")
