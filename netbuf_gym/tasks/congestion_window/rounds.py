"""Losses, round trip by round trip."""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.congestion_window.tracker import ELAPSED, PACKETS_LOST, RTT, SEGMENTS_ACKED


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
