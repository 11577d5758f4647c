"""What contenders of the queue-threshold task are judged by."""

from __future__ import annotations

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.measures import Column, Group, Margin, Measures


def _load(world: Scenario) -> float:
    """Offered load of finite flows as a share of the bottleneck; lists of flows are not counted."""
    return world.traffic.offered_mbps / world.capacity_mbps if world.traffic is not None else 0.0


def _congestion_control(world: Scenario) -> str:
    return str((world.traffic.senders if world.traffic is not None else world.flows)[0].cc)


MEASURES = Measures(
    metrics=(
        *("slowdown_p99_p0", "slowdown_p99_p1", "slowdown_p99", "slowdown_mean_p0", "slowdown_mean_p1", "slowdown_mean"),
        *("slowdown_max", "difference_p99_s", "difference_max_s", "fct_mean_s", "fct_mean_s_p0", "fct_mean_s_p1"),
        *("goodput_mbps", "flows_started", "flows_completed", "drops", "occupancy_mean", "occupancy_p99"),
        *("queue_mean_packets", "probe_delay_mean_ms"),
    ),
    columns=(
        Column("slowdown_p99_p0", "p99 slowdown, priority 0", 2),
        Margin("slowdown_p99_p0", "margin"),
        Column("slowdown_p99_p1", "p99 slowdown, priority 1", 2),
        Column("slowdown_mean_p0", "mean slowdown, priority 0", 2),
        Column("difference_p99_s", "p99 FCT - ideal (s)", 2),
        Column("fct_mean_s", "mean FCT (s)", 2),
        Column("goodput_mbps", "goodput (Mbit/s)", 3),
        Margin("goodput_mbps", "margin in goodput (%)", relative=True),
        Column("occupancy_p99", "p99 occupancy (%)", 1, 100),
        Column("probe_delay_mean_ms", "ping, one way (ms)", 1),
        Column("drops", "drops", 0),
    ),
    score="slowdown_p99_p0",
    lower_is_better=True,
    logged=("slowdown_p99_p0", "slowdown_p99_p1", "slowdown_mean_p0", "goodput_mbps", "occupancy_mean", "drops"),
    series=(
        ("queue_packets_0", "queue 0 (packets)"),
        ("queue_packets", "buffer (packets)"),
        ("drops", "drops in an interval"),
    ),
    scatter=(("slowdown_p99_p0", "99th percentile slowdown, priority 0"), ("goodput_mbps", "goodput (Mbit/s)")),
    score_says="The 99th percentile (nearest rank) of FCT / ideal FCT over the flows of priority 0; lower is better.",
    baselines=(
        *("naive", "sophisticated", "dt", "abm", "static_bdp", "static_bdp_sqrt_n"),
        *("red", "codel", "fq_codel", "pie", "random"),
    ),
    shown=("naive", "abm", "random"),
    benchmark=("rlbm/random",),
    limit=lambda world: world.capacity_mbps,
    benchmark_columns=(
        Column("slowdown_p99_p0", "p99 slowdown, priority 0 (lower is better)", 2),
        Column("goodput_mbps", "goodput (Mbit/s)", 3),
    ),
    groups=(
        Group("buffer (packets)", lambda world: float(world.buffer_packets)),
        Group("load", _load, 2),
        Group("congestion control", _congestion_control),
    ),
    details=(
        Column("flows_started", "flows started", 1),
        Column("flows_completed", "flows completed", 1),
        Column("fct_mean_s_p0", "mean FCT, priority 0 (s)", 3),
        Column("fct_mean_s_p1", "mean FCT, priority 1 (s)", 2),
        Column("slowdown_mean_p1", "mean slowdown, priority 1", 2),
        Column("slowdown_max", "worst slowdown", 1),
        Column("difference_max_s", "worst FCT - ideal (s)", 2),
        Column("queue_mean_packets", "mean queue (packets)", 1),
        Column("occupancy_mean", "mean occupancy (%)", 1, 100),
    ),
)
