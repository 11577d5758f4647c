"""The studies: of each the cells, the schemes that play in them, the worlds, and what is kept of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.ppcc import measures, paper, worlds
from studies.ppcc.schemes import CONSTANT, NOT_IN_NS3, TASK, controller_of
from studies.ppcc.settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE, Settings

WINDOWS = (10, 20, 30, 36, 38, 40, 41, 42, 43, 44, 46, 50, 60, 80, 120, 160)
"""Constant windows in packets; the path of 10 Mbit/s and 48 ms holds 41."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: It.
        cells: What differs between its worlds, besides the seed.
        world: `(cell, seed, duration_s)`: the world of a cell under a seed.
        absent: Schemes that do not play in it.
    """

    name: str
    cells: Sequence[str]
    world: Callable[[str, int, float], Scenario]
    absent: tuple[str, ...] = ()

    def plays(self, scheme: str) -> bool:
        """Whether a scheme is in it."""
        return scheme not in self.absent

    def steps(self, settings: Settings, seed: int) -> list[int]:
        """The column `step` of each run's rows."""
        return [0]

    def made(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[rollout.World]:
        """The worlds of a cell."""
        drawn = [self.world(cell, seed, settings.lasting_s) for seed in seeds]
        return [worlds.world(one, seed, len(one.flows)) for one, seed in zip(drawn, seeds, strict=True)]

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """The measures of each world, in the order of the seeds; of each so many rows as there are steps."""
        made = self.made(settings, cell, seeds)
        rows: list[Row] = [{} for _ in made]

        def keep(view: rollout.View) -> None:
            rows[view.index] = measures.of_a_run(view)

        rollout.play(controller, made, keep, task=TASK, stop=stop, agents=len(made[0].scenario.flows))
        return rows


class OverTime(Study):
    """Runs second by second."""

    def steps(self, settings: Settings, seed: int) -> list[int]:
        """See `Study.steps`: the seconds' ends."""
        return list(range(1, int(settings.lasting_s) + 1))

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """See `Study.play`."""
        watched = [measures.Seconds() for _ in seeds]
        watch = {index: one.look for index, one in enumerate(watched)}
        rollout.play(controller, self.made(settings, cell, seeds), lambda view: None, task=TASK, watch=watch, stop=stop)
        return [row for one in watched for row in one.rows[: len(self.steps(settings, seeds[0]))]]


class Sweep(Study):
    """Constant windows of several sizes; the size is the step."""

    def plays(self, scheme: str) -> bool:
        """See `Study.plays`."""
        return scheme == CONSTANT

    def steps(self, settings: Settings, seed: int) -> list[int]:
        """See `Study.steps`."""
        return list(WINDOWS)

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """See `Study.play`."""
        found = [super(Sweep, self).play(controller_of(CONSTANT, size), settings, cell, seeds, stop) for size in WINDOWS]
        return [rows[at] for at in range(len(seeds)) for rows in found]


def _one(stack: str) -> Callable[[str, int, float], Scenario]:
    return lambda cell, seed, duration_s: worlds.scenario(cell, duration_s, stack)


def _over_time(cell: str, seed: int, duration_s: float) -> Scenario:
    if cell == worlds.FLUCTUATING:
        return worlds.shared(worlds.cell(cell, 1), seed, duration_s)
    return worlds.scenario(cell, duration_s)


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(TABLE, paper.SCENARIOS, _one("linux")),
        Study(NS3, paper.SCENARIOS, _one("ns3"), NOT_IN_NS3),
        OverTime(SERIES, (paper.MAIN, worlds.FLUCTUATING), _over_time),
        Study(SENDERS, worlds.SHARED, worlds.shared),
        Sweep(CONSTANTS, paper.SCENARIOS, _one("linux")),
    )
}
"""By name."""
