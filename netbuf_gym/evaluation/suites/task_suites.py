"""Suites of switches, receivers and hosts: worlds by family, measured with the metrics of the task's record.

Controllers are ranked on `v1/TASK`; `validation/TASK` has further worlds, to choose settings on.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ScenarioError
from netbuf_gym.evaluation.rollout import View
from netbuf_gym.evaluation.suites import frozen, hosts, receivers, sampling, switches
from netbuf_gym.evaluation.suites.suite import Cell, Metric, Suite
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import make_host_world
from netbuf_gym.tasks.metrics import Column
from netbuf_gym.tasks.queue_threshold.scenarios import rlbm_default
from netbuf_gym.tasks.receiver_window.random_paths import receiver_world
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import suggest_valid


class TaskWorlds(NamedTuple):
    """Worlds of a task: the families, the function that makes a world, and the function that takes its further arguments."""

    families: Mapping[str, sampling.Family]
    make: sampling.WorldMaker
    into: Callable[..., Any]


TASKS = {
    "queue_threshold": TaskWorlds(switches.FAMILIES, switches.make_world, rlbm_default),
    "receiver_window": TaskWorlds(receivers.FAMILIES, receivers.make_world, receiver_world),
    "host_buffers": TaskWorlds(hosts.FAMILIES, hosts.make_world, make_host_world),
}
CHOOSING = "validation"
COUNTS = {"v1": 20, CHOOSING: 8}
"""Worlds of each family."""
STREAMS = {"v1": 21, CHOOSING: 22}
"""First seeds of the random streams; the task's index is the second."""


def draw_worlds(name: str, version: int) -> list[dict[str, Any]]:
    """Return the worlds of a version of a suite, as they are written to its file."""
    edition, task = name.split("/")
    stream = (STREAMS[edition], list(TASKS).index(task), version)
    return sampling.draw_worlds(TASKS[task].families, TASKS[task].make, COUNTS[edition], stream)


def place_world(task: str, one: Mapping[str, Any]) -> tuple[str, Scenario, Sequence[tuple[str, float]]]:
    """Return the family, scenario and generated traces of a world; see `netbuf_gym.evaluation.suites.frozen.WorldPlacer`."""
    worlds = TASKS[task]
    require_arguments("world", one["world"], worlds.make, worlds.into)
    made = worlds.make(**one["world"])
    rules = tasks.get(task).rules
    own = rules(rules.recipes[0], None, 1, **rules.world_arguments(made.scenario))
    return str(one.get("family")), own.control(made.scenario), made.generated


def require_arguments(at: str, given: Mapping[str, Any], *makers: Callable[..., Any]) -> None:
    """Check that all keys are arguments of these functions, and that values are numbers where the first function takes numbers.

    Raises:
        ScenarioError: For an unknown, missing or invalid argument; names it.
    """
    every = [one for make in makers for one in inspect.signature(make).parameters.values()]
    known = {one.name: one for one in every if one.kind is one.KEYWORD_ONLY}
    for key in given:
        if key not in known:
            raise ScenarioError(f"{at} has no field {key!r}; {suggest_valid(key, known)}")
    for key, one in inspect.signature(makers[0]).parameters.items():
        if key not in given and one.kind is one.KEYWORD_ONLY and one.default is one.empty:
            raise ScenarioError(f"{at}.{key} is missing")
        wanted = str(one.annotation)
        if key in given and wanted.startswith(("float", "int")) and not (given[key] is None and wanted.endswith("None")):
            checks.number(f"{at}.{key}", given[key], -1e18, 1e18)


def measure(task: str, cell: Cell, view: View) -> dict[str, float]:
    """Return the metrics of a world from its reports, mean over agents.

    If the task's score is a ratio of which less is better, the suite's score is minus its logarithm.

    Raises:
        PlantFault: If the world has failed.
    """
    measures, reports = tasks.get(task).measures, view.whole_report()
    found = {
        one.metric: float(np.mean([report.get(one.metric, math.nan) for report in reports])) for one in _list_columns(task)
    }
    if measures.lower_is_better:
        found = {"score": -math.log(found[measures.score]) if found[measures.score] > 0 else math.nan, **found}
    return found


def _list_columns(task: str) -> list[Column]:
    """Return the columns of a task's measures, and behind them those with the numbers of flows that some are percentiles of."""
    measures = tasks.get(task).measures
    shown = [one for one in measures.columns if isinstance(one, Column)]
    numbers = {measures.counts[one.metric] for one in shown if one.metric in measures.counts}
    return [*shown, *(one for one in measures.details if one.metric in numbers)]


def _make_metrics(task: str) -> tuple[Metric, ...]:
    measures = tasks.get(task).measures
    own = [
        Metric(one.metric, one.label, one.digits, one.says, one.factor, measures.counts.get(one.metric, ""))
        for one in _list_columns(task)
    ]
    if measures.lower_is_better:
        ratio = next(one for one in own if one.key == measures.score)
        says = f"minus the logarithm of the {ratio.label}; higher is better"
        return (Metric("score", "score", 3, says, count=ratio.count), *own)
    return tuple(sorted(own, key=lambda one: one.key != measures.score))


def _make_suite(edition: str, task: str) -> Suite:
    name, scatter = f"{edition}/{task}", tasks.get(task).measures.scatter
    families = TASKS[task].families
    said = "to choose settings on" if edition == CHOOSING else "what agents are ranked by"
    assert scatter is not None

    return Suite(
        name=name,
        summary=f"{COUNTS[edition] * len(families)} worlds of {len(families)} families: {said}",
        task=task,
        load=frozen.Loader(name, partial(place_world, task), families),
        measure=partial(measure, task),
        metrics=_make_metrics(task),
        scatter=(scatter[0][0], scatter[1][0]),
        families={key: one.says for key, one in families.items()},
    )


SUITES = tuple(_make_suite(edition, task) for edition in COUNTS for task in TASKS)
