"""Memory of a receiver's path over a minute, for the recipe `memory`."""

from __future__ import annotations

import numpy as np

MINUTE_S, USUAL_S = 60.0, 10.0
"""Time constants with which the highest rate and the means are forgotten, in time in which data arrived."""


class LongMemory:
    """Highest and mean rate, mean queueing delay, and how long nothing has waited; a silence changes nothing.

    Args:
        rows: Number of receivers.

    Attributes (float32 of shape `(rows,)`, 0 before the first packet):
        highest_rate: highest rate of an interval in bit/s, decaying with time constant `MINUTE_S`.
        mean_rate, mean_delay: exponential means of rate in bit/s and mean queueing delay in seconds, time constant `USUAL_S`;
            over a shorter time while less has passed.
        empty: intervals in a row whose mean queueing delay was close to the least one.
    """

    def __init__(self, rows: int):
        self._memory = np.zeros((5, rows), np.float32)
        self.highest_rate, self.mean_rate, self.mean_delay, self.empty, self._weight = self._memory

    def forget(self, rows: slice) -> None:
        """Forget everything about these rows, whose worlds start anew."""
        self._memory[:, rows] = 0

    def follow(
        self, arrived: np.ndarray, elapsed_s: np.ndarray, rate: np.ndarray, delay_s: np.ndarray, close_s: np.ndarray
    ) -> None:
        """Take in an interval.

        Args:
            arrived: Whether a packet arrived in it, bool `(rows,)`.
            elapsed_s: Its length in seconds.
            rate: What arrived in it, bit/s.
            delay_s: Mean queueing delay of its packets in seconds.
            close_s: Delay up to which nothing is taken to have waited.
        """
        time = elapsed_s * arrived
        np.maximum(self.highest_rate * np.exp(time / np.float32(-MINUTE_S)), rate, out=self.highest_rate, where=arrived)
        kept = np.exp(time / np.float32(-USUAL_S))
        weight = self._weight * kept + (1 - kept)
        part = (1 - kept) / np.maximum(weight, np.float32(1e-6))
        self.mean_rate += part * (rate - self.mean_rate)
        self.mean_delay += part * (delay_s - self.mean_delay)
        self._weight[:] = weight
        np.copyto(self.empty, np.where(delay_s <= close_s, self.empty + 1, np.float32(0)), where=arrived)
