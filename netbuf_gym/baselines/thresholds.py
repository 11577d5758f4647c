"""Controllers of a switch's thresholds that look at nothing: constant ones, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.arguments import sequence, whole
from netbuf_gym.baselines.controller import Controller
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.task import Task

REACHED = 1e-3
"""By how much of itself an alpha may differ from the one asked for: actions are rounded."""


class _Thresholds(Controller):
    task = QueueThreshold.name

    @property
    def recipes(self) -> tuple[str, ...]:
        """See `Controller.recipes`."""
        return QueueThreshold.recipes

    def _shaped(self, actions: np.ndarray, obs: np.ndarray) -> np.ndarray:
        return actions if np.ndim(obs) == 2 else actions[0]


class FixedThresholds(_Thresholds):
    """The same alphas always; (1, 1) is RLBM's naive buffer and (8, 1) its sophisticated one.

    Args:
        alphas: one for each queue, within what the recipe's actions can say.
        recipe: one of `QueueThreshold.recipes`.
        actions: `"continuous"` or `"grid"`, as the environment's.

    Raises:
        ConfigError: alphas that no action stands for; the message names the nearest.
    """

    def __init__(self, alphas: Sequence[float] = (1.0, 1.0), recipe: str = "default", actions: str = "continuous"):
        self.alphas = tuple(sequence("alphas", alphas, "numbers"))
        rules = QueueThreshold(recipe, actions=actions, queues=max(1, len(self.alphas)))
        self.recipe = rules.recipe
        self.action = rules.encode(self.alphas)
        nearest = rules.decode(rules.check_actions(self.action[None], 1), None, np.empty((1, rules.queues)))[0]
        if not np.allclose(nearest, self.alphas, rtol=REACHED, atol=0):
            raise ConfigError(
                f"alphas = {shown(list(self.alphas))} cannot be said in recipe {recipe!r}; nearest: {shown(nearest.tolist())}"
            )

    def fitted(self, rules: Task) -> FixedThresholds:
        """See `Controller.fitted`."""
        if rules.queues != len(self.alphas):
            raise ConfigError(f"alphas has {len(self.alphas)} values for {rules.queues} queues; valid: as many")
        return FixedThresholds(self.alphas, rules.recipe, rules.actions)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`."""
        return self._shaped(np.repeat(np.asarray(self.action)[None], len(np.atleast_2d(obs)), axis=0), obs), state


class RandomThresholds(_Thresholds):
    """Every action as likely, anew each interval: what any learned policy must beat.

    RLBM as published may have learned nothing (its updates came less often than its runs ended), so that every table
    holds this row. Under the default recipe alphas are log-uniform from 2^-8 to 2^3. Each row has a generator of its
    own, spawned from the seed, so that an episode does not depend on how many are run beside it.

    Args:
        seed: of the generators.
        recipe: one of `QueueThreshold.recipes`.
        queues: of the switch; `evaluate` takes as many as the worlds have.
        actions: `"continuous"` or `"grid"`, as the environment's.
    """

    def __init__(self, seed: int = 0, recipe: str = "default", queues: int = 2, actions: str = "continuous"):
        self.queues = whole("queues", queues, 1, 64)
        rules = QueueThreshold(recipe, queues=self.queues, actions=actions)
        self.recipe = rules.recipe
        self.grid_size = None if rules.grid is None else len(rules.grid)
        self.seed = whole("seed", seed, 0, 2**63 - 1)

    def fitted(self, rules: Task) -> RandomThresholds:
        """See `Controller.fitted`."""
        return RandomThresholds(self.seed, rules.recipe, rules.queues, rules.actions)

    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """See `Controller.predict`; samples whatever `deterministic` says. A call without `state` starts anew."""
        rows = len(np.atleast_2d(obs))
        if state is None:
            state = [np.random.default_rng((self.seed, row)) for row in range(rows)]
        if self.grid_size is not None:
            return self._shaped(np.array([stream.integers(self.grid_size) for stream in state]), obs), state
        actions = np.stack([stream.uniform(-1, 1, self.queues) for stream in state]).astype(np.float32)
        return self._shaped(actions, obs), state
