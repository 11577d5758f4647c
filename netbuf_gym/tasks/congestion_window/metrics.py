"""Measures by which controllers of the congestion-window task are compared."""

from __future__ import annotations

from netbuf_gym.tasks.metrics import Column, Limit, Margin, Measures, bottleneck_capacity

UTILITY = "0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT) of the whole episode; higher is better, at most about 0"

OWN_RULES = (
    "the slow start and its end, the drain that finds the least round trip, pacing, the limits of the window's growth and "
    "size, and slower growth under loss are rules that every agent of this recipe has, and so has `keep`, which decides "
    "nothing: an agent's own is what it has more than `keep`"
)
"""Rules of the recipes default and robust, a sentence for cards."""

MEASURES = Measures(
    built_in={
        **dict.fromkeys(("default", "robust"), OWN_RULES),
        "ppcc": "the window is limited to twice the path's product and buffer, which no sender knows",
    },
    metrics=("utility", "goodput_mbps", "queue_delay_mean_ms", "mean_rtt_ms", "loss_rate", "Mt"),
    columns=(
        Column("utility", "utility", 3, says=UTILITY),
        Margin("utility", "margin"),
        Column("goodput_mbps", "goodput (Mbit/s)", 2, says="bytes in order at the receiving application, over the episode"),
        Column("queue_delay_mean_ms", "queueing (ms)", 2, says="mean time of a packet in the bottleneck's queue"),
        Column("mean_rtt_ms", "RTT (ms)", 1, says="mean round-trip time of the packets acknowledged"),
        Column("loss_rate", "loss (%)", 4, 100, "packets dropped by queues or lost at random, of those sent"),
        Column(
            "Mt",
            "Mt",
            2,
            says="TCP-PPCC's measure of delay against throughput, log10 E(t_d) - log10 E(thr), of the mean RTT less the least "
            "RTT in ms and the goodput in Mbit/s; lower is better",
        ),
    ),
    score="utility",
    logged=("utility", "goodput_mbps", "mean_rtt_ms", "queue_delay_mean_ms", "loss_rate"),
    series=(
        ("throughput_mbps", "throughput,\nacknowledged (Mbit/s)"),
        ("cwnd_packets", "congestion window,\ncwnd (packets)"),
        ("rtt_ms", "round-trip time,\nRTT (ms)"),
        ("queue_packets", "bottleneck's queue\n(packets)"),
    ),
    series_limits=(Limit("throughput_mbps", "capacity", bottleneck_capacity),),
    scatter=(("queue_delay_mean_ms", "mean queueing delay (ms)"), ("goodput_mbps", "goodput (Mbit/s)")),
    score_says="Utility = 0.5 ln(goodput / capacity) - 0.5 ln(mean RTT / base RTT).",
    baselines=("newreno", "cubic", "bbr", "vegas", "westwood", "copa", "queue_target", "keep", "random"),
    benchmark=("ppcc/1", "ppcc/2", "ppcc/3", "ppcc/4"),
    shown=("cubic", "bbr", "random"),
    limit=lambda world: world.capacity_mbps,
    chosen_on="validation",
    carded_on="cards",
    carded_beside=("newreno", "cubic", "bbr", "vegas", "westwood", "copa", "vivace", "queue_target", "keep", "random"),
    ranked_beside=("bbr3", "bbrplus", "dctcp", "inigo", "ledbat", "ledbatpp", "prague", "qtcp"),
    heuristics=("queue_target", "keep"),
    constants=tuple(f"constant:{action}" for action in range(12)),
)
