"""Controllers run over the same worlds, and measured alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.evaluation.rollout import View, World, controller_of, play
from netbuf_gym.evaluation.summary import Runs
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.progress import ProgressBar


class Counted:
    """Counts the worlds that controllers are done with, and shows it."""

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
    stop: sandbox.Stop | None = None,
    **env: Any,
) -> Runs:
    """Runs a controller in the worlds that were drawn from a task's scenario.

    Args:
        each: is told the controller's name for each world that is done.
        stop: ends the work early, by `Stopped`, when it is set.
        env: arguments of its environment, beside its own.

    Raises:
        CheckpointError: a model that does not fit its environment as it is now.
        ConfigError: a controller that has no place in a world.
        ControlError: code of the user's, which runs in a process beside, and does not do.
    """
    name = name or controller.name
    if controller.own_code is not None and not sandbox.here():
        played = sandbox.run(name, _beside, controller.own_code, worlds, task, scenario, name, env, each=each)
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
    return Runs(name, [world.episode for world in worlds], _metrics(measures, found), series)


def _beside(
    word: str,
    worlds: Sequence[World],
    task: str,
    scenario: str | dict[str, Any],
    name: str,
    env: Mapping[str, Any],
    each: Callable[[str], None],
    stop: sandbox.Stop,
) -> Runs:
    return run(controller_of(word, task), worlds, task=task, scenario=scenario, name=name, each=each, stop=stop, **env)


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
    """Runs controllers of a task, by their names, in the worlds that another one met.

    Args:
        env: the other's arguments for its environment: what those that decide as it does play by. One that does not speak
            its recipe plays by its own; rows of another recipe than the default one say so.
        each: see `run`.

    Raises:
        ConfigError: a controller that the task does not have.
    """
    runs, default = [], tasks.get(task).rules.recipes[0]
    for name in names:
        controller = controller_of(name, task)
        own = controller.beside(env or {})
        recipe = own.get("recipe", default)
        label = name if controller.own_code is None else controller.name
        if recipe != default and not isinstance(controller, InWorld):
            label = f"{label} ({recipe})"
        runs.append(run(controller, worlds, task=task, scenario=scenario, name=label, threads=threads, each=each, **own))
    return runs


def _metrics(measures: Measures, reports: Sequence[Sequence[dict[str, Any]]]) -> dict[str, np.ndarray]:
    """(worlds,) of each metric, mean over a world's agents; NaN where a report lacks it."""
    columns = {}
    for metric in measures.metrics:
        values = np.array([[float(report.get(metric, math.nan)) for report in world] for world in reports])
        columns[metric] = values.mean(axis=1)
    return columns
