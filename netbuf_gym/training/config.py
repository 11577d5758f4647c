"""Configurations of jobs: YAML files under `conf/`, composed by Hydra, checked against the types of `schema`.

A job's configuration is `train.yaml`, `tune.yaml` or `evaluate.yaml` with one file of each group (env, algo, scenario,
reward), an optional `experiment`, and the overrides of the command line in Hydra's grammar (`algo.gamma=0.98`). An unknown
key, or a value of the wrong type, is an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints, overload

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_errors, config_reference
from netbuf_gym.training.config_reference import flatten_leaves as flatten_leaves
from netbuf_gym.training.schema import CONF, JOBS, ScenarioConfig
from netbuf_gym.training.user_files import UserFileSource, check_interpolations
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.overrides import unquote_text, write_whole

HYDRA_VERSION = "1.3"
"""Version of Hydra whose defaults apply."""
COMPOSE_LOCK = threading.RLock()
"""Lock around Hydra's composition, whose state is global to the process."""

for _name, _types in JOBS.items():
    ConfigStore.instance().store(name=f"{_name}_types", node=_types)


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


class ConfigDirPlugin(SearchPathPlugin):
    """Hydra plugin that reads the folders of the source that is composed after `conf/`; without effect elsewhere."""

    folders: Sequence[Path] = ()

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """See `SearchPathPlugin.manipulate_search_path`."""
        for folder in self.folders:
            search_path.append("command-line", f"{UserFileSource.scheme()}://{folder.absolute()}")


def load(job: str, overrides: Sequence[str], source: Source | None = None) -> DictConfig:
    """Return the configuration of a job ("train", "tune" or "evaluate") with overrides, resolved and of the schema's types.

    A scenario without a file is selected by its name: `scenario=trace:path/to/file`. So is a task: its environment is
    then trained on the task's own default scenario. Keys below `kwargs` may be new: `scenario.kwargs.rate_mbps=20`.

    Raises:
        ConfigError: An unknown key, group choice or value; the message is one line, with the likely intended name.
    """
    return resolve_config(compose_config(job, overrides, source or Source())[0], job, overrides)


def compose_config(
    job: str, overrides: Sequence[str], source: Source, hydra_overrides: Sequence[str] = ()
) -> tuple[DictConfig, DictConfig]:
    """Return the configuration of the schema's types, with interpolations unresolved, and the same with Hydra's own part.

    Args:
        job: Name of the job.
        overrides: Overrides of the job.
        source: Source of the configuration.
        hydra_overrides: Overrides of Hydra's own part.

    Raises:
        ConfigError: As `load`.
    """
    source.check_folders()
    for override in overrides:
        config_errors.check_override(override, job, source.folders)
    with config_errors.explain_errors(overrides, job):
        with open_hydra(job, source):
            words = [*normalise_overrides(overrides, job, source), *hydra_overrides]
            whole = compose(source.config_name or job, words, return_hydra_config=True)
        config = OmegaConf.masked_copy(whole, [key for key in map(str, whole) if key != "hydra"])
        _require_keys(config, JOBS[job], job)
        check_interpolations(config)
        return merge_configs(OmegaConf.structured(JOBS[job]), config), whole  # typed, whatever the primary file


def resolve_config(config: DictConfig, job: str, overrides: Sequence[str]) -> DictConfig:
    """Resolve the interpolations of a composed configuration, and return it.

    Raises:
        ConfigError: An interpolation that cannot be resolved, or a missing value.
    """
    with config_errors.explain_errors(overrides, job):
        OmegaConf.resolve(config)
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise ConfigError(f"missing: {', '.join(f'{key}=...' for key in missing)}")
    return config


@contextmanager
def isolate_hydra(source: Source) -> Iterator[None]:
    """Let Hydra read the source's folders too, and restore any other Hydra of the process afterwards."""
    _register_task_configs()
    with COMPOSE_LOCK:
        for plugin in (ConfigDirPlugin, UserFileSource):
            Plugins.instance().register(plugin)  # anew: launchers that run jobs in this process replace Hydra's instances
        before, folders = GlobalHydra.instance().hydra, ConfigDirPlugin.folders
        GlobalHydra.instance().clear()
        ConfigDirPlugin.folders = source.folders
        try:
            yield
        finally:
            ConfigDirPlugin.folders = folders
            GlobalHydra.instance().hydra = before


@contextmanager
def open_hydra(job: str, source: Source) -> Iterator[None]:
    """Initialise Hydra to read `conf/` and the source's folders."""
    with isolate_hydra(source), initialize_config_dir(str(CONF), job_name=job, version_base=HYDRA_VERSION):
        yield


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
        ConfigStore.instance().store(group="env", name=record.name, node=node, package="_global_")


def _normalise_override(override: str, job: str, source: Source) -> list[str]:
    key, _, value = override.partition("=")
    if key == "+tuned":  # the defaults list has it, as null
        return [f"tuned={value}"]
    if (alias := config_reference.ALIASES.get(job, {}).get(key)) is not None:
        return [f"{alias}={value}"]
    if key == "scenario" and value and not config_errors.is_sweep(value):
        name = unquote_text(value)
        if not any((folder / "scenario" / f"{name}.yaml").is_file() for folder in (CONF, *source.folders)):
            return ["scenario=named", f"scenario.name={QuotedString(name, Quote.single).with_quotes()}"]
    if re.fullmatch(r"\w[\w./:-]*", value) and value != "null" and key in config_reference.list_name_keys(job):
        return [f"{key}=[{value}]"]
    if key.lstrip("+") in config_reference.list_integer_keys(job):
        override = f"{key}={write_whole(value)}"
    if (".kwargs." in key or key.startswith("search.")) and not key.startswith(("+", "~")):
        return [f"++{override}"]
    return [override]
