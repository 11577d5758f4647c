"""Conversion of specifications, functions and objects to rewards, and back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, asdict, field, fields, is_dataclass, make_dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards.custom import (
    SIGNATURE,
    copy_rule,
    get_declared_names,
    get_parameters,
    get_reward_name,
    is_lambda,
    unwrap_partial,
    writes_in_place,
)
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.suggestions import suggest_valid


def make_reward(spec: Any, rewards: Mapping[str, type], elsewhere: Mapping[str, type] | None = None) -> Any:
    """Return the reward for a `reward` argument.

    Args:
        spec: A name; a dict of `name` and parameters; a function or callable object that takes telemetry; or a class of such
            objects.
        rewards: Rewards of the task, by name.
        elsewhere: Rewards of other tasks that are accepted by name too.

    Raises:
        ConfigError: The name or a parameter is unknown, a parameter is out of range, or `spec` has none of these forms.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, type) and not _makes_rewards(spec):
        raise ConfigError(f"reward = {quote(spec)}; objects of this class cannot be called; valid: {SIGNATURE}")
    if isinstance(spec, type):
        return _make_instance(spec, spec.__name__, {})
    if isinstance(spec, Mapping) and "name" in spec:
        known = {**(elsewhere or {}), **rewards}
        name = spec["name"]
        if not isinstance(name, str) or name not in known:
            check_choice("reward", name, rewards)
        return _make_instance(known[name], name, {key: value for key, value in spec.items() if key != "name"})
    if isinstance(spec, Mapping) or not callable(spec):
        what = f"reward = {quote(spec)} is neither a name nor a dict with a name, and cannot be called"
        raise ConfigError(f"{what}; valid: {', '.join(rewards)}, a function or object {SIGNATURE}")
    return spec


def index_rewards(*kinds: type[Any]) -> dict[str, type[Any]]:
    """Return classes of rewards by the names that they declare."""
    return {kind.name: kind for kind in kinds}


def reward_spec(reward: Any) -> dict[str, Any]:
    """Return the JSON-able dict that `make_reward` turns into an equal reward."""
    return {"name": reward.name, **asdict(reward)}


def reward_of(reward: Any, name: str | None = None) -> Any:
    """Return a class of rewards, as tasks register them: a dataclass whose fields are the parameters.

    Args:
        reward: A `reward` argument other than a name: a function `(telemetry, **parameters)`, an object callable in that way,
            or a class of such objects. Parameters have defaults, which a `reward` dict may change.
        name: Name of the reward; None: its own.

    Raises:
        ConfigError: The reward has none of these forms, or has no name.
    """
    if isinstance(reward, type):
        return _reward_class(reward, name)
    if not callable(reward):
        raise ConfigError(f"reward = {quote(reward)} cannot be called; valid: a function or object {SIGNATURE}")
    called = get_reward_name(reward) if name is None else name
    if not isinstance(called, str) or not called:
        raise ConfigError(f"name of reward = {quote(called)}; valid: a string, not empty")
    in_place = writes_in_place(reward)
    parameters = [] if in_place else _check_parameters(get_parameters(reward, called), called)
    if name is None and getattr(reward, "name", None) is None and is_lambda(reward):
        raise ConfigError(f"reward = {quote(reward)} has no name of its own; valid: name=...")
    return _make_wrapper(called, parameters, lambda: copy_rule(reward, called), reward, in_place=in_place)


def _reward_class(cls: Any, name: str | None) -> type:
    """Return a class of rewards as tasks register them: `cls` itself if it is a dataclass that declares its name."""
    if not _makes_rewards(cls):
        raise ConfigError(f"reward = {quote(cls)}; valid: a function, or a class of objects that can be called, {SIGNATURE}")
    typed = is_dataclass(cls)
    if typed and isinstance(getattr(cls, "name", None), str) and name in (None, cls.name):
        return cls
    own = getattr(cls, "name", None)
    name = name or (own if isinstance(own, str) else cls.__name__)
    if typed:
        return type(cls.__name__, (cls,), {"name": name, "_of": cls, "__doc__": cls.__doc__, "__module__": cls.__module__})
    parameters = _check_parameters(get_parameters(cls, name, 0), name)
    in_place = "out" in inspect.signature(cls.__call__).parameters
    return _make_wrapper(name, parameters, cls, cls, in_place=in_place, to_make=True)


def _make_wrapper(name: str, parameters: list, make: Any, of: Any, *, in_place: bool = False, to_make: bool = False) -> type:
    """Return a dataclass of these parameters, which are passed to the rule's call, or with `to_make` to its constructor."""

    def start(self: Any) -> None:
        given = {one.name: getattr(self, one.name) for one in parameters}
        object.__setattr__(self, "_rule", make(**given) if to_make else make())
        object.__setattr__(self, "_given", {} if to_make else given)

    def call(self: Any, telemetry: Any) -> Any:
        return self._rule(telemetry, **self._given)

    def write(self: Any, tracker: Any, out: Any) -> None:
        self._rule(tracker, out)

    members = [(one.name, Any, field(default_factory=functools.partial(_return_value, one.default))) for one in parameters]
    body = {
        "name": name,
        "terms": get_declared_names(of, "terms", name),
        "requires": get_declared_names(of, "requires", name),
        "_of": staticmethod(of),
        "__post_init__": start,
        "__call__": write if in_place else call,
        "__doc__": getattr(unwrap_partial(of), "__doc__", None),
        "__module__": getattr(unwrap_partial(of), "__module__", __name__),
    }
    return make_dataclass(name if name.isidentifier() else "Reward", members, namespace=body, frozen=True)


def is_redefinition(reward: Any, known: type) -> bool:
    """Return whether `reward` is the source of a class made by `reward_of`, or a redefinition of that source in its place."""
    before = getattr(known, "_of", known)
    places = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (before, reward)]
    named = places[0][1] is not None and not is_lambda(reward)
    return before is reward or (named and places[0] == places[1])


def _return_value(value: Any) -> Any:
    return value


def _check_parameters(parameters: list[inspect.Parameter], name: str) -> list[inspect.Parameter]:
    """Return the parameters if all can be written into a `reward` dict; raise ConfigError otherwise."""
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ConfigError(f"reward {name!r}: parameter {str(one)!r} has no name of its own; valid: name=default")
        if one.name in ("name", "terms", "requires"):
            raise ConfigError(
                f"reward {name!r}: parameter {one.name!r} is reserved for what a reward declares of itself; valid: another name"
            )
        if one.kind is one.POSITIONAL_ONLY:
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} cannot be given by its name; valid: after the /")
    return parameters


def _make_instance(kind: type, name: str, parameters: dict[str, Any]) -> Any:
    """Return a reward of a class with these parameters; raise ConfigError for unknown or missing ones."""
    if is_dataclass(kind):
        valid = {one.name: one for one in fields(kind) if one.init}
        for key in parameters:
            if key not in valid:
                raise ConfigError(f"reward {name!r} has no parameter {key!r}; {suggest_valid(key, valid)}")
        for key, one in valid.items():
            if key not in parameters and one.default is MISSING and one.default_factory is MISSING:
                raise ConfigError(f"reward {name!r} needs its parameter {key!r}; valid: {key}=...")
    try:
        return kind(**parameters)
    except TypeError as error:
        raise ConfigError(f"reward {name!r} cannot be made: {error}") from error


def _makes_rewards(cls: type) -> bool:
    """Return whether instances of a class are callable."""
    return any("__call__" in base.__dict__ for base in cls.__mro__)
