"""Targets of a sender for real paths, checked against a campaign's results.

Claims are about the agent, and judged for every scheme in the agent's place, for comparison. A claim *holds* when the whole
95 % interval over seeds is within the limits, *does not hold* when the whole interval is beyond one limit, and is *not shown*
in between. For traces, units are pairs of trace and buffer, each the mean over its windows, and intervals are bootstrapped
over these units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import HOLDS, SLIGHT, compute_interval
from studies.common.results import Runs
from studies.common.verdicts import format_verdicts_table
from studies.sender import sender_worlds as worlds
from studies.sender import strangers_claims, trace_cells
from studies.sender.bounds import CAUSAL
from studies.sender.sender_schemes import CLASSIC, LEARNED, PLACES, label
from studies.sender.sender_settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    STRANGERS,
    TRACES,
)
from studies.sender.sender_worlds import describe_cell

NOT, NOT_SHOWN = "does not hold", "not shown"
BEHIND, BEHIND_IN = 0.02, 0.05
"""Utility by which an agent may be behind the best classic control, and share of the grid's cells in which more is allowed."""
BEHIND_SAID = f"at most {100 * BEHIND_IN:g} % of the cells more than {BEHIND:g} behind the best classic control"
CLOSED = 2 / 3
"""Share of the gap between the best classic control and the causal bound that an agent is to close."""
MOST_LOSS = 0.01
RESAMPLES = 2000


@dataclass(frozen=True)
class LimitClaim:
    """Claim that a measure is within limits in a cell.

    Attributes:
        text: Text of the claim.
        study, cells: Study and cells of the claim; several cells count by their mean and are the units, each the mean over its
            seeds.
        measure: Name of the limited measure.
        low, high: Limits of the measure.
        twice: Scheme whose own value, doubled, replaces `low` where that is less; "": none.
        digits: Digits after the decimal point.
    """

    text: str
    study: str
    cells: tuple[str, ...]
    measure: str
    low: float = -math.inf
    high: float = math.inf
    twice: str = ""
    digits: int = 2


def _list_cell_claims(study: str, cell: str) -> list[LimitClaim]:
    """Return the claims about a cell; a cell on another path has those of the study that it names."""
    own, inner = cell.split(":")[:2] if study == ELSEWHERE else (study, cell)
    said, where = describe_cell(study, cell), (study, (cell,))
    if own == OUTAGE:
        return [LimitClaim(f"{said}: 80 % of the link within 2 s", *where, "recover_s", high=2.0)]
    if own == DELAY_STEP and inner.startswith("up"):
        return [LimitClaim(f"{said}: 90 % of the goodput before", *where, "kept", low=0.9)]
    if own == DELAY_STEP:
        return [LimitClaim(f"{said}: queueing below 10 ms within 15 s", *where, "settle_s", high=15.0)]
    if own == REVERSE:
        return [LimitClaim(f"{said}: goodput of 85 % of the link", *where, "use", low=0.85)]
    if own == RIVALS:
        rival = inner.partition("-")[0]
        if rival == "cubic":
            return [LimitClaim(f"{said}: 0.35 to 0.65 of the link", *where, "share", 0.35, 0.65)]
        if rival == "bbr":
            return [LimitClaim(f"{said}: 0.25, or twice CUBIC's share there", *where, "share", low=0.25, twice="cubic")]
        return [LimitClaim(f"{said}: NewReno keeps 0.3", *where, "share", high=0.7)]
    if inner.startswith(worlds.JOIN):
        return [LimitClaim(f"{said}: Jain's index 0.9 within 10 s of each", *where, "converge_s", high=10.0)]
    if inner in ("4-1", "4-4"):
        even = LimitClaim(f"{said}: Jain's index 0.97", *where, "jain", low=0.97, digits=3)
        return [even, LimitClaim(f"{said}: at most 0.5 BDP queued", *where, "queue_bdp", high=0.5)]
    return [LimitClaim(f"{said}: Jain's index 0.9", *where, "jain", low=0.9, digits=3)] if inner == "8-4" else []


LIMITS: tuple[LimitClaim, ...] = (
    *(
        LimitClaim(f"ppcc/{cell}: utility at least -0.036", PPCC, (cell,), "utility", -0.036, digits=4)
        for cell in worlds.PPCC_CELLS
    ),
    *(
        LimitClaim(f"1 Gbit/s, {cell} BDP: 90 % of the link within 3 s", START, (cell,), "reach_s", high=3.0)
        for cell in worlds.START_CELLS
    ),
    *(
        LimitClaim(
            f"{trace_cells.SAID[family]}: at most 1 % lost",
            TRACES,
            trace_cells.list_cells(family),
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
        for claim in _list_cell_claims(study, cell)
    ),
)
"""All claims but those on the grid and on the gap to the bounds of traces."""


def decide_verdict(found: statistics.Interval, low: float, high: float) -> str:
    """Return the verdict on an interval: within the limits, beyond one of them, or neither."""
    if found.low >= low and found.high <= high:
        return HOLDS
    return NOT if found.high < low or found.low > high else NOT_SHOWN


def format_judgement(claim: LimitClaim, runs: Runs, scheme: str) -> str:
    """Return a claim's measure and verdict for a scheme, as a table cell; "-" where the scheme did not run."""
    own = _select_runs(runs, claim, scheme)
    if not len(own):
        return "-"
    values = own.columns[claim.measure]
    if lacking := int((~np.isfinite(values)).sum()):
        return f"not measured in {lacking} of {len(values)} runs: {NOT}"
    found = measure_claim(claim, runs, scheme)
    return _format_interval(found, claim.digits, decide_verdict(found, compute_lower_limit(claim, runs, scheme), claim.high))


def measure_claim(claim: LimitClaim, runs: Runs, scheme: str) -> statistics.Interval:
    """Return a claim's measure of a scheme over seeds or over cells; NaN where the scheme did not run or was not measured."""
    own = _select_runs(runs, claim, scheme)
    if not len(own) or not np.isfinite(own.columns[claim.measure]).all():
        return statistics.Interval(math.nan, math.nan, math.nan)
    if len(claim.cells) > 1:
        return _average_over_cells(own, claim.measure)
    found = compute_interval(list(own.compute_seed_means(claim.measure).values()))
    assert found is not None
    return found


def compute_lower_limit(claim: LimitClaim, runs: Runs, scheme: str) -> float:
    """Return a claim's lower limit, which twice the value of another scheme may lower."""
    if claim.twice and scheme != claim.twice and len(other := _select_runs(runs, claim, claim.twice)):
        return min(claim.low, 2 * float(np.mean(other.columns[claim.measure])))
    return claim.low


def format_claims_table(runs: Runs, study: str) -> str:
    """Return a table of all claims about a study, for the schemes in the agent's place; "" without claims or schemes."""
    own = runs.where(study=study, step=0)
    schemes = [scheme for scheme in PLACES if scheme in own.values("scheme")]
    rows = [
        [claim.text, *(format_judgement(claim, own, scheme) for scheme in schemes)] for claim in LIMITS if claim.study == study
    ]
    if study == GRID:
        rows += [[BEHIND_SAID]]
        rows[-1] += [format_behind_share(own, scheme) for scheme in schemes]
    if study == TRACES:
        for family in trace_cells.FILES:
            cells = [format_gap(own.where(cell=trace_cells.list_cells(family)), scheme) for scheme in schemes]
            rows.append([describe_gap_claim(family), *cells])
    if study == STRANGERS:
        rows += [
            [claim.text, *(format_row_claim(claim, own, scheme) for scheme in schemes)] for claim in strangers_claims.CLAIMS
        ]
    rows = [row for row in rows if any(cell != "-" for cell in row[1:])]
    return markdown_table(["claim", *map(label, schemes)], rows) if rows and schemes else ""


def format_row_claim(claim: strangers_claims.RowClaim, runs: Runs, scheme: str) -> str:
    """Return the value of a claim among strangers with the verdict, as a table cell; "-" where it was not measured."""
    found = strangers_claims.measure_claim(claim, runs, scheme)
    if found is None:
        return "-"
    return _format_interval(found, claim.digits, decide_verdict(found, claim.low, claim.high))


def format_verdicts(runs: Runs, titles: Mapping[str, str]) -> str:
    """Return the table of verdicts about the agent: a row for each target of a study, with the cell furthest from the target.

    Args:
        runs: Runs of all studies.
        titles: Titles of the studies.
    """
    groups: dict[tuple, list[LimitClaim]] = {}
    for claim in LIMITS:
        if len(_select_runs(runs, claim, LEARNED)):
            text = claim.text.rpartition(": ")[2]
            groups.setdefault((claim.study, text, claim.measure, claim.low, claim.high, claim.twice), []).append(claim)
    rows: list[list[str]] = []
    for (study, text, *_), own in groups.items():
        found = []
        for claim in own:
            value, low = measure_claim(claim, runs, LEARNED), compute_lower_limit(claim, runs, LEARNED)
            within = min(value.low - low, claim.high - value.high)
            said = f"{value.mean:.{claim.digits}f} [{value.low:.{claim.digits}f}, {value.high:.{claim.digits}f}]"
            where = claim.text.rpartition(": ")[0]
            found.append((within, f"{said} ({where})" if len(own) > 1 else said, decide_verdict(value, low, claim.high)))
        rows.append(
            [f"{titles[study]}: {text}", _describe_target(own[0]), min(found)[1], _count_verdicts([one[2] for one in found])]
        )
    if (share := compute_behind_share(runs.where(study=GRID), LEARNED)) is not None:
        said = _format_interval(share, 1, "", " %").removesuffix(": ")
        rows.append(
            [
                f"{titles[GRID]}: {BEHIND_SAID}",
                f"at most {100 * BEHIND_IN:g} %",
                said,
                decide_verdict(share, -math.inf, 100 * BEHIND_IN),
            ]
        )
    for family in trace_cells.FILES:
        said, _, judged_as = format_gap(runs.where(study=TRACES, cell=trace_cells.list_cells(family)), LEARNED).rpartition(": ")
        if said:
            rows.append([describe_gap_claim(family), "two thirds", said, judged_as])
    for one in strangers_claims.CLAIMS:
        said, _, judged_as = format_row_claim(one, runs.where(study=STRANGERS), LEARNED).rpartition(": ")
        if said:
            rows.append([f"{titles[STRANGERS]}: {one.text}", _describe_limits(one.low, one.high), said, judged_as])
    return format_verdicts_table(rows, ("claim", "target", "ours, the cell furthest from it", "verdict"))


def _describe_target(claim: LimitClaim) -> str:
    """Return a claim's limits in words."""
    if claim.twice:
        return f"at least {claim.low:g}, or twice {label(claim.twice)}'s"
    return _describe_limits(claim.low, claim.high)


def _describe_limits(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if math.isfinite(low) else f"at most {high:g}"


def _count_verdicts(verdicts: Sequence[str]) -> str:
    """Return how many cells have each verdict, in words; the verdict alone where all cells have the same."""
    counts = {one: verdicts.count(one) for one in (HOLDS, NOT_SHOWN, NOT) if one in verdicts}
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{one} in {count}" for one, count in counts.items())


def describe_gap_claim(family: str) -> str:
    """Return the text of the claim about a family of traces and the causal bound."""
    return f"{trace_cells.SAID[family]}: two thirds of the way from the best classic to the causal bound"


def compute_margins(runs: Runs, scheme: str) -> dict[tuple[str, float], float]:
    """Return the lead in utility of a scheme over the best other classic control, by cell and seed.

    Where nothing was acknowledged the utility is NaN, which counts as minus infinity.
    """
    best: dict[tuple[str, float], float] = {}
    for rival in (name for name in CLASSIC if name != scheme):
        for key, value in _get_utilities(runs, rival).items():
            best[key] = max(best.get(key, -math.inf), value)
    own = _get_utilities(runs, scheme)
    return {key: value - best[key] if value > -math.inf else value for key, value in own.items() if key in best}


def compute_behind_share(runs: Runs, scheme: str) -> statistics.Interval | None:
    """Return the share of the grid's cells in which a scheme is behind, in per cent; None where the scheme did not run."""
    found: dict[float, list[bool]] = {}
    for (_, seed), margin in compute_margins(runs, scheme).items():
        found.setdefault(seed, []).append(margin < -BEHIND)
    return compute_interval([100 * float(np.mean(values)) for values in found.values()])


def format_behind_share(runs: Runs, scheme: str) -> str:
    """Return the share of the grid's cells in which a scheme is behind, with the verdict, as a table cell."""
    share = compute_behind_share(runs, scheme)
    return "-" if share is None else _format_interval(share, 1, decide_verdict(share, -math.inf, 100 * BEHIND_IN), " %")


@dataclass(frozen=True)
class Gap:
    """Position of a scheme between the best classic control and the causal bound.

    Attributes:
        rival: Classic control with the highest mean utility, other than the scheme itself.
        ahead: Lead in utility of the scheme over the rival, with an interval.
        closed: Share of the way from the rival to the bound; NaN where the rival is no worse than the bound.
    """

    rival: str
    ahead: statistics.Interval
    closed: statistics.Interval


def compute_gap(runs: Runs, scheme: str) -> Gap | None:
    """Compute the gap of a scheme on some traces; None where the scheme, another classic control or the bound did not run.

    The bootstrap draws cells, each the mean over its windows, of scheme, rival and bound together.
    """
    worst = _find_worst_utilities(runs)
    means = {name: _average_by_cell(runs, name, worst) for name in (scheme, CAUSAL, *CLASSIC)}
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
        closed = _compute_quantiles(mean / whole, np.divide(ahead, way, out=np.full_like(way, np.nan), where=way > 0))
    return Gap(rival, _compute_quantiles(mean, ahead), closed)


def format_gap(runs: Runs, scheme: str) -> str:
    """Return the gap of a scheme with the verdict, as a table cell."""
    found = compute_gap(runs, scheme)
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


def _average_over_cells(runs: Runs, measure: str) -> statistics.Interval:
    """Return the mean of a measure over cells, each the mean over its seeds, with an interval bootstrapped over cells."""
    means = [float(np.mean(runs.where(cell=cell).columns[measure])) for cell in runs.values("cell")]
    return statistics.grouped_interval([np.array(means)], middle=False)


def _compute_quantiles(mean: float, samples: np.ndarray) -> statistics.Interval:
    finite = samples[np.isfinite(samples)]
    if not len(finite):
        return statistics.Interval(mean, math.nan, math.nan)
    low, high = np.quantile(finite, (0.025, 0.975))
    return statistics.Interval(mean, float(low), float(high))


def _format_interval(found: statistics.Interval, digits: int, found_verdict: str, unit: str = "") -> str:
    """Return a mean with its interval and the verdict, in words; no verdict on one seed."""
    if not math.isfinite(found.high - found.low):
        return f"{found.mean:.{digits}f}{unit}: not judged, of one seed"
    return f"{found.mean:.{digits}f}{unit} [{found.low:.{digits}f}, {found.high:.{digits}f}]: {found_verdict}"


def _select_runs(runs: Runs, claim: LimitClaim, scheme: str) -> Runs:
    return runs.where(study=claim.study, cell=claim.cells, scheme=scheme, step=0)


def _get_utilities(runs: Runs, scheme: str) -> dict[tuple[str, float], float]:
    columns = runs.where(scheme=scheme).columns
    keys: Sequence = list(zip(columns["cell"].tolist(), columns["seed"].tolist(), strict=True))
    values = np.where(np.isfinite(columns["utility"]), columns["utility"], -math.inf)
    return dict(zip(keys, values.tolist(), strict=True))


def _find_worst_utilities(runs: Runs) -> dict[tuple[str, float], float]:
    """Return the lowest utility of all schemes in each cell and seed, where anything was acknowledged to any scheme."""
    found: dict[tuple[str, float], float] = {}
    for scheme in runs.values("scheme"):
        for key, value in _get_utilities(runs, scheme).items():
            if value > -math.inf:
                found[key] = min(found.get(key, math.inf), value)
    return found


def _average_by_cell(runs: Runs, scheme: str, worst: dict[tuple[str, float], float]) -> dict[str, float]:
    """Return the mean utility of each cell; a run without acknowledgements counts with the lowest utility in `worst`."""
    found: dict[str, list[float]] = {}
    for key, value in _get_utilities(runs, scheme).items():
        if key in worst:
            found.setdefault(key[0], []).append(value if value > -math.inf else worst[key])
    return {cell: float(np.mean(values)) for cell, values in found.items()}
