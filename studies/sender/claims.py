"""Targets of a sender for real paths, checked against a campaign's results.

Claims are about the agent, and judged for whoever plays in its place, so that it can be seen what others have of it. A claim
*holds* when the whole 95 % interval over seeds is within its limits, *does not hold* when all of it is beyond one, and is *not
shown* in between. Of traces, units are windows by trace and buffer, and intervals are bootstrapped over these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import HOLDS, SLIGHT, interval
from studies.common.results import Runs
from studies.common.verdicts import verdicts_table
from studies.sender import trace_cells, worlds
from studies.sender.bounds import CAUSAL
from studies.sender.schemes import CLASSIC, LEARNED, PLACES, label
from studies.sender.settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    TRACES,
)
from studies.sender.worlds import cell_said

NOT, NOT_SHOWN = "does not hold", "not shown"
BEHIND, BEHIND_IN = 0.02, 0.05
"""In so large a share of the grid's cells an agent may be so much of utility behind the best classic control."""
BEHIND_SAID = f"at most {100 * BEHIND_IN:g} % of the cells more than {BEHIND:g} behind the best classic control"
CLOSED = 2 / 3
"""Share of the gap between the best classic control and the causal bound."""
MOST_LOSS = 0.01
RESAMPLES = 2000


@dataclass(frozen=True)
class Limits:
    """That a measure is within limits in a cell.

    Attributes:
        text: What it says.
        study, cells: Where; of several cells the mean counts, and they are the units, each the mean over its seeds.
        measure: What of.
        low, high: The limits.
        twice: A scheme of whose own value there twice is enough, where that is below `low`.
        digits: Behind the point.
    """

    text: str
    study: str
    cells: tuple[str, ...]
    measure: str
    low: float = -math.inf
    high: float = math.inf
    twice: str = ""
    digits: int = 2


def _of_cell(study: str, cell: str) -> list[Limits]:
    """What is claimed of a cell; of one on another path what is of its study."""
    own, inner = cell.split(":")[:2] if study == ELSEWHERE else (study, cell)
    said, where = cell_said(study, cell), (study, (cell,))
    if own == OUTAGE:
        return [Limits(f"{said}: 80 % of the link within 2 s", *where, "recover_s", high=2.0)]
    if own == DELAY_STEP and inner.startswith("up"):
        return [Limits(f"{said}: 90 % of the goodput before", *where, "kept", low=0.9)]
    if own == DELAY_STEP:
        return [Limits(f"{said}: queueing below 10 ms within 15 s", *where, "settle_s", high=15.0)]
    if own == REVERSE:
        return [Limits(f"{said}: goodput of 85 % of the link", *where, "use", low=0.85)]
    if own == RIVALS:
        rival = inner.partition("-")[0]
        if rival == "cubic":
            return [Limits(f"{said}: 0.35 to 0.65 of the link", *where, "share", 0.35, 0.65)]
        if rival == "bbr":
            return [Limits(f"{said}: 0.25, or twice CUBIC's share there", *where, "share", low=0.25, twice="cubic")]
        return [Limits(f"{said}: NewReno keeps 0.3", *where, "share", high=0.7)]
    if inner.startswith(worlds.JOIN):
        return [Limits(f"{said}: Jain's index 0.9 within 10 s of each", *where, "converge_s", high=10.0)]
    if inner in ("4-1", "4-4"):
        even = Limits(f"{said}: Jain's index 0.97", *where, "jain", low=0.97, digits=3)
        return [even, Limits(f"{said}: at most 0.5 BDP queued", *where, "queue_bdp", high=0.5)]
    return [Limits(f"{said}: Jain's index 0.9", *where, "jain", low=0.9, digits=3)] if inner == "8-4" else []


LIMITS: tuple[Limits, ...] = (
    *(
        Limits(f"ppcc/{cell}: utility at least -0.036", PPCC, (cell,), "utility", -0.036, digits=4)
        for cell in worlds.PPCC_CELLS
    ),
    *(
        Limits(f"1 Gbit/s, {cell} BDP: 90 % of the link within 3 s", START, (cell,), "reach_s", high=3.0)
        for cell in worlds.START_CELLS
    ),
    *(
        Limits(
            f"{trace_cells.SAID[family]}: at most 1 % lost",
            TRACES,
            trace_cells.cells_of(family),
            "loss",
            high=MOST_LOSS,
            digits=4,
        )
        for family in trace_cells.FILES
    ),
    *(
        claim
        for study, cells in (
            (OUTAGE, worlds.OUTAGE_CELLS),
            (DELAY_STEP, worlds.STEP_CELLS),
            (REVERSE, worlds.REVERSE_CELLS),
            (RIVALS, worlds.RIVAL_CELLS),
            (AGENTS, worlds.AGENT_CELLS),
            (ELSEWHERE, worlds.OTHER_CELLS),
        )
        for cell in cells
        for claim in _of_cell(study, cell)
    ),
)
"""All but those on the grid, and on how near traces' bounds are."""


def verdict(found: statistics.Interval, low: float, high: float) -> str:
    """Whether an interval is within limits."""
    if found.low >= low and found.high <= high:
        return HOLDS
    return NOT if found.high < low or found.low > high else NOT_SHOWN


def judged(claim: Limits, runs: Runs, scheme: str) -> str:
    """A claim about a scheme, as a cell of a table; "-" where it did not run."""
    own = _of(runs, claim, scheme)
    if not len(own):
        return "-"
    values = own.columns[claim.measure]
    if lacking := int((~np.isfinite(values)).sum()):
        return f"not measured in {lacking} of {len(values)} runs: {NOT}"
    found = measured(claim, runs, scheme)
    return _said(found, claim.digits, verdict(found, least(claim, runs, scheme), claim.high))


def measured(claim: Limits, runs: Runs, scheme: str) -> statistics.Interval:
    """The claim's measure of a scheme, over seeds or over cells; NaN where it did not run or was not measured."""
    own = _of(runs, claim, scheme)
    if not len(own) or not np.isfinite(own.columns[claim.measure]).all():
        return statistics.Interval(math.nan, math.nan, math.nan)
    if len(claim.cells) > 1:
        return _over_cells(own, claim.measure)
    found = interval(list(own.by_seed(claim.measure).values()))
    assert found is not None
    return found


def least(claim: Limits, runs: Runs, scheme: str) -> float:
    """The claim's lower limit, which another scheme may have made lower."""
    if claim.twice and scheme != claim.twice and len(other := _of(runs, claim, claim.twice)):
        return min(claim.low, 2 * float(np.mean(other.columns[claim.measure])))
    return claim.low


def claims_table(runs: Runs, study: str) -> str:
    """All claims about a study, for whoever plays in the agent's place; "" where there is none."""
    own = runs.where(study=study, step=0)
    schemes = [scheme for scheme in PLACES if scheme in own.values("scheme")]
    rows = [[claim.text, *(judged(claim, own, scheme) for scheme in schemes)] for claim in LIMITS if claim.study == study]
    if study == GRID:
        rows += [[BEHIND_SAID]]
        rows[-1] += [behind_said(own, scheme) for scheme in schemes]
    if study == TRACES:
        for family in trace_cells.FILES:
            cells = [gap_said(own.where(cell=trace_cells.cells_of(family)), scheme) for scheme in schemes]
            rows.append([closed_said(family), *cells])
    rows = [row for row in rows if any(cell != "-" for cell in row[1:])]
    return markdown_table(["claim", *map(label, schemes)], rows) if rows and schemes else ""


def verdicts_of(runs: Runs, titles: Mapping[str, str]) -> str:
    """The table of verdicts about the agent: a row for each target of a study, of all its cells the furthest from it.

    Args:
        titles: Of the studies.
    """
    groups: dict[tuple, list[Limits]] = {}
    for claim in LIMITS:
        if len(_of(runs, claim, LEARNED)):
            text = claim.text.rpartition(": ")[2]
            groups.setdefault((claim.study, text, claim.measure, claim.low, claim.high, claim.twice), []).append(claim)
    rows: list[list[str]] = []
    for (study, text, *_), own in groups.items():
        found = []
        for claim in own:
            value, low = measured(claim, runs, LEARNED), least(claim, runs, LEARNED)
            within = min(value.low - low, claim.high - value.high)
            said = f"{value.mean:.{claim.digits}f} [{value.low:.{claim.digits}f}, {value.high:.{claim.digits}f}]"
            where = claim.text.rpartition(": ")[0]
            found.append((within, f"{said} ({where})" if len(own) > 1 else said, verdict(value, low, claim.high)))
        rows.append([f"{titles[study]}: {text}", _target(own[0]), min(found)[1], _counted([one[2] for one in found])])
    if (share := behind(runs.where(study=GRID), LEARNED)) is not None:
        said = _said(share, 1, "", " %").removesuffix(": ")
        rows.append(
            [
                f"{titles[GRID]}: {BEHIND_SAID}",
                f"at most {100 * BEHIND_IN:g} %",
                said,
                verdict(share, -math.inf, 100 * BEHIND_IN),
            ]
        )
    for family in trace_cells.FILES:
        said, _, judged_as = gap_said(runs.where(study=TRACES, cell=trace_cells.cells_of(family)), LEARNED).rpartition(": ")
        if said:
            rows.append([closed_said(family), "two thirds", said, judged_as])
    return verdicts_table(rows, ("claim", "target", "ours, the cell furthest from it", "verdict"))


def _target(claim: Limits) -> str:
    """A claim's limits in words."""
    if claim.twice:
        return f"at least {claim.low:g}, or twice {label(claim.twice)}'s"
    if math.isfinite(claim.low) and math.isfinite(claim.high):
        return f"{claim.low:g} to {claim.high:g}"
    return f"at least {claim.low:g}" if math.isfinite(claim.low) else f"at most {claim.high:g}"


def _counted(verdicts: Sequence[str]) -> str:
    """How many cells have each verdict; where all have the same, that."""
    counts = {one: verdicts.count(one) for one in (HOLDS, NOT_SHOWN, NOT) if one in verdicts}
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{one} in {count}" for one, count in counts.items())


def closed_said(family: str) -> str:
    """What is claimed of a family of traces beside the bound."""
    return f"{trace_cells.SAID[family]}: two thirds of the way from the best classic to the causal bound"


def margins(runs: Runs, scheme: str) -> dict[tuple[str, float], float]:
    """By how much utility a scheme is ahead of the best classic control other than itself, by cell and seed.

    Where nothing was acknowledged the utility is NaN, which counts as infinitely low.
    """
    best: dict[tuple[str, float], float] = {}
    for rival in (name for name in CLASSIC if name != scheme):
        for key, value in _utilities(runs, rival).items():
            best[key] = max(best.get(key, -math.inf), value)
    own = _utilities(runs, scheme)
    return {key: value - best[key] if value > -math.inf else value for key, value in own.items() if key in best}


def behind(runs: Runs, scheme: str) -> statistics.Interval | None:
    """In how large a share of the grid's cells a scheme is behind, per cent; None where it did not run."""
    found: dict[float, list[bool]] = {}
    for (_, seed), margin in margins(runs, scheme).items():
        found.setdefault(seed, []).append(margin < -BEHIND)
    return interval([100 * float(np.mean(values)) for values in found.values()])


def behind_said(runs: Runs, scheme: str) -> str:
    """The same with the verdict, as a cell of a table."""
    share = behind(runs, scheme)
    return "-" if share is None else _said(share, 1, verdict(share, -math.inf, 100 * BEHIND_IN), " %")


@dataclass(frozen=True)
class Gap:
    """How far a scheme is from the best classic control on the way to the causal bound.

    Attributes:
        rival: The classic control with the highest mean utility, other than the scheme itself.
        ahead: By how much utility the scheme is ahead of it, with an interval.
        closed: The share of the way; NaN where the rival is no worse than the bound.
    """

    rival: str
    ahead: statistics.Interval
    closed: statistics.Interval


def gap(runs: Runs, scheme: str) -> Gap | None:
    """Of some traces; None where the scheme, another classic control or the bound did not run.

    The bootstrap draws cells, each the mean over its windows, of scheme, rival and bound together.
    """
    worst = _worst(runs)
    means = {name: _by_cell(runs, name, worst) for name in (scheme, CAUSAL, *CLASSIC)}
    cells = sorted(set(means[scheme]) & set(means[CAUSAL]))
    rivals = [name for name in CLASSIC if name != scheme and cells and set(cells) <= set(means[name])]
    if not rivals:
        return None
    rival = max(rivals, key=lambda name: float(np.mean([means[name][cell] for cell in cells])))
    own, bound, other = (np.array([means[name][cell] for cell in cells]) for name in (scheme, CAUSAL, rival))
    drawn = np.random.default_rng(0).integers(len(cells), size=(RESAMPLES, len(cells)))
    ahead, way = (own - other)[drawn].mean(axis=1), (bound - other)[drawn].mean(axis=1)
    mean, whole = float((own - other).mean()), float((bound - other).mean())
    closed = statistics.Interval(math.nan, math.nan, math.nan)
    if whole > 0:
        closed = _quantiles(mean / whole, np.divide(ahead, way, out=np.full_like(way, np.nan), where=way > 0))
    return Gap(rival, _quantiles(mean, ahead), closed)


def gap_said(runs: Runs, scheme: str) -> str:
    """The same with the verdict, as a cell of a table."""
    found = gap(runs, scheme)
    if found is None:
        return "-"
    ahead, closed = found.ahead, found.closed
    said = f"{ahead.mean:+.3f} [{ahead.low:+.3f}, {ahead.high:+.3f}] from {label(found.rival)}"
    if closed.mean != closed.mean:
        return f"{said}, which is at the bound: {HOLDS if ahead.low >= 0 else NOT_SHOWN if ahead.high >= 0 else NOT}"
    share = f"{100 * closed.mean:.0f} % of the way [{100 * closed.low:.0f}, {100 * closed.high:.0f}]"
    if ahead.low <= 0:
        return f"{share}, {said}: {NOT if ahead.high < 0 or closed.high < CLOSED else NOT_SHOWN}"
    return f"{share}, {said}: {HOLDS if closed.mean >= CLOSED else SLIGHT}"


def _over_cells(runs: Runs, measure: str) -> statistics.Interval:
    """The mean of a measure over cells, bootstrapped over these, each the mean over its seeds."""
    means = [float(np.mean(runs.where(cell=cell).columns[measure])) for cell in runs.values("cell")]
    return statistics.grouped_interval([np.array(means)], middle=False)


def _quantiles(mean: float, samples: np.ndarray) -> statistics.Interval:
    finite = samples[np.isfinite(samples)]
    if not len(finite):
        return statistics.Interval(mean, math.nan, math.nan)
    low, high = np.quantile(finite, (0.025, 0.975))
    return statistics.Interval(mean, float(low), float(high))


def _said(found: statistics.Interval, digits: int, found_verdict: str, unit: str = "") -> str:
    """A mean with its interval and the verdict; no verdict on one seed."""
    if not math.isfinite(found.high - found.low):
        return f"{found.mean:.{digits}f}{unit}: not judged, of one seed"
    return f"{found.mean:.{digits}f}{unit} [{found.low:.{digits}f}, {found.high:.{digits}f}]: {found_verdict}"


def _of(runs: Runs, claim: Limits, scheme: str) -> Runs:
    return runs.where(study=claim.study, cell=claim.cells, scheme=scheme, step=0)


def _utilities(runs: Runs, scheme: str) -> dict[tuple[str, float], float]:
    columns = runs.where(scheme=scheme).columns
    keys: Sequence = list(zip(columns["cell"].tolist(), columns["seed"].tolist(), strict=True))
    values = np.where(np.isfinite(columns["utility"]), columns["utility"], -math.inf)
    return dict(zip(keys, values.tolist(), strict=True))


def _worst(runs: Runs) -> dict[tuple[str, float], float]:
    """The least utility that anybody has in each cell and seed, where anything was acknowledged to anybody."""
    found: dict[tuple[str, float], float] = {}
    for scheme in runs.values("scheme"):
        for key, value in _utilities(runs, scheme).items():
            if value > -math.inf:
                found[key] = min(found.get(key, math.inf), value)
    return found


def _by_cell(runs: Runs, scheme: str, worst: dict[tuple[str, float], float]) -> dict[str, float]:
    """The mean utility of each cell; of a run in which nothing was acknowledged the worst of all that played it counts."""
    found: dict[str, list[float]] = {}
    for key, value in _utilities(runs, scheme).items():
        if key in worst:
            found.setdefault(key[0], []).append(value if value > -math.inf else worst[key])
    return {cell: float(np.mean(values)) for cell, values in found.items()}
