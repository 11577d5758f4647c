"""Selection of a run's model: among its snapshots and its last model, the best in validation worlds.

The best has the best mean score, or the best weighted mean of that and of the score in the family of worlds where it does
worst: a mean over many families hides that an agent fails in one.

Validation seeds lie between those of training and those of evaluation, so that no agent is chosen on its evaluation worlds.
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
from netbuf_gym.evaluation.rollout import draw_worlds
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import build_scenario_spec
from netbuf_gym.training.schema import FIRST_VALIDATION_SEED
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.progress import ProgressBar

SNAPSHOTS, BEST, SCORES = "snapshots", "best.zip", "validation.json"


def format_snapshot_path(timesteps: int) -> Path:
    """Return the path of the model after so many steps, relative to its run directory."""
    return Path(SNAPSHOTS, f"{timesteps:012d}.zip")


def remove_selection(run_dir: Path) -> None:
    """Remove the snapshots and the selection of an earlier run from a run directory."""
    shutil.rmtree(run_dir / SNAPSHOTS, ignore_errors=True)
    for name in (BEST, SCORES):
        (run_dir / name).unlink(missing_ok=True)


def find_kept_model(run_dir: Path) -> Path:
    """Return the model of a trained run: the chosen one, or the last one if none was chosen."""
    return run_dir / (BEST if (run_dir / BEST).is_file() else "model.zip")


def read_validation_score(run_dir: Path) -> float:
    """Return the score in validation worlds of a run's chosen model."""
    found = json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
    return float(found["scores"][found["models"].index(found["kept"])])


def choose_model(run_dir: Path, task: str, scenario: str | dict[str, Any], seeds: int, worst_weight: float = 0.0) -> Path:
    """Play a run's snapshots and last model in validation worlds, and keep the best as `best.zip`.

    The scores are written to `validation.json` beside the models; existing scores of the same models and worlds are reused.

    Args:
        run_dir: Folder of a finished run.
        task: Name of the agent's task.
        scenario: Scenario from which the worlds are drawn.
        seeds: Number of worlds.
        worst_weight: As for `compute_score`.

    Returns:
        The chosen model's file.

    Raises:
        CheckpointError: A model cannot be read, or none has a score in any of the worlds.
        OSError: The result cannot be written.
    """
    models = [*sorted((run_dir / SNAPSHOTS).glob("*.zip")), run_dir / "model.zip"]
    asked = {
        "scenario": scenario,
        "seeds": [FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds - 1],
        "score": tasks.get(task).measures.score,
        "worst_weight": worst_weight,
        "models": [str(path.relative_to(run_dir)) for path in models],
    }
    if (run_dir / BEST).is_file() and (run_dir / SCORES).is_file():
        there = {"worst_weight": 0.0} | json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
        if all(there.get(key) == value for key, value in asked.items()):
            return run_dir / BEST
    with ProgressBar("validating") as bar:
        played = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds)
        progress = comparison.WorldProgress(bar, seeds * len(models))
        found = score_models(models, task, scenario, played, progress, worst_weight)
    if not np.isfinite(found).any():
        raise CheckpointError(f"{run_dir}: none of its models has a {asked['score']} in the worlds of {scenario!r}")
    lower = tasks.get(task).measures.lower_is_better
    best = models[int((np.nanargmin if lower else np.nanargmax)(found))]
    write_atomic(run_dir / BEST, best.read_bytes())
    values = [float(score) if np.isfinite(score) else None for score in found]
    chosen = {"kept": str(best.relative_to(run_dir)), "timesteps": checkpoint.read_model(best).progress["timesteps"]}
    write_json(run_dir / SCORES, {**asked, "scores": values, **chosen})
    return run_dir / BEST


def resolve_validation_scenario(config: DictConfig) -> str | dict[str, Any]:
    """Return the scenario in which a training's models are compared: `validation`, or the training scenario."""
    one = config.scenario if config.validation.name is None else config.validation
    return build_scenario_spec(one, tasks.get(config.env.name).rules.default_scenario)


def score_models(
    models: Sequence[Path],
    task: str,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    each: Callable[[str], None] = lambda name: None,
    worst_weight: float = 0.0,
) -> list[float]:
    """Return the score of each model, `compute_score`; NaN if no world gave one.

    Args:
        models: Files of the models.
        task: Name of the task.
        scenario: Scenario from which the worlds are drawn.
        seeds: Seeds of the worlds.
        each: Called with a model's name after each world.
        worst_weight: As for `compute_score`; a family is the worlds of one name.
    """
    worlds, found, measures = draw_worlds(task, scenario, seeds), [], tasks.get(task).measures
    families = [world.scenario.name for world in worlds]
    for path in models:
        player = SavedAgent(checkpoint.read_model(path))
        runs = comparison.run(player, worlds, task=task, scenario=scenario, name=path.stem, each=each)
        found.append(compute_score(runs.metrics[measures.score], families, measures, worst_weight))
    return found


def compute_score(values: np.ndarray, families: Sequence[str], measures: Measures, worst_weight: float = 0.0) -> float:
    """Return the mean of scores, or that of the mean and the worst family's mean, which weighs `worst_weight` times as much.

    Means are geometric where scores are ratios. NaN if no world has a score.

    Args:
        values: Score in each world; NaN: none.
        families: Family of each world.
        measures: Measures of the task.
        worst_weight: 0 or more.
    """
    known, geometric = np.isfinite(values), measures.geometric
    mean = compute_mean_score(values[known], geometric)
    if not worst_weight or not known.any():
        return mean
    scores, names = values[known], np.array(families)[known]
    means = [compute_mean_score(scores[names == family], geometric) for family in np.unique(names)]
    both = np.array([mean, max(means) if measures.lower_is_better else min(means)])
    weights = np.array([1.0, worst_weight]) / (1.0 + worst_weight)
    return float(np.exp(weights @ np.log(both)) if geometric else weights @ both)


def compute_mean_score(values: np.ndarray, geometric: bool) -> float:
    """Return the mean of scores; NaN for none."""
    if not len(values):
        return float("nan")
    return float(np.exp(np.log(values).mean()) if geometric else values.mean())
