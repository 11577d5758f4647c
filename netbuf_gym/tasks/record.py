"""The record of a task: all that the rest of the package knows of it, and the registry of records.

A task of your own is registered with one call, and is then known to `gym.make`, `gym.make_vec`, `netbuf_gym.envs.parallel_env`,
the listings, training and evaluation in the same process:

    tasks.register(TaskRecord(rules=Kettle, ids=("mine/Kettle-v0",), summary="a kettle: its heat", rewards={...}))
    env = gym.make("mine/Kettle-v0")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from netbuf_gym import scenarios
from netbuf_gym.controllers import Controller, RandomAction
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards import defined_anew, make_reward, reward_of
from netbuf_gym.scenarios import Pattern, Scheme, named, scheme_catalogue
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.tasks.task import Task
from netbuf_gym.utils.arguments import choice


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskRecord:
    """One task.

    Attributes:
        rules: its class: spaces, and the rules between telemetry, observation and action.
        ids: of its environments, the first being the one that the name stands for.
        summary: who decides what, a phrase.
        rewards: by name; `register_reward` adds one.
        controllers: makers of what may be set beside agents, by name; chance unless there are others.
        measures: how controllers are compared; by default every number of the report is one.
        scenarios: what makes the worlds that it brings, by name.
        patterns: of scenario names that it brings.
        schemes: of buffer management that it brings.
        page: the page of `docs/` about it; "": none of its own.
    """

    rules: type[Task]
    ids: tuple[str, ...]
    summary: str
    rewards: dict[str, type]
    controllers: Mapping[str, Callable[[], Controller]] = field(default_factory=lambda: {"random": RandomAction})
    measures: Measures = field(default_factory=Measures)
    scenarios: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    patterns: tuple[Pattern, ...] = ()
    schemes: tuple[Scheme, ...] = ()
    page: str = ""

    @property
    def name(self) -> str:
        """Of the task."""
        return self.rules.name

    @property
    def benchmark(self) -> tuple[str, ...]:
        """The scenarios that its agents are compared on."""
        return self.measures.benchmark or (self.rules.default_scenario,)


_REGISTRY: dict[str, TaskRecord] = {}


def register(record: TaskRecord) -> None:
    """Makes a task known, with its environments, scenarios and schemes; doing it again changes nothing.

    Raises:
        ConfigError: the name is no string, or empty; it, or something that the task brings, is that of another.
    """
    name = getattr(record.rules, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name of {record.rules.__name__} = {shown(name)}; valid: a string, not empty")
    if _REGISTRY.get(record.name, record) is not record:
        raise ConfigError(f"task {record.name!r} is registered already")
    for name in record.ids:
        owner = task_of(name)
        if owner not in (None, record.name):
            raise ConfigError(f"environment {name!r} is registered already, of task {owner!r}")
    for name, maker in record.scenarios.items():
        scenarios.register(name, maker)
    for pattern in record.patterns:
        scenarios.register_pattern(pattern)
    for scheme in record.schemes:
        scheme_catalogue.register(scheme)
    _REGISTRY[record.name] = record
    register_ids(record)


def register_ids(record: TaskRecord) -> None:
    """Makes Gymnasium know a task's environments, those that it does not know yet."""
    for name in record.ids:
        if name not in gym.registry:
            makers = {"entry_point": "netbuf_gym.envs.env:make", "vector_entry_point": "netbuf_gym.envs.vector_env:VectorEnv"}
            gym.register(name, **makers, kwargs={"task": record.name})


def unregister(name: str) -> None:
    """Forgets a task and all that it brought; nothing happens where there is none of this name."""
    record = _REGISTRY.pop(name, None)
    if record is None:
        return
    for one in record.ids:
        gym.registry.pop(one, None)
    for one in (*record.scenarios, *(pattern.form for pattern in record.patterns)):
        named.unregister(one)
    for scheme in record.schemes:
        scheme_catalogue.unregister(scheme.name)


def names() -> list[str]:
    """The names of all tasks, in the order in which they were registered."""
    return list(_REGISTRY)


def records() -> list[TaskRecord]:
    """All records, in the order in which they were registered."""
    return list(_REGISTRY.values())


def get(name: str | None = None) -> TaskRecord:
    """The record of a task; None: of the first one. Raises ConfigError, naming the valid ones, for an unknown name."""
    return _REGISTRY[names()[0] if name is None else choice("task", name, _REGISTRY)]


def task_of(environment: str) -> str | None:
    """The task that an environment's id stands for; None: that is none of ours."""
    return next((record.name for record in _REGISTRY.values() if environment in record.ids), None)


def register_reward(task: str, reward: Any, name: str | None = None) -> None:
    """Gives a reward a name: environments then take `reward=name`, or a dict of `name` and parameters, which are JSON.

    Args:
        task: whose it is; other tasks' environments take the name, too, if they have the telemetry that it needs.
        reward: what `reward` may be itself, see `netbuf_gym.rewards`: a function `(telemetry, **parameters)`, an object that
            can be called so, or a class of such objects, whose parameters are those of its constructor.
        name: None: the reward's own.

    The same one may be registered again, and a function or class that was defined anew, as when a notebook's cell is run again,
    takes the place of the one before.

    Raises:
        ConfigError: the task is unknown, or has another reward of this name; or `reward` is none.
    """
    rewards = get(task).rewards
    kind = reward_of(reward, name)
    if kind.name in rewards and not defined_anew(reward, rewards[kind.name]):
        raise ConfigError(f"reward {kind.name!r} of task {task!r} is registered already; valid: another name (name=...)")
    rewards[kind.name] = kind


def reward_for(task: str, spec: Any) -> Any:
    """What a `reward` argument of a task's environment stands for; names are the task's, or else any other's.

    Raises:
        ConfigError: an unknown name or parameter, a parameter out of range, or nothing that can be called.
    """
    own = get(task).rewards
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    elsewhere: dict[str, type] = {}
    if isinstance(name, str) and name not in own:
        kinds = {record.name: record.rewards[name] for record in records() if name in record.rewards}
        if len(set(kinds.values())) > 1:
            raise ConfigError(f"reward {name!r} is several, of tasks {', '.join(kinds)}; valid for {task!r}: the reward itself")
        elsewhere = dict.fromkeys([name], next(iter(kinds.values()))) if kinds else {}
    return make_reward(spec, own, elsewhere)
