"""Episode report of a sender."""

from __future__ import annotations

import math
from typing import Any

from netbuf_gym.scenarios.types import Scenario


def episode_report(scenario: Scenario, flow: int, counters: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a flow's whole life so far, start-up included.

    Args:
        scenario: World that was run.
        flow: Index of the flow.
        counters: Cumulative counters of the flow and of the slowest link on its path
            (`netbuf_gym.plants.counters.sender_counters`).

    Returns:
        goodput_mbps: bytes delivered in order to the application over the time since the flow's start.
        mean_rtt_ms, base_rtt_ms: mean of all round-trip samples (NaN without one), and the least possible RTT.
        queue_delay_mean_ms: mean sojourn at the slowest link of its path over all packets that passed it (NaN without one).
        loss_rate: packets dropped by queues or lost at random over packets sent (0 when none was sent).
        utility: 0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT); the fair share is
            `Scenario.fair_share_mbps`. A flow that delivered nothing counts as having delivered one segment; NaN where the
            share or the base RTT is 0 or infinite, as in a world that is an outage or has no slowest link.
        Mt: log10(mean RTT - least RTT, in ms) - log10(goodput in Mbit/s); the difference counts as at least 1 us.
        timeouts: retransmission time-outs.
        duration_s: time since the flow's start.
        scenario: the scenario's name.
    """
    duration_s = max(counters["now_s"] - scenario.flows[flow].start_s, 1e-9)
    goodput_mbps = counters["delivered_bytes"] * 8e-6 / duration_s
    samples = counters["rtt_count"]
    mean_rtt_ms = counters["rtt_sum_s"] / samples * 1e3 if samples else math.nan
    base_rtt_ms = scenario.base_rtt_ms(flow)
    lost = counters["queue_drops"] + counters["random_losses"]
    share_mbps = scenario.fair_share_mbps(flow)
    counted_mbps = max(goodput_mbps, scenario.mss_of(flow) * 8e-6 / duration_s)
    delay_ms = max(mean_rtt_ms - counters["rtt_min_s"] * 1e3, 1e-3) if samples else math.nan
    passed = counters["sojourn_count"]
    return {
        "goodput_mbps": goodput_mbps,
        "mean_rtt_ms": mean_rtt_ms,
        "base_rtt_ms": base_rtt_ms,
        "queue_delay_mean_ms": counters["sojourn_sum_s"] / passed * 1e3 if passed else math.nan,
        "loss_rate": lost / counters["packets_sent"] if counters["packets_sent"] else 0.0,
        "utility": 0.5 * _log_ratio(counted_mbps, share_mbps) - 0.5 * _log_ratio(mean_rtt_ms, base_rtt_ms),
        "Mt": math.log10(delay_ms) - math.log10(counted_mbps),
        "timeouts": int(counters["timeouts"]),
        "duration_s": duration_s,
        "scenario": scenario.name,
    }


def _log_ratio(value: float, reference: float) -> float:
    """Return ln(value / reference), NaN unless the reference is positive and finite."""
    return math.log(value / reference) if 0 < reference < math.inf else math.nan
