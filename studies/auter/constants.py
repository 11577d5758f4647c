"""Best constant settings: per cell where `tune_constant` searched it, over all searched cells elsewhere.

The rows of the search, `results/studies/auter/constants.csv.gz`, hold one row for each setting of the task's grid in each cell.
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
"""Relative difference in throughput below which two settings tie and the one with less memory is better."""


@cache
def get_best_setting(study: str, cell: str) -> Settings:
    """Return the best constant setting of a cell, or of all searched cells if this cell was not searched.

    Raises:
        ConfigError: The kept rows of the search are missing.
    """
    return GRID[find_best_name(_read_rows(), study, cell)]


def find_best_name(rows: Sequence[Mapping[str, Any]], study: str = "", cell: str = "") -> str:
    """Return the grid name of the best setting of a cell by the rows of a search; without rows of the cell, of all cells."""
    own = [row for row in rows if (row["study"], row["cell"]) == (study, cell)]
    return _find_best_in_cell(own) if own else _find_best_overall(rows)


def _find_best_in_cell(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the grid name of the best setting by the rows of one cell: least memory among near-equal throughputs (`SAME`)."""
    most = max(float(row["throughput_mbps"]) for row in rows)
    near = [row for row in rows if float(row["throughput_mbps"]) >= (1 - SAME) * most]
    return get_grid_name(min(near, key=lambda row: float(row["memory_mb"])))


def _find_best_overall(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the grid name of the best setting over all cells.

    The score is the throughput relative to each cell's best, as a mean of logarithms; ties (`SAME`) go to less memory.
    """
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["study"], row["cell"]), []).append(row)
    score: dict[str, float] = {}
    held: dict[str, float] = {}
    for own in cells.values():
        most = max(float(row["throughput_mbps"]) for row in own)
        for row in own:
            name = get_grid_name(row)
            score[name] = score.get(name, 0.0) + math.log(max(float(row["throughput_mbps"]), 1e-9) / most) / len(cells)
            held[name] = held.get(name, 0.0) + math.log(float(row["memory_mb"])) / len(cells)
    most = max(score.values())
    return min((name for name in score if score[name] >= most - SAME), key=lambda name: held[name])


def get_grid_name(row: Mapping[str, Any]) -> str:
    """Return the name of a row's settings in the task's grid."""
    return f"ring {row['ring_packets']}, tcp {row['tcp_bytes']}, socket {row['socket_bytes']}"


@cache
def _read_rows() -> Sequence[Mapping[str, str]]:
    found = kept.read_rows(CHECKOUT, "auter", SECTION)
    if found is None:
        path, writer = kept.build_path(CHECKOUT, "auter", SECTION), "python -m studies.auter.tune_constant"
        raise ConfigError(f"{path} is missing; valid: the rows that {writer} keeps")
    return found.records
