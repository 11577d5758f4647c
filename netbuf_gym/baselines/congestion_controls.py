"""The congestion controls of the simulator as controllers: they take the agent's place in its own world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netbuf_gym import _core
from netbuf_gym.arguments import choice
from netbuf_gym.baselines.controller import checked_seeds
from netbuf_gym.engine import draw_episode, generator_of
from netbuf_gym.errors import SimulatorFault
from netbuf_gym.plants.sim import episode_report
from netbuf_gym.scenarios.catalogue import WITHOUT_AGENT
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.worlds import WorldSource, resolve


class CongestionControl:
    """NewReno, CUBIC, BBR, Vegas or Westwood+ instead of an agent.

    There are no decisions to predict: the sender's own congestion control acts on every ACK. Worlds are the ones that
    an environment draws under the same seeds.

    Args:
        name: `"newreno"`, `"cubic"`, `"bbr"`, `"vegas"`, `"westwood"` (`"linuxreno"` in the ns3 stack).
    """

    def __init__(self, name: str):
        self.name = choice("congestion control", name, WITHOUT_AGENT)

    def evaluate(
        self, scenario: str | dict[str, Any], seeds: Sequence[int], threads: int = 1, *, senders: int = 1
    ) -> list[dict[str, Any]]:
        """One episode for each seed, run one after the other (`threads` is accepted for likeness' sake).

        Args:
            scenario: as for the environments.
            seeds: of the episodes.
            threads: not used.
            senders: how many senders of each world run this congestion control.

        Returns:
            the report of each of these senders, seed by seed (`netbuf_gym.plants.sim.episode_report`).
        """
        task = CongestionWindow(agents=senders)
        source = WorldSource(resolve(scenario, task.agents), task.control)
        return [report for seed in checked_seeds(seeds) for report in self._episode(source, seed)]

    def _episode(self, source: WorldSource, seed: int) -> list[dict[str, Any]]:
        drawn, world_seed = draw_episode(source, generator_of(seed))
        ours = [i for i, flow in enumerate(drawn.flows) if flow.cc == AGENT]
        scenario = drawn.with_senders([self.name if flow.cc == AGENT else flow.cc for flow in drawn.flows])
        world = _core.World(scenario.to_core(), world_seed)
        end_ns = round(scenario.duration_s * 1e9)
        try:
            world.run(end_ns)
        except RuntimeError as error:
            raise SimulatorFault(str(error)) from error
        flows, links = world.flow_stats(), world.link_stats()
        return [episode_report(scenario, flow, flows, links, end_ns * 1e-9) for flow in ours]
