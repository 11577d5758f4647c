"""Measures kept of a run: what its senders achieved, and a record second by second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.plants.simulator import FLOW_SAMPLE
from netbuf_gym.utils.statistics import jain_index

SECOND_S = 1.0
LEAST_MS = 1e-3
"""Lower limit of a mean delay, so that the logarithm exists."""

RUN_MEASURES = {
    "delay_ms": "E(t_d): mean RTT less the least that the path can have, mean over the senders",
    "goodput_mbps": "E(thr): bytes delivered in order over the time since the flow's start, mean over the senders",
    "loss": "packets dropped or lost, of those sent, mean over the senders",
    "mt": "log10 of delay_ms - log10 of goodput_mbps; lower is better",
    "utility": "0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT), mean over the senders; higher is better",
    "rtt_ms": "mean RTT, mean over the senders; of a second: in it",
    "queue_delay_ms": "mean time of a packet in the bottleneck's queue",
    "jain": "Jain's index of the senders' goodput",
    "timeouts": "retransmission time-outs of all senders",
    "silent": "senders of which nothing was acknowledged; means of delays and utilities are without them",
}
SECOND_MEASURES = {
    "throughput_mbps": "of the first sender's packets that arrived in this second",
    "cwnd_packets": "its congestion window at the end of the second",
}
MEASURES = RUN_MEASURES | SECOND_MEASURES
"""Measured columns of the results. NaN (an empty field) in studies that do not measure the column."""


def measure_run(view: View) -> dict[str, float]:
    """Return the measures `RUN_MEASURES` of a world that has run to its end."""
    reports = view.whole_report()
    heard = [report for report in reports if math.isfinite(report["mean_rtt_ms"])]

    def mean(name: str, of: Sequence[Mapping[str, Any]] = heard) -> float:
        return float(np.mean([report[name] for report in of])) if of else math.nan

    delays_ms = [max(report["mean_rtt_ms"] - report["base_rtt_ms"], LEAST_MS) for report in heard]
    delay_ms = float(np.mean(delays_ms)) if delays_ms else math.nan
    goodput_mbps = mean("goodput_mbps", reports)
    return {
        "delay_ms": delay_ms,
        "goodput_mbps": goodput_mbps,
        "loss": mean("loss_rate", reports),
        "mt": math.log10(delay_ms) - math.log10(goodput_mbps) if goodput_mbps > 0 else math.nan,
        "utility": mean("utility"),
        "rtt_ms": mean("mean_rtt_ms"),
        "queue_delay_ms": mean("queue_delay_mean_ms"),
        "jain": jain_index(np.array([report["goodput_mbps"] for report in reports])),
        "timeouts": float(sum(report["timeouts"] for report in reports)),
        "silent": float(len(reports) - len(heard)),
    }


class SecondsRecorder:
    """Record of a world's first flow, second by second.

    Attributes:
        rows: Measures of each whole second so far.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._before = (0.0, 0.0, 0.0)
        self._cwnd = FLOW_SAMPLE.index("cwnd_packets")

    def record(self, view: View) -> None:
        """Record the second that ends now; do nothing before its end."""
        world = view.simulated
        if world.now_ns * 1e-9 < SECOND_S * (len(self.rows) + 1) - 1e-9:
            return
        stats = world.flow_stats()[0]
        now = (float(world.flow_arrivals()[0]), stats["rtt_sum_s"], float(stats["rtt_count"]))
        arrived, rtt_s, samples = (after - before for after, before in zip(now, self._before, strict=True))
        self._before = now
        self.rows.append(
            {
                "throughput_mbps": arrived * 8e-6 / SECOND_S,
                "rtt_ms": rtt_s / samples * 1e3 if samples else math.nan,
                "cwnd_packets": float(world.flow_sample()[0][self._cwnd]),
            }
        )
