"""`netbuf-gym tune`: searches the best settings of a learner on a task; see its `--help`.

The study is in `storage`; in its folder are `tuned/best.yaml`, which `netbuf-gym train` takes, `trials.csv`, and plots.
"""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
from omegaconf import OmegaConf
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as pictures

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_reference
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import Source
from netbuf_gym.training.tuning import processes, search_space
from netbuf_gym.training.tuning import study as studies
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.plots import dress, figure_of, write, write_drawn
from netbuf_gym.utils.progress import ProgressBar, say

BEST = Path("tuned", "best.yaml")
OF_THE_MACHINE = ("run_dir=", "storage=", "workers=", "progress=")
FOR_IMPORTANCE = 8
"""Complete trials, before anything is said of importance."""


def main(argv: Sequence[str], source: Source | None = None) -> int:
    """Runs the command with overrides; returns its exit status, 0 or 130 when interrupted. Raises as `tune` does."""
    plan = studies.plan(argv, source)
    whole = tune(plan)
    study = studies.opened(plan)
    print(summary(plan, study))
    if not whole:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


def outcome(run_dir: Path) -> tuple[str, str]:
    """What a table of runs says of a study, and its label."""
    first = (run_dir / BEST).read_text(encoding="utf-8").splitlines()[1]
    return "best", first.rpartition(": ")[2]


def tune(plan: studies.Plan, tell: Callable[[str], None] = say) -> bool:
    """Works at a study until it has all of its trials, and writes what it found; returns whether it was not interrupted.

    Raises:
        ConfigError: a configuration that cannot be used, a study of another one in the same place, or none of its trials ended.
    """
    study = studies.opened(plan)
    done = len(studies.ended(study))
    tell(f"study {plan.name!r}: {done} of {plan.config.trials} trials done, in {plan.config.storage or plan.folder}")
    whole = _together(plan, study) if plan.config.workers > 1 else True
    with ProgressBar("tuning", shown=plan.config.progress) as bar:
        _show(bar, plan, study)
        # alone; or what is left of processes that were killed
        whole = whole and studies.work(plan, tell=lambda trial: _show(bar, plan, study))
    if any(one.state == TrialState.COMPLETE for one in studies.ended(study)):
        write_results(plan, study)
    elif whole:
        raise ConfigError(f"study {plan.name!r} has no trial that ended with a score; see {plan.folder / 'trials.csv'}")
    return whole


def summary(plan: studies.Plan, study: optuna.Study) -> str:
    """What a study has come to, and the command that trains with it."""
    trials = studies.ended(study)
    given_up = sum(one.state == TrialState.PRUNED for one in trials)
    said = [f"{len(trials)} trials, {given_up} of them given up, {studies.hours(study):.2f} core-hours"]
    if given_up == len(trials):
        return said[0]
    best = study.best_trial
    first = studies.of_defaults(study, plan)
    if first is not None:
        said.append(f"trial {first.number}, the defaults: {plan.measures.score} {first.value:.4f}")
    said.append(f"trial {best.number}, the best: {plan.measures.score} {best.value:.4f}")
    said += [f"  {key} = {value}" for key, value in studies.settings_of(plan, best).items()]
    said.append(f"train with: {command(plan)}")
    return "\n".join(said)


def cost(argv: Sequence[str]) -> float:
    """Core-seconds of a study's best trial over those of its defaults; `argv` is the command line that made it."""
    plan = studies.plan(argv)
    return studies.cost(studies.opened(plan), plan)


def command(plan: studies.Plan) -> str:
    """What trains with the best settings."""
    own = [f"env={plan.config.env.name}", f"algo={plan.config.algo.name}"]
    others = [one for one in plan.of_training if one.partition("=")[0] not in ("env", "algo", "progress", "total_timesteps")]
    return shlex.join(["netbuf-gym", "train", *own, *others, "--config-dir", str(plan.folder), "tuned=best"])


def write_results(plan: studies.Plan, study: optuna.Study) -> None:
    """Writes the best settings, a table of all trials, and plots, into the study's folder."""
    folder = plan.folder
    (folder / BEST.parent).mkdir(parents=True, exist_ok=True)
    write_atomic(folder / BEST, best_yaml(plan, study))
    write_atomic(folder / "trials.csv", _table(study))
    complete = [one for one in studies.ended(study) if one.state == TrialState.COMPLETE]
    target = plan.measures.score
    write_drawn(lambda: pictures.plot_optimization_history(study, target_name=target), folder / "history.png")
    write(_slices(plan, complete), folder / "slice.png")
    if len({one.value for one in complete}) > 1 and len(complete) >= FOR_IMPORTANCE:
        write_drawn(
            lambda: pictures.plot_param_importances(study, evaluator=PedAnovaImportanceEvaluator(), target_name=target),
            folder / "importance.png",
        )


def best_yaml(plan: studies.Plan, study: optuna.Study) -> str:
    """The best trial's settings as a configuration of the group `tuned`."""
    best, first = study.best_trial, studies.of_defaults(study, plan)
    config = OmegaConf.create()
    for key, value in studies.settings_of(plan, best).items():
        OmegaConf.update(config, key, value)
    default = "" if first is None else f" (defaults: {first.value:.4f})"
    command = [one for one in study.user_attrs[studies.COMMAND] if not one.startswith(OF_THE_MACHINE)]
    said = [
        config_reference.GLOBAL,
        f"# trial {best.number} of {len(studies.ended(study))}: {plan.measures.score} {best.value:.4f}{default}",
        f"# netbuf-gym tune {shlex.join(command)}",
    ]
    return "\n".join([*said, OmegaConf.to_yaml(config)])


def _together(plan: studies.Plan, study: optuna.Study) -> bool:
    """Works at a study with several processes; returns whether it was not interrupted."""
    source = [plan.source.config_dir or "", plan.source.config_name or ""]
    argv = [sys.executable, "-m", studies.__name__]
    with Interrupt() as interrupt, ProgressBar("tuning", shown=plan.config.progress) as bar:
        commands = [[*argv, str(one), *source, *plan.overrides] for one in range(plan.config.workers)]
        workers = [subprocess.Popen(one) for one in commands]
        try:
            while any(one.poll() is None for one in workers) and interrupt.received is None:
                _show(bar, plan, study)
                time.sleep(0.5)
        finally:
            processes.end(workers, interrupt.received)
    wrong = [one.returncode for one in workers if one.returncode == 2]
    if wrong:
        raise ConfigError("a worker of the study could not go on; its message is above")
    return interrupt.received is None


def _show(bar: ProgressBar, plan: studies.Plan, study: optuna.Study) -> None:
    trials = studies.ended(study)
    best = max((one.value for one in trials if one.value is not None), key=lambda value: _gain(plan, value), default=None)
    text = f"{len(trials)} of {plan.config.trials} trials"
    bar(len(trials), plan.config.trials, text if best is None else f"{text}, best {plan.measures.score} {best:.4f}")


def _gain(plan: studies.Plan, value: float) -> float:
    return -value if plan.measures.lower_is_better else value


def _slices(plan: studies.Plan, trials: Sequence[FrozenTrial]) -> Any:
    """The scores of complete trials by each setting, later ones darker."""
    columns = 4
    rows = -(-len(plan.settings) // columns)
    figure = figure_of(3.0 * columns, 2.2 * rows)
    values = [one.value for one in trials]
    for at, setting in enumerate(plan.settings):
        axes = figure.add_subplot(rows, columns, at + 1)
        tried = [one.params[setting.name] for one in trials]
        places: Sequence[Any] = tried
        if setting.choices:
            names = [*map(search_space.encoded, setting.choices)]
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
        dress(axes, ylabel="" if at % columns else plan.measures.score, title=setting.name, grid="")
    return figure


def _table(study: optuna.Study) -> str:
    """All trials as CSV, in their order."""
    trials = study.get_trials(deepcopy=False)
    names = list(dict.fromkeys(name for one in trials for name in one.params))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "value", "seconds", "core_seconds", *names])
    for one in trials:
        seconds = one.duration.total_seconds() if one.duration else None
        cells = [one.number, one.state.name, one.value, seconds, one.user_attrs.get(studies.CPU)]
        table.writerow([*cells, *(one.params.get(name) for name in names)])
    return text.getvalue()
