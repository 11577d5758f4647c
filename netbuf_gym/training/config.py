"""Configuration of training and evaluation: YAML files under `conf/`, composed by Hydra, checked against the types of `schema`.

A job's configuration is `train.yaml` or `evaluate.yaml` with one file of each group (env, algo, scenario, reward), an
optional `experiment`, and the overrides of the command line in Hydra's grammar (`algo.gamma=0.98`). An unknown key, or a
value of the wrong type, is an error.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints, overload

from hydra import compose
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.version import setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym import scenarios, tasks
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.evaluation import rollout
from netbuf_gym.training import config_errors
from netbuf_gym.training.schema import (
    CONF,
    FIRST_EVALUATION_SEED,
    FIRST_STUDY_SEED,
    FIRST_VALIDATION_SEED,
    JOBS,
    MIN_TRAINING_SEEDS,
    PRUNERS,
    SAMPLERS,
    ScenarioConfig,
)
from netbuf_gym.training.schema import TrainConfig as TrainConfig
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.overrides import unquote_text

MAX_TORCH_THREADS = 1024
DEVICE = re.compile(r"cpu|cuda(:(0|[1-9][0-9]{0,2}))?|auto")
"""Syntax of device names; `models.resolve_device` checks that the device exists."""

_store = ConfigStore.instance()
for _name, _types in JOBS.items():
    _store.store(name=f"{_name}_types", node=_types)


@dataclass(frozen=True)
class Source:
    """Sources of a configuration beside `conf/`: Hydra's options of the same names.

    Attributes:
        config_dir: Folder with further groups and files; None: none.
        config_name: Name of the primary file; None: that of the job.
    """

    config_dir: str | None = None
    config_name: str | None = None

    @property
    def folders(self) -> list[Path]:
        """Folders of configuration files beside `conf/`."""
        return [] if self.config_dir is None else [Path(self.config_dir)]

    def check_folders(self) -> None:
        """Raise ConfigError unless the folders exist and none of their files is hidden by a file of `conf/`."""
        for folder in self.folders:
            if not folder.is_dir():
                raise ConfigError(f"--config-dir {folder}: no such folder")
            for file in sorted(folder.rglob("*.yaml")):
                if (CONF / file.relative_to(folder)).is_file():
                    raise ConfigError(f"{file}: netbuf-gym has a file of this name, which is read instead; valid: another name")


COMPOSE_LOCK = threading.Lock()
"""Lock around Hydra's composition, whose state is global to the process."""


def load(job: str, overrides: Sequence[str], source: Source | None = None) -> DictConfig:
    """Return the configuration of a job ("train", "tune" or "evaluate") with overrides, resolved and checked.

    A scenario without a file is selected by its name: `scenario=trace:path/to/file`. So is a task: its environment is
    then trained on the task's own default scenario. Keys below `kwargs` may be new: `scenario.kwargs.rate_mbps=20`.

    Raises:
        ConfigError: An unknown key, group choice or value; the message is one line, with the likely intended name.
    """
    config = compose_config(job, list(overrides), source or Source())
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        raise config_errors.explain_error(error, overrides, job) from None
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise ConfigError(f"missing: {', '.join(f'{key}=...' for key in missing)}")
    return config


def compose_config(job: str, overrides: list[str], source: Source) -> DictConfig:
    """Return the configuration as composed by Hydra, with interpolations and `???` unresolved; raises as `load` does."""
    source.check_folders()
    for override in overrides:
        config_errors.check_override(override, job, source.folders)
    try:
        with COMPOSE_LOCK, open_hydra(job, source):
            config = compose(source.config_name or job, overrides=normalise_overrides(overrides, job, source))
        _require_keys(config, JOBS[job], job)
        return merge_configs(OmegaConf.structured(JOBS[job]), config)  # typed, whatever the primary file
    except Exception as error:  # any error of Hydra's parts or of files in `config_dir`
        raise config_errors.explain_error(error, overrides, job) from None


@contextmanager
def open_hydra(job: str, source: Source) -> Iterator[Hydra]:
    """Yield a Hydra that reads `conf/` and the source's folders; any other Hydra of the process is restored afterwards.

    Raises:
        ConfigError: The source's folder does not exist, or holds a file that one of `conf/` hides.
    """
    _register_task_configs()
    path = create_config_search_path(str(CONF))
    source.check_folders()
    for folder in source.folders:
        path.append("command-line", f"file://{folder.absolute()}", anchor=SearchPathQuery(provider="main", path=None))
    before = get_gh_backup()
    GlobalHydra.instance().clear()
    setbase("1.3")
    try:
        yield Hydra.create_main_hydra2(job, path)
    finally:
        restore_gh_from_backup(before)


def expand_demo_overrides(overrides: Sequence[str]) -> list[str]:
    """Translate overrides of `netbuf-gym demo` to those of training; given ones take precedence over the demo's own."""
    own = [one.partition("=")[2].strip() for one in overrides if one.startswith("experiment=")][-1:]
    names = own[0].strip("[]") if own and own[0] not in config_errors.EMPTY_CHOICES else ""
    cores = min(2, len(os.sched_getaffinity(0)))  # a second torch thread gains little, and costs much on a busy machine
    others = [one for one in overrides if not one.startswith("experiment=")]
    return [f"experiment=[{','.join(['demo', *filter(None, names.split(','))])}]", f"env.threads={cores}", *others]


def normalise_overrides(overrides: Sequence[str], job: str, source: Source) -> list[str]:
    """Translate the package's short forms of overrides into Hydra's grammar; call inside `open_hydra`."""
    words = [one for override in overrides for one in _normalise_override(override, job, source)]
    for at, word in enumerate(words):
        if word.startswith("tuned="):
            words[at] = f"tuned={_resolve_tuned_file(unquote_text(word[6:]), [*words[:at], *words[at + 1 :]], job, source)}"
    _require_own_experiment(words, source.config_name or job)
    return words


def _require_own_experiment(words: Sequence[str], name: str) -> None:
    """Raise ConfigError for an experiment of one environment combined with `env=` of another, whose arguments differ."""
    asked = [unquote_text(one[4:]) for one in words if one.startswith("env=")]
    experiment = [one for one in words if one.startswith("experiment=")]
    if not asked or not experiment:
        return
    usual, own = (compose(name, overrides=chosen).env.name for chosen in ([], experiment[-1:]))
    if own not in (usual, asked[-1]):
        said = f"{experiment[-1].replace('=', ' = ')} is of env = {own!r}, not of {asked[-1]!r}"
        raise ConfigError(f"{said}; valid: env={own}, or another experiment")


def _resolve_tuned_file(name: str, others: Sequence[str], job: str, source: Source) -> str:
    """Return the name of the file of tuned settings: the learner's, if `tuned/NAME` is a folder with one file per learner."""
    folders = [path for one in (CONF, *source.folders) if (path := one / "tuned" / name).is_dir()]
    if not name or not folders:
        return name
    asked = next((unquote_text(one[4:]) for one in reversed(others) if one.startswith("env=")), name)
    if asked != name and name in tasks.names():
        valid = f"tuned={asked}, where there is one"
        raise ConfigError(f"tuned = {name!r} holds settings of {name}, not of env = {asked!r}; valid: {valid}")
    algo = compose(source.config_name or job, overrides=[*others]).algo.name
    known = sorted(path.stem for folder in folders for path in folder.glob("*.yaml"))
    return f"{name}/{check_choice(f'tuned = {name!r} with algo.name', algo, known)}"


def _require_keys(config: DictConfig, cls: type, job: str, prefix: str = "") -> None:
    """Raise ConfigError for keys that a `+` override or a file has added to the types."""
    kinds = get_type_hints(cls)
    for key in map(str, config):
        if key not in kinds:
            raise ConfigError(config_errors.describe_unknown_key(f"{prefix}{key}", job))
        if is_dataclass(kinds[key]) and isinstance(part := config._get_node(key), DictConfig):
            _require_keys(part, kinds[key], job, f"{prefix}{key}.")


def check_scenario(config: DictConfig) -> None:
    """Raise ScenarioError for a name or arguments that make no scenario; called before anything slow."""
    if config.scenario.name is not None:
        scenarios.get(config.scenario.name, **to_plain(config.scenario.kwargs))


def check_training(config: DictConfig) -> None:
    """Raise ConfigError for values that no training can run with."""
    for key, low, high in (
        ("seed", 0, FIRST_EVALUATION_SEED - 1),
        ("total_timesteps", 1, 10**12),
        ("torch_threads", 1, MAX_TORCH_THREADS),
        ("stagger_steps", 0, 10**6),
        ("checkpoint_minutes", 0.0001, 1e6),
        ("snapshots", 0, 10_000),
        ("imitate.steps", 1, 10**6),
        ("imitate.rounds", 1, 100),
        ("imitate.epochs", 1, 1000),
        ("imitate.spread", 0, 0.5),
        ("env.num_envs", 1, 10**6),
        ("env.threads", 1, MAX_THREADS),
        ("twins", 1, config.env.num_envs),
    ):
        value = OmegaConf.select(config, key)
        if not low <= value <= high:
            raise ConfigError(f"{key} = {value!r} is out of range; valid: {low} to {high}")
    if not DEVICE.fullmatch(config.device):
        raise ConfigError(f"device = {shown(config.device)} is none; valid: cpu, cuda, cuda:N, auto")
    if config.wandb.mode is not None:
        check_choice("wandb.mode", config.wandb.mode, ("offline", "online"))
    if config.env.num_envs % config.twins:
        worlds = config.env.num_envs
        raise ConfigError(f"twins = {config.twins} does not divide env.num_envs = {worlds}; valid: a divisor of it")
    if config.max_minutes is not None and not 0 < config.max_minutes < 1e6:
        raise ConfigError(f"max_minutes = {config.max_minutes!r} is out of range; valid: above 0, or null")


def check_validation(config: DictConfig) -> None:
    """Raise ConfigError for a validation scenario that is not one of the task's."""
    one = config.validation
    if one.name is None and one.kwargs:
        raise ConfigError("validation.kwargs are given without validation.name; valid: both, or neither")
    if one.name is not None and config.env.name in tasks.names():
        try:
            rollout.draw(config.env.name, build_scenario_spec(one), [FIRST_VALIDATION_SEED])
        except NetbufError as error:
            raise ConfigError(f"validation.name = {one.name!r} gives {config.env.name} no world: {error}") from None


def check_study(config: DictConfig) -> None:
    """Raise ConfigError for values that no study can run with."""
    check_training(config)
    check_validation(config)
    for key, low, high in (
        ("trials", 1, 100_000),
        ("seeds", MIN_TRAINING_SEEDS, 100),
        ("rungs", 1, 1000),
        ("worlds", 1, FIRST_EVALUATION_SEED - FIRST_STUDY_SEED),
        ("workers", 1, 1024),
        ("stale_minutes", 0.01, 1e6),
    ):
        if not low <= config[key] <= high:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: {low} to {high}")
    if config.seed + config.seeds > FIRST_VALIDATION_SEED:
        raise ConfigError(f"seed = {config.seed} is out of range; valid: 0 to {FIRST_VALIDATION_SEED - config.seeds}")
    for key, low in (("hours", 0.0), ("slowest", 1.0)):
        if config[key] is not None and not low < config[key] < 1e6:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: above {low:g}, or null")
    check_choice("pruner", config.pruner, PRUNERS)
    check_choice("sampler", config.sampler, SAMPLERS)
    if config.resume is not None:
        raise ConfigError("resume belongs to netbuf-gym train; valid: the study's own command once more, which goes on with it")


def check_evaluation(config: DictConfig) -> None:
    """Raise ConfigError for values that no evaluation can run with."""
    resolve_evaluation_seeds(config.seeds)
    if config.task is not None:
        tasks.get(config.task)
    if not 0 < config.confidence < 1:
        raise ConfigError(f"confidence = {config.confidence!r} is out of range; valid: between 0 and 1")


def resolve_evaluation_seeds(seeds: Any) -> list[int]:
    """Return the evaluation seeds for a number of seeds or a list of them.

    Raises:
        ConfigError: Not a number or a list of whole numbers, too few, repeated, or seeds that training uses.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds < FIRST_EVALUATION_SEED:
        return list(range(FIRST_EVALUATION_SEED, FIRST_EVALUATION_SEED + seeds))
    valid = f"valid: 1 to {FIRST_EVALUATION_SEED - 1} seeds, or a list of seeds from {FIRST_EVALUATION_SEED} on"
    if not OmegaConf.is_list(seeds) and not isinstance(seeds, (list, tuple)):
        raise ConfigError(f"seeds = {shown(seeds)} cannot be used; {valid}")
    chosen = list(seeds)
    if not chosen or len(set(map(str, chosen))) != len(chosen):
        raise ConfigError(f"seeds = {shown(chosen)} is empty or repeats a seed; {valid}")
    for seed in chosen:
        if not isinstance(seed, int) or isinstance(seed, bool) or not FIRST_EVALUATION_SEED <= seed < 2**63:
            raise ConfigError(f"seeds holds {shown(seed)}, which is no evaluation seed; {valid}")
    return chosen


@overload
def build_scenario_spec(scenario: DictConfig | ScenarioConfig, default: str) -> str | dict[str, Any]: ...
@overload
def build_scenario_spec(scenario: DictConfig | ScenarioConfig, default: None = None) -> str | dict[str, Any] | None: ...
def build_scenario_spec(scenario: DictConfig | ScenarioConfig, default: str | None = None) -> str | dict[str, Any] | None:
    """Return the `scenario` argument of an environment.

    Args:
        scenario: Scenario, or validation scenario, of a configuration.
        default: Name that null stands for; None: the environment's own default.
    """
    kwargs, name = to_plain(scenario.kwargs), scenario.name or default
    return {"name": name, **kwargs} if kwargs else name


def merge_configs(*configs: Any) -> DictConfig:
    """Merge OmegaConf mappings, later ones over earlier ones."""
    return cast(DictConfig, OmegaConf.merge(*configs))


def find_differences(one: DictConfig, other: DictConfig) -> list[tuple[str, Any, Any]]:
    """Return the dotted keys in which two configurations differ, with the values of both."""
    then, now = (flatten_leaves(to_plain(config)) for config in (one, other))
    return [(key, then.get(key), now.get(key)) for key in sorted(then.keys() | now.keys()) if then.get(key) != now.get(key)]


def flatten_leaves(value: Any, key: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries into one with dotted keys."""
    if not isinstance(value, dict) or not value:
        return {key: value}
    return {k: v for name, one in value.items() for k, v in flatten_leaves(one, f"{key}.{name}" if key else name).items()}


def to_plain(config: Any) -> Any:
    """Convert OmegaConf containers to dictionaries and lists; return any other value unchanged."""
    return OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config


def _register_task_configs() -> None:
    """Register `env=NAME` for tasks without a file in `conf/env`."""
    for record in tasks.records():
        if (CONF / "env" / f"{record.name}.yaml").is_file():
            continue
        env = {
            "name": record.name,
            "id": record.ids[0],
            "num_envs": "${algo.num_envs}",
            "threads": 1,
            "kwargs": {"recipe": record.rules.recipes[0]},
        }
        node = {"defaults": [{"override /scenario": "default"}, "_self_"], "env": env}
        _store.store(group="env", name=record.name, node=node, package="_global_")


def _normalise_override(override: str, job: str, source: Source) -> list[str]:
    key, _, value = override.partition("=")
    if key == "+tuned":  # the defaults list has it, as null
        return [f"tuned={value}"]
    if key == "env" and job == "evaluate":  # the environment's arguments are the model's
        return [f"task={value}"]
    if key == "scenario" and value and not config_errors.is_sweep(value):
        name = unquote_text(value)
        if not any((folder / "scenario" / f"{name}.yaml").is_file() for folder in (CONF, *source.folders)):
            return ["scenario=named", f"scenario.name={QuotedString(name, Quote.single).with_quotes()}"]
    if (".kwargs." in key or key.startswith("search.")) and not key.startswith(("+", "~")):
        return [f"++{override}"]
    return [override]
