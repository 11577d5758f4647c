"""What a suite of the field is: worlds that know how they are scored, and a ranking of its own over everybody's results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Cell, Metric, Suite

TASK = "congestion_window"
"""Whose controllers these suites judge."""


@dataclass(frozen=True, kw_only=True)
class FieldCell(Cell):
    """One run of a suite's world.

    Attributes:
        measure: What it has come to, by `Metric.key`.
        about: The parameters that made it, for ranking and signs.
    """

    measure: Callable[[Record], dict[str, float]]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NotRun:
    """Worlds of a suite that are not played.

    Attributes:
        worlds: Which, and how many.
        feature: What is not built that they need.
    """

    worlds: str
    feature: str


@dataclass(frozen=True)
class Sign:
    """Something that is published, or expected, of a suite's results, and whether it is so here.

    Attributes:
        says: What.
        source: Of whom.
        holds: None: cannot be told from the results that there are.
        shown: The figures that say so.
        reason: Why it does not hold, where that is known.
    """

    says: str
    source: str
    holds: bool | None
    shown: str
    reason: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a report, the best first where it ranks.

    Attributes:
        title: What it is, without markup.
        says: How it is read.
        header, rows: Texts.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    says: str = ""


@dataclass(frozen=True)
class Told:
    """What a suite says of everybody's results.

    Attributes:
        first: The lines that a report begins with.
        ranking: Controllers, the best first.
        tables: The first of them is the ranking.
    """

    first: Sequence[str]
    ranking: Sequence[str]
    tables: Sequence[Table]


class Results:
    """What controllers have come to, world by world; what has no value is NaN.

    Args:
        cells: The worlds.
        worlds: By controller and the name of a world, its metrics.
    """

    def __init__(self, cells: Sequence[FieldCell], worlds: Mapping[str, Mapping[str, Mapping[str, float]]]):
        self.cells, self._worlds = cells, worlds

    @property
    def names(self) -> list[str]:
        """Who took part."""
        return list(self._worlds)

    def chosen(self, where: Callable[[FieldCell], bool] | None = None, **about: Any) -> list[FieldCell]:
        """The worlds of these parameters (`family` among them); a list means any of its values."""

        def fits(cell: FieldCell) -> bool:
            own = {"family": cell.family, **cell.about}
            return all(own.get(k) in (v if isinstance(v, list) else [v]) for k, v in about.items()) and not (
                where and not where(cell)
            )

        return [cell for cell in self.cells if fits(cell)]

    def at(self, name: str, key: str, cells: Iterable[FieldCell]) -> np.ndarray:
        """One metric of one controller in some worlds, `(worlds,)`."""
        own = self._worlds.get(name, {})
        return np.array([own.get(cell.name, {}).get(key, math.nan) for cell in cells], float)

    def values(self, name: str, key: str, **about: Any) -> np.ndarray:
        """One metric of one controller in the worlds of these parameters that have it."""
        found = self.at(name, key, self.chosen(**about))
        return found[np.isfinite(found)]

    def mean(self, name: str, key: str, **about: Any) -> float:
        """Its mean; NaN without any."""
        found = self.values(name, key, **about)
        return float(found.mean()) if len(found) else math.nan


def scored(metrics: Sequence[Metric]) -> Callable[[FieldCell, Record], dict[str, float]]:
    """What measures the worlds of a suite: each as it says, NaN for what is measured in others alone."""
    return lambda cell, record: {metric.key: math.nan for metric in metrics} | cell.measure(record)


@dataclass(frozen=True, kw_only=True)
class FieldSuite(Suite):
    """A suite of the field.

    Attributes:
        source: Where its parameters are from.
        rules: How it ranks, and what is ours in it, in sentences.
        judge: The ranking over everybody's results.
        signs: What is published of it, held against the results.
        not_run: What of it is not played.
        reference: Controllers that its report cannot do without.
        compares: Whether its ranking says who is better, and not who is alike one of them.
    """

    source: str
    rules: Sequence[str]
    judge: Callable[[Results], Told]
    signs: Callable[[Results], Sequence[Sign]]
    not_run: Sequence[NotRun] = ()
    reference: Sequence[str] = ()
    compares: bool = True


Column = tuple[Callable[[str], float], int, bool]
"""Of a ranking: a controller's value, digits behind the point, and whether less is better."""


def ranked(
    results: Results, columns: Mapping[str, Column], title: str, says: str = "", *, first_decides: bool = False
) -> tuple[list[str], Table]:
    """Controllers, the best first, and the table of them.

    Args:
        columns: By heading.
        first_decides: Whether they stand by the first column; else by the mean of their places in all of them.
    """
    names = results.names
    values = {head: {name: value(name) for name in names} for head, (value, _, _) in columns.items()}
    places: dict[str, list[int]] = {name: [] for name in names}
    for head, (_, _, less) in list(columns.items())[: 1 if first_decides else None]:
        own = {name: (value if less else -value) for name, value in values[head].items() if math.isfinite(value)}
        for name, value in own.items():
            places[name].append(1 + sum(other < value for other in own.values()))
    mean = {name: float(np.mean(found)) if found else math.inf for name, found in places.items()}
    order = sorted(names, key=lambda name: mean[name])
    last = [] if first_decides else ["mean place"]
    rows = []
    for place, name in enumerate(order, 1):
        cells = [_shown(values[head][name], digits) for head, (_, digits, _) in columns.items()]
        rows.append([str(place), name, *cells, *(_shown(mean[name], 1) for _ in last)])
    return order, Table(title, ["", "controller", *columns, *last], rows, says)


def _shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"
