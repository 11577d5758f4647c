"""What `netbuf-gym trace` does with flow lists and distributions of flow sizes."""

from __future__ import annotations

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Distribution, FlowList, SizeDistribution
from netbuf_gym.scenarios.sizes import records
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.utils.files import csv_fields, parsed
from netbuf_gym.utils.tables import number, text_table


def read(path: str) -> FlowList | SizeDistribution | None:
    """A flow list or a size distribution, told by the header or by rows of two numbers with a comma between them; None
    for what is neither.

    Raises:
        ScenarioError: It begins like one and cannot be read on; names the file and the line.
    """
    try:
        header = [name.lower() for name in csv_fields(records(path)[0][1])]
    except ScenarioError:
        return None  # whoever reads traces says what is wrong
    if len(header) == 2 and all(map(_is_number, header)):
        return None if float(parsed(header[0])) == 0 else SizeDistribution.read_csv(path)  # a time begins at 0, no size does
    if "size_bytes" not in header:
        return None
    return SizeDistribution.read_csv(path) if "cumulative" in header else FlowList.read_csv(path)


def _is_number(text: str) -> bool:
    try:
        parsed(text)
    except ValueError:
        return False
    return True


def generate(scenario: str, arguments: dict[str, object], seed: int) -> FlowList:
    """The finite flows that a named scenario opens with a seed.

    Raises:
        ConfigError: It has none. ScenarioError: An unknown name or argument, or a value out of range.
    """
    world = scenarios.get(scenario, **arguments)
    if isinstance(world, Distribution):
        world = world.sample(np.random.default_rng(seed))
    if world.traffic is None:
        raise ConfigError(f"scenario {scenario!r} has no finite flows; valid: one with traffic, e.g. rlbm/default")
    return simulate(world, seed, sample_interval_s=None).flow_list()


def figures(workload: FlowList | SizeDistribution) -> dict[str, object]:
    """What is said about it."""
    if isinstance(workload, SizeDistribution):
        data = {
            "name": workload.name,
            "kind": "flow sizes",
            "points": len(workload.size_bytes),
            "mean_bytes": workload.mean_bytes,
        }
        return data | {f"p{share}_bytes": float(workload.quantile(share / 100)) for share in (1, 50, 90, 99)}
    span_s = float(workload.start_s[-1])
    data = {
        "kind": "flow list",
        "flows": len(workload),
        "first_start_s": float(workload.start_s[0]),
        "last_start_s": span_s,
        "senders": len(np.unique(workload.sender)),
        "mean_bytes": float(workload.size_bytes.mean()),
        "offered_mbps": float(workload.size_bytes.sum()) * 8e-6 / span_s if span_s else float("nan"),
    }
    return data | {f"priority_{p}_flows": int((workload.priority == p).sum()) for p in np.unique(workload.priority).tolist()}


def describe(workload: FlowList | SizeDistribution) -> str:
    """The figures as a table."""
    units = {"_s": "s", "_bytes": "bytes", "_mbps": "Mbit/s"}
    lines = []
    for name, value in figures(workload).items():
        unit = next((unit for ending, unit in units.items() if name.endswith(ending)), "")
        word = name.removesuffix("_s").removesuffix("_mbps").replace("_bytes", " size").replace("_", " ")
        text = str(round(value)) if unit == "bytes" else number(value, 5) if isinstance(value, (int, float)) else str(value)
        lines.append([word, f"{text} {unit}".rstrip()])
    return text_table(["", ""], lines).split("\n", 2)[2]
