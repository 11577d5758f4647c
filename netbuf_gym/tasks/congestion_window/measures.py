"""What contenders of the congestion-window task are judged by."""

from __future__ import annotations

from netbuf_gym.tasks.measures import Column, Margin, Measures

MEASURES = Measures(
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
    limit=lambda world: world.capacity_mbps,
)
