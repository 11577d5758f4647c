"""Studies of the campaign: cells, schemes, worlds and recorded measures of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.auter import auter_worlds as worlds
from studies.auter import paper
from studies.auter.auter_measures import RunRecorder
from studies.auter.auter_schemes import OTHER_CONTROLS, TASK
from studies.auter.auter_settings import (
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
"""Duration of a live run in s, except on long paths (`LIVE_PATH_S`) and in long runs."""
LIVE_PATH_S = 60.0
PIECES = 62
"""Pieces of a long run, each with a row of its own."""


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: Name of the study.
        own_cells: Cells: the values by which worlds differ besides the seed.
        lasting: Function of a cell that returns the duration of a simulated run in s.
        world: `(cell, seed, duration_s, live)`: the world of a cell under a seed.
        with_others: Whether agents with other congestion controls play in the study.
    """

    name: str
    own_cells: Sequence[str]
    lasting: Callable[[str], float]
    world: Callable[[str, int, float, bool], Scenario]
    with_others: bool = False

    def plays(self, scheme: str) -> bool:
        """Return whether a scheme plays in the study."""
        return self.with_others or scheme not in OTHER_CONTROLS

    def cells(self, settings: Settings) -> Sequence[str]:
        """Return the values of the column `cell`."""
        return self.own_cells

    def steps(self, settings: Settings) -> list[float]:
        """Return the values of the column `step` in the rows of each run."""
        return [0]

    def resolve_duration_s(self, settings: Settings, cell: str) -> float:
        """Return the duration of a run in a cell in s."""
        if settings.duration_s is not None:
            return settings.duration_s
        return LIVE_S if settings.live else self.lasting(cell)

    def make_example(self, settings: Settings) -> Scenario:
        """Return an example scenario: the first cell under the first seed."""
        return self.make_world(settings, self.own_cells[0], settings.first_seed).scenario

    def make_world(self, settings: Settings, cell: str, seed: int) -> rollout.World:
        """Return the world of a cell under a seed."""
        return worlds.draw_world(self.world(cell, seed, self.resolve_duration_s(settings, cell), settings.live), seed)

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """Play the worlds of a cell and return their measures in the order of the seeds: one row per step of each world."""
        steps, whole_s = self.steps(settings), self.resolve_duration_s(settings, cell)
        made = [self.make_world(settings, cell, seed) for seed in seeds]
        watches = [RunRecorder(whole_s, len(steps) - 1) for _ in seeds]
        env: dict[str, Any] = {} if settings.plant == SIM else {"plant": settings.plant}
        watch = {index: one.record for index, one in enumerate(watches)}
        rollout.play(
            controller, made, lambda view: watches[view.index].record_end(view), task=TASK, watch=watch, stop=stop, **env
        )
        return [row for one in watches for row in one.rows()]


class LongRun(Study):
    """Study of a run of many hours, with a row for each piece."""

    def steps(self, settings: Settings) -> list[float]:
        """Return 0 for the whole run, then the hours at which the pieces end."""
        whole = worlds.resolve_hours(settings.hours, settings.live)
        return [0, *(whole * (piece + 1) / PIECES for piece in range(PIECES))]

    def resolve_duration_s(self, settings: Settings, cell: str) -> float:
        """See `Study.resolve_duration_s`."""
        return worlds.resolve_hours(settings.hours, settings.live) * 3600


class LongPaths(Study):
    """Study of long paths, fewer of them live; runs are long enough that an agent's start-up matters little."""

    def cells(self, settings: Settings) -> Sequence[str]:
        """See `Study.cells`."""
        return tuple(path.name for path in (worlds.LIVE_PATHS if settings.live else worlds.PATHS))

    def resolve_duration_s(self, settings: Settings, cell: str) -> float:
        """See `Study.resolve_duration_s`."""
        return super().resolve_duration_s(settings, cell) if settings.duration_s or not settings.live else LIVE_PATH_S


def _make_constant(seconds: float) -> Callable[[str], float]:
    return lambda cell: seconds


ALL: dict[str, Study] = {
    study.name: study
    for study in (
        Study(SETTINGS, tuple(paper.TABLE_1), worlds.get_region_duration_s, worlds.make_region_scenario),
        Study(REGIONS, paper.CELLS, worlds.get_region_duration_s, worlds.make_region_scenario, with_others=True),
        Study(
            LATENCY,
            tuple(f"{ms}ms" for ms in worlds.LATENCIES_MS),
            _make_constant(worlds.SWEEP_S),
            worlds.make_latency_scenario,
        ),
        Study(
            BANDWIDTH,
            worlds.cross_cells(tuple(f"{rate}mbps" for rate in worlds.BANDWIDTHS_MBPS)),
            _make_constant(worlds.SWEEP_S),
            worlds.make_bandwidth_scenario,
        ),
        Study(
            LOSS,
            worlds.cross_cells(tuple(f"{100 * share:g}%" for share in worlds.LOSSES)),
            _make_constant(worlds.SWEEP_S),
            worlds.make_loss_scenario,
        ),
        Study(
            FLOW_SIZE,
            worlds.cross_cells((*worlds.SIZES, worlds.MIXED)),
            _make_constant(worlds.FILES_S),
            worlds.make_flow_size_scenario,
        ),
        Study(MEMORY, tuple(map(str, worlds.CONNECTIONS)), _make_constant(worlds.MEMORY_S), worlds.make_memory_scenario),
        LongPaths(PATHS, tuple(path.name for path in worlds.PATHS), _make_constant(worlds.PATH_S), worlds.make_path_scenario),
        LongRun(LONG_RUN, ("es-ea",), _make_constant(0.0), worlds.make_long_run_scenario, with_others=True),
    )
}
"""Studies by name, without training sessions, which are not runs of controllers."""
