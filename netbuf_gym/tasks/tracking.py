"""What an environment remembers of each agent's telemetry, row by row: what all tasks' trackers have in common.

Arrays are stored field-major (`(fields, rows)`, so that every field is one contiguous vector).
"""

from __future__ import annotations

import numpy as np

from netbuf_gym.plants.telemetry import TelemetrySchema


class LastMeasured:
    """The last measured value of every telemetry field.

    Args:
        telemetry: the schema of what is measured.
        rows: number of agents, over all worlds.

    Attributes:
        now: float32 `(fields, rows)`, the telemetry of the interval just ended, NaN where nothing was measured.
        last: float32 `(fields, rows)`, the last measured value of each field, before the first one 0. Holds no NaN.
        measured: bool `(fields, rows)`, what the interval just ended measured.
    """

    def __init__(self, telemetry: TelemetrySchema, rows: int):
        self.rows = rows
        shape = len(telemetry.fields), rows
        self.now = np.full(shape, np.nan, np.float32)
        self.last = np.zeros(shape, np.float32)
        self.measured = np.zeros(shape, bool)
        self._column = {name: column for column, name in enumerate(telemetry.names)}

    def __getitem__(self, field: str) -> np.ndarray:
        """The last measured values of a field, `(rows,)`, a view; KeyError for a field that there is not."""
        return self.last[self._column[field]]

    def forget(self, rows: slice) -> None:
        """Makes these rows as at the start: nothing was measured."""
        self.now[:, rows] = np.nan
        self.last[:, rows] = 0

    def update(self, telemetry: np.ndarray) -> None:
        """Takes in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        np.copyto(self.now, telemetry.T, casting="same_kind")
        np.isnan(self.now, out=self.measured)
        np.logical_not(self.measured, out=self.measured)
        np.copyto(self.last, self.now, where=self.measured)
