"""Controllers on the worlds of a suite, spread over an engine; what is played is kept, and not played again.

Worlds that are played together, because that is cheaper, stay together wherever it is: what a network decides, and what chance
does, may depend on the rows beside it. Such a group is played and kept as a whole, in a file of `parts/`, which is taken again
as long as all that decides it is the same: the suite's version, the worlds, who plays in them, and the program.
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
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, runner, suite
from netbuf_gym.training.checkpoints import versions
from netbuf_gym.utils.executors import Executor
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.zoo import resolve

PARTS = "parts"
ALONE = 25
"""Worlds in a group of those that are each played alone."""


@dataclass(frozen=True)
class Playing:
    """How a suite is played.

    Attributes:
        suite, edition: What.
        output: The folder that `parts/` is in.
        executor: Where.
        jobs: Groups at once; in this process one at a time.
        threads: That run the worlds of a group.
    """

    suite: Suite
    edition: Edition
    output: Path
    executor: Executor
    jobs: int
    threads: int

    def play(
        self, word: str, controller: Controller, cells: Sequence[Cell], each: Callable[[Cell], None] = lambda cell: None
    ) -> runner.Played:
        """As `running.run`, of which the same comes to the bit.

        Args:
            word: What the controller was made of (`contending.controller`), in other processes once more.
            each: Is told every cell that is done, those that were kept first.

        Raises:
            ConfigError, CheckpointError, PlantFault: As `running.run`.
            WorkerError: A process was lost.
            OSError: A part cannot be written.
        """
        keeps = controller.own_code is None  # what code of one's own rests on is not all known
        groups = self._groups(controller, cells)
        kept = {index: found for index, group in enumerate(groups) if keeps and (found := self._read(word, group)) is not None}
        for index in kept:
            for cell in groups[index]:
                each(cell)
        todo = [index for index in range(len(groups)) if index not in kept]
        if self.executor.here:
            for index in todo:
                kept[index] = _part(runner.run(self.suite, groups[index], controller, threads=self.threads, each=each))
                if keeps:
                    self._write(word, groups[index], kept[index])
        elif todo:
            work = _Elsewhere(self.suite.name, self.edition.digest, word, self.threads, Path.cwd())
            tasks = {tuple(cell.name for cell in groups[index]): index for index in todo}
            for names, part in self.executor.run(work, tasks, self.jobs):
                index = tasks[names]
                kept[index] = part
                if keeps:
                    self._write(word, groups[index], part)
                for cell in groups[index]:
                    each(cell)
        values = {name: own for part in kept.values() for name, own in part["worlds"].items()}
        spent = [sum(part[key] for part in kept.values()) for key in ("seconds", "cpu_seconds")]
        return runner.Played(controller.name, cells, [values[cell.name] for cell in cells], *spent)

    def forget(self, word: str, controller: Controller, cells: Sequence[Cell]) -> None:
        """Remove what is kept of a controller on these worlds."""
        for group in self._groups(controller, cells):
            self._file(word, group).unlink(missing_ok=True)

    def _groups(self, controller: Controller, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Worlds that are played and kept as a whole; each group of code of one's own would start processes of its own."""
        alone = len(cells) if controller.own_code is not None and self.executor.here else ALONE
        return _groups(controller, cells, alone)

    def _file(self, word: str, group: Sequence[Cell]) -> Path:
        decides = [self.suite.name, self.edition.version, self.edition.digest, [(cell.name, cell.seed) for cell in group]]
        decides += [word, resolve.digest_of(word), versions.program()]
        digest = hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:16]
        return self.output / PARTS / f"{re.sub(r'[^A-Za-z0-9_.+-]', '-', word)[-80:]}-{digest}.json"

    def _read(self, word: str, group: Sequence[Cell]) -> dict[str, Any] | None:
        """A group that was played before; None: it was not, or its file is damaged."""
        try:
            part = json.loads(self._file(word, group).read_text(encoding="utf-8"))
            whole = [cell.name for cell in group] == list(part["worlds"]) and part["seconds"] + part["cpu_seconds"] >= 0
            return part if whole else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, word: str, group: Sequence[Cell], part: dict[str, Any]) -> None:
        file = self._file(word, group)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(part))


def _groups(controller: Controller, cells: Sequence[Cell], alone: int = ALONE) -> list[list[Cell]]:
    """Cells that are played together; of those that are each played alone up to `alone`."""
    together: dict[tuple[int, float], list[Cell]] = {}
    for cell in cells:
        together.setdefault((cell.agents, cell.scenario.duration_s), []).append(cell)
    if not isinstance(controller, InWorld):
        return list(together.values())
    return [group[at : at + alone] for group in together.values() for at in range(0, len(group), alone)]


def _part(played: runner.Played) -> dict[str, Any]:
    worlds = {cell.name: values for cell, values in zip(played.cells, played.values, strict=True)}
    return {"worlds": worlds, "seconds": played.seconds, "cpu_seconds": played.cpu_seconds}


@dataclass(frozen=True)
class _Elsewhere:
    """Plays a group in another process, by the names of its worlds."""

    suite: str
    digest: str
    word: str
    threads: int
    here: Path

    def __call__(self, names: tuple[str, ...]) -> dict[str, Any]:
        os.chdir(self.here)
        own, edition = _loaded(self.suite)
        if edition.digest != self.digest:
            raise ConfigError(f"suite {self.suite} is of digest {edition.digest} there; valid: {self.digest}")
        return _part(runner.run(own, edition.named(names), _controller(self.suite, self.word), threads=self.threads))


@lru_cache(maxsize=1)
def _loaded(name: str) -> tuple[Suite, Edition]:
    own = suite(name)
    return own, own.load()


@lru_cache(maxsize=1)
def _controller(name: str, word: str) -> Controller:
    return resolve.controller(word, suite(name))
