"""Comparison of agents with settings and the kernel's autotuning on long paths, by which the default agent is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.auter import auter_worlds as worlds
from studies.auter import paper
from studies.auter.auter_claims import RATE
from studies.auter.auter_schemes import CONSTANT, KERNEL, LEARNED, NAMES, label
from studies.auter.auter_settings import PATHS
from studies.common.results import Runs

Means = Mapping[str, Mapping[str, float]]
"""Means of measures over the runs of each cell, by cell and measure."""

D, MAX = paper.DEFAULT, paper.MAX
MEASURED = (RATE, "rtt_ratio", "memory_mb")
DEEP = frozenset(path.name for path in worlds.PATHS if path.buffer_bdp >= worlds.DEEP_BDP)


def compute_means(runs: Runs, scheme: str) -> dict[str, dict[str, float]]:
    """Return a scheme's means of `MEASURED` in each cell of the study."""
    own = runs.where(study=PATHS, scheme=scheme)
    cells = {cell: own.where(cell=cell).columns for cell in own.values("cell")}
    return {cell: {name: float(np.mean(columns[name])) for name in MEASURED} for cell, columns in cells.items()}


@dataclass(frozen=True)
class Comparison:
    """Ratios of an agent to a rival, over the cells that both played.

    Attributes:
        mean, least: Geometric mean and minimum of the throughput ratio.
        worst: Cell of the minimum.
        memory: Geometric mean of the memory ratio.
    """

    mean: float
    least: float
    worst: str
    memory: float


def compare_means(agent: Means, rival: Means) -> Comparison:
    """Compare an agent's means with a rival's, which must share at least one cell."""
    cells = [cell for cell in agent if cell in rival]
    rates = {cell: agent[cell][RATE] / rival[cell][RATE] for cell in cells}
    memory = [agent[cell]["memory_mb"] / rival[cell]["memory_mb"] for cell in cells]
    worst = min(rates, key=lambda cell: rates[cell])
    return Comparison(_compute_geometric_mean(list(rates.values())), rates[worst], worst, _compute_geometric_mean(memory))


def compute_deep_inflation(means: Means) -> float:
    """Return the mean ratio of latency to the least possible over cells with deep queues; NaN without such a cell."""
    found = [one["rtt_ratio"] for cell, one in means.items() if cell in DEEP]
    return float(np.mean(found)) if found else float("nan")


def build_schemes_table(runs: Runs) -> str:
    """Return the table of each scheme's means over the cells, with the agent's throughput and memory over the scheme's."""
    present = [scheme for scheme in NAMES if scheme in runs.where(study=PATHS).values("scheme")]
    agent = compute_means(runs, LEARNED)
    rows = []
    for scheme in present:
        own = compute_means(runs, scheme)
        row = [label(scheme), *(f"{np.mean([one[name] for one in own.values()]):.3g}" for name in MEASURED)]
        row.append(f"{compute_deep_inflation(own):.2f}")
        if agent and scheme != LEARNED:
            beside = compare_means(agent, own)
            row += [f"{beside.mean:.3f}", f"{beside.least:.3f} ({beside.worst})", f"{beside.memory:.3f}"]
        else:
            row += [""] * 3
        rows.append(row)
    head = ["scheme", "Mbit/s", "RTT / base", "memory, MB", f"RTT / base, {worlds.DEEP_BDP} BDP of queue and more"]
    return markdown_table([*head, "our agent's throughput over it, mean", "least", "its memory over it"], rows)


def build_cells_table(runs: Runs) -> str:
    """Return the table of throughput and latency of the agent and its rivals, cell by cell."""
    own = runs.where(study=PATHS)
    shown = [scheme for scheme in (LEARNED, D, KERNEL, CONSTANT, MAX) if scheme in own.values("scheme")]
    means = {scheme: compute_means(runs, scheme) for scheme in shown}
    rows = [
        [cell, *(f"{means[one][cell][RATE]:.2f} ({means[one][cell]['rtt_ratio']:.2f})" for one in shown)]
        for cell in own.values("cell")
    ]
    return markdown_table(["path", *map(label, shown)], rows)


def build_seeds_table(agents: Mapping[int, Means], rivals: Mapping[str, Means]) -> str:
    """Return the table of agents by training seed: throughput over rivals' (mean and least), latency, memory over max's."""
    rows = []
    for seed, means in agents.items():
        cells = [f"{one.mean:.3f} ({one.least:.3f})" for one in (compare_means(means, rival) for rival in rivals.values())]
        memory = compare_means(means, rivals[MAX]).memory
        rows.append(
            [
                str(seed),
                *cells,
                f"{_compute_mean_inflation(means):.2f}",
                f"{compute_deep_inflation(means):.2f}",
                f"{memory:.3f}",
            ]
        )
    head = [f"over {label(scheme)}'s (least)" for scheme in rivals]
    return markdown_table(["training seed", *head, "RTT / base", "where the queue is deep", "memory over max's"], rows)


def _compute_mean_inflation(means: Means) -> float:
    return float(np.mean([one["rtt_ratio"] for one in means.values()]))


def _compute_geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
