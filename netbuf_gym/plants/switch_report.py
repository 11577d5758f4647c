"""What a shared-buffer switch, or whatever queue discipline stands in its place, achieved in an episode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.scenarios.types import Scenario

NAN = math.nan


@dataclass(frozen=True)
class Counters:
    """The core's counters of one world.

    Attributes:
        now_s: virtual time of the counters.
        completions: float64 (flows, 6): flow id, start_s, fct_s, size_bytes, sender, priority.
        switches, links: one dict each.
        traffic: of all finite flows together.
        probe_delays: seconds, an array for each probe.
    """

    now_s: float
    completions: np.ndarray
    switches: list[dict[str, Any]]
    links: list[dict[str, Any]]
    traffic: dict[str, Any]
    probe_delays: list[np.ndarray]


def counters_of(core: Any, *world: int) -> Counters:
    """The counters of a core's world, or of world `world` of a core's batch."""
    now_ns = core.now_ns(*world) if world else core.now_ns
    return Counters(
        now_ns / 1e9,
        np.asarray(core.completions(*world)),
        core.switch_stats(*world),
        core.link_stats(*world),
        core.traffic_stats(*world),
        core.probe_delays(*world),
    )


def switch_report(scenario: Scenario, counters: Counters, queues: int | None = None) -> dict[str, Any]:
    """A world's whole life so far, start-up included.

    Percentiles are nearest rank; what has no flow, packet or probe to be measured by is NaN. Times and slowdowns are of
    the flows that have completed. pN: of priority N.

    Args:
        scenario: the world that was run.
        counters: as they are now.
        queues: for how many priorities and queues; None: as the switch has.

    Returns:
        goodput_mbps: bytes delivered in order to receivers over the time since the start.
        flows_started, flows_completed: counts.
        fct_mean_s, fct_mean_s_pN: mean flow completion time.
        slowdown_p99, slowdown_p99_pN, slowdown_mean, slowdown_mean_pN, slowdown_max: of FCT / ideal FCT; the ideal is
            propagation there and back and the flow's bytes at the rate of the slowest link.
        difference_p99_s, difference_max_s: of FCT - ideal FCT, as RLBM defines slowdown.
        drops: packets not admitted, or dropped by the queue discipline.
        occupancy_mean, occupancy_p99: of the shared buffer, as shares of it, over time.
            Where an AQM stands in the place of the switch, the mean is that of the bottleneck's queue and the
            percentile is not measured.
        queue_mean_packets, queue_mean_packets_N: mean length of all queues and of queue N, over time and summed over
            ports; an AQM has no queues by number.
        probe_delay_mean_ms: one way, of all probes' packets that arrived.
        duration_s: time since the start.
        scenario: the scenario's name.
    """
    flow = counters.completions
    fct_s, size_bytes, sender, priority = flow[:, 2], flow[:, 3], flow[:, 4].astype(int), flow[:, 5].astype(int)
    ideal_s = np.array([scenario.ideal_s(s, size) for s, size in zip(sender.tolist(), size_bytes.tolist(), strict=True)])
    ratio, difference_s = fct_s / ideal_s, fct_s - ideal_s
    switch = counters.switches[0] if counters.switches else None
    if queues is None:
        queues = max((one.queues for one in scenario.switches), default=1)
    by_priority = [priority == p for p in range(queues)]
    delays = np.concatenate([np.asarray(one) for one in counters.probe_delays] or [np.empty(0)])
    report: dict[str, Any] = {
        "goodput_mbps": counters.traffic["delivered_bytes"] * 8e-6 / max(counters.now_s, 1e-9),
        "flows_started": int(counters.traffic["flows_started"]),
        "flows_completed": len(flow),
        "fct_mean_s": _mean(fct_s),
    }
    report |= {f"fct_mean_s_p{p}": _mean(fct_s[own]) for p, own in enumerate(by_priority)}
    report |= {"slowdown_p99": percentile(ratio, 0.99), "slowdown_mean": _mean(ratio), "slowdown_max": _max(ratio)}
    report |= {f"slowdown_p99_p{p}": percentile(ratio[own], 0.99) for p, own in enumerate(by_priority)}
    report |= {f"slowdown_mean_p{p}": _mean(ratio[own]) for p, own in enumerate(by_priority)}
    report |= {
        "difference_p99_s": percentile(difference_s, 0.99),
        "difference_max_s": _max(difference_s),
        "drops": int(sum(q["drops"] for q in switch["queues"]) if switch else sum(x["queue_drops"] for x in counters.links)),
    }
    if switch:
        report |= {"occupancy_mean": switch["occupancy_mean"], "occupancy_p99": switch["occupancy_p99"]}
        report["queue_mean_packets"] = float(sum(one["packets_mean"] for one in switch["queues"]))
    else:
        mean = counters.links[scenario.bottleneck]["queue_integral_packet_s"] / max(counters.now_s, 1e-9)
        limit = scenario.buffer_packets
        report |= {"occupancy_mean": mean / limit if limit else NAN, "occupancy_p99": NAN, "queue_mean_packets": mean}
    for q in range(queues):
        lengths = [one["packets_mean"] for one in switch["queues"] if one["queue"] == q] if switch else []
        report[f"queue_mean_packets_{q}"] = float(sum(lengths)) if lengths else NAN
    report |= {
        "probe_delay_mean_ms": _mean(delays) * 1e3,
        "duration_s": counters.now_s,
        "scenario": scenario.name,
    }
    return report


def percentile(values: np.ndarray, share: float) -> float:
    """The nearest-rank percentile: the least value that at least the share of the values do not exceed; NaN of none."""
    if not len(values):
        return NAN
    return float(np.partition(values, rank := max(math.ceil(share * len(values)) - 1, 0))[rank])


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else NAN


def _max(values: np.ndarray) -> float:
    return float(values.max()) if len(values) else NAN
