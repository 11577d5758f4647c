"""What an environment remembers of each agent's telemetry, row by row: what all tasks' trackers have in common.

Arrays are stored field-major (`(fields, rows)`, so that every field is one contiguous vector).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.plants.telemetry import TelemetrySchema


@dataclass(frozen=True)
class Quantity:
    """What rewards can ask a tracker for beside the fields of telemetry: what follows from these, and from its world.

    Attributes:
        name, unit, meaning: as a field's (`netbuf_gym.plants.Field`).
        of: from the tracker, `(rows,)`, finite.
    """

    name: str
    unit: str
    meaning: str
    of: Callable[[Any], np.ndarray]


class LastMeasured:
    """The last measured value of every telemetry field.

    Args:
        telemetry: the schema of what is measured.
        rows: number of agents, over all worlds.

    Attributes:
        last: float32 `(fields, rows)`, the last measured value of each field, before the first one 0. Holds no NaN.
        names: of the fields, in their order.
        quantities: what rewards can ask for beside them, by task.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = ()

    def __init__(self, telemetry: TelemetrySchema, rows: int):
        self.rows = rows
        self.names = telemetry.names
        self.last = np.zeros((len(telemetry.fields), rows), np.float32)
        self._telemetry = np.full((rows, len(telemetry.fields)), np.nan)
        self._fresh = np.ones(rows, bool)
        self._now: np.ndarray | None = None
        self._column = {name: column for column, name in enumerate(telemetry.names)}

    @property
    def now(self) -> np.ndarray:
        """float32 `(fields, rows)`, the telemetry of the interval just ended, NaN where nothing was measured.

        Made when it is first asked for; to be asked for before the plant goes on and writes the next interval's.
        """
        if self._now is None:
            self._now = self._telemetry.T.astype(np.float32, order="C")
            self._now[:, self._fresh] = np.nan
        return self._now

    def __getitem__(self, field: str) -> np.ndarray:
        """The last measured values of a field, `(rows,)`, a view; KeyError for a field that there is not."""
        return self.last[self._column[field]]

    def forget(self, rows: slice) -> None:
        """Makes these rows as at the start: nothing was measured."""
        self._fresh[rows] = True
        self._now = None
        self.last[:, rows] = 0

    def update(self, telemetry: np.ndarray) -> None:
        """Takes in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self._telemetry, self._now = telemetry, None
        self._fresh.fill(False)
        _core.take_in(telemetry, self.last)
