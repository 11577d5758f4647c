"""One world of the native core: the only place that makes one, and that translates what the core raises."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, SimulatorFault
from netbuf_gym.scenarios.types import Scenario

FLOW_SAMPLE: tuple[str, ...] = tuple(_core.flow_sample_fields())
"""Columns of `Simulator.flow_sample`."""

LINK_SAMPLE: tuple[str, ...] = tuple(_core.link_sample_fields())
"""Columns of `Simulator.link_sample`."""


class Simulator:
    """A simulated world from its start, in virtual time.

    Args:
        scenario: what is simulated.
        seed: 0 to 2**64 - 1; the same scenario and seed give the same numbers to the last bit.

    Raises:
        ConfigError: the core refuses the scenario.
    """

    def __init__(self, scenario: Scenario, seed: int):
        self.scenario = scenario
        try:
            self._world = _core.World(scenario.to_core(), seed)
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def run(self, until_ns: int) -> None:
        """Runs the world until this virtual time.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent; the world is of no further use.
        """
        try:
            self._world.run(until_ns)
        except RuntimeError as error:
            raise SimulatorFault(str(error)) from None

    def run_to_end(self) -> None:
        """Runs the world until its scenario's duration is over; raises as `run`."""
        self.run(round(self.scenario.duration_s * 1e9))

    @property
    def now_ns(self) -> int:
        """The virtual time."""
        return self._world.now_ns

    @property
    def memory_bytes(self) -> int:
        """What the world holds of memory."""
        return self._world.memory_bytes

    def flow_stats(self) -> list[dict[str, Any]]:
        """Cumulative counters, one dict a flow."""
        return self._world.flow_stats()

    def link_stats(self) -> list[dict[str, Any]]:
        """Cumulative counters, one dict a link."""
        return self._world.link_stats()

    def switch_stats(self) -> list[dict[str, Any]]:
        """Occupancy (shares of the capacity, over time) and counters of each queue, one dict a switch."""
        return self._world.switch_stats()

    def traffic_stats(self) -> dict[str, Any]:
        """Cumulative counters over the finite flows of the traffic."""
        return self._world.traffic_stats()

    def completions(self) -> np.ndarray:
        """Finished flows of the traffic, `(flows, 6)`: flow, start_s, fct_s, size_bytes, sender, priority."""
        return self._world.completions()

    def flows_opened(self) -> np.ndarray:
        """All flows of the traffic, `(flows, 5)`: start_s, sender, size_bytes, priority, received_bytes."""
        return self._world.flows_opened()

    def ideal_s(self, sender: int, size_bytes: int) -> float:
        """Base RTT plus size over the rate of the slowest link of a sender's path."""
        return self._world.ideal_s(sender, size_bytes)

    def flow_sample(self) -> np.ndarray:
        """Current values and counters of flows, `(flows, len(FLOW_SAMPLE))`."""
        return self._world.flow_sample()

    def link_sample(self) -> np.ndarray:
        """Current values and counters of links, `(links, len(LINK_SAMPLE))`."""
        return self._world.link_sample()

    def switch_sample(self) -> np.ndarray:
        """Current values of switches' queues, `(switches, queues, 4)`: packets, bytes, threshold, drops."""
        return self._world.switch_sample()

    def probe_delays(self) -> list[np.ndarray]:
        """Delays in seconds of the probes' packets that arrived, an array a probe."""
        return self._world.probe_delays()

    def probe_sent(self) -> list[int]:
        """Packets sent, a number a probe."""
        return self._world.probe_sent()
