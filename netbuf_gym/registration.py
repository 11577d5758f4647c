"""Makes the environments known to Gymnasium. Importing `netbuf_gym` does it; doing it again changes nothing."""

from __future__ import annotations

import gymnasium as gym

ENVIRONMENTS = {
    "netbuf/CongestionWindow-v0": {"task": "congestion_window"},
    "netbuf/QueueThreshold-v0": {"task": "queue_threshold"},
}
"""Environment ids and the keyword arguments that they stand for."""


def register_environments() -> None:
    """Registers every id of `ENVIRONMENTS` that Gymnasium does not know yet."""
    for name, kwargs in ENVIRONMENTS.items():
        if name not in gym.registry:
            gym.register(
                name, entry_point="netbuf_gym.env:make", vector_entry_point="netbuf_gym.vector:VectorEnv", kwargs=kwargs
            )
