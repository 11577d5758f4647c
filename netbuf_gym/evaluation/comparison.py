"""Comparison of controllers over the same worlds, with the same metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.evaluation.rollout import View, World, get_controller, play
from netbuf_gym.evaluation.summary import Runs
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.utils.progress import ProgressBar


@dataclass
class Played:
    """Results that are kept of one world.

    Attributes:
        reports: Reports of its agents.
        timing: Names of the entries that say how well a world in real time has kept its times.
        samples: Samples over time, which only the first world has.
        flows: Priority and slowdown of its completed flows, (flows, 2), if they are collected.
    """

    reports: list[dict[str, Any]] = field(default_factory=list)
    timing: list[str] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    flows: list[np.ndarray] = field(default_factory=list)


class WorldProgress:
    """Callback that counts finished worlds on a bar, with a text, or else with what it is called with."""

    def __init__(self, bar: ProgressBar, total: int, done: int = 0, text: str | None = None):
        self.bar, self.total, self.done, self.text = bar, total, done, text

    def __call__(self, finished: object) -> None:
        self.done += 1
        self.bar(self.done, self.total, str(finished) if self.text is None else self.text)


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
    flows: bool = False,
    **env: Any,
) -> Runs:
    """Run a controller in worlds drawn from a task's scenario.

    Args:
        threads: Number of threads that run the worlds, of processes if they run user code.
        each: Called with the controller's name after each finished world.
        stop: Ends the work early, by `Stopped`, once set.
        flows: Whether to collect the completed flows of all worlds (`Runs.flows`).
        env: Further arguments of the environment, which override the controller's own.

    Raises:
        CheckpointError: If a model does not fit the present environment.
        ConfigError: If the controller has no place in a world.
        ControlError: If user code, which runs in a separate process, fails.
    """
    name = name or controller.name
    numbered = list(enumerate(worlds))
    report_done = lambda index: each(name)  # noqa: E731
    if controller.own_code is not None and not sandbox.is_worker():
        code = controller.own_code
        threads = check_integer("threads", threads, 1, MAX_THREADS)
        played = sandbox.run_parallel(
            name, _play_user_code, numbered, threads, code, task, scenario, env, flows, each=report_done, stop=stop
        )
    else:
        played = _play(numbered, controller, task, scenario, env, flows, threads, each=report_done, stop=stop)
    found, samples = [one.reports for one in played], played[0].samples
    timing = tuple(dict.fromkeys(key for one in played for key in one.timing))
    numbers = [key for key, value in found[0][0].items() if isinstance(value, Real) and key not in timing]
    measures = tasks.get(task).measures.fill_in(numbers)
    columns = ("time_s", *dict(measures.series))
    series = {key: np.array([sample.get(key, math.nan) for sample in samples]) for key in columns}
    pooled = np.concatenate([own for one in played for own in one.flows]) if flows else None
    metrics = _collect_metrics([*measures.metrics, *timing], found)
    return Runs(name, [world.episode for world in worlds], metrics, series, pooled, timing)


def _play_user_code(
    numbered: Sequence[tuple[int, World]],
    code: str,
    task: str,
    scenario: str | dict[str, Any],
    env: Mapping[str, Any],
    flows: bool,
    **callbacks: Any,
) -> list[Played]:
    return _play(numbered, get_controller(code, task), task, scenario, env, flows, 1, **callbacks)


def _play(
    numbered: Sequence[tuple[int, World]],
    controller: Controller,
    task: str,
    scenario: str | dict[str, Any],
    env: Mapping[str, Any],
    flows: bool,
    threads: int,
    each: Callable[[int], None],
    stop: sandbox.StopSignal | None,
) -> list[Played]:
    """Run worlds, which are given with their numbers; of number 0 return samples over time, too."""
    found = [Played() for _ in numbered]

    def keep(view: View) -> None:
        found[view.index].reports.extend(view.report())
        found[view.index].timing.extend(view.timing())
        if flows:
            own = view.list_flows()
            found[view.index].flows.append(np.array([(one["priority"], one["slowdown"]) for one in own]).reshape(-1, 2))
        each(view.index)

    def sample(view: View) -> None:
        found[view.index].samples.append(view.show())

    watch = {index: sample for index, (number, _) in enumerate(numbered) if number == 0}
    worlds = [world for _, world in numbered]
    play(controller, worlds, keep, task=task, scenario=scenario, threads=threads, watch=watch, stop=stop, **env)
    return found


def run_baselines(
    task: str,
    names: Sequence[str],
    worlds: Sequence[World],
    *,
    scenario: str | dict[str, Any],
    threads: int = 1,
    env: Mapping[str, Any] | None = None,
    each: Callable[[str], None] = lambda name: None,
    flows: bool = False,
) -> list[Runs]:
    """Run controllers of a task, by name, in the worlds that another controller was run in.

    Args:
        env: Arguments of the other controller's environment; controllers that decide as it does use the same ones. A controller
            that does not support its recipe uses its own; rows of another recipe than the default one are labelled with it.
        each, flows: As for `run`.

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
        shared: dict[str, Any] = {"scenario": scenario, "name": label, "threads": threads, "each": each, "flows": flows}
        runs.append(run(controller, worlds, task=task, **shared, **own))
    return runs


def _collect_metrics(names: Sequence[str], reports: Sequence[Sequence[dict[str, Any]]]) -> dict[str, np.ndarray]:
    """Return each metric as an array (worlds,), mean over a world's agents; NaN where a report lacks it."""
    columns = {}
    for metric in names:
        values = np.array([[float(report.get(metric, math.nan)) for report in world] for world in reports])
        columns[metric] = values.mean(axis=1)
    return columns
