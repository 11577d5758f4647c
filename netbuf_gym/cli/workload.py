"""Flow lists and distributions of flow sizes for `netbuf-gym trace`: reading, generation and description."""

from __future__ import annotations

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Distribution, FlowList, SizeDistribution
from netbuf_gym.scenarios.sizes import read_records
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.utils.files import parse_number, split_csv_fields
from netbuf_gym.utils.tables import format_number, text_table


def read_workload(path: str) -> FlowList | SizeDistribution | None:
    """Read a flow list or a size distribution, recognised by the header or by rows of two comma-separated numbers.

    Returns:
        The flow list or size distribution; None if the file is neither.

    Raises:
        ScenarioError: A file that begins like one and cannot be read further; the message names file and line.
    """
    try:
        header = [name.lower() for name in split_csv_fields(read_records(path)[0][1])]
    except ScenarioError:
        return None  # reading it as a trace reports the error
    if len(header) == 2 and all(map(_is_number, header)):
        return (
            None if float(parse_number(header[0])) == 0 else SizeDistribution.read_csv(path)
        )  # a time begins at 0, no size does
    if "size_bytes" not in header:
        return None
    return SizeDistribution.read_csv(path) if "cumulative" in header else FlowList.read_csv(path)


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def generate_flows(scenario: str, arguments: dict[str, object], seed: int) -> FlowList:
    """Return the finite flows that a named scenario opens with a seed.

    Raises:
        ConfigError: The scenario has no finite flows.
        ScenarioError: An unknown name or argument, or a value out of range.
    """
    world = scenarios.get(scenario, **arguments)
    if isinstance(world, Distribution):
        world = world.sample(np.random.default_rng(seed))
    if world.traffic is None:
        raise ConfigError(f"scenario {scenario!r} has no finite flows; valid: one with traffic, e.g. rlbm/default")
    return simulate(world, seed, sample_interval_s=None).flow_list()


def compute_figures(workload: FlowList | SizeDistribution) -> dict[str, object]:
    """Compute the figures that describe a flow list or size distribution."""
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


def format_workload(workload: FlowList | SizeDistribution) -> str:
    """Format the figures of a flow list or size distribution as a table."""
    units = {"_s": "s", "_bytes": "bytes", "_mbps": "Mbit/s"}
    lines = []
    for name, value in compute_figures(workload).items():
        unit = next((unit for ending, unit in units.items() if name.endswith(ending)), "")
        word = name.removesuffix("_s").removesuffix("_mbps").replace("_bytes", " size").replace("_", " ")
        text = (
            str(round(value)) if unit == "bytes" else format_number(value, 5) if isinstance(value, (int, float)) else str(value)
        )
        lines.append([word, f"{text} {unit}".rstrip()])
    return text_table(["", ""], lines).split("\n", 2)[2]
