"""Training log as a Weights & Biases run, offline by default: one per seed, grouped by task and learner."""

from __future__ import annotations

import secrets
from numbers import Real
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from stable_baselines3.common.logger import KVWriter

from netbuf_gym.errors import require_extra
from netbuf_gym.training.config import to_plain
from netbuf_gym.utils.files import name_in_errors, write_atomic

RUN_ID_FILE = "wandb-id.txt"
"""File in a run's folder with its id at Weights & Biases, under which a resumed run continues."""


class WandbWriter(KVWriter):
    """Writer into `wandb/` in a run's folder, and with `wandb.mode=online` to the server.

    Raises:
        MissingExtraError: wandb is not installed.
    """

    def __init__(self, run_dir: Path, config: DictConfig):
        with require_extra("logger=wandb", "leaderboard"):
            import wandb
        own, pair = config.wandb, f"{config.env.name}-{config.algo.name}"
        path = run_dir / RUN_ID_FILE
        with name_in_errors(path):
            if not path.is_file():
                write_atomic(path, secrets.token_hex(4))
            name = path.read_text(encoding="utf-8")
        self._run: Any = wandb.init(
            dir=run_dir,
            id=name,
            resume="allow" if own.mode == "online" else None,  # an offline run continues by its id when synced
            mode=own.mode,
            project=own.project,
            entity=own.entity,
            group=own.group or pair,
            name=f"{pair}-seed{config.seed}",
            tags=list(own.tags),
            config=to_plain(config),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Log the numbers of a row."""
        self._run.log({key: value for key, value in key_values.items() if isinstance(value, Real)}, step=step)

    def close(self) -> None:
        """End the run."""
        self._run.finish()
