"""`netbuf-gym list`: names with their meanings and parameters, as tables or JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
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
from netbuf_gym.utils.files import to_plain_values
from netbuf_gym.utils.tables import format_number, text_table
from netbuf_gym.zoo import library

Entry = dict[str, Any]
"""A named thing, or one of its parameters, as JSON has it."""
FORMER = {"contenders": "controllers", "disciplines": "queue-disciplines"}
"""Present names of topics by their former names."""
NOT_SHOWN = ("parameters", "scores", "lower_is_better", "environment", "compared_with")
"""Keys of entries that are no columns of a topic's table; they are shown below it, or in JSON only."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "topic",
        nargs="?",
        type=parse_topic,
        choices=["all", *TOPICS],
        default="all",
        metavar="TOPIC",
        help=f"{', '.join(TOPICS)} (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: a list of objects; without TOPIC an object of lists")


def parse_topic(text: str) -> str:
    """Return the present name of a topic, whose words `-` or `_` may separate."""
    name = text.replace("_", "-").lower()
    return FORMER.get(name, name)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    topics = TOPICS if arguments.topic == "all" else {arguments.topic: TOPICS[arguments.topic]}
    entries = {topic: list_entries() for topic, list_entries in topics.items()}
    if arguments.json:
        data = to_plain_values(entries if arguments.topic == "all" else entries[arguments.topic])
        print(json.dumps(data, indent=1, allow_nan=False))
    else:
        print("\n\n".join(format_topic(topic, own) for topic, own in entries.items()))
    return 0


# ---- entries of each topic


def list_scenarios() -> list[Entry]:
    """Return entries of scenarios and distributions by name, and of the forms that names may have."""
    entries = [
        {"name": name, "meaning": scenarios.describe(name), "parameters": _list_scenario_parameters(name)}
        for name in scenarios.names()
    ]
    for form, pattern in scenarios.PATTERNS.items():
        parameters = _list_scenario_parameters(pattern.example) if pattern.example else []
        entries.append({"name": form, "meaning": pattern.description, "parameters": parameters})
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
            parameters = _list_record_parameters(scenarios.QUEUE_DISCIPLINES[scheme.name])
        else:
            signature = inspect.signature(scheme.make).parameters
            parameters = [
                _make_parameter(key, signature[key].default, *SCHEME_PARAMETERS.get(key, ("", ""))) for key in scheme.parameters
            ]
        entries.append({"name": scheme.name, "meaning": scheme.description, "parameters": parameters})
    return entries


SCHEME_PARAMETERS = {
    "alphas": (
        "above 0",
        "threshold of each queue as a multiple of the free buffer; the last value applies to all further queues",
    ),
    "betas": ("above 0 to 1", "constant factor of each queue's threshold, besides that of the agent; null: 1"),
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
        defaults = {recipe: record.rules(recipe).default_reward for recipe in record.rules.recipes}
        for name, kind in record.rewards.items():
            meanings = parse_arguments(kind)
            entries.append(
                {
                    "task": record.name,
                    "name": name,
                    "meaning": extract_headline(kind),
                    "terms": list(terms) if isinstance(terms := getattr(kind, "terms", ()), tuple) else [],
                    "default_of": [recipe for recipe, reward in defaults.items() if reward == name],
                    "parameters": [
                        _make_parameter(one.name, default, _derive_range(default, meaning), meaning)
                        for one in fields(kind)
                        for default, meaning in [(_get_default(one), meanings.get(one.name, ""))]
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
    return [
        _make_controller_entry(record, name, record.controllers[name]())
        for record in tasks.records()
        for name in record.measures.baselines
    ]


def _make_controller_entry(record: TaskRecord, name: str, controller: Controller) -> Entry:
    in_world = isinstance(controller, InWorld)
    known = {**scenarios.CONGESTION_CONTROLS, **scenarios.SCHEMES}.get(name) if in_world else None
    meaning = getattr(known, "meaning", "") or getattr(known, "description", "") or extract_headline(type(controller))
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
        described = describe_parameters(name)
        parameters = [_make_parameter(key, default, *described[key]) for key, default in list_parameters(name).items()]
        entries.append({"name": name, "meaning": extract_headline(generator), "parameters": parameters})
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


# ---- tables


def format_topic(name: str, entries: Sequence[Entry]) -> str:
    """Format a topic as a table of its entries, and one of their parameters if there are any."""
    kind = name.removesuffix("s").replace("-", " ")
    columns = list(dict.fromkeys(key for entry in entries for key in entry if key not in NOT_SHOWN))
    rows = [[_format_cell(entry.get(key)) for key in columns] for entry in entries]
    if "scores" in (entries[0] if entries else ()):
        columns.append("scores")
        for row, entry in zip(rows, entries, strict=True):
            row.append("; ".join(f"{scenario} {format_number(score)}" for scenario, score in entry["scores"].items()))
    parts = [text_table([kind if key == "name" else key.replace("_", " ") for key in columns], rows)]
    taking = [entry for entry in entries if entry.get("parameters")]
    if name == "sizes":
        parts.append("Also valid: the path of a CSV file with the columns size_bytes and cumulative.")
    if name == "scenarios":
        parts += [_format_defaults(taking), _format_distinct_parameters(taking)]
    elif taking:
        parts.append(_format_parameters(kind, taking))
    return "\n\n".join(parts)


def _format_parameters(kind: str, entries: Sequence[Entry]) -> str:
    """Format a table with a row for each parameter of each entry."""
    rows = []
    for entry in entries:
        for one in entry["parameters"]:
            stacks = one.get("stacks", entry.get("stacks", []))
            only = "" if set(entry.get("stacks", [])) <= set(stacks) else f" ({', '.join(stacks)} only)"
            rows.append([entry["name"], one["name"], _format_default(one), one["unit"], one["range"], one["meaning"] + only])
    return text_table([kind, "parameter", "default", "unit", "range", "meaning"], rows)


def _format_defaults(entries: Sequence[Entry]) -> str:
    """Format the parameters of each entry as `name=default`."""
    lines = ["arguments with their defaults", "-----------------------------"]
    for entry in entries:
        words = " ".join(f"{one['name']}={_format_default(one, 'null')}".replace(" ", "") for one in entry["parameters"])
        wrapped = textwrap.wrap(words, 112, break_long_words=False, break_on_hyphens=False)
        lines += [entry["name"], *(f"    {line}" for line in wrapped)]
    return "\n".join(lines)


def _format_distinct_parameters(entries: Sequence[Entry]) -> str:
    """Format a table with a row for each parameter; parameters that several entries share appear once."""
    rows = {}
    for entry in entries:
        for one in entry["parameters"]:
            row = [one["name"], one["unit"], one["range"], one["meaning"]]
            rows[tuple(row)] = row
    note = "Of a random distribution of scenarios, an argument is a range [LOW, HIGH], a list to draw from, or one value."
    return f"{text_table(['argument', 'unit', 'range', 'meaning'], sorted(rows.values()))}\n{note}"


def _format_default(parameter: Entry, none: str = "auto") -> str:
    """Format a default; `none` stands for one that is derived from other parameters or from the world."""
    if "default" not in parameter:
        return "required"
    value = parameter["default"]
    return none if value is None else value if isinstance(value, str) else json.dumps(value)


def _format_cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, dict):
        words = ", ".join(f"{key}={one}" for key, one in value.items() if key != "name")
        given = textwrap.shorten(words, 60, placeholder=" ...")
        return f"{value.get('name')}({given})" if "name" in value else given
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
