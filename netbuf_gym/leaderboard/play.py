"""Controllers in the worlds of a suite: metrics of each world, here or on an executor, and finished parts that are kept.

Worlds that are played together, because that is cheaper, stay together on every executor: decisions of a network, and of
chance, may depend on neighbouring rows. Such a group is played and kept as a whole, in a file of `parts/`, which is reused as
long as everything that determines it is the same: the suite's version, the worlds, the controller, and the program.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import resource
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, ControllerWrapper, InWorld, Policy, Rules
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.rollout import Stopped, View, World
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, get_suite
from netbuf_gym.evaluation.suites.recorder import Recorder
from netbuf_gym.leaderboard.controllers import compute_model_digest, resolve_controller
from netbuf_gym.training.checkpoints import versions
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.executors import Executor
from netbuf_gym.utils.files import write_atomic

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

    def list_values(self, key: str, family: str | None = None) -> list[float]:
        """Return one metric over the worlds of a family, or over all worlds; NaN where there is none."""
        cells = zip(self.cells, self.values, strict=True)
        return [one.get(key, math.nan) for cell, one in cells if family is None or cell.family == family]

    @property
    def worlds(self) -> dict[str, dict[str, float]]:
        """Metrics by the name of the world."""
        return {cell.name: values for cell, values in zip(self.cells, self.values, strict=True)}


def run(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    *,
    threads: int = 1,
    each: Callable[[Cell], None] = lambda cell: None,
) -> SuiteRun:
    """Run a controller in every cell, each from start to end, grouped as by `group_cells`.

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
    values = [found[cell.name] for cell in cells]
    return SuiteRun(controller.name, cells, values, time.perf_counter() - begun, _read_cpu_seconds() - cpu)


def group_cells(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group cells that run together: of equal durations, and of as many agents each."""
    together: dict[tuple[int, float], list[Cell]] = {}
    for cell in cells:
        together.setdefault((cell.agents, cell.scenario.duration_s), []).append(cell)
    return list(together.values())


def _measure_cells(
    suite: Suite,
    cells: Sequence[Cell],
    controller: Controller,
    threads: int,
    each: Callable[[Cell], None],
    stop: sandbox.StopSignal,
) -> dict[str, dict[str, float]]:
    """Return the metrics of each cell, by its name."""
    found: dict[str, dict[str, float]] = {}
    for group in group_cells(cells):
        worlds = [World(cell.scenario, cell.seed, cell.seed) for cell in group]
        recorders = [Recorder(cell.scenario, suite.sample_s) for cell in group] if suite.sample_s else []

        def keep(view: View, group: list[Cell] = group, recorders: list[Recorder] = recorders) -> None:
            cell = group[view.index]
            found[cell.name] = suite.measure(cell, recorders[view.index].record(view) if recorders else view)
            each(cell)

        more: dict[str, Any] = {"agents": group[0].agents, "watch": dict(enumerate(recorders))}
        if recorders and isinstance(controller, InWorld):
            more["interval_s"] = suite.sample_s
        rollout.play(controller, worlds, keep, task=suite.task, threads=threads, stop=stop, **more)
    return found


def _measure_user_code(
    suite: Suite, cells: Sequence[Cell], controller: Controller, threads: int, each: Callable[[Cell], None]
) -> dict[str, dict[str, float]]:
    """Return the metrics of each cell for user code, in separate processes, each of which runs a share of the cells."""
    what, names, code = f"congestion control {controller.name}", [cell.name for cell in cells], controller.own_code
    found = sandbox.run_parallel(what, _measure_share, names, threads, suite, code, each=lambda k: each(cells[k]))
    return dict(zip(names, found, strict=True))


def _measure_share(
    names: Sequence[str], suite: Suite, word: str, each: Callable[[int], None], stop: sandbox.StopSignal
) -> list[dict[str, float]]:
    controller, numbers = rollout.get_controller(word, suite.task), {name: number for number, name in enumerate(names)}
    cells = suite.load().get_named_cells(names)
    found = _measure_cells(suite, cells, controller, 1, lambda cell: each(numbers[cell.name]), stop)
    return [found[name] for name in names]


def _read_cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    beside = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + beside.ru_utime + beside.ru_stime


def measure_decision_us(suite: Suite, cell: Cell, controller: Controller) -> float | None:
    """Return the microseconds per decision in one world, to six digits: the median of the first 300, or of as many as it has.

    None for a controller that acts in the world and takes no decisions.
    """
    if isinstance(controller, InWorld):
        return None
    timed = WatchedController(controller, DECISIONS)
    try:
        world = World(cell.scenario, cell.seed, cell.seed)
        rollout.play(timed, [world], lambda view: None, task=suite.task, agents=cell.agents, stop=timed.enough)
    except Stopped:
        pass
    return float(f"{1e6 * median(timed.groups[0].seconds):.6g}")


@dataclass
class Decisions:
    """Decisions in worlds that were played together: the task's rules, each decision's actions (rows, ...), and its seconds."""

    rules: Rules
    actions: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class WatchedController(ControllerWrapper[Rules]):
    """Wrapper of a controller that keeps its decisions, by groups of worlds, and how long each took.

    Args:
        controller: Controller that decides.
        most: Number of decisions in a group after which `enough` is set; None: never.
    """

    def __init__(self, controller: Controller, most: int | None = None):
        super().__init__(controller)
        self.most = most
        self.groups: list[Decisions] = []
        self.enough = threading.Event()

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        policy: Any = self.controller.start(rules, seeds)
        kept = Decisions(rules)
        self.groups.append(kept)

        def decide_timed(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            begun = time.perf_counter()
            actions, state = policy(observations, state, starts)
            kept.seconds.append(time.perf_counter() - begun)
            kept.actions.append(np.array(actions))
            if len(kept.seconds) == self.most:
                self.enough.set()
            return actions, state

        return decide_timed


PARTS = "parts"
LONE_GROUP_SIZE = 25
"""Worlds per group, for controllers that play each world alone."""


@dataclass(frozen=True)
class SuiteRunner:
    """Runner of controllers on a suite.

    Attributes:
        suite, edition: Suite and edition to play.
        output: Folder that holds `parts/`.
        executor: Executor that plays groups of worlds.
        jobs: Number of concurrent groups; in this process one at a time.
        threads: Number of threads that run the worlds of a group.
    """

    suite: Suite
    edition: Edition
    output: Path
    executor: Executor
    jobs: int
    threads: int

    def play(
        self, word: str, controller: Controller, cells: Sequence[Cell], each: Callable[[Cell], None] = lambda cell: None
    ) -> SuiteRun:
        """Play a controller on cells, with the same results to the bit as `run`.

        Args:
            word: Word that the controller was resolved from (`resolve_controller`), and is again in other processes.
            controller: The controller.
            cells: Cells to play.
            each: Called with every finished cell, kept ones first.

        Raises:
            ConfigError, CheckpointError, PlantFault: See `run`.
            WorkerError: A process was lost.
            OSError: A part cannot be written.
        """
        keeps = controller.own_code is None  # the files that the user's code depends on are not all known
        groups = self._group_worlds(controller, cells)
        kept = {
            index: found for index, group in enumerate(groups) if keeps and (found := self._read_part(word, group)) is not None
        }
        for index in kept:
            for cell in groups[index]:
                each(cell)
        todo = [index for index in range(len(groups)) if index not in kept]
        if self.executor.here:
            for index in todo:
                kept[index] = _make_part(run(self.suite, groups[index], controller, threads=self.threads, each=each))
                if keeps:
                    self._write_part(word, groups[index], kept[index])
        elif todo:
            work = _GroupRunner(self.suite.name, self.edition.digest, word, self.threads, Path.cwd())
            tasks = {tuple(cell.name for cell in groups[index]): index for index in todo}
            for names, part in self.executor.run(work, tasks, self.jobs):
                kept[tasks[names]] = part
                if keeps:
                    self._write_part(word, groups[tasks[names]], part)
                for cell in groups[tasks[names]]:
                    each(cell)
        values = {name: own for part in kept.values() for name, own in part["worlds"].items()}
        spent = [sum(part[key] for part in kept.values()) for key in ("seconds", "cpu_seconds")]
        return SuiteRun(controller.name, cells, [values[cell.name] for cell in cells], *spent)

    def remove_parts(self, word: str, controller: Controller, cells: Sequence[Cell]) -> None:
        """Remove the kept parts of a controller on these worlds."""
        for group in self._group_worlds(controller, cells):
            self._get_part_file(word, group).unlink(missing_ok=True)

    def _group_worlds(self, controller: Controller, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Group worlds that are played and kept as a whole; controllers that play each world alone have smaller groups.

        In this process the groups of the user's code, each of which starts processes, are as large as possible.
        """
        groups = group_cells(cells)
        if not isinstance(controller, InWorld):
            return groups
        size = len(cells) if controller.own_code is not None and self.executor.here else LONE_GROUP_SIZE
        return [group[at : at + size] for group in groups for at in range(0, len(group), size)]

    def _get_part_file(self, word: str, group: Sequence[Cell]) -> Path:
        decides = [self.suite.name, self.edition.version, self.edition.digest, [(cell.name, cell.seed) for cell in group]]
        decides += [word, compute_model_digest(word), versions.compute_program_digest()]
        digest = hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:16]
        return self.output / PARTS / f"{re.sub(r'[^A-Za-z0-9_.+-]', '-', word)[-80:]}-{digest}.json"

    def _read_part(self, word: str, group: Sequence[Cell]) -> dict[str, Any] | None:
        """Return the kept part of a group; None if there is none, or its file is damaged."""
        try:
            part = json.loads(self._get_part_file(word, group).read_text(encoding="utf-8"))
            whole = [cell.name for cell in group] == list(part["worlds"]) and part["seconds"] + part["cpu_seconds"] >= 0
            return part if whole else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write_part(self, word: str, group: Sequence[Cell], part: dict[str, Any]) -> None:
        file = self._get_part_file(word, group)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(part))


def _make_part(played: SuiteRun) -> dict[str, Any]:
    return {"worlds": played.worlds, "seconds": played.seconds, "cpu_seconds": played.cpu_seconds}


@dataclass(frozen=True)
class _GroupRunner:
    """Callable that plays a group, given by the names of its worlds, in another process."""

    suite: str
    digest: str
    word: str
    threads: int
    here: Path

    def __call__(self, names: tuple[str, ...]) -> dict[str, Any]:
        os.chdir(self.here)
        own, edition = _load_suite(self.suite)
        if edition.digest != self.digest:
            raise ConfigError(f"suite {self.suite} is of digest {edition.digest} there; valid: {self.digest}")
        controller = _resolve_controller(self.suite, self.word)
        return _make_part(run(own, edition.get_named_cells(names), controller, threads=self.threads))


@lru_cache(maxsize=1)
def _load_suite(name: str) -> tuple[Suite, Edition]:
    own = get_suite(name)
    return own, own.load()


@lru_cache(maxsize=1)
def _resolve_controller(name: str, word: str) -> Controller:
    return resolve_controller(word, get_suite(name))
