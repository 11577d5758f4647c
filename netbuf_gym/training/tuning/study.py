"""Studies of settings with Optuna, shared by any number of independent processes.

A trial trains its settings with several seeds side by side, part by part. After each part all models play the study's worlds,
and the mean of their scores decides whether the trial continues. Each trial records its process, and when that was last alive:
a trial whose process is gone, or was silent for too long, is marked as failed and tried again by another.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
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
from netbuf_gym.errors import ConfigError, one_line, quote, require_extra
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training import config_reference, selection
from netbuf_gym.training.algorithms.ppo import DivergedError
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import Source, find_differences, load, merge_configs, to_plain
from netbuf_gym.training.constraints import check_terms
from netbuf_gym.training.criteria import Criterion, resolve_criterion
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.jobs import Job, load_job
from netbuf_gym.training.schema import FIRST_STUDY_SEED, TrainConfig, TuneConfig
from netbuf_gym.training.tuning import search_space as search
from netbuf_gym.training.tuning.trials import InterruptedTrial, TrialTraining
from netbuf_gym.utils.files import make_folder

JOURNAL = "journal.log"
STORAGES = "null, a URL of SQLAlchemy's (sqlite:///FILE), or grpc://HOST:PORT"
STUDY_KEYS = {one.name for one in fields(TuneConfig)} - {one.name for one in fields(TrainConfig)}
"""Keys that training does not have."""
FREE_KEYS = {
    *("trials", "hours", "slowest", "name", "run_dir", "storage", "workers", "stale_minutes", "progress"),
    *("tensorboard", "device", "torch_threads", "checkpoint_minutes", "env.threads", "snapshots"),
}
"""Keys in which a command that continues a study may differ."""
ENDED_STATES = (TrialState.COMPLETE, TrialState.PRUNED)
ENQUEUED = "fixed_params"
"""Optuna's attribute for the settings of an enqueued trial."""
BEAT_SECONDS = 20.0
WORKER, BEAT, CPU, CONFIG, COMMAND = "worker", "beat", "cpu_s", "config", "command"
DIVERGED, SLOW, UNTRAINED = "diverged", "slow", "untrained"

warnings.filterwarnings("ignore", category=ExperimentalWarning)
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass
class StudyPlan:
    """A study as configured.

    Attributes:
        overrides: Overrides of the command line.
        source: Sources of the configuration.
        config: Composed configuration.
        settings: Settings that are searched.
    """

    overrides: list[str]
    source: Source
    config: DictConfig
    settings: list[search.SearchSetting]

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.config.name or f"{self.config.env.name}-{self.config.algo.name}"

    @property
    def folder(self) -> Path:
        """Output folder."""
        return Path(self.config.run_dir or Path("runs", "tune", self.name))

    @property
    def measures(self) -> Measures:
        """Metrics by which the task's agents are evaluated."""
        return tasks.get(self.config.env.name).measures

    @property
    def criterion(self) -> Criterion:
        """Criterion by which settings are compared."""
        return resolve_criterion(self.config)

    def load_training(self, settings: Mapping[str, Any], seed: int) -> DictConfig:
        """Return the configuration of a training with these settings, by their keys."""
        chosen = [search.format_override(key, value) for key, value in settings.items()]
        steps = f"total_timesteps={self.config.total_timesteps}"  # a study has another default
        return load("train", [*self.training_overrides, *chosen, steps, f"seed={seed}"], self.source)

    @property
    def training_overrides(self) -> list[str]:
        """Overrides that training has, too."""
        return [one for one in self.overrides if parse_key(one).partition(".")[0] not in (*STUDY_KEYS, "seed", "run_dir")]


def make_plan(job: Job) -> StudyPlan:
    """Return the plan of a job.

    Raises:
        ConfigError, ScenarioError: An invalid search; an environment that cannot be made.
    """
    config = job.config
    if config.max_minutes is not None:
        raise ConfigError(
            f"max_minutes = {config.max_minutes:g}; valid in a study: null, since scores are compared after total_timesteps; "
            "hours=... limits the study"
        )
    chosen = [parse_key(one) for one in job.overrides]
    settings = search.read_settings(config.search, [one for one in chosen if one not in config_reference.read_groups("tune")])
    for one in settings:
        if OmegaConf.select(config, one.key, default=search) is search:
            raise ConfigError(f"search.{one.name}.key = {quote(one.key)}: there is no such key in the configuration")
    if not tasks.get(config.env.name).measures.score:
        raise ConfigError(f"task {config.env.name!r} has no score to be tuned for; valid: a task with measures")
    made = StudyPlan(job.overrides, job.source, config, settings)
    training = made.load_training({}, config.seed)
    worlds: Any = make_worlds(training.env.id, training.env.num_envs, 1, build_env_kwargs(training))
    check_terms(made.criterion.constraints, worlds.unwrapped.engine.reward.terms)
    worlds.close()  # an environment that cannot be made leaves no study behind
    return made


def parse_plan(overrides: Sequence[str], source: Source | None = None) -> StudyPlan:
    """Return the plan of a command line; raises as `load_job` and `make_plan` do."""
    return make_plan(load_job("tune", overrides, source))


def open_study(one: StudyPlan) -> optuna.Study:
    """Open the study; a new one begins with the defaults as its first trial, and then the settings of `begin_with`.

    A default outside of the search is replaced by the nearest searched value.

    Raises:
        ConfigError: A storage that cannot be used, a study of another configuration, or beginnings that are not searched.
    """
    config = one.config
    beginnings = _list_initial_trials(one)
    try:
        study = optuna.create_study(
            storage=_open_storage(one),
            study_name=one.name,
            sampler=TrialSeededSampler(config.sampler, config.seed),
            pruner=make_pruner(config.pruner),
            direction="minimize" if one.criterion.score.lower_is_better else "maximize",
            load_if_exists=True,
        )
    except StorageInternalError as error:
        raise ConfigError(f"storage = {quote(config.storage)} cannot be used: {one_line(error)[:200]}") from None
    where = f"study {one.name!r} in {config.storage or one.folder}"
    begin_or_continue(study, where, config, TuneConfig, FREE_KEYS, one.overrides, beginnings)
    return study


def begin_or_continue(
    study: optuna.Study,
    where: str,
    config: DictConfig,
    types: type,
    free_keys: Collection[str],
    command: Sequence[str],
    beginnings: Sequence[Mapping[str, Any]],
) -> None:
    """Enqueue the first trials of a new study; compare the configuration with that of an existing one.

    Args:
        where: The study and its place, for messages.
        types: Type of the configuration, whose defaults stand for keys that the study was begun without.
        free_keys: Keys that may differ.
        command: Overrides of the command.
        beginnings: Settings of the first trials, by their names.

    Raises:
        ConfigError: The study is of another configuration.
    """
    known = study.user_attrs.get(CONFIG)
    if known is None:
        for values in beginnings:
            study.enqueue_trial(dict(values), skip_if_exists=True)
        study.set_user_attr(COMMAND, list(command))
        study.set_user_attr(CONFIG, OmegaConf.to_yaml(config))
        return
    then_config = merge_configs(to_plain(OmegaConf.structured(types)), OmegaConf.create(known))
    for key, then, now in find_differences(then_config, config):
        if key not in free_keys and not key.startswith("wandb."):
            raise ConfigError(f"{where} has {key} = {quote(then)}, not {quote(now)}; valid: another name=... or run_dir=...")


def run_trials(one: StudyPlan, tell: Callable[[FrozenTrial], None] = lambda trial: None) -> bool:
    """Run trials until the study has all of them; return whether it was not interrupted.

    Args:
        one: Plan of the study.
        tell: Called with each trial that has ended.

    Raises:
        ConfigError, ScenarioError: Settings that cannot be trained with.
    """
    study = open_study(one)
    with Interrupt() as interrupt:
        while interrupt.received is None and (trial := _ask_trial(study, one)) is not None:
            try:
                tell(_run_trial(study, trial, one, interrupt))
            except (InterruptedTrial, KeyboardInterrupt):
                retry_trial(study, trial.number)
                return False
            except BaseException:
                study.tell(trial, state=TrialState.FAIL)
                raise
    return interrupt.received is None


def list_ended_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that count: complete or pruned."""
    return study.get_trials(deepcopy=False, states=ENDED_STATES)


def find_default_trial(study: optuna.Study, one: StudyPlan) -> FrozenTrial | None:
    """Return the complete trial of the learner's defaults; None if there is none, or a default is outside of the search."""
    values = search.encode_config_values(one.settings, one.config)
    return next(
        (trial for trial in list_ended_trials(study) if trial.state == TrialState.COMPLETE and trial.params == values), None
    )


def compute_cost_ratio(study: optuna.Study, one: StudyPlan) -> float:
    """Return the core-seconds of the best trial relative to the defaults'; 1 without a complete trial of the defaults."""
    first = find_default_trial(study, one)
    return 1.0 if first is None else study.best_trial.user_attrs[CPU] / first.user_attrs[CPU]


def count_core_hours(study: optuna.Study) -> float:
    """Return the core-hours of a study's trials, except for those under way."""
    return sum(one.user_attrs.get(CPU, 0.0) for one in study.get_trials(deepcopy=False)) / 3600


def get_trial_settings(one: StudyPlan, trial: FrozenTrial) -> dict[str, Any]:
    """Return a trial's settings by their keys, as training takes them."""
    fixed = optuna.trial.FixedTrial(trial.params)
    return {setting.key: setting.propose(fixed) for setting in one.settings}  # type: ignore[arg-type]


def _ask_trial(study: optuna.Study, one: StudyPlan) -> optuna.Trial | None:
    """Ask for the next trial; None if none is to begin."""
    _recover_lost_trials(study, one.config.stale_minutes * 60)
    under_way = study.get_trials(deepcopy=False, states=(*ENDED_STATES, TrialState.RUNNING))
    if len(under_way) >= one.config.trials or (one.config.hours is not None and count_core_hours(study) >= one.config.hours):
        return None
    trial = study.ask()
    trial.set_user_attr(WORKER, _identify_process(os.getpid()))
    return trial


def _run_trial(study: optuna.Study, trial: optuna.Trial, one: StudyPlan, interrupt: Interrupt) -> FrozenTrial:
    """Train and score a trial, and report the result to the study."""
    config, score = one.config, one.criterion.score
    settings = {setting.key: setting.propose(trial) for setting in one.settings}
    began, value = time.process_time(), float("nan")

    def finish(value: float | None = None) -> FrozenTrial:
        trial.set_user_attr(CPU, time.process_time() - began)
        return study.tell(trial, value, TrialState.PRUNED if value is None else None)

    with ExitStack() as trainings:
        try:
            alive = _Heartbeat(trial, began + _get_time_limit(study, one))
            each = []
            for seed in range(config.seed, config.seed + config.seeds):
                training = TrialTraining(one.load_training(settings, seed), interrupt, alive)
                each.append(trainings.enter_context(closing(training)))
            for rung in range(1, config.rungs + 1):
                scores = []
                for training in each:
                    training.train_until(config.total_timesteps * rung // config.rungs)
                    scores.append(_score_training(training, one))
                    alive()
                trial.set_user_attr(f"scores_{rung}", scores)
                value = selection.compute_mean_score(np.array(scores), score.geometric)
                trial.report(value, rung)
                if rung < config.rungs and trial.should_prune():
                    return finish()
        except DivergedError:
            trial.set_user_attr(DIVERGED, True)
            return finish()
        except SlowError:
            trial.set_user_attr(SLOW, True)
            return finish()
        if trial.number > 0 and not all(training.has_learned for training in each):  # trial 0, the defaults, is the reference
            trial.set_user_attr(UNTRAINED, True)
            return finish()
    return finish(value if np.isfinite(value) else None)  # NaN if no world gave a score


def _score_training(training: TrialTraining, one: StudyPlan) -> float:
    """Return a training's current score in the study's worlds."""
    task, scenario = one.config.env.name, selection.resolve_validation_scenario(one.config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.zip")
        training.write(path)
        seeds = range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + one.config.worlds)
        return selection.score_models([path], task, scenario, seeds, criterion=one.criterion)[0]


def _get_time_limit(study: optuna.Study, one: StudyPlan) -> float:
    """Return the core-seconds that a trial may take; infinite until the defaults have ended."""
    first = find_default_trial(study, one)
    return float("inf") if first is None or one.config.slowest is None else one.config.slowest * first.user_attrs[CPU]


class SlowError(Exception):
    """A trial took more core-seconds than allowed."""


class _Heartbeat:
    """Records in a trial, now and then, that its process is alive, and raises SlowError after a process time."""

    def __init__(self, trial: optuna.Trial, end_s: float):
        self.trial, self.end_s, self._last = trial, end_s, 0.0
        self()

    def __call__(self) -> None:
        if time.process_time() > self.end_s:
            raise SlowError
        if time.monotonic() - self._last >= BEAT_SECONDS:
            self.trial.set_user_attr(BEAT, time.time())
            self._last = time.monotonic()


def _recover_lost_trials(study: optuna.Study, stale_seconds: float) -> None:
    """Mark trials as failed whose processes are gone, and enqueue them again."""
    host = f"{socket.gethostname()}:"
    for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker, began = one.user_attrs.get(WORKER, ""), one.datetime_start
        beat = one.user_attrs.get(BEAT, began.timestamp() if began else time.time())
        gone = worker.startswith(host) and worker != _identify_process(int(worker.split(":")[1]))
        if gone or time.time() - beat > stale_seconds:
            retry_trial(study, one.number)


def retry_trial(study: optuna.Study, number: int) -> None:
    """Mark a trial as failed, and enqueue its settings again, unless another process did so first."""
    try:
        lost = study.tell(number, state=TrialState.FAIL)
    except (ValueError, UpdateFinishedTrialError):
        return
    settings = lost.system_attrs.get(ENQUEUED, {}) | lost.params  # enqueued, and sampled ones
    study.enqueue_trial(settings, user_attrs={"again": number})


def _identify_process(pid: int) -> str:
    """Identify a process of this machine by its number and start time, since numbers are reused; "" if there is none."""
    try:
        began = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
    return f"{socket.gethostname()}:{pid}:{began}"


def _list_initial_trials(one: StudyPlan) -> list[dict[str, Any]]:
    return list_initial_trials(one.settings, search.encode_nearest_values(one.settings, one.config), one.config.begin_with)


def list_initial_trials(
    settings: Sequence[search.SearchSetting], defaults: dict[str, Any], begin_with: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return the settings of the trials that a study begins with, by their names: the defaults, and then `begin_with`.

    Raises:
        ConfigError: A setting of `begin_with` that is not searched, or a value outside of its search.
    """
    values = [defaults]
    known = {setting.name: setting for setting in settings}
    for at, given in enumerate(begin_with):
        field = f"begin_with[{at}]"
        if not OmegaConf.is_dict(given):
            raise ConfigError(f"{field} = {quote(given)}; valid: a mapping of settings, of {', '.join(known)}")
        for name in given:
            if name not in known:
                raise ConfigError(f"{field}.{name} is not searched; valid: {', '.join(known)}")
        own = {
            str(name): replace(known[str(name)], key=f"{field}.{name}").encode_checked(to_plain(value))
            for name, value in given.items()
        }
        values.append(values[0] | own)
    return values


def _open_storage(one: StudyPlan) -> BaseStorage:
    """Open the study's storage: a journal in its folder, a database, or an Optuna proxy."""
    given = one.config.storage
    if given is None:
        make_folder(one.folder, "run_dir")
        storage = JournalStorage(JournalFileBackend(str(one.folder / JOURNAL)))
        if others := [study.study_name for study in storage.get_all_studies() if study.study_name != one.name]:
            there = f"run_dir = {quote(str(one.folder))} holds the study {quote(others[0])}, whose results are kept there"
            raise ConfigError(f"{there}; valid for {quote(one.name)}: another folder")
        return storage
    scheme, _, rest = given.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme == "grpc" and host and port.isdecimal():
        proxy = GrpcStorageProxy(host=host, port=int(port))
        try:
            proxy.wait_server_ready(timeout=10)
        except Exception:  # grpc's own, whose package may be missing
            raise ConfigError(f"storage = {quote(given)}: no Optuna proxy answers there") from None
        return proxy
    if not rest or scheme == "grpc":
        raise ConfigError(f"storage = {quote(given)}; valid: {STORAGES}")
    try:
        return RDBStorage(given)
    except Exception as error:  # any of SQLAlchemy and its drivers
        raise ConfigError(f"storage = {quote(given)} cannot be used ({one_line(error)[:200]}); valid: {STORAGES}") from None


class TrialSeededSampler(optuna.samplers.BaseSampler):
    """Sampler that is seeded anew for each trial, by its number in the study.

    No two trials share a random state, whichever processes of whichever machines ask for them at once, and whenever a study is
    continued.

    Args:
        sampler: "random", "tpe" or "cmaes".
        seed: Seed of the study.

    Raises:
        MissingExtraError: CMA-ES is not installed.
    """

    def __init__(self, sampler: str, seed: int):
        if sampler == "cmaes":
            with require_extra("sampler = 'cmaes'", "tune"):
                importlib.import_module("cmaes")
        self._sampler, self._seed = sampler, seed
        self._own = self._make_sampler(0)

    def _make_sampler(self, trial: int) -> optuna.samplers.BaseSampler:
        seed = int(np.random.SeedSequence([self._seed, trial]).generate_state(1)[0])
        if self._sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        if self._sampler == "cmaes":  # its state is in the study
            return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False, consider_pruned_trials=True)
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=8, constant_liar=True)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._own = self._make_sampler(trial.number)
        self._own.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
        return self._own.infer_relative_search_space(study, trial)

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]) -> dict[str, Any]:
        return self._own.sample_relative(study, trial, search_space)

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: Any) -> Any:
        return self._own.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._own.after_trial(study, trial, state, values)


def make_pruner(name: str, first_rung: int = 1) -> optuna.pruners.BasePruner:
    """Return a pruner; `first_rung` is the first step at which trials are compared, each further one at twice the last."""
    if name == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=4)
    if name == "halving":
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=first_rung, reduction_factor=2)
    return optuna.pruners.NopPruner()


def parse_key(override: str) -> str:
    """Return the key of an override, without Hydra's marks."""
    return override.partition("=")[0].lstrip("+~").partition("@")[0]


def main(argv: Sequence[str]) -> int:
    """Run one worker process; `argv`: its number, the source's folder and primary file ("" for none), and the overrides."""
    number, folder, name, *overrides = argv
    try:
        return 0 if run_trials(parse_plan(overrides, Source(folder or None, name or None))) else 130
    except ConfigError as error:
        print(f"netbuf-gym: error: worker {number}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
