"""`netbuf-gym list`: what there is by name."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import MISSING, Field, fields
from typing import Any

from netbuf_gym import plants, registration, scenarios, tasks
from netbuf_gym.commands.trace import generators
from netbuf_gym.tables import text_table

HELP = "list scenarios, schemes, disciplines, sizes, congestion controls, environments, rewards, contenders, plants, generators"


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("what", nargs="?", choices=["all", *TOPICS], default="all", help="(default: all)")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    topics = TOPICS if arguments.what == "all" else {arguments.what: TOPICS[arguments.what]}
    print("\n\n".join(make() for make in topics.values()))
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
    """Queue disciplines of links, with their parameters and defaults."""
    parts = []
    for name, cls in scenarios.DISCIPLINES.items():
        defaults = " ".join(f"{f.name}={'auto' if f.default is None else json.dumps(f.default)}" for f in fields(cls))
        parts.append(f"{name}: {(cls.__doc__ or '').splitlines()[0]}")
        parts += textwrap.wrap(defaults, 112, initial_indent="    ", subsequent_indent="    ")
    return "queue disciplines\n-----------------\n" + "\n".join(parts)


def list_sizes() -> str:
    """Built-in distributions of flow sizes."""
    rows = [
        [d.name, *(str(round(float(x))) for x in (d.mean_bytes, *d.quantile([0.5, 0.9, 0.99]))), str(len(d.size_bytes))]
        for d in scenarios.SIZES.values()
    ]
    header = ["flow sizes", "mean bytes", "median", "90 %", "99 %", "points"]
    return f"{text_table(header, rows)}\nor the path of a CSV file with rows of size_bytes,cumulative"


def list_congestion_controls() -> str:
    """Congestion controls by stack."""
    both = set(scenarios.congestion_controls("linux"))
    rows = [
        [cc, "linux, ns3" if cc in both else "ns3", "the environment's own" if cc == scenarios.AGENT else ""]
        for cc in scenarios.congestion_controls("ns3")
    ]
    return text_table(["congestion control", "stacks", ""], rows)


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
    "disciplines": list_disciplines,
    "sizes": list_sizes,
    "congestion-controls": list_congestion_controls,
    "environments": list_environments,
    "rewards": list_rewards,
    "contenders": list_contenders,
    "plants": list_plants,
    "traces": list_traces,
}
