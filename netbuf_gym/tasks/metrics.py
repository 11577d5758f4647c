"""Metrics of a task: the measures of an episode, the columns of tables, and the baselines compared with agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.scenarios.types import Scenario


@dataclass(frozen=True)
class Column:
    """Column of a table.

    Attributes:
        metric, label, digits: Metric, its label and decimal places.
        factor: Factor that it is multiplied by.
        says: Its meaning in words.
    """

    metric: str
    label: str
    digits: int
    factor: float = 1.0
    says: str = ""


@dataclass(frozen=True)
class Margin:
    """Column comparing the first controller with each other one, paired by seed: the difference, absolute or in per cent."""

    metric: str
    label: str
    relative: bool = False


@dataclass(frozen=True)
class Price:
    """Metric that a score may be traded against, shown beside it by leaderboards in per cent of a reference controller's value.

    Attributes:
        metric: Name of the metric, whose values are above 0.
        label: Label of the column.
        of: Reference controller, which pays no price.
    """

    metric: str
    label: str
    of: str


@dataclass(frozen=True)
class Limit:
    """Limit that a world sets on a quantity over time, such as a link's capacity, drawn behind that quantity.

    Attributes:
        key: Key of the series.
        label: Label of the limit.
        of: Returns the limit of a scenario as edges (steps + 1,) in seconds and the values between them (steps,); infinity
            where there is none.
    """

    key: str
    label: str
    of: Callable[[Scenario], tuple[np.ndarray, np.ndarray]]


def bottleneck_capacity(world: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Return the capacity of a world's bottleneck over time as edges and values, for a `Limit`."""
    return world.links[world.bottleneck].capacity_steps(world.duration_s)


@dataclass(frozen=True)
class Group:
    """Property of worlds by which results are broken down."""

    label: str
    of: Callable[[Scenario], float | str]
    digits: int = 0


@dataclass(frozen=True)
class Score:
    """Metric by which models and settings are chosen.

    Attributes:
        metric: Name of the metric.
        lower_is_better: Its direction.
        geometric: Whether it is a ratio above 0, averaged over worlds by its logarithm.
    """

    metric: str
    lower_is_better: bool = False
    geometric: bool = False


@dataclass(frozen=True)
class FlowPercentile:
    """Percentile (nearest rank) over completed flows, which can be taken over the flows of many worlds together.

    Attributes:
        of: Column of the completed flows (`netbuf_gym.simulation.results.traffic.COMPLETED`).
        share: Share of the flows at or below it, 0 to 1.
        priority: Priority of the flows; None: all.
    """

    of: str
    share: float
    priority: int | None = None


@dataclass(frozen=True)
class Measures:
    """Measures by which the controllers of a task are compared.

    Attributes:
        metrics: Metrics kept of every episode's report; empty: all numbers in it.
        columns: Columns of tables, margins among them.
        score: Metric that ranks controllers, in the direction given by `lower_is_better`.
        geometric: Whether the score is a ratio above 0, averaged over worlds by its logarithm where models are chosen.
        further_scores: Further scores that models and settings may be chosen by (`validation.score`).
        percentiles: Metrics that are percentiles over flows, by name: a search takes them over the flows of all its worlds.
        logged: Metrics that training logs.
        series: Series of the first episode that are kept (`Task.show`) and drawn, with labels.
        series_limits: Limits drawn behind the series.
        scatter: Metrics of the trade-off plot, horizontal and vertical, with labels; None: no such plot.
        score_says: Meaning of the score, a sentence for pages.
        baselines: Controllers compared with an agent by default.
        benchmark: Scenarios that agents are compared on.
        groups: Properties by which results under a distribution of scenarios are broken down.
        details: Columns of a second table.
        shown: Controllers drawn in plots over time where there are many.
        chosen_on: Suite on whose worlds models and constant actions are chosen; "": none.
        carded_on: Suite that cards show, with the controllers `carded_beside`; only where there is one to choose on.
        ranked_beside: Further controllers on leaderboards, in addition to `baselines` and `carded_beside`.
        price: Metric that leaderboards show beside the score; None: none.
        heuristics: Controllers that act through the agents' own control without having learned: agents are ranked against the
            best of them; all others are other controls, shown beside.
        constants: Constant controllers acting through that same control, the best of which is chosen on separate worlds.
        counts: Metrics that are percentiles over flows, each with the metric that has their number.
        built_in: By recipe, what rules do that every agent of it has, a sentence for cards.
        limit: Limit that a world sets on the vertical metric of the trade-off plot, drawn where all worlds agree.
    """

    metrics: tuple[str, ...] = ()
    columns: tuple[Column | Margin, ...] = ()
    score: str = ""
    lower_is_better: bool = False
    geometric: bool = False
    further_scores: tuple[Score, ...] = ()
    percentiles: Mapping[str, FlowPercentile] = field(default_factory=dict)
    logged: tuple[str, ...] = ()
    series: tuple[tuple[str, str], ...] = ()
    series_limits: tuple[Limit, ...] = ()
    scatter: tuple[tuple[str, str], tuple[str, str]] | None = None
    score_says: str = ""
    baselines: tuple[str, ...] = ()
    benchmark: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    details: tuple[Column, ...] = ()
    shown: tuple[str, ...] = ()
    limit: Callable[[Scenario], float] | None = None
    chosen_on: str = ""
    carded_on: str = ""
    carded_beside: tuple[str, ...] = ()
    ranked_beside: tuple[str, ...] = ()
    price: Price | None = None
    heuristics: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    counts: Mapping[str, str] = field(default_factory=dict)
    built_in: Mapping[str, str] = field(default_factory=dict)

    def fill_in(self, metrics: Iterable[str]) -> Measures:
        """Return a copy with the missing parts filled in.

        `metrics` are used where none are set; without columns, each metric gets a plain one; the score defaults to the first
        metric.
        """
        if self.metrics and self.columns:
            return self
        metrics = self.metrics or tuple(metrics)
        columns = self.columns or tuple(Column(metric, metric, 3) for metric in metrics)
        return replace(self, metrics=metrics, columns=columns, score=self.score or next(iter(metrics), ""))

    def get_score(self, name: str | None = None, field: str = "score") -> Score:
        """Return a score by its metric's name; None: the one that ranks controllers.

        Raises:
            ConfigError: There is no such score; names `field`.
        """
        own = (Score(self.score, self.lower_is_better, self.geometric), *self.further_scores)
        for one in own:
            if name is None or one.metric == name:
                return one
        raise ConfigError(f"{field} = {quote(name)} is no score of the task; valid: {', '.join(one.metric for one in own)}")

    def describe_columns(self, columns: Sequence[Column | Margin] | None = None) -> list[str]:
        """Return the meanings of table columns, `label: words` each; for `columns`, or for all tables (None)."""
        columns = (*self.columns, *self.details) if columns is None else columns
        lines = [f"{one.label}: {one.says}" for one in columns if isinstance(one, Column) and one.says]
        return list(dict.fromkeys(lines))
