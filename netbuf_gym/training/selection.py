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
from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError
from netbuf_gym.evaluation import comparison
from netbuf_gym.evaluation.rollout import draw
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import scenario_spec
from netbuf_gym.training.schema import FIRST_VALIDATION_SEED
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.progress import ProgressBar

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
        there = json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
        if all(there.get(key) == value for key, value in asked.items()):
            return run_dir / BEST
    with ProgressBar("validating") as bar:
        played = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds)
        found = scores(models, task, scenario, played, comparison.Counted(bar, seeds * len(models)))
    if not np.isfinite(found).any():
        raise CheckpointError(f"{run_dir}: none of its models has a {asked['score']} in the worlds of {scenario!r}")
    lower = tasks.get(task).measures.lower_is_better
    best = models[int((np.nanargmin if lower else np.nanargmax)(found))]
    write_atomic(run_dir / BEST, best.read_bytes())
    values = [float(score) if np.isfinite(score) else None for score in found]
    chosen = {"kept": str(best.relative_to(run_dir)), "timesteps": checkpoint.read(best).progress["timesteps"]}
    write_json(run_dir / SCORES, {**asked, "scores": values, **chosen})
    return run_dir / BEST


def scenario_of(config: DictConfig) -> str | dict[str, Any]:
    """The scenario that a training's models are compared in: `validation`, or the one that is trained on."""
    one = config.scenario if config.validation.name is None else config.validation
    return scenario_spec(one, tasks.get(config.env.name).rules.default_scenario)


def scores(
    models: Sequence[Path],
    task: str,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    each: Callable[[str], None] = lambda name: None,
) -> list[float]:
    """The mean score of each model, geometric where scores are ratios; NaN where no world gave it one.

    Args:
        each: is told a model's name for each world that is done.
    """
    worlds, found = draw(task, scenario, seeds), []
    for path in models:
        player = SavedAgent(checkpoint.read(path))
        runs = comparison.run(player, worlds, task=task, scenario=scenario, name=path.stem, each=each)
        values = runs.metrics[tasks.get(task).measures.score]
        found.append(mean(values[np.isfinite(values)], tasks.get(task).measures.geometric))
    return found


def mean(values: np.ndarray, geometric: bool) -> float:
    """Of scores; NaN of none."""
    if not len(values):
        return float("nan")
    return float(np.exp(np.log(values).mean()) if geometric else values.mean())
