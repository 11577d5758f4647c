"""Training session of the paper's recipe (Fig. 3), with throughput and buffers of every epoch."""

from __future__ import annotations

import math
import threading
from typing import Any, cast

import numpy as np

from netbuf_gym.errors import require_extra
from netbuf_gym.evaluation.rollout import Stopped
from netbuf_gym.tasks.host_buffers.tracker import CONTROL
from studies.auter import paper
from studies.auter.auter_measures import SHOWN, average_columns
from studies.auter.auter_settings import Settings

CELL = "recipe"
EACH = 25
"""Epochs averaged in each row."""
EXPERIMENT = "auter_recipe"
KEPT = ("throughput_mbps", *SHOWN, "socket_kb", "reward")
"""Measures recorded in each epoch."""


def list_steps(settings: Settings) -> list[int]:
    """Return the epochs at which rows end."""
    return list(range(EACH, settings.epochs + 1, EACH))


def build_overrides(settings: Settings, seed: int) -> list[str]:
    """Return a session's arguments for `netbuf-gym train` with the paper's recipe."""
    return [f"experiment={EXPERIMENT}", f"total_timesteps={settings.epochs}", f"seed={seed}"]


def run_session(settings: Settings, seed: int, stop: threading.Event) -> list[dict[str, Any]]:
    """Train in one world, reset every 100 epochs, and return a row of means for each of `list_steps`.

    Raises:
        ConfigError: The recipe cannot be used.
        MissingExtraError: The extra `train` is not installed.
        Stopped: `stop` was set.
    """
    with require_extra("a training session", "train"):
        import torch
        from stable_baselines3.common.callbacks import BaseCallback

        from netbuf_gym.integrations.sb3 import VectorEnvAdapter
        from netbuf_gym.training import models
        from netbuf_gym.training.config import load
        from netbuf_gym.training.environment import build_env_kwargs, make_worlds
    torch.set_num_threads(1)
    config = load("train", build_overrides(settings, seed))
    kwargs = build_env_kwargs(config) | {"max_episode_steps": paper.RESET_EACH}
    worlds = make_worlds(config.env.id, 1, 1, kwargs)
    seen: list[list[float]] = []

    engine = cast(Any, worlds.unwrapped).engine

    class Watch(BaseCallback):
        """Callback that records the measures of each epoch."""

        def _on_step(self) -> bool:
            shown, tracker = engine.show(0), engine.tracker
            rate_mbps, socket = float(tracker.rate[0]) * 1e-6, float(tracker.settings[0, CONTROL["socket_bytes"]]) / 1024
            found = [rate_mbps, *(float(shown[name]) for name in SHOWN.values()), socket]
            if not shown["time_s"]:  # the buffers and the world have just been reset
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
    return [dict(zip(KEPT, average_columns(table[step - EACH : step]), strict=True)) for step in list_steps(settings)]
