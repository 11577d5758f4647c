"""Telemetry of one decision interval as rewards see it: named arrays with one number per agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError


class MissingTelemetry(ConfigError, KeyError, AttributeError):
    """Error for telemetry that a reward asks for and a task does not have."""

    __str__ = Exception.__str__  # KeyError would quote the message


class Telemetry(Mapping[str, np.ndarray]):
    """Telemetry of one decision interval, by name, as passed to rewards.

    `telemetry["rtt_mean_s"]` or `telemetry.rtt_mean_s` is an array `(rows,)` with a number for each agent, batch first, world
    by world: the last measured value, or before the first measurement 0 or the world's initial value, and never NaN.
    `telemetry.now["rtt_mean_s"]` is the measurement of this interval, NaN where nothing was measured. Beside the fields there
    are a task's quantities, derived from the fields and from what the world offers: `telemetry["rtt_ratio"]`.

    The names of a task: `list(telemetry)`, `netbuf_gym.tasks.telemetry_table(task)`, or the documentation's page of rewards.
    Arrays are float32 unless said otherwise, and copies: they may be kept and written to. The object itself always refers to
    the interval that has just ended.

    Attributes:
        now: Fields (not quantities) as measured in this interval.
        task: Name of the task.
        rows: Number of agents, over all worlds.
        agents: Number of agents in each world; `telemetry[...].reshape(-1, telemetry.agents)` is world by world.
        first: Which agents' episodes began with this interval, bool `(rows,)`.
    """

    __slots__ = ("_asked_by", "_first", "_quantities", "_tracker", "agents", "now", "task")

    def __init__(self, tracker: Any, task: str = "", agents: int = 1, first: Callable[[], np.ndarray] | None = None):
        self._tracker = tracker
        self._quantities = {one.name: one.of for one in tracker.quantities}
        self._first = first
        self._asked_by = ""
        self.task, self.agents = task, agents
        self.now = IntervalTelemetry(self)

    @property
    def rows(self) -> int:
        """Number of agents, over all worlds."""
        return self._tracker.rows

    @property
    def first(self) -> np.ndarray:
        """Which agents' episodes began with this interval, bool `(rows,)`."""
        return np.zeros(self.rows, bool) if self._first is None else np.array(self._first())

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the measured fields."""
        return self._tracker.names

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities, derived from the fields and from what the world offers."""
        return tuple(self._quantities)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._quantities:
            return np.array(self._quantities[name](self._tracker))
        if name in self.fields:
            return np.array(self._tracker[name])
        return self._handle_missing(name)

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._quantities or name in self.fields

    def get(self, name: str, default: Any = None) -> Any:
        """Return the values of a name, or `default` where there is no such name."""
        return self[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self.fields, *self.quantities))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Telemetry of {self.rows} agents of task {self.task!r}: {', '.join(self)}"

    def require(self, names: Any, by: str) -> None:
        """Raise ConfigError with all missing names unless all of `names` are there; `by` is the reward that asks."""
        lacking = [name for name in names if name not in self]
        if lacking:
            raise MissingTelemetry(self._missing_message(by, lacking))

    def _handle_missing(self, name: str) -> np.ndarray:
        raise MissingTelemetry(self._missing_message(self._asked_by, [name]))

    def _missing_message(self, by: str, names: list[str]) -> str:
        who = f"reward {by!r}" if by else "a reward"
        return f"{who} needs {', '.join(map(str, names))}, which task {self.task!r} does not have; valid: {', '.join(self)}"


class IntervalTelemetry(Mapping[str, np.ndarray]):
    """Fields of a `Telemetry` as measured in the interval just ended, NaN where nothing was measured."""

    __slots__ = ("_telemetry",)

    def __init__(self, of: Telemetry):
        self._telemetry = of

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._telemetry.fields:
            return self._telemetry._handle_missing(name)
        return np.array(self._telemetry._tracker.now[self._telemetry.fields.index(name)])

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._telemetry.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._telemetry.fields)

    def __len__(self) -> int:
        return len(self._telemetry.fields)


class MadeUpTelemetry(Telemetry):
    """Made-up telemetry, 1 everywhere, which collects the missing names that a reward asks for in `missing`.

    Args:
        like: Telemetry with the same names, rows and task.
        strict: Raise for missing names, as `like` does.
    """

    __slots__ = ("missing", "strict")

    def __init__(self, like: Telemetry, strict: bool):
        super().__init__(like._tracker, like.task, like.agents)
        self._asked_by = like._asked_by
        self.strict = strict
        self.missing: list[str] = []
        self.now = MadeUpInterval(self)

    @property
    def first(self) -> np.ndarray:
        """True for all agents, as at the start of all episodes."""
        return np.ones(self.rows, bool)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self:
            return self._handle_missing(name)
        return np.ones(self.rows, np.float32)

    def _handle_missing(self, name: str) -> np.ndarray:
        if self.strict:
            return super()._handle_missing(name)
        self.missing.append(name)
        return np.ones(self.rows, np.float32)


class MadeUpInterval(IntervalTelemetry):
    """Interval of made-up telemetry, 1 everywhere."""

    __slots__ = ()

    def __getitem__(self, name: str) -> np.ndarray:
        return self._telemetry[name] if name in self else self._telemetry._handle_missing(name)
