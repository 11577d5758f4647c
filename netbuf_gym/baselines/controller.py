"""What controllers have in common with trained models: `predict`, and an evaluation over seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.vector import VectorEnv


class Controller(ABC):
    """A policy that needs no training; `predict` has the signature of stable-baselines3's models."""

    task = "congestion_window"
    """The task that it is for."""

    recipe = "default"
    """The recipe whose observations and actions it speaks."""

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
        """
        senders = kwargs.pop("senders", 1)
        kwargs = {"task": self.task, "recipe": self.recipe, **kwargs}
        env = VectorEnv(len(seeds) * senders, senders=senders, scenario=scenario, threads=threads, **kwargs)
        obs, _ = env.reset(seed=list(seeds))
        reports: list[dict[str, Any] | None] = [None] * env.num_envs
        state, starts = None, np.ones(env.num_envs, bool)
        while any(report is None for report in reports):
            actions, state = self.predict(obs, state, starts, deterministic=True)
            obs, _, _, starts, info = env.step(actions)
            for row in np.flatnonzero(starts):
                if reports[row] is None:
                    final = info["final_info"]
                    reports[row] = {key: final[key][row] for key in final if not key.startswith("_")}
        env.close()
        return reports
