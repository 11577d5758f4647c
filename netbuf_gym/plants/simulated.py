"""The simulated plant: many worlds of the native core, stepped together in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, NetbufError, PlantFault, SimulatorFault, describe_scenario
from netbuf_gym.plants.counters import read_counters, sender_counters
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.plants.plant import EVENT, INTERVAL, Advance, Plant
from netbuf_gym.plants.simulator import Simulator, World
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.scenarios.types import AGENT, Scenario


@dataclass(frozen=True)
class CoreKind:
    """The core's functions for one kind of agents.

    Attributes:
        to_event: (batch, interval in ns, time left in ns, mask) runs every world whose mask is not 0 to the kind's event.
        counters: (world, scenario) -> the report of each agent.
    """

    to_event: Callable[[_core.Batch, int, np.ndarray, np.ndarray | None], None]
    counters: Callable[[World, Scenario], list[Any]]


def _advance_to_next_event(batch: _core.Batch, interval_ns: int, left_ns: np.ndarray, mask: np.ndarray | None) -> None:
    batch.advance_to_event(interval_ns, mask=mask)


def _advance_to_change(batch: _core.Batch, interval_ns: int, left_ns: np.ndarray, mask: np.ndarray | None) -> None:
    """Advance by whole intervals, at most to the end of the scenario, but at least one."""
    intervals = np.maximum(-(-left_ns // interval_ns), 1)
    for most in np.unique(intervals).tolist():
        own = (intervals == most).astype(np.uint8)
        batch.advance_to_event(interval_ns, most, own if mask is None else own & mask)


def _report_senders(world: World, scenario: Scenario) -> list[Any]:
    return sender_counters(world, scenario, [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT])


def _report_hosts(world: World, scenario: Scenario) -> list[Any]:
    stats = world.host_stats()
    return [stats[host] for host in scenario.agent_hosts]


KINDS = {
    "sender": CoreKind(_advance_to_next_event, _report_senders),
    "receiver": CoreKind(_advance_to_next_event, lambda world, sc: sender_counters(world, sc, sc.agent_receivers)),
    "switch": CoreKind(_advance_to_change, lambda world, sc: [read_counters(world)] * len(sc.agent_switches)),
    "host": CoreKind(_advance_to_next_event, _report_hosts),
}
"""Kinds of agents by name; the core uses the same names."""


class SimPlant(Plant):
    """`worlds` simulated worlds with `agents` controlled senders, receivers, switches or hosts each.

    Worlds are reset one by one and advance together. Times are integer nanoseconds, so that a thousand intervals of
    0.1 s are exactly 100 s. No world fails by itself: an inconsistency that the simulator finds raises `SimulatorFault`.
    """

    kinds: ClassVar[tuple[str, ...]] = tuple(KINDS)
    untils: ClassVar[tuple[str, ...]] = (INTERVAL, EVENT)
    virtual_time: ClassVar[bool] = True
    in_world: ClassVar[bool] = True
    outlives_program: ClassVar[bool] = False

    def __init__(self, worlds: int, agents: int, kind: AgentKind, threads: int = 1):
        self._core_kind = KINDS[kind.name]
        self._batch: _core.Batch | None = _core.Batch(worlds, agents, threads, kind=kind.name, **kind.parameters)
        reported = tuple(self._batch.fields)
        if reported != kind.telemetry.names:
            raise ImportError(
                f"the native core reports telemetry {list(reported)}, this package expects {list(kind.telemetry.names)}: "
                "rebuild the package"
            )
        super().__init__(worlds, agents, kind, threads)
        self._elapsed_column = kind.telemetry.index("elapsed_s")
        self._elapsed_ns = np.zeros(worlds, np.int64)
        self._scenarios: list[Any] = [None] * worlds
        self._mask: np.ndarray | None = None  # of the worlds that do not rest; None: all of them
        self._prepared: tuple[Scenario, Any] | None = None

    @classmethod
    def make_lone_world(cls, scenario: Any, seed: int, **options: Any) -> Simulator:
        return Simulator(scenario, seed)

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the core's own arrays, which it writes and reads in place."""
        batch = self._require_batch()
        return batch.telemetry, batch.control.reshape(self.worlds, self.agents, -1), batch.agent_mask

    def reset(self, world: int, scenario: Scenario, seed: int) -> None:
        """Restart a world at time 0; as many senders, receivers, switches or hosts are agents' as the plant has agents.

        Raises:
            ConfigError: the core refuses the scenario.
        """
        if self._prepared is None or self._prepared[0] is not scenario:
            if not isinstance(scenario, Scenario):
                raise ConfigError(
                    f"{describe_scenario(scenario)} is no netbuf_gym.scenarios.Scenario; valid for plant 'sim': one"
                )
            self._prepared = (scenario, build_world_config(scenario))
        try:
            self._require_batch().reset(world, self._prepared[1], seed)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._scenarios[world] = scenario
        self.control[world] = np.nan
        if self._mask is not None:
            self._mask[world] = 1

    def rest(self, world: int) -> None:
        if self._mask is None:
            self._mask = np.ones(self.worlds, np.uint8)
        self._mask[world] = 0

    def apply(self, control: np.ndarray) -> None:
        if control is not self.control:
            self.control[...] = control

    def advance(self, interval_ns: int, until: str = INTERVAL, left_ns: np.ndarray | None = None) -> Advance:
        """Advance every world, see `Plant.advance`. Elapsed times are exact, and no world fails.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent; the plant is of no further use.
        """
        batch, elapsed = self._require_batch(), self._elapsed_ns
        try:
            if until == EVENT:
                left_ns = np.full(self.worlds, interval_ns) if left_ns is None else left_ns
                self._core_kind.to_event(batch, interval_ns, left_ns, self._mask)
                elapsed[:] = np.rint(self.telemetry[:, 0, self._elapsed_column] * 1e9)
            else:
                batch.advance(interval_ns, self._mask)
                elapsed.fill(interval_ns)
        except RuntimeError as error:
            if isinstance(error, NetbufError) or any(scenario.has_own_controls for scenario in self._scenarios):
                raise  # raised by the user's own code
            raise SimulatorFault(str(error)) from error
        return Advance(elapsed, {})

    def report(self, world: int) -> list[Any]:
        """Return a dict for each sender or host (`sender_counters`, `World.host_stats`), or `Counters` for each switch."""
        return self._core_kind.counters(self.world(world), self._scenarios[world])

    def world(self, world: int) -> World:
        """Return a world's counters and present state: more than agents are told.

        Raises:
            PlantFault: the world was never reset, or the plant is closed.
        """
        if self._scenarios[world] is None:
            raise PlantFault(f"world {world} was never reset")
        return World(self._require_batch(), world)

    def close(self) -> None:
        """Release the worlds."""
        self._batch = None

    def _require_batch(self) -> _core.Batch:
        if self._batch is None:
            raise PlantFault("the plant is closed")
        return self._batch
