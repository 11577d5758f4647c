"""Measures of a run: performance of the connections, memory, and sizes of the buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.simulation.results.traffic import build_completions

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
"""Measured columns of the results, with their descriptions. NaN (an empty field) where a study does not measure them."""

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
"""Names in the task's reports, by measure."""
SHOWN = {
    "goodput_mbps": "throughput_mbps",
    "latency_ms": "latency_ms",
    "memory_mb": "memory_mb",
    "tcp_kb": "tcp_max_kib",
    "ring_packets": "ring_packets",
}
"""Names in what the task shows of each interval, by measure."""


class RunRecorder:
    """Recorder of a run's measures, sampled after each decision.

    Args:
        whole_s: Duration of the run in s.
        pieces: Number of equal pieces of which the means are kept as well.
    """

    def __init__(self, whole_s: float, pieces: int = 0):
        self._whole_s, self._pieces = whole_s, pieces
        self._seen: list[list[float]] = []
        self._report: dict[str, Any] = {}
        self._flows: dict[str, float] = {}

    def record(self, view: View) -> None:
        """Record what the task shows of the last interval."""
        state = view.show()
        self._seen.append([state["time_s"], *(state[name] for name in SHOWN.values())])

    def record_end(self, view: View) -> None:
        """Record the final report and the completed flows of the run."""
        self._report = view.whole_report()[0]
        self._flows = summarise_flows(view)

    def rows(self) -> list[dict[str, float]]:
        """Return a row for the whole run, then one for each piece, whose throughput is the host's goodput."""
        table = np.array(self._seen)
        whole = dict(zip(SHOWN, average_columns(table[:, 1:]), strict=True))
        whole |= {name: float(self._report[own]) for name, own in REPORTED.items()} | self._flows
        ends_s = self._whole_s * np.arange(1, self._pieces + 1) / max(self._pieces, 1)
        at = np.minimum(np.searchsorted(ends_s, table[:, 0] - 1e-6), max(self._pieces - 1, 0))
        found = [whole]
        for piece in range(self._pieces):
            one = dict(zip(SHOWN, average_columns(table[at == piece, 1:]), strict=True))
            found.append(one | {"throughput_mbps": one["goodput_mbps"]})
        return found


def summarise_flows(view: View) -> dict[str, float]:
    """Return count, mean completion time and throughput of completed flows at the client's end; {} without finite flows."""
    if view.scenario.traffic is None:
        return {}
    found = build_completions(view.scenario, np.asarray(view.simulated.completions()))
    if not len(found):
        return {"flows": 0.0}
    rates = found["size_bytes"] * 8e-6 / found["fct_s"]
    return {"flows": float(len(found)), "completion_s": float(found["fct_s"].mean()), "throughput_mbps": float(rates.mean())}


def average_columns(columns: np.ndarray) -> Sequence[float]:
    """Return the mean of the finite values of each column; NaN for a column without any."""
    finite = [column[np.isfinite(column)] for column in columns.T]
    return [float(column.mean()) if len(column) else math.nan for column in finite]
