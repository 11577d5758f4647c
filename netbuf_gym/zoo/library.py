"""Trained agents of the package by name: `<task>/<agent>`, e.g. `host_buffers/dqn`. Needs no learner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, quote
from netbuf_gym.utils.data import find_data
from netbuf_gym.utils.suggestions import did_you_mean

FOLDER = find_data("zoo") / "agents"
MODEL = "model.zip"
SAVED_FILES = ("checkpoint.zip", MODEL)
"""Files that mark a run directory."""
TIMING_ARGUMENTS = ("latency_s", "jitter_s")
"""Environment arguments for the time that decisions take: in training a range of machines, afterwards the machine at hand."""
NEUTRAL_ARGUMENTS = ("scenario", "reward", "max_episode_steps", "agents", "task", *TIMING_ARGUMENTS)
"""Environment arguments that change neither what an agent observes nor what it decides."""
FEW_ACTIONS, MOSTLY = 3, 0.75
"""Number of different actions, and mean share of the most frequent one, of agents that mostly decide the same."""
DECIDES = ", "
"""Text between the title of a card and what `describe_decisions` says."""
SENDER = "congestion_window/sender"
"""Agent that real paths, live worlds and the field's suites are shown with."""


def names() -> list[str]:
    """Return the names of the package's agents, sorted."""
    return sorted(path.parent.relative_to(FOLDER).as_posix() for path in FOLDER.glob(f"*/*/{MODEL}"))


def find_agent_path(agent: str | Path, what: str = "model") -> Path:
    """Return the file or folder of an agent given by path or name.

    An existing file, or a folder that holds a model, takes precedence over an agent of that name.

    Args:
        agent: Path or name.
        what: Word for the agent in messages.

    Raises:
        CheckpointError: Neither a path nor a name; the message lists the names.
    """
    if not isinstance(agent, (str, Path)) or not str(agent):
        raise CheckpointError(f"{what} = {quote(agent)}; valid: a path, or one of {', '.join(names())}")
    path, known = Path(agent), names()
    if path.is_file() or any((path / name).is_file() for name in SAVED_FILES):
        return path
    if isinstance(agent, str) and agent.strip("/") in known:
        return FOLDER / agent.strip("/") / MODEL
    if path.is_dir():
        raise CheckpointError(f"{agent}: holds neither model.zip nor checkpoint.zip; valid: a folder that does")
    ending = [name for name in known if name.endswith(f"/{agent}")]
    hint = f"did you mean {' or '.join(map(repr, ending))}? " if ending else did_you_mean(str(agent), known)
    valid = f"a path, or one of {', '.join(known)}"
    raise CheckpointError(f"{what} = {str(agent)!r}: no such file, nor an agent of this name; {hint}valid: {valid}")


def read_metrics(folder: Path) -> dict[str, Any]:
    """Return the measurements of `netbuf_gym.training.campaign` of the agent in a folder; empty if there are none."""
    path = folder / "metrics.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def describe_decisions(metrics: dict[str, Any]) -> str:
    """Return in words that an agent mostly decides the same, as `netbuf_gym.zoo.decisions` measured it; "" if not."""
    one = metrics.get("decisions")
    if not one or (one["actions"] > FEW_ACTIONS and one["share"][1] < MOSTLY):
        return ""
    within = f"of {one['decisions']:,} decisions in {one['worlds']} worlds of {one['suite']}"
    if one["actions"] == 1:
        return f"takes one action in all {within}"
    low, mean, high = (f"{100 * share:.0f}" for share in one["share"])
    most = f"one of them in {low} to {high} % of a world's ({mean} % on average)"
    return f"takes {one['actions']} actions in all {within}, {most}"


def read_card(folder: Path) -> str:
    """Return the card of the agent in a folder, Markdown; "" if there is none."""
    path = folder / "card.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def summarise_agent(name: str) -> dict[str, Any]:
    """Return an agent's task, environment, algorithm, recipe, training scenario, steps and scores, JSON-able.

    Scores are means over training seeds, on each scenario that the agent was evaluated on.
    """
    metrics = read_metrics(FOLDER / name)
    task = metrics.get("task", name.partition("/")[0])
    measures = tasks.get(task).measures
    scores = {
        scenario: _average_known(part["agent"][measures.score])
        for scenario, part in metrics.get("scenarios", {}).items()
        if measures.score in part.get("agent", {})
    }
    return {
        "name": name,
        "task": task,
        "environment": metrics.get("env"),
        "algorithm": metrics.get("algo"),
        "recipe": metrics.get("recipe"),
        "trained_on": metrics.get("training_scenario"),
        "steps": _count_training_steps(metrics),
        "score": measures.score,
        "lower_is_better": measures.lower_is_better,
        "scores": scores,
    }


def _count_training_steps(metrics: dict[str, Any]) -> int | None:
    """Return the training steps, including those of the agents that training began with."""
    own = _average_known(metrics.get("training_timesteps", []))
    before = _average_known([None if one is None else one["timesteps"] for one in metrics.get("begun_with", [])])
    return None if own is None else round(own + (before or 0))


def _average_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
