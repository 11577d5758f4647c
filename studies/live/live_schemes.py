"""Schemes on both plants, by task: trained agents as they are, rules, congestion controls, fixed and random actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers import Controller, InWorld, Policy
from netbuf_gym.evaluation import rollout
from studies.live.live_worlds import PHASED, RECEIVER, SENDER, SWITCH

LEARNED, RANDOM = "agent", "random"
SCHEMES: Mapping[str, tuple[str, ...]] = {
    SENDER: (LEARNED, "cubic", "bbr", "newreno", "queue_target", "keep", RANDOM),
    RECEIVER: (LEARNED, "nuwa", "cubic", "bbr", "newreno", "keep", RANDOM),
    SWITCH: (LEARNED, "naive", "dt", RANDOM),
}
NAMES = tuple(dict.fromkeys(name for names in SCHEMES.values() for name in names))
_CONTROLS = (LEARNED, "cubic", "bbr", "newreno")
RANKED: Mapping[str, tuple[str, ...]] = {SENDER: _CONTROLS, RECEIVER: _CONTROLS, SWITCH: SCHEMES[SWITCH]}
"""Schemes whose order is compared, by task."""

RUNS, SIMULATED_RUNS = 5, 40
"""Runs on the kernel of cells that differ from run to run, and in the simulator of those that depend on a phase."""


def count_runs(task: str, world: str) -> int:
    """Return the runs of a cell on the kernel: more of switches, where flows arrive at random, and of `PHASED` worlds."""
    return RUNS if task == SWITCH or (task == SENDER and world in PHASED) else 1


def count_simulated_runs(task: str, world: str, scheme: str) -> int:
    """Return the runs of a cell in the simulator; those of random actions take the same ones as on the kernel."""
    return SIMULATED_RUNS if task == SENDER and world in PHASED and scheme != RANDOM else count_runs(task, world)


BINS = 12
"""Number of bins of the distribution of actions."""


class CountedController(Controller):
    """Controller whose actions are counted.

    Attributes:
        shares: Distribution of the actions, `(BINS,)`: for `Discrete` spaces by action, for a `Box` by equal parts of its
            range; NaN before the first action.
    """

    def __init__(self, controller: Controller):
        self._controller, self.name, self.recipes = controller, controller.name, controller.recipes
        self._counts = np.zeros(BINS)

    @property
    def env(self) -> dict[str, Any]:
        """Environment arguments of the controller."""
        return self._controller.env

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """Return the merged arguments of the controller."""
        return self._controller.merge_arguments(env)

    @property
    def shares(self) -> np.ndarray:
        """Distribution of the actions; see the class."""
        total = self._counts.sum()
        return self._counts / total if total else np.full(BINS, np.nan)

    def place(self, scenario: Any) -> Any:
        """Place the controller in a scenario."""
        return self._controller.place(scenario)

    def start(self, rules: Any, seeds: Any) -> Policy | None:
        """Return the policy of the controller with its actions counted; None if the controller has none."""
        policy = self._controller.start(rules, seeds)
        if policy is None:
            return None

        def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            actions, state = policy(observations, state, starts)
            self._counts += count_actions_by_bin(np.asarray(actions), rules.action_space)
            return actions, state

        return decide


def count_actions_by_bin(actions: np.ndarray, space: Any) -> np.ndarray:
    """Return the number of actions in each of `BINS` bins."""
    if isinstance(space, gym.spaces.Discrete):
        places = actions.ravel() * BINS // max(int(space.n), BINS)
    else:
        share = (actions - space.low) / (space.high - space.low)
        places = np.clip((share * BINS).astype(np.int64), 0, BINS - 1).ravel()
    return np.bincount(places, minlength=BINS).astype(float)


def count_actions(controller: Controller) -> Controller:
    """Return the controller with its actions counted if it takes any."""
    return controller if isinstance(controller, InWorld) else CountedController(controller)


def get_controller(name: str, task: str) -> Controller:
    """Return a task's controller by name."""
    return rollout.get_controller(name, task)
