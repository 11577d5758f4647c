"""The studies: of each the cells, the schemes that play in them, the worlds, and what is kept of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.auter import paper, worlds
from studies.auter.measures import Watch
from studies.auter.schemes import TASK, WITH_BBR
from studies.auter.settings import (
    BANDWIDTH,
    FLOW_SIZE,
    LATENCY,
    LONG_RUN,
    LOSS,
    MEMORY,
    PATHS,
    REGIONS,
    SETTINGS,
    SIM,
    Settings,
)

LIVE_S = 30.0
"""How long a live run takes, but for those of `LIVE_PATH_S` and long ones."""
LIVE_PATH_S = 60.0
PIECES = 62
"""Of a long run, each with a row of its own."""


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: It.
        own_cells: What differs between its worlds, besides the seed.
        lasting: How many seconds a simulated run in a cell takes.
        world: `(cell, seed, duration_s, live)`: the world of a cell under a seed.
        with_bbr: Whether agents with BBR play in it.
    """

    name: str
    own_cells: Sequence[str]
    lasting: Callable[[str], float]
    world: Callable[[str, int, float, bool], Scenario]
    with_bbr: bool = False

    def plays(self, scheme: str) -> bool:
        """Whether a scheme is in it."""
        return self.with_bbr or scheme not in WITH_BBR.values()

    def cells(self, settings: Settings) -> Sequence[str]:
        """The column `cell`."""
        return self.own_cells

    def steps(self, settings: Settings) -> list[float]:
        """The column `step` of each run's rows."""
        return [0]

    def lasting_s(self, settings: Settings, cell: str) -> float:
        """How long a run takes."""
        if settings.duration_s is not None:
            return settings.duration_s
        return LIVE_S if settings.live else self.lasting(cell)

    def example(self, settings: Settings) -> Scenario:
        """One of its worlds."""
        return self.made(settings, self.own_cells[0], settings.first_seed).scenario

    def made(self, settings: Settings, cell: str, seed: int) -> rollout.World:
        """The world of a cell under a seed."""
        return worlds.world(self.world(cell, seed, self.lasting_s(settings, cell), settings.live), seed)

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """The measures of each world, in the order of the seeds; of each so many rows as there are steps."""
        steps, whole_s = self.steps(settings), self.lasting_s(settings, cell)
        made = [self.made(settings, cell, seed) for seed in seeds]
        watches = [Watch(whole_s, len(steps) - 1) for _ in seeds]
        env = {} if settings.plant == SIM else {"plant": settings.plant}
        watch = {index: one.look for index, one in enumerate(watches)}
        rollout.play(controller, made, lambda view: watches[view.index].end(view), task=TASK, watch=watch, stop=stop, **env)
        return [row for one in watches for row in one.rows()]


class LongRun(Study):
    """A run of many hours, with a row for each piece of it."""

    def steps(self, settings: Settings) -> list[float]:
        """See `Study.steps`: 0 of the whole run, and the hours at which pieces end."""
        whole = worlds.lasting_hours(settings.hours, settings.live)
        return [0, *(whole * (piece + 1) / PIECES for piece in range(PIECES))]

    def lasting_s(self, settings: Settings, cell: str) -> float:
        """See `Study.lasting_s`."""
        return worlds.lasting_hours(settings.hours, settings.live) * 3600


class OnPaths(Study):
    """Long paths, fewer of them live; runs are long enough for what an agent does at their beginning to matter little."""

    def cells(self, settings: Settings) -> Sequence[str]:
        """See `Study.cells`."""
        return tuple(path.name for path in (worlds.LIVE_PATHS if settings.live else worlds.PATHS))

    def lasting_s(self, settings: Settings, cell: str) -> float:
        """See `Study.lasting_s`."""
        return super().lasting_s(settings, cell) if settings.duration_s or not settings.live else LIVE_PATH_S


def _always(seconds: float) -> Callable[[str], float]:
    return lambda cell: seconds


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(SETTINGS, tuple(paper.TABLE_1), worlds.region_s, worlds.region),
        Study(REGIONS, paper.CELLS, worlds.region_s, worlds.region, with_bbr=True),
        Study(LATENCY, tuple(f"{ms}ms" for ms in worlds.LATENCIES_MS), _always(worlds.SWEEP_S), worlds.latency),
        Study(
            BANDWIDTH,
            worlds.crossed(tuple(f"{rate}mbps" for rate in worlds.BANDWIDTHS_MBPS)),
            _always(worlds.SWEEP_S),
            worlds.bandwidth,
        ),
        Study(
            LOSS, worlds.crossed(tuple(f"{100 * share:g}%" for share in worlds.LOSSES)), _always(worlds.SWEEP_S), worlds.loss
        ),
        Study(FLOW_SIZE, worlds.crossed((*worlds.SIZES, worlds.MIXED)), _always(worlds.FILES_S), worlds.flow_size),
        Study(MEMORY, tuple(map(str, worlds.CONNECTIONS)), _always(worlds.MEMORY_S), worlds.memory),
        OnPaths(PATHS, tuple(path.name for path in worlds.PATHS), _always(worlds.PATH_S), worlds.path),
        LongRun(LONG_RUN, ("es-ea",), _always(0.0), worlds.hours, with_bbr=True),
    )
}
"""By name, but for training sessions, which are no runs of controllers."""
