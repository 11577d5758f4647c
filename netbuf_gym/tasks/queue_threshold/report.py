"""Episode report of a shared-buffer switch, or of the queue discipline that replaces it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbuf_gym.plants.counters import Counters
from netbuf_gym.scenarios.switches import Switch
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.simulation.results.traffic import COMPLETED, build_completions, mean, percentile
from netbuf_gym.utils.sums import sequential_sum


def switch_report(
    scenario: Scenario, counters: Counters, queues: int | None = None, own: Switch | None = None
) -> dict[str, Any]:
    """Return the report on a world's whole life so far, start-up included.

    Percentiles are nearest rank; values with no flow, packet or probe to measure are NaN. Times and slowdowns are of
    the flows that have completed. pN: of priority N.

    Args:
        scenario: The world that was run.
        counters: The world's counters at this moment.
        queues: Number of priorities and queues to report; None: as many as the switch has.
        own: The scenario's own switch, where a scheme has changed the buffer or replaced the switch by an AQM.

    Returns:
        goodput_mbps: bytes delivered in order to receivers over the time since the start.
        flows_started, flows_completed, flows_completed_pN: counts. A 99th percentile of fewer than 100 flows is their maximum.
        fct_mean_s, fct_mean_s_pN: mean flow completion time.
        slowdown_p99, slowdown_p99_pN, slowdown_mean, slowdown_mean_pN, slowdown_max: of FCT / ideal FCT; the ideal is
            propagation there and back and the flow's bytes at the slowest link (`Scenario.ideal_s`).
        slowdown_log_mean, slowdown_log_mean_pN: mean natural logarithm of FCT / ideal FCT.
        fct_utility: ln(goodput / mean rate of the bottleneck) - slowdown_log_mean_p0: a per cent of goodput weighs as much as
            a per cent of the short flows' slowdown. Far less noisy than a 99th percentile, so that settings are chosen by it.
        difference_p99_s, difference_max_s: of FCT - ideal FCT, as RLBM defines slowdown.
        drops: packets not admitted by the switch, or dropped by the disciplines of the ports it had.
        occupancy_mean, occupancy_p99: buffer in use over time as a share of the scenario's own buffer, even where the scheme
            changes it. Where an AQM replaces the switch, packets count as full ones in a buffer of bytes, and the
            percentile is not measured.
        queue_mean_packets, queue_mean_packets_N: mean length of all queues and of queue N, over time and summed over
            ports; an AQM has no numbered queues.
        probe_delay_mean_ms: one-way delay, over all packets of probes that arrived.
        duration_s: time since the start.
        scenario: the scenario's name.
    """
    flows = build_completions(scenario, counters.completions) if scenario.traffic is not None else np.zeros(0, COMPLETED)
    fct_s, ratio, difference_s = flows["fct_s"], flows["slowdown"], flows["difference_s"]
    switch = counters.switches[0] if counters.switches else None
    if queues is None:
        queues = max((one.queues for one in scenario.switches), default=1)
    by_priority = [flows["priority"] == p for p in range(queues)]
    delays = np.concatenate([np.asarray(one) for one in counters.probe_delays] or [np.empty(0)])
    delivered_bytes = counters.traffic["delivered_bytes"] + sum(flow["delivered_bytes"] for flow in counters.flows)
    report: dict[str, Any] = {
        "goodput_mbps": delivered_bytes * 8e-6 / max(counters.now_s, 1e-9),
        "flows_started": int(counters.traffic["flows_started"]),
        "flows_completed": len(flows),
        "fct_mean_s": mean(fct_s),
    }
    report |= {f"flows_completed_p{p}": int(own.sum()) for p, own in enumerate(by_priority)}
    report |= {f"fct_mean_s_p{p}": mean(fct_s[own]) for p, own in enumerate(by_priority)}
    report |= {"slowdown_p99": percentile(ratio, 99), "slowdown_mean": mean(ratio), "slowdown_max": percentile(ratio, 100)}
    report |= {f"slowdown_p99_p{p}": percentile(ratio[own], 99) for p, own in enumerate(by_priority)}
    report |= {f"slowdown_mean_p{p}": mean(ratio[own]) for p, own in enumerate(by_priority)}
    report["slowdown_log_mean"] = mean(np.log(ratio))
    report |= {f"slowdown_log_mean_p{p}": mean(np.log(ratio[own])) for p, own in enumerate(by_priority)}
    capacity_mbps = scenario.capacity_mbps  # 0 where the bottleneck's trace rests
    share = report["goodput_mbps"] / capacity_mbps if capacity_mbps > 0 else 0.0
    report["fct_utility"] = (math.log(share) if share > 0 else math.nan) - report["slowdown_log_mean_p0"]
    report |= {
        "difference_p99_s": percentile(difference_s, 99),
        "difference_max_s": percentile(difference_s, 100),
    }
    if switch:
        share = switch["capacity"] / own.capacity if own is not None else 1.0
        report["drops"] = int(sum(one["drops"] for one in switch["queues"]))
        report |= {"occupancy_mean": switch["occupancy_mean"] * share, "occupancy_p99": switch["occupancy_p99"] * share}
        report["queue_mean_packets"] = sequential_sum(one["packets_mean"] for one in switch["queues"])
    else:
        ports = [counters.links[int(port)] for port in (own.ports if own is not None else (scenario.bottleneck,))]
        length = sequential_sum(port["queue_integral_packet_s"] for port in ports) / max(counters.now_s, 1e-9)
        limit: float | None = scenario.buffer_packets
        if own is not None:
            limit = own.capacity / (scenario.data_bytes if own.in_bytes else 1)
        report["drops"] = int(sum(port["queue_drops"] for port in ports))
        report |= {
            "occupancy_mean": length / limit if limit else math.nan,
            "occupancy_p99": math.nan,
            "queue_mean_packets": length,
        }
    for q in range(queues):
        lengths = [one["packets_mean"] for one in switch["queues"] if one["queue"] == q] if switch else []
        report[f"queue_mean_packets_{q}"] = sequential_sum(lengths) if lengths else math.nan
    report |= {
        "probe_delay_mean_ms": mean(delays) * 1e3,
        "duration_s": counters.now_s,
        "scenario": scenario.name,
    }
    return report
