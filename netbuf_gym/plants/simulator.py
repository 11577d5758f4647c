"""Single worlds of the native core, made here only, and the translation of the core's exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils.thread_guard import Uncopyable

FLOW_SAMPLE: tuple[str, ...] = tuple(_core.flow_sample_fields())
"""Columns of `Simulator.flow_sample`."""

LINK_SAMPLE: tuple[str, ...] = tuple(_core.link_sample_fields())
"""Columns of `Simulator.link_sample`."""


SLICE_EVENTS = 1 << 15


class World(Uncopyable):
    """Counters and present state of a simulated world.

    Args:
        source: a world of the core, or a batch of worlds.
        at: the world's number in the batch.
    """

    def __init__(self, source: Any, *at: int):
        self._source, self._at = source, at

    @property
    def now_ns(self) -> int:
        """Virtual time in nanoseconds."""
        return self._source.now_ns(*self._at)

    def timing(self) -> dict[str, float]:
        """Return how well a world in real time has kept its times, additions to reports: nothing for a simulated world."""
        return {}

    def close(self) -> None:
        """Release what the world holds besides memory: nothing for a simulated world."""

    def flow_stats(self) -> list[dict[str, Any]]:
        """Return cumulative counters, one dict a flow."""
        return self._source.flow_stats(*self._at)

    def link_stats(self) -> list[dict[str, Any]]:
        """Return cumulative counters, one dict a link."""
        return self._source.link_stats(*self._at)

    def switch_stats(self) -> list[dict[str, Any]]:
        """Return occupancy (shares of the capacity, over time) and counters of each queue, one dict a switch."""
        return self._source.switch_stats(*self._at)

    def traffic_stats(self) -> dict[str, Any]:
        """Return cumulative counters over the finite flows of the traffic."""
        return self._source.traffic_stats(*self._at)

    def completions(self) -> np.ndarray:
        """Return finished flows of the traffic, `(flows, 7)`: flow, start_s, fct_s, size_bytes, sender, priority, ideal_s."""
        return self._source.completions(*self._at)

    def pages(self) -> np.ndarray:
        """Return pages that users of the traffic have got, `(pages, 6)`: user, sender, start_s, load_s, objects, size_bytes."""
        return self._source.pages(*self._at)

    def flows_opened(self) -> np.ndarray:
        """Return all flows of the traffic, `(flows, 5)`: start_s, sender, size_bytes, priority, received_bytes."""
        return self._source.flows_opened(*self._at)

    def ideal_s(self, sender: int, size_bytes: int, start_ns: int) -> float:
        """Return the ideal completion time of a sender's flow that starts at `start_ns` (`Scenario.ideal_s`)."""
        return self._source.ideal_s(*self._at, sender, size_bytes, start_ns)

    def flow_sample(self) -> np.ndarray:
        """Return current values and counters of flows, `(flows, len(FLOW_SAMPLE))`."""
        return self._source.flow_sample(*self._at)

    def flow_arrivals(self) -> list[int]:
        """Return the data bytes that have arrived at each flow's receiver, in any order, duplicates included."""
        return self._source.flow_arrivals(*self._at)

    def link_sample(self) -> np.ndarray:
        """Return current values and counters of links, `(links, len(LINK_SAMPLE))`."""
        return self._source.link_sample(*self._at)

    def switch_sample(self) -> np.ndarray:
        """Return current values of switches' queues, `(switches, queues, 4)`: packets, bytes, threshold, drops."""
        return self._source.switch_sample(*self._at)

    def host_stats(self) -> list[dict[str, Any]]:
        """Return cumulative counters, one dict a host."""
        return self._source.host_stats(*self._at)

    def socket_stats(self) -> list[dict[str, Any]]:
        """Return the limits and contents of each flow's sockets at hosts: a dict, empty for a flow without hosts."""
        return self._source.socket_stats(*self._at)

    def video_stats(self) -> list[dict | None]:
        """Return what each flow's video client has played so far, and its chunks; None for flows without one."""
        return self._source.video_stats(*self._at)

    def probe_delays(self) -> list[np.ndarray]:
        """Return delays in seconds of the probes' packets that arrived, an array a probe."""
        return self._source.probe_delays(*self._at)

    def probe_sent(self) -> list[int]:
        """Return the number of packets sent, one for each probe."""
        return self._source.probe_sent(*self._at)

    def udp_stats(self) -> list[dict[str, Any]]:
        """Return cumulative counters, one dict a source of datagrams."""
        return self._source.udp_stats(*self._at)


class Simulator(World):
    """A simulated world from its start, in virtual time.

    Args:
        scenario: the scenario to simulate.
        seed: 0 to 2**64 - 1; the same scenario and seed give the same numbers to the last bit.
        log_packets: whether the world keeps a log of its packets, for `packets`.

    Attributes:
        between: a function that `run` calls every few milliseconds, between two events: to look at the progress, or to raise.

    Raises:
        ConfigError: the core refuses the scenario.
    """

    def __init__(self, scenario: Scenario, seed: int, log_packets: bool = False):
        self.scenario = scenario
        self.between: Callable[[], None] | None = None
        try:
            config = build_world_config(scenario)
            config.log_packets = log_packets
            super().__init__(_core.World(config, seed))
        except ValueError as error:
            trace = error.__traceback__
            if isinstance(error, NetbufError) or (trace is not None and trace.tb_next is not None):
                raise  # raised while making a congestion control, which is the user's code
            raise ConfigError(str(error)) from None

    @property
    def now_ns(self) -> int:
        """Virtual time in nanoseconds."""
        return self._source.now_ns

    def packets(self) -> tuple[np.ndarray, int]:
        """Return the log of packets as the core's bytes, and the number of rows that it had no room for."""
        return self._source.packets()

    @property
    def memory_bytes(self) -> int:
        """Memory that the world holds."""
        return self._source.memory_bytes

    def run(self, until_ns: int) -> None:
        """Run the world until this virtual time, a few milliseconds at a time, between which Python handles signals.

        An exception raised between two slices leaves the world between two events, from where it can be run on.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent; the world is of no further use.
            BusyError: called from a congestion control of this very world.
        """
        while not self._source.run(until_ns, SLICE_EVENTS):
            if self.between is not None:
                self.between()
