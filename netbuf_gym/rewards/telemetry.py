"""What a reward is told of one decision interval: named arrays, a number for each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError


class MissingTelemetry(ConfigError, KeyError, AttributeError):
    """What a reward asks for, and a task does not have."""

    __str__ = Exception.__str__  # not a KeyError's, which quotes


class Telemetry(Mapping[str, np.ndarray]):
    """The telemetry of one decision interval, by name, as rewards are given it.

    `telemetry["rtt_mean_s"]` or `telemetry.rtt_mean_s` is a number for each agent: an array `(rows,)`, batch first, world by
    world. It is the last value that was measured; before the first measurement it is 0, or what the world starts with, and it
    is never NaN. `telemetry.now["rtt_mean_s"]` is what this interval measured, NaN where it measured nothing. Beside the
    fields there are a task's quantities, which follow from them and from what the world offers: `telemetry["rtt_ratio"]`.

    What there is by task: `list(telemetry)`, `netbuf_gym.tasks.telemetry_table(task)`, or the documentation's page of rewards.
    Arrays are float32 unless said otherwise, and copies: they may be kept and written to. The object itself always is about
    the interval that has just ended.

    Attributes:
        now: the fields (not the quantities) as this interval measured them.
        task: the task's name.
        rows: number of agents, over all worlds.
        agents: number of agents in each world; `telemetry[...].reshape(-1, telemetry.agents)` is world by world.
        first: bool `(rows,)`, whose episode began with this interval.
    """

    __slots__ = ("_asked_by", "_first", "_quantities", "_tracker", "agents", "now", "task")

    def __init__(self, tracker: Any, task: str = "", agents: int = 1, first: Callable[[], np.ndarray] | None = None):
        self._tracker = tracker
        self._quantities = {one.name: one.of for one in tracker.quantities}
        self._first = first
        self._asked_by = ""
        self.task, self.agents = task, agents
        self.now = Interval(self)

    @property
    def rows(self) -> int:
        """Number of agents."""
        return self._tracker.rows

    @property
    def first(self) -> np.ndarray:
        """Whose episode began with this interval, bool `(rows,)`."""
        return np.zeros(self.rows, bool) if self._first is None else np.array(self._first())

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what is measured."""
        return self._tracker.names

    @property
    def quantities(self) -> tuple[str, ...]:
        """The names of what follows from it, and from what the world offers."""
        return tuple(self._quantities)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._quantities:
            return np.array(self._quantities[name](self._tracker))
        if name in self.fields:
            return np.array(self._tracker[name])
        return self._lacking(name)

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._quantities or name in self.fields

    def get(self, name: str, default: Any = None) -> Any:
        """The values of a name, or `default` where there is no such name."""
        return self[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self.fields, *self.quantities))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Telemetry of {self.rows} agents of task {self.task!r}: {', '.join(self)}"

    def require(self, names: Any, by: str) -> None:
        """Raises ConfigError, naming all that lack, unless all of `names` are there; `by`: which reward asks."""
        lacking = [name for name in names if name not in self]
        if lacking:
            raise MissingTelemetry(self._lacks(by, lacking))

    def _lacking(self, name: str) -> np.ndarray:
        raise MissingTelemetry(self._lacks(self._asked_by, [name]))

    def _lacks(self, by: str, names: list[str]) -> str:
        who = f"reward {by!r}" if by else "a reward"
        return f"{who} needs {', '.join(map(str, names))}, which task {self.task!r} does not have; valid: {', '.join(self)}"


class Interval(Mapping[str, np.ndarray]):
    """The fields of a `Telemetry` as the interval just ended measured them, NaN where it measured nothing."""

    __slots__ = ("_of",)

    def __init__(self, of: Telemetry):
        self._of = of

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._of.fields:
            return self._of._lacking(name)
        return np.array(self._of._tracker.now[self._of.fields.index(name)])

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._of.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._of.fields)

    def __len__(self) -> int:
        return len(self._of.fields)


class MadeUp(Telemetry):
    """Telemetry that was never measured: 1 everywhere. What a reward asks for that is not there is kept in `lacking`.

    Args:
        like: what it has the names, the rows and the task of.
        strict: raise for what is not there, as `like` does.
    """

    __slots__ = ("lacking", "strict")

    def __init__(self, like: Telemetry, strict: bool):
        super().__init__(like._tracker, like.task, like.agents)
        self._asked_by = like._asked_by
        self.strict = strict
        self.lacking: list[str] = []
        self.now = MadeUpInterval(self)

    @property
    def first(self) -> np.ndarray:
        """As at the start of all episodes."""
        return np.ones(self.rows, bool)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self:
            return self._lacking(name)
        return np.ones(self.rows, np.float32)

    def _lacking(self, name: str) -> np.ndarray:
        if self.strict:
            return super()._lacking(name)
        self.lacking.append(name)
        return np.ones(self.rows, np.float32)


class MadeUpInterval(Interval):
    """Likewise."""

    __slots__ = ()

    def __getitem__(self, name: str) -> np.ndarray:
        return self._of[name] if name in self else self._of._lacking(name)
