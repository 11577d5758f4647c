"""`netbuf-gym train`: trains an agent by its configuration, with checkpoints; resumes an earlier run; see its `--help`.

A resumed run goes on bit for bit: networks, optimiser, schedules, random generators and worlds come back as they were, and
so do the rows of progress.csv. A time limit, other torch_threads, a GPU or worlds in real time end that: such a run goes on
whole, but not with the same bits.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training import curriculum
from netbuf_gym.training.checkpoints import checkpoint, versions
from netbuf_gym.training.config import Source, check_training, check_validation, load
from netbuf_gym.training.environment import env_kwargs, make_worlds
from netbuf_gym.training.ranges import check_actions, check_algo, check_guesses, check_rollout
from netbuf_gym.utils.files import alone, make_folder, naming, write_atomic
from netbuf_gym.utils.overrides import unquoted, word
from netbuf_gym.utils.progress import say
from netbuf_gym.zoo import library

if TYPE_CHECKING:  # what takes seconds to import waits until the arguments have been checked
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter

    from netbuf_gym.training.checkpoints.learner_state import Moment
    from netbuf_gym.training.checkpoints.replay import Recorder

ENDLESS = 10**9
"""Steps that no time limit is meant to reach, as the demo's."""

RESULTS = ("model.zip", "checkpoint.zip")
CHANGEABLE = (
    "total_timesteps",
    "max_minutes",
    "device",
    "torch_threads",
    "checkpoint_minutes",
    "tensorboard",
    "wandb.mode",
    "progress",
    "env.threads",
)


@dataclass(frozen=True)
class TrainResult:
    """What a training job came to.

    Attributes:
        model_path: model.zip, or checkpoint.zip if it was interrupted.
        timesteps, seconds: of the whole job, earlier sessions included.
        steps_per_second, env_share: of this session; the share of time spent in the environment is NaN for learners
            that do not measure it.
        interrupted: by a signal.
        algo: the learner's name.
        window: episodes that each return in its log is the mean of.
    """

    model_path: Path
    timesteps: int
    seconds: float
    steps_per_second: float
    env_share: float
    interrupted: bool
    algo: str = ""
    window: int | None = None


def main(argv: Sequence[str], source: Source | None = None) -> int:
    """Runs the command with overrides; returns its exit status, 0 or 130 when interrupted. Raises as `train` does."""
    result = train(list(argv), source, say)

    from netbuf_gym.training import curves

    run_dir = result.model_path.parent
    share = "" if result.env_share != result.env_share else f", {result.env_share:.1%} of the time in the environment"
    print(
        f"{result.timesteps:,} steps in {result.seconds:.0f} s "
        f"({result.steps_per_second:,.0f} steps/s{share}): {result.model_path}"
    )
    print(curves.draw(run_dir, str(result.algo), str(run_dir), result.window))
    print(next_step(result))
    return 130 if result.interrupted else 0


def outcome(run_dir: Path) -> tuple[str, str]:
    """What a table of runs says of one, and its label: the mean return when it ended."""
    from netbuf_gym.training import curves

    values = curves.read(run_dir)[1]
    return "return", f"{values[-1]:.4g}" if values else "-"


def next_step(result: TrainResult) -> str:
    """The command that comes next: the one that goes on, or the one that evaluates."""
    if result.interrupted:
        return f"interrupted; continue with: netbuf-gym train {word('resume', result.model_path.parent)}"
    return f"evaluate with: netbuf-gym evaluate {word('model', result.model_path.parent)}"


def train(
    overrides: Sequence[str], source: Source | None = None, tell: Callable[[str], None] = lambda text: None
) -> TrainResult:
    """Trains by configuration overrides, as on the command line.

    Args:
        source: stands for the command line's options.
        tell: is told, before training starts, what is trained and where it is written.

    Raises:
        ConfigError: the configuration cannot be used.
        CheckpointError: the run to resume cannot be.
        DivergedError: the learner's numbers became infinite or NaN; the last checkpoint stands.
        OSError: the run directory cannot be written.
    """
    resumed = [o.partition("=")[2] for o in overrides if o.startswith("resume=")]
    others = [o for o in overrides if not o.startswith("resume=")]
    if resumed and resumed[-1] == "":
        raise ConfigError("resume = '' names no run; valid: a run directory, or null")
    if resumed and resumed[-1] != "null":
        return _resume(Path(unquoted(resumed[-1])), others, tell)
    return _start(load("train", others, source), tell)


def _start(config: DictConfig, tell: Callable[[str], None]) -> TrainResult:
    """Trains by a configuration from the beginning."""
    check_training(config)
    check_validation(config)
    check_algo(config.algo)
    note = check_rollout(config.algo, config.env.num_envs)
    run_dir = _run_dir(config)
    kwargs = env_kwargs(config)
    worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
    try:
        check_actions(config.algo, worlds.single_action_space)
        native: Any = worlds.unwrapped
        check_guesses(config.algo, native.engine.task)
        if note is not None:
            _say(note)
        model, recorder = begin(config, worlds, tell)
        make_folder(run_dir, "run_dir")
        with alone(run_dir, "run_dir"):
            _require_empty(run_dir)  # no other has run in it meanwhile
            checkpoint.tidy(run_dir)
            _forget_choice(run_dir)
            with naming(run_dir / "config.yaml"):
                write_atomic(run_dir / "config.yaml", OmegaConf.to_yaml(config))
                versions.write(run_dir, config.seed)
            tell(f"training {_what(config)}, into {run_dir}")
            return _learn(config, model, recorder, described(model, config, kwargs), run_dir, None)
    finally:
        worlds.close()


def begin(
    config: DictConfig, worlds: gym.vector.VectorEnv, tell: Callable[[str], None] = lambda text: None
) -> tuple[BaseAlgorithm, Recorder]:
    """The learner of a configuration on worlds that are recorded, ready to learn: with what it begins with, if anything."""
    model, recorder = _learner(config, worlds)
    if config.start_from is not None:
        native: Any = worlds.unwrapped
        begun = checkpoint.read(library.path_of(config.start_from, "start_from"))
        checkpoint.start_from(begun, model, native.engine.task)
    from netbuf_gym.training.algorithms import imitation

    imitation.imitate_as(config.imitate, model, tell)
    return model, recorder


def _forget_choice(run_dir: Path) -> None:
    from netbuf_gym.training import selection

    selection.forget(run_dir)


def _what(config: DictConfig) -> str:
    limit = f"{config.total_timesteps:,} steps" if config.total_timesteps < ENDLESS or config.max_minutes is None else ""
    if config.max_minutes is not None:
        limit += f"{' or ' if limit else ''}{config.max_minutes:g} minutes"
    known = config.env.name in tasks.names()
    scenario = config.scenario.name or (tasks.get(config.env.name).rules.default_scenario if known else config.env.name)
    return f"{config.algo.name} on {scenario} for {limit}"


def _resume(run: Path, overrides: Sequence[str], tell: Callable[[str], None]) -> TrainResult:
    """Goes on with the run of a directory or a file; one that was ended before its first checkpoint starts again."""
    if run.is_dir() and not any((run / name).is_file() for name in RESULTS) and (run / "config.yaml").is_file():
        config = checkpoint.read_config(run / "config.yaml")
        _change(config, overrides)
        config.run_dir = str(run)
        return _start(config, tell)
    if not run.exists():
        raise CheckpointError(f"resume = {str(run)!r}: no such file; valid: a run's directory, or its checkpoint.zip")
    folder = run if run.is_dir() else run.parent
    with alone(folder, "resume"):
        return _go_on(run, overrides, tell)


def _go_on(run: Path, overrides: Sequence[str], tell: Callable[[str], None]) -> TrainResult:
    """`_resume`, alone in the directory."""
    saved = checkpoint.read(run)
    config, run_dir = saved.config, saved.path.parent
    _change(config, overrides)
    check_training(config)
    if saved.progress["timesteps"] >= config.total_timesteps:
        checkpoint.tidy(run_dir)
        raise ConfigError(
            f"{saved.path}: has all of its {config.total_timesteps} steps; raise total_timesteps to go on"
        )
    if config.max_minutes is not None and saved.progress["seconds"] >= config.max_minutes * 60:
        raise ConfigError(f"{saved.path}: has used its {config.max_minutes:g} minutes; raise max_minutes to go on")
    kwargs = env_kwargs(config)
    worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
    try:
        model, recorder = _learner(config, worlds)
        description = described(model, config, kwargs)
        checkpoint.require_same_env(saved, description)
        tell(f"going on at {saved.progress['timesteps']:,} steps, training {_what(config)}, in {run_dir}")
        return _learn(config, model, recorder, description, run_dir, saved)
    finally:
        worlds.close()


def _change(config: DictConfig, overrides: Sequence[str]) -> None:
    """Changes what may be changed of a run that goes on; raises ConfigError for anything else."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or key not in CHANGEABLE:
            raise ConfigError(f"{override!r} cannot be combined with resume; valid: {', '.join(CHANGEABLE)}")
        try:
            OmegaConf.update(config, key, OmegaConf.from_dotlist([f"value={value}"]).value)
        except OmegaConfBaseException as error:
            raise ConfigError(" ".join(str(error).split())) from None
    if "${" in " ".join(overrides):
        raise ConfigError("a value of ${...} cannot be combined with resume; valid: a number, or true, false, null")


def _learner(config: DictConfig, worlds: gym.vector.VectorEnv) -> tuple[BaseAlgorithm, Recorder]:
    """The learner of a configuration on worlds that are recorded."""
    import torch as th

    from netbuf_gym.integrations.sb3 import VectorEnvAdapter
    from netbuf_gym.training import models
    from netbuf_gym.training.checkpoints.replay import Recorder

    th.set_num_threads(config.torch_threads)  # the first weights depend on it, too
    recorder = Recorder(worlds, curriculum.sources(config, worlds))
    shape = {"stagger_steps": config.stagger_steps, "twins": config.twins}
    adapter = VectorEnvAdapter(recorder, info_keywords=_measures(worlds).logged, **shape)
    return models.make_model(config.algo, adapter, config.seed, device=config.device), recorder


def described(model: BaseAlgorithm, config: DictConfig, kwargs: dict[str, Any]) -> dict[str, Any]:
    from netbuf_gym.training import models

    return checkpoint.describe(models.worlds_of(model), config.env.id, kwargs)


def _measures(worlds: gym.vector.VectorEnv) -> Measures:
    native: Any = worlds.unwrapped
    return tasks.get(native.engine.task.name).measures


def _run_dir(config: DictConfig) -> Path:
    """The run directory: the one that is asked for, which must not hold a run, or one named by the time."""
    if config.run_dir is None:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}"
        return Path("runs", config.env.name, config.algo.name, name)
    run_dir = Path(config.run_dir)
    if not config.run_dir.strip() or "\0" in config.run_dir:
        raise ConfigError(f"run_dir = {config.run_dir!r} names no folder; valid: a folder, or null for a new one below runs/")
    _require_empty(run_dir)
    return run_dir


def _require_empty(run_dir: Path) -> None:
    """Raises ConfigError for a directory that holds a run."""
    for name in RESULTS:
        if (run_dir / name).exists():
            goes_on = word("resume", run_dir)
            raise ConfigError(f"run_dir = {str(run_dir)!r} holds a run already ({name}); {goes_on} continues it")


def _say(line: str) -> None:
    print(f"netbuf-gym: warning: {line}", file=sys.stderr, flush=True)


def _learn(
    config: DictConfig,
    model: BaseAlgorithm,
    recorder: Recorder,
    env: dict[str, Any],
    run_dir: Path,
    saved: checkpoint.Saved | None,
) -> TrainResult:
    """Trains a built model to its end or an interruption, and saves it."""
    from stable_baselines3.common.logger import Logger

    from netbuf_gym.training import callbacks, learning, selection, wandb_log
    from netbuf_gym.training.checkpoints import learner_state as moments

    moment = None if saved is None else _restore(saved, model, recorder, config)
    steps_before, rows = model.num_timesteps, None if saved is not None else 0
    if moment is not None:
        rows = moment.numbers["rows"]
        steps_before = moment.numbers["counters"]["num_timesteps"]
    interrupt = callbacks.Interrupt()
    seconds_before = 0.0 if saved is None else float(saved.progress["seconds"])
    stop = callbacks.Stop(interrupt, None if config.max_minutes is None else config.max_minutes * 60, seconds_before)

    def write(name: str | Path, moment: moments.Moment | None = None, finished: bool = False) -> Path:
        progress = {
            "timesteps": model.num_timesteps,
            "seconds": stop.seconds,
            "updates": model._n_updates,
            "finished": finished,
        }
        (run_dir / name).parent.mkdir(exist_ok=True)
        checkpoint.save(run_dir / name, model, config, env, progress, moment)
        return run_dir / name

    measures = _measures(recorder)
    log = callbacks.ProgressCsv(run_dir / "progress.csv", rows)
    boundaries = learning.Boundaries(
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
            config.snapshots, config.total_timesteps, stop, lambda: write(selection.snapshot(model.num_timesteps))
        )
        parts.append(taken)
    if config.curriculum:
        parts.append(callbacks.Stages(config.total_timesteps, stop, curriculum.follow(config, recorder.set_stage)))
    progress = callbacks.Progress(config.total_timesteps, stop, measures.score)
    if config.progress:
        parts.append(progress)
    formats: list[KVWriter] = [log]
    if config.tensorboard:
        formats.append(callbacks.TensorBoard(run_dir, None if saved is None else steps_before))
    if config.wandb.mode is not None:
        formats.append(wandb_log.Wandb(run_dir, config))
    logger = Logger(str(run_dir), formats)
    model.set_logger(logger)
    if moment is not None:
        moments.set_pending(moment, model)
    with interrupt:
        try:
            with diverging():
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
            checkpoint.tidy(run_dir)
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


@contextmanager
def diverging() -> Iterator[None]:
    """Raises DivergedError where torch's distributions, of stable-baselines3's own learners, meet what is not finite."""
    from netbuf_gym.training.algorithms.ppo import DivergedError

    try:
        yield
    except ValueError as error:
        if "Expected parameter" not in str(error):
            raise
        raise DivergedError("training diverged: a smaller learning rate may help") from None


def _restore(saved: checkpoint.Saved, model: BaseAlgorithm, recorder: Recorder, config: DictConfig) -> Moment | None:
    """Puts the learner back to where it was saved: to its moment, or if there is none, into new episodes."""
    from netbuf_gym.training import models
    from netbuf_gym.training.checkpoints import learner_state as moments

    if not checkpoint.restore(saved, model, rng=True):
        _say(f"{saved.path}: is packed, without what its optimiser and random generators were at; they begin anew")
    moment, back = None, False
    if saved.has_moment:
        moment, remembered = checkpoint.moment_of(saved)
        try:
            back = moments.go_on(moment, model, recorder)
            if remembered is not None:
                moments.set_memory(moment, model, remembered)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError, OverflowError) as error:
            raise CheckpointError(f"{saved.path}: damaged: its moment is not one of this job ({error})") from None
        checkpoint.tidy(saved.path.parent, keep=moment.numbers.get("memory_file"))
    else:
        model._current_progress_remaining = 1.0 - model.num_timesteps / config.total_timesteps
        if hasattr(model, "learning_starts"):
            model.learning_starts += model.num_timesteps  # it remembers nothing
    if not back:
        if recorder.recording and moment is not None:
            _say(f"{saved.path}: its worlds do not come back as they were (of another version?); they start new episodes")
        model._last_obs = None
        seed = (config.seed * 1_000_003 + model.num_timesteps) % 2**31  # other episodes than the first ones
        models.worlds_of(model).seed(seed)
    return moment
