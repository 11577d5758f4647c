"""`netbuf-gym train`: train an agent by its configuration, with checkpoints; resume an earlier run; see its `--help`.

A resumed run continues bit for bit: networks, optimiser, schedules, random generators, worlds, and the rows of progress.csv
are restored. With a time limit, other torch_threads, a GPU or worlds in real time a resumed run is complete, but its bits
differ.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training import constraints, curriculum
from netbuf_gym.training.checkpoints import checkpoint, versions
from netbuf_gym.training.config import Source, merge_configs
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.jobs import RUN_FILES, Job, load_job
from netbuf_gym.training.ranges import check_actions, check_guesses, check_privileged, check_rollout
from netbuf_gym.utils.files import exclusive_lock, make_folder, name_in_errors, write_atomic
from netbuf_gym.utils.overrides import format_override
from netbuf_gym.utils.progress import print_line
from netbuf_gym.zoo import library

if TYPE_CHECKING:  # imports that take seconds wait until the arguments are checked
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter

    from netbuf_gym.training.checkpoints.learner_state import Moment
    from netbuf_gym.training.checkpoints.replay import EpisodeRecorder

UNREACHABLE_STEPS = 10**9
"""Number of steps beyond any time limit, such as the demo's."""


@dataclass(frozen=True)
class TrainResult:
    """Result of a training job.

    Attributes:
        model_path: model.zip, or checkpoint.zip if the training was interrupted.
        timesteps, seconds: Totals of the whole job, earlier sessions included.
        steps_per_second, env_share: Rate of this session, and its share of time spent in the environment; NaN for learners
            that do not measure it.
        interrupted: Whether a signal ended the training.
        algo: Name of the learner.
        window: Episodes that each return in its log is the mean of.
    """

    model_path: Path
    timesteps: int
    seconds: float
    steps_per_second: float
    env_share: float
    interrupted: bool
    algo: str = ""
    window: int | None = None


def main(job: Job) -> int:
    """Run the command and return its exit status, 0, or 130 when interrupted. Raises as `run` does."""
    result = run(job.config, print_line)

    from netbuf_gym.training import curves

    run_dir = result.model_path.parent
    share = "" if result.env_share != result.env_share else f", {result.env_share:.1%} of the time in the environment"
    print(
        f"{result.timesteps:,} steps in {result.seconds:.0f} s "
        f"({result.steps_per_second:,.0f} steps/s{share}): {result.model_path}"
    )
    print(curves.draw_curve(run_dir, str(result.algo), str(run_dir), result.window))
    print(format_next_step(result))
    return 130 if result.interrupted else 0


def describe_outcome(run_dir: Path) -> tuple[str, str]:
    """Return the label and value of a run for a table of runs: the mean return at its end."""
    from netbuf_gym.training import curves

    values = curves.read_curve(run_dir)[1]
    return "return", f"{values[-1]:.4g}" if values else "-"


def format_next_step(result: TrainResult) -> str:
    """Return the command to run next: the one that resumes, or the one that evaluates."""
    if result.interrupted:
        return f"interrupted; continue with: netbuf-gym train {format_override('resume', result.model_path.parent)}"
    return f"evaluate with: netbuf-gym evaluate {format_override('model', result.model_path.parent)}"


def train(
    overrides: Sequence[str], source: Source | None = None, tell: Callable[[str], None] = lambda text: None
) -> TrainResult:
    """Train by configuration overrides, as on the command line; raises as `load_job` and `run` do.

    Args:
        overrides: Overrides of the configuration.
        source: Sources of the configuration, as the command line's options give them.
        tell: Called before training starts, with a line about the job and its output folder.
    """
    return run(load_job("train", overrides, source).config, tell)


def run(config: DictConfig, tell: Callable[[str], None] = lambda text: None) -> TrainResult:
    """Train, or resume a run, by a configuration as `load_job` returns it.

    Raises:
        ConfigError: The configuration cannot be used.
        CheckpointError: The run cannot be resumed.
        DivergedError: The learner's numbers became infinite or NaN; the last checkpoint remains.
        OSError: The run directory cannot be written.
    """
    if config.resume is None:
        return _start_training(config, tell)
    path = Path(config.resume)
    with exclusive_lock(path if path.is_dir() else path.parent, "resume"):
        return _resume_training(merge_configs(config, {"resume": None}), checkpoint.read_model(path), tell)


def _start_training(config: DictConfig, tell: Callable[[str], None]) -> TrainResult:
    """Train by a configuration from the beginning."""
    note = check_rollout(config.algo, config.env.num_envs)
    run_dir = _resolve_run_dir(config)
    kwargs = build_env_kwargs(config)
    worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
    try:
        check_actions(config.algo, worlds.single_action_space)
        native: Any = worlds.unwrapped
        check_guesses(config.algo, native.engine.task)
        check_privileged(config.algo, native.engine.task)
        constraints.check_terms(constraints.read_constraints(config), native.engine.reward.terms)
        if note is not None:
            _warn(note)
        from netbuf_gym.training import selection

        model, recorder = _prepare_learner(config, worlds)
        make_folder(run_dir, "run_dir")
        with exclusive_lock(run_dir, "run_dir"):
            _require_no_run(run_dir)  # again, now that the lock is held
            checkpoint.remove_leftovers(run_dir)
            selection.remove_selection(run_dir)
            with name_in_errors(run_dir / "config.yaml"):
                write_atomic(run_dir / "config.yaml", OmegaConf.to_yaml(config))
                versions.write_versions(run_dir, config.seed)
            tell(f"training {_describe_training(config)}, into {run_dir}")
            try:
                _imitate(config, model, tell, config.progress)
            except KeyboardInterrupt:
                tell(f"interrupted; begin again with: netbuf-gym train {format_override('resume', run_dir)}")
                raise
            return _run_training(config, model, recorder, describe_env(model, config, kwargs), run_dir, None)
    finally:
        worlds.close()


def _resume_training(config: DictConfig, saved: checkpoint.SavedModel, tell: Callable[[str], None]) -> TrainResult:
    """Resume a run, whose directory is locked, from its model."""
    run_dir = saved.path.parent
    if saved.progress["timesteps"] >= config.total_timesteps:
        checkpoint.remove_leftovers(run_dir)
        raise ConfigError(f"{saved.path}: has all of its {config.total_timesteps} steps; raise total_timesteps to go on")
    if config.max_minutes is not None and saved.progress["seconds"] >= config.max_minutes * 60:
        raise ConfigError(f"{saved.path}: has used its {config.max_minutes:g} minutes; raise max_minutes to go on")
    kwargs = build_env_kwargs(config)
    worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
    try:
        model, recorder = _make_learner(config, worlds)
        description = describe_env(model, config, kwargs)
        checkpoint.require_same_env(saved, description)
        tell(f"going on at {saved.progress['timesteps']:,} steps, training {_describe_training(config)}, in {run_dir}")
        return _run_training(config, model, recorder, description, run_dir, saved)
    finally:
        worlds.close()


def build_learner(config: DictConfig, worlds: gym.vector.VectorEnv) -> tuple[BaseAlgorithm, EpisodeRecorder]:
    """Return the learner of a configuration and its recorder, after loading starting networks and imitation, if configured."""
    model, recorder = _prepare_learner(config, worlds)
    _imitate(config, model)
    return model, recorder


def _prepare_learner(config: DictConfig, worlds: gym.vector.VectorEnv) -> tuple[BaseAlgorithm, EpisodeRecorder]:
    """Return the learner of a configuration with its starting networks, and its recorder; whatever can be refused is."""
    model, recorder = _make_learner(config, worlds)
    if config.start_from is not None:
        native: Any = worlds.unwrapped
        begun = checkpoint.read_model(library.find_agent_path(config.start_from, "start_from"))
        checkpoint.load_start_networks(begun, model, native.engine.task)
    if config.imitate.rule is not None or config.imitate.agent is not None:
        from netbuf_gym.training.algorithms import teachers

        teachers.make_teacher(model, config.imitate.rule, config.imitate.agent)
    return model, recorder


def _imitate(
    config: DictConfig, model: BaseAlgorithm, tell: Callable[[str], None] = lambda text: None, progress: bool = False
) -> None:
    from netbuf_gym.training.algorithms import imitation

    imitation.imitate_from_config(config.imitate, model, tell, progress)


def _describe_training(config: DictConfig) -> str:
    limit = (
        f"{config.total_timesteps:,} steps" if config.total_timesteps < UNREACHABLE_STEPS or config.max_minutes is None else ""
    )
    if config.max_minutes is not None:
        limit += f"{' or ' if limit else ''}{config.max_minutes:g} minutes"
    known = config.env.name in tasks.names()
    scenario = config.scenario.name or (tasks.get(config.env.name).rules.default_scenario if known else config.env.name)
    return f"{config.algo.name} on {scenario} for {limit}"


def _make_learner(config: DictConfig, worlds: gym.vector.VectorEnv) -> tuple[BaseAlgorithm, EpisodeRecorder]:
    """Return the learner of a configuration, and its worlds wrapped in a recorder."""
    import torch as th

    from netbuf_gym.integrations.sb3 import VectorEnvAdapter
    from netbuf_gym.training import models
    from netbuf_gym.training.checkpoints.replay import EpisodeRecorder

    th.set_num_threads(config.torch_threads)  # affects the initial weights, too
    recorder = EpisodeRecorder(worlds, curriculum.build_stage_sources(config, worlds))
    shape = {"stagger_steps": config.stagger_steps, "twins": config.twins}
    adapter = VectorEnvAdapter(recorder, info_keywords=_get_measures(worlds).logged, **shape)
    return models.make_model(config.algo, adapter, config.seed, device=config.device), recorder


def describe_env(model: BaseAlgorithm, config: DictConfig, kwargs: dict[str, Any]) -> dict[str, Any]:
    from netbuf_gym.training import models

    return checkpoint.describe_env(models.get_worlds(model), config.env.id, kwargs)


def _get_measures(worlds: gym.vector.VectorEnv) -> Measures:
    native: Any = worlds.unwrapped
    return tasks.get(native.engine.task.name).measures


def _resolve_run_dir(config: DictConfig) -> Path:
    """Return the run directory: the configured one, which must not hold a run, or one named by the time."""
    if config.run_dir is None:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}"
        return Path("runs", config.env.name, config.algo.name, name)
    run_dir = Path(config.run_dir)
    if not config.run_dir.strip() or "\0" in config.run_dir:
        raise ConfigError(f"run_dir = {config.run_dir!r} names no folder; valid: a folder, or null for a new one below runs/")
    _require_no_run(run_dir)
    return run_dir


def _require_no_run(run_dir: Path) -> None:
    """Raise ConfigError for a directory that holds a run."""
    for name in RUN_FILES:
        if (run_dir / name).exists():
            goes_on = format_override("resume", run_dir)
            raise ConfigError(f"run_dir = {str(run_dir)!r} holds a run already ({name}); {goes_on} continues it")


def _warn(line: str) -> None:
    print(f"netbuf-gym: warning: {line}", file=sys.stderr, flush=True)


def _run_training(
    config: DictConfig,
    model: BaseAlgorithm,
    recorder: EpisodeRecorder,
    env: dict[str, Any],
    run_dir: Path,
    saved: checkpoint.SavedModel | None,
) -> TrainResult:
    """Train a built model to its end or an interruption, and save it."""
    from stable_baselines3.common.logger import Logger

    from netbuf_gym.training import callbacks, learning, selection, wandb_log
    from netbuf_gym.training.checkpoints import learner_state as moments

    moment = None if saved is None else _restore_learner(saved, model, recorder, config)
    steps_before, rows = model.num_timesteps, None if saved is not None else 0
    if moment is not None:
        rows = moment.numbers["rows"]
        steps_before = moment.numbers["counters"]["num_timesteps"]
    interrupt = callbacks.Interrupt()
    seconds_before = 0.0 if saved is None else float(saved.progress["seconds"])
    stop = callbacks.StopCondition(interrupt, None if config.max_minutes is None else config.max_minutes * 60, seconds_before)

    lagrangian = make_lagrangian(config, saved)

    def write(name: str | Path, moment: moments.Moment | None = None, finished: bool = False) -> Path:
        progress = {
            "timesteps": model.num_timesteps,
            "seconds": stop.seconds,
            "updates": model._n_updates,
            "finished": finished,
            **({} if lagrangian is None else {"constraints": lagrangian.to_dict()}),
        }
        (run_dir / name).parent.mkdir(exist_ok=True)
        checkpoint.save_model(run_dir / name, model, config, env, progress, moment)
        return run_dir / name

    measures = _get_measures(recorder)
    log = callbacks.ProgressCsv(run_dir / "progress.csv", rows)
    boundaries = learning.MomentKeeper(
        stop,
        recorder,
        log,
        lambda moment: write("checkpoint.zip", moment),
        config.checkpoint_minutes * 60,
        0 if moment is None else moment.numbers["iterations"],
    )
    parts: list[BaseCallback] = [callbacks.EpisodeLog(measures.logged)]
    if config.snapshots:
        taken = callbacks.Snapshots(
            config.snapshots, config.total_timesteps, stop, lambda: write(selection.format_snapshot_path(model.num_timesteps))
        )
        parts.append(taken)
    if config.curriculum:
        parts.append(
            callbacks.StageUpdates(config.total_timesteps, stop, curriculum.make_stage_setter(config, recorder.set_stage))
        )
    if lagrangian is not None:
        parts.append(make_constraint_updates(config, model, env, lagrangian, stop))
    progress = callbacks.ProgressDisplay(config.total_timesteps, stop, measures.score)
    if config.progress:
        parts.append(progress)
    formats: list[KVWriter] = [log]
    if config.tensorboard:
        formats.append(callbacks.TensorBoardLog(run_dir, None if saved is None else steps_before))
    if config.wandb.mode is not None:
        formats.append(wandb_log.WandbWriter(run_dir, config))
    logger = Logger(str(run_dir), formats)
    model.set_logger(logger)
    if moment is not None:
        moments.restore_pending_log(moment, model)
    with interrupt:
        try:
            with detect_divergence():
                left = learning.learn(model, config.total_timesteps, boundaries, parts, fresh=saved is None)
        finally:
            progress.close()
            logger.close()
        seconds = stop.seconds
        if left is not None:
            path = write("checkpoint.zip", left)
        else:
            path = write("model.zip", finished=True)
            (run_dir / "checkpoint.zip").unlink(missing_ok=True)
            checkpoint.remove_leftovers(run_dir)
    session = seconds - seconds_before
    return TrainResult(
        path,
        model.num_timesteps,
        seconds,
        (model.num_timesteps - steps_before) / session,
        getattr(model, "seconds_in_env", float("nan")) / session,
        left is not None,
        str(config.algo.name),
        model._stats_window_size,
    )


def make_lagrangian(config: DictConfig, saved: checkpoint.SavedModel | None = None) -> constraints.Lagrangian | None:
    """Return the multipliers of a training's constraints, of a resumed run as they were; None where no term pursues any.

    Raises:
        CheckpointError: The run's multipliers are damaged.
    """
    own = constraints.read_constraints(config)
    if all(one.term is None for one in own):
        return None
    made = constraints.Lagrangian(own)
    if saved is not None and "constraints" in saved.progress:
        try:
            made.load(saved.progress["constraints"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"{saved.path}: damaged: its multipliers do not match this job ({error})") from None
    return made


def make_constraint_updates(
    config: DictConfig, model: BaseAlgorithm, env: dict[str, Any], lagrangian: constraints.Lagrangian, stop: Any
) -> BaseCallback:
    """Return the callback that measures violations in training and moves the multipliers.

    Args:
        config: Configuration of the training.
        model: Learner.
        env: Description of its environment, as `describe_env` returns it.
        lagrangian: Multipliers.
        stop: `callbacks.StopCondition` of the training.
    """
    from netbuf_gym.training import callbacks, models
    from netbuf_gym.training.checkpoints import learner_state as moments
    from netbuf_gym.training.checkpoints.saved_agent import SavedAgent

    native: Any = models.get_worlds(model).env.unwrapped
    scenario, threads = env["kwargs"]["scenario"], config.env.threads
    meter = constraints.ViolationMeter(lagrangian.constraints, config.env.name, scenario, config.constraint_worlds, threads)

    def measure() -> constraints.Violations:
        generators = moments.get_generator_states()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.zip")
            progress = {"timesteps": model.num_timesteps, "seconds": 0.0, "updates": model._n_updates, "finished": False}
            checkpoint.save_model(path, model, config, env, progress)
            agent = SavedAgent(checkpoint.read_model(path))
            found = meter.measure(agent, agent.env)
        moments.set_generator_states(generators)
        return found

    shape = config.constraint_updates, config.total_timesteps
    return callbacks.ConstraintUpdates(lagrangian, *shape, stop, measure, native.engine)


@contextmanager
def detect_divergence() -> Iterator[None]:
    """Raise DivergedError for the ValueError of torch's distributions on non-finite values in stable-baselines3's learners."""
    from netbuf_gym.training.algorithms.ppo import DivergedError

    try:
        yield
    except ValueError as error:
        if "Expected parameter" not in str(error):
            raise
        raise DivergedError("training diverged: a smaller learning rate may help") from None


def _restore_learner(
    saved: checkpoint.SavedModel, model: BaseAlgorithm, recorder: EpisodeRecorder, config: DictConfig
) -> Moment | None:
    """Restore the learner's state: at its moment, or without one in new episodes."""
    from netbuf_gym.training import models
    from netbuf_gym.training.checkpoints import learner_state as moments

    if not checkpoint.restore_model(saved, model, rng=True):
        _warn(f"{saved.path}: has no state of optimiser and random generators; both start anew")
    moment, back = None, False
    if saved.has_moment:
        moment, remembered = checkpoint.read_moment(saved)
        try:
            back = moments.resume_moment(moment, model, recorder)
            if remembered is not None:
                moments.set_memory(moment, model, remembered)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError, OverflowError) as error:
            raise CheckpointError(f"{saved.path}: damaged: its learner state does not match this job ({error})") from None
        checkpoint.remove_leftovers(saved.path.parent, keep=moment.numbers.get("memory_file"))
    else:
        model._current_progress_remaining = 1.0 - model.num_timesteps / config.total_timesteps
        if hasattr(model, "learning_starts"):
            model.learning_starts += model.num_timesteps  # the replay memory is empty
    if not back:
        if recorder.recording and moment is not None:
            _warn(f"{saved.path}: its worlds do not come back as they were (of another version?); they start new episodes")
        model._last_obs = None
        seed = (config.seed * 1_000_003 + model.num_timesteps) % 2**31  # other episodes than before
        models.get_worlds(model).seed(seed)
    return moment
