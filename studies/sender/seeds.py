"""The musts over several training seeds: each agent's campaign beside the others' runs, which the page has already.

A folder holds a folder for each training seed, named by it, with the campaigns `links` and `events` of `schemes=[agent]`.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from netbuf_gym import stats
from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.tables import markdown_table
from studies.common.cells import KEYS, TEXTS
from studies.common.judging import HOLDS
from studies.common.results import Runs
from studies.common.showing import described, kept, of_any_machine, write_rows
from studies.sender import claims, trace_cells
from studies.sender.measures import MEASURES
from studies.sender.schemes import LEARNED
from studies.sender.settings import GRID, TRACES

PARTS = ("links", "events")


def shown(source: Path, folder: Path) -> str:
    """The Markdown of the musts by training seed; keeps the agents' runs in `rows-seeds.csv.gz`.

    Raises:
        ConfigError: no training seed's folder, one without its campaigns, or of other schemes; no runs of others.
    """
    names = sorted((path.name for path in source.iterdir() if path.name.isdigit()), key=int)
    if not names:
        raise ConfigError(f"{source}: holds no folder of a training seed; valid: SEED/{PARTS[0]}, SEED/{PARTS[1]}")
    found, commands = [], []
    for part in PARTS:
        for name in names:
            description, runs = described(source / name / part), Runs.read(source / name / part / "runs.csv", KEYS, TEXTS, _ALL)
            if runs.values("scheme") != [LEARNED]:
                raise ConfigError(f"{source / name / part}: of schemes {runs.values('scheme')}; valid: schemes=[{LEARNED}]")
            schemes = np.full(len(runs), name)
            found.append(replace(runs, columns=runs.columns | {"scheme": schemes}).where(step=0))
        commands.append(of_any_machine(description["command"]))
    agents = write_rows(together(found), TEXTS, folder / "rows-seeds.csv.gz")
    said = " and ".join(f"`{command}`" for command in commands)
    lines = [f"{said}, and likewise of seeds {', '.join(names[:-1])}.", "", kept(folder, "rows-seeds.csv.gz"), ""]
    return "\n".join([*lines, table(agents, together([others(folder, part) for part in PARTS])), ""])


_ALL = tuple(MEASURES)


def others(folder: Path, part: str) -> Runs:
    """Who is no agent, of the runs that the page keeps.

    Raises:
        ConfigError: it keeps none.
    """
    path = folder / f"rows-{part}.csv.gz"
    try:
        runs = Runs.of_rows(gzip.decompress(path.read_bytes()).decode(), KEYS, TEXTS, _ALL)
    except (OSError, EOFError, ReferenceDataError) as error:
        raise ConfigError(f"{path}: holds no runs ({error}); valid: the page's section {part} first") from None
    return runs.kept(runs.columns["scheme"] != LEARNED)


def together(several: list[Runs]) -> Runs:
    """The rows of several, one after the other."""
    first = several[0]
    columns = {name: np.concatenate([runs.columns[name] for runs in several]) for name in (*first.keys, *first.measures)}
    return replace(first, columns=columns)


def table(agents: Runs, beside: Runs) -> str:
    """Every must by training seed, those that hold in bold, and the mean over training seeds with its 95 % t interval."""
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
        mean = stats.mean_interval(np.array(values)) if all(map(math.isfinite, values)) else None
        over = "-" if mean is None else f"{mean.mean:.{digits}f}{unit} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]"
        cells = [
            f"**{value:.{digits}f}{unit}**" if held else f"{value:.{digits}f}{unit}"
            for value, held in zip(values, hold, strict=True)
        ]
        rows.append([text, over, f"{sum(hold)} of {len(hold)}", *cells])
    return markdown_table(["claim", "over training seeds", "holds", *names], rows)


def verdicts(runs: Runs) -> dict[str, tuple[float, bool, int, str]]:
    """Of each must of the agent: its measure, whether it holds, the measure's digits, its unit."""
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
