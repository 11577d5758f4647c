"""Episode report of a host's connections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.host_buffers.hosts import compute_offer


def episode_reports(scenario: Scenario, hosts: Sequence[int], counters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the report of each host's whole life so far, start-up included.

    Args:
        scenario: World that was run.
        hosts: Indices of the hosts.
        counters: Counters of each host (`AgentKind.counters` of `HOST`), and under `achieved` the means over its intervals
            (`Meter.compute_results`).

    Returns:
        a dict for each host:
        utility: mean over the decision intervals, see `netbuf_gym.tasks.host_buffers.Meter`.
        throughput_mbps: payload acknowledged over all connections, over the time.
        flow_mbps: throughput of a connection: mean over the connections of an interval, then over intervals.
        share: throughput / capacity.
        latency_ms: mean round-trip time, over connections and then over intervals.
        base_rtt_ms, rtt_ratio: the least possible round-trip time, and latency over it.
        mean_rtt_ms: mean of all round-trip samples.
        loss_rate: packets sent again over packets sent (0 when none was sent).
        memory_mb: mean of TCP memory plus the ring's, 10^6 bytes; tcp_memory_mb: TCP memory alone; peak_memory_mb: the greatest
            TCP memory.
        flows_completed, interrupted_s, duration_s, scenario: finite flows completed, time for which rings were being resized,
            time since the start, the scenario's name.
        flows_failed: finite flows that could not be opened, or broke, or clients' connections through a proxy that did; of live
            worlds only.
    """
    reports = []
    for host, own in zip(hosts, counters, strict=True):
        measured = own["achieved"]
        capacity_bps, _, base_s = compute_offer(scenario, scenario.hosts[host])
        duration_s = max(own["now_s"], 1e-9)
        sent_bps = own["sent_bytes"] * 8 / duration_s
        samples, packets = own["rtt_count"], own["packets_sent"]
        reports.append(
            {
                "utility": measured["utility"],
                "throughput_mbps": sent_bps * 1e-6,
                "flow_mbps": measured["flow_bps"] * 1e-6,
                "share": sent_bps / capacity_bps,
                "latency_ms": measured["latency_s"] * 1e3,
                "base_rtt_ms": base_s * 1e3,
                "rtt_ratio": measured["latency_s"] / base_s,
                "mean_rtt_ms": own["rtt_sum_s"] / samples * 1e3 if samples else math.nan,
                "loss_rate": own["packets_retransmitted"] / packets if packets else 0.0,
                "memory_mb": measured["memory_bytes"] * 1e-6,
                "tcp_memory_mb": own["memory_mean_bytes"] * 1e-6,
                "peak_memory_mb": own["memory_max_bytes"] * 1e-6,
                "flows_completed": int(own["flows_completed"]),
                "interrupted_s": measured["interrupted_s"],
                "duration_s": duration_s,
                "scenario": scenario.name,
                **({"flows_failed": int(own["flows_failed"])} if "flows_failed" in own else {}),
            }
        )
    return reports
