"""Tables of the paper from a campaign's results, with the paper's numbers beside ours, as Markdown."""

from __future__ import annotations

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import format_spread
from studies.common.results import Runs
from studies.ppcc import paper
from studies.ppcc.ppcc_schemes import label
from studies.ppcc.ppcc_settings import CONSTANTS, SENDERS

SHOWN = (("delay_ms", 2, 1.0), ("goodput_mbps", 2, 1.0), ("loss", 2, 1e5), ("mt", 2, 1.0), ("utility", 3, 1.0))
"""Measures of Table III, with digits and factors."""
TITLES = ("E(t_d), ms", "E(thr), Mbit/s", "loss, 1e-5", "Mt", "utility")
OF_SENDERS = (
    ("mt", 2, "Mt (Fig. 4d)"),
    ("rtt_ms", 1, "Mean RTT, ms (Fig. 5)"),
    ("goodput_mbps", 2, "Throughput of a sender, Mbit/s (Fig. 5)"),
    ("utility", 3, "Utility"),
    ("jain", 3, "Jain's index"),
)


def format_table_3(runs: Runs, study: str, number: str) -> str:
    """Return one scenario of Table III in a study: means with half of their 95 % intervals, and the paper's values."""
    own, rows = runs.where(study=study, cell=number), []
    for scheme in own.values("scheme"):
        columns = own.where(scheme=scheme).columns
        row = [label(scheme), *(format_spread(factor * columns[name], digits) for name, digits, factor in SHOWN)]
        said = paper.TABLE_3[number].get(scheme)
        papers = "" if said is None else f"{said.delay_ms:g}; {said.goodput_mbps:g}; {1e5 * said.loss:.3g}; {said.mt:g}"
        rows.append([*row, papers])
    return markdown_table(["scheme", *TITLES, "paper: ms; Mbit/s; 1e-5; Mt"], rows)


def format_senders_table(runs: Runs, measure: str, digits: int) -> str:
    """Return a table of a measure by scheme, and by rate and number of senders."""
    own = runs.where(study=SENDERS)
    cells = own.values("cell")
    rows = [
        [label(scheme), *(format_spread(own.where(scheme=scheme, cell=cell).columns[measure], digits) for cell in cells)]
        for scheme in own.values("scheme")
    ]
    return markdown_table(["scheme", *(cell.replace("-", " x ") for cell in cells)], rows)


def describe_silent_senders(runs: Runs) -> str:
    """Return a sentence on the schemes with senders of which nothing was acknowledged; "" where none has."""
    own, parts = runs.where(study=SENDERS), []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme)
        if silent := int(np.nansum(here.columns["silent"])):
            senders = sum(int(cell.rpartition("-")[2]) for cell in here.columns["cell"].tolist())
            parts.append(f"{label(scheme)}: {silent} of {senders} senders")
    said = "Senders of which nothing was acknowledged in the whole run, and which means of delays and utilities are without"
    return f"{said}: {'; '.join(parts)}." if parts else ""


def format_constants_table(runs: Runs) -> str:
    """Return a table of utility and Mt of constant windows in each scenario; bold where the utility is highest."""
    own = runs.where(study=CONSTANTS)
    cells, steps = own.values("cell"), sorted(own.values("step"))
    means = {(cell, step): _compute_means(own.where(cell=cell, step=step)) for cell in cells for step in steps}
    best = {}
    for cell in cells:
        utilities = {step: means[cell, step][0] for step in steps}
        best[cell] = max(utilities, key=utilities.__getitem__)
    rows = []
    for step in steps:
        texts = [f"{means[cell, step][0]:.3f}; {means[cell, step][1]:.2f}" for cell in cells]
        rows.append([f"{step:.0f}", *(f"**{t}**" if best[c] == step else t for c, t in zip(cells, texts, strict=True))])
    return markdown_table(["packets", *(f"{cell}: utility; Mt" for cell in cells)], rows)


def _compute_means(own: Runs) -> tuple[float, float]:
    found = [float(np.mean(own.columns[name])) for name in ("utility", "mt")]
    return found[0], found[1]
