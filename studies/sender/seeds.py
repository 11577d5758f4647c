"""The claims over several training seeds: each agent's campaign beside the others' runs, which are kept already."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.campaign import RUNS, finished
from studies.common.cells import KEYS, TEXTS
from studies.common.judging import HOLDS
from studies.common.kept import DIGITS, path_of, read, write
from studies.common.results import Runs
from studies.common.showing import of_any_machine
from studies.sender import claims, trace_cells
from studies.sender.measures import MEASURES
from studies.sender.schemes import LEARNED
from studies.sender.settings import GRID, TRACES, Settings

PARTS = ("links", "events")
SECTION = "seeds"


def keep(source: Path, root: Path) -> Path:
    """Keeps the agents' runs of all training seeds, as schemes of the seeds' names.

    Args:
        source: A folder for each training seed, named by it, with the finished campaigns `PARTS` of `schemes=[agent]`.
        root: The checkout.

    Raises:
        ConfigError: No training seed's folder, or one of other schemes.
    """
    names = sorted((path.name for path in source.iterdir() if path.name.isdigit()), key=int)
    if not names:
        raise ConfigError(f"{source}: holds no folder of a training seed; valid: SEED/{PARTS[0]}, SEED/{PARTS[1]}")
    found, commands = [], []
    for part in PARTS:
        for name in names:
            description = finished(source / name / part)
            runs = Runs.read(source / name / part / RUNS, KEYS, TEXTS, tuple(MEASURES))
            if runs.values("scheme") != [LEARNED]:
                raise ConfigError(f"{source / name / part}: of schemes {runs.values('scheme')}; valid: schemes=[{LEARNED}]")
            found.append(replace(runs, columns=runs.columns | {"scheme": np.full(len(runs), name)}).where(step=0))
        commands.append(of_any_machine(description["command"]))
    header = {"command": " and ".join(f"`{command}`" for command in commands), "others": ", ".join(names[:-1])}
    return write(root, Settings.experiment, SECTION, header, together(found).rows_csv(DIGITS))


def others(root: Path, part: str) -> Runs:
    """Who is no agent, of the runs that are kept of a section.

    Raises:
        ConfigError: There are none.
    """
    kept = read(root, Settings.experiment, part)
    if kept is None:
        path = path_of(root, Settings.experiment, part)
        raise ConfigError(f"{path} is not there; valid: the rows of {part} before those of {SECTION}")
    runs = kept.runs(KEYS, TEXTS, MEASURES)
    return runs.kept(runs.columns["scheme"] != LEARNED)


def together(several: list[Runs]) -> Runs:
    """The rows of several, one after the other."""
    first = several[0]
    columns = {name: np.concatenate([runs.columns[name] for runs in several]) for name in (*first.keys, *first.measures)}
    return replace(first, columns=columns)


def table(agents: Runs, beside: Runs) -> str:
    """Every claim by training seed, those that hold in bold, and the mean over training seeds with its 95 % t interval."""
    names = agents.values("scheme")
    each = []
    for name in names:
        own = agents.where(scheme=name)
        own = replace(own, columns=own.columns | {"scheme": np.full(len(own), LEARNED)})
        each.append(verdicts(together([own, beside])))
    rows = []
    for text in each[0]:
        values = [one[text][0] for one in each]
        hold = [one[text][1] for one in each]
        digits, unit = each[0][text][2:]
        mean = statistics.mean_interval(np.array(values)) if all(map(math.isfinite, values)) else None
        over = "-" if mean is None else f"{mean.mean:.{digits}f}{unit} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]"
        cells = [
            f"**{value:.{digits}f}{unit}**" if held else f"{value:.{digits}f}{unit}"
            for value, held in zip(values, hold, strict=True)
        ]
        rows.append([text, over, f"{sum(hold)} of {len(hold)}", *cells])
    return markdown_table(["claim", "over training seeds", "holds", *names], rows)


def verdicts(runs: Runs) -> dict[str, tuple[float, bool, int, str]]:
    """Of each claim about the agent: its measure, whether it holds, the measure's digits, its unit."""
    found: dict[str, tuple[float, bool, int, str]] = {}
    for claim in claims.LIMITS:
        if len(runs.where(study=claim.study, cell=claim.cells, scheme=LEARNED)):
            value = claims.measured(claim, runs, LEARNED)
            held = claims.verdict(value, claims.least(claim, runs, LEARNED), claim.high) == HOLDS
            found[claim.text] = value.mean, held, claim.digits, ""
    if (share := claims.behind(runs.where(study=GRID), LEARNED)) is not None:
        held = claims.verdict(share, -math.inf, 100 * claims.BEHIND_IN) == HOLDS
        found[claims.BEHIND_SAID] = share.mean, held, 1, " %"
    for family in trace_cells.FILES:
        gap = claims.gap(runs.where(study=TRACES, cell=trace_cells.cells_of(family)), LEARNED)
        if gap is not None:
            held = gap.ahead.low > 0 and gap.closed.mean >= claims.CLOSED
            found[claims.closed_said(family)] = 100 * gap.closed.mean, held, 0, " %"
    return found
