"""What an environment remembers of each agent's telemetry, row by row: what all tasks' trackers have in common.

Arrays are stored field-major (`(fields, rows)`, so that every field is one contiguous vector).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def first_beside(places: Sequence[Any], rows: slice) -> list[int]:
    """Of each agent of a world the row of the first one that is at the same place, by where each is; `rows` are the world's."""
    return [rows.start + places.index(place) for place in places]


class RunningMeans:
    """Means of the throughput and RTT ratios of rewards (`netbuf_gym.rewards.utility.Path`) over each row's life.

    Args:
        rows: number of agents, over all worlds.
    """

    def __init__(self, rows: int):
        self._sums = np.zeros((3, rows), np.float32)
        self._time, self._share, self._rtt_ratio = self._sums
        self._started = np.zeros(rows, bool)

    def forget(self, rows: slice) -> None:
        """Makes these rows as at the start."""
        self._sums[:, rows] = 0
        self._started[rows] = False

    def add(self, arrived: np.ndarray, elapsed_s: np.ndarray, share: np.ndarray, rtt_ratio: np.ndarray) -> None:
        """Takes in an interval; a row's life begins with the first one in which something `arrived`, bool `(rows,)`."""
        self._started |= arrived
        time = elapsed_s * self._started
        self._time += time
        self._share += time * share
        self._rtt_ratio += time * rtt_ratio

    @property
    def age_s(self) -> np.ndarray:
        """How long each row's life is by now, seconds, float32 `(rows,)`."""
        return self._time

    def share(self) -> np.ndarray:
        """Mean of the throughput ratio, float32 `(rows,)`; 1 before something arrived."""
        return self._mean(self._share)

    def rtt_ratio(self) -> np.ndarray:
        """Likewise of the RTT ratio."""
        return self._mean(self._rtt_ratio)

    def _mean(self, total: np.ndarray) -> np.ndarray:
        return np.where(self._time > 0, total / np.maximum(self._time, np.float32(1e-9)), np.float32(1))


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
