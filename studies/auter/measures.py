"""What is kept of a run: what connections achieved, what it cost in memory, how buffers stood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.simulation.results.traffic import completed

OF_A_RUN = {
    "throughput_mbps": "of a flow: size over completion time, mean over flows; of flows that last payload acknowledged "
    "over time, mean over connections and intervals",
    "goodput_mbps": "payload acknowledged over all connections, over the run",
    "share": "that over the mean rate of the path's slowest link",
    "latency_ms": "round-trip time, mean over connections, then over intervals",
    "rtt_ratio": "that over the least possible",
    "loss": "packets sent again over packets sent",
    "flows": "flows completed",
    "completion_s": "completion time of these, mean",
    "memory_mb": "memory of the proxy's TCP buffers (sockstat's mem) and of its ring, mean over the run, 10^6 bytes",
    "memory_max_mb": "the most that the TCP buffers took",
    "tcp_kb": "largest TCP buffer that the settings allow, mean over the run, 1024 bytes",
    "ring_packets": "size of the ring, mean over the run",
    "interrupted_s": "for which nothing passed since the ring was being resized",
}
OF_TRAINING = {
    "socket_kb": "cap of explicit socket buffers, 1024 bytes",
    "reward": "the recipe's, mean over the epochs since the last row",
}
MEASURES = OF_A_RUN | OF_TRAINING
"""The columns of the results that were measured. NaN (an empty field) where a study is about something else."""

REPORTED = {
    "throughput_mbps": "flow_mbps",
    "goodput_mbps": "throughput_mbps",
    "share": "share",
    "latency_ms": "latency_ms",
    "rtt_ratio": "rtt_ratio",
    "loss": "loss_rate",
    "memory_mb": "memory_mb",
    "memory_max_mb": "peak_memory_mb",
    "interrupted_s": "interrupted_s",
}
"""Measures, with what the task's reports call them."""
SHOWN = {
    "goodput_mbps": "throughput_mbps",
    "latency_ms": "latency_ms",
    "memory_mb": "memory_mb",
    "tcp_kb": "tcp_max_kib",
    "ring_packets": "ring_packets",
}
"""The same of what the task shows of each interval."""


class Watch:
    """Looks at a run after each decision.

    Args:
        whole_s: How long it takes.
        pieces: Of how many equal pieces the means are kept, too.
    """

    def __init__(self, whole_s: float, pieces: int = 0):
        self._whole_s, self._pieces = whole_s, pieces
        self._seen: list[list[float]] = []
        self._report: dict[str, Any] = {}
        self._flows: dict[str, float] = {}

    def look(self, view: View) -> None:
        """Takes what the task shows."""
        state = view.show()
        self._seen.append([state["time_s"], *(state[name] for name in SHOWN.values())])

    def end(self, view: View) -> None:
        """Takes what the run came to."""
        self._report = view.whole_report()[0]
        self._flows = flows_of(view)

    def rows(self) -> list[dict[str, float]]:
        """The whole run, and then its pieces; of these the throughput is that of the host."""
        table = np.array(self._seen)
        whole = dict(zip(SHOWN, means(table[:, 1:]), strict=True))
        whole |= {name: float(self._report[own]) for name, own in REPORTED.items()} | self._flows
        ends_s = self._whole_s * np.arange(1, self._pieces + 1) / max(self._pieces, 1)
        at = np.minimum(np.searchsorted(ends_s, table[:, 0] - 1e-6), max(self._pieces - 1, 0))
        found = [whole]
        for piece in range(self._pieces):
            one = dict(zip(SHOWN, means(table[at == piece, 1:]), strict=True))
            found.append(one | {"throughput_mbps": one["goodput_mbps"]})
        return found


def flows_of(view: View) -> dict[str, float]:
    """Of a world's finite flows those that completed, at the client's end; nothing where there are none."""
    if view.scenario.traffic is None:
        return {}
    found = completed(view.scenario, np.asarray(view.simulated.completions()))
    if not len(found):
        return {"flows": 0.0}
    rates = found["size_bytes"] * 8e-6 / found["fct_s"]
    return {"flows": float(len(found)), "completion_s": float(found["fct_s"].mean()), "throughput_mbps": float(rates.mean())}


def means(columns: np.ndarray) -> Sequence[float]:
    """Of each column the mean of what is a number; NaN without any."""
    finite = [column[np.isfinite(column)] for column in columns.T]
    return [float(column.mean()) if len(column) else math.nan for column in finite]
