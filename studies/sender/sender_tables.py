"""Tables of what the studies measured, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import format_spread
from studies.common.results import Runs
from studies.sender import sender_claims as claims
from studies.sender import sender_worlds as worlds
from studies.sender import strangers_claims, trace_cells
from studies.sender.sender_schemes import NAMES, PLACES, label
from studies.sender.sender_settings import AGENTS, DELAY_STEP, GRID, OUTAGE, PPCC, REVERSE, RIVALS, START, STRANGERS, TRACES

SHOWN: dict[str, tuple[tuple[str, int, str], ...]] = {
    PPCC: (("utility", 3, "Utility"), ("queue_delay_ms", 2, "Mean time in the queue, ms")),
    START: (
        ("reach_s", 2, "Time until 0.5 s have delivered 90 % of the link, s"),
        ("queue_delay_ms", 1, "Mean time in the queue, ms"),
        ("loss", 4, "Share lost"),
    ),
    OUTAGE: (
        ("recover_s", 2, "Time to 80 % of the link, s; dropped: from the first delivery on"),
        ("first_s", 2, "Time from the link's return to the first delivery, s"),
        ("timeouts", 1, "Retransmission time-outs"),
    ),
    DELAY_STEP: (
        ("kept", 3, "Delivery after the change over that before"),
        ("settle_s", 1, "Time until queueing is below 10 ms, s"),
        ("queue_after_ms", 1, "Mean queueing in the second half after the change, ms"),
    ),
    REVERSE: (("use", 3, "Goodput over the link's rate"), ("queue_delay_ms", 1, "Mean time in the queue, ms")),
    RIVALS: (("share", 3, "Share of the delivery"), ("queue_delay_ms", 1, "Mean time in the queue, ms")),
    AGENTS: (
        ("jain", 3, "Jain's index"),
        ("queue_bdp", 2, "Queue, in bandwidth-delay products"),
        ("use", 3, "Goodput of all over the link's rate"),
        ("loss", 4, "Share lost"),
        ("converge_s", 1, "Longest time from a joining to Jain's index 0.9, s"),
    ),
}
"""Measures of each study, with digits and titles."""


def format_tables(runs: Runs, study: str) -> list[str]:
    """Return all tables of a study, each with a title line."""
    own = runs.where(study=study, step=0)
    if study == GRID:
        return [format_grid_table(own)]
    if study == TRACES:
        return [format_traces_table(own)]
    if study == STRANGERS:
        said = "Means over worlds, and of the world that is worst:"
        return [f"{said}\n\n{strangers_claims.format_measures_table(own, list_present_schemes(own))}"]
    made = []
    for measure, digits, said in SHOWN.get(study, ()):
        cells = [cell for cell in own.values("cell") if np.isfinite(own.where(cell=cell).columns[measure]).any()]
        if cells:
            made.append(f"{said}:\n\n{format_measure_table(own, study, measure, digits, cells)}")
    return made


def format_measure_table(own: Runs, study: str, measure: str, digits: int, cells: Sequence[str]) -> str:
    """Return a table of a measure by scheme and cell: means with half of their 95 % intervals."""
    rows = [
        [label(scheme), *(format_spread(own.where(scheme=scheme, cell=cell).columns[measure], digits) for cell in cells)]
        for scheme in list_present_schemes(own)
    ]
    return markdown_table(["scheme", *(worlds.describe_cell(study, cell) for cell in cells)], rows)


def format_grid_table(own: Runs) -> str:
    """Return a table of each scheme's mean utility over the grid, in how many cells it is best, and how far behind at worst."""
    cells = own.values("cell")
    means = {
        scheme: {cell: _compute_mean(own.where(scheme=scheme, cell=cell).columns["utility"]) for cell in cells}
        for scheme in list_present_schemes(own)
    }
    best = {}
    for cell in cells:
        utilities = {scheme: values[cell] for scheme, values in means.items()}
        best[cell] = max(utilities, key=utilities.__getitem__)
    rows = []
    for scheme, values in means.items():
        columns = own.where(scheme=scheme).columns
        by_cell: dict[str, list[float]] = {}
        for (cell, _), margin in claims.compute_margins(own, scheme).items():
            by_cell.setdefault(cell, []).append(margin)
        margins = {cell: float(np.mean(one)) for cell, one in by_cell.items()}
        worst = min(margins, key=lambda cell: margins[cell], default="")
        rows.append(
            [
                label(scheme),
                f"{np.mean([one for one in values.values() if math.isfinite(one)]):.3f}",
                f"{100 * np.nanmean(columns['use']):.1f}",
                f"{np.nanmean(columns['queue_delay_ms']):.1f}",
                f"{sum(one == scheme for one in best.values())}",
                f"{sum(one < -claims.BEHIND for one in margins.values())}",
                f"{margins[worst]:+.2f} ({describe_grid_cell(worst)})" if worst else "-",
            ]
        )
    head = ["scheme", "utility", "goodput, % of the link", "queueing, ms", f"best of all, of {len(cells)} cells"]
    said = f"Means over the {len(cells)} cells, and the distance from the best other classic control:"
    return f"{said}\n\n{markdown_table([*head, f'more than {claims.BEHIND:g} behind', 'most behind'], rows)}"


def describe_grid_cell(cell: str) -> str:
    """Return a cell of the grid in words."""
    rate, rtt, buffer, loss = cell.split("-")
    return f"{rate} Mbit/s, {rtt} ms, {buffer} BDP, {100 * float(loss):g} % lost"


def format_traces_table(own: Runs) -> str:
    """Return utility, share of the capacity and share lost by scheme and family of traces; means over windows and buffers."""
    families = [family for family in trace_cells.FILES if len(own.where(cell=trace_cells.list_cells(family)))]
    rows = []
    for scheme in list_present_schemes(own):
        row = [label(scheme)]
        for family in families:
            columns = own.where(scheme=scheme, cell=trace_cells.list_cells(family)).columns
            utility, use, loss = (_compute_mean(columns[name]) for name in ("utility", "use", "loss"))
            row.append(f"{utility:.3f}; {use:.2f}; {100 * loss:.2f}" if len(columns["utility"]) else "-")
        rows.append(row)
    head = ["scheme", *(trace_cells.SAID[family] for family in families)]
    return f"Utility; goodput over the mean capacity; % lost:\n\n{markdown_table(head, rows)}"


def list_present_schemes(own: Runs) -> list[str]:
    """Return the schemes that ran, in the order of `NAMES`."""
    there = own.values("scheme")
    return [scheme for scheme in NAMES if scheme in there]


def choose_featured_scheme(own: Runs) -> str:
    """Return the scheme that figures about one scheme show: the agent, else the rule `queue_target`, else the first other."""
    there = [scheme for scheme in (PLACES[0], "queue_target", *PLACES) if scheme in own.values("scheme")]
    return there[0]


def _compute_mean(values: np.ndarray) -> float:
    """Return the mean of the finite values; minus infinity without any."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else -math.inf
