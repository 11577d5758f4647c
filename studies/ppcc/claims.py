"""What the paper on TCP-PPCC says of its results, checked against a campaign's.

A claim about TCP-PPCC is judged for whoever plays in its place: its recipe as it was trained, our agent, other learners that
were given, a hand-written rule, a constant window, and chance, so that it can be seen what of a claim is learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import DIFFERENCE, HIGHER, LOWER, Claim, contrast, interval, judge, judged, verdict
from studies.common.results import Runs
from studies.common.verdicts import Found, claim_row, place, row_of, verdicts_table
from studies.ppcc import paper, worlds
from studies.ppcc.schemes import ACTION, AGENTS, CONSTANT, RANDOM, RECIPE, label
from studies.ppcc.settings import NS3, SENDERS, SERIES, TABLE

CELLS = ("study", "cell", "step")
"""Columns that pair runs."""
RIVALS = (paper.NEWRENO, paper.QTCP)
IN_ITS_PLACE = (*AGENTS, "queue_target", "keep", ACTION, CONSTANT, RANDOM)
"""Whom the paper's claims about TCP-PPCC are judged for."""
SEVERAL = tuple(worlds.cell(rate, many) for rate in worlds.RATES for many in paper.SENDERS if many > 1)
HALF = 0.5
"""What "most of the time" is more than."""


def about_table(study: str) -> list[Claim]:
    """The claims of the abstract and of Table III, in a study of its scenarios."""
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


def about_senders() -> list[Claim]:
    """The claims about several senders."""
    cells: dict[str, object] = {f"{_said(name)}: a smaller Mt": name for name in SEVERAL}
    cells["2 and 4 senders, all links: a smaller Mt"] = SEVERAL
    return [
        Claim(text, "Fig. 4d", "mt", RIVALS, LOWER, 0.0, {"study": SENDERS, "cell": cell}, DIFFERENCE)
        for text, cell in cells.items()
    ]


ADAPTED = Claim("from 10 to 20 Mbit/s throughput grows more", "V-B", "goodput_mbps", RIVALS, HIGHER)
"""A contrast: of senders on the faster link with those on the slower."""
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


def claims_table(runs: Runs, study: str) -> str:
    """All claims about a study, for whoever plays in TCP-PPCC's place; "" where the study or they are not there."""
    own = runs.where(study=study)
    schemes = [scheme for scheme in IN_ITS_PLACE if scheme in own.values("scheme")]
    found: list[list[str]] = []
    if study in (TABLE, NS3):
        found = _rows(own, about_table(study), schemes)
    elif study == SERIES:
        found = [
            _row(one, rival, [share_said(own, one, scheme, rival) for scheme in schemes])
            for one in OVER_TIME
            for rival in one.rivals
        ]
    elif study == SENDERS:
        found = _rows(own, about_senders(), schemes)
        found += [_row(ADAPTED, rival, [adapted(own, scheme, rival) for scheme in schemes]) for rival in RIVALS]
    rows = [row for row in found if any(cell != "-" for cell in row[2:])]
    header = ["the paper's claim about TCP-PPCC (where)", "against", *map(label, schemes)]
    return markdown_table(header, rows) if rows and schemes else ""


def verdicts_of(runs: Runs) -> str:
    """The table of verdicts, for the paper's recipe as it was trained; "" where it did not play."""
    if RECIPE not in runs.values("scheme"):
        return ""
    rows = [claim_row(one, runs, RECIPE, CELLS, label) for one in (*about_table(TABLE), *about_senders())]
    for one in OVER_TIME:
        found = {label(rival): share_said(runs, one, RECIPE, rival) for rival in one.rivals}
        rows.append(row_of(one.text, place(one), {rival: _parted(said) for rival, said in found.items() if said != "-"}))
    found = {label(rival): adapted(runs, RECIPE, rival) for rival in RIVALS}
    rows.append(row_of(ADAPTED.text, place(ADAPTED), {rival: _parted(said) for rival, said in found.items() if said != "-"}))
    return verdicts_table(rows)


def _parted(cell: str) -> Found:
    """A cell of a table as what was found."""
    said, _, found = cell.rpartition(": ")
    return said, found, 0.0


def adapted(runs: Runs, scheme: str, rival: str) -> str:
    """By how much more throughput grows from 10 to 20 Mbit/s than a rival's, several senders, as a cell of a table."""
    slow, fast = (
        runs.where(study=SENDERS, cell=tuple(worlds.cell(rate, many) for many in paper.SENDERS if many > 1))
        for rate in paper.RATES_MBPS
    )
    return judged(HIGHER, contrast(fast, slow, scheme, rival, ADAPTED.measure, CELLS))


def shares(runs: Runs, claim: Claim, scheme: str, rival: str) -> list[float]:
    """Of each seed, in what share of the seconds a scheme is on the claim's side of a rival."""
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


def share_said(runs: Runs, claim: Claim, scheme: str, rival: str) -> str:
    """The same as a cell of a table, with the verdict on "most of the time"."""
    found = interval(shares(runs, claim, scheme, rival))
    if found is None:
        return "-"
    over = interval([value - HALF for value in shares(runs, claim, scheme, rival)])
    assert over is not None
    return f"{100 * found.mean:.0f} % [{100 * found.low:.0f}, {100 * found.high:.0f}]: {verdict(HIGHER, over, by=DIFFERENCE)}"


def _rows(runs: Runs, claims: Sequence[Claim], schemes: Sequence[str]) -> list[list[str]]:
    return [
        _row(one, rival, ["" if rival == scheme else judge(one, runs, scheme, rival, CELLS) for scheme in schemes])
        for one in claims
        for rival in one.rivals
    ]


def _row(claim: Claim, rival: str, cells: Sequence[str]) -> list[str]:
    return [f"{claim.text} ({claim.figures})", label(rival), *cells]


def _said(cell: str) -> str:
    rate, _, many = cell.partition("-")
    return f"{many} senders, " + (f"{rate} Mbit/s" if rate != worlds.FLUCTUATING else rate)
