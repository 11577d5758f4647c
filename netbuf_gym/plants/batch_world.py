"""One world of a native batch, read as `netbuf_gym.plants.simulator.Simulator` is; it runs with its batch only."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym import _core


class BatchWorld:
    """World `world` of a batch. What its methods return is described at `Simulator`."""

    def __init__(self, batch: _core.Batch, world: int):
        self._batch, self._world = batch, world

    @property
    def now_ns(self) -> int:
        """The virtual time."""
        return self._batch.now_ns(self._world)

    def flow_stats(self) -> list[dict[str, Any]]:
        """Cumulative counters, one dict a flow."""
        return self._batch.flow_stats(self._world)

    def link_stats(self) -> list[dict[str, Any]]:
        """Cumulative counters, one dict a link."""
        return self._batch.link_stats(self._world)

    def switch_stats(self) -> list[dict[str, Any]]:
        """One dict a switch."""
        return self._batch.switch_stats(self._world)

    def traffic_stats(self) -> dict[str, Any]:
        """Cumulative counters over the finite flows of the traffic."""
        return self._batch.traffic_stats(self._world)

    def completions(self) -> np.ndarray:
        """Finished flows of the traffic."""
        return self._batch.completions(self._world)

    def flows_opened(self) -> np.ndarray:
        """All flows of the traffic."""
        return self._batch.flows_opened(self._world)

    def switch_sample(self) -> np.ndarray:
        """Current values of switches' queues."""
        return self._batch.switch_sample(self._world)

    def probe_delays(self) -> list[np.ndarray]:
        """An array a probe."""
        return self._batch.probe_delays(self._world)

    def probe_sent(self) -> list[int]:
        """A number a probe."""
        return self._batch.probe_sent(self._world)
