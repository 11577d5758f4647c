"""Claims over several training seeds: each agent's campaign beside the runs of other schemes, which are kept already."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.campaign import RUNS, read_finished
from studies.common.cells import KEYS, TEXTS
from studies.common.judging import HOLDS
from studies.common.kept import DIGITS, build_path, read_rows, write_rows
from studies.common.results import Runs
from studies.common.showing import remove_local_paths
from studies.sender import sender_claims as claims
from studies.sender import trace_cells
from studies.sender.sender_measures import MEASURES
from studies.sender.sender_schemes import LEARNED
from studies.sender.sender_settings import GRID, TRACES, Settings

PARTS = ("links", "events")
SECTION = "seeds"


def keep_seeds(source: Path, root: Path) -> Path:
    """Keep the agents' runs of all training seeds, with each seed as a scheme's name, and return their path.

    Args:
        source: Folder with a folder named after each training seed, which holds the finished campaigns `PARTS` of
            `schemes=[agent]`.
        root: Root of the checkout.

    Raises:
        ConfigError: There is no folder of a training seed, or a campaign is of other schemes.
    """
    names = sorted((path.name for path in source.iterdir() if path.name.isdigit()), key=int)
    if not names:
        raise ConfigError(f"{source}: holds no folder of a training seed; valid: SEED/{PARTS[0]}, SEED/{PARTS[1]}")
    found, commands = [], []
    for part in PARTS:
        for name in names:
            description = read_finished(source / name / part)
            runs = Runs.read(source / name / part / RUNS, KEYS, TEXTS, tuple(MEASURES))
            if runs.values("scheme") != [LEARNED]:
                raise ConfigError(f"{source / name / part}: of schemes {runs.values('scheme')}; valid: schemes=[{LEARNED}]")
            found.append(replace(runs, columns=runs.columns | {"scheme": np.full(len(runs), name)}).where(step=0))
        commands.append(remove_local_paths(description["command"]))
    header = {"command": " and ".join(f"`{command}`" for command in commands), "others": ", ".join(names[:-1])}
    return write_rows(root, Settings.experiment, SECTION, header, concatenate_runs(found).to_csv(DIGITS))


def read_other_runs(root: Path, part: str) -> Runs:
    """Return the kept runs of a section, without the agent's.

    Raises:
        ConfigError: No runs of the section are kept.
    """
    kept = read_rows(root, Settings.experiment, part)
    if kept is None:
        path = build_path(root, Settings.experiment, part)
        raise ConfigError(f"{path} is not there; valid: the rows of {part} before those of {SECTION}")
    runs = kept.runs(KEYS, TEXTS, MEASURES)
    return runs.mask(runs.columns["scheme"] != LEARNED)


def concatenate_runs(several: list[Runs]) -> Runs:
    """Concatenate the rows of several sets of runs."""
    first = several[0]
    columns = {name: np.concatenate([runs.columns[name] for runs in several]) for name in (*first.keys, *first.measures)}
    return replace(first, columns=columns)


def format_seeds_table(agents: Runs, beside: Runs) -> str:
    """Return a table of all claims by training seed, bold where they hold, with means and 95 % t intervals over these seeds."""
    names = agents.values("scheme")
    each = []
    for name in names:
        own = agents.where(scheme=name)
        own = replace(own, columns=own.columns | {"scheme": np.full(len(own), LEARNED)})
        each.append(judge_claims(concatenate_runs([own, beside])))
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


def judge_claims(runs: Runs) -> dict[str, tuple[float, bool, int, str]]:
    """Return for each claim about the agent: the measure, whether the claim holds, the measure's digits, the measure's unit."""
    found: dict[str, tuple[float, bool, int, str]] = {}
    for claim in claims.LIMITS:
        if len(runs.where(study=claim.study, cell=claim.cells, scheme=LEARNED)):
            value = claims.measure_claim(claim, runs, LEARNED)
            held = claims.decide_verdict(value, claims.compute_lower_limit(claim, runs, LEARNED), claim.high) == HOLDS
            found[claim.text] = value.mean, held, claim.digits, ""
    if (share := claims.compute_behind_share(runs.where(study=GRID), LEARNED)) is not None:
        held = claims.decide_verdict(share, -math.inf, 100 * claims.BEHIND_IN) == HOLDS
        found[claims.BEHIND_SAID] = share.mean, held, 1, " %"
    for family in trace_cells.FILES:
        gap = claims.compute_gap(runs.where(study=TRACES, cell=trace_cells.list_cells(family)), LEARNED)
        if gap is not None:
            held = gap.ahead.low > 0 and gap.closed.mean >= claims.CLOSED
            found[claims.describe_gap_claim(family)] = 100 * gap.closed.mean, held, 0, " %"
    return found
