"""The section of the comparison over the default distribution, from its rows."""

from __future__ import annotations

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import spread
from studies.common.kept import Kept
from studies.rlbm.settings import LEARNED, RANDOM, WITHOUT_LEARNING

COLUMNS = (
    *("scheme", "cc", "size", "load", "seed"),
    *("flows_completed_p0", "slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps"),
)
"""Of a row; cc, size and load are empty where it is of a seed's flows in all cells, the seed where it is of all seeds, cc where
it is of all of them."""
CELL_BY_CELL = (*WITHOUT_LEARNING, RANDOM)
"""Rivals that get a table of all cells."""
LEAST_FLOWS = 20
"""Cells with fewer flows have no percentile worth a comparison."""


class Rows:
    """The rows by what they are of."""

    def __init__(self, kept: Kept):
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

    def seeds(self, scheme: str, name: str) -> np.ndarray:
        """A measure of each seed. Shape (seeds,)."""
        return np.array([values[name] for values in self.by_seed[scheme]])


def comparison(kept: Kept) -> str:
    """The Markdown: all schemes; where the learned one (or else the first) loses, by size and by load."""
    rows = Rows(kept)
    settings, schemes = rows.settings, list(rows.by_seed)
    first = LEARNED if LEARNED in schemes else schemes[0]
    cells = len(settings["ccs"]) * len(settings["sizes"]) * len(settings["loads"])
    last = settings["first_seed"] + settings["seeds"] - 1
    lines = [
        f"`{kept.header['command']}` (netbuf-gym {kept.header['version']}).",
        f"{cells} cells (cc x size x load), seeds {settings['first_seed']} to {last}, {settings['duration_s']:g} s each.",
        "Means over seeds ± half the 95 % interval; differences to the other schemes are paired by seed.",
        "",
        _schemes_table(rows, first, schemes),
    ]
    for other in schemes:
        if other != first and other in CELL_BY_CELL:
            lines += ["", f"**{first} against {other}**, 99th percentile of both over the flows of all seeds and ccs:", ""]
            lines.append(_cells_table(rows, first, other))
    return "\n".join(lines) + "\n"


def _schemes_table(rows: Rows, first: str, schemes: list[str]) -> str:
    names = ("slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps")
    ours, our_rate = rows.seeds(first, names[0]), rows.seeds(first, names[2])
    made = []
    for scheme in schemes:
        theirs, run_mean, rate = (rows.seeds(scheme, name) for name in names)
        cells = [scheme, spread(theirs, 2), spread(run_mean, 2), spread(rate, 3)]
        if scheme == first:
            cells += ["", "", ""]
        else:
            cells += [spread(ours - theirs, 2), spread(100 * (our_rate / rate - 1), 2), _wins(rows, first, scheme)]
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


def _wins(rows: Rows, first: str, other: str) -> str:
    ours, theirs = rows.by_cell[first], rows.by_cell[other]
    counted = [cell for cell, values in theirs.items() if values["flows_completed_p0"] >= LEAST_FLOWS]
    name = "slowdown_p99_p0"
    lower = sum(ours[cell][name] < theirs[cell][name] for cell in counted)
    higher = sum(ours[cell][name] > theirs[cell][name] for cell in counted)
    return f"{lower} / {len(counted) - lower - higher} / {higher}"


def _cells_table(rows: Rows, first: str, other: str) -> str:
    """Sizes down, loads across: ours / theirs, the flows of all ccs together; bold where ours is the higher one."""
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
