"""What agents of a task are judged by: the measures of an episode, the columns of tables, and the baselines beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netbuf_gym.arguments import choice
from netbuf_gym.scenarios import AGENT, Scenario, congestion_controls
from netbuf_gym.scenarios.types import STACKS


@dataclass(frozen=True)
class Column:
    """A column of a table: a measure, what stands above it, its digits, and what it is multiplied by."""

    metric: str
    label: str
    digits: int
    factor: float = 1.0


@dataclass(frozen=True)
class Margin:
    """A column that sets the first controller beside each other one, paired by seed: the difference, or it in per cent."""

    metric: str
    label: str
    relative: bool = False


@dataclass(frozen=True)
class Group:
    """A property of worlds by which results are broken down."""

    label: str
    of: Callable[[Scenario], float | str]
    digits: int = 0


@dataclass(frozen=True)
class Measures:
    """How a task's controllers are compared.

    Attributes:
        metrics: what is kept of every episode's report.
        columns: of tables, margins among them.
        score: the metric that ranks controllers; `lower_is_better` says how.
        logged: metrics that training logs.
        series: what is kept of the first episode over time (`Task.show`), and drawn, with labels.
        scatter: metrics of the plot of trade-offs, horizontal and vertical, with labels.
        score_says: what the score is, a sentence for pages.
        baselines: set beside an agent unless others are asked for.
        benchmark: scenarios that agents are compared on.
        groups: how results under a distribution of scenarios are broken down.
        details: columns of a second table.
        shown: controllers that pictures over time have lines for where there are many.
        benchmark_columns: of the tables of all agents, for each scenario of the benchmark.
        stand_ins: names that may be asked for as baselines beside `baselines.CONTROLLERS`.
    """

    metrics: tuple[str, ...]
    columns: tuple[Column | Margin, ...]
    score: str
    lower_is_better: bool
    logged: tuple[str, ...]
    series: tuple[tuple[str, str], ...]
    scatter: tuple[tuple[str, str], tuple[str, str]]
    score_says: str
    baselines: tuple[str, ...]
    benchmark: tuple[str, ...]
    groups: tuple[Group, ...] = ()
    details: tuple[Column, ...] = ()
    shown: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    benchmark_columns: tuple[Column, ...] = ()


def _load(world: Scenario) -> float:
    """Offered load of finite flows as a share of the bottleneck; lists of flows are not counted."""
    return world.traffic.offered_mbps / world.capacity_mbps if world.traffic is not None else 0.0


def _congestion_control(world: Scenario) -> str:
    return str((world.traffic.senders if world.traffic is not None else world.flows)[0].cc)


MEASURES = {
    "congestion_window": Measures(
        metrics=("utility", "goodput_mbps", "queue_delay_mean_ms", "mean_rtt_ms", "loss_rate", "Mt"),
        columns=(
            Column("utility", "utility", 3),
            Margin("utility", "margin"),
            Column("goodput_mbps", "goodput (Mbit/s)", 2),
            Column("queue_delay_mean_ms", "queueing (ms)", 2),
            Column("mean_rtt_ms", "RTT (ms)", 1),
            Column("loss_rate", "loss (%)", 4, 100),
            Column("Mt", "Mt", 2),
        ),
        score="utility",
        lower_is_better=False,
        logged=("utility", "goodput_mbps", "mean_rtt_ms", "queue_delay_mean_ms", "loss_rate"),
        series=(("cwnd_packets", "cwnd (packets)"), ("rtt_ms", "RTT (ms)"), ("queue_packets", "queue (packets)")),
        scatter=(("queue_delay_mean_ms", "mean queueing delay (ms)"), ("goodput_mbps", "goodput (Mbit/s)")),
        score_says="Utility = 0.5 ln(goodput / capacity) - 0.5 ln(mean RTT / base RTT).",
        baselines=("newreno", "cubic", "bbr", "vegas", "westwood", "random"),
        benchmark=("ppcc/1", "ppcc/2", "ppcc/3", "ppcc/4"),
        benchmark_columns=(Column("utility", "utility", 3),),
        shown=("cubic", "bbr", "random"),
        stand_ins=tuple(sorted({name for stack in STACKS for name in congestion_controls(stack)} - {AGENT})),
    ),
    "queue_threshold": Measures(
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
    ),
}
"""By the task's name."""


def measures_of(task: str) -> Measures:
    """The measures of a task; ConfigError for one that has none."""
    return MEASURES[choice("task", task, MEASURES)]
