"""Metrics of a task: the measures of an episode, the columns of tables, and the baselines that stand beside agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from netbuf_gym.scenarios.types import Scenario


@dataclass(frozen=True)
class Column:
    """A column of a table: a measure, what stands above it, its digits, what it is multiplied by, and what it is in words."""

    metric: str
    label: str
    digits: int
    factor: float = 1.0
    says: str = ""


@dataclass(frozen=True)
class Margin:
    """A column that sets the first controller beside each other one, paired by seed: the difference, or it in per cent."""

    metric: str
    label: str
    relative: bool = False


@dataclass(frozen=True)
class Price:
    """What a score could be bought with, which leaderboards show beside it: in per cent of what a controller has who buys none.

    Attributes:
        metric: above 0.
        label: of the column.
        of: that controller.
    """

    metric: str
    label: str
    of: str


@dataclass(frozen=True)
class Limit:
    """What a world sets a quantity over time for a limit: a link's capacity, say, drawn behind that quantity.

    Attributes:
        key: of the series.
        label: what the limit is called.
        of: its value between edges: edges (steps + 1,) in seconds, values (steps,); infinity where there is none.
    """

    key: str
    label: str
    of: Callable[[Scenario], tuple[np.ndarray, np.ndarray]]


def bottleneck_capacity(world: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """The capacity of a world's bottleneck over time, for a `Limit`."""
    return world.links[world.bottleneck].capacity_steps(world.duration_s)


@dataclass(frozen=True)
class Group:
    """A property of worlds by which results are broken down."""

    label: str
    of: Callable[[Scenario], float | str]
    digits: int = 0


@dataclass(frozen=True)
class Measures:
    """How a task's controllers are compared.

    Attributes:
        metrics: what is kept of every episode's report; empty: all numbers in it.
        columns: of tables, margins among them.
        score: the metric that ranks controllers; `lower_is_better` says how.
        geometric: whether it is a ratio above 0, of whose logarithms the mean over worlds is taken where models are chosen.
        logged: metrics that training logs.
        series: what is kept of the first episode over time (`Task.show`), and drawn, with labels.
        series_limits: drawn behind them.
        scatter: metrics of the plot of trade-offs, horizontal and vertical, with labels; None: there is no such plot.
        score_says: what the score is, a sentence for pages.
        baselines: set beside an agent unless others are asked for.
        benchmark: scenarios that agents are compared on.
        groups: how results under a distribution of scenarios are broken down.
        details: columns of a second table.
        shown: controllers that pictures over time have lines for where there are many.
        chosen_on: the suite on whose worlds models and constant actions are chosen; "": none.
        carded_on: the suite that cards show, beside the controllers `carded_beside`; only where there is one to choose on.
        ranked_beside: further controllers that leaderboards hold beside `baselines` and `carded_beside`.
        price: what a leaderboard shows beside the score; None: nothing.
        heuristics: controllers that act through the agents' own control without having learned: the best of them is what agents
            are ranked against; all others are other controls, shown beside.
        constants: what never changes its mind, by that control, of which the best is chosen on worlds of its own.
        limit: what a world sets the vertical measure of the plot of trade-offs for a limit, drawn where all worlds agree.
    """

    metrics: tuple[str, ...] = ()
    columns: tuple[Column | Margin, ...] = ()
    score: str = ""
    lower_is_better: bool = False
    geometric: bool = False
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

    def of(self, metrics: Iterable[str]) -> Measures:
        """These, with a plain column for each metric where they name no columns, the first being the score unless they say;
        `metrics` are taken where they name none."""
        if self.metrics and self.columns:
            return self
        metrics = self.metrics or tuple(metrics)
        columns = self.columns or tuple(Column(metric, metric, 3) for metric in metrics)
        return replace(self, metrics=metrics, columns=columns, score=self.score or next(iter(metrics), ""))

    def said(self, columns: Sequence[Column | Margin] | None = None) -> list[str]:
        """What the columns of tables mean, `label: words` each; of `columns`, or of all tables (None)."""
        columns = (*self.columns, *self.details) if columns is None else columns
        lines = [f"{one.label}: {one.says}" for one in columns if isinstance(one, Column) and one.says]
        return list(dict.fromkeys(lines))
