"""Counters of a simulated world since its start, for the reports of each kind of agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.plants.simulator import World
from netbuf_gym.scenarios.types import Scenario


def sender_counters(world: World, scenario: Scenario, flows: Iterable[int]) -> list[dict[str, Any]]:
    """Return each flow's own counters and those of the queue of the slowest link on its path.

    Returns:
        A dict for each flow: the core's cumulative counters of the flow (`Simulator.flow_stats`), `now_s`, and of that link
        `sojourn_sum_s` and `sojourn_count`.
    """
    stats, links, now_s = world.flow_stats(), world.link_stats(), world.now_ns * 1e-9
    counters = []
    for flow in flows:
        link = links[scenario.tightest_link(flow)]
        counters.append({**stats[flow], "now_s": now_s, **{key: link[key] for key in ("sojourn_sum_s", "sojourn_count")}})
    return counters


@dataclass(frozen=True)
class Counters:
    """Counters of a world with switches, or with another queue discipline in their place.

    Attributes:
        now_s: virtual time of the counters.
        completions: float64 (flows, 7): flow id, start_s, fct_s, size_bytes, sender, priority, ideal_s.
        switches, links, flows: one dict each; flows are those that live as long as the world.
        traffic: counters of all finite flows together.
        probe_delays: delays in seconds, an array for each probe.
    """

    now_s: float
    completions: np.ndarray
    switches: list[dict[str, Any]]
    links: list[dict[str, Any]]
    flows: list[dict[str, Any]]
    traffic: dict[str, Any]
    probe_delays: list[np.ndarray]


def read_counters(world: World) -> Counters:
    """Return the present counters of a world."""
    return Counters(
        world.now_ns / 1e9,
        np.asarray(world.completions()),
        world.switch_stats(),
        world.link_stats(),
        world.flow_stats(),
        world.traffic_stats(),
        world.probe_delays(),
    )
