"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.plants.linux.plant import LATE_INTERVALS
from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, find_figure_names, show_figures
from studies.common.verdicts import format_verdicts_table
from studies.live import judging
from studies.live.live_measures import MEASURES
from studies.live.live_work import KEYS, LIVE, TEXTS
from studies.live.live_worlds import WORLDS


def get_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def format_campaign(kept: KeptRows) -> str:
    """Return the Markdown of a campaign of one task."""
    begun = f"{describe_run(kept.header)} Begun {kept.header.get('begun', 'on a day not recorded')}."
    lines = [begun, "", describe_rows_file(kept), ""]
    for said in format_tables(get_runs(kept), kept.header["settings"]["noise_ms"]):
        lines += [said, ""]
    return "\n".join([*lines, "### Figures", "", *show_figures(kept, find_figure_names(kept, f"*_{kept.section}.png"))])


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the table of how many worlds of each controller agree, and how many pairs keep their order, by task."""
    rows = [row for task, kept in sections.items() if task in WORLDS for row in judging.make_verdict_rows(get_runs(kept))]
    return format_verdicts_table(rows, ("claim", "target", "ours", "verdict"))


def format_tables(runs: Runs, noise_ms: float) -> list[str]:
    """Return tables of the runs of a task.

    Args:
        runs: Runs of one task.
        noise_ms: Mean delay of packets at each host in the simulator's noisy runs; 0: there are no such runs.
    """
    cells = judging.collect_cells(runs)
    parts = [
        f"{sum(cell.within for cell in cells)} of {len(cells)} cells are within tolerance: utilities within "
        f"{judging.RELATIVE_TOLERANCE:.0%} or {judging.ABSOLUTE_TOLERANCE:g}, "
        f"mean slowdowns within {judging.SLOWDOWN_TOLERANCE:.0%}." + _describe_noise(cells, noise_ms),
        judging.format_summary_table(cells),
    ]
    if not all(cell.within for cell in cells):
        parts += ["### Cells out of tolerance", judging.format_outside_table(cells)]
    return [*parts, "### Order of the controllers", judging.describe_order(cells), "### The emulator", _describe_emulator(runs)]


def _describe_noise(cells: list[judging.Cell], noise_ms: float) -> str:
    if not noise_ms:
        return ""
    near = sum(cell.within_noise for cell in cells)
    return f" With packets that are {noise_ms:g} ms late in the mean at each host of the simulator's it is {near}."


def _describe_emulator(runs: Runs) -> str:
    """Return a sentence on the delays and rate errors of the emulator."""
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
        f"Its {rates}.{_describe_decisions(runs)}"
    )


def _describe_decisions(runs: Runs) -> str:
    """Return a sentence on the runs in which controllers decided too late; empty where none did, or nothing is known."""
    own = runs.where(plant=LIVE)
    intervals_s = np.array([tasks.get(task).rules.default_interval_s for task in own.columns["task"]])
    late = np.count_nonzero(own.columns["interval_p50_s"] > LATE_INTERVALS * intervals_s)
    return f" Controllers decided at less than two thirds of their pace in {late} of {len(own)} runs." if late else ""


SECTIONS: dict[str, Section] = dict.fromkeys(WORLDS, format_campaign)
