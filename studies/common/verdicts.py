"""Table of verdicts at the top of a study's page: per claim the paper's statement, our result, and whether the claim holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import HOLDS, LOWER, OPPOSITE, RATIO, SLIGHT, UNDECIDED, Claim, compute_change, format_judgement
from studies.common.results import Runs

HEADER = ("claim", "paper", "ours", "verdict")
NOT_JUDGED = "not judged, of one seed"
FURTHEST = (OPPOSITE, "does not hold", UNDECIDED, "not shown", NOT_JUDGED, SLIGHT, HOLDS)
"""Verdicts, those furthest from the claim first."""
JudgedChange = tuple[str, str, float]
"""A change in words, its verdict, and its size in the direction of the claim."""


def format_verdicts_table(rows: Iterable[Sequence[str] | None], header: Sequence[str] = HEADER) -> str:
    """Return the table as Markdown; "" without any row."""
    there = [row for row in rows if row is not None]
    return markdown_table(header, there) if there else ""


def make_claim_row(
    claim: Claim, runs: Runs, scheme: str, cells: Sequence[str], label: Callable[[str], str] = str, about: str = ""
) -> list[str] | None:
    """Return a claim about a scheme, judged against all of its rivals that played; None if none did.

    Args:
        claim: The claim.
        runs: A campaign's runs.
        scheme: Scheme that the claim is about.
        cells: Columns that identify a cell.
        label: Returns the displayed name of a rival.
        about: Prefix of the claim's text.
    """
    found = {}
    for rival in claim.rivals:
        value = (
            compute_change(runs.where(**claim.where), scheme, rival, claim.measure, cells, claim.by)
            if rival != scheme
            else None
        )
        if value is not None:
            found[label(rival)] = judge_change(claim.expected, value, claim.least, claim.by)
    return make_row(f"{about}{claim.text}", format_source(claim), found)


def make_row(text: str, paper: str, found: dict[str, JudgedChange]) -> list[str] | None:
    """Return a table row of the results against all rivals: the one furthest from the claim, and how many confirm it."""
    if not found:
        return None
    worst = min(found, key=lambda rival: (FURTHEST.index(found[rival][1]), found[rival][2]))
    said, verdict, _ = found[worst]
    if len(found) == 1:
        return [f"{text}, against {worst}" if worst else text, paper, said, verdict]
    holds = sum(one[1] == HOLDS for one in found.values())
    if 0 < holds < len(found):
        verdict = f"holds against {holds} of {len(found)}"
    return [f"{text}, against {', '.join(found)}", paper, f"{said} ({worst})", verdict]


def judge_change(expected: str, found: statistics.Interval, least: float = 0.0, by: str = RATIO) -> JudgedChange:
    """Return a change in words, its verdict, and its size in the direction of the claim."""
    said, _, verdict = format_judgement(expected, found, least, by).partition(": ")
    return said, verdict, -found.mean if expected == LOWER else found.mean


def format_source(claim: Claim) -> str:
    """Return the position of a claim in the paper, with the change that its words ask for."""
    where = f"Fig. {claim.figures}" if claim.figures[:1].isdigit() else claim.figures
    if claim.by == RATIO and math.isfinite(claim.least) and claim.least:
        return f"{100 * claim.least:.4g} %, {where}"
    return where
