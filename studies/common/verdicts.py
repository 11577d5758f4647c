"""The table that a study's page begins with: a row a claim, what the paper has, what we found, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import HOLDS, LOWER, OPPOSITE, RATIO, SLIGHT, UNDECIDED, Claim, change, judged
from studies.common.results import Runs

HEADER = ("claim", "paper", "ours", "verdict")
NOT_JUDGED = "not judged, of one seed"
FURTHEST = (OPPOSITE, "does not hold", UNDECIDED, "not shown", NOT_JUDGED, SLIGHT, HOLDS)
"""Verdicts, those furthest from the claim first."""
Found = tuple[str, str, float]
"""A change in words, its verdict, and how far it goes the claim's way."""


def verdicts_table(rows: Iterable[Sequence[str] | None], header: Sequence[str] = HEADER) -> str:
    """Markdown; "" without any row."""
    there = [row for row in rows if row is not None]
    return markdown_table(header, there) if there else ""


def claim_row(
    claim: Claim, runs: Runs, scheme: str, cells: Sequence[str], label: Callable[[str], str] = str, about: str = ""
) -> list[str] | None:
    """A claim about a scheme, judged against all of its rivals that played; None where none did.

    Args:
        cells: The columns that tell cells apart.
        label: How rivals are called.
        about: What its text begins with.
    """
    found = {}
    for rival in claim.rivals:
        value = change(runs.where(**claim.where), scheme, rival, claim.measure, cells, claim.by) if rival != scheme else None
        if value is not None:
            found[label(rival)] = found_of(claim.expected, value, claim.least, claim.by)
    return row_of(f"{about}{claim.text}", place(claim), found)


def row_of(text: str, paper: str, found: dict[str, Found]) -> list[str] | None:
    """A row of what was found against each rival: the one that is furthest from the claim, and of how many it holds."""
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


def found_of(expected: str, found: statistics.Interval, least: float = 0.0, by: str = RATIO) -> Found:
    """A change in words, its verdict, and how far it goes the way of the claim."""
    said, _, verdict = judged(expected, found, least, by).partition(": ")
    return said, verdict, -found.mean if expected == LOWER else found.mean


def place(claim: Claim) -> str:
    """Where the paper has a claim, and the change that its words ask for."""
    where = f"Fig. {claim.figures}" if claim.figures[:1].isdigit() else claim.figures
    if claim.by == RATIO and math.isfinite(claim.least) and claim.least:
        return f"{100 * claim.least:.4g} %, {where}"
    return where
