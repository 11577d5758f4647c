"""Jobs of the command line: from overrides to one composed, checked configuration, which `main` of the job's module runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym.errors import CheckpointError, ConfigError, one_line
from netbuf_gym.training import config_errors, ranges
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import Source, load
from netbuf_gym.training.environment import check_scenario, check_validation
from netbuf_gym.utils.overrides import read_override, unquote_text, write_whole

RUN_FILES = ("model.zip", "checkpoint.zip")
CHANGEABLE_KEYS = (
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
"""Keys that a resumed run may change."""


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes:
        name: train, tune, tune_controller, evaluate or demo.
        config: Configuration, resolved and checked.
        overrides: Overrides that it was composed of.
        source: Source that it was composed from.
    """

    name: str
    config: DictConfig
    overrides: list[str]
    source: Source = field(default_factory=Source)


def find_job(command: str, overrides: Sequence[str]) -> str:
    """Return the name of a command's job: `tune` with `controller=` is `tune_controller`."""
    named = command == "tune" and any(one.partition("=")[0] == "controller" for one in overrides)
    return "tune_controller" if named else command


def load_job(name: str, overrides: Sequence[str], source: Source | None = None) -> Job:
    """Return a job with its composed and checked configuration; with `resume=RUN` it is the run's, changed by the overrides.

    Raises:
        ConfigError, ScenarioError: Overrides or values that the job cannot run with.
        CheckpointError: The run to resume cannot be read.
    """
    overrides, source = list(overrides), source or Source()
    if name == "demo":
        overrides = expand_demo_overrides(overrides)
    composed = "train" if name == "demo" else name
    run = find_resumed_run(overrides) if composed == "train" else None
    if run is not None:
        others = [one for one in overrides if not one.startswith("resume=")]
        return Job(name, load_resumed_config(run, others), overrides, source)
    job = Job(name, load(composed, overrides, source), overrides, source)
    check_job(job)
    return job


def check_job(job: Job) -> None:
    """Raise ConfigError or ScenarioError for a configuration that the job cannot run with."""
    config = job.config
    if job.name == "evaluate":
        ranges.check_evaluation(config)
        check_scenario(config)
        return
    if job.name == "tune_controller":
        ranges.check_controller_study(config)
        check_scenario(config)
        return
    ranges.check_training(config)
    if job.name == "tune":
        ranges.check_study(config)
    check_scenario(config)
    check_validation(config)
    ranges.check_algo(config.algo)
    ranges.check_rollout(config.algo, config.env.num_envs)


def find_resumed_run(overrides: Sequence[str]) -> Path | None:
    """Return the run directory or file that `resume=` names; None for null or no such override."""
    named = [one.partition("=")[2] for one in overrides if one.startswith("resume=")]
    if not named or named[-1] == "null":
        return None
    if named[-1] == "":
        raise ConfigError("resume = '' names no run; valid: a run directory, or null")
    return Path(unquote_text(named[-1]))


def load_resumed_config(run: Path, overrides: Sequence[str]) -> DictConfig:
    """Return the configuration of a run with changes; `resume` is the run, or null for one that left no checkpoint.

    Raises:
        CheckpointError: The run cannot be read.
        ConfigError: A change that a resumed run does not take.
    """
    begun = run.is_dir() and not any((run / name).is_file() for name in RUN_FILES) and (run / "config.yaml").is_file()
    if begun:
        config = checkpoint.read_config(run / "config.yaml")
        config.run_dir = str(run)
    elif run.exists():
        config = checkpoint.read_model(run).config
    else:
        raise CheckpointError(f"resume = {str(run)!r}: no such file; valid: a run's directory, or its checkpoint.zip")
    _apply_changes(config, overrides)
    config.resume = None if begun else str(run)
    ranges.check_training(config)
    return config


def _apply_changes(config: DictConfig, overrides: Sequence[str]) -> None:
    """Apply overrides to the configuration of a resumed run; raise ConfigError for keys that cannot change."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or key not in CHANGEABLE_KEYS:
            raise ConfigError(f"{override!r} cannot be combined with resume; valid: {', '.join(CHANGEABLE_KEYS)}")
        if "${" in value:
            raise ConfigError(f"{override!r} cannot be combined with resume; valid: a number, or true, false, null")
        try:
            OmegaConf.update(config, key, read_override(f"{key}={write_whole(value)}")[1])
        except OmegaConfBaseException as error:
            raise ConfigError(one_line(error)) from None


def expand_demo_overrides(overrides: Sequence[str]) -> list[str]:
    """Translate overrides of `netbuf-gym demo` to those of training; given ones take precedence over the demo's own.

    The demo's own worlds are those of the default environment: they are left out where an environment, scenario or experiment
    is chosen.
    """
    own = [one.partition("=")[2].strip() for one in overrides if one.startswith("experiment=")][-1:]
    names = own[0].strip("[]") if own and own[0] not in config_errors.EMPTY_CHOICES else ""
    cores = min(2, len(os.sched_getaffinity(0)))  # a second torch thread gains little, and costs much on a busy machine
    others = [one for one in overrides if not one.startswith("experiment=")]
    chosen = names or any(one.partition("=")[0] in ("env", "scenario", "resume") for one in others)
    experiments = ["demo", *filter(None, names.split(","))] if chosen else ["demo", "worlds/demo"]
    return [f"experiment=[{','.join(experiments)}]", f"env.threads={cores}", *others]
