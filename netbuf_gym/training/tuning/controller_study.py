"""Studies of a controller's parameters with Optuna: the same worlds for all trials, few first, more for those that do well.

A trial plays the first worlds of the study, and twice as many at each further rung, until the pruner gives it up. Its value is
its score less that of the shipped settings in the same worlds, so that values of different rungs can be compared. Worlds are
played by an executor; the study is a journal in its folder, and a trial whose process was killed is tried again.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import optuna
from omegaconf import DictConfig
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, NetbufError, SimulatorFault, one_line, quote
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.pooling import WorldScore, measure_world, pool_scores
from netbuf_gym.evaluation.rollout import View, World
from netbuf_gym.tasks.metrics import FlowPercentile, Score
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import build_scenario_spec, to_plain
from netbuf_gym.training.jobs import Job
from netbuf_gym.training.schema import FIRST_STUDY_SEED, FIRST_VALIDATION_SEED, TuneControllerConfig
from netbuf_gym.training.tuning import search_space as search
from netbuf_gym.training.tuning import study as studies
from netbuf_gym.utils.executors import get_executor
from netbuf_gym.utils.parameters import TunableParameter, format_settings, read_settings
from netbuf_gym.utils.suggestions import suggest_valid

FREE_KEYS = {"trials", "hours", "name", "run_dir", "executor", "jobs", "finalists", "progress"}
"""Keys in which a command that continues a study may differ."""
SHIPPED, VALIDATION, VALIDATION_WORLDS = "shipped", "validation", "validation_worlds"
"""Attributes of the study: scores of the shipped settings, scores in validation, and the worlds of validation that count."""
INVALID, SCORE = "invalid", "score"
"""Attributes of a trial: why it has no score, and its score."""
HERE = "shipped"
"""Key of the shipped settings among the scores in validation; trials have their numbers."""


@dataclass(frozen=True)
class ControllerPlan:
    """A study as configured.

    Attributes:
        overrides: Overrides of the command line.
        config: Composed configuration.
        task: Name of the task.
        settings: Parameters that are searched.
        score: Score to be tuned for.
        percentile: The percentile over flows that the score is; None for others.
        scenario, validation: Scenarios of trials and of validation.
        env: Arguments of the environment beside those of the controller, which may depend on its settings.
    """

    overrides: list[str]
    config: DictConfig
    task: str
    settings: list[search.SearchSetting]
    score: Score
    percentile: FlowPercentile | None
    scenario: str | dict[str, Any]
    validation: str | dict[str, Any]
    env: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.config.name or f"{self.task}-{self.config.controller.partition(':')[0]}"

    @property
    def folder(self) -> Path:
        """Output folder."""
        return Path(self.config.run_dir or Path("runs", "tune", self.name))

    @property
    def rungs(self) -> list[int]:
        """Numbers of worlds after which a trial is compared with the others; the last one is all worlds."""
        return [self.config.worlds >> left for left in range(self.config.rungs)][::-1]

    @property
    def seeds(self) -> range:
        """Seeds of the worlds of trials."""
        return range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + self.config.worlds)

    @property
    def validation_seeds(self) -> range:
        """Seeds of the worlds of validation."""
        return range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + self.config.validation_worlds)

    def make_word(self, settings: Mapping[str, Any]) -> str:
        """Return the name of the controller with settings; without any, of the shipped one."""
        return format_settings(self.config.controller, settings)

    def propose_settings(self, trial: optuna.Trial) -> dict[str, Any]:
        """Return a trial's settings by the parameters' names."""
        return {one.name: one.propose(trial) for one in self.settings}

    def get_trial_settings(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the settings of a trial by the parameters' names."""
        return self.propose_settings(optuna.trial.FixedTrial(trial.params))  # type: ignore[arg-type]

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a score is better than another."""
        return value < other if self.score.lower_is_better else value > other


def make_plan(job: Job) -> ControllerPlan:
    """Return the plan of a job.

    Raises:
        ConfigError, ScenarioError: A controller without parameters, an invalid search, or worlds that it does not fit.
    """
    config = job.config
    task = resolve_task(config.controller, config.task)
    record, controller = tasks.get(task), rollout.get_controller(config.controller, task)
    score = record.measures.get_score(config.objective, "objective")
    scenario = build_scenario_spec(config.scenario, record.benchmark[0])
    validation = build_scenario_spec(config.validation) or scenario
    if config.validation.kwargs and config.validation.name is None:
        raise ConfigError("validation.kwargs are given without validation.name; valid: both, or neither")
    env = {key: config[key] for key in ("agents", "interval_s") if config[key] is not None}
    settings = read_search(controller, config.controller, to_plain(config.search))
    plan = ControllerPlan(
        *(job.overrides, config, task, settings, score, record.measures.percentiles.get(score.metric)),
        *(scenario, validation, env),
    )
    get_executor(config.executor)
    for one in (scenario, validation):
        rollout.check_controller(controller, one, task=task, **plan.env)
    studies.list_initial_trials(settings, _encode_shipped(plan), config.begin_with)
    return plan


def resolve_task(word: str, task: str | None) -> str:
    """Return the task of a controller with parameters.

    Raises:
        ConfigError: The controller is unknown, or has no parameters.
    """
    for name in tasks.names() if task is None else [tasks.get(task).name]:
        if word in tasks.get(name).controllers:
            controller = rollout.get_controller(word, name)
            if controller.parameters and controller.own_code is None:
                return name
    known = {name: make for one in tasks.records() if task in (None, one.name) for name, make in one.controllers.items()}
    tunable = [name for name, make in known.items() if make().parameters]
    raise ConfigError(f"controller = {quote(word)} has no parameters to be tuned; {suggest_valid(word, tunable)}")


def read_search(controller: Controller, word: str, changes: Mapping[str, Any]) -> list[search.SearchSetting]:
    """Return the parameters that are searched, without those that the controller's name sets.

    Args:
        controller: The controller.
        word: Its name, with settings or without.
        changes: Changes of the declared ranges, by parameter; None leaves one out.

    Raises:
        ConfigError: An unknown parameter, a range outside of what is valid, or no parameter left.
    """
    declared = {one.name: one for one in controller.parameters}
    name, colon, text = word.partition(":")
    fixed = read_settings(name, text, controller.parameters) if colon else {}
    for key in changes:
        if key not in declared:
            raise ConfigError(f"search.{key} is no parameter of {name}; {suggest_valid(key, list(declared))}")
    found = []
    for key, parameter in declared.items():
        own = changes.get(key, {})
        searched = parameter.search_range
        if key in fixed or own is None or (not own and searched is None):
            continue
        found.append(_make_setting(parameter, searched or {}, own))
    if not found:
        raise ConfigError(
            f"search has no parameter of {name} left to be searched; valid: at least one of {', '.join(declared)}"
        )
    return found


def _make_setting(parameter: TunableParameter, searched: Mapping[str, Any], own: Any) -> search.SearchSetting:
    """Return a parameter's setting, with changes of its declared range."""
    if not isinstance(own, Mapping):
        raise ConfigError(f"search.{parameter.name} = {quote(own)}; valid: a mapping of low and high or choices, or null")
    said = {**({} if "choices" in own else searched), **own}
    if "low" in said and said["low"] is not None and not isinstance(said["low"], bool) and "log" not in own:
        said["log"] = bool(said.get("log")) and isinstance(said["low"], (int, float)) and said["low"] > 0
    setting = search.parse_setting(parameter.name, {**said, "key": f"controller.{parameter.name}"})
    for label, value in (
        [(f"choices[{at}]", one) for at, one in enumerate(setting.choices)]
        if setting.choices
        else [("low", setting.low), ("high", setting.high)]
    ):
        whole = int(value) if parameter.whole and isinstance(value, float) and value.is_integer() else value
        replace(parameter, name=f"search.{parameter.name}.{label}").check(whole)
    return replace(setting, whole=setting.whole or parameter.whole)


def _encode_shipped(plan: ControllerPlan) -> dict[str, Any]:
    """Return Optuna's encoding of the searched values nearest to the shipped ones."""
    own = {one.name: one.default for one in rollout.get_controller(plan.config.controller, plan.task).parameters}
    off = {one.name: one.high for one in plan.settings if own[one.name] is None}  # never, in the words of parameters
    return {one.name: one.encode_nearest(off.get(one.name, own[one.name])) for one in plan.settings}


def open_study(plan: ControllerPlan) -> optuna.Study:
    """Open the study; a new one begins with what is nearest to the shipped settings, and then the settings of `begin_with`.

    Raises:
        ConfigError: A study of another configuration.
        MissingExtraError: CMA-ES is not installed.
    """
    config = plan.config
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(plan.folder / studies.JOURNAL))),
        study_name=plan.name,
        sampler=studies.TrialSeededSampler(config.sampler, config.seed),
        pruner=studies.make_pruner(config.pruner, plan.rungs[0]),
        direction="minimize" if plan.score.lower_is_better else "maximize",
        load_if_exists=True,
    )
    beginnings = studies.list_initial_trials(plan.settings, _encode_shipped(plan), config.begin_with)
    where = f"study {plan.name!r} in {plan.folder}"
    studies.begin_or_continue(study, where, config, TuneControllerConfig, FREE_KEYS, plan.overrides, beginnings)
    for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):  # the folder's lock is ours
        studies.retry_trial(study, one.number)
    return study


@dataclass(frozen=True)
class Piece:
    """Worlds that a controller is to play.

    Attributes:
        owner: Number of the trial, or whatever the results are for.
        word: Name of the controller.
        seeds: Seeds of the worlds.
    """

    owner: int
    word: str
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Played:
    """Results of a piece: the worlds' scores in the order of its seeds, core-seconds, and why a world failed ("": none did)."""

    scores: list[WorldScore]
    cpu_s: float
    failure: str = ""


@dataclass(frozen=True)
class WorldPlayer:
    """Callable that plays a piece, in any process.

    Attributes:
        task, scenario, env: As for `netbuf_gym.evaluation.rollout.draw_worlds`.
        metric, percentile: What is measured.
        folder: Working folder.
        stop: Ends the work early, once set; None in other processes.
    """

    task: str
    scenario: str | dict[str, Any]
    env: Mapping[str, Any]
    metric: str
    percentile: FlowPercentile | None
    folder: Path
    stop: threading.Event | None = None

    def __call__(self, piece: Piece) -> Played:
        """Play the worlds of a piece."""
        if self.stop is None:
            os.chdir(self.folder)
        began = time.thread_time()
        found: dict[int, WorldScore] = {}

        def keep(view: View) -> None:
            found[view.index] = measure_world(view, self.metric, self.percentile)

        try:
            controller = rollout.get_controller(piece.word, self.task)
            worlds = [self._draw_world(seed) for seed in piece.seeds]
            rollout.play(controller, worlds, keep, task=self.task, scenario=self.scenario, stop=self.stop, **self.env)
        except SimulatorFault:
            raise
        except NetbufError as error:
            return Played([], time.thread_time() - began, one_line(error))
        return Played([found[index] for index in range(len(worlds))], time.thread_time() - began)

    def _draw_world(self, seed: int) -> World:
        return _draw_world(self.task, json.dumps([self.scenario, dict(self.env)]), seed)


@lru_cache(maxsize=4096)
def _draw_world(task: str, how: str, seed: int) -> World:
    """Draw a world; `how` is the scenario and the environment's arguments, JSON."""
    scenario, env = json.loads(how)
    return rollout.draw_worlds(task, scenario, [seed], **env)[0]


def play_pieces(
    plan: ControllerPlan, scenario: str | dict[str, Any], pieces: Iterable[Piece], interrupt: Interrupt
) -> Iterator[tuple[Piece, Played]]:
    """Yield pieces with their results as they end, until a signal is received."""
    executor, stop = get_executor(plan.config.executor), threading.Event()
    metric, own_stop = plan.score.metric, stop if executor.here else None
    player = WorldPlayer(plan.task, scenario, plan.env, metric, plan.percentile, Path.cwd(), own_stop)
    with closing(executor.run(player, pieces, plan.config.jobs, stop)) as results:  # type: ignore[type-var]
        for piece, played in results:
            if interrupt.received is not None:
                return
            yield piece, played


def split_seeds(owner: int, word: str, seeds: Sequence[int], jobs: int) -> list[Piece]:
    """Split worlds into about as many pieces as there are jobs."""
    size = -(-len(seeds) // jobs)
    return [Piece(owner, word, tuple(seeds[at : at + size])) for at in range(0, len(seeds), size)]


@dataclass(frozen=True)
class Shipped:
    """Scores of the shipped settings in the worlds of trials.

    Attributes:
        scores: Score after each rung.
        known: Whether each world has one of its own; the others count for no trial. All of them where percentiles are pooled.
        cpu_s: Core-seconds.
    """

    scores: list[float]
    known: list[bool]
    cpu_s: float


def measure_shipped(plan: ControllerPlan, study: optuna.Study, interrupt: Interrupt) -> Shipped | None:
    """Return the scores of the shipped settings, which the study keeps; None when interrupted.

    Raises:
        ConfigError: The controller cannot play a world, or has no score in the worlds of a rung.
    """
    kept = study.user_attrs.get(SHIPPED)
    if kept is not None:
        return Shipped(**kept)
    found: dict[int, WorldScore] = {}
    cpu_s = 0.0
    for piece, played in play_pieces(
        plan, plan.scenario, split_seeds(-1, plan.config.controller, plan.seeds, plan.config.jobs), interrupt
    ):
        if played.failure:
            raise ConfigError(f"controller = {quote(piece.word)} cannot play {plan.scenario}: {played.failure}")
        found |= dict(zip(piece.seeds, played.scores, strict=True))
        cpu_s += played.cpu_s
    if len(found) < plan.config.worlds:
        return None
    worlds = [found[seed] for seed in plan.seeds]
    known = [plan.percentile is not None or math.isfinite(one.value) for one in worlds]
    scores = [score_worlds(plan, worlds[:rung], known) for rung in plan.rungs]
    if not all(map(math.isfinite, scores)):
        raise ConfigError(
            f"worlds = {plan.config.worlds}, the first rung {plan.rungs[0]}: {_say_without_score(plan)}; valid: more"
        )
    study.set_user_attr(SHIPPED, {"scores": scores, "known": known, "cpu_s": cpu_s})
    return Shipped(scores, known, cpu_s)


def _say_without_score(plan: ControllerPlan) -> str:
    return f"{plan.config.controller} has no {plan.score.metric} there"


def score_worlds(plan: ControllerPlan, worlds: Sequence[WorldScore], known: Sequence[bool]) -> float:
    """Return the score over those worlds in which the shipped settings have one."""
    kept = [one for one, has in zip(worlds, known, strict=False) if has]
    return pool_scores(kept, plan.score, plan.percentile)


@dataclass
class RunningTrial:
    """A trial under way: its word, the worlds that it has played, and its core-seconds."""

    trial: optuna.Trial
    word: str
    worlds: list[WorldScore] = field(default_factory=list)
    rung: int = 0
    cpu_s: float = 0.0


class TrialQueue(Iterator[Piece]):
    """Pieces of trials as they become known: first of trials that go on, then of new ones.

    May be drawn from in any thread, and again after it was empty, once results have come in.
    """

    def __init__(self, plan: ControllerPlan, study: optuna.Study, shipped: Shipped, interrupt: Interrupt):
        self._plan, self._study, self._shipped, self._interrupt = plan, study, shipped, interrupt
        self._running: dict[int, RunningTrial] = {}
        self._ready: deque[int] = deque()
        self._lock = threading.RLock()
        self.cpu_s = shipped.cpu_s + sum(one.user_attrs.get(studies.CPU, 0.0) for one in study.get_trials(deepcopy=False))

    def __next__(self) -> Piece:
        with self._lock:
            if self._interrupt.received is not None or not (self._ready or self._begin_trial()):
                raise StopIteration
            one = self._running[self._ready.popleft()]
            seeds = self._plan.seeds[len(one.worlds) : self._plan.rungs[one.rung]]
            return Piece(one.trial.number, one.word, tuple(seeds))

    @property
    def is_empty(self) -> bool:
        """True if no trial is under way, and none will begin."""
        with self._lock:
            return not self._running and not self._begin_trial()

    @property
    def share(self) -> float:
        """Share of the core-hours that are over; 0 without a limit."""
        hours = self._plan.config.hours
        return 0.0 if hours is None else min(1.0, self.cpu_s / 3600 / hours)

    def _begin_trial(self) -> bool:
        """Ask for a trial whose settings go together; return whether there is one."""
        config = self._plan.config
        while self.share < 1.0:
            states = (*studies.ENDED_STATES, TrialState.RUNNING)
            if len(self._study.get_trials(deepcopy=False, states=states)) >= config.trials:
                return False
            trial = self._study.ask()
            word = self._plan.make_word(self._plan.propose_settings(trial))
            try:
                rollout.check_controller(
                    rollout.get_controller(word, self._plan.task), self._plan.scenario, task=self._plan.task, **self._plan.env
                )
            except NetbufError as error:
                self._give_up(trial, one_line(error))
                continue
            self._running[trial.number] = RunningTrial(trial, word)
            self._ready.append(trial.number)
            return True
        return False

    def finish(self, piece: Piece, played: Played) -> FrozenTrial | None:
        """Take a piece's results; return the trial if it has ended."""
        with self._lock:
            one = self._running[piece.owner]
            one.cpu_s += played.cpu_s
            self.cpu_s += played.cpu_s
            one.worlds += played.scores
            score = math.nan if played.failure else score_worlds(self._plan, one.worlds, self._shipped.known)
            trial = one.trial
            trial.set_user_attr(studies.CPU, one.cpu_s)
            if not math.isfinite(score):
                del self._running[piece.owner]
                return self._give_up(trial, played.failure or "no score in a world where the shipped settings have one")
            value = score - self._shipped.scores[one.rung]
            trial.set_user_attr(SCORE, score)
            trial.report(value, len(one.worlds))
            one.rung += 1
            if one.rung < len(self._plan.rungs) and not trial.should_prune():
                self._ready.append(piece.owner)
                return None
            del self._running[piece.owner]
            whole = one.rung == len(self._plan.rungs)
            return self._study.tell(trial, value if whole else None, None if whole else TrialState.PRUNED)

    def _give_up(self, trial: optuna.Trial, why: str) -> FrozenTrial:
        trial.set_user_attr(INVALID, why)
        return self._study.tell(trial, state=TrialState.PRUNED)

    def release(self) -> None:
        """Mark the trials under way as lost, to be tried again."""
        with self._lock:
            for number in self._running:
                studies.retry_trial(self._study, number)
            self._running.clear()
            self._ready.clear()


def run_trials(
    plan: ControllerPlan,
    study: optuna.Study,
    shipped: Shipped,
    interrupt: Interrupt,
    tell: Callable[[TrialQueue], None] = lambda queue: None,
) -> bool:
    """Run trials until the study has all of them; return whether it was not interrupted.

    Args:
        tell: Called after each rung of a trial.

    Raises:
        WorkerError: A process was lost; the trials under way are tried again by the next command.
    """
    queue = TrialQueue(plan, study, shipped, interrupt)
    try:
        while interrupt.received is None and not queue.is_empty:
            with closing(play_pieces(plan, plan.scenario, queue, interrupt)) as results:  # type: ignore[type-var]
                for piece, played in results:
                    queue.finish(piece, played)
                    tell(queue)
    finally:
        queue.release()
    return interrupt.received is None


def list_finalists(plan: ControllerPlan, study: optuna.Study) -> list[FrozenTrial]:
    """Return the best trials with a score over all worlds, best first, of different settings, that beat the shipped ones."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    valued = [(one.value, one) for one in complete if one.value is not None and plan.is_better(one.value, 0.0)]
    valued.sort(key=lambda pair: pair[0], reverse=not plan.score.lower_is_better)
    first = {tuple(one.params.items()): one for _, one in reversed(valued)}  # of each settings, the first trial
    return [one for _, one in valued if first[tuple(one.params.items())] is one][: plan.config.finalists]


def validate(
    plan: ControllerPlan, study: optuna.Study, interrupt: Interrupt, each: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float] | None:
    """Return the scores of the shipped settings (`HERE`) and of the finalists, by number, in the worlds of validation.

    The study keeps them. None when interrupted.

    Args:
        each: Called with the number of played worlds and of all of them.

    Raises:
        ConfigError: The shipped settings have no score there.
    """
    kept = dict(study.user_attrs.get(VALIDATION, {}))
    words = {HERE: plan.config.controller} | {
        str(one.number): plan.make_word(plan.get_trial_settings(one)) for one in list_finalists(plan, study)
    }
    owners = [name for name in words if name not in kept]
    worlds: dict[str, dict[int, WorldScore]] = {name: {} for name in owners}
    pieces = [
        piece
        for at, name in enumerate(owners)
        for piece in split_seeds(at, words[name], plan.validation_seeds, plan.config.jobs)
    ]
    done, total, failed = 0, len(owners) * plan.config.validation_worlds, set[str]()
    for piece, played in play_pieces(plan, plan.validation, pieces, interrupt):
        name = owners[piece.owner]
        if played.failure:
            failed.add(name)
        worlds[name] |= dict(zip(piece.seeds, played.scores, strict=False))
        done += len(piece.seeds)
        each(done, total)
    if interrupt.received is not None or done < total:
        return None
    if HERE in owners:
        own = [worlds[HERE].get(seed) for seed in plan.validation_seeds]
        known = [one is not None and (plan.percentile is not None or math.isfinite(one.value)) for one in own]
    else:
        known = study.user_attrs[VALIDATION_WORLDS]
    for name in owners:
        ordered = [worlds[name].get(seed, WorldScore(math.nan)) for seed in plan.validation_seeds]
        kept[name] = math.nan if name in failed else score_worlds(plan, ordered, known)
    if not math.isfinite(kept[HERE]):
        raise ConfigError(
            f"validation_worlds = {plan.config.validation_worlds}: {_say_without_score(plan)}; valid: more of them"
        )
    study.set_user_attr(VALIDATION_WORLDS, known)
    study.set_user_attr(VALIDATION, kept)
    return {name: kept[name] for name in words}


def choose_best(plan: ControllerPlan, scores: Mapping[str, float]) -> str:
    """Return the key of the best score in validation; the shipped settings where none is better."""
    best = HERE
    for name, value in scores.items():
        if math.isfinite(value) and plan.is_better(value, scores[best]):
            best = name
    return best
