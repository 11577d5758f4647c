"""Common parts of all experiments' settings: command-line arguments, digest, and parsing."""

from __future__ import annotations

import hashlib
import json
import shlex
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils import overrides
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real, check_unique
from netbuf_gym.zoo import library

COMMAND = "netbuf-gym reproduce"


class Range(NamedTuple):
    """Range of valid numbers: [low, high], or (low, high] with `low_open`."""

    low: int | float
    high: int | float
    low_open: bool = False


class Settings:
    """Settings of an experiment: a frozen dataclass for each, whose fields are the keys on the command line.

    A field is a str, int or float, one of these or None, or a tuple of one of them: a list on the command line.

    Attributes:
        experiment: Name of the experiment.
        learned: Scheme that is a trained agent.
        task: Task that such an agent was trained for.
        shipped: Name of the agent of this scheme that comes with the package.
        agents: For each key that names an agent's file, the schemes that play with the agent and the name of the one that
            comes with the package; derived from `learned` and `shipped` if not given.
        names: All schemes.
        by_default: Schemes that need no agent and run if none are named.
        valid: Names or ranges of the keys that have such, beside those of `seeds` and `first_seed`; of lists, of each item.
        schemes: Schemes to run.
        seeds, first_seed: Number of runs in a cell, and the first one's seed.
        agent: File of the learned agent, or its run directory; "" without one.
    """

    experiment: ClassVar[str]
    learned: ClassVar[str]
    task: ClassVar[str]
    shipped: ClassVar[str]
    agents: ClassVar[Mapping[str, tuple[tuple[str, ...], str]]]
    names: ClassVar[tuple[str, ...]]
    by_default: ClassVar[tuple[str, ...]]
    valid: ClassVar[Mapping[str, Range | Collection[str]]] = {}
    schemes: tuple[str, ...]
    seeds: int
    first_seed: int
    agent: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "agents" not in vars(cls):
            cls.agents = {"agent": ((cls.learned,), cls.shipped)}

    def __post_init__(self) -> None:
        """Check the values by `valid`, and that schemes and agents go together."""
        valid = {"seeds": Range(1, 100_000), "first_seed": Range(0, 2**62), **self.valid}
        for key, kind in find_key_kinds(type(self)).items():
            if key in valid:
                object.__setattr__(self, key, _check_value(key, kind, getattr(self, key), valid[key]))
        self.require_agent()

    @property
    def label(self) -> str:
        """Name of a campaign's folder, before the digest."""
        return self.experiment

    def list_seeds(self) -> list[int]:
        """Return the seeds of every cell."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON-compatible data, equal for campaigns that give equal results, apart from the version."""
        return json.loads(json.dumps(asdict(typing.cast(Any, self))))

    def digest(self) -> str:
        """Return eight characters that identify the campaign."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:8]

    def command(self) -> str:
        """Return the shortest command line that gives these settings."""
        files = self.find_agent_files()
        made: Any = type(self)
        played = dict.fromkeys(scheme for key in files for scheme in self.agents[key][0])
        normal = made(schemes=(*self.by_default, *played), **files).to_dict() | dict.fromkeys(self.agents, "")
        words = [f"{COMMAND} {self.experiment}"]
        for key, value in self.to_dict().items():
            if value != normal[key]:
                text = f"[{','.join(map(format_value, value))}]" if isinstance(value, list) else format_value(value)
                words.append(shlex.quote(f"{key}={text}") if not text.startswith("[") else f"{key}={text}")
        return " ".join(words)

    def find_agent_files(self) -> dict[str, str]:
        """Return the agents' files that were given, by key."""
        return {key: file for key in self.agents if (file := getattr(self, key))}

    def require_agent(self) -> None:
        """Raise ConfigError if an agent is given without its schemes, or one of these without an agent."""
        for key, (schemes, _) in self.agents.items():
            file = getattr(self, key)
            playing = [scheme for scheme in schemes if scheme in self.schemes]
            if playing and not file:
                what = "agent" if key == "agent" else f"{key}=FILE"
                valid = f"{key}=FILE, a model or run directory"
                raise ConfigError(f"schemes holds {playing[0]!r}, but there is no {what}; valid: {valid}")
            if file and not playing:
                missing = " or ".join(map(repr, schemes))
                raise ConfigError(f"{key} = {file!r}, but schemes has no {missing}; valid: both or neither")

    @classmethod
    def bundled(cls, key: str = "agent") -> str:
        """Return the path of a key's trained agent that comes with the package; "" if there is none."""
        shipped = cls.agents[key][1]
        return shorten_path(library.find_agent_path(shipped)) if shipped in library.names() else ""

    @classmethod
    def from_values(cls, given: Mapping[str, Any]) -> Settings:
        """Return the settings of the given values, completed by their consequences: `schemes=all`, agents and their schemes.

        Raises:
            ConfigError: A value out of range.
            CheckpointError: An agent that is neither a file nor a name.
        """
        given = dict(given)
        if given.get("schemes") == ("all",):
            absent = {one for key, (own, _) in cls.agents.items() if not given.get(key) and not cls.bundled(key) for one in own}
            given["schemes"] = tuple(name for name in cls.names if name not in absent)
        elif "schemes" not in given and (
            played := dict.fromkeys(one for key in cls.agents if given.get(key) for one in cls.agents[key][0])
        ):
            given["schemes"] = (*cls.by_default, *played)
        for key, (schemes, _) in cls.agents.items():
            if set(schemes).intersection(given.get("schemes", ())) and not given.get(key) and (found := cls.bundled(key)):
                given[key] = found
            if given.get(key) and (path := library.find_agent_path(given[key], key)) != Path(given[key]):
                given[key] = shorten_path(path)
        return cls(**given)


@dataclass(frozen=True)
class _Kind:
    """Kind of values that a key takes."""

    many: bool
    of: type
    optional: bool


def find_key_kinds(settings: type[Settings]) -> dict[str, _Kind]:
    """Return the kind of values that each key of an experiment takes."""
    hints = typing.get_type_hints(settings)
    return {one.name: _parse_hint(hints[one.name]) for one in fields(typing.cast(Any, settings))}


def _parse_hint(hint: Any) -> _Kind:
    many = typing.get_origin(hint) is tuple
    if many:
        hint = typing.get_args(hint)[0]
    optional = isinstance(hint, types.UnionType)
    return _Kind(many, typing.get_args(hint)[0] if optional else hint, optional)


def _check_value(key: str, kind: _Kind, value: Any, valid: Range | Collection[str]) -> Any:
    """Return a key's value, or raise ConfigError."""
    if kind.many:
        return check_unique(key, [_check_value(key, _Kind(False, kind.of, False), one, valid) for one in value])
    if value is None and kind.optional:
        return None
    if not isinstance(valid, Range):
        return check_choice(key, value, valid)
    if kind.of is int:
        return check_integer(key, value, int(valid.low), int(valid.high))
    return check_real(key, value, valid.low, valid.high, low_open=valid.low_open)


COMMON_KEYS = {
    "output": _Kind(False, str, False),
    "jobs": _Kind(False, int, True),
    "executor": _Kind(False, str, False),
    "figures": _Kind(False, bool, False),
}
"""Keys of every experiment that do not change its results."""


def read_arguments(settings: type[Settings], arguments: Sequence[str]) -> dict[str, Any]:
    """Return the values of `key=value` arguments, in Hydra's grammar (`netbuf_gym.utils.overrides`).

    Raises:
        ConfigError: An unknown key, a key given twice, a malformed value.
    """
    known = find_key_kinds(settings) | COMMON_KEYS
    given = overrides.read_overrides(arguments, known)
    for key, value in given.items():
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{key} = {quote(value)} holds a null character; valid: text without one")
        given[key] = _convert_list(key, known[key], value) if known[key].many else _convert_value(known[key], value)
    return given


def shorten_path(path: Path) -> str:
    """Return a path relative to the current folder if it lies below, else as it is."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def format_value(value: Any) -> str:
    """Return a value as typed on the command line."""
    return "null" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _convert_list(key: str, kind: _Kind, value: Any) -> tuple:
    """Return the values of a list; a single value counts as a list of one."""
    items = value if isinstance(value, list) else [value]
    if "" in items or None in items:
        raise ConfigError(f"{key} = {quote(value)} holds an empty value; valid: e.g. {key}=[a,b]")
    return tuple(_convert_value(kind, item) for item in items)


def _convert_value(kind: _Kind, value: Any) -> Any:
    """Convert an integer to a float if the key takes floats, and a number to text if the key takes text (such as a path).

    Other values are returned unchanged; the checks refuse them by name.
    """
    if kind.of is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if kind.of is str:
        return "" if value is None else value if isinstance(value, str) else format_value(value)
    return value
