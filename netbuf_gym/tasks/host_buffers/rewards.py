"""Rewards of the host-buffers task: the paper's, ours, and the utilities of `netbuf_gym.rewards.utility`.

They read the task's tracker. Throughput is that of a connection, mean over those with something to send; quantities that were
not measured in an interval count with their last value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards import UTILITIES, index_rewards
from netbuf_gym.rewards.ranges import ThreeSigmaRange
from netbuf_gym.tasks.host_buffers.tracker import DELAY_WEIGHT, MEMORY_WEIGHT, Tracker, compute_terms
from netbuf_gym.utils.arguments import check_boolean, check_real


@dataclass(frozen=True)
class AuterReward:
    """Reward of Auter: x_thr R(throughput) + x_lat R(latency) + x_loss R(loss), a value of each decision.

    R(v) = (v - least) / (greatest - least) over the samples of all agents and episodes so far that are no outliers by the
    three-sigma rule (`netbuf_gym.rewards.ranges.ThreeSigmaRange`); 0 as long as all are equal. The paper does not state the
    weights; these are ours.

    Args:
        throughput_weight: x_thr, above 0 to 100, and above the size of both others.
        latency_weight, loss_weight: x_lat and x_loss, below 0.
        memory: number of remembered samples, 2 to 10 million.
        clip: whether R is clipped to [0, 1]; otherwise the R of an outlier lies outside, by at most 1e6.
    """

    throughput_weight: float = 1.0
    latency_weight: float = -0.5
    loss_weight: float = -0.5
    memory: int = 10_000
    clip: bool = True
    name: ClassVar[str] = "auter"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "latency", "loss")
    requires: ClassVar[tuple[str, ...]] = ("throughput_bps", "latency_s", "loss")

    def __post_init__(self) -> None:
        check_real("throughput_weight", self.throughput_weight, 0, 100, low_open=True)
        for name in ("latency_weight", "loss_weight"):
            value = check_real(name, getattr(self, name), -100, 0)
            if not value < 0:
                raise ConfigError(f"{name} = {quote(value)}; valid: -100 to below 0")
            if not self.throughput_weight > abs(value):
                given = f"throughput_weight = {quote(self.throughput_weight)} beside {name} = {quote(value)}"
                raise ConfigError(f"{given}; valid: above the size of latency_weight and of loss_weight")
        check_boolean("clip", self.clip)
        self.__dict__["_ranges"] = tuple(ThreeSigmaRange(self.memory) for _ in self.terms)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, into `out`."""
        now = dict(zip(tracker.names, tracker.now, strict=True))
        weights = (self.throughput_weight, self.latency_weight, self.loss_weight)
        for row, field, weight, samples in zip(out, self.requires, weights, self.__dict__["_ranges"], strict=True):
            samples.update(now[field])
            row[...] = weight * samples.normalize(tracker[field], self.clip)


@dataclass(frozen=True)
class HostUtility:
    """Log-utility of a connection's throughput, less queueing and memory, times the length of the interval.

    Per second: a ln(x) - b (y - 1) - c ln(1 + m) - d l, with x = throughput of a connection / fair share, within 0.001 and 10,
    y = latency / base RTT, within 1 and 8, m = memory of TCP and the ring / twice the path's product, l = packets sent again /
    sent. With the default weights it is the utility of reports.

    Args:
        throughput_weight, delay_weight, memory_weight, loss_weight: weights a, b, c, d, 0 to 100.
        progress: share of the previous interval's utility that is subtracted, 0 to 1. With 1 a policy is rewarded for
            improvements; the best policy is the same, while what the world offers cancels out, and learning is faster.
    """

    throughput_weight: float = 1.0
    delay_weight: float = DELAY_WEIGHT
    memory_weight: float = MEMORY_WEIGHT
    loss_weight: float = 0.0
    progress: float = 0.0
    name: ClassVar[str] = "host_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "memory", "loss")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "rtt_ratio", "memory_ratio", "loss_ratio")

    def __post_init__(self) -> None:
        for name in ("throughput_weight", "delay_weight", "memory_weight", "loss_weight"):
            check_real(name, getattr(self, name), 0, 100)
        check_real("progress", self.progress, 0, 1)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Write the terms, `(4, rows)`, into `out`."""
        compute_terms(tracker, out[:3])
        out[3] = tracker.loss_ratio()
        weights = (self.throughput_weight, -self.delay_weight, -self.memory_weight, -self.loss_weight)
        out *= np.array(weights, np.float32)[:, None]
        begun = tracker.rate > 0
        if self.progress:
            self._subtract_previous(tracker, out)
        out *= tracker["elapsed_s"] * begun

    def _subtract_previous(self, tracker: Tracker, out: np.ndarray) -> None:
        """Subtract a share, `progress`, of the previous interval's terms, or in the first interval of the present ones."""
        before = self.__dict__.setdefault("_before", np.zeros_like(out))
        now = out.copy()
        compared = tracker.decisions > 1
        out -= np.float32(self.progress) * np.where(compared, before, now)
        np.copyto(before, now)


REWARDS = index_rewards(*UTILITIES, AuterReward, HostUtility)
