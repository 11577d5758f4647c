"""The last M feature vectors of every row, kept so that reading them is one copy and writing one is cheap."""

from __future__ import annotations

import numpy as np

from netbuf_gym import _core


class History:
    """A ring of feature vectors for every row, flattened oldest first when read. A fresh row is filled with its first one."""

    def __init__(self, rows: int, depth: int, width: int):
        self.rows, self.depth, self.width = rows, depth, width
        self._ring = np.zeros((depth, rows, width), np.float32)
        self._oldest = 0

    def push(self, features: np.ndarray) -> None:
        """Adds one vector to every row, in place of the oldest; `features` has shape `(width, rows)`."""
        _core.put_vectors(features, self._ring[self._oldest])
        self._oldest = (self._oldest + 1) % self.depth

    def fill(self, rows: slice, features: np.ndarray) -> None:
        """Starts rows afresh: all their vectors become `features`, of shape `(width, number of those rows)`."""
        self._ring[:, rows] = features.T

    def read(self, out: np.ndarray) -> np.ndarray:
        """Copies the stacked vectors, oldest first, into `out` of shape `(rows, depth * width)` and returns it."""
        _core.stack_vectors(self._ring, self._oldest, out)
        return out

    def read_rows(self, rows: np.ndarray | slice) -> np.ndarray:
        """A copy of the stacked vectors of some rows, `(number of rows, depth * width)`."""
        vectors = np.roll(self._ring[:, rows], -self._oldest, axis=0)
        return vectors.transpose(1, 0, 2).reshape(-1, self.depth * self.width)
