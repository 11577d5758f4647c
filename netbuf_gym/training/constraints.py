"""Constraints on metrics as people state them, as a goodput of at least 0.99 of the naive buffer's in every family of worlds.

    constraints: [{metric: goodput_mbps, least: 0.99, of: naive, family: each, term: goodput}]

A violation is by how much a bound is missed, measured by playing worlds: below 0 where it is kept. Learners meet a constraint
by dual ascent (`Lagrangian`): its multiplier rises with measured violations and falls where the bound is kept, never below 0,
and the reward's term that works towards it weighs 1 + multiplier times as much (Achiam et al., "Constrained Policy
Optimization", ICML 2017, compare such primal-dual methods; Tessler et al., "Reward Constrained Policy Optimization", ICLR
2019, is one). Where models or settings are chosen, there is nothing to ascend: each violation costs `penalty` times as much of
the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation import comparison
from netbuf_gym.evaluation.rollout import World, draw_worlds, get_controller
from netbuf_gym.tasks.metrics import Score
from netbuf_gym.training.config import to_plain
from netbuf_gym.training.schema import FIRST_CONSTRAINT_SEED
from netbuf_gym.utils.arguments import check_choice, check_real, check_text
from netbuf_gym.utils.suggestions import suggest_valid

EACH, POOLED = "each", "pooled"
ALL = "all"
"""Name of the worlds of all families together."""
MAX_MULTIPLIER = 1e6

Metrics = Mapping[str, np.ndarray]
"""Metrics of a controller in some worlds, `(worlds,)` each."""
Violations = list[dict[str, float]]
"""Violation of each constraint, by family; NaN where nothing was measured."""


@dataclass(frozen=True)
class Constraint:
    """A bound on a metric of a task.

    Attributes:
        metric: Name of the metric.
        least, most: The bound; one of the two is None.
        of: Controller that the bound is relative to: it bounds the geometric mean over worlds of the metric over the
            controller's in the same world. None: it bounds the metric's mean.
        family: `EACH` bounds each family of worlds by itself, the worlds of one name; `POOLED` all worlds together.
        term: Term of the reward that works towards it; None: learners do not pursue it, it counts in choices alone.
        step: Rise of the multiplier by a violation of 1, above 0 to 1e6.
        penalty: Loss of score by a violation of 1, 0 to 1e6: a difference, or, of ratios, one of their logarithms.
    """

    metric: str
    least: float | None = None
    most: float | None = None
    of: str | None = None
    family: str = POOLED
    term: str | None = None
    step: float = 10.0
    penalty: float = 10.0

    @property
    def label(self) -> str:
        """Name in logs, e.g. `goodput_mbps_least_0.99_of_naive`."""
        bound = f"most_{self.most:g}" if self.least is None else f"least_{self.least:g}"
        return f"{self.metric}_{bound}" + ("" if self.of is None else f"_of_{self.of}")

    def compute_violation(self, values: np.ndarray, reference: np.ndarray | None) -> float:
        """Return by how much the bound is missed, relative to it unless it is 0; NaN where no world has a value.

        Args:
            values: Metric in each world; NaN: none. Worlds without a value, or without one of `of`, are left out; a ratio of 0
                misses a bound from below as a whole.
            reference: Metric of `of` in the same worlds; None without one.
        """
        if reference is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(values / reference)
        starved = np.isneginf(values) if self.least is not None and reference is not None else False
        known = values[np.isfinite(values) | starved]
        if not len(known):
            return math.nan
        mean = float(known.mean()) if reference is None else math.exp(known.mean())
        bound = self.most if self.least is None else self.least
        assert bound is not None, "one of the two is given"
        return (mean - bound if self.least is None else bound - mean) / (abs(bound) or 1.0)


_KEYS = tuple(one.name for one in fields(Constraint))


def read_constraints(config: DictConfig) -> tuple[Constraint, ...]:
    """Return the constraints of a job's configuration.

    Raises:
        ConfigError: One of them is no mapping, or has an unknown key or value; names it.
    """
    record = tasks.get(config.env.name) if config.env.name in tasks.names() else None
    made = []
    for at, given in enumerate(to_plain(config.constraints)):
        field = f"constraints[{at}]"
        if not isinstance(given, dict) or "metric" not in given or ("least" in given) == ("most" in given):
            valid = "{metric: NAME, least: NUMBER} or {metric: NAME, most: NUMBER}"
            raise ConfigError(f"{field} = {quote(given)}; valid: {valid}, and of, family, term, step, penalty")
        for key in given:
            if key not in _KEYS:
                raise ConfigError(f"{field} has no key {quote(key)}; {suggest_valid(str(key), _KEYS)}")
        bound = "least" if "least" in given else "most"
        one = Constraint(**{**given, bound: check_real(f"{field}.{bound}", given[bound], -1e12, 1e12)})
        check_choice(f"{field}.family", one.family, (EACH, POOLED))
        check_real(f"{field}.step", one.step, 0, 1e6, low_open=True)
        check_real(f"{field}.penalty", one.penalty, 0, 1e6)
        if one.term is not None and not isinstance(one.term, str):
            raise ConfigError(f"{field}.term = {quote(one.term)}; valid: the name of a term of the reward, or null")
        if record is not None:
            check_choice(f"{field}.metric", one.metric, record.measures.metrics or (one.metric,))
            if one.of is not None:
                try:
                    get_controller(check_text("of", one.of), record.name)
                except ConfigError as error:
                    raise ConfigError(f"{field}.of: {error}") from None
        made.append(one)
    return tuple(made)


def check_terms(constraints: Sequence[Constraint], terms: Sequence[str]) -> None:
    """Raise ConfigError for a constraint whose term is not one of the reward's."""
    for at, one in enumerate(constraints):
        if one.term is not None:
            check_choice(f"constraints[{at}].term", one.term, terms)


def play_references(
    constraints: Sequence[Constraint],
    worlds: Sequence[World],
    *,
    task: str,
    scenario: Any,
    env: Mapping[str, Any],
    threads: int = 1,
    each: Callable[[str], None] = lambda name: None,
) -> dict[str, Metrics]:
    """Play the controllers that bounds are relative to; return their metrics by name. `env`: arguments of the agent's."""
    names = list_references(constraints)
    runs = comparison.run_baselines(task, names, worlds, scenario=scenario, env=env, threads=threads, each=each)
    return {name: one.metrics for name, one in zip(names, runs, strict=True)}


def list_references(constraints: Sequence[Constraint]) -> list[str]:
    """Return the controllers that bounds are relative to, each once."""
    return list(dict.fromkeys(one.of for one in constraints if one.of is not None))


def compute_violations(
    constraints: Sequence[Constraint], metrics: Metrics, references: Mapping[str, Metrics], families: Sequence[str]
) -> Violations:
    """Return the violations of a controller.

    Args:
        constraints: The constraints.
        metrics: Metrics of the controller.
        references: Metrics of the controllers that bounds are relative to, by name, in the same worlds.
        families: Family of each world.
    """
    names, found = np.array(families), []
    for one in constraints:
        reference = None if one.of is None else references[one.of][one.metric]
        parts = {ALL: np.ones(len(names), bool)}
        if one.family == EACH:
            parts = {family: names == family for family in dict.fromkeys(families)}
        found.append(
            {
                part: one.compute_violation(metrics[one.metric][own], None if reference is None else reference[own])
                for part, own in parts.items()
            }
        )
    return found


def apply_penalties(value: float, score: Score, constraints: Sequence[Constraint], violations: Violations) -> float:
    """Return a score less the penalties of violated constraints; families in which nothing was measured cost nothing."""
    cost = math.fsum(
        one.penalty * violation
        for one, by_family in zip(constraints, violations, strict=True)
        for violation in by_family.values()
        if violation > 0
    )
    if score.geometric:
        return value * math.exp(min(cost if score.lower_is_better else -cost, 700.0))
    return value + (cost if score.lower_is_better else -cost)


class Lagrangian:
    """Multipliers of a learner's constraints, raised and lowered by measured violations.

    Args:
        constraints: Constraints; those without a term have multipliers that weigh nothing.

    Attributes:
        updates: Number of updates so far.
        multipliers: By constraint and family, 0 to `MAX_MULTIPLIER`.
        violations: Violations that were measured last.
    """

    def __init__(self, constraints: Sequence[Constraint]):
        self.constraints = tuple(constraints)
        self.updates = 0
        self.multipliers: list[dict[str, float]] = [{} for _ in self.constraints]
        self.violations: Violations = [{} for _ in self.constraints]

    def update(self, violations: Violations) -> None:
        """Move each multiplier by its step times the violation; one whose constraint was not measured stays."""
        self.updates, self.violations = self.updates + 1, violations
        for one, multipliers, by_family in zip(self.constraints, self.multipliers, violations, strict=True):
            for family, violation in by_family.items():
                moved = multipliers.get(family, 0.0) + (one.step * violation if math.isfinite(violation) else 0.0)
                multipliers[family] = min(max(moved, 0.0), MAX_MULTIPLIER)

    def compute_factors(self, family: str, terms: Sequence[str]) -> np.ndarray:
        """Return the factor of each term of the reward in the worlds of a family, float32 `(terms,)`."""
        factors = np.ones(len(terms), np.float32)
        for one, multipliers in zip(self.constraints, self.multipliers, strict=True):
            if one.term is not None:
                factors[terms.index(one.term)] += multipliers.get(ALL if one.family == POOLED else family, 0.0)
        return factors

    def list_values(self) -> dict[str, float]:
        """Return violations and multipliers by their names in logs."""
        found = {}
        for one, multipliers, violations in zip(self.constraints, self.multipliers, self.violations, strict=True):
            for family, multiplier in multipliers.items():
                found[f"constraints/{one.label}/{family}/violation"] = violations.get(family, math.nan)
                found[f"constraints/{one.label}/{family}/multiplier"] = multiplier
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the state, JSON-able."""
        violations = [
            {family: value if math.isfinite(value) else None for family, value in by_family.items()}
            for by_family in self.violations
        ]
        return {"updates": self.updates, "multipliers": [dict(one) for one in self.multipliers], "violations": violations}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError: It is not of as many constraints, or damaged.
        """
        multipliers = [{str(family): float(value) for family, value in one.items()} for one in state["multipliers"]]
        violations = [
            {str(family): math.nan if value is None else float(value) for family, value in one.items()}
            for one in state["violations"]
        ]
        if not len(multipliers) == len(violations) == len(self.constraints):
            raise ValueError(f"multipliers of {len(multipliers)} constraints, not of {len(self.constraints)}")
        if not all(0 <= value <= MAX_MULTIPLIER for one in multipliers for value in one.values()):
            raise ValueError("a multiplier out of range")
        self.updates, self.multipliers, self.violations = int(state["updates"]), multipliers, violations


class ViolationMeter:
    """Measures violations in training: always in the same worlds of the training's scenario, in which references play once.

    Args:
        constraints: Constraints.
        task: Name of the task.
        scenario: Scenario of the training.
        worlds: Number of worlds.
        threads: Threads of the simulator.
    """

    def __init__(self, constraints: Sequence[Constraint], task: str, scenario: Any, worlds: int, threads: int = 1):
        self.constraints, self.task, self.scenario, self.threads = tuple(constraints), task, scenario, threads
        self._seeds = range(FIRST_CONSTRAINT_SEED, FIRST_CONSTRAINT_SEED + worlds)
        self._worlds: list[World] = []
        self._references: dict[str, Metrics] = {}

    def measure(self, controller: Controller, env: Mapping[str, Any]) -> Violations:
        """Play a controller and return its violations. `env`: arguments of its environment."""
        if not self._worlds:
            self._worlds = draw_worlds(self.task, self.scenario, self._seeds)
            shared: dict[str, Any] = {"task": self.task, "scenario": self.scenario, "env": env, "threads": self.threads}
            self._references = play_references(self.constraints, self._worlds, **shared)
        runs = comparison.run(controller, self._worlds, task=self.task, scenario=self.scenario, threads=self.threads)
        families = [world.scenario.name for world in self._worlds]
        return compute_violations(self.constraints, runs.metrics, self._references, families)


def to_plain_constraints(constraints: Sequence[Constraint]) -> list[dict[str, Any]]:
    """Return constraints as plain mappings, JSON-able."""
    return [asdict(one) for one in constraints]
