"""From specifications and functions to rewards, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, fields, make_dataclass
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.arguments import choice
from netbuf_gym.errors import ConfigError, shown


def make_reward(spec: str | dict[str, Any], rewards: Mapping[str, type]) -> Any:
    """The reward of a name, or of a dict with `name` and parameters, among a task's `rewards`.

    Raises:
        ConfigError: unknown name or parameter, or a parameter out of range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, dict) or "name" not in spec:
        raise ConfigError(f"reward = {shown(spec)} is neither a name nor a dict with a name; valid: {', '.join(rewards)}")
    kind: Any = rewards[choice("reward", spec["name"], rewards)]
    parameters = {key: value for key, value in spec.items() if key != "name"}
    valid = [field.name for field in fields(kind)]
    for key in parameters:
        if key not in valid:
            raise ConfigError(f"reward {kind.name!r} has no parameter {key!r}; valid: {', '.join(valid) or 'none'}")
    return kind(**parameters)


def reward_spec(reward: Any) -> dict[str, Any]:
    """The JSON-able dict that `make_reward` turns into an equal reward."""
    return {"name": reward.name, **asdict(reward)}


def reward_of(function: Callable[..., np.ndarray], name: str | None = None) -> type:
    """A reward of one term whose value a function computes.

    Args:
        function: (tracker, **parameters) -> numbers `(rows,)`, finite, one for each agent; its parameters have defaults,
            which a `reward` dict may change. What trackers know is in the task's page; `tracker.last` and `tracker.now` hold
            telemetry, a field a row.
        name: of the reward and its term; None: the function's.

    Raises:
        ConfigError: it is no such function. The reward raises it of a value of another shape, or that is not finite where
            something was measured.
    """
    if not callable(function):
        raise ConfigError(f"reward = {shown(function)} cannot be called; valid: a function (tracker, **parameters) -> (rows,)")
    name = name or getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ConfigError(f"reward = {shown(function)} has no name of its own; valid: name=...")
    parameters = _parameters(function, name)

    def call(self: Any, tracker: Any, out: np.ndarray) -> None:
        value = function(tracker, **{one.name: getattr(self, one.name) for one in parameters})
        try:
            shape = np.shape(value)
        except ValueError:  # lists of several lengths
            raise ConfigError(f"reward {name!r} is {shown(value)}; valid: finite numbers") from None
        if shape != out.shape[1:]:
            raise ConfigError(f"reward {name!r} has shape {shape}; valid: {out.shape[1:]}, a number for each agent")
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                out[0] = value
                finite = np.isfinite(np.add.reduce(out[0]))
        except (TypeError, ValueError):
            raise ConfigError(f"reward {name!r} is {shown(value)}; valid: finite numbers") from None
        if not finite:
            _require_finite(name, tracker, out[0])

    members = [(one.name, Any, field(default_factory=partial(_same, one.default))) for one in parameters]
    body = {"name": name, "terms": (name,), "__call__": call, "__doc__": function.__doc__, "__module__": function.__module__}
    return make_dataclass(name, members, namespace=body, frozen=True)


def _same(value: Any) -> Any:
    return value


def _parameters(function: Callable[..., np.ndarray], name: str) -> list[inspect.Parameter]:
    """What a reward's function takes after the tracker; raises ConfigError for what cannot be written into a `reward` dict."""
    try:
        first, *parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built in, without a signature, or without a parameter
        first, parameters = None, []
    if first is None or first.kind in (first.KEYWORD_ONLY, first.VAR_KEYWORD):
        raise ConfigError(f"reward {name!r} has no first parameter for the tracker; valid: (tracker, **parameters)")
    for one in (first, *parameters):
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ConfigError(f"reward {name!r}: parameter {str(one)!r} has no name of its own; valid: name=default")
    for one in parameters:
        if one.name in ("name", "terms"):
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} is what a reward says of itself; valid: another name")
        if one.kind is one.POSITIONAL_ONLY:
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} cannot be given by its name; valid: after the /")
        if one.default is one.empty:
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} has no default; valid: {one.name}=...")
    return parameters


def _require_finite(name: str, tracker: Any, value: np.ndarray) -> None:
    """Raises ConfigError for what is not finite, but of agents of which nothing was measured: their worlds have failed."""
    wrong = ~np.isfinite(value)
    wrong[wrong] = ~np.isnan(tracker.now[:, wrong]).all(axis=0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ConfigError(f"reward {name!r} is {value[row]} of row {row}; valid: finite numbers")
