"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import names_drawn, pictures, ran, where_rows_are
from studies.common.verdicts import verdicts_table
from studies.live import judging
from studies.live.measures import MEASURES
from studies.live.work import KEYS, LIVE, TEXTS
from studies.live.worlds import WORLDS


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def policies(kept: Kept) -> str:
    """The Markdown of a campaign of one task."""
    begun = f"{ran(kept.header)} Begun {kept.header.get('begun', 'on a day not recorded')}."
    lines = [begun, "", where_rows_are(kept), ""]
    for said in tables_of(runs_of(kept), kept.header["settings"]["noise_ms"]):
        lines += [said, ""]
    return "\n".join([*lines, "### Figures", "", *pictures(kept, names_drawn(kept, f"*_{kept.section}.png"))])


def verdicts(sections: Mapping[str, Kept]) -> str:
    """How many worlds of each controller agree, and how many pairs keep their order, by task."""
    rows = [row for task, kept in sections.items() if task in WORLDS for row in judging.verdict_rows(runs_of(kept))]
    return verdicts_table(rows, ("claim", "target", "ours", "verdict"))


def tables_of(runs: Runs, noise_ms: float) -> list[str]:
    """Tables of the runs of a task.

    Args:
        noise_ms: How late packets are in the mean at each host of the simulator's further runs; 0: there are none.
    """
    cells = judging.cells_of(runs)
    parts = [
        f"{sum(cell.within for cell in cells)} of {len(cells)} cells are within tolerance: utilities within "
        f"{judging.RELATIVE:.0%} or {judging.ABSOLUTE:g}, mean slowdowns within {judging.OF_SLOWDOWN:.0%}."
        + _with_noise(cells, noise_ms),
        judging.summary_table(cells),
    ]
    if not all(cell.within for cell in cells):
        parts += ["### Cells out of tolerance", judging.outside_table(cells)]
    return [*parts, "### Order of the controllers", judging.order_said(cells), "### The emulator", _emulator(runs)]


def _with_noise(cells: list[judging.Cell], noise_ms: float) -> str:
    if not noise_ms:
        return ""
    near = sum(cell.within_noise for cell in cells)
    return f" With packets that are {noise_ms:g} ms late in the mean at each host of the simulator's it is {near}."


def _emulator(runs: Runs) -> str:
    """How late it was."""
    live = runs.where(plant=LIVE).columns
    if not len(live["late_p50_ms"]) or np.isnan(live["late_p50_ms"]).all():
        return "Not measured."
    half, most, worst = (np.nanmedian(live[f"late_{name}_ms"]) for name in ("p50", "p99", "max"))
    errors = np.abs(live["rate_error"][np.isfinite(live["rate_error"])])
    rates = "links were never saturated for long"
    if len(errors):
        rates = f"rates were off by {np.median(errors):.3%} at the median, {errors.max():.2%} at most"
    read_half, read_most = (np.nanmedian(live[f"read_late_{name}_ms"]) for name in ("p50", "p99"))
    return (
        f"Packets were read within {read_half:.3f} ms at the median, {read_most:.2f} ms at the 99th percentile, and left it "
        f"{half:.3f} ms late at the median, {most:.2f} ms at the 99th percentile, {worst:.1f} ms at most (medians over runs). "
        f"Its {rates}."
    )


SECTIONS: dict[str, Section] = dict.fromkeys(WORLDS, policies)
