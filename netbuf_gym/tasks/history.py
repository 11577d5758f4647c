"""The last M feature vectors of every row, kept so that reading them is one copy and writing one is cheap."""

from __future__ import annotations

import numpy as np


class History:
    """A rolling buffer of feature vectors, flattened oldest first when read.

    New vectors are written behind the old ones in a longer strip; only when its end is reached do the youngest
    `depth - 1` move to its beginning. A fresh row is filled with its first vector.
    """

    def __init__(self, rows: int, depth: int, width: int):
        self.rows, self.depth, self.width = rows, depth, width
        self._slots = 1 if depth == 1 else 4 * depth
        self._strip = np.zeros((rows, self._slots, width), np.float32)
        self._flat = self._strip.reshape(rows, -1)
        self._youngest = depth - 1

    def push(self, features: np.ndarray) -> None:
        """Adds one vector to every row; `features` has shape `(width, rows)`."""
        if self.depth > 1:
            self._youngest += 1
            if self._youngest == self._slots:
                keep = self.depth - 1
                self._strip[:, :keep] = self._strip[:, -keep:]
                self._youngest = keep
        self._strip[:, self._youngest] = features.T

    def fill(self, rows: slice, features: np.ndarray) -> None:
        """Starts rows afresh: all their vectors become `features`, of shape `(width, number of those rows)`."""
        first = self._youngest - self.depth + 1
        self._strip[rows, first : self._youngest + 1] = features.T[:, None, :]

    def read(self, out: np.ndarray) -> np.ndarray:
        """Copies the stacked vectors, oldest first, into `out` of shape `(rows, depth * width)` and returns it."""
        end = (self._youngest + 1) * self.width
        np.copyto(out, self._flat[:, end - self.depth * self.width : end])
        return out

    def read_rows(self, rows: np.ndarray | slice) -> np.ndarray:
        """A copy of the stacked vectors of some rows, `(number of rows, depth * width)`."""
        end = (self._youngest + 1) * self.width
        return self._flat[rows, end - self.depth * self.width : end].copy()
