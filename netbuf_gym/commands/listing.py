"""`netbuf-gym list`: what there is by name."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Collection
from dataclasses import MISSING, Field, fields
from typing import Any

from netbuf_gym import plants, registration, scenarios, tasks
from netbuf_gym.commands.trace import generators
from netbuf_gym.scenarios.catalogue import Record
from netbuf_gym.tables import text_table

HELP = "list scenarios, schemes, disciplines, sizes, congestion controls, environments, rewards, contenders, plants, generators"


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("what", nargs="?", choices=["all", *TOPICS, *FORMER], default="all", help="(default: all)")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    what = FORMER.get(arguments.what, arguments.what)
    print("\n\n".join(make() for topic, make in TOPICS.items() if what in ("all", topic)))
    return 0


def list_scenarios() -> str:
    """Scenarios and distributions, with the arguments that they take."""
    rows = [[name, scenarios.describe(name)] for name in scenarios.names()]
    rows += [[form, pattern.description] for form, pattern in scenarios.PATTERNS.items()]
    arguments = {name: name for name in scenarios.names()}
    arguments |= {form: pattern.example for form, pattern in scenarios.PATTERNS.items() if pattern.example}
    lines = []
    for shown, name in arguments.items():
        words = " ".join(scenarios.parameters_of(name))
        lines += [shown, textwrap.fill(words, 116, initial_indent="    ", subsequent_indent="    ")]
    return f"{text_table(['scenario', ''], rows)}\n\narguments\n---------\n" + "\n".join(lines)


def list_schemes() -> str:
    """Schemes of buffer management, with the parameters that may stand beside their names."""
    rows = [
        [scheme.name, scheme.description, "" if scheme.name in scenarios.DISCIPLINES else " ".join(scheme.parameters)]
        for scheme in scenarios.SCHEMES.values()
    ]
    return text_table(["scheme", "", "parameters"], rows)


def list_disciplines() -> str:
    """Queue disciplines of links, with their parameters."""
    return _records("queue discipline", scenarios.QUEUE_DISCIPLINES.values())


def list_sizes() -> str:
    """Built-in distributions of flow sizes."""
    rows = [
        [d.name, *(str(round(float(x))) for x in (d.mean_bytes, *d.quantile([0.5, 0.9, 0.99]))), str(len(d.size_bytes))]
        for d in scenarios.SIZES.values()
    ]
    header = ["flow sizes", "mean bytes", "median", "90 %", "99 %", "points"]
    return f"{text_table(header, rows)}\nor the path of a CSV file with rows of size_bytes,cumulative"


def list_congestion_controls() -> str:
    """Congestion controls by stack, with their parameters."""
    return _records("congestion control", scenarios.CONGESTION_CONTROLS.values())


def _records(what: str, records: Collection[Record]) -> str:
    """What there is in a catalogue of the core, and the parameters that may stand beside each name."""
    table = text_table([what, "stacks", ""], [[r.name, ", ".join(r.stacks), r.meaning] for r in records])
    rows = []
    for record in records:
        for parameter in record.parameters:
            default = "auto" if parameter.default is None else str(parameter.default).lower()
            only = "" if set(record.stacks) <= set(parameter.stacks) else f" ({', '.join(parameter.stacks)} only)"
            rows.append([record.name, parameter.name, default, parameter.range, parameter.meaning + only])
    return f"{table}\n\n{text_table([what, 'parameter', 'default', 'range', ''], rows)}"


def list_environments() -> str:
    """Gymnasium ids, and who decides what in them."""
    found = registration.environments()
    return text_table(["environment", ""], [[name, found[name].summary] for name in sorted(found)])


def list_rewards() -> str:
    """Rewards by task, with their parameters and defaults."""
    rows = [
        [record.name, name, " ".join(f"{f.name}={json.dumps(_default(f))}" for f in fields(kind))]
        for record in tasks.records()
        for name, kind in record.rewards.items()
    ]
    return text_table(["task", "reward", "parameters"], rows)


def list_contenders() -> str:
    """What there is to set beside agents, by task."""
    return text_table(["task", "contender"], [[record.name, name] for record in tasks.records() for name in record.contenders])


def list_plants() -> str:
    """Plants, and the kinds of agents that they carry."""
    return text_table(["plant", "agents"], [[name, " ".join(plants.get(name).kinds)] for name in plants.names()])


def list_traces() -> str:
    """Trace generators, with their arguments and defaults."""
    return f"trace generators\n----------------\n{generators()}"


def _default(field: Field) -> Any:
    return field.default_factory() if field.default is MISSING else field.default


TOPICS = {
    "scenarios": list_scenarios,
    "schemes": list_schemes,
    "queue-disciplines": list_disciplines,
    "sizes": list_sizes,
    "congestion-controls": list_congestion_controls,
    "environments": list_environments,
    "rewards": list_rewards,
    "contenders": list_contenders,
    "plants": list_plants,
    "traces": list_traces,
}
FORMER = {"disciplines": "queue-disciplines"}
