"""Trained agents in campaigns."""

from __future__ import annotations

from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.training.checkpoints import digest
from studies.common.settings import Settings


def load(
    settings: Settings, scenario: Scenario, key: str = "agent", name: str = "", task: str = "", recipe: str = ""
) -> Controller:
    """An agent of a campaign, checked against one of the worlds that it will meet.

    Args:
        settings: The campaign's.
        scenario: One of its worlds.
        key: Of the settings, whose file it is.
        name: How tables call it; "": as the learned scheme.
        task: That it was trained for; "": the settings'.
        recipe: That it was trained by; "": any.

    Raises:
        CheckpointError: Its file cannot be read, or does not fit the environment.
        ConfigError: It was trained for another task, or by another recipe.
        MissingExtraError: It needs what is not installed.
    """
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
    torch.set_num_threads(1)
    file, task = getattr(settings, key), task or settings.task
    saved = checkpoint.read(file)
    if (saved.env.get("schema") or {}).get("task") != task:
        valid = f"an agent for {task}"
        raise ConfigError(f"{key} = {file!r} was trained on {saved.env.get('id')!r}; valid: {valid}")
    own = saved.env["schema"].get("recipe")
    if recipe not in ("", own):
        raise ConfigError(f"{key} = {file!r} was trained by recipe {own!r}; valid: an agent of recipe {recipe!r}")
    agent = SavedAgent(saved, name or settings.learned)
    rollout.check(agent, scenario.to_dict(), task=task)  # refuses what does not fit before any work is done
    return agent


def sha256(settings: Settings, key: str = "agent") -> str:
    """Digest of what decides in an agent of a campaign's (`netbuf_gym.training.checkpoints.digest`); "" where none plays."""
    if not set(settings.agents[key][0]).intersection(settings.schemes):
        return ""
    from netbuf_gym.training.checkpoints import checkpoint

    return digest.of_model(checkpoint.read(getattr(settings, key)).path)


def digest_of(agent: Any) -> str:
    """Digest of a saved agent; "" where it is none."""
    return digest.of_model(agent.saved.path) if hasattr(agent, "saved") else ""
