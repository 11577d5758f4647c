"""Record of a task, with everything that the rest of the package knows about it, and the registry of records.

A custom task is registered with one call. In the same process it is then known to `gym.make`, `gym.make_vec`,
`netbuf_gym.envs.parallel_env`, the listings, training and evaluation:

    tasks.register(TaskRecord(rules=Kettle, ids=("mine/Kettle-v0",), summary="a kettle: its heat", rewards={...}))
    env = gym.make("mine/Kettle-v0")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium as gym

from netbuf_gym.controllers import Controller, RandomAction
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards import is_redefinition, make_reward, reward_of
from netbuf_gym.scenarios import Pattern, named, scheme_catalogue
from netbuf_gym.scenarios.scheme_catalogue import Scheme
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.tasks.task import Task
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.startup import IDS, register_ids


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskRecord:
    """Record of one task.

    Attributes:
        rules: Class of the task: spaces, and the rules between telemetry, observation and action.
        ids: Ids of its environments; the task's name stands for the first one.
        summary: Phrase saying who decides what.
        rewards: Rewards by name; `register_reward` adds one.
        controllers: Factories of the controllers that agents are compared with, by name; by default only the random one.
        measures: Measures by which controllers are compared; by default every number of the report.
        scenarios: Factories of the task's own worlds, by name.
        patterns: Patterns of the task's own scenario names.
        schemes: The task's own buffer management schemes.
        page: Page of `docs/` about the task; "": none.
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
        """Name of the task."""
        return self.rules.name

    @property
    def benchmark(self) -> tuple[str, ...]:
        """Scenarios that agents of the task are compared on."""
        return self.measures.benchmark or (self.rules.default_scenario,)


_REGISTRY: dict[str, TaskRecord | str] = {}
"""Records by name; of a task that nobody has asked for, the module that has its record as `RECORD`."""


def register(record: TaskRecord) -> None:
    """Register a task with its environments, scenarios and schemes; registering it again changes nothing.

    Raises:
        ConfigError: The name is not a string, or is empty; or the name, or something that the task brings, is already taken.
    """
    name = getattr(record.rules, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name of {record.rules.__name__} = {quote(name)}; valid: a string, not empty")
    records()  # imports all, any of which may have taken what the task brings
    if _REGISTRY.get(record.name, record) is not record:
        raise ConfigError(f"task {record.name!r} is registered already")
    for name in record.ids:
        owner = find_task(name)
        if owner not in (None, record.name):
            raise ConfigError(f"environment {name!r} is registered already, of task {owner!r}")
    _add(record)


def register_module(name: str, module: str) -> None:
    """Register a task of `netbuf_gym.utils.startup.IDS` by its module, which is imported when the task is first asked for."""
    _REGISTRY[name] = module


def _add(record: TaskRecord) -> None:
    """Add a record, and what the task brings, to the registries."""
    for name, maker in record.scenarios.items():
        named.add(name, maker)
    for pattern in record.patterns:
        named.add_pattern(pattern)
    for scheme in record.schemes:
        importlib.import_module("netbuf_gym.scenarios.schemes").register(scheme)  # behind the package's own
    _REGISTRY[record.name] = record
    register_ids(record.ids, record.name)


def unregister(name: str) -> None:
    """Remove a task and all that it brought from the registries; do nothing if there is none of this name."""
    if name not in _REGISTRY:
        return
    record = get(name)
    del _REGISTRY[name]
    for one in record.ids:
        gym.registry.pop(one, None)
    for one in (*record.scenarios, *(pattern.form for pattern in record.patterns)):
        named.unregister(one)
    for scheme in record.schemes:
        scheme_catalogue.unregister(scheme.name)


def names() -> list[str]:
    """Return the names of all tasks in order of registration."""
    return list(_REGISTRY)


def records() -> list[TaskRecord]:
    """Return all records in order of registration."""
    return [get(name) for name in names()]


def get(name: str | None = None) -> TaskRecord:
    """Return the record of a task, by default the first one; raise ConfigError with the valid names for an unknown one."""
    name = names()[0] if name is None else check_choice("task", name, _REGISTRY)
    if isinstance(module := _REGISTRY[name], str):
        _add(importlib.import_module(module).RECORD)
    return cast(TaskRecord, _REGISTRY[name])


def find_task(environment: str) -> str | None:
    """Return the task that an environment id belongs to, or None if it is not one of this package."""
    for name, record in _REGISTRY.items():
        if environment in record.ids if isinstance(record, TaskRecord) else IDS.get(environment) == name:
            return name
    return None


def register_reward(task: str, reward: Any, name: str | None = None) -> None:
    """Register a reward under a name: environments then accept `reward=name`, or a dict of `name` and JSON parameters.

    Args:
        task: Task that the reward belongs to; environments of other tasks accept the name if they have the telemetry it needs.
        reward: Anything that `netbuf_gym.rewards` accepts: a function `(telemetry, **parameters)`, an object callable in that
            way, or a class of such objects, whose parameters are those of its constructor.
        name: Name of the reward; None: the reward's own.

    The same reward may be registered again. A function or class that was redefined, as when a notebook cell is run again,
    replaces the earlier one.

    Raises:
        ConfigError: The task is unknown or has another reward of this name, or `reward` is not a reward.
    """
    rewards = get(task).rewards
    kind = reward_of(reward, name)
    if kind.name in rewards and not is_redefinition(reward, rewards[kind.name]):
        raise ConfigError(f"reward {kind.name!r} of task {task!r} is registered already; valid: another name (name=...)")
    rewards[kind.name] = kind


def make_task_reward(task: str, spec: Any) -> Any:
    """Return the reward for the `reward` argument of a task's environment; names are looked up in the task, then in others.

    Raises:
        ConfigError: The name or a parameter is unknown, a parameter is out of range, or the reward is not callable.
    """
    own = get(task).rewards
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    elsewhere: dict[str, type] = {}
    if isinstance(name, str) and name not in own:
        kinds = {record.name: record.rewards[name] for record in records() if name in record.rewards}
        if len(set(kinds.values())) > 1:
            what = f"reward {name!r} is ambiguous, tasks {', '.join(kinds)} have different ones"
            raise ConfigError(f"{what}; valid for {task!r}: the reward itself")
        elsewhere = dict.fromkeys([name], next(iter(kinds.values()))) if kinds else {}
    return make_reward(spec, own, elsewhere)
