"""Comparison of controllers over the same worlds, with the same metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.evaluation.rollout import View, World, get_controller, play
from netbuf_gym.evaluation.summary import Runs
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.progress import ProgressBar


class WorldProgress:
    """Progress over the worlds that controllers have finished, shown on a bar."""

    def __init__(self, bar: ProgressBar, total: int):
        self.bar, self.total, self.done = bar, total, 0

    def __call__(self, name: str) -> None:
        self.done += 1
        self.bar(self.done, self.total, name)


def run(
    controller: Controller,
    worlds: Sequence[World],
    *,
    task: str,
    scenario: str | dict[str, Any],
    name: str | None = None,
    threads: int = 1,
    each: Callable[[str], None] = lambda name: None,
    stop: sandbox.StopSignal | None = None,
    **env: Any,
) -> Runs:
    """Run a controller in worlds drawn from a task's scenario.

    Args:
        each: Called with the controller's name after each finished world.
        stop: Ends the work early, by `Stopped`, once set.
        env: Further arguments of the environment, which override the controller's own.

    Raises:
        CheckpointError: If a model does not fit the present environment.
        ConfigError: If the controller has no place in a world.
        ControlError: If user code, which runs in a separate process, fails.
    """
    name = name or controller.name
    if controller.own_code is not None and not sandbox.is_worker():
        played = sandbox.run(name, _run_user_code, controller.own_code, worlds, task, scenario, name, env, each=each)
        return cast(Runs, played)
    measures = tasks.get(task).measures
    found: list[list[dict[str, Any]]] = [[] for _ in worlds]
    samples: list[dict[str, float]] = []

    def keep(view: View) -> None:
        found[view.index] = view.report()
        each(name)

    watch = {0: lambda view: samples.append(view.show())}
    play(controller, worlds, keep, task=task, scenario=scenario, threads=threads, watch=watch, stop=stop, **env)
    measures = measures.of(key for key, value in found[0][0].items() if isinstance(value, Real))
    columns = ("time_s", *dict(measures.series))
    series = {key: np.array([sample.get(key, math.nan) for sample in samples]) for key in columns}
    return Runs(name, [world.episode for world in worlds], _collect_metrics(measures, found), series)


def _run_user_code(
    word: str,
    worlds: Sequence[World],
    task: str,
    scenario: str | dict[str, Any],
    name: str,
    env: Mapping[str, Any],
    each: Callable[[str], None],
    stop: sandbox.StopSignal,
) -> Runs:
    return run(get_controller(word, task), worlds, task=task, scenario=scenario, name=name, each=each, stop=stop, **env)


def run_baselines(
    task: str,
    names: Sequence[str],
    worlds: Sequence[World],
    *,
    scenario: str | dict[str, Any],
    threads: int = 1,
    env: Mapping[str, Any] | None = None,
    each: Callable[[str], None] = lambda name: None,
) -> list[Runs]:
    """Run controllers of a task, by name, in the worlds that another controller was run in.

    Args:
        env: Arguments of the other controller's environment; controllers that decide as it does use the same ones. A controller
            that does not support its recipe uses its own; rows of another recipe than the default one are labelled with it.
        each: As for `run`.

    Raises:
        ConfigError: For a controller that the task does not have.
    """
    runs, default = [], tasks.get(task).rules.recipes[0]
    for name in names:
        controller = get_controller(name, task)
        own = controller.match_arguments(env or {})
        recipe = own.get("recipe", default)
        label = name if controller.own_code is None else controller.name
        if recipe != default and not isinstance(controller, InWorld):
            label = f"{label} ({recipe})"
        runs.append(run(controller, worlds, task=task, scenario=scenario, name=label, threads=threads, each=each, **own))
    return runs


def _collect_metrics(measures: Measures, reports: Sequence[Sequence[dict[str, Any]]]) -> dict[str, np.ndarray]:
    """Return each metric as an array (worlds,), mean over a world's agents; NaN where a report lacks it."""
    columns = {}
    for metric in measures.metrics:
        values = np.array([[float(report.get(metric, math.nan)) for report in world] for world in reports])
        columns[metric] = values.mean(axis=1)
    return columns
