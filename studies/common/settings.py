"""What settings of all experiments have in common: their words on the command line, their digest, what is read of them."""

from __future__ import annotations

import hashlib
import json
import shlex
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.utils import overrides
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.zoo import library

COMMAND = "netbuf-gym reproduce"


class Settings:
    """What an experiment runs; a frozen dataclass for each, whose fields are its keys on the command line.

    A field is a str, int or float, one of these or None, or a tuple of one of them: a list on the command line.

    Attributes:
        experiment: Its name.
        learned: The scheme that is a trained agent.
        task: The task that such an agent was trained for.
        shipped: The name of the one that comes with the package.
        agents: Of each key that names the file of an agent, the schemes that play with it and the name of the one that comes
            with the package; where there is nothing else than `learned` and `shipped`, it follows of them.
        names: All schemes.
        by_default: Those of them that need no agent and are run where none are named.
        schemes: Those that are run.
        seeds, first_seed: How many runs a cell has, and the first one's seed.
        agent: File of the learned agent, or its run directory; "" without one.
    """

    experiment: ClassVar[str]
    learned: ClassVar[str]
    task: ClassVar[str]
    shipped: ClassVar[str]
    agents: ClassVar[Mapping[str, tuple[tuple[str, ...], str]]]
    names: ClassVar[tuple[str, ...]]
    by_default: ClassVar[tuple[str, ...]]
    schemes: tuple[str, ...]
    seeds: int
    first_seed: int
    agent: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "agents" not in vars(cls):
            cls.agents = {"agent": ((cls.learned,), cls.shipped)}

    @property
    def label(self) -> str:
        """What a folder of it is called, before the digest."""
        return self.experiment

    def seed_list(self) -> list[int]:
        """The seeds of every cell."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; equal for campaigns that give equal results, but for the version."""
        return json.loads(json.dumps(asdict(typing.cast(Any, self))))

    def digest(self) -> str:
        """Eight characters that tell campaigns apart."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:8]

    def command(self) -> str:
        """The shortest command line that means this."""
        files = self.files()
        made: Any = type(self)
        played = dict.fromkeys(scheme for key in files for scheme in self.agents[key][0])
        normal = made(schemes=(*self.by_default, *played), **files).to_dict() | dict.fromkeys(self.agents, "")
        words = [f"{COMMAND} {self.experiment}"]
        for key, value in self.to_dict().items():
            if value != normal[key]:
                text = f"[{','.join(map(shortest, value))}]" if isinstance(value, list) else shortest(value)
                words.append(shlex.quote(f"{key}={text}") if not text.startswith("[") else f"{key}={text}")
        return " ".join(words)

    def files(self) -> dict[str, str]:
        """The files of agents that were given, by their keys."""
        return {key: file for key in self.agents if (file := getattr(self, key))}

    def require_agent(self) -> None:
        """Raises ConfigError where there is an agent without its schemes, or one of these without an agent."""
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
        """The trained agent of a key that comes with the package; "" where there is none."""
        shipped = cls.agents[key][1]
        return from_here(library.path_of(shipped)) if shipped in library.names() else ""

    @classmethod
    def made(cls, given: Mapping[str, Any]) -> Settings:
        """The settings that were given, with what follows of them: `schemes=all`, and agents together with their schemes.

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
            if given.get(key) and (path := library.path_of(given[key], key)) != Path(given[key]):
                given[key] = from_here(path)
        return cls(**given)


@dataclass(frozen=True)
class _Kind:
    """What a key takes."""

    many: bool
    of: type
    optional: bool


def kinds(settings: type[Settings]) -> dict[str, _Kind]:
    """What each key of an experiment takes."""
    hints = typing.get_type_hints(settings)
    return {one.name: _kind(hints[one.name]) for one in fields(typing.cast(Any, settings))}


def _kind(hint: Any) -> _Kind:
    many = typing.get_origin(hint) is tuple
    if many:
        hint = typing.get_args(hint)[0]
    optional = isinstance(hint, types.UnionType)
    return _Kind(many, typing.get_args(hint)[0] if optional else hint, optional)


OWN = {
    "output": _Kind(False, str, False),
    "jobs": _Kind(False, int, True),
    "executor": _Kind(False, str, False),
    "figures": _Kind(False, bool, False),
}
"""Keys of every experiment that do not change its results."""


def read(settings: type[Settings], arguments: Sequence[str]) -> dict[str, Any]:
    """The values of `key=value` arguments, in Hydra's grammar (`netbuf_gym.utils.overrides`).

    Raises:
        ConfigError: An unknown key, a key given twice, a value that is no such thing.
    """
    known = kinds(settings) | OWN
    given: dict[str, Any] = {}
    for argument in arguments:
        key = argument.partition("=")[0].strip()
        if "=" not in argument or key not in known:
            valid = [f"{one}=" for one in known]
            hint = did_you_mean(f"{key}=", valid)
            raise ConfigError(f"argument {shown(argument)} is unknown; {hint}valid: {', '.join(valid)}")
        if key in given:
            raise ConfigError(f"{key} is given twice; valid: once")
        value = overrides.read(argument)[1]
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{key} = {shown(value)} holds a null character; valid: text without one")
        given[key] = _list(key, known[key], value) if known[key].many else _value(known[key], value)
    return given


def from_here(path: Path) -> str:
    """A path as it is written in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def unique(key: str, values: Sequence, least: int = 1) -> tuple:
    """A list's values, each there once.

    Raises:
        ConfigError: Fewer than the least number, or one twice.
    """
    values = tuple(values)
    if len(values) < least:
        raise ConfigError(f"{key} is empty; valid: at least one")
    for value in values:
        if values.count(value) > 1:
            raise ConfigError(f"{key} holds {shown(value)} twice; valid: each once")
    return values


def shortest(value: Any) -> str:
    """A value as it is typed."""
    return "null" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _list(key: str, kind: _Kind, value: Any) -> tuple:
    """A list's values; one alone counts as a list of it."""
    items = value if isinstance(value, list) else [value]
    if "" in items or None in items:
        raise ConfigError(f"{key} = {shown(value)} holds an empty value; valid: e.g. {key}=[a,b]")
    return tuple(_value(kind, item) for item in items)


def _value(kind: _Kind, value: Any) -> Any:
    """A whole number as a real one where that is wanted, a number as the text that a path may be; else the value, which the
    checks refuse by name."""
    if kind.of is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if kind.of is str:
        return "" if value is None else value if isinstance(value, str) else shortest(value)
    return value
