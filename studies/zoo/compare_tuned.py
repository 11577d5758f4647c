"""Comparison of tuned settings with a learner's defaults, by trainings with both, on held-out seeds.

    python -m studies.zoo.compare_tuned tuned=FOLDER out=FILE [held_seeds=48] [KEY=VALUE ...]

`tuned` holds the runs of a campaign (seed0, seed1, ...) with the tuned settings. The other arguments are those of the campaign
of the defaults (`netbuf_gym.training.campaign`): the same worlds and learner, without the settings. The kept models of both
play `held_seeds` worlds of the scenario that they were chosen in, under seeds of the evaluation; the scores of all are
written to `out`.
`python -m studies.zoo.build` runs it for each of its pairs; `netbuf-gym results pages` makes a table of the files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import comparison
from netbuf_gym.training import campaign, selection
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import find_differences, load
from netbuf_gym.training.jobs import CHANGEABLE_KEYS
from netbuf_gym.training.ranges import resolve_evaluation_seeds
from netbuf_gym.utils import scripts, statistics
from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.statistics import Interval
from netbuf_gym.utils.tables import markdown_table

FREE_KEYS = ("seed", "run_dir", "resume", "total_timesteps", "env.num_envs", *CHANGEABLE_KEYS)
"""Keys in which two runs may differ beside the settings of their learners (`env.num_envs` is `algo.num_envs`)."""
NO_CHANGE = "none: the study found the defaults the best"
HEADER = ("task", "learner", "score", "tuned", "defaults", "gain [95 %]")
TABLE_NOTES = (
    "tuned, defaults: mean score of the models kept of so many trainings of so many steps (of ratios the geometric mean), in "
    "worlds of the kind that models were chosen in, under seeds that neither training, study nor choice has seen",
    "gain: tuned over defaults, above 0 where tuned is better (of ratios the difference of logarithms), with Welch's interval "
    "over training seeds; bold where it excludes 0, which one row in twenty does by chance",
    "steps of tuned settings are those of the defaults over what the study's best trial cost beside its first, in "
    "core-seconds, judging in worlds included: settings which learn slowly have still had more time",
)


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0, or 130 when interrupted. Raises as campaigns do."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    own, rest = scripts.split_arguments(argv, {"tuned": "", "out": "", "held_seeds": "48"})
    if not own["held_seeds"].isdecimal() or not 1 <= int(own["held_seeds"]) <= 1000:
        raise ConfigError(f"held_seeds = {own['held_seeds']!r} is out of range; valid: 1 to 1000")
    if not own["out"]:
        raise ConfigError("out is missing; valid: the file to be written")
    out = Path(own["out"])
    if out.is_dir():
        raise ConfigError(f"out = {own['out']!r} is a folder; valid: a file to be written")
    plan = campaign.parse_plan([*rest, "suites=false"])
    runs = sorted(path.parent for path in Path(own["tuned"]).glob("seed*/model.zip")) if own["tuned"] else []
    if not runs:
        raise ConfigError(f"tuned = {own['tuned']!r} holds no run; valid: a campaign's folder of runs, with seed0/model.zip")
    changed = find_tuned_settings(runs, load("train", plan.overrides))
    if (models := campaign.train_models(plan)) is None:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    seeds = resolve_evaluation_seeds(int(own["held_seeds"]))
    found = {"settings": changed, **compare_models([*map(selection.find_kept_model, runs)], models[1], seeds)}
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, found)
    return 0


def find_tuned_settings(runs: Sequence[Path], defaults: DictConfig) -> dict[str, Any]:
    """Return the settings in which runs differ from a training by the defaults, with both values.

    Raises:
        ConfigError: A run is unfinished, or differs from the defaults in more than settings, or from the other runs.
        CheckpointError: A run cannot be read.
    """
    found: list[dict[str, Any]] = []
    for run in runs:
        if (run / "checkpoint.zip").exists():
            raise ConfigError(f"{run}: its training was interrupted; valid: runs that are at their ends")
        changed = {}
        for key, mine, its in find_differences(checkpoint.read_model(run / "model.zip").config, defaults):
            if key.startswith("algo."):
                changed[key] = {"tuned": mine, "default": its}
            elif key not in FREE_KEYS:
                raise ConfigError(
                    f"{run} was trained with {key} = {mine!r}, the defaults are to be with {its!r}; valid: both alike"
                )
        found.append(changed)
        if changed != found[0]:
            raise ConfigError(f"{run} has other settings than {runs[0]}; valid: a campaign's folder of runs")
    return found[0]


def compare_models(tuned: Sequence[Path], defaults: Sequence[Path], seeds: Sequence[int]) -> dict[str, Any]:
    """Play the models of both in the same worlds, and return the contents of the result file."""
    ours, theirs = ([checkpoint.read_model(path) for path in each] for each in (tuned, defaults))
    config = ours[0].config
    task, scenario = config.env.name, selection.resolve_validation_scenario(config)
    with ProgressBar("comparing") as bar:
        each = comparison.WorldProgress(bar, len(seeds) * (len(tuned) + len(defaults)))
        scores = selection.score_models([*tuned, *defaults], task, scenario, seeds, each)

    def describe(models: Sequence[checkpoint.SavedModel], scores: Sequence[float]) -> dict[str, Any]:
        own = {"seeds": [one.config.seed for one in models], "timesteps": models[0].config.total_timesteps}
        return own | {"scores": [float(f"{score:.6g}") for score in scores]}

    return {
        "schema": "netbuf-gym/beside-defaults/1",
        "task": task,
        "algo": config.algo.name,
        "score": tasks.get(task).measures.score,
        "scenario": scenario,
        "held_seeds": [seeds[0], seeds[-1]],
        "tuned": describe(ours, scores[: len(ours)]),
        "defaults": describe(theirs, scores[len(ours) :]),
    }


def format_table(files: Sequence[Path]) -> str:
    """Format the files as a Markdown table, a row each, with notes on how to read it.

    Raises:
        ConfigError: A file cannot be read.
    """
    rows = []
    for path in files:
        try:
            rows.append(_format_row(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{path}: is not what `studies.zoo.compare_tuned` wrote: {error!r}") from None
    return "\n\n".join([markdown_table(HEADER, rows), "\n".join(f"* {line}" for line in TABLE_NOTES)])


def _format_row(found: dict[str, Any]) -> list[str]:
    measures, cells = tasks.get(found["task"]).measures, []
    tuned, defaults = (np.array(found[name]["scores"], float) for name in ("tuned", "defaults"))
    for name, scores in (("tuned", tuned), ("defaults", defaults)):
        mean = selection.compute_mean_score(scores, measures.geometric)
        cells.append(f"{mean:.3f} ({len(scores)} x {found[name]['timesteps'] / 1e6:.2f} M)")
    if not found["settings"]:
        cells = [NO_CHANGE, cells[1], ""]
    else:
        cells.append(_format_gain(tuned, defaults, measures.geometric, measures.lower_is_better))
    return [found["task"], found["algo"], found["score"], *cells]


def _format_gain(tuned: np.ndarray, defaults: np.ndarray, geometric: bool, lower_is_better: bool) -> str:
    ours, theirs = (np.log(one) if geometric else one for one in (tuned, defaults))
    found = statistics.difference_interval(ours, theirs)
    gain = Interval(0.0 - found.mean, -found.high, -found.low) if lower_is_better else found
    if min(len(ours), len(theirs)) < 2:  # one training has no interval
        return f"{gain.mean:+.3f}"
    mark = "**" if gain.low > 0 or gain.high < 0 else ""
    return f"{mark}{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]{mark}"


if __name__ == "__main__":
    scripts.run("compare_tuned", main)
