"""What a suite is: its worlds, what is measured in each, and by what controllers are ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Scenario


@dataclass(frozen=True)
class Cell:
    """One world of a suite.

    Attributes:
        name: Unique in its suite.
        family: The worlds that it is averaged with.
        scenario: With agents in the places that a controller takes.
        seed: Of the plant, and of what else is random.
    """

    name: str
    family: str
    scenario: Scenario
    seed: int

    @property
    def agents(self) -> int:
        """How many agents the controller plays: flows, or one where it is no sender."""
        return self.scenario.agents or 1


@dataclass(frozen=True)
class Edition:
    """The worlds of a suite as they stand: figures of different editions are not to be compared.

    Attributes:
        version: From 1 on.
        digest: Of all that decides the worlds, hexadecimal.
        cells: Those that there are, family by family.
    """

    version: int
    digest: str
    cells: Sequence[Cell]

    @property
    def families(self) -> list[str]:
        """Their names, in the order of the cells."""
        return list(dict.fromkeys(cell.family for cell in self.cells))

    def of(self, families: Sequence[str]) -> list[Cell]:
        """The cells of some families; of all where none is named.

        Raises:
            ConfigError: A family that there is not.
        """
        for family in families:
            if family not in self.families:
                raise ConfigError(f"families holds {family!r}; valid: {', '.join(self.families)}")
        return [cell for cell in self.cells if not families or cell.family in families]

    def named(self, names: Sequence[str]) -> list[Cell]:
        """The cells of these names, in their order: names go to other processes, where what measures a cell cannot be sent."""
        by_name = {cell.name: cell for cell in self.cells}
        return [by_name[name] for name in names]


@dataclass(frozen=True)
class Metric:
    """Something that is measured in each world.

    Attributes:
        key: Its name in files.
        label: Of its column.
        digits: Behind the point.
        says: What it is.
        factor: From the file's unit to the column's.
    """

    key: str
    label: str
    digits: int
    says: str
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite, as `netbuf-gym suite NAME` runs it.

    Attributes:
        name: On the command line.
        summary: One line.
        task: Whose controllers it judges.
        load: Its worlds, checked. Raises ConfigError where they are not what they were.
        measure: What a cell has come to, by `Metric.key`; NaN: it has none. Called with the world at its end.
        metrics: What `measure` gives, in the order of columns; the first one is the score, of which more is better.
        scatter: The keys of the abscissa and the ordinate of the picture of what is bought with what.
        families: What each family is.
        sample_s: How often counters are read while a world is played; `measure` is then called with what was read, a
            `netbuf_gym.evaluation.suites.recorder.Record`, instead. None: never.
        teller: What tells a run's results: it is made before anything is played, refuses what it cannot tell, and is then
            called with what was played (`netbuf_gym.evaluation.suites.report_files.Teller`).
    """

    name: str
    summary: str
    task: str
    load: Callable[[], Edition]
    measure: Callable[[Any, Any], dict[str, float]]
    metrics: tuple[Metric, ...]
    scatter: tuple[str, str]
    families: Mapping[str, str]
    teller: Callable[..., Any]
    sample_s: float | None = None

    @property
    def score(self) -> Metric:
        """What controllers are ranked by."""
        return self.metrics[0]

    def metric(self, key: str) -> Metric:
        """The one of a key."""
        return next(one for one in self.metrics if one.key == key)

    def __post_init__(self) -> None:
        keys = [one.key for one in self.metrics]
        if not set(self.scatter) <= set(keys):
            raise ConfigError(f"scatter of suite {self.name} = {self.scatter}; valid: two of {', '.join(keys)}")
