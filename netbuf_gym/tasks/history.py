"""Ring buffer of the last M feature vectors of every row, with cheap writes and a single copy per read."""

from __future__ import annotations

import numpy as np

from netbuf_gym import _core


class History:
    """Ring of feature vectors for every row, flattened oldest first when read. A fresh row is filled with its first vector."""

    def __init__(self, rows: int, depth: int, width: int):
        self.rows, self.depth, self.width = rows, depth, width
        self._ring = np.zeros((depth, rows, width), np.float32)
        self._oldest = 0

    def push(self, features: np.ndarray) -> None:
        """Add one vector to every row in place of the oldest; `features` has shape `(width, rows)`."""
        _core.put_vectors(features, self._ring[self._oldest])
        self._oldest = (self._oldest + 1) % self.depth

    def fill(self, rows: slice, features: np.ndarray) -> None:
        """Restart rows: all their vectors become `features`, of shape `(width, number of those rows)`."""
        self._ring[:, rows] = features.T

    def read(self, out: np.ndarray) -> np.ndarray:
        """Copy the stacked vectors, oldest first, into `out` of shape `(rows, depth * width)` and return it."""
        _core.stack_vectors(self._ring, self._oldest, out)
        return out

    def read_rows(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return a copy of the stacked vectors of some rows, `(number of rows, depth * width)`."""
        vectors = np.roll(self._ring[:, rows], -self._oldest, axis=0)
        return vectors.transpose(1, 0, 2).reshape(-1, self.depth * self.width)
