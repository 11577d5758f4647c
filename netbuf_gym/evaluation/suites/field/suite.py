"""Data model of the suites of the field, and what they are built of.

Worlds measure themselves; a suite ranks by its own rule over all results.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Cell, Edition, Metric, Suite
from netbuf_gym.scenarios import Flow, Link, Scenario

TASK = "congestion_window"
"""Task whose controllers these suites evaluate."""
SENDER = f"{TASK}/sender"
"""The package's own agent (`netbuf_gym.zoo.library.SENDER`), in figures and signs."""


@dataclass(frozen=True, kw_only=True)
class FieldCell(Cell):
    """Run of a suite's world.

    Attributes:
        measure: Returns the metrics of the run, by `Metric.key`.
        about: Parameters that made the world, for ranking and signs.
    """

    measure: Callable[[Record], dict[str, float]]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OmittedWorlds:
    """Worlds of a suite that are not run.

    Attributes:
        worlds: Description and number of the worlds.
        feature: Missing feature that the worlds need.
    """

    worlds: str
    feature: str


@dataclass(frozen=True)
class Sign:
    """Published or expected property of a suite's results, and whether it holds here.

    Attributes:
        says: The property.
        source: Source of the claim.
        holds: Whether it holds; None: the available results do not tell.
        shown: Figures that show it.
        reason: Why it does not hold, if that is known.
    """

    says: str
    source: str
    holds: bool | None
    shown: str
    reason: str = ""


@dataclass(frozen=True)
class Table:
    """Table of a report, the best first if it ranks.

    Attributes:
        title: Title, without markup.
        says: How to read the table.
        header, rows: Texts of the cells.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    says: str = ""


@dataclass(frozen=True)
class Report:
    """Report of a suite on all results.

    Attributes:
        first: Lines that the report begins with.
        ranking: Controllers, the best first.
        tables: Tables; the first one is the ranking.
    """

    first: Sequence[str]
    ranking: Sequence[str]
    tables: Sequence[Table]


class Results:
    """Metrics of controllers, world by world; missing values are NaN.

    Args:
        cells: Worlds.
        worlds: Metrics by controller and world name.
    """

    def __init__(self, cells: Sequence[FieldCell], worlds: Mapping[str, Mapping[str, Mapping[str, float]]]):
        self.cells, self._worlds = cells, worlds

    @property
    def names(self) -> list[str]:
        """Names of the controllers."""
        return list(self._worlds)

    def select_cells(self, where: Callable[[FieldCell], bool] | None = None, **about: Any) -> list[FieldCell]:
        """Return the worlds with these parameters (`family` among them); a list stands for any of its values."""

        def fits(cell: FieldCell) -> bool:
            own = {"family": cell.family, **cell.about}
            return all(own.get(k) in (v if isinstance(v, list) else [v]) for k, v in about.items()) and not (
                where and not where(cell)
            )

        return [cell for cell in self.cells if fits(cell)]

    def get_values(self, name: str, key: str, cells: Iterable[FieldCell]) -> np.ndarray:
        """Return one metric of one controller in some worlds, `(worlds,)`."""
        own = self._worlds.get(name, {})
        return np.array([own.get(cell.name, {}).get(key, math.nan) for cell in cells], float)

    def values(self, name: str, key: str, **about: Any) -> np.ndarray:
        """Return the finite values of one metric of one controller in the worlds with these parameters."""
        found = self.get_values(name, key, self.select_cells(**about))
        return found[np.isfinite(found)]

    def mean(self, name: str, key: str, **about: Any) -> float:
        """Return the mean of one metric of one controller in the worlds with these parameters; NaN without any value."""
        found = self.values(name, key, **about)
        return float(found.mean()) if len(found) else math.nan


def make_measure(metrics: Sequence[Metric]) -> Callable[[FieldCell, Record], dict[str, float]]:
    """Return a function that measures a suite's worlds, each by its own function; metrics of other worlds are NaN."""
    return lambda cell, record: {metric.key: math.nan for metric in metrics} | cell.measure(record)


@dataclass(frozen=True, kw_only=True)
class FieldSuite(Suite):
    """Suite of the field.

    Attributes:
        source: Source of its parameters.
        rules: Its ranking rule, and what we added to it, in sentences.
        judge: Returns the ranking over all results.
        signs: Compares published properties with the results; default: none are published.
        not_run: Parts that are not run.
        reference: Controllers that its report requires.
        compares: Whether its ranking says which controller is better, not which one resembles a reference.
    """

    task: str = TASK
    source: str
    rules: Sequence[str]
    judge: Callable[[Results], Report]
    signs: Callable[[Results], Sequence[Sign]] = lambda results: ()
    not_run: Sequence[OmittedWorlds] = ()
    reference: Sequence[str] = ()
    compares: bool = True


Column = tuple[Callable[[str], float], int, bool]
"""Column of a ranking: a controller's value, decimal places, and whether less is better."""


def rank_controllers(
    results: Results, columns: Mapping[str, Column], title: str, says: str = "", *, first_decides: bool = False
) -> tuple[list[str], Table]:
    """Return the controllers, the best first, and the table of the ranking.

    Args:
        columns: Columns by heading.
        first_decides: Whether controllers are ordered by the first column; else by their mean place over all columns.
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
        cells = [_format_value(values[head][name], digits) for head, (_, digits, _) in columns.items()]
        rows.append([str(place), name, *cells, *(_format_value(mean[name], 1) for _ in last)])
    return order, Table(title, ["", "controller", *columns, *last], rows, says)


def _format_value(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


PACKET_BITS = 12_000


def make_path(
    rate_mbps: float | None,
    rtt_ms: Any,
    flows: Sequence[tuple[str, float, float | None]],
    duration_s: float,
    *,
    queue_packets: int | None = None,
    queue_bytes: int | None = None,
    loss: Any = 0.0,
    back: Link | None = None,
    more: dict[str, Any] | None = None,
    **link: Any,
) -> Scenario:
    """Return a scenario in which flows share a bottleneck.

    Args:
        rtt_ms: Round-trip propagation of the path, a number; half of it behind the bottleneck, half on the return path.
        flows: For each flow its control ("agent": the controller's place), start and stop, s.
        back: Return path; None: half of the round trip, without a limit.
        more: Further fields of the scenario.
        link: Further fields of the bottleneck.
    """
    link = {"delay_ms": rtt_ms / 2, **link}
    ahead = Link(
        name="bottleneck", rate_mbps=rate_mbps, queue_packets=queue_packets, queue_bytes=queue_bytes, loss=loss, **link
    )
    behind = back or Link(name="return", delay_ms=rtt_ms / 2)
    made = [Flow(cc=cc, path=(0,), return_path=(1,), start_s=at, stop_s=until) for cc, at, until in flows]
    return Scenario(links=[ahead, behind], flows=made, duration_s=duration_s, **(more or {}))


def bdp_packets(rate_mbps: float, rtt_ms: float) -> float:
    """Return the number of full packets of 1500 bytes that a path holds."""
    return rate_mbps * rtt_ms * 1e3 / PACKET_BITS


def compute_queue(rate_mbps: float, rtt_ms: float, times: float) -> int:
    """Return a multiple of what a path holds, in whole packets, at least one."""
    return max(1, round(bdp_packets(rate_mbps, rtt_ms) * times))


def derive_seed(*words: Any) -> int:
    """Return a seed that depends only on a world's name, not on other worlds of its suite."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big")


def make_loader(version: int, make: Callable[[], Sequence[FieldCell]]) -> Callable[[], Edition]:
    """Return a function that loads a list of worlds, once, with a digest of everything that determines them."""

    @lru_cache(maxsize=1)
    def load() -> Edition:
        cells = tuple(make())
        sha = hashlib.sha256()
        for cell in cells:
            made = frozen.round_floats(cell.scenario.to_dict())  # processors differ in the last bits of traces
            sha.update(json.dumps([cell.name, cell.family, cell.seed, made], sort_keys=True).encode())
        return Edition(version, sha.hexdigest()[:16], cells)

    return load
