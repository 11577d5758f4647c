"""From specifications, functions and objects to rewards, and back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, asdict, field, fields, is_dataclass, make_dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards.custom import SIGNATURE, copied, declared, innermost, name_of, nameless, parameters_of, writes
from netbuf_gym.utils.arguments import choice
from netbuf_gym.utils.suggestions import instead


def make_reward(spec: Any, rewards: Mapping[str, type], elsewhere: Mapping[str, type] | None = None) -> Any:
    """The reward that a `reward` argument stands for.

    Args:
        spec: a name; a dict of `name` and parameters; a function or an object that can be called with telemetry; or a class
            of such objects.
        rewards: by name, a task's.
        elsewhere: others, that are known by name too.

    Raises:
        ConfigError: unknown name or parameter, a parameter out of range, or nothing of that kind.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, type) and not _makes_rewards(spec):
        raise ConfigError(f"reward = {shown(spec)}; objects of this class cannot be called; valid: {SIGNATURE}")
    if isinstance(spec, type):
        return _made(spec, spec.__name__, {})
    if isinstance(spec, Mapping) and "name" in spec:
        known = {**(elsewhere or {}), **rewards}
        name = spec["name"]
        if not isinstance(name, str) or name not in known:
            choice("reward", name, rewards)
        return _made(known[name], name, {key: value for key, value in spec.items() if key != "name"})
    if isinstance(spec, Mapping) or not callable(spec):
        what = f"reward = {shown(spec)} is neither a name nor a dict with a name, and cannot be called"
        raise ConfigError(f"{what}; valid: {', '.join(rewards)}, a function or object {SIGNATURE}")
    return spec


def reward_spec(reward: Any) -> dict[str, Any]:
    """The JSON-able dict that `make_reward` turns into an equal reward."""
    return {"name": reward.name, **asdict(reward)}


def reward_of(reward: Any, name: str | None = None) -> Any:
    """A class of rewards, as tasks register them: a dataclass whose fields are the parameters.

    Args:
        reward: whatever a `reward` argument may be but a name: a function `(telemetry, **parameters)`, an object that can be
            called so, or a class of such objects. Parameters have defaults, which a `reward` dict may change.
        name: of the reward; None: its own.

    Raises:
        ConfigError: it is nothing of that kind, or has no name.
    """
    if isinstance(reward, type):
        return _class(reward, name)
    if not callable(reward):
        raise ConfigError(f"reward = {shown(reward)} cannot be called; valid: a function or object {SIGNATURE}")
    called = name_of(reward) if name is None else name
    if not isinstance(called, str) or not called:
        raise ConfigError(f"name of reward = {shown(called)}; valid: a string, not empty")
    in_place = writes(reward)
    parameters = [] if in_place else _checked(parameters_of(reward, called), called)
    if name is None and getattr(reward, "name", None) is None and nameless(reward):
        raise ConfigError(f"reward = {shown(reward)} has no name of its own; valid: name=...")
    return _wrapper(called, parameters, lambda: copied(reward, called), reward, in_place=in_place)


def _class(cls: Any, name: str | None) -> type:
    """A class of rewards as tasks register them: itself, if it is a dataclass that says its name and its terms."""
    if not _makes_rewards(cls):
        raise ConfigError(f"reward = {shown(cls)}; valid: a function, or a class of objects that can be called, {SIGNATURE}")
    typed = is_dataclass(cls)
    if typed and isinstance(getattr(cls, "name", None), str) and name in (None, cls.name):
        return cls
    own = getattr(cls, "name", None)
    name = name or (own if isinstance(own, str) else cls.__name__)
    if typed:
        return type(cls.__name__, (cls,), {"name": name, "_of": cls, "__doc__": cls.__doc__, "__module__": cls.__module__})
    parameters = _checked(parameters_of(cls, name, 0), name)
    in_place = "out" in inspect.signature(cls.__call__).parameters
    return _wrapper(name, parameters, cls, cls, in_place=in_place, to_make=True)


def _wrapper(name: str, parameters: list, make: Any, of: Any, *, in_place: bool = False, to_make: bool = False) -> type:
    """A dataclass of these parameters, which go to the rule's call, or with `to_make` to what makes it."""

    def start(self: Any) -> None:
        given = {one.name: getattr(self, one.name) for one in parameters}
        object.__setattr__(self, "_rule", make(**given) if to_make else make())
        object.__setattr__(self, "_given", {} if to_make else given)

    def call(self: Any, telemetry: Any) -> Any:
        return self._rule(telemetry, **self._given)

    def write(self: Any, tracker: Any, out: Any) -> None:
        self._rule(tracker, out)

    members = [(one.name, Any, field(default_factory=functools.partial(_same, one.default))) for one in parameters]
    body = {
        "name": name,
        "terms": declared(of, "terms", name),
        "requires": declared(of, "requires", name),
        "_of": staticmethod(of),
        "__post_init__": start,
        "__call__": write if in_place else call,
        "__doc__": getattr(innermost(of), "__doc__", None),
        "__module__": getattr(innermost(of), "__module__", __name__),
    }
    return make_dataclass(name if name.isidentifier() else "Reward", members, namespace=body, frozen=True)


def defined_anew(reward: Any, known: type) -> bool:
    """Whether a reward is what a class was made of by `reward_of`, or a later definition of it in the same place."""
    before = getattr(known, "_of", known)
    places = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (before, reward)]
    named = places[0][1] is not None and not nameless(reward)
    return before is reward or (named and places[0] == places[1])


def _same(value: Any) -> Any:
    return value


def _checked(parameters: list[inspect.Parameter], name: str) -> list[inspect.Parameter]:
    """Parameters that can be written into a `reward` dict; raises ConfigError for those that cannot."""
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ConfigError(f"reward {name!r}: parameter {str(one)!r} has no name of its own; valid: name=default")
        if one.name in ("name", "terms", "requires"):
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} is what a reward says of itself; valid: another name")
        if one.kind is one.POSITIONAL_ONLY:
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} cannot be given by its name; valid: after the /")
    return parameters


def _made(kind: type, name: str, parameters: dict[str, Any]) -> Any:
    """A reward of a class."""
    if is_dataclass(kind):
        valid = {one.name: one for one in fields(kind) if one.init}
        for key in parameters:
            if key not in valid:
                raise ConfigError(f"reward {name!r} has no parameter {key!r}; {instead(key, valid)}")
        for key, one in valid.items():
            if key not in parameters and one.default is MISSING and one.default_factory is MISSING:
                raise ConfigError(f"reward {name!r} needs its parameter {key!r}; valid: {key}=...")
    try:
        return kind(**parameters)
    except TypeError as error:
        raise ConfigError(f"reward {name!r} cannot be made: {error}") from error


def _makes_rewards(cls: type) -> bool:
    """Whether what a class makes can be called."""
    return any("__call__" in base.__dict__ for base in cls.__mro__)
