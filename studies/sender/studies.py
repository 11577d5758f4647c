"""Studies, each with its cells, schemes and worlds, and with what is kept of a run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from studies.sender import sender_measures as measures
from studies.sender import sender_worlds as worlds
from studies.sender import strangers, trace_cells
from studies.sender.bounds import SCALES, Bound
from studies.sender.sender_schemes import BOUNDS, TASK
from studies.sender.sender_settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    STRANGERS,
    TRACES,
    Settings,
)
from studies.sender.sender_worlds import StudyWorld

Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: Name of the study.
        cells: Names of the cells, by which worlds differ besides the seed.
        usual_s: Duration of a run unless the settings shorten it.
        world: Function `(cell, seed, duration_s)` that returns the world of a cell under a seed.
        after: Function of a run's log and row that returns further measures of the row; None: no log is kept.
        series: Whether the first seed's runs are kept moment by moment.
    """

    name: str
    cells: Sequence[str]
    usual_s: float
    world: Callable[[str, int, float], StudyWorld]
    after: Callable[[measures.DeliveryLog, Row], dict[str, float]] | None = None
    series: bool = False

    def plays(self, scheme: str) -> bool:
        """Return whether a scheme is part of the study; bounds are part of the study of traces alone."""
        return scheme not in BOUNDS

    def steps(self, settings: Settings, seed: int) -> list[float]:
        """Return the values of column `step` for a seed's run: 0 for the whole run, then the moments of a series in seconds."""
        if not self.series or seed != settings.first_seed:
            return [0]
        many = int(settings.lasting_s(self.usual_s) / measures.OVER_S + 1e-6)
        return [0, *(measures.OVER_S * at for at in range(1, many + 1))]

    def build_worlds(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[StudyWorld]:
        """Build the worlds of a cell."""
        return [self.world(cell, seed, settings.lasting_s(self.usual_s)) for seed in seeds]

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """Run a controller in the worlds of a cell and return, in the order of the seeds, one row for each step of a world."""
        made = self.build_worlds(settings, cell, seeds)
        if isinstance(controller, Bound):
            tried = [self._run_worlds(Bound(controller.name, scale), made, seeds, stop) for scale in SCALES]
            return [
                max((rows[at] | {"choice": scale} for scale, rows in zip(SCALES, tried, strict=True)), key=_get_utility)
                for at in range(len(seeds))
            ]
        logs = [measures.DeliveryLog(one) for one in made] if self.after is not None else []
        rows = self._run_worlds(controller, made, seeds, stop, logs)
        found = []
        for at, seed in enumerate(seeds):
            moments = logs[at].list_moments() if logs and len(self.steps(settings, seed)) > 1 else []
            found += [rows[at], *moments[: len(self.steps(settings, seed)) - 1]]
        return found

    def _run_worlds(
        self,
        controller: Controller,
        made: Sequence[StudyWorld],
        seeds: Sequence[int],
        stop: threading.Event | None,
        logs: Sequence[measures.DeliveryLog] = (),
    ) -> list[Row]:
        """Run a controller in worlds and return a row for each."""
        rows: list[Row] = [{} for _ in made]

        def keep(view: rollout.View) -> None:
            row = rows[view.index] = measures.measure_run(view)
            if logs and self.after is not None:
                row |= self.after(logs[view.index], row)

        drawn = [worlds.draw_world(one, seed) for one, seed in zip(made, seeds, strict=True)]
        watch = {index: log.sample for index, log in enumerate(logs)}
        rollout.play(controller, drawn, keep, task=TASK, watch=watch, stop=stop, agents=made[0].agents)
        return rows


class TraceStudy(Study):
    """Study of windows of measured traces."""

    def plays(self, scheme: str) -> bool:
        """See `Study.plays`."""
        return True

    def build_worlds(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[StudyWorld]:
        """See `Study.build_worlds`: the distance of a seed from the first seed is the number of its window."""
        lasts_s, first = settings.lasting_s(self.usual_s), settings.first_seed
        windows = [trace_cells.read_window(settings.traces, cell, seed - first, lasts_s) for seed in seeds]
        return [worlds.make_trace(cell, one) for one in windows]


class OtherPathsStudy(Study):
    """Study of other studies' worlds and measures on other paths; a cell names the other study."""

    def build_worlds(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[StudyWorld]:
        """See `Study.build_worlds`."""
        return self._select_study(cell).build_worlds(settings, cell, seeds)

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """See `Study.play`."""
        return self._select_study(cell).play(controller, settings, cell, seeds, stop)

    def _select_study(self, cell: str) -> Study:
        return replace(ALL[cell.partition(":")[0]], world=self.world, series=False)


def _get_utility(row: Row) -> float:
    """Return the utility of a row; minus infinity where nothing was acknowledged."""
    return row["utility"] if math.isfinite(row["utility"]) else -math.inf


def _refuse_world(cell: str, seed: int, duration_s: float) -> StudyWorld:
    raise AssertionError("windows are read from the settings' folder")


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(PPCC, worlds.PPCC_CELLS, 100.0, worlds.make_ppcc),
        Study(GRID, worlds.GRID_CELLS, worlds.GRID_S, worlds.make_grid),
        Study(START, worlds.START_CELLS, 10.0, worlds.make_start, measures.measure_start, series=True),
        TraceStudy(TRACES, trace_cells.CELLS, 60.0, _refuse_world),
        Study(OUTAGE, worlds.OUTAGE_CELLS, 60.0, worlds.make_outage, measures.measure_outage, series=True),
        Study(DELAY_STEP, worlds.STEP_CELLS, 80.0, worlds.make_delay_step, measures.measure_delay_step, series=True),
        Study(REVERSE, worlds.REVERSE_CELLS, 60.0, worlds.make_reverse),
        Study(RIVALS, worlds.RIVAL_CELLS, 60.0, worlds.make_rivals, measures.measure_rivals),
        Study(AGENTS, worlds.AGENT_CELLS, 50.0, worlds.make_agents, measures.measure_agents),
        OtherPathsStudy(ELSEWHERE, worlds.OTHER_CELLS, 60.0, worlds.make_elsewhere),
        Study(STRANGERS, strangers.CELLS, strangers.LASTS_S, strangers.make_world, measures.measure_strangers),
    )
}
"""Studies by name."""
