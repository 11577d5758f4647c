"""Measures by which controllers of the host-buffers task are compared."""

from __future__ import annotations

from netbuf_gym.tasks.host_buffers.settings import GRID_RINGS, GRID_SOCKET_BYTES, GRID_TCP_BYTES, PAIRS
from netbuf_gym.tasks.metrics import Column, Margin, Measures

UTILITY = (
    "mean over the decision intervals of ln(x) - 0.2 (y - 1) - 0.03 ln(1 + m), x = throughput of a connection / its fair "
    "share, y = latency / base RTT, m = memory of TCP and the ring / twice the path's product; higher is better"
)

_BUILT_IN = (
    "TCP's congestion control with its slow start, and the kernel's tuning of each buffer up to its maximum, are not the "
    "agent's, and `keep`, which decides nothing, has them too: an agent's own is what it has more than `keep`"
)
MEASURES = Measures(
    built_in={"default": _BUILT_IN, "auter": _BUILT_IN},
    metrics=(
        *("utility", "throughput_mbps", "flow_mbps", "share", "latency_ms", "rtt_ratio", "mean_rtt_ms", "loss_rate"),
        *("memory_mb", "tcp_memory_mb", "peak_memory_mb", "flows_completed", "interrupted_s"),
    ),
    columns=(
        Column("utility", "utility", 3, says=UTILITY),
        Margin("utility", "margin"),
        Column("throughput_mbps", "throughput (Mbit/s)", 2, says="payload acknowledged over all connections of the host"),
        Column("flow_mbps", "a connection's (Mbit/s)", 2, says="throughput of a connection with something to send, mean"),
        Column("latency_ms", "latency (ms)", 1, says="round-trip time, mean over connections, then over intervals"),
        Column("rtt_ratio", "latency / base", 2, says="latency over the round-trip time that is least possible"),
        Column("loss_rate", "loss (%)", 3, 100, says="packets sent again, of those sent"),
        Column("memory_mb", "memory (MB)", 2, says="TCP memory of the host and its ring's, mean over time"),
        Column("interrupted_s", "interrupted (s)", 1, says="time for which rings were being resized"),
    ),
    score="utility",
    logged=("utility", "share", "rtt_ratio", "loss_rate", "memory_mb"),
    series=(
        ("throughput_mbps", "throughput of the\nhost (Mbit/s)"),
        ("latency_ms", "round-trip\ntime (ms)"),
        ("tcp_max_kib", "TCP maximum\n(KiB)"),
        ("memory_mb", "memory (MB)"),
        ("ring_packets", "ring (packets)"),
    ),
    scatter=(("rtt_ratio", "latency / base RTT"), ("throughput_mbps", "throughput (Mbit/s)")),
    score_says="Utility = ln(throughput of a connection / fair share) - 0.2 (latency / base RTT - 1) - 0.03 ln(1 + memory / "
    "twice the path's product), mean over the intervals.",
    baselines=("default", "tune-1", "tune-2", "max", "autotuning", "bbr", "vegas", "bpftune", "random"),
    benchmark=("auter/local", "auter/es-ea", "auter/any"),
    shown=("default", "max", "autotuning"),
    ranked_beside=("cubic", "newreno", *PAIRS, "adaptive"),
    heuristics=("default", "tune-1", "tune-2", "max", "autotuning", "bpftune", "keep"),
    constants=tuple(f"setting:{ring}:{tcp}:{GRID_SOCKET_BYTES[0]}" for ring in GRID_RINGS[1::2] for tcp in GRID_TCP_BYTES),
)
