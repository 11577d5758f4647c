"""Episode reports of receivers' flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils.statistics import jain_index


def episode_reports(scenario: Scenario, flows: Sequence[int], counters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a report on each flow's whole life so far, start-up included.

    Args:
        scenario: The world that was run.
        flows: Indices of the flows.
        counters: Cumulative counters of each flow and of the slowest link on its path
            (`netbuf_gym.plants.counters.sender_counters`), and under `achieved` the results of its intervals
            (`UtilityMeter.summarize`).

    Returns:
        a dict for each flow:
        utility: Nuwa's, mean over the decision intervals.
        goodput_mbps: bytes delivered in order to the application over the time since the flow's start.
        data_mb: bytes delivered in order, in units of 10^6.
        share: goodput / mean capacity of the slowest link of its path.
        queue_delay_mean_ms: mean sojourn at that link over all packets that passed it (NaN without one).
        queue_delay_p95_ms: 95th percentile of the intervals' mean sojourn there.
        loss_rate: packets dropped by queues or lost at random over packets sent (0 when none was sent).
        mean_rtt_ms, base_rtt_ms: mean of the sender's round-trip samples (NaN without one), and the least possible one.
        jain: Jain's index of the goodput of `flows`; 1 for a single one.
        timeouts: the sender's retransmission time-outs.
        duration_s: time since the flow's start.
        scenario: the scenario's name.
    """
    reports = []
    for flow, own in zip(flows, counters, strict=True):
        measured = own["achieved"]
        duration_s = max(own["now_s"] - scenario.flows[flow].start_s, 1e-9)
        goodput_mbps = own["delivered_bytes"] * 8e-6 / duration_s
        capacity_mbps = scenario.links[scenario.tightest_link(flow)].mean_mbps(scenario.duration_s)
        passed, samples = own["sojourn_count"], own["rtt_count"]
        lost = own["queue_drops"] + own["random_losses"]
        reports.append(
            {
                "utility": measured["utility"],
                "goodput_mbps": goodput_mbps,
                "data_mb": own["delivered_bytes"] * 1e-6,
                "share": goodput_mbps / capacity_mbps if capacity_mbps > 0 else math.nan,
                "queue_delay_mean_ms": own["sojourn_sum_s"] / passed * 1e3 if passed else math.nan,
                "queue_delay_p95_ms": measured["queue_delay_p95_s"] * 1e3,
                "loss_rate": lost / own["packets_sent"] if own["packets_sent"] else 0.0,
                "mean_rtt_ms": own["rtt_sum_s"] / samples * 1e3 if samples else math.nan,
                "base_rtt_ms": scenario.base_rtt_ms(flow),
                "timeouts": int(own["timeouts"]),
                "duration_s": duration_s,
                "scenario": scenario.name,
            }
        )
    fairness = jain_index([report["goodput_mbps"] for report in reports]) if reports else math.nan
    return [{**report, "jain": fairness} for report in reports]
