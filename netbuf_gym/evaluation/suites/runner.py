"""Controllers over the worlds of a suite."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, InWorld, Policy, Rules
from netbuf_gym.evaluation.rollout import Stopped, View, World, controller_of, play
from netbuf_gym.evaluation.suites.recorder import Recorder
from netbuf_gym.evaluation.suites.suite import Cell, Suite
from netbuf_gym.utils import sandbox

DECISIONS = 300
"""Of which the time is measured."""


@dataclass(frozen=True)
class Played:
    """One controller over a suite.

    Attributes:
        name: Of the controller.
        cells: The worlds that it has played.
        values: What was measured in each of them, by `Metric.key`.
        seconds: How long it took.
        cpu_seconds: The processor's time of that, over all threads.
    """

    name: str
    cells: Sequence[Cell]
    values: Sequence[dict[str, float]]
    seconds: float
    cpu_seconds: float

    def of(self, key: str, family: str | None = None) -> list[float]:
        """One metric over the worlds of a family, or over all."""
        return [one[key] for cell, one in zip(self.cells, self.values, strict=True) if family is None or cell.family == family]


def run(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    *,
    threads: int = 1,
    each: Callable[[Cell], None] = lambda cell: None,
) -> Played:
    """A controller in every cell, each from its start to its end.

    Cells of as many agents and of one duration are run together: no world goes on, unseen, after its end.

    Args:
        threads: That run the worlds.
        each: Is told every cell that is done.

    Raises:
        ConfigError, CheckpointError: A controller that has no place in a world.
        PlantFault: A world has failed.
    """
    begun, cpu = time.perf_counter(), _processor_s()
    if controller.own_code is not None and not sandbox.here():
        found = _beside(suite, cells, controller, threads, each)
    else:
        found = _found(suite, cells, controller, threads, each, threading.Event())
    return Played(controller.name, cells, found, time.perf_counter() - begun, _processor_s() - cpu)


def _found(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    threads: int,
    each: Callable[[Cell], None],
    stop: sandbox.Stop,
) -> list[dict[str, float]]:
    """What was measured in each cell."""
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


def _beside(
    suite: Suite, cells: Sequence[Cell], controller: Controller, threads: int, each: Callable[[Cell], None]
) -> list[dict[str, float]]:
    """The same of code of the user's, in processes beside, each of which plays a share of the cells."""
    shares = [list(range(first, len(cells), threads)) for first in range(min(threads, len(cells)))]
    one_at_a_time, stop = threading.Lock(), threading.Event()

    def told(index: int) -> None:
        with one_at_a_time:
            each(cells[index])

    def played(share: list[int]) -> list[dict[str, float]]:
        own = [cells[index].name for index in share]
        what = f"congestion control {controller.name}"
        return sandbox.run(what, _share, suite, own, controller.own_code, each=lambda index: told(share[index]), stop=stop)

    found: list[dict[str, float]] = [{} for _ in cells]
    with ThreadPoolExecutor(len(shares)) as pool:
        working = {pool.submit(played, share): share for share in shares}
        try:
            for done in as_completed(working):
                for index, value in zip(working[done], done.result(), strict=True):
                    found[index] = value
        except BaseException:
            stop.set()
            raise
    return found


def _share(
    suite: Suite, names: Sequence[str], word: str, each: Callable[[int], None], stop: sandbox.Stop
) -> list[dict[str, float]]:
    cells, numbers = suite.load().named(names), {name: number for number, name in enumerate(names)}
    return _found(suite, cells, controller_of(word, suite.task), 1, lambda cell: each(numbers[cell.name]), stop)


def _processor_s() -> float:
    """The processor's time of this process and of those beside that have ended."""
    beside = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + beside.ru_utime + beside.ru_stime


def decision_us(suite: Suite, cell: Cell, controller: Controller) -> float | None:
    """Microseconds that a decision takes of whoever decides for one world alone: the median over the first 300, or as many as
    the world has. None of what acts in the world, and decides nothing."""
    if isinstance(controller, InWorld):
        return None
    timed = _Timed(controller)
    try:
        world = World(cell.scenario, cell.seed, cell.seed)
        play(timed, [world], lambda view: None, task=suite.task, agents=cell.agents, stop=timed.enough)
    except Stopped:
        pass
    return 1e6 * median(timed.seconds)


class _Timed(Controller):
    """Another controller, whose decisions are timed."""

    def __init__(self, controller: Controller):
        self.controller, self.name, self.recipes = controller, controller.name, controller.recipes
        self.seconds: list[float] = []
        self.enough = threading.Event()

    @property
    def env(self) -> dict[str, Any]:
        return self.controller.env

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.playing(env)

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.beside(env)

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
