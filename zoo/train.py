"""`netbuf-gym train`: trains an agent by its configuration, with checkpoints; resumes an earlier run; see its `--help`.

A resumed run goes on with networks, optimiser, random generators, schedules and timestep count; worlds start new episodes,
and DQN fills its replay buffer anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch as th
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger, make_output_format

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.files import write_atomic
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.overrides import unquoted, word
from netbuf_gym.progress import say
from netbuf_gym.tasks.measures import Measures
from netbuf_gym.zoo import callbacks, checkpoint, curves, models
from netbuf_gym.zoo.config import Source, check_training, load
from netbuf_gym.zoo.ppo import DivergedError

CHANGEABLE = (
    "total_timesteps",
    "max_minutes",
    "torch_threads",
    "checkpoint_minutes",
    "tensorboard",
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
    """

    model_path: Path
    timesteps: int
    seconds: float
    steps_per_second: float
    env_share: float
    interrupted: bool
    algo: str = ""


def main(argv: Sequence[str], source: Source | None = None) -> int:
    """Runs the command with overrides; returns its exit status, 0 or 130 when interrupted. Raises as `train` does."""
    result = train(list(argv), source, say)
    run_dir = result.model_path.parent
    share = "" if result.env_share != result.env_share else f", {result.env_share:.1%} of the time in the environment"
    print(
        f"{result.timesteps:,} steps in {result.seconds:.0f} s "
        f"({result.steps_per_second:,.0f} steps/s{share}): {result.model_path}"
    )
    print(curves.draw(run_dir, str(result.algo), str(run_dir)))
    print(next_step(result))
    return 130 if result.interrupted else 0


def outcome(run_dir: Path) -> tuple[str, str]:
    """What a table of runs says of one, and its label: the mean return when it ended."""
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
    if resumed and resumed[-1] not in ("", "null"):
        return _resume(unquoted(resumed[-1]), others, tell)
    config = load("train", others, source)
    check_training(config)
    env, env_id, kwargs = _make_env(config)
    try:
        model = models.make_model(config.algo, env, config.seed)
        run_dir = _new_run_dir(config)
        tell(f"training {_what(config)}, into {run_dir}")
        return _learn(config, model, checkpoint.describe(env, env_id, kwargs), run_dir, None)
    finally:
        env.close()


def _what(config: DictConfig) -> str:
    limit = "" if config.max_minutes is None else f" or {config.max_minutes:g} minutes"
    known = config.env.name in tasks.names()
    scenario = config.scenario.name or (tasks.get(config.env.name).rules.default_scenario if known else config.env.name)
    return f"{config.algo.name} on {scenario} for {config.total_timesteps:,} steps{limit}"


def _resume(run: str, overrides: Sequence[str], tell: Callable[[str], None]) -> TrainResult:
    saved = checkpoint.read(run)
    config = saved.config
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or key not in CHANGEABLE:
            raise ConfigError(f"{override!r} cannot be combined with resume; valid: {', '.join(CHANGEABLE)}")
        try:
            OmegaConf.update(config, key, OmegaConf.from_dotlist([f"value={value}"]).value)
        except OmegaConfBaseException as error:
            raise ConfigError(" ".join(str(error).split())) from None
    check_training(config)
    if saved.progress["timesteps"] >= config.total_timesteps:
        raise ConfigError(
            f"{saved.path}: has all of its {config.total_timesteps} steps; raise total_timesteps to go on"
        )
    if config.max_minutes is not None and saved.progress["seconds"] >= config.max_minutes * 60:
        raise ConfigError(f"{saved.path}: has used its {config.max_minutes:g} minutes; raise max_minutes to go on")
    env, env_id, kwargs = _make_env(config)
    try:
        description = checkpoint.describe(env, env_id, kwargs)
        checkpoint.require_same_env(saved, description)
        model = models.make_model(config.algo, env, config.seed)
        checkpoint.restore(saved, model, rng=True)
        env.seed((config.seed * 1_000_003 + saved.progress["timesteps"]) % 2**31)  # other episodes than the first ones
        if hasattr(model, "learning_starts"):
            model.learning_starts += model.num_timesteps  # the replay buffer is empty again
        tell(f"going on at {model.num_timesteps:,} steps, training {_what(config)}, in {saved.path.parent}")
        return _learn(config, model, description, saved.path.parent, saved)
    finally:
        env.close()


def _make_env(config: DictConfig) -> tuple[VectorEnvAdapter, str, dict]:
    kwargs = models.env_kwargs(config)
    env = models.make_env(config.env.id, config.env.num_envs, config.env.threads, kwargs)
    env.info_keywords = _measures(env).logged
    env.stagger_steps = config.stagger_steps
    return env, config.env.id, kwargs


def _measures(env: VectorEnvAdapter) -> Measures:
    return tasks.get(env.env.unwrapped.engine.task.name).measures


def _new_run_dir(config: DictConfig) -> Path:
    """Makes the run directory: the one that is asked for, which must not hold a run, or one named by the time."""
    if config.run_dir is None:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}"
        run_dir = Path("runs", config.env.name, config.algo.name, name)
    else:
        run_dir = Path(config.run_dir)
    for name in ("model.zip", "checkpoint.zip"):
        if (run_dir / name).exists():
            raise ConfigError(f"run_dir = {str(run_dir)!r} holds a run already ({name}); resume={run_dir} continues it")
    run_dir.mkdir(parents=True, exist_ok=True)
    write_atomic(run_dir / "config.yaml", OmegaConf.to_yaml(config))
    return run_dir


def _learn(
    config: DictConfig, model: BaseAlgorithm, env: dict, run_dir: Path, saved: checkpoint.Saved | None
) -> TrainResult:
    """Trains a built model to its end or an interruption, and saves it."""
    th.set_num_threads(config.torch_threads)
    max_seconds = None if config.max_minutes is None else config.max_minutes * 60
    seconds_before = 0.0 if saved is None else float(saved.progress["seconds"])
    steps_before = model.num_timesteps
    interrupt = callbacks.Interrupt()
    stop = callbacks.Stop(interrupt, max_seconds, seconds_before)

    def write(name: str, finished: bool) -> Path:
        progress = {
            "timesteps": model.num_timesteps,
            "seconds": stop.seconds,
            "updates": model._n_updates,
            "finished": finished,
        }
        checkpoint.save(run_dir / name, model, config, env, progress)
        return run_dir / name

    measures = _measures(model.get_env())
    parts = [
        stop,
        callbacks.EpisodeLog(measures.logged),
        callbacks.Checkpoints(lambda: write("checkpoint.zip", False), config.checkpoint_minutes * 60),
    ]
    progress = callbacks.Progress(config.total_timesteps, stop, measures.score)
    if config.progress:
        parts.append(progress)
    kinds = ["csv", "tensorboard"] if config.tensorboard else ["csv"]
    suffix = "" if saved is None else f"-from-{steps_before}"
    logger = Logger(str(run_dir), [make_output_format(kind, str(run_dir), suffix) for kind in kinds])
    model.set_logger(logger)
    with interrupt:
        try:
            model.learn(config.total_timesteps - steps_before, callback=parts, reset_num_timesteps=saved is None)
        except ValueError as error:  # torch's distributions, of stable-baselines3's own learners
            if "Expected parameter" not in str(error):
                raise
            raise DivergedError("training diverged: a smaller learning rate may help") from None
        finally:
            progress.close()
            logger.close()
        seconds = stop.seconds
        interrupted = interrupt.received is not None
        if interrupted:
            path = write("checkpoint.zip", False)
        else:
            path = write("model.zip", True)
            (run_dir / "checkpoint.zip").unlink(missing_ok=True)
    session = seconds - seconds_before
    return TrainResult(
        path,
        model.num_timesteps,
        seconds,
        (model.num_timesteps - steps_before) / session,
        getattr(model, "seconds_in_env", float("nan")) / session,
        interrupted,
        str(config.algo.name),
    )
