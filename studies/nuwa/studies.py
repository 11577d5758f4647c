"""Studies of the campaign: cells, schemes, worlds and measures of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.nuwa import nuwa_measures as measures
from studies.nuwa import nuwa_worlds as worlds
from studies.nuwa.nuwa_schemes import GAINED, LEARNED, OURS, PUBLISHED, RANDOM, TASK
from studies.nuwa.nuwa_settings import CHANGE, FAIRNESS, FOUR, GRID, MOBILE, VIDEO, Settings

Cells = Callable[[Settings], Sequence[str]]
EXTRA_GAINS = tuple(scheme for scheme, (_, k) in GAINED.items() if k in (3, 5))
"""Schemes with gains that only the studies of the gain include."""
STREAMING = (LEARNED, *(f"{rule}_k{k}" for rule in (OURS, PUBLISHED) for k in (2, 7)), "rledbat", "cubic", "bbr")
"""Schemes in the study of video clients."""


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: Name of the study.
        duration_s: Duration of a run in the paper.
        cells: Function of the settings that returns the cells, by which worlds differ besides the seed; the column `network`.
        plays: Function of a scheme that returns whether it plays in the study.
        world: `(settings, cell, seed, duration_s)`: the world of a cell under a seed; its first flows are the receiver's.
        measure: Function that returns the measures of a finished world.
        follows: Function of the settings that returns the networks whose traces the worlds use.
    """

    name: str
    duration_s: float
    cells: Cells
    plays: Callable[[str], bool]
    world: Callable[[Settings, str, int, float], Scenario]
    measure: Callable[[rollout.View], dict[str, Any]] = measures.measure_flow
    follows: Callable[[Settings], Sequence[str]] = lambda settings: ()

    def schemes(self, settings: Settings) -> list[str]:
        """Return the campaign's schemes that play in the study."""
        return [scheme for scheme in settings.schemes if self.plays(scheme)]

    def make_worlds(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[rollout.World]:
        """Return the worlds of a cell, one per seed."""
        duration_s, agents = settings.resolve_duration_s(self.duration_s), self.count_agents(cell)
        return [worlds.draw_world(self.world(settings, cell, seed, duration_s), seed, agents) for seed in seeds]

    def count_agents(self, cell: str) -> int:
        """Return the number of the scheme's own flows in a cell's worlds."""
        return 1

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """Play the worlds of a cell and return their measures in the order of the seeds."""
        rows: list[dict[str, Any]] = [{} for _ in seeds]

        def keep(view: rollout.View) -> None:
            rows[view.index] = self.measure(view)

        rollout.play(controller, self.make_worlds(settings, cell, seeds), keep, task=TASK, stop=stop)
        return rows


class Fairness(Study):
    """Study of flows that join one by one."""

    def count_agents(self, cell: str) -> int:
        """See `Study.count_agents`."""
        return worlds.FLOWS if cell == worlds.OWN else worlds.FLOWS // 2

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """See `Study.play`."""
        found, own = self.record_sharing(controller, settings, cell, seeds, stop), self.count_agents(cell)
        return [measures.measure_sharing(*one.series(), own, one.arrivals_s, worlds.SHARED_MBPS) for one in found]

    def record_sharing(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[measures.SharingRecorder]:
        """Play the worlds of a cell and return the bytes delivered to each flow over time, per world."""
        agents, made = self.count_agents(cell), self.make_worlds(settings, cell, seeds)
        found = [measures.SharingRecorder([flow.start_s for flow in one.scenario.flows]) for one in made]
        watch = {index: one.record for index, one in enumerate(found)}
        rollout.play(controller, made, lambda view: None, task=TASK, watch=watch, stop=stop, agents=agents)
        return found


def _has_common_gain(scheme: str) -> bool:
    return scheme not in EXTRA_GAINS


ALL = {
    study.name: study
    for study in (
        Study(
            MOBILE,
            80.0,
            lambda settings: worlds.MOBILE,
            lambda scheme: True,
            lambda settings, cell, seed, duration_s: worlds.make_path_scenario(settings, cell, seed, duration_s),
            follows=lambda settings: worlds.MOBILE,
        ),
        Study(
            FOUR,
            40.0,
            lambda settings: settings.networks,
            _has_common_gain,
            lambda settings, cell, seed, duration_s: worlds.make_path_scenario(settings, cell, seed, duration_s),
            follows=lambda settings: settings.networks,
        ),
        Study(
            GRID,
            40.0,
            lambda settings: [f"{where}-{rate}" for where in worlds.DISTANCES_MS for rate in worlds.SERVERS_MBPS],
            _has_common_gain,
            lambda settings, cell, seed, duration_s: worlds.make_server_scenario(settings, cell, seed, duration_s),
            follows=lambda settings: (worlds.LAST_HOP,),
        ),
        Study(
            CHANGE,
            80.0,
            lambda settings: [
                worlds.format_jumping_cell(rate, time_s) for rate in worlds.MEANS_MBPS for time_s in worlds.SPEEDS_S
            ],
            lambda scheme: scheme in (*GAINED, LEARNED, "cubic", "bbr"),
            lambda settings, cell, seed, duration_s: worlds.make_jumping_scenario(cell, seed, duration_s),
        ),
        Fairness(
            FAIRNESS,
            80.0,
            lambda settings: (worlds.OWN, worlds.WITH_CUBIC),
            lambda scheme: _has_common_gain(scheme) and scheme not in (RANDOM, "fixed"),
            lambda settings, cell, seed, duration_s: worlds.make_joining_scenario(cell, seed, duration_s),
        ),
        Study(
            VIDEO,
            120.0,
            lambda settings: [f"{link}-{abr}" for link in worlds.STREAMED for abr in worlds.BITRATES],
            lambda scheme: scheme in STREAMING,
            lambda settings, cell, seed, duration_s: worlds.make_streaming_scenario(settings, cell, seed, duration_s),
            measures.measure_video,
            lambda settings: worlds.STREAMED,
        ),
    )
}
"""Studies by name, without learning curves, which are not runs of worlds."""
