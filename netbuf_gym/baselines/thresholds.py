"""Controllers of a switch's thresholds that look at nothing: constant ones, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.arguments import whole
from netbuf_gym.baselines.controller import Controller
from netbuf_gym.tasks.queue_threshold import QueueThreshold


class _Thresholds(Controller):
    task = QueueThreshold.name

    def _shaped(self, actions: np.ndarray, obs: np.ndarray) -> np.ndarray:
        return actions if np.ndim(obs) == 2 else actions[0]


class FixedThresholds(_Thresholds):
    """The same alphas always; (1, 1) is RLBM's naive buffer and (8, 1) its sophisticated one.

    Args:
        alphas: one for each queue, within what the recipe's actions can say.
        recipe: one of `QueueThreshold.recipes`.
    """

    def __init__(self, alphas: Sequence[float] = (1.0, 1.0), recipe: str = "default"):
        rules = QueueThreshold(recipe, queues=max(1, len(alphas)))
        self.recipe = rules.recipe
        self.action = rules.encode(alphas)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`."""
        return self._shaped(np.repeat(self.action[None], len(np.atleast_2d(obs)), axis=0), obs), state


class RandomThresholds(_Thresholds):
    """Every action of the continuous space as likely, anew each interval: what any learned policy must beat.

    RLBM as published may have learned nothing (its updates came less often than its runs ended), so that every table
    holds this row. Under the default recipe alphas are log-uniform from 2^-8 to 2^3. Each row has a generator of its
    own, spawned from the seed, so that an episode does not depend on how many are run beside it.

    Args:
        seed: of the generators.
        recipe: one of `QueueThreshold.recipes`.
        queues: of the switch.
    """

    def __init__(self, seed: int = 0, recipe: str = "default", queues: int = 2):
        self.recipe = QueueThreshold(recipe, queues=queues).recipe
        self.queues = whole("queues", queues, 1, 64)
        self.seed = whole("seed", seed, 0, 2**63 - 1)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`; samples whatever `deterministic` says. A call without `state` starts anew."""
        rows = len(np.atleast_2d(obs))
        if state is None:
            state = [np.random.default_rng((self.seed, row)) for row in range(rows)]
        actions = np.stack([stream.uniform(-1, 1, self.queues) for stream in state]).astype(np.float32)
        return self._shaped(actions, obs), state
