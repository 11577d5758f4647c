"""From specifications and functions to rewards, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, fields, make_dataclass
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
    kind = rewards[choice("reward", spec["name"], rewards)]
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
        ConfigError: a parameter without a default.
    """
    name = name or function.__name__
    _, *parameters = inspect.signature(function).parameters.values()
    for one in parameters:
        if one.default is one.empty:
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} has no default; valid: {one.name}=...")

    def call(self: Any, tracker: Any, out: np.ndarray) -> None:
        out[0] = function(tracker, **{one.name: getattr(self, one.name) for one in parameters})

    members = [(one.name, Any, field(default_factory=lambda value=one.default: value)) for one in parameters]
    body = {"name": name, "terms": (name,), "__call__": call, "__doc__": function.__doc__, "__module__": function.__module__}
    return make_dataclass(name, members, namespace=body, frozen=True)
