"""Runs of controllers on the worlds of a suite, spread over an executor; finished parts are kept and not played again.

Worlds that are played together, because that is cheaper, stay together on every executor: decisions of a network, and of
chance, may depend on neighbouring rows. Such a group is played and kept as a whole, in a file of `parts/`, which is reused as
long as everything that determines it is the same: the suite's version, the worlds, the controller, and the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, get_suite, runner
from netbuf_gym.training.checkpoints import versions
from netbuf_gym.utils.executors import Executor
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.zoo import resolve

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
    ) -> runner.SuiteRun:
        """Play a controller on cells, with the same results to the bit as `runner.run`.

        Args:
            word: Word that the controller was resolved from (`resolve.resolve_controller`), and is again in other processes.
            controller: The controller.
            cells: Cells to play.
            each: Called with every finished cell, kept ones first.

        Raises:
            ConfigError, CheckpointError, PlantFault: See `runner.run`.
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
                kept[index] = _make_part(runner.run(self.suite, groups[index], controller, threads=self.threads, each=each))
                if keeps:
                    self._write_part(word, groups[index], kept[index])
        elif todo:
            work = _GroupRunner(self.suite.name, self.edition.digest, word, self.threads, Path.cwd())
            tasks = {tuple(cell.name for cell in groups[index]): index for index in todo}
            for names, part in self.executor.run(work, tasks, self.jobs):
                index = tasks[names]
                kept[index] = part
                if keeps:
                    self._write_part(word, groups[index], part)
                for cell in groups[index]:
                    each(cell)
        values = {name: own for part in kept.values() for name, own in part["worlds"].items()}
        spent = [sum(part[key] for part in kept.values()) for key in ("seconds", "cpu_seconds")]
        return runner.SuiteRun(controller.name, cells, [values[cell.name] for cell in cells], *spent)

    def remove_parts(self, word: str, controller: Controller, cells: Sequence[Cell]) -> None:
        """Remove the kept parts of a controller on these worlds."""
        for group in self._group_worlds(controller, cells):
            self._get_part_file(word, group).unlink(missing_ok=True)

    def _group_worlds(self, controller: Controller, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Group worlds that are played and kept as a whole.

        In this process the groups of the user's code, each of which starts processes, are as large as possible.
        """
        alone = len(cells) if controller.own_code is not None and self.executor.here else LONE_GROUP_SIZE
        return _group_cells(controller, cells, alone)

    def _get_part_file(self, word: str, group: Sequence[Cell]) -> Path:
        decides = [self.suite.name, self.edition.version, self.edition.digest, [(cell.name, cell.seed) for cell in group]]
        decides += [word, resolve.compute_model_digest(word), versions.compute_program_digest()]
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


def _group_cells(controller: Controller, cells: Sequence[Cell], alone: int = LONE_GROUP_SIZE) -> list[list[Cell]]:
    """Group cells that are played together; at most `alone` per group for controllers that play each cell alone."""
    together: dict[tuple[int, float], list[Cell]] = {}
    for cell in cells:
        together.setdefault((cell.agents, cell.scenario.duration_s), []).append(cell)
    if not isinstance(controller, InWorld):
        return list(together.values())
    return [group[at : at + alone] for group in together.values() for at in range(0, len(group), alone)]


def _make_part(played: runner.SuiteRun) -> dict[str, Any]:
    worlds = {cell.name: values for cell, values in zip(played.cells, played.values, strict=True)}
    return {"worlds": worlds, "seconds": played.seconds, "cpu_seconds": played.cpu_seconds}


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
        return _make_part(
            runner.run(own, edition.get_named_cells(names), _resolve_controller(self.suite, self.word), threads=self.threads)
        )


@lru_cache(maxsize=1)
def _load_suite(name: str) -> tuple[Suite, Edition]:
    own = get_suite(name)
    return own, own.load()


@lru_cache(maxsize=1)
def _resolve_controller(name: str, word: str) -> Controller:
    return resolve.resolve_controller(word, get_suite(name))
