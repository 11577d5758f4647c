"""Claims of the paper on TCP-PPCC, checked against a campaign's results.

A claim about TCP-PPCC is judged for every scheme in its place: the paper's recipe as trained, our agent, other learners that
were given, hand-written rules, a constant action, a constant window and random actions. The comparison shows which part of a
claim depends on learning.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import (
    DIFFERENCE,
    HIGHER,
    LOWER,
    Claim,
    compute_contrast,
    compute_interval,
    decide_verdict,
    format_judgement,
    judge_claim,
)
from studies.common.results import Runs
from studies.common.verdicts import JudgedChange, format_source, format_verdicts_table, make_claim_row, make_row
from studies.ppcc import paper
from studies.ppcc import ppcc_worlds as worlds
from studies.ppcc.ppcc_schemes import ACTION, AGENTS, CONSTANT, RANDOM, RECIPE, label
from studies.ppcc.ppcc_settings import NS3, SENDERS, SERIES, TABLE

CELLS = ("study", "cell", "step")
"""Columns that pair runs."""
RIVALS = (paper.NEWRENO, paper.QTCP)
IN_ITS_PLACE = (*AGENTS, "queue_target", "keep", ACTION, CONSTANT, RANDOM)
"""Schemes for which the paper's claims about TCP-PPCC are judged."""
SEVERAL = tuple(worlds.name_cell(rate, many) for rate in worlds.RATES for many in paper.SENDERS if many > 1)
HALF = 0.5
"""Share of the seconds that "most of the time" exceeds."""


def list_table_claims(study: str) -> list[Claim]:
    """Return the claims of the abstract and of Table III, for a study of the table's scenarios."""
    made = []
    for number, rows in paper.TABLE_3.items():
        for rival in RIVALS:
            own, other = rows[paper.PPCC].mt, rows[rival].mt
            expected, said = (LOWER, "lower") if own < other else (HIGHER, "higher")
            text = f"{number}: Mt {said}, {own:g} and {other:g}"
            made.append(Claim(text, "Table III", "mt", (rival,), expected, 0.0, {"study": study, "cell": number}, DIFFERENCE))
    newreno, there = (paper.NEWRENO,), {"study": study, "cell": paper.MAIN}
    less, more = paper.LESS_DELAY, paper.MORE_THROUGHPUT
    return [
        Claim(f"2: {100 * less:.4g} % less delay", "abstract", "delay_ms", newreno, LOWER, less, there),
        Claim(f"2: {100 * more:.3g} % more throughput", "abstract", "goodput_mbps", newreno, HIGHER, more, there),
        Claim("all four: a smaller Mt", "V-A", "mt", RIVALS, LOWER, 0.0, {"study": study}, DIFFERENCE),
        *made,
        Claim("2, 4: the least loss", "V-A", "loss", RIVALS, LOWER, 0.0, {"study": study, "cell": paper.LOSSY}, DIFFERENCE),
    ]


def list_sender_claims() -> list[Claim]:
    """Return the claims about several senders."""
    cells: dict[str, object] = {f"{_describe_cell(name)}: a smaller Mt": name for name in SEVERAL}
    cells["2 and 4 senders, all links: a smaller Mt"] = SEVERAL
    return [
        Claim(text, "Fig. 4d", "mt", RIVALS, LOWER, 0.0, {"study": SENDERS, "cell": cell}, DIFFERENCE)
        for text, cell in cells.items()
    ]


ADAPTED = Claim("from 10 to 20 Mbit/s throughput grows more", "V-B", "goodput_mbps", RIVALS, HIGHER)
"""Contrast of senders on the faster link with senders on the slower one."""
OVER_TIME = (
    Claim("2: most of the time a lower RTT", "Fig. 4b", "rtt_ms", RIVALS, LOWER, where={"study": SERIES, "cell": paper.MAIN}),
    Claim(
        "2: most of the time a higher throughput",
        "Fig. 4c",
        "throughput_mbps",
        RIVALS,
        HIGHER,
        where={"study": SERIES, "cell": paper.MAIN},
    ),
)


def format_claims_table(runs: Runs, study: str) -> str:
    """Return a table of all claims about a study, for the schemes in TCP-PPCC's place; "" without the study or such schemes."""
    own = runs.where(study=study)
    schemes = [scheme for scheme in IN_ITS_PLACE if scheme in own.values("scheme")]
    found: list[list[str]] = []
    if study in (TABLE, NS3):
        found = _make_table_rows(own, list_table_claims(study), schemes)
    elif study == SERIES:
        found = [
            _make_table_row(one, rival, [format_time_share(own, one, scheme, rival) for scheme in schemes])
            for one in OVER_TIME
            for rival in one.rivals
        ]
    elif study == SENDERS:
        found = _make_table_rows(own, list_sender_claims(), schemes)
        found += [
            _make_table_row(ADAPTED, rival, [format_adaptation(own, scheme, rival) for scheme in schemes]) for rival in RIVALS
        ]
    rows = [row for row in found if any(cell != "-" for cell in row[2:])]
    header = ["the paper's claim about TCP-PPCC (where)", "against", *map(label, schemes)]
    return markdown_table(header, rows) if rows and schemes else ""


def format_verdicts(runs: Runs) -> str:
    """Return the table of verdicts for the paper's recipe as trained; "" where the recipe did not run."""
    if RECIPE not in runs.values("scheme"):
        return ""
    rows = [make_claim_row(one, runs, RECIPE, CELLS, label) for one in (*list_table_claims(TABLE), *list_sender_claims())]
    for one in OVER_TIME:
        found = {label(rival): format_time_share(runs, one, RECIPE, rival) for rival in one.rivals}
        rows.append(
            make_row(
                one.text, format_source(one), {rival: _split_judgement(said) for rival, said in found.items() if said != "-"}
            )
        )
    found = {label(rival): format_adaptation(runs, RECIPE, rival) for rival in RIVALS}
    rows.append(
        make_row(
            ADAPTED.text,
            format_source(ADAPTED),
            {rival: _split_judgement(said) for rival, said in found.items() if said != "-"},
        )
    )
    return format_verdicts_table(rows)


def _split_judgement(cell: str) -> JudgedChange:
    """Split a table cell into words and verdict, with a size of 0."""
    said, _, found = cell.rpartition(": ")
    return said, found, 0.0


def format_adaptation(runs: Runs, scheme: str, rival: str) -> str:
    """Return how much more throughput grows from 10 to 20 Mbit/s than a rival's, for several senders, as a table cell."""
    slow, fast = (
        runs.where(study=SENDERS, cell=tuple(worlds.name_cell(rate, many) for many in paper.SENDERS if many > 1))
        for rate in paper.RATES_MBPS
    )
    return format_judgement(HIGHER, compute_contrast(fast, slow, scheme, rival, ADAPTED.measure, CELLS))


def compute_time_shares(runs: Runs, claim: Claim, scheme: str, rival: str) -> list[float]:
    """Return for each seed the share of seconds in which a scheme is on the claim's side of a rival."""
    own = runs.where(**claim.where)
    sign = 1.0 if claim.expected == HIGHER else -1.0
    found = []
    for seed in own.values("seed"):
        ours, theirs = (own.where(scheme=one, seed=seed).columns for one in (scheme, rival))
        there = dict(zip(theirs["step"].tolist(), theirs[claim.measure].tolist(), strict=True))
        pairs = zip(ours["step"].tolist(), ours[claim.measure].tolist(), strict=True)
        differences = np.array([sign * (value - there.get(at, np.nan)) for at, value in pairs])
        differences = differences[np.isfinite(differences)]
        if len(differences):
            found.append(float((differences > 0).mean()))
    return found


def format_time_share(runs: Runs, claim: Claim, scheme: str, rival: str) -> str:
    """Return the share of seconds on the claim's side with the verdict on "most of the time", as a table cell."""
    found = compute_interval(compute_time_shares(runs, claim, scheme, rival))
    if found is None:
        return "-"
    over = compute_interval([value - HALF for value in compute_time_shares(runs, claim, scheme, rival)])
    assert over is not None
    verdict = decide_verdict(HIGHER, over, by=DIFFERENCE)
    return f"{100 * found.mean:.0f} % [{100 * found.low:.0f}, {100 * found.high:.0f}]: {verdict}"


def _make_table_rows(runs: Runs, claims: Sequence[Claim], schemes: Sequence[str]) -> list[list[str]]:
    return [
        _make_table_row(
            one, rival, ["" if rival == scheme else judge_claim(one, runs, scheme, rival, CELLS) for scheme in schemes]
        )
        for one in claims
        for rival in one.rivals
    ]


def _make_table_row(claim: Claim, rival: str, cells: Sequence[str]) -> list[str]:
    return [f"{claim.text} ({claim.figures})", label(rival), *cells]


def _describe_cell(cell: str) -> str:
    rate, _, many = cell.partition("-")
    return f"{many} senders, " + (f"{rate} Mbit/s" if rate != worlds.FLUCTUATING else rate)
