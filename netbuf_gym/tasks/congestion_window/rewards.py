"""Rewards of the congestion-window task: the utilities of `netbuf_gym.rewards.utility`, and that of TCP-PPCC.

They read the task's tracker. The throughput of an interval without an ACK is 0, a measured value; the round-trip time is then
the last one measured, and counts as the base RTT (no delay) before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbuf_gym.rewards import UTILITIES, RunningUtility, index_rewards
from netbuf_gym.tasks.congestion_window.tracker import Tracker
from netbuf_gym.utils.arguments import check_real


@dataclass(frozen=True)
class UtilitySign:
    """Reward of TCP-PPCC, its Eqs. 2 and 3: +1, 0 or -1 as U = a ln(throughput) - b ln(RTT) rose, stayed or fell.

    Throughput counts as at least 1 bit/s. The reward is 0 until a round trip has been known for two intervals. The paper gives
    no weights; a = b = 0.5 is ours.

    Args:
        throughput_weight: weight a, 0 to 1; b = 1 - a.
    """

    throughput_weight: float = 0.5
    name: ClassVar[str] = "utility_sign"
    terms: ClassVar[tuple[str, ...]] = ("utility_sign",)
    requires: ClassVar[tuple[str, ...]] = (
        *("throughput_bps", "rtt_mean_s", "previous_throughput_bps", "previous_rtt_s", "previous_rtt_known"),
    )

    def __post_init__(self) -> None:
        check_real("throughput_weight", self.throughput_weight, 0, 1)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Write the term, `(1, rows)`, into `out`."""
        logs = np.empty((4, tracker.rows))
        tracker.arithmetic.utility_arguments(logs)
        np.log(logs, out=logs)
        tracker.arithmetic.utility_signs(logs, self.throughput_weight, out[0])


REWARDS = index_rewards(*UTILITIES, RunningUtility, UtilitySign)
