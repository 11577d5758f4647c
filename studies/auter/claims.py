"""What the paper on Auter says of its results, checked against a campaign's.

A claim about Auter is judged for whoever plays in its place: the paper's recipe as it was trained, our agent, the kernel's own
autotuning, and chance, so that it can be seen what of a gain is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netbuf_gym.utils.tables import markdown_table
from studies.auter import paper
from studies.auter.schemes import BPFTUNE, CONSTANT, KERNEL, LEARNED, RANDOM, RECIPE, WITH_BBR, label
from studies.auter.settings import FLOW_SIZE, LATENCY, LONG_RUN, MEMORY, REGIONS, SETTINGS, SWEEPS
from studies.auter.worlds import crossed
from studies.common.judging import (
    AT_MOST,
    DIFFERENCE,
    HIGHER,
    LOWER,
    NOT_LOWER,
    Claim,
    contrast,
    judge,
    judged,
)
from studies.common.results import Runs
from studies.common.verdicts import claim_row, found_of, place, row_of, verdicts_table

CELLS = ("study", "cell", "step")
"""Columns that pair runs."""
IN_ITS_PLACE = (RECIPE, LEARNED, KERNEL, RANDOM)
"""Whom the paper's claims about Auter are judged for."""
D, BBR, MAX = paper.DEFAULT, paper.BBR, paper.MAX
RATE = "throughput_mbps"


OF_31_HOURS = {"study": LONG_RUN, "step": 0}
"""Rows of whole runs; others are of single hours."""


def _regions(**which: str) -> dict[str, object]:
    return {"study": REGIONS, "cell": paper.cells_of(**which)}


def _files(size: str) -> dict[str, object]:
    return {"study": FLOW_SIZE, "cell": crossed((size,))}


def _gain(text: str, where: str, least: float, cells: dict[str, object]) -> Claim:
    return Claim(text, where, RATE, (D,), HIGHER, least, cells)


ABOUT_AUTER = (
    _gain("20.33 % more throughput, three regions", "Table IV", paper.GAIN_SAID[paper.AUTER], _regions()),
    *(
        _gain(f"{100 * said:.4g} % more, {region.upper()}", "V-B", said, _regions(region=region))
        for region, said in paper.GAIN_SAID_IN.items()
    ),
    *(
        _gain(f"{100 * said:.4g} % more, {traffic} traffic", "V-B", said, _regions(traffic=traffic))
        for traffic, said in paper.GAIN_SAID_OF.items()
    ),
    _gain("40.5 % more, ES-EA, long", "Table IV", paper.BEST_GAIN, {"study": REGIONS, "cell": "es-ea-long"}),
    Claim("more throughput than BBR and max", "Table IV", RATE, (BBR, MAX), HIGHER, where=_regions()),
    *(
        _gain(f"{100 * said:.4g} % more, {study.replace('_', ' ')} varied", f"Fig. {4 + number}", said, {"study": study})
        for number, (study, said) in enumerate(paper.SWEEPS.items())
    ),
    _gain("4.67 times at 40 ms", "Fig. 4", paper.AT_40_MS - 1, {"study": LATENCY, "cell": "40ms"}),
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
    """That a gain is larger in some cells than in others: `claim` is of the first, `there` says which the others are."""

    claim: Claim
    there: dict[str, object]


CONTRASTS = (
    Contrast(
        Claim("long traffic gains more than short", "V-B", RATE, (D,), HIGHER, where=_regions(traffic="long")),
        _regions(traffic="short"),
    ),
    Contrast(
        Claim("ES-EA gains more than ES-ES", "V-B", RATE, (D,), HIGHER, where=_regions(region="es-ea")),
        _regions(region="es-es"),
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
        Claim("large flows gain more than small", "Fig. 7", RATE, (D,), HIGHER, where=_files("100MB")),
        _files("10kB"),
    ),
)

WITH_BBR_TOO = (
    _gain("28 % more throughput, three regions", "Table IV", paper.GAIN_SAID[paper.AUTER_BBR], _regions()),
    _gain("63.9 % more, ES-EA, long", "Table IV", paper.BEST_GAIN_BBR, {"study": REGIONS, "cell": "es-ea-long"}),
    Claim("the best of all: more than BBR and max", "Table IV", RATE, (BBR, MAX), HIGHER, where=_regions()),
)
"""About Auter with BBR; more than Auter alone is judged beside."""


@dataclass(frozen=True)
class About:
    """A claim about one scheme by name."""

    scheme: str
    claim: Claim


def _in(study: str, cell: str) -> dict[str, object]:
    return {"study": study, "cell": cell}


OTHERS = (
    About(BBR, _gain("BBR: 15.93 % more, three regions", "V-B", paper.GAIN_SAID[BBR], _regions())),
    About(MAX, _gain("max: 8.64 % more, three regions", "V-B", paper.GAIN_SAID[MAX], _regions())),
    About(MAX, Claim("max loses, ES-EA, short", "Table IV", RATE, (D,), LOWER, where=_in(REGIONS, "es-ea-short"))),
    About(MAX, Claim("max loses, ES-ES, short", "Table IV", RATE, (D,), LOWER, where=_in(REGIONS, "es-es-short"))),
    *(
        About(scheme, _gain(f"{label(scheme)}: more than default in 31 hours", "Fig. 8", 0.0, OF_31_HOURS))
        for scheme in (BBR, MAX)
    ),
    About(
        paper.TUNE_1,
        Claim("ES-EA: tune-1 is best", "Table I", RATE, (D, paper.TUNE_2, MAX), HIGHER, where=_in(SETTINGS, "es-ea")),
    ),
    About(paper.TUNE_1, _gain("ES-EA: tune-1 26.2 % more", "Table I", 0.262, _in(SETTINGS, "es-ea"))),
    About(paper.TUNE_2, Claim("ES-EA: tune-2 loses", "Table I", RATE, (D,), LOWER, where=_in(SETTINGS, "es-ea"))),
    About(
        paper.TUNE_2,
        Claim("ES-WE: tune-2 is best", "Table I", RATE, (D, paper.TUNE_1, MAX), HIGHER, where=_in(SETTINGS, "es-we")),
    ),
    About(paper.TUNE_2, _gain("ES-WE: tune-2 34.5 % more", "Table I", 0.345, _in(SETTINGS, "es-we"))),
)

OURS = (
    *(
        Claim("three regions: no less throughput", "", RATE, (rival,), NOT_LOWER, where=_regions())
        for rival in (KERNEL, CONSTANT, BPFTUNE, MAX)
    ),
    Claim("three regions: more throughput than chance", "", RATE, (RANDOM,), HIGHER, where=_regions()),
    Claim("sweeps: no less throughput", "", RATE, (KERNEL, CONSTANT), NOT_LOWER, where={"study": SWEEPS}),
    Claim("three regions: less memory than max", "", "memory_mb", (MAX,), LOWER, where=_regions()),
    Claim("three regions: less delay than max", "", "latency_ms", (MAX,), LOWER, where=_regions()),
)
"""What the paper does not ask, of both agents."""


def about_auter(runs: Runs) -> str:
    """The paper's claims about Auter, for everyone in its place who is there."""
    present = [scheme for scheme in IN_ITS_PLACE if scheme in runs.values("scheme")]
    rows = _rows(runs, ABOUT_AUTER, present)
    for one in CONTRASTS:
        for rival in one.claim.rivals:
            cells = [_contrasted(one, runs, scheme, rival) for scheme in present]
            if all(cell == "-" for cell in cells):
                continue
            rows.append([f"{one.claim.text} ({one.claim.figures})", label(rival), *cells])
    return _table(rows, [label(scheme) for scheme in present])


def with_bbr(runs: Runs) -> str:
    """The paper's claims about Auter with BBR, for both agents."""
    present = [scheme for scheme in (RECIPE, LEARNED) if WITH_BBR[scheme] in runs.values("scheme")]
    rows = _rows(runs, WITH_BBR_TOO, [WITH_BBR[scheme] for scheme in present])
    alone = Claim("more than without BBR", "Table IV", RATE, (), HIGHER, where=_regions())
    cells = [judge(alone, runs, WITH_BBR[scheme], scheme, CELLS) for scheme in present]
    if any(cell != "-" for cell in cells):
        rows.append([f"{alone.text} ({alone.figures})", "the same without", *cells])
    return _table(rows, [label(WITH_BBR[scheme]) for scheme in present])


def about_others(runs: Runs) -> str:
    """The paper's claims about settings and BBR."""
    rows = []
    for one in OTHERS:
        for rival in one.claim.rivals:
            said = judge(one.claim, runs, one.scheme, rival, CELLS)
            if said != "-":
                rows.append([f"{one.claim.text} ({one.claim.figures})", label(rival), said])
    return markdown_table(["the paper's claim", "against", "found"], rows) if rows else ""


def ours(runs: Runs) -> str:
    """What the paper does not ask."""
    present = [scheme for scheme in (RECIPE, LEARNED, KERNEL, CONSTANT) if scheme in runs.values("scheme")]
    return _table(_rows(runs, OURS, present), [label(scheme) for scheme in present], "what the paper does not ask")


def verdicts_of(runs: Runs) -> str:
    """The table of verdicts: of the paper's recipe as it was trained, with BBR, and of settings by name."""
    rows = [claim_row(claim, runs, RECIPE, CELLS, label) for claim in ABOUT_AUTER]
    for one in CONTRASTS:
        claim, found = one.claim, {}
        for rival in claim.rivals:
            here, there = runs.where(**claim.where), runs.where(**one.there)
            value = contrast(here, there, RECIPE, rival, claim.measure, CELLS, claim.by)
            if value is not None:
                found[label(rival)] = found_of(claim.expected, value, claim.least, claim.by)
        rows.append(row_of(claim.text, place(claim), found))
    rows += [claim_row(claim, runs, WITH_BBR[RECIPE], CELLS, label, "with BBR: ") for claim in WITH_BBR_TOO]
    rows += [claim_row(one.claim, runs, one.scheme, CELLS, label) for one in OTHERS]
    return verdicts_table(rows)


def _rows(runs: Runs, claims: Sequence[Claim], schemes: Sequence[str]) -> list[list[str]]:
    rows = []
    for claim in claims:
        for rival in claim.rivals:
            cells = ["" if rival == scheme else judge(claim, runs, scheme, rival, CELLS) for scheme in schemes]
            if any(cell not in ("", "-") for cell in cells):
                said = f" ({claim.figures})" if claim.figures else ""
                rows.append([f"{claim.text}{said}", label(rival), *cells])
    return rows


def _contrasted(one: Contrast, runs: Runs, scheme: str, rival: str) -> str:
    claim = one.claim
    here, there = runs.where(**claim.where), runs.where(**one.there)
    return judged(claim.expected, contrast(here, there, scheme, rival, claim.measure, CELLS, claim.by), claim.least, claim.by)


def _table(rows: list[list[str]], titles: Sequence[str], first: str = "the paper's claim") -> str:
    return markdown_table([first, "against", *titles], rows) if rows and titles else ""
