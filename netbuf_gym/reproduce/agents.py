"""Trained agents in campaigns."""

from __future__ import annotations

import hashlib
from pathlib import Path

from netbuf_gym import rollout
from netbuf_gym.contenders import Contender
from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.reproduce.settings import Settings
from netbuf_gym.scenarios import Scenario


def load(settings: Settings, scenario: Scenario) -> Contender:
    """The agent of a campaign, under its scheme's name, checked against one of the worlds that it will meet.

    Raises:
        CheckpointError: Its file cannot be read, or does not fit the environment.
        ConfigError: It was trained for another task.
        MissingExtraError: It needs what is not installed.
    """
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.zoo import checkpoint
        from netbuf_gym.zoo.saved import SavedAgent
    torch.set_num_threads(1)
    saved = checkpoint.read(settings.agent)
    if (saved.env.get("schema") or {}).get("task") != settings.task:
        valid = f"an agent for {settings.task}"
        raise ConfigError(f"agent = {settings.agent!r} was trained on {saved.env.get('id')!r}; valid: {valid}")
    agent = SavedAgent(saved, settings.learned)
    rollout.check(agent, scenario.to_dict(), task=settings.task)  # refuses what does not fit before any work is done
    return agent


def sha256(settings: Settings) -> str:
    """Of the file of a campaign's agent; "" where none plays."""
    if settings.learned not in settings.schemes:
        return ""
    from netbuf_gym.zoo import checkpoint

    return hashlib.sha256(Path(checkpoint.read(settings.agent).path).read_bytes()).hexdigest()
