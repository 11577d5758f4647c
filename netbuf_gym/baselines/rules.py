"""Hand-written rules on the recipes' observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.baselines.controller import Controller
from netbuf_gym.tasks.congestion_window import DEFAULT_FEATURES, FACTORS, PPCC_STEPS, RECIPES
from netbuf_gym.tasks.task import Task


def _rows(obs: np.ndarray) -> int:
    return len(np.atleast_2d(obs))


def _shaped(actions: np.ndarray, obs: np.ndarray) -> np.ndarray:
    return actions if np.ndim(obs) == 2 else actions[0]


class FixedAction(Controller):
    """The same action always; by default the one that keeps the window.

    Args:
        action: 0 to 10, None: keep the window, or most nearly so.
        recipe: `"default"` or `"ppcc"`.
    """

    def __init__(self, action: int | None = None, recipe: str = "default"):
        self.recipe = choice("recipe", recipe, RECIPES)
        keep = int(np.argmin(np.abs(PPCC_STEPS if recipe == "ppcc" else FACTORS - 1)))
        self.action = keep if action is None else whole("action", action, 0, len(FACTORS) - 1)
        self._given = action

    @property
    def recipes(self) -> tuple[str, ...]:
        """See `Controller.recipes`."""
        return RECIPES

    def fitted(self, rules: Task) -> FixedAction:
        """See `Controller.fitted`."""
        return FixedAction(self._given, rules.recipe)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`."""
        return _shaped(np.full(_rows(obs), self.action), obs), state


class RandomAction(Controller):
    """Every action as likely, from a generator of its own.

    Args:
        seed: of the generator.
        recipe: `"default"` or `"ppcc"`.
    """

    def __init__(self, seed: int = 0, recipe: str = "default"):
        self.recipe = choice("recipe", recipe, RECIPES)
        self.seed = whole("seed", seed, 0, 2**63 - 1)
        self._rng = np.random.default_rng(self.seed)

    @property
    def recipes(self) -> tuple[str, ...]:
        """See `Controller.recipes`."""
        return RECIPES

    def fitted(self, rules: Task) -> RandomAction:
        """See `Controller.fitted`; its generator begins anew."""
        return RandomAction(self.seed, rules.recipe)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`; samples whatever `deterministic` says."""
        return _shaped(self._rng.integers(len(FACTORS), size=_rows(obs)), obs), state


_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}


class QueueTarget(Controller):
    """Holds a few segments in the queue, as Vegas means to, on the default recipe's latest features alone.

    It shows that these observations suffice, and is a bar for agents. The estimate of queued segments includes about
    one that is waiting for the receiver's delayed ACK.

    Args:
        segments: queued segments aimed at, 0.5 to 1000.
        share: further segments, as a share of the window, 0 to 1.
        gain: how much of the difference one decision corrects, 0.01 to 2.
    """

    def __init__(self, segments: float = 1.5, share: float = 0.01, gain: float = 0.6):
        self.segments = real("segments", segments, 0.5, 1000)
        self.share = real("share", share, 0, 1)
        self.gain = real("gain", gain, 0.01, 2)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`."""
        latest = np.atleast_2d(obs)[:, -len(DEFAULT_FEATURES) :].astype(np.float64)
        window = 65536.0 ** latest[:, _COLUMN["window_size"]]
        queued = 64.0 ** latest[:, _COLUMN["segments_queued"]] - 1
        in_intervals = latest[:, _COLUMN["rtt_in_intervals"]]
        growth = 2.0 ** latest[:, _COLUMN["rate_change"]]

        target = self.segments + self.share * window
        change = self.gain * (target - queued) / window / np.maximum(1, 64.0**in_intervals)
        change = np.clip(change, np.log(0.5), 0.1)
        change = np.where((queued < target) & (growth > 1.1), np.log(1.4), change)
        change = np.where(in_intervals == 0, 0.0, change)  # nothing has been measured yet
        actions = np.abs(change[:, None] - np.log(FACTORS)).argmin(axis=1)
        return _shaped(actions, obs), state
