"""Rewards of the receiver-window task: the utilities of `netbuf_gym.rewards.utility`, and one with data in proportion.

They read the task's tracker. Throughput is what the application got in order, delay the queueing delay at the bottleneck; in an
interval in which no packet left the queue it is that of the last one in which one did, 0 before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.rewards import UTILITIES, RunningUtility
from netbuf_gym.rewards.utility import AlphaFair
from netbuf_gym.tasks.receiver_window.tracker import Tracker
from netbuf_gym.utils.arguments import real


@dataclass(frozen=True)
class DataUtility(AlphaFair):
    """The alpha-fair utility, and what is delivered beside it, in proportion.

    A utility of throughput within [0, 1] cares little for what is delivered while the link is better than its mean; data do.

    Args:
        data_weight: weight of throughput / fair share, 0 to 100; 4 is the most of that which counts.
        others: see `netbuf_gym.rewards.utility.AlphaFair`.
    """

    data_weight: float = 0.6
    name: ClassVar[str] = "data_utility"
    terms: ClassVar[tuple[str, ...]] = (*AlphaFair.terms, "data")
    requires: ClassVar[tuple[str, ...]] = AlphaFair.requires

    def __post_init__(self) -> None:
        super().__post_init__()
        real("data_weight", self.data_weight, 0, 100)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the terms, `(4, rows)`."""
        super().__call__(tracker, out[:3])
        share = np.minimum(tracker.throughput_ratio(), np.float32(4))
        np.multiply(share * np.float32(self.data_weight), tracker["elapsed_s"], out=out[3])


REWARDS: dict[str, type[Any]] = {kind.name: kind for kind in (*UTILITIES, RunningUtility, DataUtility)}
