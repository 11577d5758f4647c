"""Who plays on both plants, by task: trained agents as they are, rules, congestion controls, fixed and random actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers import Controller, InWorld, Policy
from netbuf_gym.evaluation import rollout
from studies.live.worlds import RECEIVER, SENDER, SWITCH

LEARNED = "agent"
SCHEMES: Mapping[str, tuple[str, ...]] = {
    SENDER: (LEARNED, "cubic", "bbr", "newreno", "queue_target", "keep", "random"),
    RECEIVER: (LEARNED, "nuwa", "cubic", "bbr", "newreno", "keep", "random"),
    SWITCH: (LEARNED, "naive", "dt", "random"),
}
NAMES = tuple(dict.fromkeys(name for names in SCHEMES.values() for name in names))
_CONTROLS = (LEARNED, "cubic", "bbr", "newreno")
RANKED: Mapping[str, tuple[str, ...]] = {SENDER: _CONTROLS, RECEIVER: _CONTROLS, SWITCH: SCHEMES[SWITCH]}
"""Those whose order is compared."""

BINS = 12
"""Of the distribution of actions."""


class Observed(Controller):
    """A controller whose actions are counted.

    Attributes:
        shares: Of the actions, `(BINS,)`: of `Discrete` ones each action's, of a `Box` those of so many equal parts of its
            range; NaN before the first.
    """

    def __init__(self, controller: Controller):
        self._controller, self.name, self.recipes = controller, controller.name, controller.recipes
        self._counts = np.zeros(BINS)

    @property
    def env(self) -> dict[str, Any]:
        """The controller's own."""
        return self._controller.env

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """The controller's own."""
        return self._controller.playing(env)

    @property
    def shares(self) -> np.ndarray:
        """See above."""
        total = self._counts.sum()
        return self._counts / total if total else np.full(BINS, np.nan)

    def place(self, scenario: Any) -> Any:
        """The controller's own."""
        return self._controller.place(scenario)

    def start(self, rules: Any, seeds: Any) -> Policy | None:
        """The controller's, whose actions are counted from now on."""
        policy = self._controller.start(rules, seeds)
        if policy is None:
            return None

        def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            actions, state = policy(observations, state, starts)
            self._counts += binned(np.asarray(actions), rules.action_space)
            return actions, state

        return decide


def binned(actions: np.ndarray, space: Any) -> np.ndarray:
    """How many of them are in each of `BINS`."""
    if isinstance(space, gym.spaces.Discrete):
        places = actions.ravel() * BINS // max(int(space.n), BINS)
    else:
        share = (actions - space.low) / (space.high - space.low)
        places = np.clip((share * BINS).astype(np.int64), 0, BINS - 1).ravel()
    return np.bincount(places, minlength=BINS).astype(float)


def observed(controller: Controller) -> Controller:
    """The controller, its actions counted where it decides any."""
    return controller if isinstance(controller, InWorld) else Observed(controller)


def controller_of(name: str, task: str) -> Controller:
    """One of a task's by its name."""
    return rollout.controller_of(name, task)
