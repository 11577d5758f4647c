"""Studies of settings: Optuna's, asked and told by any number of processes, none of which is needed by the others.

A trial trains its settings with several seeds side by side, part by part. After each part all models play the study's worlds,
and the mean of their scores decides whether the trial goes on. Who works at a trial says so in it, and when it was last alive:
a trial whose process is gone, or was silent for too long, is marked as failed and tried again by another.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from omegaconf import DictConfig, OmegaConf
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, GrpcStorageProxy, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training import config_reference, selection
from netbuf_gym.training.algorithms.ppo import DivergedError
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import Source, differences, load, merged, plain
from netbuf_gym.training.environment import env_kwargs, make_worlds
from netbuf_gym.training.schema import FIRST_STUDY_SEED, TrainConfig, TuneConfig
from netbuf_gym.training.tuning import search_space as search
from netbuf_gym.training.tuning.trials import InterruptedTrial, Training
from netbuf_gym.utils.files import make_folder

JOURNAL = "journal.log"
STORAGES = "null, a URL of SQLAlchemy's (sqlite:///FILE), or grpc://HOST:PORT"
OF_STUDIES = {one.name for one in fields(TuneConfig)} - {one.name for one in fields(TrainConfig)}
"""Keys that no training has."""
FREE = {
    *("trials", "hours", "slowest", "name", "run_dir", "storage", "workers", "stale_minutes", "progress"),
    *("tensorboard", "device", "torch_threads", "checkpoint_minutes", "env.threads", "snapshots", "max_minutes"),
}
"""What a command that goes on with a study may say otherwise."""
ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
ENQUEUED = "fixed_params"
"""Optuna's own name for the settings that a trial was given."""
BEAT_SECONDS = 20.0
WORKER, BEAT, CPU, CONFIG, COMMAND = "worker", "beat", "cpu_s", "config", "command"
DIVERGED, SLOW, UNTRAINED = "diverged", "slow", "untrained"

warnings.filterwarnings("ignore", category=ExperimentalWarning)
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass
class Plan:
    """A study as it was asked for.

    Attributes:
        overrides: of the command line.
        source: where the configuration is composed from.
        config: composed.
        settings: that are searched.
    """

    overrides: list[str]
    source: Source
    config: DictConfig
    settings: list[search.Setting]

    @property
    def name(self) -> str:
        """Of the study."""
        return self.config.name or f"{self.config.env.name}-{self.config.algo.name}"

    @property
    def folder(self) -> Path:
        """Where it writes."""
        return Path(self.config.run_dir or Path("runs", "tune", self.name))

    @property
    def measures(self) -> Measures:
        """What the task's agents are judged by."""
        return tasks.get(self.config.env.name).measures

    def training(self, settings: Mapping[str, Any], seed: int) -> DictConfig:
        """The configuration of a training with these settings, by their keys."""
        chosen = [search.override(key, value) for key, value in settings.items()]
        return load("train", [*self.of_training, *chosen, f"seed={seed}"], self.source)

    @property
    def of_training(self) -> list[str]:
        """The overrides that training has, too."""
        return [one for one in self.overrides if _key(one).partition(".")[0] not in (*OF_STUDIES, "seed", "run_dir")]


def plan(overrides: Sequence[str], source: Source | None = None) -> Plan:
    """The study that the command line asks for.

    Raises:
        ConfigError, ScenarioError: as `load` does; what is no search; an environment that cannot be made.
    """
    config = load("tune", overrides, source)
    chosen = [_key(one) for one in overrides]
    settings = search.read(config.search, [one for one in chosen if one not in config_reference.groups("tune")])
    for one in settings:
        if OmegaConf.select(config, one.key, default=search) is search:
            raise ConfigError(f"search.{one.name}.key = {shown(one.key)}: there is no such key in the configuration")
    if not tasks.get(config.env.name).measures.score:
        raise ConfigError(f"task {config.env.name!r} has no score to be tuned for; valid: a task with measures")
    made = Plan([*overrides], source or Source(), config, settings)
    training = made.training({}, config.seed)
    worlds = make_worlds(training.env.id, training.env.num_envs, 1, env_kwargs(training))
    worlds.close()  # what none can be made of leaves no study behind
    return made


def opened(one: Plan) -> optuna.Study:
    """The study, made where there is none: with the defaults as its first trial, and then what it is to begin with.

    Where a default is not searched the first trial has what is nearest to it.

    Raises:
        ConfigError: a storage that cannot be used, a study of another configuration, or beginnings that are not searched.
    """
    config = one.config
    beginnings = _beginnings(one)
    try:
        study = optuna.create_study(
            storage=_storage(one),
            study_name=one.name,
            sampler=ByTrial(config.sampler, config.seed),
            pruner=_pruner(config),
            direction="minimize" if one.measures.lower_is_better else "maximize",
            load_if_exists=True,
        )
    except StorageInternalError as error:
        raise ConfigError(f"storage = {shown(config.storage)} cannot be used: {' '.join(str(error).split())[:200]}") from None
    known = study.user_attrs.get(CONFIG)
    if known is None:
        for values in beginnings:
            study.enqueue_trial(values, skip_if_exists=True)
        study.set_user_attr(COMMAND, one.overrides)
        study.set_user_attr(CONFIG, OmegaConf.to_yaml(config))
        return study
    for key, then, now in differences(merged(plain(OmegaConf.structured(TuneConfig)), OmegaConf.create(known)), config):
        if key not in FREE and not key.startswith("wandb."):
            raise ConfigError(
                f"study {one.name!r} in {config.storage or one.folder} has {key} = {shown(then)}, not {shown(now)}; "
                "valid: another name=... or run_dir=..."
            )
    return study


def work(one: Plan, tell: Callable[[FrozenTrial], None] = lambda trial: None) -> bool:
    """Works at a study until it has all of its trials; returns whether it was not interrupted.

    Args:
        tell: is told each trial that has ended.

    Raises:
        ConfigError, ScenarioError: settings that cannot be trained with.
    """
    study = opened(one)
    with Interrupt() as interrupt:
        while interrupt.received is None and (trial := _next(study, one)) is not None:
            try:
                tell(_tried(study, trial, one, interrupt))
            except (InterruptedTrial, KeyboardInterrupt):
                _again(study, trial.number)
                return False
            except BaseException:
                study.tell(trial, state=TrialState.FAIL)
                raise
    return interrupt.received is None


def ended(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count: complete or given up."""
    return study.get_trials(deepcopy=False, states=ENDED)


def of_defaults(study: optuna.Study, one: Plan) -> FrozenTrial | None:
    """The trial of the learner's defaults; None before it is complete, and where these are not searched."""
    values = search.values_of(one.settings, one.config)
    return next((trial for trial in ended(study) if trial.state == TrialState.COMPLETE and trial.params == values), None)


def cost(study: optuna.Study, one: Plan) -> float:
    """Core-seconds of the best trial over those of the defaults'; 1 where the defaults were given up."""
    first = of_defaults(study, one)
    return 1.0 if first is None else study.best_trial.user_attrs[CPU] / first.user_attrs[CPU]


def hours(study: optuna.Study) -> float:
    """Core-hours that went into a study's trials, but for those under way."""
    return sum(one.user_attrs.get(CPU, 0.0) for one in study.get_trials(deepcopy=False)) / 3600


def settings_of(one: Plan, trial: FrozenTrial) -> dict[str, Any]:
    """A trial's settings by their keys, as training takes them."""
    fixed = optuna.trial.FixedTrial(trial.params)
    return {setting.key: setting.propose(fixed) for setting in one.settings}  # type: ignore[arg-type]


def _next(study: optuna.Study, one: Plan) -> optuna.Trial | None:
    """The next trial; None where there is none to begin."""
    _recover(study, one.config.stale_minutes * 60)
    under_way = study.get_trials(deepcopy=False, states=(*ENDED, TrialState.RUNNING))
    if len(under_way) >= one.config.trials or (one.config.hours is not None and hours(study) >= one.config.hours):
        return None
    trial = study.ask()
    trial.set_user_attr(WORKER, _worker(os.getpid()))
    return trial


def _tried(study: optuna.Study, trial: optuna.Trial, one: Plan, interrupt: Interrupt) -> FrozenTrial:
    """Trains and judges a trial, and tells the study."""
    config, measures = one.config, one.measures
    settings = {setting.key: setting.propose(trial) for setting in one.settings}
    began, value = time.process_time(), float("nan")

    def told(value: float | None = None) -> FrozenTrial:
        trial.set_user_attr(CPU, time.process_time() - began)
        return study.tell(trial, value, TrialState.PRUNED if value is None else None)

    with ExitStack() as trainings:
        try:
            alive = _Alive(trial, began + _allowed(study, one))
            each = []
            for seed in range(config.seed, config.seed + config.seeds):
                training = Training(one.training(settings, seed), interrupt, alive)
                each.append(trainings.enter_context(closing(training)))
            for rung in range(1, config.rungs + 1):
                scores = []
                for training in each:
                    training.go_on(config.total_timesteps * rung // config.rungs)
                    scores.append(_score(training, one))
                    alive()
                trial.set_user_attr(f"scores_{rung}", scores)
                value = selection.mean(np.array(scores), measures.geometric)
                trial.report(value, rung)
                if rung < config.rungs and trial.should_prune():
                    return told()
        except DivergedError:
            trial.set_user_attr(DIVERGED, True)
            return told()
        except SlowError:
            trial.set_user_attr(SLOW, True)
            return told()
        if trial.number > 0 and not all(training.learned for training in each):  # the defaults are what others are beside
            trial.set_user_attr(UNTRAINED, True)
            return told()
    return told(value if np.isfinite(value) else None)  # no world may have given it a score


def _score(training: Training, one: Plan) -> float:
    """A training's score in the study's worlds, as it is now."""
    task, scenario = one.config.env.name, selection.scenario_of(one.config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.zip")
        training.write(path)
        seeds = range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + one.config.worlds)
        return selection.scores([path], task, scenario, seeds)[0]


def _allowed(study: optuna.Study, one: Plan) -> float:
    """Core-seconds that a trial may take; without a limit before the defaults are through."""
    first = of_defaults(study, one)
    return float("inf") if first is None or one.config.slowest is None else one.config.slowest * first.user_attrs[CPU]


class SlowError(Exception):
    """A trial took more core-seconds than it was allowed."""


class _Alive:
    """Says in a trial, now and then, that its process is alive, and ends it at a time of the process."""

    def __init__(self, trial: optuna.Trial, end_s: float):
        self.trial, self.end_s, self._last = trial, end_s, 0.0
        self()

    def __call__(self) -> None:
        if time.process_time() > self.end_s:
            raise SlowError
        if time.monotonic() - self._last >= BEAT_SECONDS:
            self.trial.set_user_attr(BEAT, time.time())
            self._last = time.monotonic()


def _recover(study: optuna.Study, stale_seconds: float) -> None:
    """Marks trials as failed whose processes are gone, and has them tried again."""
    host = f"{socket.gethostname()}:"
    for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker, began = one.user_attrs.get(WORKER, ""), one.datetime_start
        beat = one.user_attrs.get(BEAT, began.timestamp() if began else time.time())
        gone = worker.startswith(host) and worker != _worker(int(worker.split(":")[1]))
        if gone or time.time() - beat > stale_seconds:
            _again(study, one.number)


def _again(study: optuna.Study, number: int) -> None:
    """Marks a trial as failed, and has another one with its settings, unless somebody else did it first."""
    try:
        lost = study.tell(number, state=TrialState.FAIL)
    except (ValueError, UpdateFinishedTrialError):
        return
    settings = lost.system_attrs.get(ENQUEUED, {}) | lost.params  # those that it was given, and those that it came to
    study.enqueue_trial(settings, user_attrs={"again": number})


def _worker(pid: int) -> str:
    """A process of this machine: its number, and when it began, for numbers come again; "" where there is none."""
    try:
        began = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
    return f"{socket.gethostname()}:{pid}:{began}"


def _beginnings(one: Plan) -> list[dict[str, Any]]:
    """The trials that a study begins with, by the names of their settings."""
    values = [search.nearest_to(one.settings, one.config)]
    known = {setting.name: setting for setting in one.settings}
    for at, given in enumerate(one.config.begin_with):
        field = f"begin_with[{at}]"
        if not OmegaConf.is_dict(given):
            raise ConfigError(f"{field} = {shown(given)}; valid: a mapping of settings, of {', '.join(known)}")
        for name in given:
            if name not in known:
                raise ConfigError(f"{field}.{name} is not searched; valid: {', '.join(known)}")
        own = {
            str(name): replace(known[str(name)], key=f"{field}.{name}").checked(plain(value)) for name, value in given.items()
        }
        values.append(values[0] | own)
    return values


def _storage(one: Plan) -> BaseStorage:
    """Where a study is kept: a journal in its folder, a database, or an Optuna proxy."""
    given = one.config.storage
    if given is None:
        make_folder(one.folder, "run_dir")
        return JournalStorage(JournalFileBackend(str(one.folder / JOURNAL)))
    scheme, _, rest = given.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme == "grpc" and host and port.isdecimal():
        proxy = GrpcStorageProxy(host=host, port=int(port))
        try:
            proxy.wait_server_ready(timeout=10)
        except Exception:  # grpc's own, which need not be there to be named
            raise ConfigError(f"storage = {shown(given)}: no Optuna proxy answers there") from None
        return proxy
    if not rest or scheme == "grpc":
        raise ConfigError(f"storage = {shown(given)}; valid: {STORAGES}")
    try:
        return RDBStorage(given)
    except Exception as error:  # SQLAlchemy's, and those of its drivers
        said = " ".join(str(error).split())[:200]
        raise ConfigError(f"storage = {shown(given)} cannot be used ({said}); valid: {STORAGES}") from None


class ByTrial(optuna.samplers.BaseSampler):
    """A sampler that is seeded anew for each trial, by its number in the study.

    So no two trials are proposed by the same chance, whichever processes of whichever machines ask for them at once, and
    whenever a study goes on.

    Args:
        sampler: "random" or "tpe".
        seed: of the study.
    """

    def __init__(self, sampler: str, seed: int):
        self._sampler, self._seed = sampler, seed
        self._own = self._of(0)

    def _of(self, trial: int) -> optuna.samplers.BaseSampler:
        seed = int(np.random.SeedSequence([self._seed, trial]).generate_state(1)[0])
        if self._sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=8, constant_liar=True)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._own = self._of(trial.number)
        self._own.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
        return self._own.infer_relative_search_space(study, trial)

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]) -> dict[str, Any]:
        return self._own.sample_relative(study, trial, search_space)

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: Any) -> Any:
        return self._own.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._own.after_trial(study, trial, state, values)


def _pruner(config: DictConfig) -> optuna.pruners.BasePruner:
    if config.pruner == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=4)
    if config.pruner == "halving":
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    return optuna.pruners.NopPruner()


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~").partition("@")[0]


def main(argv: Sequence[str]) -> int:
    """A process of a study: its number, the source's folder and first file ("" for none), the overrides."""
    number, folder, name, *overrides = argv
    try:
        return 0 if work(plan(overrides, Source(folder or None, name or None))) else 130
    except ConfigError as error:
        print(f"netbuf-gym: error: worker {number}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
