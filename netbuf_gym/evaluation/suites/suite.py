"""Data model of suites: worlds, metrics measured in each, and the score that controllers are ranked by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Scenario


@dataclass(frozen=True)
class Cell:
    """World of a suite.

    Attributes:
        name: Name, unique in its suite.
        family: Family of worlds that it is averaged with.
        scenario: Scenario, with agents in the controller's places.
        seed: Seed of the plant, and of all other random numbers.
    """

    name: str
    family: str
    scenario: Scenario
    seed: int

    @property
    def agents(self) -> int:
        """Number of agents that the controller decides for: flows, or one if it is no sender."""
        return self.scenario.agents or 1


@dataclass(frozen=True)
class Edition:
    """Version of a suite's worlds; results of different editions are not comparable.

    Attributes:
        version: Version number, from 1 on.
        digest: Digest of everything that determines the worlds, hexadecimal.
        cells: Worlds, family by family.
    """

    version: int
    digest: str
    cells: Sequence[Cell]

    @cached_property
    def by_family(self) -> Mapping[str, Sequence[Cell]]:
        """Cells of each family, in the order of the cells."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.family, []).append(cell)
        return found

    @property
    def families(self) -> list[str]:
        """Names of the families, in the order of the cells."""
        return list(self.by_family)

    def select_cells(self, families: Sequence[str]) -> list[Cell]:
        """Return the cells of some families, or all cells if none is named.

        Raises:
            ConfigError: For an unknown family.
        """
        for family in families:
            if family not in self.by_family:
                raise ConfigError(f"families holds {family!r}; valid: {', '.join(self.families)}")
        return [cell for cell in self.cells if not families or cell.family in families]

    def get_named_cells(self, names: Sequence[str]) -> list[Cell]:
        """Return the cells of these names, in the same order.

        Names are sent to other processes, as the functions that measure a cell cannot be pickled.
        """
        by_name = {cell.name: cell for cell in self.cells}
        return [by_name[name] for name in names]


@dataclass(frozen=True)
class Metric:
    """Quantity that is measured in each world.

    Attributes:
        key: Name in files.
        label: Heading of the column.
        digits: Decimal places.
        says: Description.
        factor: Factor from the file's unit to the column's.
        count: Key of the metric with the number of flows that a percentile is of; "": it is no percentile of flows.
    """

    key: str
    label: str
    digits: int
    says: str
    factor: float = 1.0
    count: str = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Suite, as `netbuf-gym suite NAME` runs it.

    Attributes:
        name: Name on the command line.
        summary: One line.
        task: Task whose controllers the suite evaluates.
        load: Returns its worlds, checked; raises ConfigError if they have changed.
        measure: Returns the metrics of a cell by `Metric.key`, NaN if missing; called with the world at its end.
        metrics: Results of `measure`, in the order of columns; the first one is the score, higher is better.
        scatter: Keys of the abscissa and the ordinate of the trade-off figure.
        families: Description of each family.
        sample_s: Interval at which counters are read during a run; `measure` is then called with a
            `netbuf_gym.evaluation.suites.recorder.Record` of the readings instead. None: never.
    """

    name: str
    summary: str
    task: str
    load: Callable[[], Edition]
    measure: Callable[[Any, Any], dict[str, float]]
    metrics: tuple[Metric, ...]
    scatter: tuple[str, str]
    families: Mapping[str, str]
    sample_s: float | None = None

    def outline(self) -> Edition:
        """Return its worlds for those who only read results: without scenarios where these would take time to make."""
        return getattr(self.load, "outline", self.load)()

    @property
    def score(self) -> Metric:
        """Metric that controllers are ranked by."""
        return self.metrics[0]

    def metric(self, key: str) -> Metric:
        """Return the metric of a key."""
        return next(one for one in self.metrics if one.key == key)

    @property
    def counts(self) -> set[str]:
        """Keys of metrics that are numbers of flows; rows of earlier versions may lack them."""
        return {one.count for one in self.metrics if one.count}

    def __post_init__(self) -> None:
        keys = [one.key for one in self.metrics]
        if not set(self.scatter) <= set(keys):
            raise ConfigError(f"scatter of suite {self.name} = {self.scatter}; valid: two of {', '.join(keys)}")
