"""Trained agents in campaigns."""

from __future__ import annotations

from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.training.checkpoints import digest
from studies.common.settings import Settings


def load_agent(
    settings: Settings, scenario: Scenario, key: str = "agent", name: str = "", task: str = "", recipe: str = ""
) -> Controller:
    """Load an agent of a campaign and check it against one of the worlds that it will meet.

    Args:
        settings: Settings of the campaign.
        scenario: One of the campaign's worlds.
        key: Key of the settings that holds the agent's file.
        name: Name in tables; "": that of the learned scheme.
        task: Task that the agent must have been trained for; "": that of the settings.
        recipe: Recipe that the agent must have been trained by; "": any.

    Raises:
        CheckpointError: The file cannot be read, or does not fit the environment.
        ConfigError: The agent was trained for another task, or by another recipe.
        MissingExtraError: A package that the agent needs is not installed.
    """
    with require_extra("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
    torch.set_num_threads(1)
    file, task = getattr(settings, key), task or settings.task
    saved = checkpoint.read_model(file)
    if (saved.env.get("schema") or {}).get("task") != task:
        valid = f"an agent for {task}"
        raise ConfigError(f"{key} = {file!r} was trained on {saved.env.get('id')!r}; valid: {valid}")
    own = saved.env["schema"].get("recipe")
    if recipe not in ("", own):
        raise ConfigError(f"{key} = {file!r} was trained by recipe {own!r}; valid: an agent of recipe {recipe!r}")
    agent = SavedAgent(saved, name or settings.learned)
    rollout.check_controller(agent, scenario.to_dict(), task=task)  # fail before any work is done
    return agent


def compute_agent_digest(settings: Settings, key: str = "agent") -> str:
    """Return the digest of a campaign's agent (`netbuf_gym.training.checkpoints.digest`); "" if none plays."""
    if not set(settings.agents[key][0]).intersection(settings.schemes):
        return ""
    from netbuf_gym.training.checkpoints import checkpoint

    return digest.compute_model_digest(checkpoint.read_model(getattr(settings, key)).path)


def compute_controller_digest(agent: Any) -> str:
    """Return the digest of a saved agent; "" for any other controller."""
    return digest.compute_model_digest(agent.saved.path) if hasattr(agent, "saved") else ""
