"""Reference of a job's configuration: groups with their choices, keys with types, defaults and meanings.

Read from `conf/` and `netbuf_gym.training.schema` without Hydra, for help, completion and error messages. Tests compare
the result with Hydra's composition.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from netbuf_gym import tasks
from netbuf_gym.errors import one_line
from netbuf_gym.training.schema import CONF, JOBS
from netbuf_gym.utils.docstrings import parse_arguments
from netbuf_gym.utils.overrides import make_value_whole
from netbuf_gym.utils.yaml_text import read_yaml_text

NAMED_SCENARIO_FILE = "named"
"""The scenario file for scenarios without a file of their own; not a choice for users."""
GLOBAL_PACKAGE_HEADER = "# @package _global_"
"""First line of files that set keys of the whole configuration."""
EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+")
"""Numbers that YAML 1.1 takes for text."""
ALIASES = {"evaluate": {"env": "task"}, "tune_controller": {"env": "task"}}
"""Aliases of keys on the command line, by job."""


COMMANDS = {"tune_controller": "tune"}
"""Commands of the jobs that are not called as theirs."""


@dataclass(frozen=True)
class ConfigKey:
    """A key of a configuration: dotted name, type of value, default, and meaning."""

    name: str
    kind: str
    default: Any
    meaning: str


def read_groups(job: str, experiment: str | None = None) -> dict[str, str | None]:
    """Return the groups of files that a job's configuration is composed of, each with its default choice.

    Args:
        job: Name of the job.
        experiment: Experiment of the command; None: none.
    """
    found: dict[str, str | None] = {}
    for entry in read_yaml(CONF / f"{job}.yaml").get("defaults", []):
        if isinstance(entry, dict):
            found |= {name.removeprefix("override ").strip(): choice for name, choice in entry.items()}
        elif (CONF / f"{entry}.yaml").is_file():
            found |= read_groups(entry)
    own: dict[str, str | None] = {} if experiment is None else {"experiment": experiment}
    own |= {name: found[choice[2:-1]] for name, choice in found.items() if choice is not None and choice.startswith("${")}
    return {name: choice for name, choice in found.items() if not name.startswith("hydra/")} | own


def read_choices(group: str, *folders: Path) -> dict[str, str]:
    """Return the choices of a group with the comments of their files; files of further folders come after those of `conf/`."""
    found: dict[str, str] = {}
    for folder in (CONF, *folders):
        for path in sorted((folder / group).rglob("*.yaml")):
            name = str(path.relative_to(folder / group).with_suffix(""))
            if not (group == "scenario" and name == NAMED_SCENARIO_FILE):
                found.setdefault(name, _read_leading_comment(path))
    if group == "env":
        found |= {record.name: record.summary for record in tasks.records()}
    return found


def compose_defaults(job: str, experiment: str | None = None) -> dict[str, Any]:
    """Return the default configuration of a job, with interpolations (`${...}`) unresolved.

    Args:
        job: Name of the job.
        experiment: Experiment of the command, whose file has no defaults list; None: none.
    """
    config = asdict(JOBS[job]())
    for group, choice in read_groups(job).items():
        if choice is not None:
            path = CONF / group / f"{choice}.yaml"
            own, text = read_yaml(path), path.read_text(encoding="utf-8")
            _merge_into(config, own if text.startswith(GLOBAL_PACKAGE_HEADER) else {group: own})
    _merge_file(config, job)
    if experiment is not None:
        _merge_into(config, read_yaml(CONF / "experiment" / f"{experiment}.yaml"))
    return config


def list_keys(job: str, experiment: str | None = None) -> list[ConfigKey]:
    """Return every key of a job whose type is not a dataclass, with its default."""
    return list(_iterate_keys(JOBS[job], compose_defaults(job, experiment), ""))


@lru_cache(maxsize=8)
def list_integer_keys(*jobs: str) -> frozenset[str]:
    """Return the dotted keys of jobs (none: of all) that hold integers, or lists of them."""
    return frozenset(name for job in jobs or JOBS for name in _iterate_integer_keys(JOBS[job]))


@lru_cache(maxsize=8)
def list_name_keys(job: str) -> frozenset[str]:
    """Return the dotted keys of a job that hold lists of names, for which a single name may stand."""
    return frozenset(one.name for one in list_keys(job) if one.kind.startswith("list of str"))


def make_whole(config: dict[Any, Any], prefix: str = "") -> None:
    """Replace floats that are whole (1e5) by integers, in place, at the keys of `list_integer_keys`.

    Args:
        config: Values, nested.
        prefix: What stands before the keys in the configuration of a job, with a dot.
    """
    for key, value in config.items():
        if isinstance(value, dict):
            make_whole(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" in list_integer_keys():
            config[key] = make_value_whole(value)


def read_choice_kwargs(group: str, choice: str, *folders: Path) -> dict[str, Any]:
    """Return the contents of a choice's file, by dotted names that begin with the group's; {} if the file cannot be read."""
    for folder in (CONF, *folders):
        path = folder / group / f"{choice}.yaml"
        if path.is_file():
            try:
                found = flatten_leaves(read_yaml(path), group)
            except ValueError:
                return {}
            return {name: value for name, value in found.items() if name not in (group, f"{group}.defaults")}
    return {}


def format_reference(job: str, experiment: str | None = None, width: int = 128) -> str:
    """Return the help text of groups and keys, with the defaults of the command's experiment."""
    lines = ["groups (GROUP=CHOICE), with their defaults:"]
    for group, default in read_groups(job, experiment).items():
        lines.append(f"  {group}={'null' if default is None else default}")
        lines += _wrap_words(
            ", ".join(read_choices(group)) + ("; or any scenario by its name" if group == "scenario" else ""), width
        )
    lines += ["", "keys (KEY=VALUE), with their types and defaults:"]
    for key in list_keys(job, experiment):
        lines.append(f"  {key.name}={format_value(key.default)}  ({key.kind})")
        lines += _wrap_words(key.meaning, width)
    return "\n".join(lines)


def format_value(value: Any) -> str:
    """Format a value as on the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return re.sub(r'"|(?<=[,:]) ', "", json.dumps(value))


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a file, as OmegaConf reads it.

    Raises:
        ValueError: The file holds no mapping, is no YAML, or stands for too much (`read_yaml_text`).
    """
    import yaml

    try:
        found = yaml.load(read_yaml_text(path), _make_yaml_loader())
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {one_line(error)}") from None
    if not isinstance(found or {}, dict):
        raise ValueError(f"{path}: holds no mapping")
    return found or {}


@lru_cache(maxsize=1)
def _make_yaml_loader() -> Any:
    """Make PyYAML's loader with the numbers of YAML 1.2, such as 1e-3."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789."))
    return Loader


def _read_leading_comment(path: Path) -> str:
    """Return a file's leading comment in one line, without `@package`."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), path.read_text("utf-8", "replace").splitlines())
    return " ".join(line.lstrip("# ").strip() for line in lines if not line.startswith("# @package"))


def flatten_leaves(value: Any, key: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries into one with dotted keys."""
    if not isinstance(value, dict) or not value:
        return {key: value}
    return {k: v for name, one in value.items() for k, v in flatten_leaves(one, f"{key}.{name}" if key else name).items()}


def _iterate_keys(cls: type, config: Mapping[str, Any], prefix: str) -> Iterator[ConfigKey]:
    hints = get_type_hints(cls)
    said: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        said |= parse_arguments(base, "Attributes")
    for one in fields(cls):
        kind, value, name = hints[one.name], config[one.name], prefix + one.name
        if isinstance(kind, type) and is_dataclass(kind):
            yield from _iterate_keys(kind, value, f"{name}.")
        else:
            yield ConfigKey(name, _describe_type(kind), value, said.get(one.name, ""))


def _iterate_integer_keys(cls: type, prefix: str = "") -> Iterator[str]:
    for name, kind in get_type_hints(cls).items():
        if isinstance(kind, type) and is_dataclass(kind):
            yield from _iterate_integer_keys(kind, f"{prefix}{name}.")
        elif kind in (int, int | None, list[int]):
            yield prefix + name


def _describe_type(kind: Any) -> str:
    words = kind.__name__ if isinstance(kind, type) and not getattr(kind, "__args__", ()) else str(kind)
    words = words.replace("typing.", "").replace("None", "null").replace("dict[str, Any]", "mapping")
    return words.replace("Any", "any").replace("list[", "list of ").replace("]", "").replace(" | ", " or ")


def _merge_into(config: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            _merge_into(config[key], value)
        else:
            config[key] = value


def _merge_file(config: dict[str, Any], name: str) -> None:
    """Merge the keys of a primary file, without its groups, over those of the primary files it is based on."""
    own = read_yaml(CONF / f"{name}.yaml")
    for entry in own.get("defaults", []):
        if isinstance(entry, str) and (CONF / f"{entry}.yaml").is_file():
            _merge_file(config, entry)
    _merge_into(config, {key: value for key, value in own.items() if key not in ("defaults", "hydra")})


def _wrap_words(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
