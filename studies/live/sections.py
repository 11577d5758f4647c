"""What the page about the campaign shows of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ConfigError
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, kept, pictures, ran, write_means, write_rows
from studies.live import judging
from studies.live.measures import MEASURES
from studies.live.work import KEYS, LIVE, TEXTS
from studies.live.worlds import WORLDS


def policies(task: str, source: Path, folder: Path) -> str:
    """The Markdown of a campaign of one task; copies its figures, its runs and their means."""
    description = described(source)
    if description["settings"]["tasks"] != [task]:
        raise ConfigError(f"{source}: has tasks {description['settings']['tasks']}; valid for the section {task}: [{task}]")
    runs = Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))
    runs = write_rows(runs, TEXTS, folder / f"rows-{task}.csv.gz")
    write_means(runs, folder / f"means-{task}.csv.gz")
    begun = f"{ran(description)} Begun {description.get('begun', 'on a day not recorded')}."
    lines = [begun, "", kept(folder, f"rows-{task}.csv.gz"), ""]
    for said in tables_of(runs, description["settings"]["noise_ms"]):
        lines += [said, ""]
    lines += ["### Figures", "", *pictures(sorted((source / "figures").glob("*.png")), folder)]
    return "\n".join(lines)


def tables_of(runs: Runs, noise_ms: float) -> list[str]:
    """What is said of the runs of a task, as the page has it.

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
    return [*parts, "### Order of the contenders", judging.order_said(cells), "### The emulator", _emulator(runs)]


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


SECTIONS: dict[str, Section] = {task: partial(policies, task) for task in WORLDS}
