"""Runs of controllers over the worlds of a suite."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, InWorld, Policy, Rules
from netbuf_gym.evaluation.rollout import Stopped, View, World, get_controller, play
from netbuf_gym.evaluation.suites.recorder import Recorder
from netbuf_gym.evaluation.suites.suite import Cell, Suite
from netbuf_gym.utils import sandbox

DECISIONS = 300
"""Number of decisions that are timed."""


@dataclass(frozen=True)
class SuiteRun:
    """Results of one controller on a suite.

    Attributes:
        name: Name of the controller.
        cells: Worlds that it has run in.
        values: Metrics of each world, by `Metric.key`.
        seconds: Elapsed time.
        cpu_seconds: Processor time, over all threads.
    """

    name: str
    cells: Sequence[Cell]
    values: Sequence[dict[str, float]]
    seconds: float
    cpu_seconds: float

    def of(self, key: str, family: str | None = None) -> list[float]:
        """Return one metric over the worlds of a family, or over all worlds."""
        return [one[key] for cell, one in zip(self.cells, self.values, strict=True) if family is None or cell.family == family]


def run(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    *,
    threads: int = 1,
    each: Callable[[Cell], None] = lambda cell: None,
) -> SuiteRun:
    """Run a controller in every cell, each from start to end.

    Cells with equal numbers of agents and equal durations run together, so that no world continues, unobserved, after its end.

    Args:
        threads: Number of threads that run the worlds.
        each: Called with every finished cell.

    Raises:
        ConfigError, CheckpointError: If the controller has no place in a world.
        PlantFault: If a world has failed.
    """
    begun, cpu = time.perf_counter(), _read_cpu_seconds()
    if controller.own_code is not None and not sandbox.is_worker():
        found = _measure_user_code(suite, cells, controller, threads, each)
    else:
        found = _measure_cells(suite, cells, controller, threads, each, threading.Event())
    return SuiteRun(controller.name, cells, found, time.perf_counter() - begun, _read_cpu_seconds() - cpu)


def _measure_cells(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    threads: int,
    each: Callable[[Cell], None],
    stop: sandbox.StopSignal,
) -> list[dict[str, float]]:
    """Return the metrics of each cell."""
    found: list[dict[str, float]] = [{} for _ in cells]
    together: dict[tuple[int, float], list[int]] = {}
    for index, cell in enumerate(cells):
        together.setdefault((cell.agents, cell.scenario.duration_s), []).append(index)
    for (agents, _), indices in together.items():
        worlds = [World(cells[i].scenario, cells[i].seed, cells[i].seed) for i in indices]
        recorders = [Recorder(cells[i].scenario, suite.sample_s) for i in indices] if suite.sample_s else []

        def keep(view: View, indices: list[int] = indices, recorders: list[Recorder] = recorders) -> None:
            index = indices[view.index]
            seen = recorders[view.index].record(view) if recorders else view
            found[index] = suite.measure(cells[index], seen)
            each(cells[index])

        often: dict[str, Any] = {"interval_s": suite.sample_s} if recorders and isinstance(controller, InWorld) else {}
        watch = dict(enumerate(recorders))
        play(controller, worlds, keep, task=suite.task, threads=threads, agents=agents, watch=watch, stop=stop, **often)
    return found


def _measure_user_code(
    suite: Suite, cells: Sequence[Cell], controller: Controller, threads: int, each: Callable[[Cell], None]
) -> list[dict[str, float]]:
    """Return the metrics of each cell for user code, in separate processes, each of which runs a share of the cells."""
    what, names = f"congestion control {controller.name}", [cell.name for cell in cells]
    code = controller.own_code
    return sandbox.run_parallel(what, _measure_share, names, threads, suite, code, each=lambda index: each(cells[index]))


def _measure_share(
    names: Sequence[str], suite: Suite, word: str, each: Callable[[int], None], stop: sandbox.StopSignal
) -> list[dict[str, float]]:
    cells, numbers = suite.load().get_named_cells(names), {name: number for number, name in enumerate(names)}
    return _measure_cells(suite, cells, get_controller(word, suite.task), 1, lambda cell: each(numbers[cell.name]), stop)


def _read_cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    beside = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + beside.ru_utime + beside.ru_stime


def measure_decision_us(suite: Suite, cell: Cell, controller: Controller) -> float | None:
    """Return the microseconds per decision in one world: the median of the first 300, or of as many as the world has.

    None for a controller that acts in the world and takes no decisions.
    """
    if isinstance(controller, InWorld):
        return None
    timed = _TimedController(controller)
    try:
        world = World(cell.scenario, cell.seed, cell.seed)
        play(timed, [world], lambda view: None, task=suite.task, agents=cell.agents, stop=timed.enough)
    except Stopped:
        pass
    return 1e6 * median(timed.seconds)


class _TimedController(Controller):
    """Wrapper of a controller that times its decisions."""

    def __init__(self, controller: Controller):
        self.controller, self.name, self.recipes = controller, controller.name, controller.recipes
        self.seconds: list[float] = []
        self.enough = threading.Event()

    @property
    def env(self) -> dict[str, Any]:
        return self.controller.env

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.merge_arguments(env)

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.match_arguments(env)

    def place(self, scenario: Any) -> Any:
        return self.controller.place(scenario)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        policy: Any = self.controller.start(rules, seeds)

        def timed(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            begun = time.perf_counter()
            decided = policy(observations, state, starts)
            self.seconds.append(time.perf_counter() - begun)
            if len(self.seconds) >= DECISIONS:
                self.enough.set()
            return decided

        return timed
