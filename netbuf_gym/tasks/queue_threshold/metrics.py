"""Metrics that judge controllers of the queue-threshold task."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.flows import links_at
from netbuf_gym.tasks.metrics import Column, FlowPercentile, Group, Limit, Margin, Measures, Price, Score
from netbuf_gym.tasks.queue_threshold.actions import LEVERS
from netbuf_gym.utils.sums import sequential_sum


def _offered_load(world: Scenario) -> float:
    """Return the offered load of finite flows as a share of the bottleneck; lists of flows are not counted."""
    if world.traffic is None:
        return 0.0
    capacity_mbps = world.capacity_mbps
    return world.traffic.offered_mbps / capacity_mbps if capacity_mbps > 0 else math.inf


def _congestion_control(world: Scenario) -> str:
    return str((world.traffic.senders if world.traffic is not None else world.flows)[0].cc)


def _port_capacity(world: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Return the capacity of the switch's port over time; with several ports their constant sum, infinite if any varies."""
    ports = links_at(world, world.switches[0].ports if world.switches else (world.bottleneck,))
    if len(ports) == 1:
        return ports[0].capacity_steps(world.duration_s)
    constant = all(port.trace is None for port in ports)
    together = sequential_sum(port.mean_mbps() for port in ports) if constant else float("inf")
    return np.array([0.0, world.duration_s]), np.array([together])


P99_OF = "99th percentile (nearest rank) of FCT / ideal FCT over {}; FCT: flow completion time; lower is better"

_LIMITS_MS = (5, 10, 20, 50, 100, 200, 1000)
"""Constant limits of queues in ms, tried in all combinations for two queues."""

_ADMITS = (
    "the switch admits each packet by the threshold or limit that was decided last, limits follow the rate of the port, and a "
    "pulse ends by itself"
)

MEASURES = Measures(
    built_in={
        "default": f"{_ADMITS}; senders' congestion control does the rest",
        LEVERS: f"{_ADMITS}; scheduler and victims stand as they were decided last, and slots of a flow table take turns; "
        "senders' congestion control does the rest",
    },
    metrics=(
        *("slowdown_p99_p0", "slowdown_p99_p1", "slowdown_p99", "slowdown_mean_p0", "slowdown_mean_p1", "slowdown_mean"),
        *("slowdown_max", "difference_p99_s", "difference_max_s", "fct_mean_s", "fct_mean_s_p0", "fct_mean_s_p1"),
        *("fct_utility", "slowdown_log_mean_p0", "slowdown_log_mean_p1", "slowdown_log_mean"),
        *("goodput_mbps", "flows_started", "flows_completed", "flows_completed_p0", "flows_completed_p1", "drops"),
        *("occupancy_mean", "occupancy_p99", "queue_mean_packets", "probe_delay_mean_ms"),
    ),
    columns=(
        Column(
            *("slowdown_p99_p0", "p99 slowdown, priority 0", 2),
            says=P99_OF.format("the small flows (priority 0)"),
        ),
        Margin("slowdown_p99_p0", "margin"),
        Column(
            *("slowdown_p99_p1", "p99 slowdown, priority 1", 2),
            says=P99_OF.format("the large flows (priority 1)"),
        ),
        Column("slowdown_mean_p0", "mean slowdown, priority 0", 2, says="mean of FCT / ideal FCT"),
        Column(
            *("difference_p99_s", "p99 FCT - ideal (s)", 2),
            says="99th percentile of what flows took longer than ideal",
        ),
        Column("fct_mean_s", "mean FCT (s)", 2, says="flow completion time, from the SYN to the last byte in order"),
        Column("goodput_mbps", "goodput (Mbit/s)", 3, says="bytes in order at the receiving applications, over the episode"),
        Margin("goodput_mbps", "margin in goodput (%)", relative=True),
        Column("occupancy_p99", "p99 occupancy (%)", 1, 100, "99th percentile over time of the share of the buffer in use"),
        Column("probe_delay_mean_ms", "ping, one way (ms)", 1, says="mean delay of the packets of a probe, one a second"),
        Column("drops", "drops", 0, says="packets that the buffer did not admit"),
    ),
    score="slowdown_p99_p0",
    counts={
        "slowdown_p99_p0": "flows_completed_p0",
        "slowdown_p99_p1": "flows_completed_p1",
        "slowdown_p99": "flows_completed",
        "difference_p99_s": "flows_completed",
    },
    percentiles={
        "slowdown_p99_p0": FlowPercentile("slowdown", 0.99, 0),
        "slowdown_p99_p1": FlowPercentile("slowdown", 0.99, 1),
        "slowdown_p99": FlowPercentile("slowdown", 0.99),
        "difference_p99_s": FlowPercentile("difference_s", 0.99),
    },
    lower_is_better=True,
    geometric=True,
    logged=(
        "slowdown_p99_p0",
        "flows_completed_p0",
        "slowdown_p99_p1",
        "flows_completed_p1",
        "slowdown_mean_p0",
        "fct_utility",
        "goodput_mbps",
        "occupancy_mean",
        "drops",
    ),
    series=(
        ("throughput_mbps", "leaving the switch\n(Mbit/s)"),
        ("queue_packets_0", "queue 0\n(packets)"),
        ("queue_packets", "buffer\n(packets)"),
        ("drops", "drops in\nan interval"),
    ),
    series_limits=(Limit("throughput_mbps", "capacity", _port_capacity),),
    scatter=(("slowdown_p99_p0", "p99 slowdown (FCT / ideal FCT), priority 0"), ("goodput_mbps", "goodput (Mbit/s)")),
    further_scores=(Score("fct_utility"), Score("slowdown_log_mean_p0", lower_is_better=True)),
    score_says="The 99th percentile (nearest rank) of FCT / ideal FCT over the flows of priority 0; lower is better.",
    baselines=(
        *("naive", "sophisticated", "dt", "abm", "static_bdp", "static_bdp_sqrt_n"),
        *("red", "codel", "fq_codel", "pie", "limits", "pulse", "pulse_burst", "brief_pulse", "random"),
    ),
    shown=("naive", "abm", "random"),
    benchmark=("rlbm/random",),
    limit=lambda world: world.capacity_mbps,
    groups=(
        Group("buffer (packets)", lambda world: float(world.buffer_packets or math.inf)),
        Group("load", _offered_load, 2),
        Group("congestion control", _congestion_control),
    ),
    details=(
        Column("flows_started", "flows started", 1),
        Column("flows_completed", "flows completed", 1),
        Column("fct_mean_s_p0", "mean FCT, priority 0 (s)", 3),
        Column("fct_mean_s_p1", "mean FCT, priority 1 (s)", 2),
        Column("slowdown_mean_p1", "mean slowdown, priority 1", 2),
        Column("slowdown_log_mean_p0", "mean ln(slowdown), priority 0", 3),
        Column(
            *("fct_utility", "fct_utility", 3),
            says="ln(goodput / rate of the bottleneck) - mean ln(slowdown) of priority 0; higher is better",
        ),
        Column("slowdown_max", "worst slowdown", 1),
        Column("difference_max_s", "worst FCT - ideal (s)", 2),
        Column("queue_mean_packets", "mean queue (packets)", 1),
        Column("occupancy_mean", "mean occupancy (%)", 1, 100),
        Column("flows_completed_p0", "flows completed, priority 0", 1),
        Column("flows_completed_p1", "flows completed, priority 1", 1),
    ),
    ranked_beside=("droptail", "dualpi2", "brief_pulse-strict", "brief_pulse-sparing", "brief_pulse-flows"),
    price=Price("goodput_mbps", "goodput (% of naive's)", "naive"),
    heuristics=("limits", "pulse", "pulse_burst", "brief_pulse", "brief_pulse-10ms"),
    constants=tuple(f"limits:{one}:{other}" for one in _LIMITS_MS for other in _LIMITS_MS),
)
