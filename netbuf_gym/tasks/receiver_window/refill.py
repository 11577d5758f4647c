"""A rule for receivers: a little less than the measured product, and a little more where nothing has waited for a while.

A window of g measured products and k segments has a fixed point. While the link is not full the measured product is the window
itself, less the segments, so that below g = 1 the window settles at k / (1 - g) segments, however fast the link has become, and
at g = 1 it grows by k segments a round trip. The queueing delay shows this: then nothing waits at the bottleneck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers import Decider, Policy
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.tasks.actions import LARGEST_FACTOR
from netbuf_gym.tasks.receiver_window.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.receiver_window.task import ReceiverWindow
from netbuf_gym.tasks.receiver_window.tracker import K_RANGE
from netbuf_gym.utils.arguments import check_integer, check_real

_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}
"""Columns of a feature vector of either recipe: those of `memory` come after the default ones."""


class Refill(Decider[ReceiverWindow]):
    """Window in measured products, by two gains: one while packets wait, and a larger one of a queue that has been empty.

    An interval counts as empty if its mean queueing delay is at most a share of the least round trip and the time of some
    packets at the present rate, and its least one likewise. An interval without packets changes nothing.

    Args:
        gain: Measured products while packets wait, 0.5 to 2.
        refill_gain: Measured products after empty intervals, 1 to 2.
        patience: Empty intervals in a row from which on `refill_gain` holds, 1 to 100.
        segments: Segments on top of the product, 0.25 to 16.
        least_share, mean_share: Share of the least round trip that the least and the mean queueing delay of an empty interval
            may have, 0 to 1.
        packets: Packets whose time comes on top of either share, 0 to 100.

    Raises:
        ConfigError: An argument is out of range.
    """

    name = "refill"
    recipes = ("default", "memory")

    def __init__(
        self,
        gain: float = 0.97,
        refill_gain: float = 1.08,
        patience: int = 8,
        segments: float = 3.0,
        least_share: float = 0.01,
        mean_share: float = 0.03,
        packets: float = 2.0,
    ):
        self.gain = check_real("gain", gain, 1 / LARGEST_FACTOR, LARGEST_FACTOR)
        self.refill_gain = check_real("refill_gain", refill_gain, 1, LARGEST_FACTOR)
        self.patience = check_integer("patience", patience, 1, 100)
        self.segments = check_real("segments", segments, *K_RANGE)
        self.least_share = check_real("least_share", least_share, 0, 1)
        self.mean_share = check_real("mean_share", mean_share, 0, 1)
        self.packets = check_real("packets", packets, 0, 100)

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`."""
        own = {"acts_on": "bdp", "actions": "continuous", "target_ms": 25.0, "k": self.segments, "history": 1}
        return {**super().env, **own}

    def start(self, rules: ReceiverWindow, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`; raise ConfigError where the action is not the window in measured products."""
        self._require_recipe(rules)
        if rules.acts_on != "bdp":
            raise ConfigError(f'acts_on = {quote(rules.acts_on)} with the controller {self.name}; valid: "bdp"')
        rows = len(seeds) * rules.agents

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            counts, gain = (np.zeros(rows, np.int64), np.ones(rows)) if state is None else state
            latest = observations.reshape(rows, -1)[:, -rules.width :].astype(np.float64)
            arrived, empty = self._find_empty(latest)
            counts = np.where(empty, np.where(starts, 0, counts) + 1, np.where(arrived | starts, 0, counts))
            decided = np.where(counts >= self.patience, self.refill_gain, self.gain)
            gain = np.where(arrived, decided, np.where(starts, 1.0, gain))
            return _choose_actions(rules, gain), (counts, gain)

        return policy

    def _find_empty(self, latest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return in which rows packets arrived in the latest interval, and in which of these none waited."""
        packets = np.expm1(_read_log(latest, "packets"))
        round_trip = np.exp(_read_log(latest, "rtt_in_intervals"))  # least one, in intervals
        least, mean = (np.expm1(_read_log(latest, name, power=2)) for name in ("standing_queue", "queueing"))
        spare = self.packets / np.maximum(packets, 1) / round_trip
        arrived = packets > 0.5
        return arrived, arrived & (least < self.least_share + spare) & (mean < self.mean_share + spare)


class DataRefill(Refill):
    """The rule by settings that carry about as much data as CUBIC on mobile networks, for a longer queue."""

    name = "refill-data"

    def __init__(self) -> None:
        super().__init__(gain=0.95, refill_gain=1.13, patience=1, segments=6.0, least_share=0.02, mean_share=0.05, packets=3.0)


def _read_log(latest: np.ndarray, name: str, power: int = 1) -> np.ndarray:
    """Return the logarithm that a feature is a root (of this power) of, as far as its range goes."""
    return latest[:, _COLUMN[name]] ** power * np.log(DEFAULT_FEATURES[_COLUMN[name]].high)


def _choose_actions(rules: ReceiverWindow, gain: np.ndarray) -> np.ndarray:
    """Return the actions whose gains are nearest to these, on a log scale."""
    if isinstance(rules.action_space, gym.spaces.Box):
        return np.log2(gain)[:, None].astype(np.float32)
    levels = rules.action_mapping.levels
    assert levels is not None
    return np.abs(np.log(levels[:, 0] / gain[:, None])).argmin(axis=1)
