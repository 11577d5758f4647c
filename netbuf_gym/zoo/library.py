"""The trained agents that come with the package, by name: `<task>/<agent>`, e.g. `host_buffers/dqn`. Needs no learner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, shown
from netbuf_gym.utils.data import find_data
from netbuf_gym.utils.suggestions import did_you_mean

FOLDER = find_data("zoo") / "agents"
MODEL = "model.zip"
SAVED = ("checkpoint.zip", MODEL)
"""What a run directory is known by."""
OF_ITS_MACHINE = ("latency_s", "jitter_s")
"""Arguments of the environment: how long decisions take, in training what machines may need, afterwards what one does."""
NOT_ITS_OWN = ("scenario", "reward", "max_episode_steps", "agents", "task", *OF_ITS_MACHINE)
"""Arguments of the environment that change neither what an agent sees nor what it decides."""
SENDER = "congestion_window/sender"
"""The agent that real paths, live worlds and the field's suites are shown with."""


def names() -> list[str]:
    """Of the agents that there are."""
    return sorted(path.parent.relative_to(FOLDER).as_posix() for path in FOLDER.glob(f"*/*/{MODEL}"))


def path_of(agent: str | Path, what: str = "model") -> Path:
    """The file or folder of an agent that is given by a path or by a name.

    A file that exists, or a folder that holds a model, goes before an agent of that name.

    Args:
        what: how messages call it.

    Raises:
        CheckpointError: it is neither; the message lists the names.
    """
    if not isinstance(agent, (str, Path)) or not str(agent):
        raise CheckpointError(f"{what} = {shown(agent)}; valid: a path, or one of {', '.join(names())}")
    path, known = Path(agent), names()
    if path.is_file() or any((path / name).is_file() for name in SAVED):
        return path
    if isinstance(agent, str) and agent.strip("/") in known:
        return FOLDER / agent.strip("/") / MODEL
    if path.is_dir():
        raise CheckpointError(f"{agent}: holds neither model.zip nor checkpoint.zip; valid: a folder that does")
    ending = [name for name in known if name.endswith(f"/{agent}")]
    hint = f"did you mean {' or '.join(map(repr, ending))}? " if ending else did_you_mean(str(agent), known)
    valid = f"a path, or one of {', '.join(known)}"
    raise CheckpointError(f"{what} = {str(agent)!r}: no such file, nor an agent of this name; {hint}valid: {valid}")


def metrics_of(folder: Path) -> dict[str, Any]:
    """What `netbuf_gym.training.campaign` measured of the agent in a folder; empty where it did not."""
    path = folder / "metrics.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def card_of(folder: Path) -> str:
    """The card of the agent in a folder, Markdown; "" where there is none."""
    path = folder / "card.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def summary(name: str) -> dict[str, Any]:
    """An agent in short: task, environment, algorithm, recipe, what it was trained on and for how long, and its scores.

    Scores are means over its training seeds, on each scenario that it was evaluated on.
    """
    metrics = metrics_of(FOLDER / name)
    task = metrics.get("task", name.partition("/")[0])
    measures = tasks.get(task).measures
    scores = {
        scenario: _mean(part["agent"][measures.score])
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
        "steps": _steps(metrics),
        "score": measures.score,
        "lower_is_better": measures.lower_is_better,
        "scores": scores,
    }


def _steps(metrics: dict[str, Any]) -> int | None:
    """Of training, with those of what it began with."""
    own = _mean(metrics.get("training_timesteps", []))
    before = _mean([None if one is None else one["timesteps"] for one in metrics.get("begun_with", [])])
    return None if own is None else round(own + (before or 0))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
