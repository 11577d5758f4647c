"""Claims of the paper on Auter, checked against a campaign's results.

A claim about Auter is judged for each of `IN_ITS_PLACE`: the agent trained with the paper's recipe, our agent, the kernel's own
autotuning and random actions. The comparison shows which part of a gain is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netbuf_gym.utils.tables import markdown_table
from studies.auter import paper
from studies.auter.auter_schemes import BPFTUNE, CONSTANT, KERNEL, LEARNED, RANDOM, RECIPE, WITH_BBR, label
from studies.auter.auter_settings import FLOW_SIZE, LATENCY, LONG_RUN, MEMORY, REGIONS, SETTINGS, SWEEPS
from studies.auter.auter_worlds import cross_cells
from studies.common.judging import (
    AT_MOST,
    DIFFERENCE,
    HIGHER,
    LOWER,
    NOT_LOWER,
    Claim,
    compute_contrast,
    format_judgement,
    judge_claim,
)
from studies.common.results import Runs
from studies.common.verdicts import format_source, format_verdicts_table, judge_change, make_claim_row, make_row

CELLS = ("study", "cell", "step")
"""Columns by which the runs of two schemes are paired, besides the seed."""
IN_ITS_PLACE = (RECIPE, LEARNED, KERNEL, RANDOM)
"""Schemes for which the paper's claims about Auter are judged."""
D, BBR, MAX = paper.DEFAULT, paper.BBR, paper.MAX
RATE = "throughput_mbps"


OF_31_HOURS = {"study": LONG_RUN, "step": 0}
"""Selection of the rows of whole long runs (`step` 0); the other rows are of pieces."""


def _select_regions(**which: str) -> dict[str, object]:
    return {"study": REGIONS, "cell": paper.select_cells(**which)}


def _select_flow_size(size: str) -> dict[str, object]:
    return {"study": FLOW_SIZE, "cell": cross_cells((size,))}


def _make_gain_claim(text: str, where: str, least: float, cells: dict[str, object]) -> Claim:
    return Claim(text, where, RATE, (D,), HIGHER, least, cells)


ABOUT_AUTER = (
    _make_gain_claim("20.33 % more throughput, three regions", "Table IV", paper.GAIN_SAID[paper.AUTER], _select_regions()),
    *(
        _make_gain_claim(f"{100 * said:.4g} % more, {region.upper()}", "V-B", said, _select_regions(region=region))
        for region, said in paper.GAIN_SAID_IN.items()
    ),
    *(
        _make_gain_claim(f"{100 * said:.4g} % more, {traffic} traffic", "V-B", said, _select_regions(traffic=traffic))
        for traffic, said in paper.GAIN_SAID_OF.items()
    ),
    _make_gain_claim("40.5 % more, ES-EA, long", "Table IV", paper.BEST_GAIN, {"study": REGIONS, "cell": "es-ea-long"}),
    Claim("more throughput than BBR and max", "Table IV", RATE, (BBR, MAX), HIGHER, where=_select_regions()),
    *(
        _make_gain_claim(
            f"{100 * said:.4g} % more, {study.replace('_', ' ')} varied", f"Fig. {4 + number}", said, {"study": study}
        )
        for number, (study, said) in enumerate(paper.SWEEPS.items())
    ),
    _make_gain_claim("4.67 times at 40 ms", "Fig. 4", paper.AT_40_MS - 1, {"study": LATENCY, "cell": "40ms"}),
    Claim(
        "at most 0.8 ms of extra delay, ms",
        "Fig. 4-7",
        "latency_ms",
        (D,),
        AT_MOST,
        paper.EXTRA_DELAY_MS,
        {"study": SWEEPS},
        DIFFERENCE,
    ),
    Claim("the most throughput of 31 hours", "Fig. 8", RATE, (D, BBR, MAX), HIGHER, where=OF_31_HOURS),
    Claim(
        "1000 connections: over 15 % less memory",
        "Fig. 9",
        "memory_mb",
        (MAX,),
        LOWER,
        paper.MEMORY_GAP,
        {"study": MEMORY, "cell": str(paper.MEMORY_AT)},
    ),
    Claim("more memory than default", "Fig. 9", "memory_mb", (D,), HIGHER, where={"study": MEMORY}),
)


@dataclass(frozen=True)
class Contrast:
    """Claim that a gain is larger in some cells than in others.

    Attributes:
        claim: Claim about the cells with the larger gain.
        there: Columns and values that select the other cells.
    """

    claim: Claim
    there: dict[str, object]


CONTRASTS = (
    Contrast(
        Claim("long traffic gains more than short", "V-B", RATE, (D,), HIGHER, where=_select_regions(traffic="long")),
        _select_regions(traffic="short"),
    ),
    Contrast(
        Claim("ES-EA gains more than ES-ES", "V-B", RATE, (D,), HIGHER, where=_select_regions(region="es-ea")),
        _select_regions(region="es-es"),
    ),
    Contrast(
        Claim(
            "no extra latency: the least gain",
            "Fig. 4",
            RATE,
            (D,),
            HIGHER,
            where={"study": LATENCY, "cell": ("20ms", "40ms", "80ms", "100ms")},
        ),
        {"study": LATENCY, "cell": "0ms"},
    ),
    Contrast(
        Claim("large flows gain more than small", "Fig. 7", RATE, (D,), HIGHER, where=_select_flow_size("100MB")),
        _select_flow_size("10kB"),
    ),
)

WITH_BBR_TOO = (
    _make_gain_claim("28 % more throughput, three regions", "Table IV", paper.GAIN_SAID[paper.AUTER_BBR], _select_regions()),
    _make_gain_claim("63.9 % more, ES-EA, long", "Table IV", paper.BEST_GAIN_BBR, {"study": REGIONS, "cell": "es-ea-long"}),
    Claim("the best of all: more than BBR and max", "Table IV", RATE, (BBR, MAX), HIGHER, where=_select_regions()),
)
"""Claims about Auter with BBR; `build_bbr_claims_table` also judges whether it exceeds Auter alone."""


@dataclass(frozen=True)
class SchemeClaim:
    """Claim about one named scheme."""

    scheme: str
    claim: Claim


def _select_cell(study: str, cell: str) -> dict[str, object]:
    return {"study": study, "cell": cell}


OTHERS = (
    SchemeClaim(BBR, _make_gain_claim("BBR: 15.93 % more, three regions", "V-B", paper.GAIN_SAID[BBR], _select_regions())),
    SchemeClaim(MAX, _make_gain_claim("max: 8.64 % more, three regions", "V-B", paper.GAIN_SAID[MAX], _select_regions())),
    SchemeClaim(
        MAX, Claim("max loses, ES-EA, short", "Table IV", RATE, (D,), LOWER, where=_select_cell(REGIONS, "es-ea-short"))
    ),
    SchemeClaim(
        MAX, Claim("max loses, ES-ES, short", "Table IV", RATE, (D,), LOWER, where=_select_cell(REGIONS, "es-es-short"))
    ),
    *(
        SchemeClaim(scheme, _make_gain_claim(f"{label(scheme)}: more than default in 31 hours", "Fig. 8", 0.0, OF_31_HOURS))
        for scheme in (BBR, MAX)
    ),
    SchemeClaim(
        paper.TUNE_1,
        Claim("ES-EA: tune-1 is best", "Table I", RATE, (D, paper.TUNE_2, MAX), HIGHER, where=_select_cell(SETTINGS, "es-ea")),
    ),
    SchemeClaim(paper.TUNE_1, _make_gain_claim("ES-EA: tune-1 26.2 % more", "Table I", 0.262, _select_cell(SETTINGS, "es-ea"))),
    SchemeClaim(
        paper.TUNE_2, Claim("ES-EA: tune-2 loses", "Table I", RATE, (D,), LOWER, where=_select_cell(SETTINGS, "es-ea"))
    ),
    SchemeClaim(
        paper.TUNE_2,
        Claim("ES-WE: tune-2 is best", "Table I", RATE, (D, paper.TUNE_1, MAX), HIGHER, where=_select_cell(SETTINGS, "es-we")),
    ),
    SchemeClaim(paper.TUNE_2, _make_gain_claim("ES-WE: tune-2 34.5 % more", "Table I", 0.345, _select_cell(SETTINGS, "es-we"))),
)

OURS = (
    *(
        Claim("three regions: no less throughput", "", RATE, (rival,), NOT_LOWER, where=_select_regions())
        for rival in (KERNEL, CONSTANT, BPFTUNE, MAX)
    ),
    Claim("three regions: more throughput than chance", "", RATE, (RANDOM,), HIGHER, where=_select_regions()),
    Claim("sweeps: no less throughput", "", RATE, (KERNEL, CONSTANT), NOT_LOWER, where={"study": SWEEPS}),
    Claim("three regions: less memory than max", "", "memory_mb", (MAX,), LOWER, where=_select_regions()),
    Claim("three regions: less delay than max", "", "latency_ms", (MAX,), LOWER, where=_select_regions()),
)
"""Claims of our own, beyond the paper's, about both agents and two baselines."""


def build_auter_claims_table(runs: Runs) -> str:
    """Return the table of the paper's claims about Auter, judged for each of `IN_ITS_PLACE` that ran."""
    present = [scheme for scheme in IN_ITS_PLACE if scheme in runs.values("scheme")]
    rows = _build_rows(runs, ABOUT_AUTER, present)
    for one in CONTRASTS:
        for rival in one.claim.rivals:
            cells = [_judge_contrast(one, runs, scheme, rival) for scheme in present]
            if all(cell == "-" for cell in cells):
                continue
            rows.append([f"{one.claim.text} ({one.claim.figures})", label(rival), *cells])
    return _format_table(rows, [label(scheme) for scheme in present])


def build_bbr_claims_table(runs: Runs) -> str:
    """Return the table of the paper's claims about Auter with BBR, judged for both agents."""
    present = [scheme for scheme in (RECIPE, LEARNED) if WITH_BBR[scheme] in runs.values("scheme")]
    rows = _build_rows(runs, WITH_BBR_TOO, [WITH_BBR[scheme] for scheme in present])
    alone = Claim("more than without BBR", "Table IV", RATE, (), HIGHER, where=_select_regions())
    cells = [judge_claim(alone, runs, WITH_BBR[scheme], scheme, CELLS) for scheme in present]
    if any(cell != "-" for cell in cells):
        rows.append([f"{alone.text} ({alone.figures})", "the same without", *cells])
    return _format_table(rows, [label(WITH_BBR[scheme]) for scheme in present])


def build_other_claims_table(runs: Runs) -> str:
    """Return the table of the paper's claims about fixed settings and BBR; "" without any."""
    rows = []
    for one in OTHERS:
        for rival in one.claim.rivals:
            said = judge_claim(one.claim, runs, one.scheme, rival, CELLS)
            if said != "-":
                rows.append([f"{one.claim.text} ({one.claim.figures})", label(rival), said])
    return markdown_table(["the paper's claim", "against", "found"], rows) if rows else ""


def build_own_claims_table(runs: Runs) -> str:
    """Return the table of our own claims, for both agents, the kernel's autotuning and the best constant."""
    present = [scheme for scheme in (RECIPE, LEARNED, KERNEL, CONSTANT) if scheme in runs.values("scheme")]
    return _format_table(_build_rows(runs, OURS, present), [label(scheme) for scheme in present], "what the paper does not ask")


def build_verdicts_table(runs: Runs) -> str:
    """Return the table of verdicts on the trained paper's recipe, on the same with BBR, and on named settings."""
    rows = [make_claim_row(claim, runs, RECIPE, CELLS, label) for claim in ABOUT_AUTER]
    for one in CONTRASTS:
        claim, found = one.claim, {}
        for rival in claim.rivals:
            here, there = runs.where(**claim.where), runs.where(**one.there)
            value = compute_contrast(here, there, RECIPE, rival, claim.measure, CELLS, claim.by)
            if value is not None:
                found[label(rival)] = judge_change(claim.expected, value, claim.least, claim.by)
        rows.append(make_row(claim.text, format_source(claim), found))
    rows += [make_claim_row(claim, runs, WITH_BBR[RECIPE], CELLS, label, "with BBR: ") for claim in WITH_BBR_TOO]
    rows += [make_claim_row(one.claim, runs, one.scheme, CELLS, label) for one in OTHERS]
    return format_verdicts_table(rows)


def _build_rows(runs: Runs, claims: Sequence[Claim], schemes: Sequence[str]) -> list[list[str]]:
    rows = []
    for claim in claims:
        for rival in claim.rivals:
            cells = ["" if rival == scheme else judge_claim(claim, runs, scheme, rival, CELLS) for scheme in schemes]
            if any(cell not in ("", "-") for cell in cells):
                said = f" ({claim.figures})" if claim.figures else ""
                rows.append([f"{claim.text}{said}", label(rival), *cells])
    return rows


def _judge_contrast(one: Contrast, runs: Runs, scheme: str, rival: str) -> str:
    claim = one.claim
    here, there = runs.where(**claim.where), runs.where(**one.there)
    return format_judgement(
        claim.expected, compute_contrast(here, there, scheme, rival, claim.measure, CELLS, claim.by), claim.least, claim.by
    )


def _format_table(rows: list[list[str]], titles: Sequence[str], first: str = "the paper's claim") -> str:
    return markdown_table([first, "against", *titles], rows) if rows and titles else ""
