"""Data that `netbuf-gym list` prints as text or JSON: named things and their parameters, both as dicts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np

from netbuf_gym import plants, scenarios, tasks, traces
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.envs import registration
from netbuf_gym.scenarios.catalogue import CatalogueEntry
from netbuf_gym.tasks import TaskRecord
from netbuf_gym.traces.generators import describe_parameters, list_parameters
from netbuf_gym.utils.docstrings import extract_headline, find_range, find_unit, parse_arguments
from netbuf_gym.zoo import library

Entry = dict[str, Any]


def list_scenarios() -> list[Entry]:
    """Return entries of scenarios and distributions by name, and of the forms that names may have."""
    entries = [
        {"name": name, "meaning": scenarios.describe(name), "parameters": _list_scenario_parameters(name)}
        for name in scenarios.names()
    ]
    for form, pattern in scenarios.PATTERNS.items():
        own = _list_scenario_parameters(pattern.example) if pattern.example else []
        entries.append({"name": form, "meaning": pattern.description, "parameters": own})
    return entries


def _list_scenario_parameters(name: str) -> list[Entry]:
    glossary = scenarios.glossary_of(name)
    return [
        _make_parameter(key, default, glossary[key].range, glossary[key].meaning)
        for key, default in scenarios.defaults_of(name).items()
    ]


def list_schemes() -> list[Entry]:
    """Return entries of buffer management schemes."""
    entries = []
    for scheme in scenarios.SCHEMES.values():
        if scheme.name in scenarios.DISCIPLINES:
            own = _list_record_parameters(scenarios.QUEUE_DISCIPLINES[scheme.name])
        else:
            taken = inspect.signature(scheme.make).parameters
            own = [_make_parameter(key, taken[key].default, *SCHEME_PARAMETERS.get(key, ("", ""))) for key in scheme.parameters]
        entries.append({"name": scheme.name, "meaning": scheme.description, "parameters": own})
    return entries


SCHEME_PARAMETERS = {
    "alphas": ("above 0", "threshold of each queue as a multiple of the free buffer; the last goes for all further queues"),
    "betas": ("above 0 to 1", "constant factor of each queue's threshold beside the agent's; null: 1"),
    "n": ("1 to 1e+09; null: the world's", "number of senders"),
}
"""Ranges and meanings of parameters of schemes that are not queue disciplines."""


def list_disciplines() -> list[Entry]:
    """Return entries of the queue disciplines of links."""
    return _list_records(scenarios.QUEUE_DISCIPLINES.values())


def list_congestion_controls() -> list[Entry]:
    """Return entries of congestion controls, with the stacks that have them."""
    return _list_records(scenarios.CONGESTION_CONTROLS.values())


def list_receiver_controls() -> list[Entry]:
    """Return entries of receiver controls, which limit the window that a receiver advertises."""
    return _list_records(scenarios.RECEIVER_CONTROLS.values())


def _list_records(records: Collection[CatalogueEntry]) -> list[Entry]:
    return [
        {"name": one.name, "stacks": list(one.stacks), "meaning": one.meaning, "parameters": _list_record_parameters(one)}
        for one in records
    ]


def _list_record_parameters(record: CatalogueEntry) -> list[Entry]:
    return [
        _make_parameter(one.name, one.default, one.range, one.meaning) | {"stacks": list(one.stacks)}
        for one in record.parameters
    ]


def list_sizes() -> list[Entry]:
    """Return entries of the built-in distributions of flow sizes, in bytes."""
    entries = []
    for one in scenarios.SIZES.values():
        median, p90, p99 = (round(float(x)) for x in one.quantile(np.array([0.5, 0.9, 0.99])))
        mean = round(float(one.mean_bytes))
        quantiles = {"mean_bytes": mean, "median_bytes": median, "p90_bytes": p90, "p99_bytes": p99}
        entries.append({"name": one.name, **quantiles, "points": len(one.size_bytes)})
    return entries


def list_environments() -> list[Entry]:
    """Return entries of environments by Gymnasium id, with task, recipes and default scenario."""
    found = registration.environment_records()
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


def list_rewards() -> list[Entry]:
    """Return entries of rewards by task, with the recipes whose default they are."""
    entries = []
    for record in tasks.records():
        chosen = {recipe: record.rules(recipe).default_reward for recipe in record.rules.recipes}
        for name, kind in record.rewards.items():
            said = parse_arguments(kind)
            entries.append(
                {
                    "task": record.name,
                    "name": name,
                    "meaning": extract_headline(kind),
                    "terms": list(terms) if isinstance(terms := getattr(kind, "terms", ()), tuple) else [],
                    "default_of": [recipe for recipe, reward in chosen.items() if reward == name],
                    "parameters": [
                        _make_parameter(
                            one.name, default, _derive_range(default, said.get(one.name, "")), said.get(one.name, "")
                        )
                        for one, default in ((one, _get_default(one)) for one in fields(kind))
                    ],
                }
            )
    return entries


def list_controllers() -> list[Entry]:
    """Return entries of the controllers that agents can be compared with, by task."""
    return [
        _make_controller_entry(record, name, make()) for record in tasks.records() for name, make in record.controllers.items()
    ]


def list_baselines() -> list[Entry]:
    """Return entries of the controllers that agents are compared with by default, by task."""
    named = ((record, name) for record in tasks.records() for name in record.measures.baselines)
    return [_make_controller_entry(record, name, record.controllers[name]()) for record, name in named]


def _make_controller_entry(record: TaskRecord, name: str, controller: Controller) -> Entry:
    in_world = isinstance(controller, InWorld)
    own = {**scenarios.CONGESTION_CONTROLS, **scenarios.SCHEMES}.get(name) if in_world else None
    meaning = getattr(own, "meaning", "") or getattr(own, "description", "") or extract_headline(type(controller))
    return {
        "task": record.name,
        "name": name,
        "meaning": meaning,
        "acts": "in the world" if in_world else "decides as an agent",
        "recipes": None if controller.recipes is None else list(controller.recipes),
        "compared_with": name in record.measures.baselines,
    }


def list_agents() -> list[Entry]:
    """Return entries of the package's trained agents."""
    return [library.summarise_agent(name) for name in library.names()]


def list_plants() -> list[Entry]:
    """Return entries of plants, with the kinds of agents that they carry."""
    return [{"name": name, "agents": list(plants.get(name).kinds)} for name in plants.names()]


def list_trace_generators() -> list[Entry]:
    """Return entries of trace generators."""
    entries = []
    for name, generator in sorted(traces.GENERATORS.items()):
        own = [_make_parameter(key, default, *describe_parameters(name)[key]) for key, default in list_parameters(name).items()]
        entries.append({"name": name, "meaning": extract_headline(generator), "parameters": own})
    return entries


def _make_parameter(name: str, default: Any, range_: str, meaning: str) -> Entry:
    """Return a parameter's entry; without `default` if the parameter is required."""
    given = {} if default is inspect.Parameter.empty else {"default": _convert_to_json(default)}
    return {"name": name, **given, "unit": find_unit(name), "range": range_, "meaning": meaning}


def _derive_range(default: Any, meaning: str) -> str:
    """Return the valid values of a parameter, derived from its default and meaning."""
    if isinstance(default, bool):
        return "true or false"
    each = "a list, each " if isinstance(default, (tuple, list)) else ""
    return each + found if (found := find_range(meaning)) else ""


def _get_default(field: Field) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else inspect.Parameter.empty


def _convert_to_json(value: Any) -> Any:
    """Convert a default to JSON values: tuples to lists, values unknown to JSON to text."""
    if isinstance(value, (tuple, list)):
        return [_convert_to_json(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _convert_to_json(one) for key, one in value.items()}
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


TOPICS: dict[str, Callable[[], list[Entry]]] = {
    "scenarios": list_scenarios,
    "schemes": list_schemes,
    "queue-disciplines": list_disciplines,
    "sizes": list_sizes,
    "congestion-controls": list_congestion_controls,
    "receiver-controls": list_receiver_controls,
    "environments": list_environments,
    "rewards": list_rewards,
    "controllers": list_controllers,
    "baselines": list_baselines,
    "agents": list_agents,
    "plants": list_plants,
    "traces": list_trace_generators,
}
"""Functions that return the entries of each topic."""
