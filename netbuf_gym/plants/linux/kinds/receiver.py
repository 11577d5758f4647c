"""Receivers of flows: an agent sets Nuwa's rule, which runs on every packet, and observes what a receiver can.

The rule is the simulator's own, told of packets by their headers and time stamps as they are delivered; the resulting window
is set by TCP_WINDOW_CLAMP before the packet is delivered, so that the packet's ACK advertises it.
"""

from __future__ import annotations

import math
from typing import Any

from netbuf_gym import _core
from netbuf_gym.plants.linux.kinds import base

NAN = math.nan


class Kind(base.Kind):
    """The windows of receivers."""

    def __init__(self, world: Any):
        super().__init__(world)
        self._routes = [world.setup["flows"][flow]["route"] for flow in self.places]
        self._then: list[dict[str, Any]] = [{} for _ in self.places]

    def about(self) -> dict[str, Any]:
        """Return how the window is set."""
        return {"window": "TCP_WINDOW_CLAMP"}

    def begin(self) -> None:
        for at, flow in enumerate(self.places):
            self._then[at] = self._take_snapshot(flow, self._routes[at])
            _core.begin_receiver(self.world.emulator, self._routes[at])

    def apply(self, control: list[list[float]]) -> None:
        for route, row in zip(self._routes, control, strict=True):
            _core.set_receiver(self.world.emulator, route, *row)

    def observe(self) -> list[list[float]]:
        return [self._telemetry_row(at, flow, self._routes[at]) for at, flow in enumerate(self.places)]

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Any) -> None:
        """Sleep until a data packet arrives at any of the receivers."""
        emulator = self.world.emulator

        def received() -> bool:
            counts = (_core.receiver_stat(emulator, route)["packets_received"] for route in self._routes)
            return any(count > then["packets_received"] for count, then in zip(counts, self._then, strict=True))

        self.sleep_until(received, end_ns, sleep)

    def report(self) -> list[dict[str, Any]]:
        return [self.world.steering.report(flow) for flow in self.places]

    def _take_snapshot(self, flow: int, route: int) -> dict[str, Any]:
        world = self.world
        link = world.emulator.link_stat(world.setup["bottlenecks"][flow])
        tap = world.emulator.route_stat(route)
        row = world.steering.read_row(flow)
        return {
            **_core.receiver_stat(world.emulator, route),
            "packets_sent": tap["packets_sent"],
            "packets_lost": row["packets_lost"] if row else NAN,
            "cwnd_bytes": row["cwnd"] * row["mss"] if row else NAN,
            "queue_drops": tap["queue_drops"],
            "application_bytes": world.flows.flow_stat(flow)["delivered_bytes"],
            "sojourn_sum_s": link["sojourn_sum_s"],
            "sojourn_count": link["sojourn_count"],
            "queue_packets": link["queue_packets"],
            "time_s": world.emulator.now_ns * 1e-9,
        }

    def _telemetry_row(self, at: int, flow: int, route: int) -> list[float]:
        then, now = self._then[at], self._take_snapshot(flow, route)
        read = _core.receiver_reading(self.world.emulator, route)
        elapsed_s = now["time_s"] - then["time_s"]
        grown = {key: now[key] - then[key] for key in now}
        passed = grown["sojourn_count"]
        return [
            elapsed_s,
            grown["received_bytes"],
            grown["delivered_bytes"],
            grown["packets_received"],
            grown["received_bytes"] * 8 / elapsed_s,
            read["window_bytes"],
            now["advertised_bytes"] if now["advertised_bytes"] >= 0 else NAN,
            now["held_bytes"],
            read["queue_delay_last_s"],
            read["queue_delay_s"],
            read["queue_delay_mean_s"],
            read["queue_delay_min_s"],
            read["queue_delay_max_s"],
            (read["queue_delay_s"] - read["queue_delay_before_s"]) / elapsed_s,
            read["rtt_s"],
            read["rtt_min_s"],
            grown["segments_missing"],
            grown["segments_repeated"],
            read["silence_s"],
            read["longest_gap_s"],
            read["k"],
            read["target_delay_s"],
            read["bdp_gain"],
            now["mss_bytes"],
            grown["application_bytes"] * 8 / elapsed_s,
            grown["sojourn_sum_s"] / passed if passed else NAN,
            now["queue_packets"],
            grown["queue_drops"],
            grown["packets_sent"],
            grown["packets_lost"],
            now["cwnd_bytes"],
        ]
