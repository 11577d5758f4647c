"""From specifications to rewards and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from netbuf_gym.arguments import choice
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards.sender import REWARDS


def make_reward(spec: str | dict[str, Any], rewards: Mapping[str, type] = REWARDS) -> Any:
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
            raise ConfigError(f"reward {kind.name!r} has no parameter {key!r}; valid: {', '.join(valid)}")
    return kind(**parameters)


def reward_spec(reward: Any) -> dict[str, Any]:
    """The JSON-able dict that `make_reward` turns into an equal reward."""
    return {"name": reward.name, **asdict(reward)}
