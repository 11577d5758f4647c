"""Selection of a run's model: among its snapshots and its last model, the best in validation worlds.

The best has the best mean score, or the best weighted mean of that and of the score in the family of worlds where it does
worst: a mean over many families hides that an agent fails in one. Violated constraints cost score.

Validation seeds lie between those of training and those of evaluation, so that no agent is chosen on its evaluation worlds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError
from netbuf_gym.evaluation import comparison
from netbuf_gym.evaluation.rollout import draw_worlds
from netbuf_gym.tasks.metrics import Score
from netbuf_gym.training import constraints
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import build_scenario_spec
from netbuf_gym.training.criteria import Criterion
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


@dataclass(frozen=True)
class Judgement:
    """Judgement of a model by a criterion: its score, less penalties, and the violations of constraints."""

    score: float
    violations: constraints.Violations


def choose_model(
    run_dir: Path, task: str, scenario: str | dict[str, Any], seeds: int, criterion: Criterion | None = None
) -> Path:
    """Play a run's snapshots and last model in validation worlds, and keep the best as `best.zip`.

    The scores are written to `validation.json` beside the models; existing scores of the same models and worlds are reused.

    Args:
        run_dir: Folder of a finished run.
        task: Name of the agent's task.
        scenario: Scenario from which the worlds are drawn.
        seeds: Number of worlds.
        criterion: Criterion; None: the mean of the score that ranks the task's controllers.

    Returns:
        The chosen model's file.

    Raises:
        CheckpointError: A model cannot be read, or none has a score in any of the worlds.
        OSError: The result cannot be written.
    """
    criterion = criterion or Criterion(tasks.get(task).measures.get_score())
    models = [*sorted((run_dir / SNAPSHOTS).glob("*.zip")), run_dir / "model.zip"]
    asked = {
        "scenario": scenario,
        "seeds": [FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds - 1],
        "score": criterion.score.metric,
        "worst_weight": criterion.worst_weight,
        "constraints": constraints.to_plain_constraints(criterion.constraints),
        "models": [str(path.relative_to(run_dir)) for path in models],
    }
    if (run_dir / BEST).is_file() and (run_dir / SCORES).is_file():
        there = {"worst_weight": 0.0, "constraints": []} | json.loads((run_dir / SCORES).read_text(encoding="utf-8"))
        if all(there.get(key) == value for key, value in asked.items()):
            return run_dir / BEST
    with ProgressBar("validating") as bar:
        played = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + seeds)
        references = constraints.list_references(criterion.constraints)
        progress = comparison.WorldProgress(bar, seeds * (len(models) + len(references)))
        judged = judge_models(models, task, scenario, played, progress, criterion)
    found = [one.score for one in judged]
    if not np.isfinite(found).any():
        raise CheckpointError(f"{run_dir}: none of its models has a {asked['score']} in the worlds of {scenario!r}")
    best = models[int((np.nanargmin if criterion.score.lower_is_better else np.nanargmax)(found))]
    write_atomic(run_dir / BEST, best.read_bytes())
    values = [float(score) if np.isfinite(score) else None for score in found]
    chosen = {"kept": str(best.relative_to(run_dir)), "timesteps": checkpoint.read_model(best).progress["timesteps"]}
    violations = {"violations": [one.violations for one in judged]} if criterion.constraints else {}
    write_json(run_dir / SCORES, {**asked, "scores": values, **violations, **chosen})
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
    criterion: Criterion | None = None,
) -> list[float]:
    """Return the score of each model by `judge_models`; NaN if no world gave one."""
    return [one.score for one in judge_models(models, task, scenario, seeds, each, criterion)]


def judge_models(
    models: Sequence[Path],
    task: str,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    each: Callable[[str], None] = lambda name: None,
    criterion: Criterion | None = None,
) -> list[Judgement]:
    """Play models, and the controllers that constraints refer to, in the same worlds, and judge the models.

    Args:
        models: Files of the models.
        task: Name of the task.
        scenario: Scenario from which the worlds are drawn.
        seeds: Seeds of the worlds.
        each: Called with a model's, or controller's, name after each world.
        criterion: Criterion; None: the mean of the score that ranks the task's controllers. A family is the worlds of one name.
    """
    worlds, found, measures = draw_worlds(task, scenario, seeds), [], tasks.get(task).measures
    criterion = criterion or Criterion(measures.get_score())
    families = [world.scenario.name for world in worlds]
    references: dict[str, constraints.Metrics] | None = None
    for path in models:
        player = SavedAgent(checkpoint.read_model(path))
        if references is None:
            shared: dict[str, Any] = {"task": task, "scenario": scenario, "env": player.env, "each": each}
            references = constraints.play_references(criterion.constraints, worlds, **shared)
        runs = comparison.run(player, worlds, task=task, scenario=scenario, name=path.stem, each=each)
        found.append(judge(runs.metrics, references, families, criterion))
    return found


def judge(
    metrics: constraints.Metrics, references: dict[str, constraints.Metrics], families: Sequence[str], criterion: Criterion
) -> Judgement:
    """Judge a controller by its metrics in some worlds, those of the controllers of constraints, and the worlds' families."""
    violations = constraints.compute_violations(criterion.constraints, metrics, references, families)
    value = compute_score(metrics[criterion.score.metric], families, criterion.score, criterion.worst_weight)
    return Judgement(constraints.apply_penalties(value, criterion.score, criterion.constraints, violations), violations)


def compute_score(values: np.ndarray, families: Sequence[str], score: Score, worst_weight: float = 0.0) -> float:
    """Return the mean of scores, or that of the mean and the worst family's mean, which weighs `worst_weight` times as much.

    Means are geometric where scores are ratios. NaN if no world has a score.

    Args:
        values: Score in each world; NaN: none.
        families: Family of each world.
        score: The score.
        worst_weight: 0 or more.
    """
    known, geometric = np.isfinite(values), score.geometric
    mean = compute_mean_score(values[known], geometric)
    if not worst_weight or not known.any():
        return mean
    scores, names = values[known], np.array(families)[known]
    means = [compute_mean_score(scores[names == family], geometric) for family in np.unique(names)]
    both = np.array([mean, max(means) if score.lower_is_better else min(means)])
    weights = np.array([1.0, worst_weight]) / (1.0 + worst_weight)
    return float(np.exp(weights @ np.log(both)) if geometric else weights @ both)


def compute_mean_score(values: np.ndarray, geometric: bool) -> float:
    """Return the mean of scores; NaN for none."""
    if not len(values):
        return float("nan")
    return float(np.exp(np.log(values).mean()) if geometric else values.mean())
