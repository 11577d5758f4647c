"""`netbuf-gym list`: what there is by name."""

from __future__ import annotations

import argparse

from netbuf_gym import registration, scenarios
from netbuf_gym.commands.trace import generators
from netbuf_gym.tables import text_table

HELP = "list scenarios, congestion controls, environments and trace generators"


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
    rows.append(["trace:PATH", "A dumbbell whose bottleneck follows a trace file."])
    rows.append(["file:PATH", "A scenario file, written from Scenario.to_dict()."])
    arguments = [[name, " ".join(scenarios.parameters_of(name))] for name in (*scenarios.names(), "trace:PATH")]
    return f"{text_table(['scenario', ''], rows)}\n\n{text_table(['scenario', 'arguments'], arguments)}"


def list_schemes() -> str:
    """Congestion controls by stack."""
    both = set(scenarios.congestion_controls("linux"))
    rows = [
        [cc, "linux, ns3" if cc in both else "ns3", "the environment's own" if cc == scenarios.AGENT else ""]
        for cc in scenarios.congestion_controls("ns3")
    ]
    return text_table(["congestion control", "stacks", ""], rows)


def list_environments() -> str:
    """Gymnasium ids."""
    return text_table(["environment"], [[name] for name in sorted(registration.ENVIRONMENTS)])


def list_traces() -> str:
    """Trace generators, with their arguments and defaults."""
    return f"trace generators\n----------------\n{generators()}"


TOPICS = {
    "scenarios": list_scenarios,
    "congestion-controls": list_schemes,
    "environments": list_environments,
    "traces": list_traces,
}
