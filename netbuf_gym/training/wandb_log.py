"""A training's log as a run of Weights & Biases, offline unless asked otherwise: one a seed, in a group of task and learner."""

from __future__ import annotations

import secrets
from numbers import Real
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from stable_baselines3.common.logger import KVWriter

from netbuf_gym.errors import needing
from netbuf_gym.training.config import plain
from netbuf_gym.utils.files import naming, write_atomic

ID = "wandb-id.txt"
"""In a run's folder: what the run is called there, so that a resumed one goes on with it."""


class Wandb(KVWriter):
    """Writes into `wandb/` in a run's folder, and with `wandb.mode=online` to the server.

    Raises:
        MissingExtraError: wandb is not installed.
    """

    def __init__(self, run_dir: Path, config: DictConfig):
        with needing("logger=wandb", "leaderboard"):
            import wandb
        own, pair = config.wandb, f"{config.env.name}-{config.algo.name}"
        path = run_dir / ID
        with naming(path):
            if not path.is_file():
                write_atomic(path, secrets.token_hex(4))
            name = path.read_text(encoding="utf-8")
        self._run: Any = wandb.init(
            dir=run_dir,
            id=name,
            resume="allow" if own.mode == "online" else None,  # what is synced later goes on by its id
            mode=own.mode,
            project=own.project,
            entity=own.entity,
            group=own.group or pair,
            name=f"{pair}-seed{config.seed}",
            tags=list(own.tags),
            config=plain(config),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Logs the numbers of a row."""
        self._run.log({key: value for key, value in key_values.items() if isinstance(value, Real)}, step=step)

    def close(self) -> None:
        """Ends the run."""
        self._run.finish()
