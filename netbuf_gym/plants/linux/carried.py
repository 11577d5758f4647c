"""The kinds of agents that the live plant carries, on the owner's side: their places in a scenario, and their reports.

The other side, which measures and sets, is a module of `kinds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.plants.counters import Counters
from netbuf_gym.plants.linux.setup import Agents
from netbuf_gym.scenarios.limits import AGENT
from netbuf_gym.scenarios.types import Scenario


@dataclass(frozen=True)
class CarriedKind:
    """A kind of agent that the live plant carries.

    Attributes:
        places: (scenario) -> what each agent controls there, by number.
        counters: (scenario, places, report of the world) -> what `Plant.report` gives for each agent. The report is that of
            `world.LiveWorld.report`; empty where nothing is known of the world, because its process is gone.
        agents: the parts of a scenario that belong to agents.
    """

    places: Callable[[Scenario], list[int]]
    counters: Callable[[Scenario, list[int], Mapping[str, Any]], list[Any]]
    agents: Agents


def switch_counters(scenario: Scenario, places: list[int], report: Mapping[str, Any]) -> list[Any]:
    """Return `Counters` of the world, for each switch."""
    return [world_counters(scenario, report)] * len(places)


def flow_counters(scenario: Scenario, places: list[int], report: Mapping[str, Any]) -> list[Any]:
    """Return a dict for each flow, as `netbuf_gym.plants.counters.sender_counters`."""
    if not report:
        nothing = {"now_s": 0.0, "rtt_sum_s": 0.0, "rtt_min_s": math.nan, "sojourn_sum_s": 0.0}
        counts = ("delivered_bytes", "packets_sent", "rtt_count", "queue_drops", "random_losses", "timeouts", "sojourn_count")
        return [{"start_s": scenario.flows[i].start_s, **nothing, **dict.fromkeys(counts, 0)} for i in places]
    rows = []
    for at, flow in enumerate(places):
        link = report["links"][scenario.tightest_link(flow)]
        own = report["agents"][at] if report["agents"] else {}
        rows.append(
            {
                **report["routes"][flow],
                **report["flows"][flow],
                **{key: link[key] for key in ("sojourn_sum_s", "sojourn_count")},
                "timeouts": 0,
                **own,
                "now_s": report["now_s"],
            }
        )
    return rows


def world_counters(scenario: Scenario, report: Mapping[str, Any]) -> Counters:
    """Return a live world's counters in the form of the simulator's."""
    if not report:
        traffic: dict[str, Any] = {"flows_started": 0, "delivered_bytes": 0}
        link = {"sojourn_sum_s": 0.0, "sojourn_count": 0, "queue_drops": 0, "queue_integral_packet_s": 0.0}
        delays = [np.zeros(0)] * len(scenario.probes)
        return Counters(0.0, np.zeros((0, 7)), [], [link] * len(scenario.links), [], traffic, delays)
    flows = [{**route, **flow} for route, flow in zip(report["routes"], report["flows"], strict=False)]
    return Counters(
        report["now_s"],
        np.array(report["completions"], np.float64).reshape(-1, 7),
        report["switches"],
        report["links"],
        flows,
        report["traffic"],
        [np.array(delays, np.float64) for delays in report["probes"]],
    )


def host_counters(scenario: Scenario, places: list[int], report: Mapping[str, Any]) -> list[Any]:
    """Return a dict for each host, as the simulator's `World.host_stats`, with `flows_failed` added."""
    if not report:
        counts = ("sent_bytes", "received_bytes", "flows_completed", "packets_sent", "packets_retransmitted", "rtt_count")
        sums = ("now_s", "rtt_sum_s", "memory_mean_bytes", "memory_max_bytes", "ring_mean_packets")
        return [{**dict.fromkeys(counts, 0), **dict.fromkeys(sums, 0.0), "rtt_min_s": math.nan} for _ in places]
    shared = {"now_s": report["now_s"], "flows_failed": report["traffic"]["flows_failed"]}
    return [{**shared, **own} for own in report["agents"]]


def _agent_flows(scenario: Scenario) -> list[int]:
    return [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]


KINDS: dict[str, CarriedKind] = {
    "sender": CarriedKind(_agent_flows, flow_counters, Agents("sender", senders=True)),
    "receiver": CarriedKind(lambda scenario: list(scenario.agent_receivers), flow_counters, Agents("receiver", receivers=True)),
    "host": CarriedKind(lambda scenario: list(scenario.agent_hosts), host_counters, Agents("host")),
    "switch": CarriedKind(lambda scenario: list(scenario.agent_switches), switch_counters, Agents("switch")),
}
"""Carried kinds of agents by name."""
