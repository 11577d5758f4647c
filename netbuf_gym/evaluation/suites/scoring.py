"""Scores that can be compared over families of worlds, and how surely one controller is ahead of another.

A score of a world is what a controller has more than chance has in that very world, over what the best control that was not
learned has more than chance in the mean of that world's family: chance is 0, the best of `Measures.heuristics` or the best
constant 1, family by family. Families weigh alike, however many worlds they have. Differences between two controllers are of
scores as they are, world by world: no family's scale is in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites.suite import Edition, Suite
from netbuf_gym.utils import statistics
from netbuf_gym.utils.statistics import Interval

CHANCE = "random"
AGENT, HEURISTIC, CONSTANT, OTHER = "agent", "rule", "constant", "other control"
"""What controllers are."""


@dataclass(frozen=True)
class Result:
    """What a controller came to on a suite, one training seed of it.

    Attributes:
        name: Of the controller.
        worlds: Its score in each, by name, before it is normalised; NaN where there is none.
        price: Its `Measures.price` in each, where the task has one.
        about: What else is known: `seconds`, `cpu_seconds`, `decision_us`, `command`, `model_sha256`, `group`, `seed`, ...
    """

    name: str
    worlds: Mapping[str, float]
    about: Mapping[str, Any] = field(default_factory=dict)
    price: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Standing:
    """Where a controller stands.

    Attributes:
        name, role: Who, and what it is.
        results: Of each training seed.
        scores: By family, (worlds, training seeds).
        middle: Mean of the middle half of all its scores, by which it is ranked.
        improvement: Share of the worlds in which it is ahead of the best heuristic, ties half.
        over_heuristic, over_constant: Mean of its scores less theirs in the same worlds, before they are normalised; None of
            these two themselves.
        over_rules: Of an agent the lowest of such intervals over each of the heuristics: one may be behind the best heuristic
            in rank, and before it in this mean.
        price: Its `Measures.price` over that of the controller it names, mean of the worlds, families weighing alike; None
            where the task has none, or that controller is not there.
    """

    name: str
    role: str
    results: Sequence[Result]
    scores: Mapping[str, np.ndarray]
    middle: Interval
    improvement: Interval
    over_heuristic: Interval | None
    over_constant: Interval | None
    over_rules: Interval | None = None
    price: float | None = None

    @property
    def behind_constant(self) -> bool:
        """Whether it is an agent that does not surely beat the best constant."""
        return self.role == AGENT and (self.over_constant is None or not self.over_constant.low > 0)

    def mean_of(self, key: str) -> float | None:
        """Of what is known of its results, `cpu_seconds` for instance."""
        known = [one.about[key] for one in self.results if one.about.get(key) is not None]
        return float(np.mean(known)) if known else None


def role_of(task: str, name: str) -> str:
    """What a controller of a task is."""
    measures = tasks.get(task).measures
    if name == CHANCE:
        return CHANCE
    if name in measures.heuristics:
        return HEURISTIC
    if name in measures.constants:
        return CONSTANT
    return OTHER if name in tasks.get(task).controllers else AGENT


def standings(suite: Suite, edition: Edition, results: Sequence[Result], constant: str) -> list[Standing]:
    """Everybody, the best first.

    Args:
        results: Over all worlds of the edition; those of one `group` are training seeds of one controller. Chance, the best
            constant and at least one heuristic are among them.
        constant: The name of the best constant.

    Raises:
        ConfigError: One of those is not there; a result lacks a world; in a family nothing beats chance.
    """
    grouped: dict[str, list[Result]] = {}
    for one in results:
        missing = [cell.name for cell in edition.cells if cell.name not in one.worlds]
        if missing:
            raise ConfigError(f"result of {one.name} lacks {len(missing)} worlds, {missing[0]!r} among them; valid: all worlds")
        grouped.setdefault(str(one.about.get("group") or one.name), []).append(one)
    raw = {name: _families(edition, members) for name, members in grouped.items()}
    heuristics = [name for name in tasks.get(suite.task).measures.heuristics if name in raw]
    for name, valid in ((CHANCE, CHANCE in raw), (constant, constant in raw), ("a heuristic", heuristics)):
        if not valid:
            words = f"netbuf-gym results make {suite.name}"
            raise ConfigError(f"results of {suite.name} lack {name}, which scores are set against; valid: run `{words}`")
    raw = _compared(edition, raw, [CHANCE, constant, *heuristics])
    scaled = _scaled(edition, raw, [*heuristics, constant])
    best = max(heuristics, key=lambda name: statistics.grouped_interval(list(scaled[name].values()), resamples=100).mean)
    price = tasks.get(suite.task).measures.price
    prices = {} if price is None else _prices(edition, grouped, price.of)
    made = []
    for name, members in grouped.items():
        own = scaled[name]
        role = role_of(suite.task, name) if len(members) == 1 and "seed" not in members[0].about else AGENT
        over = [_difference(raw[name], raw[rule]) for rule in heuristics] if role == AGENT else []
        made.append(
            Standing(
                name=name,
                role=role,
                results=members,
                scores=own,
                middle=statistics.grouped_interval(list(own.values())),
                improvement=statistics.grouped_interval([_ahead(raw[name][f], raw[best][f]) for f in own], middle=False),
                over_heuristic=None if name == best else _difference(raw[name], raw[best]),
                over_constant=None if name == constant else _difference(raw[name], raw[constant]),
                over_rules=min(over, key=lambda one: one.low, default=None),
                price=prices.get(name),
            )
        )
    return sorted(made, key=lambda one: -one.middle.mean)


def best_heuristic(standing: Sequence[Standing]) -> str:
    """The one that `over_heuristic` is over."""
    return next(one.name for one in standing if one.over_heuristic is None)


def profile(standing: Standing, thresholds: np.ndarray) -> np.ndarray:
    """Share of its scores above each threshold, families weighing alike."""
    return np.mean([(one.reshape(-1, 1) > thresholds).mean(axis=0) for one in standing.scores.values()], axis=0)


def _families(edition: Edition, members: Sequence[Result]) -> dict[str, np.ndarray]:
    """By family, (worlds, training seeds)."""
    names = {family: [cell.name for cell in edition.of([family])] for family in edition.families}
    return {family: np.array([[one.worlds[name] for one in members] for name in own], float) for family, own in names.items()}


def _compared(
    edition: Edition, raw: Mapping[str, Mapping[str, np.ndarray]], references: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Without the worlds in which a reference has no score; where another has none it has the lowest of all controllers."""
    found: dict[str, dict[str, np.ndarray]] = {name: {} for name in raw}
    for family in edition.families:
        there = np.all([np.isfinite(raw[name][family]).all(axis=1) for name in references], axis=0)
        lowest = np.nanmin(np.concatenate([own[family][there] for own in raw.values()], axis=1), axis=1, keepdims=True)
        for name, own in raw.items():
            found[name][family] = np.where(np.isfinite(own[family][there]), own[family][there], lowest)
    return found


def _scaled(
    edition: Edition, raw: Mapping[str, Mapping[str, np.ndarray]], references: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Scores by name and family, between chance and the best reference of the family."""
    scaled: dict[str, dict[str, np.ndarray]] = {name: {} for name in raw}
    for family in edition.families:
        chance = raw[CHANCE][family]
        span = max((float((raw[name][family] - chance).mean()) for name in references if len(chance)), default=math.nan)
        if not span > 0:
            raise ConfigError(f"family {family!r}: nothing beats chance there; valid: families in which a heuristic does")
        for name in raw:
            scaled[name][family] = (raw[name][family] - chance) / span
    return scaled


def _prices(edition: Edition, grouped: Mapping[str, Sequence[Result]], of: str) -> dict[str, float]:
    """What each has who says it of all worlds over what one of them has, where that has any."""
    told = {name: members for name, members in grouped.items() if all(_is_told(edition, one) for one in members)}
    if of not in told:
        return {}
    base, found = told[of][0].price, {}
    for name, members in told.items():
        families: dict[str, list[float]] = {}
        for cell in edition.cells:
            if base[cell.name] > 0:
                own = float(np.mean([one.price[cell.name] for one in members]))
                families.setdefault(cell.family, []).append(own / base[cell.name])
        found[name] = float(np.mean([np.mean(shares) for shares in families.values()])) if families else math.nan
    return found


def _is_told(edition: Edition, result: Result) -> bool:
    return all(math.isfinite(result.price.get(cell.name, math.nan)) for cell in edition.cells)


def _ahead(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    theirs = theirs.mean(axis=1, keepdims=True)
    return (ours > theirs) + 0.5 * (ours == theirs)


def _difference(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> Interval:
    return statistics.grouped_interval([ours[f] - theirs[f].mean(axis=1, keepdims=True) for f in ours], middle=False)
