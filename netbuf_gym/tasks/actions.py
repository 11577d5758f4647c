"""Validation of agents' actions for any action space of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, quote

LARGEST_FACTOR = 2.0
"""Factor of the continuous action 1; actions -1 to 1 stand for factors of 1/2 to 2, log-scaled."""


@dataclass(frozen=True)
class FactorActions:
    """Mapping of actions to factors of named quantities.

    Attributes:
        names: Names of the quantities.
        space: Action space of one agent: a `Box` where there are neither levels nor choices, see `LARGEST_FACTOR`.
        levels: Factors of each action of a `Discrete` space, float64 `(actions, names)`.
        choices: Factors of each quantity in a `MultiDiscrete` space, float64 `(factors,)` each.
    """

    names: tuple[str, ...]
    space: gym.Space
    levels: np.ndarray | None = None
    choices: tuple[np.ndarray, ...] = ()

    def decode(self, action: np.ndarray) -> dict[str, np.ndarray]:
        """Return the factors of checked actions by name, float64 `(rows,)` each."""
        if self.choices:
            return {name: self.choices[k][action[:, k]] for k, name in enumerate(self.names)}
        chosen = LARGEST_FACTOR**action if self.levels is None else self.levels[action]
        return dict(zip(self.names, chosen.T, strict=True))

    @property
    def neutral_action(self) -> np.ndarray | int:
        """The action that keeps everything as it is, or most nearly so."""
        if self.choices:
            return np.array([int(np.argmin(np.abs(np.log(factors)))) for factors in self.choices])
        if self.levels is None:
            return np.zeros(len(self.names), np.float32)
        return int(np.argmin(np.abs(np.log(self.levels)).sum(axis=1)))


def describe_action(space: gym.Space) -> str:
    """Return a phrase describing one agent's action, for messages."""
    whole = space.dtype is not None and space.dtype.kind in "iu"
    if space.shape == ():
        return "a single integer" if whole else "a single number"
    return f"{'integers' if whole else 'numbers'} of shape {space.shape}"


def to_array(action: Any) -> np.ndarray:
    """Return an action as an array; raise ConfigError for ragged nests."""
    try:
        return np.asarray(action)
    except ValueError as error:
        raise ConfigError(f"actions are no array: {error}") from None


def check_values(array: np.ndarray, space: gym.Space) -> np.ndarray:
    """Return actions `(rows, ...)` of one agent's space: integers, or float64 clipped to the space of a `Box`.

    Raises:
        ConfigError: The type is wrong, or an action is NaN or outside a space of integers.
    """
    if isinstance(space, gym.spaces.Box):
        return _clip_to_box(array, space)
    if array.dtype.kind not in "iu":
        raise ConfigError(f"actions have type {array.dtype} ({quote(array.ravel()[0])}); valid: integers")
    low, high = _integer_bounds(space)
    if isinstance(space, gym.spaces.Discrete):
        if array.size == 1:  # a reduction of one number costs a microsecond
            least = greatest = array.item()
        else:
            least, greatest = np.minimum.reduce(array), np.maximum.reduce(array)
        if low <= least and greatest <= high:
            return array
    elif np.all(array.min(axis=0) >= low) and np.all(array.max(axis=0) <= high):
        return array
    at = tuple(np.argwhere((array < low) | (array > high))[0])
    low, high = (np.broadcast_to(bound, array.shape)[at] for bound in (low, high))
    raise ConfigError(f"action = {quote(array[at])} is out of range; valid: {low} to {high}")


def _clip_to_box(array: np.ndarray, space: gym.spaces.Box) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise ConfigError(f"actions have type {array.dtype} ({quote(array.ravel()[0])}); valid: numbers")
    if np.isnan(array).any():
        low, high = float(space.low.min()), float(space.high.max())
        raise ConfigError(f"actions hold NaN; valid: {low:g} to {high:g}, and what lies outside is clipped")
    numbers = array.astype(np.float64)
    return np.clip(numbers, space.low, space.high, out=numbers)


def _integer_bounds(space: gym.Space) -> tuple[Any, Any]:
    """Return the least and the greatest integers of a space, broadcastable over rows."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.start), int(space.start + space.n) - 1
    if isinstance(space, gym.spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, gym.spaces.MultiBinary):
        return 0, 1
    raise ConfigError(f"action space {space}; valid: Discrete, MultiDiscrete, MultiBinary, Box, or a check_actions of the task")
