"""Scores that are comparable over families of worlds, and the confidence that one controller is ahead of another.

A world's normalised score is the controller's score less that of chance in the same world, over the mean lead over chance, in
that world's family, of the best control that was not learned: chance is 0, the best of `Measures.heuristics` or the best
constant 1, family by family. Families have equal weights, whatever their numbers of worlds. Differences between two controllers
are of raw scores, world by world: they are not scaled by family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import InWorld
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import Edition, Suite
from netbuf_gym.evaluation.summary import find_range
from netbuf_gym.leaderboard.rows import Rows, read_values, require_all_worlds, require_edition
from netbuf_gym.utils import statistics
from netbuf_gym.utils.statistics import Interval

CHANCE = "random"
AGENT, HEURISTIC, CONSTANT, OTHER = "agent", "rule", "constant", "other control"
"""Roles of controllers."""
UNCHECKED = "(unchecked)"
"""End of the names of rows that were handed in, and not played here."""


@dataclass(frozen=True)
class Result:
    """Result of a controller on a suite, for one training seed.

    Attributes:
        name: Name of the controller.
        worlds: Raw score by world name; NaN if there is none.
        price: `Measures.price` by world name, if the task has one.
        flows: Number of flows that the score is a percentile of, by world name, where it is known.
        about: Further entries: `seconds`, `cpu_seconds`, `decision_us`, `command`, `model_sha256`, `group`, `seed`, ...
        checked: Whether it was played by the package or this machine, and not only handed in.
    """

    name: str
    worlds: Mapping[str, float]
    about: Mapping[str, Any] = field(default_factory=dict)
    price: Mapping[str, float] = field(default_factory=dict)
    checked: bool = True
    flows: Mapping[str, float] = field(default_factory=dict)

    @property
    def row(self) -> str:
        """Name of the row that it belongs to, with those of other training seeds."""
        name = str(self.about.get("group") or self.name)
        return name if self.checked else f"{name} {UNCHECKED}"

    @property
    def parameters(self) -> list[float]:
        """Sketch of its model's parameters; [] if unknown."""
        found = self.about.get("parameters")
        return found if isinstance(found, list) and all(isinstance(one, (int, float)) for one in found) else []

    @property
    def model(self) -> str:
        """Digest of its model, or its name without one."""
        return str(self.about.get("model_sha256") or self.name)


def score_rows(rows: Rows, suite: Suite, edition: Edition) -> Result:
    """Return score and price of a controller in every world.

    Raises:
        ConfigError: If rows are of another edition, lack worlds, or hold a value that is no number.
    """
    require_edition(rows.about, suite, edition, rows.where)
    require_all_worlds(rows, edition)
    where = f"{rows.where}: {rows.controller}"
    key, price = suite.score.key, tasks.get(suite.task).measures.price
    worlds = read_values({cell.name: rows.worlds[cell.name] for cell in edition.cells}, key, where)
    prices = {}
    if price is not None:
        priced = {world: one for world, one in rows.worlds.items() if isinstance(one, dict) and price.metric in one}
        prices = read_values(priced, price.metric, where)
    counted = {world: one for world, one in rows.worlds.items() if isinstance(one, dict) and suite.score.count in one}
    flows = read_values(counted, suite.score.count, where)
    return Result(rows.controller, worlds, {**rows.about, "of": rows.where}, prices, flows=flows)


@dataclass(frozen=True)
class Standing:
    """Standing of a controller in a ranking.

    Attributes:
        name, role: Name and role of the controller.
        results: Results of each training seed.
        scores: Normalised scores by family, (worlds, training seeds).
        middle: Mean of the middle half of all its scores, by which it is ranked.
        improvement: Share of the worlds in which it is ahead of the best heuristic, ties counted half.
        over_heuristic, over_constant: Mean of its raw scores less those of the best heuristic or constant in the same worlds;
            None for that heuristic or constant itself.
        over_rules: For an agent, the lowest of such intervals over all heuristics, and over what else decides in the agents'
            place, such as rules with further levers: another one than the best by rank may be the best by this mean.
        price: Its `Measures.price` over that of the controller named there, mean over the worlds, families weighted equally;
            None if the task has none, or that controller has no result.
        flows: By family, the least and the largest number of flows in a world that the score is a percentile of, where known.
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
    flows: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def checked(self) -> bool:
        """Whether its results were played, and not only handed in."""
        return all(one.checked for one in self.results)

    @property
    def behind_constant(self) -> bool:
        """True for an agent that does not beat the best constant with confidence."""
        return self.role == AGENT and (self.over_constant is None or not self.over_constant.low > 0)

    def average_entry(self, key: str) -> float | None:
        """Return the mean of an entry of its results, for example `cpu_seconds`; None if no result has it."""
        known = [one.about[key] for one in self.results if one.about.get(key) is not None]
        return float(np.mean(known)) if known else None


def get_role(task: str, name: str) -> str:
    """Return the role of a controller of a task."""
    measures = tasks.get(task).measures
    if name == CHANCE:
        return CHANCE
    if name in measures.heuristics:
        return HEURISTIC
    if name in measures.constants:
        return CONSTANT
    return OTHER if name in tasks.get(task).controllers else AGENT


def decides(task: str, name: str) -> bool:
    """Return whether a controller that did not learn decides in the agents' place, rather than acts in the world on its own."""
    role = get_role(task, name)
    return role == HEURISTIC or (role == OTHER and not isinstance(rollout.get_controller(name, task), InWorld))


def compute_standings(suite: Suite, edition: Edition, results: Sequence[Result], constant: str) -> list[Standing]:
    """Return the standings of all controllers, the best first, unchecked ones last.

    Args:
        results: Results over all worlds of the edition; those of one `group` are training seeds of one controller. Chance, the
            best constant and at least one heuristic must be among them.
        constant: Name of the best constant.

    Raises:
        ConfigError: If one of those is missing, a result lacks a world, or nothing beats chance in a family.
    """
    grouped: dict[str, list[Result]] = {}
    for one in results:
        missing = [cell.name for cell in edition.cells if cell.name not in one.worlds]
        if missing:
            raise ConfigError(f"result of {one.name} lacks {len(missing)} worlds, {missing[0]!r} among them; valid: all worlds")
        grouped.setdefault(one.row, []).append(one)
    raw = {name: _group_scores(edition, members) for name, members in grouped.items()}
    heuristics = [name for name in tasks.get(suite.task).measures.heuristics if name in raw]
    for name, valid in ((CHANCE, CHANCE in raw), (constant, constant in raw), ("a heuristic", heuristics)):
        if not valid:
            words = f"netbuf-gym results make {suite.name}"
            raise ConfigError(f"results of {suite.name} lack {name}, which scores are set against; valid: run `{words}`")
    checked = [name for name, members in grouped.items() if members[0].checked]
    raw = _fill_missing(edition, raw, [CHANCE, constant, *heuristics], checked)
    scaled = _normalise_scores(edition, raw, [*heuristics, constant])
    rules = [name for name in raw if name in heuristics or decides(suite.task, name)]
    best = max(heuristics, key=lambda name: statistics.grouped_interval(list(scaled[name].values()), resamples=100).mean)
    price = tasks.get(suite.task).measures.price
    prices = {} if price is None else _compute_prices(edition, grouped, price.of)
    made = []
    for name, members in grouped.items():
        own = scaled[name]
        role = get_role(suite.task, name) if len(members) == 1 and "seed" not in members[0].about else AGENT
        compared = {constant, best, *(rules if role == AGENT else ())} - {name}
        over = {other: _compute_difference(raw[name], raw[other]) for other in compared}
        made.append(
            Standing(
                name=name,
                role=role,
                results=members,
                scores=own,
                middle=statistics.grouped_interval(list(own.values())),
                improvement=statistics.grouped_interval([_mark_ahead(raw[name][f], raw[best][f]) for f in own], middle=False),
                over_heuristic=over.get(best),
                over_constant=over.get(constant),
                over_rules=min((over[rule] for rule in rules if rule in over), key=lambda one: one.low, default=None)
                if role == AGENT
                else None,
                price=prices.get(name),
                flows=_count_flows(edition, members),
            )
        )
    return sorted(made, key=lambda one: (not one.checked, -one.middle.mean))


def best_heuristic(standing: Sequence[Standing]) -> str:
    """Return the name of the best heuristic, the reference of `over_heuristic`."""
    return next(one.name for one in standing if one.over_heuristic is None)


def profile(standing: Standing, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of a controller's scores above each threshold, with equal weights of families."""
    return np.mean([(one.reshape(-1, 1) > thresholds).mean(axis=0) for one in standing.scores.values()], axis=0)


def _group_scores(edition: Edition, members: Sequence[Result]) -> dict[str, np.ndarray]:
    """Return raw scores by family, (worlds, training seeds)."""
    return {
        family: np.array([[one.worlds[cell.name] for one in members] for cell in cells], float)
        for family, cells in edition.by_family.items()
    }


def _fill_missing(
    edition: Edition, raw: Mapping[str, Mapping[str, np.ndarray]], references: Sequence[str], checked: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Return raw scores without the worlds in which a reference has none.

    Missing scores of other controllers become the lowest of all checked controllers.
    """
    found: dict[str, dict[str, np.ndarray]] = {name: {} for name in raw}
    for family in edition.families:
        there = np.all([np.isfinite(raw[name][family]).all(axis=1) for name in references], axis=0)
        lowest = np.nanmin(np.concatenate([raw[name][family][there] for name in checked], axis=1), axis=1, keepdims=True)
        for name, own in raw.items():
            found[name][family] = np.where(np.isfinite(own[family][there]), own[family][there], lowest)
    return found


def _normalise_scores(
    edition: Edition, raw: Mapping[str, Mapping[str, np.ndarray]], references: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Return scores by name and family, normalised to chance (0) and the family's best reference (1)."""
    scaled: dict[str, dict[str, np.ndarray]] = {name: {} for name in raw}
    for family in edition.families:
        chance = raw[CHANCE][family]
        span = max((float((raw[name][family] - chance).mean()) for name in references if len(chance)), default=math.nan)
        if not span > 0:
            raise ConfigError(f"family {family!r}: nothing beats chance there; valid: families in which a heuristic does")
        for name in raw:
            scaled[name][family] = (raw[name][family] - chance) / span
    return scaled


def _compute_prices(edition: Edition, grouped: Mapping[str, Sequence[Result]], of: str) -> dict[str, float]:
    """Return the mean price over that of controller `of`, for controllers with a price in all worlds.

    Worlds in which the price of `of` is 0 are left out.
    """
    names = [cell.name for cell in edition.cells]
    priced = {
        name: members
        for name, members in grouped.items()
        if all(math.isfinite(one.price.get(world, math.nan)) for one in members for world in names)
    }
    if of not in priced:
        return {}
    base, shares = priced[of][0].price, {name: list[float]() for name in priced}
    for cells in edition.by_family.values():
        worlds = [cell.name for cell in cells if base[cell.name] > 0]
        least = np.array([base[world] for world in worlds])
        for name, members in priced.items() if worlds else ():
            own = np.array([[one.price[world] for world in worlds] for one in members]).mean(axis=0)
            shares[name].append(float((own / least).mean()))
    return {name: float(np.mean(own)) if own else math.nan for name, own in shares.items()}


def _count_flows(edition: Edition, members: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Return the least and the largest number of flows in a world of each family that scores are percentiles of."""
    found = {}
    for family, cells in edition.by_family.items():
        counted = [one.flows.get(cell.name, math.nan) for one in members for cell in cells]
        if (flows := find_range(np.array(counted))) is not None:
            found[family] = flows
    return found


def _mark_ahead(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    theirs = theirs.mean(axis=1, keepdims=True)
    return (ours > theirs) + 0.5 * (ours == theirs)


def _compute_difference(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> Interval:
    return statistics.grouped_interval([ours[f] - theirs[f].mean(axis=1, keepdims=True) for f in ours], middle=False)
