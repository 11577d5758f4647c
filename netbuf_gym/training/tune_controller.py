"""`netbuf-gym tune controller=NAME`: search the best parameters of a rule, a congestion control or a scheme; see its `--help`.

The study's folder holds `tuned/best.yaml` with the controller's name and settings, `trials.csv`, and plots.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import optuna
import yaml
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as pictures

from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.jobs import Job
from netbuf_gym.training.tune import BEST, MACHINE_OVERRIDES, draw_slices, format_trials
from netbuf_gym.training.tuning import controller_study as studies
from netbuf_gym.training.tuning.study import COMMAND, CPU, list_ended_trials
from netbuf_gym.utils.files import exclusive_lock, make_folder, write_atomic
from netbuf_gym.utils.overrides import format_override
from netbuf_gym.utils.plots import write_current_figure, write_figure
from netbuf_gym.utils.progress import ProgressBar, print_line


def main(job: Job) -> int:
    """Run the command and return its exit status, 0, or 130 when interrupted. Raises as `tune` does."""
    plan = studies.make_plan(job)
    said = tune(plan)
    if said is None:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    print(said)
    return 0


def describe_outcome(run_dir: Path) -> tuple[str, str]:
    """Return the label and value of a study for a table of runs."""
    return "best", yaml.safe_load((run_dir / BEST).read_text(encoding="utf-8"))["controller"]


def tune(plan: studies.ControllerPlan) -> str | None:
    """Run trials until the study has all of them, validate the best, and write the results.

    Returns:
        A summary with the controller that was kept; None when interrupted.

    Raises:
        ConfigError: A study of another configuration in the same place, one that another process runs, or no score.
        WorkerError: A process of the executor was lost.
    """
    make_folder(plan.folder, "run_dir")
    with exclusive_lock(plan.folder, "run_dir"), Interrupt() as interrupt:
        study = studies.open_study(plan)
        done = len(list_ended_trials(study))
        print_line(f"study {plan.name!r}: {done} of {plan.config.trials} trials done, in {plan.folder}")
        shipped = studies.measure_shipped(plan, study, interrupt)
        if shipped is None:
            return None
        if (
            studies.HERE not in study.user_attrs.get(studies.VALIDATION, {})
            and studies.validate(plan, study, interrupt) is None
        ):
            return None  # where the shipped settings have no score, no trial is played
        with ProgressBar("tuning", shown=plan.config.progress) as bar:

            def show(queue: studies.TrialQueue) -> None:
                _show_progress(bar, plan, study, shipped, queue)

            if not studies.run_trials(plan, study, shipped, interrupt, show):
                return None
        with ProgressBar("validating", shown=plan.config.progress) as bar:
            scores = studies.validate(plan, study, interrupt, bar)
        if scores is None:
            return None
        write_results(plan, study, scores)
        return format_summary(plan, study, shipped, scores)


def format_summary(
    plan: studies.ControllerPlan, study: optuna.Study, shipped: studies.Shipped, scores: Mapping[str, float]
) -> str:
    """Return a summary of a study, and the controller that was kept."""
    trials = list_ended_trials(study)
    given_up = sum(one.state == TrialState.PRUNED for one in trials)
    hours = (shipped.cpu_s + sum(one.user_attrs.get(CPU, 0.0) for one in trials)) / 3600
    kept = studies.choose_best(plan, scores)
    said = [
        f"{len(trials)} trials, {given_up} of them given up, {hours:.3f} core-hours",
        f"{plan.score.metric} in {plan.config.validation_worlds} worlds of validation{_say_direction(plan)}:",
    ]
    for name, score in scores.items():
        label = "the shipped settings" if name == studies.HERE else f"trial {name}"
        said.append(f"  {label}: {score:.4f}{', kept' if name == kept else ''}")
    best = format_override("controller", get_kept_word(plan, study, kept))
    return "\n".join([*said, f"best: {best}", f"written to {plan.folder / BEST}"])


def get_kept_word(plan: studies.ControllerPlan, study: optuna.Study, kept: str) -> str:
    """Return the name, with settings, of the controller of a key of validation."""
    return plan.make_word({} if kept == studies.HERE else plan.get_trial_settings(study.trials[int(kept)]))


def write_results(plan: studies.ControllerPlan, study: optuna.Study, scores: Mapping[str, float]) -> None:
    """Write the best settings, a table of all trials, and plots into the study's folder."""
    folder = plan.folder
    (folder / BEST.parent).mkdir(parents=True, exist_ok=True)
    write_atomic(folder / BEST, format_best_yaml(plan, study, scores))
    write_atomic(folder / "trials.csv", format_trials(study, {studies.SCORE: _get_score}))
    complete = [one for one in list_ended_trials(study) if one.state == TrialState.COMPLETE]
    label = f"{plan.score.metric} less that of the shipped settings{_say_direction(plan)}"
    write_current_figure(lambda: pictures.plot_optimization_history(study, target_name=label), folder / "history.png")
    write_figure(draw_slices(plan.settings, complete, plan.score.metric), folder / "slice.png")


def format_best_yaml(plan: studies.ControllerPlan, study: optuna.Study, scores: Mapping[str, float]) -> str:
    """Return the controller that was kept, and what it was chosen by."""
    kept = studies.choose_best(plan, scores)
    trial = None if kept == studies.HERE else study.trials[int(kept)]
    command = [one for one in study.user_attrs[COMMAND] if not one.startswith((*MACHINE_OVERRIDES, "executor=", "jobs="))]
    found = {
        "controller": get_kept_word(plan, study, kept),
        "task": plan.task,
        "settings": {} if trial is None else plan.get_trial_settings(trial),
        "objective": plan.score.metric,
        "lower_is_better": plan.score.lower_is_better,
        "validation": {
            "scenario": plan.validation,
            "seeds": [plan.validation_seeds[0], plan.validation_seeds[-1]],
            "score": scores[kept],
            "shipped": scores[studies.HERE],
        },
    }
    said = f"# netbuf-gym tune {shlex.join(command)}\n"
    return said + yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=10_000)


def _get_score(trial: FrozenTrial) -> float | None:
    return trial.user_attrs.get(studies.SCORE)


def _say_direction(plan: studies.ControllerPlan) -> str:
    return " (lower is better)" if plan.score.lower_is_better else ""


def _show_progress(
    bar: ProgressBar, plan: studies.ControllerPlan, study: optuna.Study, shipped: studies.Shipped, queue: studies.TrialQueue
) -> None:
    trials = list_ended_trials(study)
    best = next(iter(studies.list_finalists(plan, study)), None)
    score = shipped.scores[-1] if best is None else _get_score(best)
    text = f"{len(trials):,} of {plan.config.trials:,} trials, shipped {shipped.scores[-1]:.4f}, best {score:.4f}"
    bar(max(len(trials) / plan.config.trials, queue.share), 1.0, f"{plan.score.metric}{_say_direction(plan)}: {text}")
