"""Controllers by name: a task's own, a constant action, a trained agent, or the user's code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, code_references
from netbuf_gym.errors import CheckpointError, ConfigError, quote, require_extra
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import Cell, Suite
from netbuf_gym.training.checkpoints import digest
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.zoo import library

if TYPE_CHECKING:
    from netbuf_gym.training.checkpoints.checkpoint import SavedModel


def resolve_controller(word: str, suite: Suite) -> Controller:
    """Return the controller that a word names for a suite; see `resolve_task_controller`."""
    return resolve_task_controller(word, suite.task, f"suite {suite.name}")


def resolve_task_controller(word: str, task: str, where: str) -> Controller:
    """Return the controller that a word names for a task.

    Args:
        word: Controller's name (`netbuf-gym list controllers`); `constant:ACTION`, the action as JSON; file or folder of a
            model, or name of an agent of the package; the user's code (`netbuf_gym.controllers.code_references`).
        task: Name of the task.
        where: Suite or environment that the controller is to play, for messages.

    Raises:
        ConfigError: An unknown word; an agent of another task; a missing file of the user's.
        ControlError: The user's code does not compile, or cannot be imported.
        CheckpointError: A model that cannot be read.
        MissingExtraError: A model needs a package that is not installed.
    """
    known = tasks.get(task).controllers
    code_references.require_file(word, "controller")
    if word in known or word.startswith(rollout.CONSTANT):
        return rollout.get_controller(word, task)
    try:
        path = library.find_agent_path(word, "controller")
    except CheckpointError:
        valid = f"a controller ({', '.join(known)}), constant:ACTION, a model's file or an agent's name, mine.cc, mine.py:NAME"
        hint = did_you_mean(word, [*known, *library.names()])
        raise ConfigError(f"controller = {quote(word)} is no controller of {task}; {hint}valid: {valid}") from None
    return _load_agent(path, word, task, where)


def _load_agent(path: Path, word: str, task: str, where: str) -> Controller:
    with require_extra("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
    torch.set_num_threads(1)
    saved = checkpoint.read_model(path)
    own = (saved.env.get("schema") or {}).get("task")
    if own != task:
        raise ConfigError(f"controller = {quote(word)} is an agent of task {own!r}; {where} is of task {task!r}")
    return SavedAgent(saved, word)


def require_fit(one: Controller, cells: Sequence[Cell], suite: Suite) -> None:
    """Check, before any work is done, that a controller fits the first cell of each family.

    Raises:
        ConfigError, CheckpointError: The controller cannot play in a cell, e.g. because its observations are not today's; the
            message names the family.
    """
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.family, cell)
    for family, cell in first.items():
        try:
            rollout.check_controller(one, cell.scenario, task=suite.task, agents=cell.agents)
        except (ConfigError, CheckpointError) as error:
            raise type(error)(f"{one.name} cannot play the family {family!r} of suite {suite.name}: {error}") from None


def compute_model_digest(word: str) -> str | None:
    """Return the digest of the model that a word names (`netbuf_gym.training.checkpoints.digest`); None if it names none."""
    try:
        path = library.find_agent_path(word)
        if path.is_dir():
            path = next(path / name for name in library.SAVED_FILES if (path / name).is_file())
        return digest.compute_model_digest(path)
    except CheckpointError:
        return None


def describe_agent(saved: SavedModel) -> dict[str, Any]:
    """Return the facts of an agent, JSON-able: algo, seed, recipe, timesteps."""
    config, schema = saved.config, saved.env["schema"]
    known = {"algo": str(config.algo.name), "seed": int(config.seed), "recipe": schema.get("recipe")}
    return {**known, "timesteps": int(saved.progress["timesteps"])}
