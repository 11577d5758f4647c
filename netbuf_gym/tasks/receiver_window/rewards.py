"""Rewards of the receiver-window task: the utilities of `netbuf_gym.rewards.utility`, and one that follows running means.

They read the task's tracker. Throughput is what the application got in order, delay the queueing delay at the bottleneck; in an
interval in which no packet left the queue it is that of the last one in which one did, 0 before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.arguments import real
from netbuf_gym.rewards import UTILITIES
from netbuf_gym.rewards.utility import AlphaFair
from netbuf_gym.tasks.receiver_window.tracker import Tracker


@dataclass(frozen=True)
class RunningUtility:
    """Log-utility of an episode's means, linearised at the means so far.

    With x = throughput / fair share, y = RTT / base RTT, X and Y their means over the world's life so far, l = lost / sent, per
    second: a x/X - b x/X (y/Y - 1) - c l - d y. What is delivered counts more in a world that gives little, and delay by how
    much data waits; the last term is delay as such.

    Args:
        throughput_weight, delay_weight, loss_weight, standing_weight: weights a, b, c, d, 0 to 100.
        floor: least X, 1e-3 to 1.
        cap: largest x/X and y/Y that count, 1 to 100.
    """

    throughput_weight: float = 0.5
    delay_weight: float = 0.5
    loss_weight: float = 0.3
    standing_weight: float = 0.0
    floor: float = 0.05
    cap: float = 4.0
    name: ClassVar[str] = "running_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss", "standing")
    requires: ClassVar[tuple[str, ...]] = (
        *("elapsed_s", "throughput_ratio", "rtt_ratio", "loss_ratio", "mean_throughput_ratio", "mean_rtt_ratio"),
    )

    def __post_init__(self) -> None:
        for name in ("throughput_weight", "delay_weight", "loss_weight", "standing_weight"):
            real(name, getattr(self, name), 0, 100)
        real("floor", self.floor, 1e-3, 1)
        real("cap", self.cap, 1, 100)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the terms, `(4, rows)`."""
        cap, rtt_ratio = np.float32(self.cap), tracker.rtt_ratio()
        share = tracker.throughput_ratio() / np.maximum(tracker.mean_share, np.float32(self.floor))
        share = np.minimum(share, cap)
        inflation = np.minimum(rtt_ratio / tracker.mean_rtt_ratio, cap)
        np.multiply(share, np.float32(self.throughput_weight), out=out[0])
        np.multiply(share * (1 - inflation), np.float32(self.delay_weight), out=out[1])
        np.multiply(tracker.loss_ratio(), np.float32(-self.loss_weight), out=out[2])
        np.multiply(rtt_ratio, np.float32(-self.standing_weight), out=out[3])
        out *= tracker["elapsed_s"]


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
