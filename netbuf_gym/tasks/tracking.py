"""Per-row memory of each agent's telemetry, the common part of all tasks' trackers.

Arrays are stored field-major (`(fields, rows)`, so that every field is one contiguous vector).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.plants.plant import Plant
from netbuf_gym.plants.telemetry import TelemetrySchema


@dataclass(frozen=True)
class Quantity:
    """Value derived from the fields of telemetry and from the world, available to rewards beside the fields.

    Attributes:
        name, unit, meaning: Like those of a field (`netbuf_gym.plants.Field`).
        of: Computes the values from the tracker, `(rows,)`, finite.
    """

    name: str
    unit: str
    meaning: str
    of: Callable[[Any], np.ndarray]


def find_first_rows(places: Sequence[Any], rows: slice) -> list[int]:
    """Return, for each agent of a world, the row of the first agent at the same place; `rows` are the world's."""
    return [rows.start + places.index(place) for place in places]


class RunningMeans:
    """Means of the throughput and RTT ratios of rewards (`netbuf_gym.rewards.utility.Path`) over each row's life.

    Args:
        rows: Number of agents, over all worlds.

    Attributes:
        sums: Seconds, and the integrals of throughput and RTT ratio over them, float32 `(3, rows)`.
        begun: Whether something has arrived, bool `(rows,)`.
    """

    def __init__(self, rows: int):
        self.sums = np.zeros((3, rows), np.float32)
        self._time, self._share, self._rtt_ratio = self.sums
        self.begun = np.zeros(rows, bool)
        self._starts = _core.RowStarts([self.sums, self.begun])

    def forget(self, rows: slice) -> None:
        """Reset these rows to the start."""
        self._starts.restore(rows.start, rows.stop)

    def add(self, arrived: np.ndarray, elapsed_s: np.ndarray, share: np.ndarray, rtt_ratio: np.ndarray) -> None:
        """Add an interval; a row's life begins with the first interval in which something `arrived`, bool `(rows,)`."""
        self.begun |= arrived
        time = elapsed_s * self.begun
        self._time += time
        self._share += time * share
        self._rtt_ratio += time * rtt_ratio

    @property
    def age_s(self) -> np.ndarray:
        """Length of each row's life so far in seconds, float32 `(rows,)`."""
        return self._time

    def share(self) -> np.ndarray:
        """Return the mean of the throughput ratio, float32 `(rows,)`; 1 before something arrived."""
        return self._mean(self._share)

    def rtt_ratio(self) -> np.ndarray:
        """Return the mean of the RTT ratio, float32 `(rows,)`; 1 before something arrived."""
        return self._mean(self._rtt_ratio)

    def _mean(self, total: np.ndarray) -> np.ndarray:
        return np.where(self._time > 0, total / np.maximum(self._time, np.float32(1e-9)), np.float32(1))


class LastMeasured:
    """Tracker of the last measured value of every telemetry field.

    Args:
        telemetry: Schema of the measured telemetry.
        rows: Number of agents, over all worlds.

    Attributes:
        last: Last measured value of each field, float32 `(fields, rows)`, 0 before the first one. Holds no NaN.
        names: Names of the fields, in their order.
        quantities: Further values available to rewards, by task.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = ()

    def __init__(self, telemetry: TelemetrySchema, rows: int):
        self.rows = rows
        self.names = telemetry.names
        self.last = np.zeros((len(telemetry.fields), rows), np.float32)
        self._telemetry = np.full((rows, len(telemetry.fields)), np.nan)
        self._fresh = np.ones(rows, bool)
        self._starts = _core.RowStarts([self.last, self._fresh])
        self._now: np.ndarray | None = None
        self._column = {name: column for column, name in enumerate(telemetry.names)}

    @property
    def now(self) -> np.ndarray:
        """Telemetry of the last interval, float32 `(fields, rows)`, NaN where nothing was measured.

        Computed on first access, which must precede the plant's writing of the next interval.
        """
        if self._now is None:
            self._now = self._telemetry.T.astype(np.float32, order="C")
            self._now[:, self._fresh] = np.nan
        return self._now

    def __getitem__(self, field: str) -> np.ndarray:
        """Return a view of the last measured values of a field, `(rows,)`; raise KeyError for an unknown field."""
        return self.last[self._column[field]]

    def forget(self, rows: slice) -> None:
        """Reset these rows to the start, with nothing measured."""
        self._starts.restore(rows.start, rows.stop)
        self._now = None

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self.note(telemetry)
        _core.take_in(telemetry, self.last)

    def attach(self, plant: Plant, seeds: np.ndarray) -> None:
        """Take the plant whose telemetry is tracked, and the array of its worlds' seeds, for what telemetry does not hold."""

    def note(self, telemetry: np.ndarray) -> None:
        """Make this telemetry that of the last interval, `now`."""
        self._telemetry, self._now = telemetry, None
        self._fresh.fill(False)
