"""Studies, each with its cells, schemes and worlds, and with what is kept of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.ppcc import paper
from studies.ppcc import ppcc_measures as measures
from studies.ppcc import ppcc_worlds as worlds
from studies.ppcc.ppcc_schemes import CONSTANT, NOT_IN_NS3, TASK, make_controller
from studies.ppcc.ppcc_settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE, Settings

WINDOWS = (10, 20, 30, 36, 38, 40, 41, 42, 43, 44, 46, 50, 60, 80, 120, 160)
"""Constant windows in packets; the path of 10 Mbit/s and 48 ms holds 41."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: Name of the study.
        cells: Names of the cells, by which worlds differ besides the seed.
        world: Function `(cell, seed, duration_s)` that returns the scenario of a cell under a seed.
        absent: Schemes that are not part of the study.
    """

    name: str
    cells: Sequence[str]
    world: Callable[[str, int, float], Scenario]
    absent: tuple[str, ...] = ()

    def plays(self, scheme: str) -> bool:
        """Return whether a scheme is part of the study."""
        return scheme not in self.absent

    def steps(self, settings: Settings, seed: int) -> list[int]:
        """Return the values of column `step` in the rows of a run."""
        return [0]

    def build_worlds(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[rollout.World]:
        """Build the worlds of a cell."""
        drawn = [self.world(cell, seed, settings.lasting_s) for seed in seeds]
        return [worlds.draw_world(one, seed, len(one.flows)) for one, seed in zip(drawn, seeds, strict=True)]

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """Run a controller in the worlds of a cell and return, in the order of the seeds, one row for each step of a world."""
        made = self.build_worlds(settings, cell, seeds)
        rows: list[Row] = [{} for _ in made]

        def keep(view: rollout.View) -> None:
            rows[view.index] = measures.measure_run(view)

        rollout.play(controller, made, keep, task=TASK, stop=stop, agents=len(made[0].scenario.flows))
        return rows


class SecondsStudy(Study):
    """Study of runs second by second."""

    def steps(self, settings: Settings, seed: int) -> list[int]:
        """See `Study.steps`: the end of each second."""
        return list(range(1, int(settings.lasting_s) + 1))

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """See `Study.play`."""
        watched = [measures.SecondsRecorder() for _ in seeds]
        watch = {index: one.record for index, one in enumerate(watched)}
        rollout.play(controller, self.build_worlds(settings, cell, seeds), lambda view: None, task=TASK, watch=watch, stop=stop)
        return [row for one in watched for row in one.rows[: len(self.steps(settings, seeds[0]))]]


class WindowSweep(Study):
    """Study of constant windows of several sizes; the step is the size in packets."""

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
        found = [
            super(WindowSweep, self).play(make_controller(CONSTANT, size), settings, cell, seeds, stop) for size in WINDOWS
        ]
        return [rows[at] for at in range(len(seeds)) for rows in found]


def _bind_stack(stack: str) -> Callable[[str, int, float], Scenario]:
    return lambda cell, seed, duration_s: worlds.make_scenario(cell, duration_s, stack)


def _make_series_scenario(cell: str, seed: int, duration_s: float) -> Scenario:
    if cell == worlds.FLUCTUATING:
        return worlds.make_shared_scenario(worlds.name_cell(cell, 1), seed, duration_s)
    return worlds.make_scenario(cell, duration_s)


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(TABLE, paper.SCENARIOS, _bind_stack("linux")),
        Study(NS3, paper.SCENARIOS, _bind_stack("ns3"), NOT_IN_NS3),
        SecondsStudy(SERIES, (paper.MAIN, worlds.FLUCTUATING), _make_series_scenario),
        Study(SENDERS, worlds.SHARED, worlds.make_shared_scenario),
        WindowSweep(CONSTANTS, paper.SCENARIOS, _bind_stack("linux")),
    )
}
"""Studies by name."""
