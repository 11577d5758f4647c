"""Fig. 3: a training session of the paper's recipe, with the throughput and the buffers of every epoch."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from netbuf_gym.errors import needing
from netbuf_gym.evaluation.rollout import Stopped
from netbuf_gym.tasks.host_buffers.tracker import CONTROL
from studies.auter import paper
from studies.auter.measures import SHOWN, means
from studies.auter.settings import Settings

CELL = "recipe"
EACH = 25
"""Epochs that a row is the mean of."""
EXPERIMENT = "auter_recipe"
KEPT = ("throughput_mbps", *SHOWN, "socket_kb", "reward")
"""Measures of each epoch."""


def steps_of(settings: Settings) -> list[int]:
    """The epochs at which rows end."""
    return list(range(EACH, settings.epochs + 1, EACH))


def overrides(settings: Settings, seed: int) -> list[str]:
    """A session's arguments for `netbuf-gym train`: the paper's recipe, one world, its buffers anew every 100 epochs."""
    return [f"experiment={EXPERIMENT}", f"total_timesteps={settings.epochs}", f"seed={seed}"]


def session(settings: Settings, seed: int, stop: threading.Event) -> list[dict[str, Any]]:
    """Trains, and gives a row of means for each of `steps_of`.

    Raises:
        ConfigError: The recipe cannot be used.
        MissingExtraError: It needs what is not installed.
        Stopped: `stop` was set.
    """
    with needing("a training session", "train"):
        import torch
        from stable_baselines3.common.callbacks import BaseCallback

        from netbuf_gym.integrations.sb3 import VectorEnvAdapter
        from netbuf_gym.training import models
        from netbuf_gym.training.config import load
        from netbuf_gym.training.environment import env_kwargs, make_worlds
    torch.set_num_threads(1)
    config = load("train", overrides(settings, seed))
    kwargs = env_kwargs(config) | {"max_episode_steps": paper.RESET_EACH}
    worlds = make_worlds(config.env.id, 1, 1, kwargs)
    seen: list[list[float]] = []

    engine: Any = worlds.unwrapped.engine

    class Watch(BaseCallback):
        """Keeps what each epoch came to."""

        def _on_step(self) -> bool:
            shown, tracker = engine.show(0), engine.tracker
            rate_mbps, socket = float(tracker.rate[0]) * 1e-6, float(tracker.settings[0, CONTROL["socket_bytes"]]) / 1024
            found = [rate_mbps, *(float(shown[name]) for name in SHOWN.values()), socket]
            if not shown["time_s"]:  # the buffers and the world have just begun anew
                found = [math.nan] * len(found)
            seen.append([*found, float(self.locals["rewards"][0])])
            return not stop.is_set()

    try:
        model = models.make_model(config.algo, VectorEnvAdapter(worlds), seed)
        model.learn(settings.epochs, callback=Watch())
    finally:
        worlds.close()
    if stop.is_set():
        raise Stopped
    table = np.array(seen)
    return [dict(zip(KEPT, means(table[step - EACH : step]), strict=True)) for step in steps_of(settings)]
