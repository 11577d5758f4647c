"""Section on the comparison over the default distribution, made from the kept rows."""

from __future__ import annotations

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import format_spread
from studies.common.kept import KeptRows
from studies.rlbm.rlbm_settings import LEARNED, RANDOM, WITHOUT_LEARNING

COLUMNS = (
    *("scheme", "cc", "size", "load", "seed"),
    *("flows_completed_p0", "slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps"),
)
"""Columns of a row; cc, size and load are empty in rows over all cells, seed in rows over all seeds, cc in rows over all
congestion controls."""
CELL_BY_CELL = (*WITHOUT_LEARNING, RANDOM)
"""Rivals with a table of all cells."""
LEAST_FLOWS = 20
"""Number of completed flows below which a cell's percentile is not compared."""


class ComparisonRows:
    """Rows of the comparison: by seed, by cell, and pooled over congestion controls."""

    def __init__(self, kept: KeptRows):
        self.settings = kept.header["settings"]
        self.by_seed: dict[str, list[dict[str, float]]] = {}
        self.by_cell: dict[str, dict[tuple[str, str, str], dict[str, float]]] = {}
        self.pooled: dict[tuple[str, str, str], float] = {}
        for row in kept.records:
            values = {name: float(row[name] or "nan") for name in COLUMNS[-4:]}
            if row["seed"]:
                self.by_seed.setdefault(row["scheme"], []).append(values)
            elif row["cc"]:
                self.by_cell.setdefault(row["scheme"], {})[row["cc"], row["size"], row["load"]] = values
            else:
                self.pooled[row["scheme"], row["size"], row["load"]] = values["slowdown_p99_p0"]

    def get_by_seed(self, scheme: str, name: str) -> np.ndarray:
        """Return a measure for each seed, of shape (seeds,)."""
        return np.array([values[name] for values in self.by_seed[scheme]])


def format_comparison(kept: KeptRows) -> str:
    """Return the section as Markdown: all schemes, and where the learned one (or else the first) loses, by size and load."""
    rows = ComparisonRows(kept)
    settings, schemes = rows.settings, list(rows.by_seed)
    first = LEARNED if LEARNED in schemes else schemes[0]
    cells = len(settings["ccs"]) * len(settings["sizes"]) * len(settings["loads"])
    last = settings["first_seed"] + settings["seeds"] - 1
    lines = [
        f"`{kept.header['command']}` (netbuf-gym {kept.header['version']}).",
        f"{cells} cells (cc x size x load), seeds {settings['first_seed']} to {last}, {settings['duration_s']:g} s each.",
        "Means over seeds ± half the 95 % interval; differences to the other schemes are paired by seed.",
        "",
        _format_schemes_table(rows, first, schemes),
    ]
    for other in schemes:
        if other != first and other in CELL_BY_CELL:
            lines += ["", f"**{first} against {other}**, 99th percentile of both over the flows of all seeds and ccs:", ""]
            lines.append(_format_cells_table(rows, first, other))
    return "\n".join(lines) + "\n"


def _format_schemes_table(rows: ComparisonRows, first: str, schemes: list[str]) -> str:
    names = ("slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps")
    ours, our_rate = rows.get_by_seed(first, names[0]), rows.get_by_seed(first, names[2])
    made = []
    for scheme in schemes:
        theirs, run_mean, rate = (rows.get_by_seed(scheme, name) for name in names)
        cells = [scheme, format_spread(theirs, 2), format_spread(run_mean, 2), format_spread(rate, 3)]
        if scheme == first:
            cells += ["", "", ""]
        else:
            cells += [
                format_spread(ours - theirs, 2),
                format_spread(100 * (our_rate / rate - 1), 2),
                _count_wins(rows, first, scheme),
            ]
        made.append(cells)
    header = [
        "scheme",
        "p99 slowdown, priority 0",
        "mean of the runs' p99",
        "throughput, Mbit/s",
        f"p99 of {first} minus this",
        f"throughput of {first} over this, %",
        f"cells where the p99 of {first} is lower / equal / higher",
    ]
    return markdown_table(header, made)


def _count_wins(rows: ComparisonRows, first: str, other: str) -> str:
    ours, theirs = rows.by_cell[first], rows.by_cell[other]
    counted = [cell for cell, values in theirs.items() if values["flows_completed_p0"] >= LEAST_FLOWS]
    name = "slowdown_p99_p0"
    lower = sum(ours[cell][name] < theirs[cell][name] for cell in counted)
    higher = sum(ours[cell][name] > theirs[cell][name] for cell in counted)
    return f"{lower} / {len(counted) - lower - higher} / {higher}"


def _format_cells_table(rows: ComparisonRows, first: str, other: str) -> str:
    """Return a table of `first` / `other`, sizes down, loads across, over the flows of all ccs; bold: `first` is higher."""
    sizes, loads = (list(dict.fromkeys(key[place] for key in rows.pooled)) for place in (1, 2))
    made = []
    for size in sizes:
        cells = [size]
        for load in loads:
            ours, theirs = rows.pooled[first, size, load], rows.pooled[other, size, load]
            text = f"{ours:.1f} / {theirs:.1f}"
            cells.append(f"**{text}**" if ours > theirs else text)
        made.append(cells)
    return markdown_table(["size \\ load", *loads], made)
