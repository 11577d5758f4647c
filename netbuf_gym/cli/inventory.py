"""What there is by name, as data: what `netbuf-gym list` prints, in text or as JSON. Entries and their parameters are dicts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np

from netbuf_gym import plants, scenarios, tasks, traces
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.envs import registration
from netbuf_gym.scenarios.catalogue import Record
from netbuf_gym.tasks import TaskRecord
from netbuf_gym.traces.generators import glossary_of, parameters_of
from netbuf_gym.utils.docstrings import arguments_of, headline, range_of, unit_of
from netbuf_gym.zoo import library

Entry = dict[str, Any]


def scenario_entries() -> list[Entry]:
    """Scenarios and distributions by name, and the forms that names may have."""
    entries = [
        {"name": name, "meaning": scenarios.describe(name), "parameters": _of_scenario(name)} for name in scenarios.names()
    ]
    for form, pattern in scenarios.PATTERNS.items():
        own = _of_scenario(pattern.example) if pattern.example else []
        entries.append({"name": form, "meaning": pattern.description, "parameters": own})
    return entries


def _of_scenario(name: str) -> list[Entry]:
    glossary = scenarios.glossary_of(name)
    return [
        _parameter(key, default, glossary[key].range, glossary[key].meaning)
        for key, default in scenarios.defaults_of(name).items()
    ]


def scheme_entries() -> list[Entry]:
    """Schemes of buffer management."""
    entries = []
    for scheme in scenarios.SCHEMES.values():
        if scheme.name in scenarios.DISCIPLINES:
            own = _of_record(scenarios.QUEUE_DISCIPLINES[scheme.name])
        else:
            taken = inspect.signature(scheme.make).parameters
            own = [_parameter(key, taken[key].default, *SCHEME_PARAMETERS.get(key, ("", ""))) for key in scheme.parameters]
        entries.append({"name": scheme.name, "meaning": scheme.description, "parameters": own})
    return entries


SCHEME_PARAMETERS = {
    "alphas": ("above 0", "threshold of each queue as a multiple of the free buffer; the last goes for all further queues"),
    "betas": ("above 0 to 1", "constant factor of each queue's threshold beside the agent's; null: 1"),
    "n": ("1 to 1e+09; null: the world's", "number of senders"),
}
"""Ranges and meanings of the parameters of schemes that are no queue disciplines."""


def discipline_entries() -> list[Entry]:
    """Queue disciplines of links."""
    return _catalogue(scenarios.QUEUE_DISCIPLINES.values())


def congestion_control_entries() -> list[Entry]:
    """Congestion controls, and the stacks that have them."""
    return _catalogue(scenarios.CONGESTION_CONTROLS.values())


def receiver_control_entries() -> list[Entry]:
    """Receiver controls: what limits the window that a receiver advertises."""
    return _catalogue(scenarios.RECEIVER_CONTROLS.values())


def _catalogue(records: Collection[Record]) -> list[Entry]:
    return [
        {"name": one.name, "stacks": list(one.stacks), "meaning": one.meaning, "parameters": _of_record(one)} for one in records
    ]


def _of_record(record: Record) -> list[Entry]:
    return [
        _parameter(one.name, one.default, one.range, one.meaning) | {"stacks": list(one.stacks)} for one in record.parameters
    ]


def size_entries() -> list[Entry]:
    """Built-in distributions of flow sizes, in bytes."""
    entries = []
    for one in scenarios.SIZES.values():
        median, p90, p99 = (round(float(x)) for x in one.quantile(np.array([0.5, 0.9, 0.99])))
        mean = round(float(one.mean_bytes))
        quantiles = {"mean_bytes": mean, "median_bytes": median, "p90_bytes": p90, "p99_bytes": p99}
        entries.append({"name": one.name, **quantiles, "points": len(one.size_bytes)})
    return entries


def environment_entries() -> list[Entry]:
    """Gymnasium ids, and who decides what in them."""
    found = registration.environments()
    return [
        {
            "name": name,
            "meaning": record.summary,
            "task": record.name,
            "recipes": list(record.rules.recipes),
            "default_scenario": record.rules.default_scenario,
        }
        for name, record in sorted(found.items())
    ]


def reward_entries() -> list[Entry]:
    """Rewards by task, and the recipes whose default they are."""
    entries = []
    for record in tasks.records():
        chosen = {recipe: record.rules(recipe).default_reward for recipe in record.rules.recipes}
        for name, kind in record.rewards.items():
            said = arguments_of(kind)
            entries.append(
                {
                    "task": record.name,
                    "name": name,
                    "meaning": headline(kind),
                    "terms": list(terms) if isinstance(terms := getattr(kind, "terms", ()), tuple) else [],
                    "default_of": [recipe for recipe, reward in chosen.items() if reward == name],
                    "parameters": [
                        _parameter(one.name, default, _range(default, said.get(one.name, "")), said.get(one.name, ""))
                        for one, default in ((one, _default(one)) for one in fields(kind))
                    ],
                }
            )
    return entries


def controller_entries() -> list[Entry]:
    """What there is to set beside agents, by task."""
    return [_controller(record, name, make()) for record in tasks.records() for name, make in record.controllers.items()]


def baseline_entries() -> list[Entry]:
    """What agents are compared with unless others are asked for, by task."""
    named = ((record, name) for record in tasks.records() for name in record.measures.baselines)
    return [_controller(record, name, record.controllers[name]()) for record, name in named]


def _controller(record: TaskRecord, name: str, controller: Controller) -> Entry:
    in_world = isinstance(controller, InWorld)
    own = {**scenarios.CONGESTION_CONTROLS, **scenarios.SCHEMES}.get(name) if in_world else None
    meaning = getattr(own, "meaning", "") or getattr(own, "description", "") or headline(type(controller))
    return {
        "task": record.name,
        "name": name,
        "meaning": meaning,
        "acts": "in the world" if in_world else "decides as an agent",
        "recipes": None if controller.recipes is None else list(controller.recipes),
        "compared_with": name in record.measures.baselines,
    }


def agent_entries() -> list[Entry]:
    """Trained agents that come with the package."""
    return [library.summary(name) for name in library.names()]


def plant_entries() -> list[Entry]:
    """Plants, and the kinds of agents that they carry."""
    return [{"name": name, "agents": list(plants.get(name).kinds)} for name in plants.names()]


def trace_entries() -> list[Entry]:
    """Trace generators."""
    entries = []
    for name, generator in sorted(traces.GENERATORS.items()):
        own = [_parameter(key, default, *glossary_of(name)[key]) for key, default in parameters_of(name).items()]
        entries.append({"name": name, "meaning": headline(generator), "parameters": own})
    return entries


def _parameter(name: str, default: Any, range_: str, meaning: str) -> Entry:
    """A parameter; without `default` where it must be given."""
    given = {} if default is inspect.Parameter.empty else {"default": _plain(default)}
    return {"name": name, **given, "unit": unit_of(name), "range": range_, "meaning": meaning}


def _range(default: Any, meaning: str) -> str:
    """The values of a parameter by its default and its meaning."""
    if isinstance(default, bool):
        return "true or false"
    each = "a list, each " if isinstance(default, (tuple, list)) else ""
    return each + found if (found := range_of(meaning)) else ""


def _default(field: Field) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else inspect.Parameter.empty


def _plain(value: Any) -> Any:
    """A default as JSON has it: tuples as lists, what is no JSON as its text."""
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


TOPICS: dict[str, Callable[[], list[Entry]]] = {
    "scenarios": scenario_entries,
    "schemes": scheme_entries,
    "queue-disciplines": discipline_entries,
    "sizes": size_entries,
    "congestion-controls": congestion_control_entries,
    "receiver-controls": receiver_control_entries,
    "environments": environment_entries,
    "rewards": reward_entries,
    "controllers": controller_entries,
    "baselines": baseline_entries,
    "agents": agent_entries,
    "plants": plant_entries,
    "traces": trace_entries,
}
"""Everything that can be listed."""
