"""What controllers have in common with trained models: `predict`, and an evaluation over seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.arguments import whole
from netbuf_gym.engine import take_agents
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.tasks.task import Task
from netbuf_gym.vector import VectorEnv

MAX_SEED = (1 << 63) - 1


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    """Seeds of episodes as a list of ints.

    Raises:
        ConfigError: none, or one that is no whole number from 0 to 2^63 - 1.
    """
    if not isinstance(seeds, (Sequence, np.ndarray)) or isinstance(seeds, str):
        raise ConfigError(f"seeds = {shown(seeds)}; valid: whole numbers, one for each episode")
    if not len(seeds):
        raise ConfigError("seeds is empty; valid: one for each episode")
    return [whole(f"seeds[{k}]", seed, 0, MAX_SEED) for k, seed in enumerate(seeds)]


class Controller(ABC):
    """A policy that needs no training; `predict` has the signature of stable-baselines3's models."""

    task = "congestion_window"
    """The task that it is for."""

    recipe = "default"
    """The recipe whose observations and actions it speaks."""

    def fitted(self, rules: Task) -> Controller:
        """This controller for environments of other rules: recipe, actions, number of queues.

        Raises:
            ConfigError: it does not speak the recipe.
        """
        if rules.recipe != self.recipe:
            raise ConfigError(f"{type(self).__name__} does not speak recipe {rules.recipe!r}; valid: {self.recipe!r}")
        return self

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes that it can be `fitted` to."""
        return (self.recipe,)

    @abstractmethod
    def predict(
        self, obs: np.ndarray, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """Actions for observations.

        Args:
            obs: `(rows, features)`, or `(features,)` of one agent.
            state: what the last call returned, None at the start.
            episode_start: bool `(rows,)`, whose episode has just begun.
            deterministic: do not sample, where the controller could.

        Returns:
            actions `(rows, ...)` as the task's space says (one alone: without the first axis), and the state for the
            next call.
        """

    def evaluate(
        self, scenario: str | dict[str, Any], seeds: Sequence[int], threads: int = 1, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """One episode for each seed; `kwargs` go to the environment.

        Returns:
            the report of every agent, seed by seed.

        Raises:
            ConfigError: no seeds, or arguments that the environment refuses.
        """
        seeds = checked_seeds(seeds)
        kwargs = {"task": self.task, "recipe": self.recipe, **kwargs}
        agents = take_agents(kwargs)
        env = VectorEnv(len(seeds) * agents, agents=agents, scenario=scenario, threads=threads, **kwargs)
        ours = self.fitted(env.engine.task)
        obs, _ = env.reset(seed=seeds)
        reports: list[dict[str, Any] | None] = [None] * env.num_envs
        state, starts = None, np.ones(env.num_envs, bool)
        while any(report is None for report in reports):
            actions, state = ours.predict(obs, state, starts, deterministic=True)
            obs, _, _, starts, info = env.step(actions)
            for row in np.flatnonzero(starts):
                if reports[row] is None:
                    final = info["final_info"]
                    reports[row] = {key: final[key][row] for key in final if not key.startswith("_")}
        env.close()
        return reports
