"""Shared-buffer switches of the emulator: an agent sets factors of queues' thresholds, and which packets are dropped."""

from __future__ import annotations

import math
from typing import Any

from netbuf_gym.plants.linux.kinds import base


class Kind(base.Kind):
    """Switches of agents. Telemetry is that of simulated switches, with flow completions as the receiving sockets see them."""

    def __init__(self, world: Any):
        super().__init__(world)
        queues = int(world.setup["parameters"]["queues"])
        for place in self.places:
            found = world.config.switches[place].queues
            if found != queues:
                raise ValueError(f"queues = {found} at switch {place}; valid: {queues}, as agents have")

    def begin(self) -> None:
        for place in self.places:
            self.world.flows.begin_switch(place)

    def apply(self, control: list[list[float]]) -> None:
        for place, row in zip(self.places, control, strict=True):
            queues, (cut_s, drop_head) = (len(row) - 3) // 2, row[-3:-1]  # no marking: the last is unused
            for queue, alpha in enumerate(row[:queues]):
                if not math.isnan(alpha):
                    self.world.emulator.set_alpha(place, queue, alpha)
            if not math.isnan(cut_s):
                self.world.emulator.set_cut(place, cut_s, row[queues : 2 * queues])
            if not math.isnan(drop_head):
                self.world.emulator.set_drop_head(place, drop_head >= 0.5)

    def observe(self) -> list[list[float]]:
        return [self.world.flows.observe_switch(place) for place in self.places]

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Any) -> None:
        """Sleep whole intervals, until the worst slowdown of the flows that complete has changed at any switch."""
        for interval in range(most):
            sleep(end_ns + interval * interval_ns)
            changed = [self.world.flows.switch_changed(place) for place in self.places]  # each must be asked
            if any(changed):
                return
