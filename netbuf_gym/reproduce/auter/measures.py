"""What is kept of a run: what connections achieved, what it cost in memory, how buffers stood."""

from __future__ import annotations

OF_A_RUN = {
    "throughput_mbps": "payload of a connection over the time it took, mean over connections; of open ones over the run",
    "goodput_mbps": "payload that all clients got, over the run",
    "share": "goodput over the mean capacity of the slowest link",
    "latency_ms": "mean round-trip time of what the proxy sent, sampled by its packets",
    "loss": "packets sent again over packets sent",
    "completion_s": "time until the client had all of a flow, mean; NaN of flows that never end",
    "flows": "flows completed",
    "memory_mb": "memory of the proxy's TCP buffers (sockstat's mem) and of its ring, mean over the run, MB",
    "memory_max_mb": "the most of it",
    "tcp_kb": "maximum of a TCP send buffer, mean over the run, kB",
    "socket_kb": "cap of explicit socket buffers, mean over the run, kB",
    "ring_packets": "size of the ring, mean over the run",
    "interrupted_s": "for which nothing passed since the ring was being resized",
}
OF_TRAINING = {"reward": "the recipe's, mean over the epochs since the last row"}
MEASURES = OF_A_RUN | OF_TRAINING
"""The columns of the results that were measured. NaN (an empty field) where a study is about something else."""
