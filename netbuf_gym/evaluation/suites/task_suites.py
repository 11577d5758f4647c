"""The suites of switches, receivers and hosts: worlds of each family, measured as the task's record says.

`v1/TASK` is what controllers are ranked by, and `validation/TASK` has further worlds, to choose settings on.
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
from netbuf_gym.evaluation.suites import frozen, hosts, receivers, report_files, sampling, switches
from netbuf_gym.evaluation.suites.suite import Cell, Edition, Metric, Suite
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import host_world
from netbuf_gym.tasks.metrics import Column
from netbuf_gym.tasks.queue_threshold.scenarios import rlbm_default
from netbuf_gym.tasks.receiver_window.random_paths import receiver_world
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import instead


class Worlds(NamedTuple):
    """The worlds of a task: their families, what makes one, and what further arguments of that go to."""

    families: Mapping[str, sampling.Family]
    make: sampling.Make
    into: Callable[..., Any]


TASKS = {
    "queue_threshold": Worlds(switches.FAMILIES, switches.make, rlbm_default),
    "receiver_window": Worlds(receivers.FAMILIES, receivers.make, receiver_world),
    "host_buffers": Worlds(hosts.FAMILIES, hosts.make, host_world),
}
CHOOSING = "validation"
COUNTS = {"v1": 20, CHOOSING: 8}
"""Worlds of each family."""
STREAMS = {"v1": 21, CHOOSING: 22}
"""Of their random numbers; those of a task are further apart by its place."""


def drawn(name: str, version: int) -> list[dict[str, Any]]:
    """The worlds of a version of a suite, as they are written."""
    edition, task = name.split("/")
    stream = (STREAMS[edition], list(TASKS).index(task), version)
    return sampling.drawn(TASKS[task].families, TASKS[task].make, COUNTS[edition], stream)


def place(task: str, one: Mapping[str, Any]) -> tuple[str, Scenario, Sequence[tuple[str, float]]]:
    """See `netbuf_gym.evaluation.suites.frozen.Place`."""
    worlds = TASKS[task]
    require_arguments("world", one["world"], worlds.make, worlds.into)
    made = worlds.make(**one["world"])
    rules = tasks.get(task).rules
    own = rules(rules.recipes[0], None, 1, **rules.fitted(made.scenario))
    return str(one.get("family")), own.control(made.scenario), made.generated


def require_arguments(at: str, given: Mapping[str, Any], *makers: Callable[..., Any]) -> None:
    """Refuses what is no argument of these functions, and what is no number where the first one takes one.

    Raises:
        ScenarioError: Names the argument; also one that is missing.
    """
    every = [one for make in makers for one in inspect.signature(make).parameters.values()]
    known = {one.name: one for one in every if one.kind is one.KEYWORD_ONLY}
    for key in given:
        if key not in known:
            raise ScenarioError(f"{at} has no field {key!r}; {instead(key, known)}")
    for key, one in inspect.signature(makers[0]).parameters.items():
        if key not in given and one.kind is one.KEYWORD_ONLY and one.default is one.empty:
            raise ScenarioError(f"{at}.{key} is missing")
        wanted = str(one.annotation)
        if key in given and wanted.startswith(("float", "int")) and not (given[key] is None and wanted.endswith("None")):
            checks.number(f"{at}.{key}", given[key], -1e18, 1e18)


def measure(task: str, cell: Cell, view: View) -> dict[str, float]:
    """What a world has come to, as its report has it, in the mean over agents; of a ratio of which less is better the score is
    minus its logarithm.

    Raises:
        PlantFault: The world has failed.
    """
    measures, reports = tasks.get(task).measures, view.whole_report()
    found = {one.metric: float(np.mean([report.get(one.metric, math.nan) for report in reports])) for one in _columns(task)}
    if measures.lower_is_better:
        found = {"score": -math.log(found[measures.score]) if found[measures.score] > 0 else math.nan, **found}
    return found


def _columns(task: str) -> list[Column]:
    return [one for one in tasks.get(task).measures.columns if isinstance(one, Column)]


def _metrics(task: str) -> tuple[Metric, ...]:
    measures = tasks.get(task).measures
    own = [Metric(one.metric, one.label, one.digits, one.says, one.factor) for one in _columns(task)]
    if measures.lower_is_better:
        label = next(one.label for one in own if one.key == measures.score)
        return (Metric("score", "score", 3, f"minus the logarithm of the {label}; higher is better"), *own)
    return tuple(sorted(own, key=lambda one: one.key != measures.score))


def _suite(edition: str, task: str) -> Suite:
    name, scatter = f"{edition}/{task}", tasks.get(task).measures.scatter
    families = TASKS[task].families
    said = "to choose settings on" if edition == CHOOSING else "what agents are ranked by"
    assert scatter is not None

    def load() -> Edition:
        return frozen.read(frozen.file_of(name), name, partial(place, task), families)

    return Suite(
        name=name,
        summary=f"{COUNTS[edition] * len(families)} worlds of {len(families)} families: {said}",
        task=task,
        load=load,
        measure=partial(measure, task),
        metrics=_metrics(task),
        scatter=(scatter[0][0], scatter[1][0]),
        families={key: one.says for key, one in families.items()},
        teller=report_files.Families,
    )


SUITES = tuple(_suite(edition, task) for edition in COUNTS for task in TASKS)
