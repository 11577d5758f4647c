"""Makes the environments known to Gymnasium. Importing `netbuf_gym` does it; doing it again changes nothing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from netbuf_gym.errors import ConfigError

ENVIRONMENTS = {
    "netbuf/CongestionWindow-v0": {"task": "congestion_window"},
    "netbuf/QueueThreshold-v0": {"task": "queue_threshold"},
}
"""Environment ids and the keyword arguments that they stand for."""


class OfItsTask:
    """An environment that an id of another task cannot be given to, as `gym.make(id, task=...)` would."""

    engine: Any
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium's registry made it, None when it was made without."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        task, own = self.engine.task.name, None if spec is None else ENVIRONMENTS.get(spec.id, {}).get("task")
        if own not in (None, task):
            raise ConfigError(f"task = {task!r} is not that of {spec.id}; valid: {own!r}, which need not be said")
        self._spec = spec


def register_environments() -> None:
    """Registers every id of `ENVIRONMENTS` that Gymnasium does not know yet."""
    for name, kwargs in ENVIRONMENTS.items():
        if name not in gym.registry:
            gym.register(
                name, entry_point="netbuf_gym.env:make", vector_entry_point="netbuf_gym.vector:VectorEnv", kwargs=kwargs
            )
