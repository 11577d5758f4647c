"""The best constant settings: of each cell that `tune_constant` searched, and of all of them together elsewhere.

The rows of the search, `results/studies/auter/constants.csv.gz`, have one for each setting of the task's grid in each cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.host_buffers.settings import GRID, Settings
from studies.common import kept

CHECKOUT = Path(__file__).resolve().parents[2]
SECTION = "constants"
COLUMNS = ("study", "cell", "ring_packets", "tcp_bytes", "socket_bytes", "throughput_mbps", "latency_ms", "memory_mb")
SAME = 0.005
"""Of settings whose throughput differs by less than this share, the one that takes less memory is better."""


@cache
def best(study: str, cell: str) -> Settings:
    """The best constant of a cell, or, where it was not searched, of all cells that were.

    Raises:
        ConfigError: There is no table.
    """
    return GRID[best_of(_rows(), study, cell)]


def best_of(rows: Sequence[Mapping[str, Any]], study: str = "", cell: str = "") -> str:
    """The same by a table's rows, as the task's grid calls the settings."""
    own = [row for row in rows if (row["study"], row["cell"]) == (study, cell)]
    return _best(own) if own else _best_everywhere(rows)


def _best(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the settings of one cell."""
    most = max(float(row["throughput_mbps"]) for row in rows)
    near = [row for row in rows if float(row["throughput_mbps"]) >= (1 - SAME) * most]
    return name_of(min(near, key=lambda row: float(row["memory_mb"])))


def _best_everywhere(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of highest throughput relative to each cell's best, in the mean of logarithms; between equals of less memory."""
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["study"], row["cell"]), []).append(row)
    score: dict[str, float] = {}
    held: dict[str, float] = {}
    for own in cells.values():
        most = max(float(row["throughput_mbps"]) for row in own)
        for row in own:
            name = name_of(row)
            score[name] = score.get(name, 0.0) + math.log(max(float(row["throughput_mbps"]), 1e-9) / most) / len(cells)
            held[name] = held.get(name, 0.0) + math.log(float(row["memory_mb"])) / len(cells)
    most = max(score.values())
    return min((name for name in score if score[name] >= most - SAME), key=lambda name: held[name])


def name_of(row: Mapping[str, Any]) -> str:
    """What the task's grid calls the settings of a row."""
    return f"ring {row['ring_packets']}, tcp {row['tcp_bytes']}, socket {row['socket_bytes']}"


@cache
def _rows() -> Sequence[Mapping[str, str]]:
    found = kept.read(CHECKOUT, "auter", SECTION)
    if found is None:
        path, writer = kept.path_of(CHECKOUT, "auter", SECTION), "python -m studies.auter.tune_constant"
        raise ConfigError(f"{path} is missing; valid: the rows that {writer} keeps")
    return found.records
