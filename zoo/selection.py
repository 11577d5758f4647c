"""Which of a run's models is kept: of its snapshots and its last one, the one that does best in validation worlds.

Validation seeds lie between those of training and those of evaluation, so that no agent is chosen on what it is judged by.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError
from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.progress import ProgressBar
from netbuf_gym.rollout import draw
from netbuf_gym.zoo import checkpoint, running
from netbuf_gym.zoo.saved import SavedAgent
from netbuf_gym.zoo.schema import FIRST_VALIDATION_SEED

SNAPSHOTS, BEST, SCORES = "snapshots", "best.zip", "validation.json"


def snapshot(timesteps: int) -> Path:
    """Where in its run directory the model after so many steps lies."""
    return Path(SNAPSHOTS, f"{timesteps:012d}.zip")


def forget(run_dir: Path) -> None:
    """Removes what an earlier run left in a directory that is trained in from the beginning."""
    shutil.rmtree(run_dir / SNAPSHOTS, ignore_errors=True)
    for name in (BEST, SCORES):
        (run_dir / name).unlink(missing_ok=True)


def kept(run_dir: Path) -> Path:
    """The model of a trained run: the one that was chosen, or the last one where none was."""
    return run_dir / (BEST if (run_dir / BEST).is_file() else "model.zip")


def score(run_dir: Path) -> float:
    """What the model that was kept of a run came to in validation worlds."""
    found = json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
    return float(found["scores"][found["models"].index(found["kept"])])


def choose(run_dir: Path, task: str, scenario: str | dict[str, Any], seeds: int) -> Path:
    """Plays a run's snapshots and its last model in validation worlds, and keeps the best as `best.zip`.

    The scores are in `validation.json` beside it; where they are there already, of the same models and worlds, nothing is
    played again.

    Args:
        run_dir: of a run that has ended.
        task: name of the agent's.
        scenario: that the worlds are drawn from.
        seeds: number of worlds.

    Returns:
        The chosen model's file.

    Raises:
        CheckpointError: a model that cannot be read, or has no score in any of the worlds.
        OSError: it cannot be written.
    """
    models = [*sorted((run_dir / SNAPSHOTS).glob("*.zip")), run_dir / "model.zip"]
    asked = {
        "scenario": scenario,
        "seeds": [FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds - 1],
        "score": tasks.get(task).measures.score,
        "models": [str(path.relative_to(run_dir)) for path in models],
    }
    if (run_dir / BEST).is_file() and (run_dir / SCORES).is_file():
        found = json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
        if all(found.get(key) == value for key, value in asked.items()):
            return run_dir / BEST
    with ProgressBar("validating") as bar:
        scores = _scores(models, task, scenario, seeds, lambda total: running.Counted(bar, total))
    if not np.isfinite(scores).any():
        raise CheckpointError(f"{run_dir}: none of its models has a {asked['score']} in the worlds of {scenario!r}")
    lower = tasks.get(task).measures.lower_is_better
    best = models[int((np.nanargmin if lower else np.nanargmax)(scores))]
    write_atomic(run_dir / BEST, best.read_bytes())
    values = [float(score) if np.isfinite(score) else None for score in scores]
    chosen = {"kept": str(best.relative_to(run_dir)), "timesteps": checkpoint.read(best).progress["timesteps"]}
    write_json(run_dir / SCORES, {**asked, "scores": values, **chosen})
    return run_dir / BEST


def _scores(
    models: Sequence[Path],
    task: str,
    scenario: str | dict[str, Any],
    seeds: int,
    counted: Callable[[int], running.Counted],
) -> list[float]:
    """The mean score of each model, geometric where scores are ratios; NaN where no world gave it one."""
    worlds = draw(task, scenario, range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds))
    each, scores = counted(len(worlds) * len(models)), []
    for path in models:
        player = SavedAgent(checkpoint.read(path))
        runs = running.run(player, worlds, task=task, scenario=scenario, name=path.stem, each=each)
        values = runs.metrics[tasks.get(task).measures.score]
        scores.append(_mean(values[np.isfinite(values)], tasks.get(task).measures.geometric))
    return scores


def _mean(values: np.ndarray, geometric: bool) -> float:
    if not len(values):
        return float("nan")
    return float(np.exp(np.log(values).mean()) if geometric else values.mean())
