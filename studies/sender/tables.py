"""What the studies measured, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import spread
from studies.common.results import Runs
from studies.sender import claims, trace_cells, worlds
from studies.sender.schemes import NAMES, PLACES, label
from studies.sender.settings import AGENTS, DELAY_STEP, GRID, OUTAGE, PPCC, REVERSE, RIVALS, START, TRACES

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
"""Of each study measures, with digits and titles."""


def tables(runs: Runs, study: str) -> list[str]:
    """All tables of a study, each with a line that says what it shows."""
    own = runs.where(study=study, step=0)
    if study == GRID:
        return [grid_table(own)]
    if study == TRACES:
        return [traces_table(own)]
    made = []
    for measure, digits, said in SHOWN.get(study, ()):
        cells = [cell for cell in own.values("cell") if np.isfinite(own.where(cell=cell).columns[measure]).any()]
        if cells:
            made.append(f"{said}:\n\n{measure_table(own, study, measure, digits, cells)}")
    return made


def measure_table(own: Runs, study: str, measure: str, digits: int, cells: Sequence[str]) -> str:
    """A measure by scheme and cell: means with half of their 95 % intervals."""
    rows = [
        [label(scheme), *(spread(own.where(scheme=scheme, cell=cell).columns[measure], digits) for cell in cells)]
        for scheme in present(own)
    ]
    return markdown_table(["scheme", *(worlds.cell_said(study, cell) for cell in cells)], rows)


def grid_table(own: Runs) -> str:
    """Of each scheme the mean utility over the grid, how often it is the best of all, and how far it is behind at worst."""
    cells = own.values("cell")
    means = {
        scheme: {cell: _mean(own.where(scheme=scheme, cell=cell).columns["utility"]) for cell in cells}
        for scheme in present(own)
    }
    best = {cell: max(means, key=lambda scheme, cell=cell: means[scheme][cell]) for cell in cells}
    rows = []
    for scheme, values in means.items():
        columns = own.where(scheme=scheme).columns
        by_cell: dict[str, list[float]] = {}
        for (cell, _), margin in claims.margins(own, scheme).items():
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
                f"{margins[worst]:+.2f} ({grid_said(worst)})" if worst else "-",
            ]
        )
    head = ["scheme", "utility", "goodput, % of the link", "queueing, ms", f"best of all, of {len(cells)} cells"]
    said = f"Means over the {len(cells)} cells, and the distance from the best other classic control:"
    return f"{said}\n\n{markdown_table([*head, f'more than {claims.BEHIND:g} behind', 'most behind'], rows)}"


def grid_said(cell: str) -> str:
    """A cell of the grid in words."""
    rate, rtt, buffer, loss = cell.split("-")
    return f"{rate} Mbit/s, {rtt} ms, {buffer} BDP, {100 * float(loss):g} % lost"


def traces_table(own: Runs) -> str:
    """Of each scheme and family of traces utility, share of the capacity and share lost; means over windows and buffers."""
    families = [family for family in trace_cells.FILES if len(own.where(cell=trace_cells.cells_of(family)))]
    rows = []
    for scheme in present(own):
        row = [label(scheme)]
        for family in families:
            columns = own.where(scheme=scheme, cell=trace_cells.cells_of(family)).columns
            utility, use, loss = (_mean(columns[name]) for name in ("utility", "use", "loss"))
            row.append(f"{utility:.3f}; {use:.2f}; {100 * loss:.2f}" if len(columns["utility"]) else "-")
        rows.append(row)
    head = ["scheme", *(trace_cells.SAID[family] for family in families)]
    return f"Utility; goodput over the mean capacity; % lost:\n\n{markdown_table(head, rows)}"


def present(own: Runs) -> list[str]:
    """The schemes that ran, in their order."""
    there = own.values("scheme")
    return [scheme for scheme in NAMES if scheme in there]


def about(own: Runs) -> str:
    """Whom figures about one scheme are about: the agent, or who else there is in its place, a rule before controls."""
    there = [scheme for scheme in (PLACES[0], "queue_target", *PLACES) if scheme in own.values("scheme")]
    return there[0]


def _mean(values: np.ndarray) -> float:
    """Of what is finite; the least there is where nothing is."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else -math.inf
