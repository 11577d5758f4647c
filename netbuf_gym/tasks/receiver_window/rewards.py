"""Rewards of the receiver-window task: the utilities of `netbuf_gym.rewards.utility`, and one that also counts data.

They read the task's tracker. Throughput is that of bytes delivered to the application in order, delay the queueing delay at the
bottleneck; in an interval in which no packet left the queue it is that of the last one in which one did, 0 before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbuf_gym.rewards import UTILITIES, RunningUtility, index_rewards
from netbuf_gym.rewards.utility import AlphaFair, Path
from netbuf_gym.utils.arguments import check_real


@dataclass(frozen=True)
class DataUtility(AlphaFair):
    """The alpha-fair utility plus a term proportional to the data delivered.

    A utility of throughput within [0, 1] hardly rewards further data while the link is better than its mean; the data term
    does.

    Args:
        data_weight: weight of throughput / fair share, 0 to 100; the ratio is capped at 4.
        others: see `netbuf_gym.rewards.utility.AlphaFair`.
    """

    data_weight: float = 0.6
    name: ClassVar[str] = "data_utility"
    terms: ClassVar[tuple[str, ...]] = (*AlphaFair.terms, "data")
    requires: ClassVar[tuple[str, ...]] = AlphaFair.requires

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("data_weight", self.data_weight, 0, 100)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the terms, `(4, rows)`, to `out`."""
        super().__call__(tracker, out[:3])
        share = np.minimum(tracker.throughput_ratio(), np.float32(4))
        np.multiply(share * np.float32(self.data_weight), tracker["elapsed_s"], out=out[3])


REWARDS = index_rewards(*UTILITIES, RunningUtility, DataUtility)
