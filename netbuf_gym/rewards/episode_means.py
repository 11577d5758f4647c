"""Utility based on an episode's running means, for tasks whose tracker keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from netbuf_gym.rewards.utility import Path
from netbuf_gym.utils.arguments import check_boolean, check_real

LEAST_AGE_S = 0.5
"""Least age of a world in seconds that the reward uses, so that its first packets do not count for all that follow."""


class RunningPath(Path, Protocol):
    """Path with running means.

    Attributes:
        capacity_bps, share_bps: Mean rate of its bottleneck, and the fair share of it, float32 `(rows,)`.
        first_beside: Row of the first agent that shares the bottleneck, int64 `(rows,)`.
        means: `netbuf_gym.tasks.tracking.RunningMeans`.
    """

    capacity_bps: np.ndarray
    share_bps: np.ndarray
    first_beside: np.ndarray
    means: Any


@dataclass(frozen=True)
class RunningUtility:
    """Log-utility of an episode's means, linearised at the means so far.

    With x = throughput / fair share, y = RTT / base RTT, X and Y their means over the world's life so far, l = lost / sent, per
    second: a x/X - b x/X (y/Y - 1) - c l - d y. Delivered data counts more in a world that has delivered little, and delay in
    proportion to the data that waits; the last term is delay as such.

    With these terms alone a slow start pays, since x/X is above 1 while the mean lags behind. The quantity that sums up to the
    utility of the whole is its slope: d(t ln X)/dt = x/X - 1 + ln X. For a learner that discounts rewards h seconds ahead by
    exp(-h/H), the level ln X is worth as much as its changes times H, which are x/X - 1 over the world's age t. With a horizon
    H, a and b are therefore multiplied by 1 + H/t, and x/X is counted from 1 on.

    A sender that shares a full queue does not reduce its loss ratio by sending less; reckoned in fair shares, l is the loss
    over what the fair share carries, x l / (1 - l), and sending less reduces it. Where other traffic crosses the path, the part
    of x beyond 1 can be given less weight, and agents that share a bottleneck can be rewarded together, each by their mean:
    otherwise an agent that shares a queue with other agents gains by pushing them aside.

    Args:
        loss_in_shares: whether l is reckoned in fair shares.
        surplus_weight: weight of the part of x beyond 1 on a shared path, 0 to 1.
        team_weight: part of a reward that is the mean of all agents sharing the bottleneck, 0 to 1.
        throughput_weight, delay_weight, loss_weight, standing_weight: weights a, b, c, d, 0 to 100.
        horizon_s: H, 0 to 1000 seconds; for a discount of g and an interval of T seconds it is T / (1 - g). 0: none.
        floor: least X, 1e-3 to 1.
        cap: largest x/X and y/Y that count, 1 to 100.
    """

    throughput_weight: float = 0.5
    delay_weight: float = 0.5
    loss_weight: float = 0.3
    standing_weight: float = 0.0
    horizon_s: float = 0.0
    surplus_weight: float = 1.0
    team_weight: float = 0.0
    loss_in_shares: bool = False
    floor: float = 0.05
    cap: float = 4.0
    name: ClassVar[str] = "running_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss", "standing")
    requires: ClassVar[tuple[str, ...]] = (
        *("elapsed_s", "throughput_ratio", "rtt_ratio", "loss_ratio", "mean_throughput_ratio", "mean_rtt_ratio"),
        *("capacity_bps", "share_bps", "first_beside"),
    )

    def __post_init__(self) -> None:
        for name in ("throughput_weight", "delay_weight", "loss_weight", "standing_weight"):
            check_real(name, getattr(self, name), 0, 100)
        check_boolean("loss_in_shares", self.loss_in_shares)
        for name in ("surplus_weight", "team_weight"):
            check_real(name, getattr(self, name), 0, 1)
        check_real("horizon_s", self.horizon_s, 0, 1000)
        check_real("floor", self.floor, 1e-3, 1)
        check_real("cap", self.cap, 1, 100)

    def __call__(self, tracker: RunningPath, out: np.ndarray) -> None:
        """Write the terms, `(terms, rows)`, into `out`."""
        cap, (rtt_ratio, mean_rtt_ratio) = np.float32(self.cap), self._rtt_ratios(tracker)
        share = tracker.throughput_ratio()
        if self.surplus_weight < 1:
            shared = tracker.share_bps < tracker.capacity_bps * np.float32(0.999)
            share -= np.float32(1 - self.surplus_weight) * np.maximum(share - 1, np.float32(0)) * shared
        share /= np.maximum(tracker.means.share(), np.float32(self.floor))
        share = np.minimum(share, cap)
        inflation = np.minimum(rtt_ratio / mean_rtt_ratio, cap)
        np.multiply(share, np.float32(self.throughput_weight), out=out[0])
        np.multiply(share * (1 - inflation), np.float32(self.delay_weight), out=out[1])
        if self.horizon_s:
            age = tracker.means.age_s
            out[0] -= np.float32(self.throughput_weight) * (age > 0)
            out[:2] *= 1 + np.float32(self.horizon_s) / np.maximum(age, np.float32(LEAST_AGE_S))
        np.multiply(self._lost(tracker), np.float32(-self.loss_weight), out=out[2])
        np.multiply(rtt_ratio, np.float32(-self.standing_weight), out=out[3])
        self._write_more(tracker, out[4:])
        out *= tracker["elapsed_s"]
        if self.team_weight:
            self._mix_team_mean(tracker.first_beside, out)

    def _rtt_ratios(self, tracker: RunningPath) -> tuple[np.ndarray, np.ndarray]:
        """Return y and Y."""
        return tracker.rtt_ratio(), tracker.means.rtt_ratio()

    def _write_more(self, tracker: RunningPath, out: np.ndarray) -> None:
        """Write the terms per second that a derived class has beyond these."""

    def _lost(self, tracker: RunningPath) -> np.ndarray:
        """Return l, in fair shares if it is reckoned so."""
        lost = tracker.loss_ratio()
        if self.loss_in_shares:
            lost = np.minimum(tracker.throughput_ratio() * lost / np.maximum(1 - lost, np.float32(1e-3)), np.float32(self.cap))
        return lost

    def _mix_team_mean(self, first_beside: np.ndarray, out: np.ndarray) -> None:
        """Replace a part of each agent's terms, `team_weight`, by the mean over all agents that share its bottleneck."""
        for term in out:
            term += np.float32(self.team_weight) * (compute_team_means(first_beside, term) - term)


def compute_team_means(first_beside: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for each agent the mean of values over all agents that share its bottleneck, float64 `(rows,)`.

    Args:
        first_beside: Row of the first agent that shares the bottleneck, int64 `(rows,)`.
        values: A value of each agent, `(rows,)`.
    """
    rows = len(first_beside)
    return (np.bincount(first_beside, values, rows) / np.maximum(np.bincount(first_beside, minlength=rows), 1))[first_beside]
