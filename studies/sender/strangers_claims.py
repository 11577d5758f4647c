"""Targets among strangers, checked against a campaign's runs, and the table of what was measured there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common.results import Runs
from studies.sender import strangers
from studies.sender.sender_schemes import label

MEAN, LEAST, GEOMETRIC, STARVED = "mean", "least", "geometric mean", "starved"
"""Ways to make one value of many worlds."""
RESAMPLES = 2000


@dataclass(frozen=True)
class RowClaim:
    """Claim about the worlds of a row.

    Attributes:
        text: Text of the claim.
        row: Name of the row.
        measure: Measured column.
        how: Way to make one value of the row's worlds.
        low, high: Limits of that value.
        over: Scheme that the value is relative to, in the same worlds; losses, which may be 0, by their means; "": none.
        digits: Digits after the decimal point.
    """

    text: str
    row: str
    measure: str
    how: str = MEAN
    low: float = -math.inf
    high: float = math.inf
    over: str = ""
    digits: int = 2


def _list_jitter_claims(row: str) -> list[RowClaim]:
    text = strangers.ROWS[row].text
    return [
        RowClaim(f"{text}: 0.85 of BBR's share of the link", row, "use", MEAN, low=0.85, over="bbr"),
        RowClaim(f"{text}: at least 0.6 of BBR's in every world", row, "use", LEAST, low=0.6, over="bbr"),
    ]


CLAIMS = (
    *(claim for row in strangers.JITTERED_ROWS for claim in _list_jitter_claims(row)),
    RowClaim("round trips 1 to 5: goodput of the short over the long 0.5 to 2", "round_trips", "ratio", GEOMETRIC, 0.5, 2.0),
    RowClaim("three CUBIC flows: these keep 0.8 of their fair share", "cubic3", "rivals_keep", low=0.8),
    RowClaim("NewReno: it keeps 0.75 of its fair share", "newreno", "rivals_keep", low=0.75),
    RowClaim(
        "shared worlds: starves nobody who is not starved beside CUBIC",
        "shared",
        "rivals_least",
        STARVED,
        high=0.0,
        over="cubic",
    ),
    RowClaim("16 on a slow link: Jain's index 0.9", "crowd", "jain", low=0.9),
    RowClaim("16 on a slow link: at most twice CUBIC's loss", "crowd", "loss", high=2.0, over="cubic"),
    RowClaim("policer: at most twice CUBIC's loss", "policer", "loss", high=2.0, over="cubic"),
    RowClaim("policer: 0.97 of CUBIC's goodput", "policer", "use", low=0.97, over="cubic"),
    RowClaim("way back of the same rate: 0.9 of the link", "way_back", "use", low=0.9),
    RowClaim("way back of a third: 0.8 of the link", "thin_back", "use", low=0.8),
)
"""All claims."""


def select_row(runs: Runs, row: str) -> Runs:
    """Return the runs in the worlds of a row."""
    return runs.where(cell=tuple(strangers.ROWS[row].list_cells()), step=0)


def measure_claim(claim: RowClaim, runs: Runs, scheme: str) -> statistics.Interval | None:
    """Return the value of a claim's measure for a scheme; None where it, or the other scheme, was not measured.

    Means are over cells, each the mean over its seeds, with an interval bootstrapped over cells; the least and the number of
    the starved are of all worlds, and have no interval.
    """
    of_row = select_row(runs, claim.row)
    own, other = (_collect(of_row.where(scheme=name), claim.measure) for name in (scheme, claim.over))
    keys = [key for key in own if not claim.over or key in other]
    if not keys:
        return None
    mine = np.array([own[key] for key in keys])
    theirs = np.array([other[key] for key in keys]) if claim.over else np.ones(len(keys))
    if claim.how == LEAST:
        return _make_certain(float((mine / theirs).min()))
    if claim.how == STARVED:
        return _make_certain(float(np.sum((mine < strangers.NEVER_BELOW) & (theirs >= strangers.NEVER_BELOW))))
    _, cell = np.unique([key[0] for key in keys], return_inverse=True)
    count = np.bincount(cell)
    means = np.array([np.bincount(cell, values) / count for values in (mine, theirs)])
    drawn = np.random.default_rng(0).integers(len(count), size=(RESAMPLES, len(count)))
    low, high = np.quantile(_average(claim, means[:, drawn]), (0.025, 0.975))
    return statistics.Interval(float(_average(claim, means)), float(low), float(high))


def _make_certain(value: float) -> statistics.Interval:
    return statistics.Interval(value, value, value)


def _average(claim: RowClaim, means: np.ndarray) -> np.ndarray:
    """Return a claim's mean over the last axis, of the scheme's values and the other scheme's."""
    mine, theirs = means
    if claim.how == GEOMETRIC:
        return np.exp(np.log(np.maximum(mine, 1e-9)).mean(axis=-1))
    if claim.measure == "loss":
        return mine.mean(axis=-1) / np.maximum(theirs.mean(axis=-1), 1e-9)
    return (mine / theirs).mean(axis=-1)


def _collect(runs: Runs, measure: str) -> dict[tuple[str, float], float]:
    """Return the finite values of a measure by cell and seed."""
    columns = runs.columns
    keys = zip(columns["cell"].tolist(), columns["seed"].tolist(), strict=True)
    values = columns[measure].tolist()
    return {key: value for key, value in zip(keys, values, strict=True) if math.isfinite(value)}


def format_measures_table(runs: Runs, schemes: Sequence[str]) -> str:
    """Return a table of the measures of each row by scheme: mean over the worlds, and the least or the most."""
    lines = []
    for row in strangers.ROWS.values():
        of_row = select_row(runs, row.name)
        for measure in row.measures if len(of_row) else ():
            cells = [_format_values(_collect(of_row.where(scheme=scheme), measure), measure) for scheme in schemes]
            lines.append([row.text, strangers.SHORT[measure], *cells])
    return markdown_table(["worlds", "measure", *map(label, schemes)], lines)


def _format_values(found: dict[tuple[str, float], float], measure: str) -> str:
    values = np.array(list(found.values()))
    if not len(values):
        return "-"
    digits = 1 if measure == "standing_ms" else 3 if measure in ("loss", "utility") else 2
    ends = values.max() if measure in strangers.LESS_IS_BETTER else values.min()
    return f"{values.mean():.{digits}f} ({ends:.{digits}f})"
