"""What agents do not see of their worlds (`Task.hidden`), as a learner is given it in training to make its memory guess it."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.engine import Engine
from netbuf_gym.integrations.sb3 import VectorEnvAdapter


class Hidden:
    """What is hidden now, world by world as their scenarios change.

    Args:
        worlds: those that are learned in.

    Attributes:
        names: of what is hidden in them.
    """

    def __init__(self, worlds: VectorEnvAdapter):
        native: Any = worlds.env.unwrapped
        self._engine: Engine = native.engine
        self.names = self._engine.task.hidden
        self._scenarios: list[Any] = [None] * self._engine.worlds
        self._spans = np.full((self._engine.worlds, self._engine.agents, len(self.names), 1, 2), np.inf)

    def now(self) -> np.ndarray:
        """Whether each is there, float32 `(rows, names)`, 0 or 1."""
        for world, scenario in enumerate(self._engine.scenarios):
            if scenario is not self._scenarios[world]:
                self._scenarios[world] = scenario
                self._take(world, self._engine.task.present(scenario))
        time_s = (self._engine.time_ns * 1e-9)[:, None, None, None]
        there = (self._spans[..., 0] <= time_s) & (time_s < self._spans[..., 1])
        return there.any(-1).reshape(-1, len(self.names)).astype(np.float32)

    def _take(self, world: int, present: Any) -> None:
        most = max((len(spans) for agent in present for spans in agent), default=0)
        if most > self._spans.shape[3]:
            more = np.full((*self._spans.shape[:3], most - self._spans.shape[3], 2), np.inf)
            self._spans = np.concatenate((self._spans, more), axis=3)
        self._spans[world] = np.inf
        for agent, of_agent in enumerate(present):
            for name, spans in enumerate(of_agent):
                if spans:
                    self._spans[world, agent, name, : len(spans)] = spans
