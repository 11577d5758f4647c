"""Measures kept of a run of the campaign."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.simulation.results.traffic import build_completions
from netbuf_gym.utils.statistics import compute_percentiles

NAN = math.nan
PRIORITIES = (0, 1)

MEASURES = {
    "throughput_mbps": "bytes delivered in order to the receivers, over the whole run",
    "flows_started": "flows",
    "flows_completed": "flows",
    "flows_started_p0": "flows",
    "flows_started_p1": "flows",
    "flows_completed_p0": "flows",
    "flows_completed_p1": "flows",
    "fct_mean_s": "mean flow completion time",
    "fct_mean_s_p0": "the same of priority 0",
    "fct_mean_s_p1": "the same of priority 1",
    "slowdown_mean_p0": "mean slowdown, completion time / ideal",
    "slowdown_mean_p1": "the same of priority 1",
    "slowdown_p99": "99th percentile of the slowdown",
    "slowdown_p99_p0": "the same of priority 0",
    "slowdown_p99_p1": "the same of priority 1",
    "slowdown_max": "the worst slowdown",
    "slowdown_max_p0": "the same of priority 0",
    "slowdown_max_p1": "the same of priority 1",
    "difference_p99_s": "99th percentile of completion time - ideal, the thesis' slowdown",
    "difference_p99_s_p0": "the same of priority 0",
    "difference_p99_s_p1": "the same of priority 1",
    "difference_max_s": "the worst difference",
    "difference_max_s_p0": "the same of priority 0",
    "difference_max_s_p1": "the same of priority 1",
    "drops": "packets that were not admitted, or dropped by the queue discipline",
    "drops_0": "the same of queue 0",
    "drops_1": "the same of queue 1",
    "retransmitted": "packets sent again",
    "timeouts": "retransmission time-outs",
    "occupancy_mean": "of the shared buffer over time, as a share of it",
    "occupancy_p99": "99th percentile of the same",
    "queue_mean_packets": "mean length of both queues together",
    "queue_mean_packets_0": "the same of queue 0",
    "queue_mean_packets_1": "the same of queue 1",
    "ping_mean_ms": "mean one-way delay of the pings that arrived",
    "ping_p99_ms": "99th percentile of the same",
    "ping_lost": "pings that did not arrive",
}
"""Measured columns of the results. NaN (an empty field) where nothing was measured: no flow, no such queue."""


def get_completed_flows(view: View) -> np.ndarray:
    """Return the completed flows of a world, as `Result.completions` has them."""
    return build_completions(view.scenario, np.asarray(view.simulated.completions()))


def measure_run(view: View, occupancy: np.ndarray | None = None) -> dict[str, float]:
    """Return the measures `MEASURES` of a world that has run to its end.

    Args:
        view: View of the world.
        occupancy: Samples of the occupancy in packets, where an AQM replaces the switch.
    """
    core, scenario, flows = view.simulated, view.scenario, get_completed_flows(view)
    span_s = core.now_ns * 1e-9
    traffic, opened = core.traffic_stats(), np.asarray(core.flows_opened())
    row = dict.fromkeys(MEASURES, NAN)
    row["throughput_mbps"] = traffic["delivered_bytes"] * 8e-6 / span_s
    row["flows_started"], row["flows_completed"] = len(opened), len(flows)
    row["fct_mean_s"] = _mean(flows["fct_s"])
    row["slowdown_p99"], row["slowdown_max"] = compute_percentiles(flows["slowdown"], (0.99, 1))
    row["difference_p99_s"], row["difference_max_s"] = compute_percentiles(flows["difference_s"], (0.99, 1))
    for p in PRIORITIES:
        own = flows[flows["priority"] == p]
        row[f"flows_started_p{p}"], row[f"flows_completed_p{p}"] = int((opened[:, 3] == p).sum()), len(own)
        row[f"fct_mean_s_p{p}"], row[f"slowdown_mean_p{p}"] = _mean(own["fct_s"]), _mean(own["slowdown"])
        row[f"slowdown_p99_p{p}"], row[f"slowdown_max_p{p}"] = compute_percentiles(own["slowdown"], (0.99, 1))
        row[f"difference_p99_s_p{p}"], row[f"difference_max_s_p{p}"] = compute_percentiles(own["difference_s"], (0.99, 1))
    row["retransmitted"], row["timeouts"] = traffic["packets_retransmitted"], traffic["timeouts"]
    row["drops"] = traffic["queue_drops"]
    switches = core.switch_stats()
    if switches:
        row["occupancy_mean"], row["occupancy_p99"] = switches[0]["occupancy_mean"], switches[0]["occupancy_p99"]
        queues = switches[0]["queues"]
        row["queue_mean_packets"] = sum(queue["packets_mean"] for queue in queues)
        row["drops"] = sum(queue["drops"] for queue in queues)
        for queue in queues:
            row[f"queue_mean_packets_{queue['queue']}"] = queue["packets_mean"]
            row[f"drops_{queue['queue']}"] = queue["drops"]
    elif occupancy is not None:
        link = core.link_stats()[scenario.bottleneck]
        limit = scenario.links[scenario.bottleneck].queue_packets  # None for a limit in bytes: bytes were not sampled
        row["queue_mean_packets"] = link["queue_integral_packet_s"] / span_s
        row["drops"] = link["queue_drops"]
        if limit:
            row["occupancy_mean"] = row["queue_mean_packets"] / limit
            row["occupancy_p99"] = compute_percentiles(occupancy, (0.99,))[0] / limit
    delays, sent = core.probe_delays(), core.probe_sent()
    if sent:
        row["ping_mean_ms"] = _mean(np.asarray(delays[0])) * 1e3
        row["ping_p99_ms"] = compute_percentiles(np.asarray(delays[0]), (0.99,))[0] * 1e3
        row["ping_lost"] = sent[0] - len(delays[0])
    return row


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else NAN
