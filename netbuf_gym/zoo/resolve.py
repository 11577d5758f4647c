"""Who is judged by a suite: a controller of its task by name, one action for ever, or a trained agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, code_references
from netbuf_gym.errors import CheckpointError, ConfigError, needing, shown
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites.suite import Cell, Suite
from netbuf_gym.training.checkpoints import digest
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.zoo import library


def controller(word: str, suite: Suite) -> Controller:
    """What plays a suite; see `of_task`."""
    return of_task(word, suite.task, f"suite {suite.name}")


def of_task(word: str, task: str, where: str) -> Controller:
    """What plays a task.

    Args:
        word: a controller's name (`netbuf-gym list controllers`); `constant:ACTION`, the action as JSON; the file or folder of
            a model, or the name of an agent that comes with the package; code of the user's
            (`netbuf_gym.controllers.code_references`).
        task: its name.
        where: what has the worlds that it is to meet, for messages.

    Raises:
        ConfigError: nothing of the kind; an agent of another task; a file of the user's that is not there.
        ControlError: code of the user's that does not compile, or cannot be imported.
        CheckpointError: a model that cannot be read.
        MissingExtraError: a model needs what is not installed.
    """
    known = tasks.get(task).controllers
    code_references.require_file(word, "controller")
    if word in known or word.startswith(rollout.CONSTANT):
        return rollout.controller_of(word, task)
    try:
        path = library.path_of(word, "controller")
    except CheckpointError:
        valid = f"a controller ({', '.join(known)}), constant:ACTION, a model's file or an agent's name, mine.cc, mine.py:NAME"
        hint = did_you_mean(word, [*known, *library.names()])
        raise ConfigError(f"controller = {shown(word)} is nothing that plays {task}; {hint}valid: {valid}") from None
    return _agent(path, word, task, where)


def _agent(path: Path, word: str, task: str, where: str) -> Controller:
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
    torch.set_num_threads(1)
    saved = checkpoint.read(path)
    own = (saved.env.get("schema") or {}).get("task")
    if own != task:
        raise ConfigError(f"controller = {shown(word)} is an agent of task {own!r}; {where} is of task {task!r}")
    return SavedAgent(saved, word)


def require_fit(one: Controller, cells: Sequence[Cell], suite: Suite) -> None:
    """Refuses what does not fit a family before any work is done.

    Raises:
        ConfigError, CheckpointError: it cannot play in a cell, as when its observations are not today's; names the family.
    """
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.family, cell)
    for family, cell in first.items():
        try:
            rollout.check(one, cell.scenario, task=suite.task, agents=cell.agents)
        except (ConfigError, CheckpointError) as error:
            raise type(error)(f"{one.name} cannot play the family {family!r} of suite {suite.name}: {error}") from None


def digest_of(word: str) -> str | None:
    """The digest of a model (`netbuf_gym.training.checkpoints.digest`); None of what is none."""
    try:
        path = library.path_of(word)
        if path.is_dir():
            path = next(path / name for name in library.SAVED if (path / name).is_file())
        return digest.of_model(path)
    except CheckpointError:
        return None
