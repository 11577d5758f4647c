"""Measures kept of a run on either plant."""

from __future__ import annotations

import math
from typing import Any

from netbuf_gym.plants.linux.readings import LiveReadings
from studies.live.live_schemes import BINS
from studies.live.live_worlds import SWITCH

UTILITY, SLOWDOWN = "utility", "slowdown_mean"
ACTIONS = tuple(f"action_{number}" for number in range(BINS))

MEASURES = {
    UTILITY: "the task's own, see its page",
    SLOWDOWN: "mean of FCT / ideal FCT over the flows that completed (queue thresholds)",
    "goodput_mbps": "bytes in order at receiving applications over the time",
    "queue_delay_mean_ms": "mean time of a packet in the bottleneck's queue",
    "mean_rtt_ms": "mean round trip of the packets acknowledged",
    "loss_rate": "packets dropped by queues or lost at random, of those sent",
    "timeouts": "retransmission time-outs",
    "drops": "packets that the switch did not admit",
    "flows_completed": "finite flows that completed",
    **{name: f"share of decisions that were action {number}" for number, name in enumerate(ACTIONS)},
    "decisions": "decisions of the controller",
    "interval_p50_s": "time from decision to decision, median",
    "late_p50_ms": "how late packets left the emulator, median",
    "late_p99_ms": "likewise, 99th percentile",
    "late_max_ms": "likewise, the most",
    "read_late_p50_ms": "how long packets had waited at most when the emulator read them, median",
    "read_late_p99_ms": "likewise, 99th percentile",
    "rate_error": "how much more (less: negative) saturated links carried than their rates allow, relative, by the wall clock",
}

COMPARED_MEASURES = {
    SWITCH: SLOWDOWN,
}
"""Measures by which plants are compared, by task; the utility for other tasks."""


def get_compared_measure(task: str) -> str:
    """Return the measure by which a task's plants are compared."""
    return COMPARED_MEASURES.get(task, UTILITY)


def average_reports(reports: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean of each measure over the reports of a world's agents."""
    names = [name for name in MEASURES if all(name in report for report in reports)]
    return {name: math.fsum(float(report[name]) for report in reports) / len(reports) for name in names}


def read_timing(world: Any) -> dict[str, float]:
    """Return the kept measures of a live world's adherence to real time; none for a simulated world."""
    if not isinstance(world, LiveReadings):
        return {}
    timing = world.emulator()
    late = ("late_p50", "late_p99", "late_max", "read_late_p50", "read_late_p99")
    return {**{f"{name}_ms": timing[f"{name}_s"] * 1e3 for name in late}, "rate_error": timing["rate_error"]}
