"""Metrics that judge controllers of the receiver-window task."""

from __future__ import annotations

from netbuf_gym.tasks.metrics import Column, Limit, Margin, Measures, bottleneck_capacity

UTILITY = (
    "Nuwa's, mean over the decision intervals: 0.4 U(x) - 0.4 U(d) - 0.2 U(l), U(z) = z^0.4 / 0.4, x = goodput / mean "
    "capacity, d = queueing delay / 500 ms, l = lost / sent, each within 0 and 1; higher is better, at most 1"
)

MEASURES = Measures(
    built_in={
        "default": "the sender's congestion control with its slow start, the window that follows rate and round trip packet by "
        "packet, and the drain that finds the least delay are rules that every agent of this recipe has, and so has `keep`, "
        "which decides nothing: an agent's own is what it has more than `keep`",
        "nuwa": "Nuwa's rule moves the window on every ACK, below the sender's congestion control; an agent sets its gain",
    },
    metrics=(
        *("utility", "goodput_mbps", "share", "data_mb", "queue_delay_mean_ms", "queue_delay_p95_ms", "loss_rate"),
        *("mean_rtt_ms", "jain", "timeouts"),
    ),
    columns=(
        Column("utility", "utility", 3, says=UTILITY),
        Margin("utility", "margin"),
        Column("goodput_mbps", "goodput (Mbit/s)", 2, says="bytes in order at the receiving application, over the episode"),
        Column("share", "share (%)", 1, 100, says="goodput / mean capacity of the bottleneck"),
        Column("queue_delay_mean_ms", "queueing (ms)", 1, says="mean time of a packet in the bottleneck's queue"),
        Column("queue_delay_p95_ms", "95 % (ms)", 1, says="95th percentile of the intervals' mean time in that queue"),
        Column("loss_rate", "loss (%)", 3, 100, says="packets dropped by queues or lost at random, of those sent"),
        Column("jain", "Jain", 3, says="Jain's index of the goodput of the agents' flows of a world"),
    ),
    score="utility",
    logged=("utility", "goodput_mbps", "share", "queue_delay_mean_ms", "loss_rate"),
    series=(
        ("throughput_mbps", "throughput,\nreceived (Mbit/s)"),
        ("window_packets", "receive window\n(packets)"),
        ("queue_delay_ms", "one-way queueing\ndelay (ms)"),
        ("queue_packets", "bottleneck's queue\n(packets)"),
    ),
    series_limits=(Limit("throughput_mbps", "capacity", bottleneck_capacity),),
    scatter=(("queue_delay_mean_ms", "mean queueing delay (ms)"), ("share", "goodput / capacity")),
    score_says="Utility = 0.4 U(goodput / capacity) - 0.4 U(queueing delay / 500 ms) - 0.2 U(loss), U(z) = z^0.4 / 0.4, "
    "mean over the intervals.",
    baselines=("nuwa", "rledbat", "autotuned", "newreno", "cubic", "bbr", "vegas", "copa", "vivace", "keep", "random"),
    benchmark=("nuwa/4g", "nuwa/5g", "nuwa/wifi", "nuwa/wired"),
    shown=("nuwa", "cubic", "bbr"),
    ranked_beside=("refill", "refill-data"),
    heuristics=("keep", "nuwa", "nuwa_k1", "nuwa_k2", "nuwa_k7", "nuwa_k9", "rledbat", "autotuned", "fixed"),
    constants=tuple(f"constant:{action}" for action in range(12)),
)
