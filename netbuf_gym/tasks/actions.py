"""Checks of what agents decided, for any of the spaces that a task's actions may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, shown


def in_words(space: gym.Space) -> str:
    """One agent's action, for messages."""
    if space.shape == ():
        return "a single integer" if space.dtype.kind in "iu" else "a single number"
    return f"{'integers' if space.dtype.kind in 'iu' else 'numbers'} of shape {space.shape}"


def array_of(action: Any) -> np.ndarray:
    """An array of whatever an agent decided; ConfigError for ragged nests."""
    try:
        return np.asarray(action)
    except ValueError as error:
        raise ConfigError(f"actions are no array: {error}") from None


def single(action: Any, space: gym.Space, words: str) -> np.ndarray:
    """One agent's action as a batch of one; ConfigError where it has not the space's shape."""
    array = array_of(action)
    if array.shape != space.shape:
        raise ConfigError(f"action has shape {array.shape}; valid: {space.shape}, {words}")
    return array[None]


def checked(action: Any, space: gym.Space, rows: int, words: Callable[[], str]) -> np.ndarray:
    """The actions of all agents: integers, or of a `Box` float64 clipped to it.

    Args:
        action: of all agents, `(rows, ...)`.
        space: of one agent's actions.
        rows: number of agents.
        words: one agent's action in words, when they are needed.

    Raises:
        ConfigError: wrong shape or type, NaN, or not in a space of integers.
    """
    array = array_of(action)
    if array.shape != (rows, *space.shape):
        raise ConfigError(f"actions have shape {array.shape}; valid: {(rows, *space.shape)}, for each agent {words()}")
    if isinstance(space, gym.spaces.Box):
        return _clipped(array, space)
    if array.dtype.kind not in "iu":
        raise ConfigError(f"actions have type {array.dtype} ({shown(array.ravel()[0])}); valid: integers")
    low, high = _bounds(space)
    if isinstance(space, gym.spaces.Discrete):
        if low <= np.minimum.reduce(array) and np.maximum.reduce(array) <= high:
            return array
    elif np.all(array.min(axis=0) >= low) and np.all(array.max(axis=0) <= high):
        return array
    at = tuple(np.argwhere((array < low) | (array > high))[0])
    low, high = (np.broadcast_to(bound, array.shape)[at] for bound in (low, high))
    raise ConfigError(f"action = {shown(array[at])} is out of range; valid: {low} to {high}")


def _clipped(array: np.ndarray, space: gym.spaces.Box) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise ConfigError(f"actions have type {array.dtype} ({shown(array.ravel()[0])}); valid: numbers")
    if np.isnan(array).any():
        low, high = float(space.low.min()), float(space.high.max())
        raise ConfigError(f"actions hold NaN; valid: {low:g} to {high:g}, and what lies outside is clipped")
    numbers = array.astype(np.float64)
    return np.clip(numbers, space.low, space.high, out=numbers)


def _bounds(space: gym.Space) -> tuple[Any, Any]:
    """The least and the greatest integers of a space, to be broadcast over rows."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.start), int(space.start + space.n) - 1
    if isinstance(space, gym.spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, gym.spaces.MultiBinary):
        return 0, 1
    raise ConfigError(f"action space {space}; valid: Discrete, MultiDiscrete, MultiBinary, Box, or a check_actions of the task")
