"""Rewards of the congestion-window task: the utilities of `netbuf_gym.rewards.utility`, and that of TCP-PPCC.

They read the task's tracker. The throughput of an interval without an ACK is 0, a measured value; the round-trip time is then
the last one measured, and counts as the base RTT (no delay) before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.rewards import UTILITIES, RunningUtility, index_rewards
from netbuf_gym.rewards.episode_means import compute_team_means
from netbuf_gym.tasks.congestion_window.rivals import FAIR, REFERENCES
from netbuf_gym.tasks.congestion_window.tracker import Tracker
from netbuf_gym.utils.arguments import check_boolean, check_choice, check_real


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


@dataclass(frozen=True)
class ConsiderateUtility(RunningUtility):
    """`running_utility` that also counts what rivals lack, delay in seconds, and loss beyond that of the path.

    Without the parameters below it is `running_utility`. With q the queueing delay, R the base RTT, w `delay_scale_weight` and
    s `delay_scale_s`, y is 1 + (1 - w) q / max(R, `least_base_s`) + w q / s, so that a queue that two paths share can be made
    to mean as much to the one of the short round trip as to the other; so it does where R is the team's. The term `harm` is,
    per second, less `harm_weight` times what rivals at the bottleneck lack: for each (r - x) / X where X < r, with x its rate
    over the fair one, X its recent mean, and r what it could have (`netbuf_gym.tasks.congestion_window.rivals`), in equal
    parts for the agents there. A rival limited by its application, or that has not started or has stopped, lacks nothing; nor
    does any on a plant in real time.

    Args:
        harm_weight: weight of what rivals lack, 0 to 100.
        harm_reference: what a rival could have: "fair", its fair share; or "cubic", as much of it as it gets with CUBIC in the
            agents' places, for which worlds with rivals are played once more.
        harm_tolerance: part of it that a rival may lack without counting, 0 to 1: rates of rivals go up and down by themselves.
        delay_scale_weight: part of the delay that is reckoned in units of `delay_scale_s`, 0 to 1.
        delay_scale_s: queueing delay that counts as a base RTT does in the ratio, 1e-4 to 100 seconds.
        least_base_s: least base RTT that queueing delay is divided by, 0 to 100 seconds.
        team_base: whether R is the mean base RTT of all agents at the bottleneck, in place of each one's own.
        excess_loss: whether the mean random loss of the path is taken off l.
        own_loss: whether the loss term stays each agent's own, whatever `team_weight`: what one of many agents loses hardly
            moves their mean, so that none learns to lose less.
        team_power: p, 0 to 1: with a `team_weight`, what a team of n agents is rewarded with is multiplied by n^p. An agent's
            part in a mean falls with their number, and with it what it learns in a crowd; 1 is as if it were rewarded by the
            sum.
    """

    harm_weight: float = 0.0
    harm_reference: str = FAIR
    harm_tolerance: float = 0.0
    delay_scale_weight: float = 0.0
    delay_scale_s: float = 0.05
    least_base_s: float = 0.0
    team_base: bool = False
    excess_loss: bool = False
    own_loss: bool = False
    team_power: float = 0.0
    name: ClassVar[str] = "considerate_utility"
    terms: ClassVar[tuple[str, ...]] = (*RunningUtility.terms, "harm")
    requires: ClassVar[tuple[str, ...]] = (*RunningUtility.requires, "base_rtt_s", "random_loss", "rival_share")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("harm_weight", self.harm_weight, 0, 100)
        check_real("team_power", self.team_power, 0, 1)
        check_real("harm_tolerance", self.harm_tolerance, 0, 1)
        check_choice("harm_reference", self.harm_reference, REFERENCES)
        check_real("delay_scale_weight", self.delay_scale_weight, 0, 1)
        check_real("delay_scale_s", self.delay_scale_s, 1e-4, 100)
        check_real("least_base_s", self.least_base_s, 0, 100)
        for name in ("team_base", "excess_loss", "own_loss"):
            check_boolean(name, getattr(self, name))

    def _rtt_ratios(self, tracker: Any) -> tuple[np.ndarray, np.ndarray]:
        own, mean = super()._rtt_ratios(tracker)
        if not (self.delay_scale_weight or self.least_base_s or self.team_base):
            return own, mean
        weight, base_s = np.float32(self.delay_scale_weight), tracker.base_rtt_s
        judged_s = compute_team_means(tracker.first_beside, base_s) if self.team_base else base_s
        factor = (1 - weight) * base_s / np.maximum(judged_s, np.float32(self.least_base_s))
        factor += base_s * weight / np.float32(self.delay_scale_s)
        return 1 + (own - 1) * factor, 1 + (mean - 1) * factor

    def _lost(self, tracker: Any) -> np.ndarray:
        lost = super()._lost(tracker)
        if not self.excess_loss:
            return lost
        share, own = tracker.throughput_ratio(), tracker.surroundings.random_loss()
        if self.loss_in_shares:
            return lost - np.minimum(share * own / (1 - own), np.float32(self.cap))
        return lost - own * (share > 0)

    def _mix_team_mean(self, first_beside: np.ndarray, out: np.ndarray) -> None:
        loss = out[self.terms.index("loss")]
        own = loss.copy()
        super()._mix_team_mean(first_beside, out)
        if self.own_loss:
            loss[:] = own
        if self.team_power:
            out *= np.bincount(first_beside)[first_beside] ** np.float32(self.team_power)

    def _write_more(self, tracker: Any, out: np.ndarray) -> None:
        out[0] = 0
        if self.harm_weight:
            lacking = tracker.surroundings.shortfall(self.harm_reference, self.floor, self.cap, self.harm_tolerance)
            np.multiply(lacking, np.float32(-self.harm_weight), out=out[0])


REWARDS = index_rewards(*UTILITIES, RunningUtility, ConsiderateUtility, UtilitySign)
