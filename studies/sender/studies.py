"""The studies: of each the cells, the schemes that play in them, the worlds, and what is kept of a run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from studies.sender import measures, trace_cells, worlds
from studies.sender.bounds import SCALES, Bound
from studies.sender.schemes import BOUNDS, TASK
from studies.sender.settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    TRACES,
    Settings,
)
from studies.sender.worlds import Made

Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: It.
        cells: What differs between its worlds, besides the seed.
        usual_s: How long a run takes where nobody says otherwise.
        world: `(cell, seed, duration_s)`: the world of a cell under a seed.
        after: What is kept of what a run delivered over time, beside its row; None: nothing.
        series: Whether the first seed's runs are kept moment by moment.
    """

    name: str
    cells: Sequence[str]
    usual_s: float
    world: Callable[[str, int, float], Made]
    after: Callable[[measures.Log, Row], dict[str, float]] | None = None
    series: bool = False

    def plays(self, scheme: str) -> bool:
        """Whether a scheme is in it: bounds on traces alone."""
        return scheme not in BOUNDS

    def steps(self, settings: Settings, seed: int) -> list[float]:
        """The column `step` of the rows of a seed's run: 0, of the whole, and the moments of a series, seconds."""
        if not self.series or seed != settings.first_seed:
            return [0]
        many = int(settings.lasting_s(self.usual_s) / measures.OVER_S + 1e-6)
        return [0, *(measures.OVER_S * at for at in range(1, many + 1))]

    def made(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[Made]:
        """The worlds of a cell."""
        return [self.world(cell, seed, settings.lasting_s(self.usual_s)) for seed in seeds]

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """The measures of each world, in the order of the seeds; of each so many rows as there are steps."""
        made = self.made(settings, cell, seeds)
        if isinstance(controller, Bound):
            tried = [self._rows(Bound(controller.name, scale), made, seeds, stop) for scale in SCALES]
            return [
                max((rows[at] | {"choice": scale} for scale, rows in zip(SCALES, tried, strict=True)), key=_utility)
                for at in range(len(seeds))
            ]
        logs = [measures.Log(one) for one in made] if self.after is not None else []
        rows = self._rows(controller, made, seeds, stop, logs)
        found = []
        for at, seed in enumerate(seeds):
            moments = logs[at].moments() if logs and len(self.steps(settings, seed)) > 1 else []
            found += [rows[at], *moments[: len(self.steps(settings, seed)) - 1]]
        return found

    def _rows(
        self,
        controller: Controller,
        made: Sequence[Made],
        seeds: Sequence[int],
        stop: threading.Event | None,
        logs: Sequence[measures.Log] = (),
    ) -> list[Row]:
        """A row for each world."""
        rows: list[Row] = [{} for _ in made]

        def keep(view: rollout.View) -> None:
            row = rows[view.index] = measures.of_a_run(view)
            if logs and self.after is not None:
                row |= self.after(logs[view.index], row)

        drawn = [worlds.world(one, seed) for one, seed in zip(made, seeds, strict=True)]
        watch = {index: log.look for index, log in enumerate(logs)}
        rollout.play(controller, drawn, keep, task=TASK, watch=watch, stop=stop, agents=made[0].agents)
        return rows


class OfTraces(Study):
    """Windows of measured traces."""

    def plays(self, scheme: str) -> bool:
        """See `Study.plays`."""
        return True

    def made(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[Made]:
        """See `Study.made`: a seed's place in the list is its window's number."""
        lasts_s, first = settings.lasting_s(self.usual_s), settings.first_seed
        windows = [trace_cells.window(settings.traces, cell, seed - first, lasts_s) for seed in seeds]
        return [worlds.trace(cell, one) for one in windows]


class OnOtherPaths(Study):
    """What happens in other studies, and is kept of it, on other paths; a cell says of which."""

    def made(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[Made]:
        """See `Study.made`."""
        return self._there(cell).made(settings, cell, seeds)

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[Row]:
        """See `Study.play`."""
        return self._there(cell).play(controller, settings, cell, seeds, stop)

    def _there(self, cell: str) -> Study:
        return replace(ALL[cell.partition(":")[0]], world=self.world, series=False)


def _utility(row: Row) -> float:
    """Of a row; the least there is where nothing was heard."""
    return row["utility"] if math.isfinite(row["utility"]) else -math.inf


def _no_window(cell: str, seed: int, duration_s: float) -> Made:
    raise AssertionError("windows are read from the settings' folder")


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(PPCC, worlds.PPCC_CELLS, 100.0, worlds.ppcc),
        Study(GRID, worlds.GRID_CELLS, worlds.GRID_S, worlds.grid),
        Study(START, worlds.START_CELLS, 10.0, worlds.start, measures.of_start, series=True),
        OfTraces(TRACES, trace_cells.CELLS, 60.0, _no_window),
        Study(OUTAGE, worlds.OUTAGE_CELLS, 60.0, worlds.outage, measures.of_outage, series=True),
        Study(DELAY_STEP, worlds.STEP_CELLS, 80.0, worlds.delay_step, measures.of_delay_step, series=True),
        Study(REVERSE, worlds.REVERSE_CELLS, 60.0, worlds.reverse),
        Study(RIVALS, worlds.RIVAL_CELLS, 60.0, worlds.rivals, measures.of_rivals),
        Study(AGENTS, worlds.AGENT_CELLS, 50.0, worlds.agents, measures.of_agents),
        OnOtherPaths(ELSEWHERE, worlds.OTHER_CELLS, 60.0, worlds.elsewhere),
    )
}
"""By name."""
