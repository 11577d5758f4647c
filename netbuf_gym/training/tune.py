"""`netbuf-gym tune`: search the best settings of a learner on a task; see its `--help`.

The study is in `storage`; its folder holds `tuned/best.yaml`, which `netbuf-gym train` accepts, `trials.csv`, and plots.
"""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from omegaconf import OmegaConf
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as pictures

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_reference, selection
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import Source, find_differences, flatten_leaves, load, to_plain
from netbuf_gym.training.jobs import Job
from netbuf_gym.training.tuning import processes, search_space
from netbuf_gym.training.tuning import study as studies
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.plots import format_axes, make_figure, write_current_figure, write_figure
from netbuf_gym.utils.progress import ProgressBar, print_line

BEST = Path("tuned", "best.yaml")
MACHINE_OVERRIDES = ("run_dir=", "storage=", "workers=", "progress=")
PLAIN_GROUPS = {"scenario": "default", "reward": "default"}
"""Choices that `best.yaml` begins with, so that nothing is left of the training's own beside what it says."""
UNMEASURED_KEYS = {*studies.FREE_KEYS, "resume"}
"""Keys that scores do not depend on."""
MIN_TRIALS_FOR_IMPORTANCE = 8
"""Minimum number of complete trials for a plot of importance."""


def main(job: Job) -> int:
    """Run the command and return its exit status, 0, or 130 when interrupted. Raises as `tune` does."""
    plan = studies.make_plan(job)
    whole = tune(plan)
    study = studies.open_study(plan)
    print(format_summary(plan, study))
    if not whole:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


def describe_outcome(run_dir: Path) -> tuple[str, str]:
    """Return the label and value of a study for a table of runs."""
    first = (run_dir / BEST).read_text(encoding="utf-8").splitlines()[1]
    return "best", first.partition(": ")[2].split()[1]


def tune(plan: studies.StudyPlan, tell: Callable[[str], None] = print_line) -> bool:
    """Run trials until the study has all of them, and write the results; return whether it was not interrupted.

    Raises:
        ConfigError: A configuration that cannot be used, a study of another one in the same place, or no trial with a score.
    """
    study = studies.open_study(plan)
    done = len(studies.list_ended_trials(study))
    tell(f"study {plan.name!r}: {done} of {plan.config.trials} trials done, in {plan.config.storage or plan.folder}")
    whole = _run_workers(plan, study) if plan.config.workers > 1 else True
    with ProgressBar("tuning", shown=plan.config.progress) as bar:
        _show_progress(bar, plan, study)
        # a single worker; or the trials that killed processes left
        whole = whole and studies.run_trials(plan, tell=lambda trial: _show_progress(bar, plan, study))
    if any(one.state == TrialState.COMPLETE for one in studies.list_ended_trials(study)):
        write_results(plan, study)
    elif whole:
        raise ConfigError(f"study {plan.name!r} has no trial that ended with a score; see {plan.folder / 'trials.csv'}")
    return whole


def format_summary(plan: studies.StudyPlan, study: optuna.Study) -> str:
    """Return a summary of a study, and the command that trains with its best settings."""
    trials = studies.list_ended_trials(study)
    given_up = sum(one.state == TrialState.PRUNED for one in trials)
    said = [f"{len(trials)} trials, {given_up} of them given up, {studies.count_core_hours(study):.2f} core-hours"]
    if given_up == len(trials):
        return said[0]
    best = study.best_trial
    first = studies.find_default_trial(study, plan)
    if first is not None:
        said.append(f"trial {first.number}, the defaults: {plan.criterion.score.metric} {first.value:.4f}")
    said.append(f"trial {best.number}, the best: {plan.criterion.score.metric} {best.value:.4f}{_say_direction(plan)}")
    said += [f"  {key} = {value}" for key, value in studies.get_trial_settings(plan, best).items()]
    said += [f"measured {format_conditions(plan)}", f"train with: {format_train_command(plan)}"]
    return "\n".join(said)


def format_conditions(plan: studies.StudyPlan) -> str:
    """Return the conditions that all scores of a study were measured under, in words."""
    config, scenario = plan.config, selection.resolve_validation_scenario(plan.config)
    where = scenario["name"] if isinstance(scenario, dict) else scenario
    return (
        f"after {config.total_timesteps:,} steps, over training seeds {config.seed} to {config.seed + config.seeds - 1}, "
        f"in {config.worlds} worlds of {where}"
    )


def _say_direction(plan: studies.StudyPlan) -> str:
    return " (lower is better)" if plan.criterion.score.lower_is_better else ""


def compute_cost_ratio(argv: Sequence[str]) -> float:
    """Return the core-seconds of a study's best trial relative to its defaults; `argv` is the command line of the study."""
    plan = studies.parse_plan(argv)
    return studies.compute_cost_ratio(studies.open_study(plan), plan)


def format_train_command(plan: studies.StudyPlan) -> str:
    """Return the command that trains with the best settings, as the study's trials were trained.

    A study with files of the user's own is described by `best.yaml` alone, since a command takes one folder of them.
    """
    config = plan.config
    own = [f"env={config.env.name}", f"algo={config.algo.name}", f"total_timesteps={config.total_timesteps}"]
    left_out = {"env", "algo", "total_timesteps", "tuned", *UNMEASURED_KEYS}
    others = [one for one in plan.training_overrides if studies.parse_key(one) not in left_out]
    own += others if plan.source == Source() else []
    return shlex.join(["netbuf-gym", "train", *own, "--config-dir", str(plan.folder), "tuned=best"])


def write_results(plan: studies.StudyPlan, study: optuna.Study) -> None:
    """Write the best settings, a table of all trials, and plots into the study's folder."""
    folder = plan.folder
    (folder / BEST.parent).mkdir(parents=True, exist_ok=True)
    write_atomic(folder / BEST, format_best_yaml(plan, study))
    write_atomic(folder / "trials.csv", format_trials(study))
    complete = [one for one in studies.list_ended_trials(study) if one.state == TrialState.COMPLETE]
    target = f"{plan.criterion.score.metric}{_say_direction(plan)}"
    write_current_figure(lambda: pictures.plot_optimization_history(study, target_name=target), folder / "history.png")
    write_figure(draw_slices(plan.settings, complete, plan.criterion.score.metric), folder / "slice.png")
    if len({one.value for one in complete}) > 1 and len(complete) >= MIN_TRIALS_FOR_IMPORTANCE:
        write_current_figure(
            lambda: pictures.plot_param_importances(study, evaluator=PedAnovaImportanceEvaluator(), target_name=target),
            folder / "importance.png",
        )


def format_best_yaml(plan: studies.StudyPlan, study: optuna.Study) -> str:
    """Return the best trial's settings as a configuration of the group `tuned`."""
    best, first = study.best_trial, studies.find_default_trial(study, plan)
    config = OmegaConf.create()
    for key, value in (collect_changes(plan, best) | studies.get_trial_settings(plan, best)).items():
        OmegaConf.update(config, key, value)
    default = "" if first is None else f" (defaults: {first.value:.4f})"
    command = [one for one in study.user_attrs[studies.COMMAND] if not one.startswith(MACHINE_OVERRIDES)]
    groups = {"env": plan.config.env.name, "algo": plan.config.algo.name, **PLAIN_GROUPS}
    name = plan.criterion.score.metric
    said = [
        config_reference.GLOBAL_PACKAGE_HEADER,
        f"# trial {best.number} of {len(studies.list_ended_trials(study))}: {name} {best.value:.4f}{default}",
        f"# measured {format_conditions(plan)}{_say_direction(plan)}",
        f"# netbuf-gym tune {shlex.join(command)}",
        "defaults:",
        *(f"  - override /{group}: {choice}" for group, choice in groups.items()),
        "  - _self_\n",
    ]
    return "\n".join([*said, OmegaConf.to_yaml(config)])


def collect_changes(plan: studies.StudyPlan, trial: FrozenTrial) -> dict[str, Any]:
    """Return all that a training of the trial has beside the defaults of its environment and learner, by dotted keys."""
    groups = {"env": plan.config.env.name, "algo": plan.config.algo.name, **PLAIN_GROUPS}
    plain = load("train", [f"{group}={choice}" for group, choice in groups.items()])
    trained = plan.load_training(studies.get_trial_settings(plan, trial), plan.config.seed)
    whole, changed = flatten_leaves(to_plain(trained)), {"total_timesteps": trained.total_timesteps}
    for key, _, now in find_differences(plain, trained):
        from_machine = key in UNMEASURED_KEYS or key.startswith("wandb.")
        follows = key == "env.num_envs" and now == trained.algo.num_envs
        if key in whole and now != {} and not from_machine and not follows:
            changed[key] = now
    return changed


def _run_workers(plan: studies.StudyPlan, study: optuna.Study) -> bool:
    """Run the study's trials in several processes; return whether it was not interrupted."""
    source = [plan.source.config_dir or "", plan.source.config_name or ""]
    argv = [sys.executable, "-m", studies.__name__]
    with Interrupt() as interrupt, ProgressBar("tuning", shown=plan.config.progress) as bar:
        commands = [[*argv, str(one), *source, *plan.overrides] for one in range(plan.config.workers)]
        workers = [subprocess.Popen(one) for one in commands]
        try:
            while any(one.poll() is None for one in workers) and interrupt.received is None:
                _show_progress(bar, plan, study)
                time.sleep(0.5)
        finally:
            processes.end_processes(workers, interrupt.received)
    wrong = [one.returncode for one in workers if one.returncode == 2]
    if wrong:
        raise ConfigError("a worker of the study could not go on; its message is above")
    return interrupt.received is None


def _show_progress(bar: ProgressBar, plan: studies.StudyPlan, study: optuna.Study) -> None:
    trials = studies.list_ended_trials(study)
    choose_best = min if plan.criterion.score.lower_is_better else max
    best = choose_best((one.value for one in trials if one.value is not None), default=None)
    text = f"{len(trials)} of {plan.config.trials} trials"
    said = "" if best is None else f", best {plan.criterion.score.metric} {best:.4f}{_say_direction(plan)}"
    bar(len(trials), plan.config.trials, text + said)


def draw_slices(settings: Sequence[search_space.SearchSetting], trials: Sequence[FrozenTrial], label: str) -> Any:
    """Plot the scores of complete trials over each setting, later ones darker."""
    columns = 4
    rows = -(-len(settings) // columns)
    figure = make_figure(3.0 * columns, 2.2 * rows)
    values = [one.value for one in trials]
    for at, setting in enumerate(settings):
        axes = figure.add_subplot(rows, columns, at + 1)
        tried = [one.params[setting.name] for one in trials]
        places: Sequence[Any] = tried
        if setting.choices:
            names = [*map(search_space.encode_choice, setting.choices)]
            places = [names.index(one) for one in tried]
            axes.set_xticks(range(len(names)), [str(name) for name in names])
            axes.set_xlim(-0.5, len(names) - 0.5)
        elif setting.log:
            axes.set_xscale("log")
            axes.set_xlim(setting.low / 1.3, setting.high * 1.3)
        else:
            margin = 0.05 * (setting.high - setting.low)
            axes.set_xlim(setting.low - margin, setting.high + margin)
        axes.scatter(places, values, c=[one.number for one in trials], cmap="Blues", vmin=-len(trials), edgecolors="0.4", s=22)
        format_axes(axes, ylabel="" if at % columns else label, title=setting.name, grid="")
    return figure


def format_trials(study: optuna.Study, more: Mapping[str, Callable[[FrozenTrial], Any]] | None = None) -> str:
    """Format all trials as CSV, in their order; `more` has further columns."""
    more = more or {}
    trials = study.get_trials(deepcopy=False)
    names = list(dict.fromkeys(name for one in trials for name in one.params))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "value", "seconds", "core_seconds", *more, *names])
    for one in trials:
        seconds = one.duration.total_seconds() if one.duration else None
        cells = [
            one.number,
            one.state.name,
            one.value,
            seconds,
            one.user_attrs.get(studies.CPU),
            *(get(one) for get in more.values()),
        ]
        table.writerow([*cells, *(one.params.get(name) for name in names)])
    return text.getvalue()
