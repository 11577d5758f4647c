"""The studies: of each the cells, the schemes that play in them, the worlds, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from studies.nuwa import measures, worlds
from studies.nuwa.schemes import GAINED, LEARNED, OURS, PUBLISHED, RANDOM, TASK
from studies.nuwa.settings import CHANGE, FAIRNESS, FOUR, GRID, MOBILE, VIDEO, Settings

Cells = Callable[[Settings], Sequence[str]]
EXTRA_GAINS = tuple(scheme for scheme, (_, k) in GAINED.items() if k in (3, 5))
"""Gains that only the studies of the gain have."""
STREAMING = (LEARNED, *(f"{rule}_k{k}" for rule in (OURS, PUBLISHED) for k in (2, 7)), "rledbat", "cubic", "bbr")
"""Schemes that video clients are behind."""


@dataclass(frozen=True)
class Study:
    """Runs of the same kind in several cells.

    Attributes:
        name: It.
        duration_s: Of a run, as long as the paper's.
        cells: What differs between its worlds, besides the seed; the column `network`.
        plays: Whether a scheme is in it.
        world: The world of a cell under a seed, of a duration, with its first flows a receiver's.
        measure: What is kept of a world that has run to its end.
        follows: The networks whose traces its worlds are on.
    """

    name: str
    duration_s: float
    cells: Cells
    plays: Callable[[str], bool]
    world: Callable[[Settings, str, int, float], Scenario]
    measure: Callable[[rollout.View], dict[str, Any]] = measures.of_a_flow
    follows: Callable[[Settings], Sequence[str]] = lambda settings: ()

    def schemes(self, settings: Settings) -> list[str]:
        """Those of a campaign's that play in it."""
        return [scheme for scheme in settings.schemes if self.plays(scheme)]

    def scenarios(self, settings: Settings, cell: str, seeds: Sequence[int]) -> list[rollout.World]:
        """The worlds of a cell."""
        duration_s, agents = settings.lasting_s(self.duration_s), self.agents(cell)
        return [worlds.world(self.world(settings, cell, seed, duration_s), seed, agents) for seed in seeds]

    def agents(self, cell: str) -> int:
        """How many flows of a cell's worlds are the scheme's."""
        return 1

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """The measures of each world, in the order of the seeds."""
        rows: list[dict[str, Any]] = [{} for _ in seeds]

        def keep(view: rollout.View) -> None:
            rows[view.index] = self.measure(view)

        rollout.play(controller, self.scenarios(settings, cell, seeds), keep, task=TASK, stop=stop)
        return rows


class Fairness(Study):
    """Flows that join one by one."""

    def agents(self, cell: str) -> int:
        """See `Study.agents`."""
        return worlds.FLOWS if cell == worlds.OWN else worlds.FLOWS // 2

    def play(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[dict[str, Any]]:
        """See `Study.play`."""
        found, own = self.shares(controller, settings, cell, seeds, stop), self.agents(cell)
        return [measures.of_flows(*one.series(), own, one.arrivals_s, worlds.SHARED_MBPS) for one in found]

    def shares(
        self, controller: Controller, settings: Settings, cell: str, seeds: Sequence[int], stop: Any = None
    ) -> list[measures.Sharing]:
        """What each flow of each world had delivered over time."""
        agents, made = self.agents(cell), self.scenarios(settings, cell, seeds)
        found = [measures.Sharing([flow.start_s for flow in one.scenario.flows]) for one in made]
        watch = {index: one.look for index, one in enumerate(found)}
        rollout.play(controller, made, lambda view: None, task=TASK, watch=watch, stop=stop, agents=agents)
        return found


def _many(scheme: str) -> bool:
    return scheme not in EXTRA_GAINS


ALL = {
    study.name: study
    for study in (
        Study(
            MOBILE,
            80.0,
            lambda settings: worlds.MOBILE,
            lambda scheme: True,
            lambda settings, cell, seed, duration_s: worlds.path(settings, cell, seed, duration_s),
            follows=lambda settings: worlds.MOBILE,
        ),
        Study(
            FOUR,
            40.0,
            lambda settings: settings.networks,
            _many,
            lambda settings, cell, seed, duration_s: worlds.path(settings, cell, seed, duration_s),
            follows=lambda settings: settings.networks,
        ),
        Study(
            GRID,
            40.0,
            lambda settings: [f"{where}-{rate}" for where in worlds.DISTANCES_MS for rate in worlds.SERVERS_MBPS],
            _many,
            lambda settings, cell, seed, duration_s: worlds.server(settings, cell, seed, duration_s),
            follows=lambda settings: (worlds.LAST_HOP,),
        ),
        Study(
            CHANGE,
            80.0,
            lambda settings: [worlds.jumping_cell(rate, time_s) for rate in worlds.MEANS_MBPS for time_s in worlds.SPEEDS_S],
            lambda scheme: scheme in (*GAINED, LEARNED, "cubic", "bbr"),
            lambda settings, cell, seed, duration_s: worlds.jumping(cell, seed, duration_s),
        ),
        Fairness(
            FAIRNESS,
            80.0,
            lambda settings: (worlds.OWN, worlds.WITH_CUBIC),
            lambda scheme: _many(scheme) and scheme not in (RANDOM, "fixed"),
            lambda settings, cell, seed, duration_s: worlds.joining(cell, seed, duration_s),
        ),
        Study(
            VIDEO,
            120.0,
            lambda settings: [f"{link}-{abr}" for link in worlds.STREAMED for abr in worlds.BITRATES],
            lambda scheme: scheme in STREAMING,
            lambda settings, cell, seed, duration_s: worlds.streaming(settings, cell, seed, duration_s),
            measures.of_a_video,
            lambda settings: worlds.STREAMED,
        ),
    )
}
"""By name, but for learning curves, which are no runs of worlds."""
