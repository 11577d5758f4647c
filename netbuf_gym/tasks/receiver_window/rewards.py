"""Rewards of the receiver-window task: the utilities of `netbuf_gym.rewards.utility`, and two that also count data.

They read the task's tracker. Throughput is that of bytes delivered to the application in order, delay the queueing delay at the
bottleneck; in an interval in which no packet left the queue it is that of the last one in which one did, 0 before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.rewards import UTILITIES, RunningUtility, index_rewards
from netbuf_gym.rewards.utility import AlphaFair, Path
from netbuf_gym.utils.arguments import check_real

LARGEST_SHARE = 4.0
"""Largest throughput in fair shares that terms of data count."""


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
        share = np.minimum(tracker.throughput_ratio(), np.float32(LARGEST_SHARE))
        np.multiply(share * np.float32(self.data_weight), tracker["elapsed_s"], out=out[3])


@dataclass(frozen=True)
class FlooredUtility(AlphaFair):
    """The alpha-fair utility less what is lacking from a floor on the data delivered.

    The shortfall max(0, data_floor - X) of an episode, X its mean of throughput / fair share, is linearised at the mean so far,
    as in `running_utility`: the term is floor_weight (x - data_floor) per second while X is below the floor, and 0 from there
    on. Summed over an episode it is the weight times the shortfall of a world that stays below, so that data count at a
    constant price up to the floor, and not beyond.

    Args:
        data_floor: least mean of throughput / fair share that is not penalised, 0 to 1.
        floor_weight: price of the shortfall, 0 to 100.
        others: see `netbuf_gym.rewards.utility.AlphaFair`.
    """

    data_floor: float = 0.9
    floor_weight: float = 2.0
    name: ClassVar[str] = "floored_utility"
    terms: ClassVar[tuple[str, ...]] = (*AlphaFair.terms, "floor")
    requires: ClassVar[tuple[str, ...]] = (*AlphaFair.requires, "mean_throughput_ratio")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("data_floor", self.data_floor, 0, 1)
        check_real("floor_weight", self.floor_weight, 0, 100)

    def __call__(self, tracker: Any, out: np.ndarray) -> None:
        """Write the terms, `(4, rows)`, to `out`; `tracker`: a `Path` with `means`, as `FlowTracker` is."""
        super().__call__(tracker, out[:3])
        floor = np.float32(self.data_floor)
        share = np.minimum(tracker.throughput_ratio(), np.float32(LARGEST_SHARE))
        below = tracker.means.share() < floor
        np.multiply((share - floor) * np.float32(self.floor_weight) * below, tracker["elapsed_s"], out=out[3])


REWARDS = index_rewards(*UTILITIES, RunningUtility, DataUtility, FlooredUtility)
