"""`netbuf-gym list`: what there is by name."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Collection

from netbuf_gym import registration, scenarios
from netbuf_gym.commands.trace import generators
from netbuf_gym.scenarios.catalogue import Record
from netbuf_gym.tables import text_table

HELP = "list scenarios, schemes, queue disciplines, flow sizes, congestion controls, environments and trace generators"


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
    rows += [[name, line] for name, line in scenarios.PATTERNS.items()]
    arguments = {name: name for name in (*scenarios.names(), "trace:PATH")}
    arguments["rlbm/CC-SIZE-LOAD"] = "rlbm/cubic-500-0.6"
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
    """Gymnasium ids."""
    return text_table(["environment"], [[name] for name in sorted(registration.ENVIRONMENTS)])


def list_traces() -> str:
    """Trace generators, with their arguments and defaults."""
    return f"trace generators\n----------------\n{generators()}"


TOPICS = {
    "scenarios": list_scenarios,
    "schemes": list_schemes,
    "queue-disciplines": list_disciplines,
    "sizes": list_sizes,
    "congestion-controls": list_congestion_controls,
    "environments": list_environments,
    "traces": list_traces,
}
FORMER = {"disciplines": "queue-disciplines"}
