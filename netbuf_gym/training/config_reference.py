"""What there is to be set in a job's configuration: groups with their choices, keys with types, defaults and meanings.

Read from `conf/` and `netbuf_gym.training.schema` without Hydra, for help, completion and messages. A test compares it with
what Hydra composes.
"""

from __future__ import annotations

import copy
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from netbuf_gym import tasks
from netbuf_gym.training import plain_yaml
from netbuf_gym.training.schema import CONF, JOBS
from netbuf_gym.utils.docstrings import arguments_of

NAMED = "named"
"""The scenario file for scenarios without a file of their own; nobody has to write it."""
GLOBAL = "# @package _global_"
"""How files begin that speak of the whole configuration."""
ALIASES = {"evaluate": {"env": "task"}}
"""Keys that stand for others on the command line."""


@dataclass(frozen=True)
class Key:
    """A key of a configuration: its dotted name, what kind of value it takes, its default, what it means."""

    name: str
    kind: str
    default: Any
    meaning: str


def groups(job: str, experiment: str | None = None) -> dict[str, str | None]:
    """Groups of files that a job's configuration is composed of, each with the choice that is its default.

    Args:
        experiment: that the command begins with.
    """
    found: dict[str, str | None] = {}
    for entry in _read(CONF / f"{job}.yaml").get("defaults", []):
        if isinstance(entry, dict):
            found |= {name.removeprefix("override ").strip(): choice for name, choice in entry.items()}
        elif (CONF / f"{entry}.yaml").is_file():
            found |= groups(entry)
    own: dict[str, str | None] = {} if experiment is None else {"experiment": experiment}
    own |= {name: found[choice[2:-1]] for name, choice in found.items() if choice is not None and choice.startswith("${")}
    return {name: choice for name, choice in found.items() if not name.startswith("hydra/")} | own


def choices(group: str, *folders: Path) -> dict[str, str]:
    """The choices of a group with what their files say of them, those of further folders behind ours."""
    found: dict[str, str] = {}
    for folder in (CONF, *folders):
        for path in sorted((folder / group).rglob("*.yaml")):
            name = str(path.relative_to(folder / group).with_suffix(""))
            if not (group == "scenario" and name == NAMED):
                found.setdefault(name, plain_yaml.comment(path.read_text(encoding="utf-8", errors="replace")))
    if group == "env":
        found |= {record.name: record.summary for record in tasks.records()}
    return found


def defaults(job: str, experiment: str | None = None) -> dict[str, Any]:
    """The configuration of a job that nothing is told, interpolations (`${...}`) as they stand.

    Args:
        experiment: that the command begins with; one without a defaults list.
    """
    config = _of_type(JOBS[job])
    for group, choice in groups(job).items():
        if choice is not None:
            text = (CONF / group / f"{choice}.yaml").read_text(encoding="utf-8")
            own = plain_yaml.read(text)
            _merge(config, own if text.startswith(GLOBAL) else {group: own})
    _merge_file(config, job)
    if experiment is not None:
        _merge(config, _read(CONF / "experiment" / f"{experiment}.yaml"))
    return config


def keys(job: str, experiment: str | None = None) -> list[Key]:
    """Every key of a job that is no mapping itself, and `kwargs` with what the defaults have there."""
    return list(_keys(JOBS[job], defaults(job, experiment), ""))


def kwargs_of(group: str, choice: str, *folders: Path) -> dict[str, Any]:
    """What a choice's file has, by dotted names that begin with the group's; {} where it cannot be read."""
    for folder in (CONF, *folders):
        path = folder / group / f"{choice}.yaml"
        if path.is_file():
            try:
                return dict(_flat(_read(path), group))
            except ValueError:
                return {}
    return {}


def text(job: str, experiment: str | None = None, width: int = 128) -> str:
    """Groups and keys as help shows them, with the defaults of the experiment that the command begins with."""
    lines = ["groups (GROUP=CHOICE), with their defaults:"]
    for group, default in groups(job, experiment).items():
        lines.append(f"  {group}={'null' if default is None else default}")
        lines += _wrapped(", ".join(choices(group)) + ("; or any scenario by its name" if group == "scenario" else ""), width)
    lines += ["", "keys (KEY=VALUE), with their types and defaults:"]
    for key in keys(job, experiment):
        lines.append(f"  {key.name}={shown(key.default)}  ({key.kind})")
        lines += _wrapped(key.meaning, width)
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return re.sub(r'"|(?<=[,:]) ', "", json.dumps(value))


def _keys(cls: type, config: Mapping[str, Any], prefix: str) -> Iterator[Key]:
    hints = get_type_hints(cls)
    said: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        said |= arguments_of(base, "Attributes")
    for one in fields(cls):
        kind, value, name = hints[one.name], config[one.name], prefix + one.name
        if isinstance(kind, type) and is_dataclass(kind):
            yield from _keys(kind, value, f"{name}.")
        else:
            yield Key(name, _kind(kind), value, said.get(one.name, ""))


def _kind(kind: Any) -> str:
    words = kind.__name__ if isinstance(kind, type) and not getattr(kind, "__args__", ()) else str(kind)
    words = words.replace("typing.", "").replace("None", "null").replace("dict[str, Any]", "mapping")
    return words.replace("Any", "any").replace("list[", "list of ").replace("]", "").replace(" | ", " or ")


def _of_type(cls: type) -> dict[str, Any]:
    made: dict[str, Any] = {}
    hints = get_type_hints(cls)
    for one in fields(cls):
        if is_dataclass(hints[one.name]):
            made[one.name] = _of_type(hints[one.name])
        elif one.default_factory is not NO_DEFAULT:
            made[one.name] = one.default_factory()
        else:
            made[one.name] = one.default
    return made


def _merge(config: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            _merge(config[key], value)
        else:
            config[key] = copy.deepcopy(value)


def _merge_file(config: dict[str, Any], name: str) -> None:
    """What a first file has beside groups, behind what those have that it is made from."""
    own = _read(CONF / f"{name}.yaml")
    for entry in own.get("defaults", []):
        if isinstance(entry, str) and (CONF / f"{entry}.yaml").is_file():
            _merge_file(config, entry)
    _merge(config, {key: value for key, value in own.items() if key not in ("defaults", "hydra")})


def _flat(config: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}.{key}")
        elif key != "defaults":
            yield f"{prefix}.{key}", value


def _read(path: Path) -> dict[str, Any]:
    return plain_yaml.read(path.read_text(encoding="utf-8"))


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
