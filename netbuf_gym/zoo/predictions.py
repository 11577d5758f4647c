"""Checks of the arguments of `predict`, the same for trained agents and for other controllers."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError


def check_observations(observation: Any, shape: tuple[int, ...] | None) -> tuple[np.ndarray, bool]:
    """Return observations as an array `(n, *shape)`, and whether a single one was given, without the first axis.

    Raises:
        ConfigError: Not numbers, another shape, or not finite.
    """
    shape = shape or ()
    valid = f"shape {shape}, or (n, {', '.join(map(str, shape))})"
    try:
        values = np.asarray(observation, np.float32)
    except (TypeError, ValueError):
        raise ConfigError(f"observation is no array of numbers; valid: {valid}") from None
    single = values.shape == shape
    if not single and values.shape[1:] != shape:
        raise ConfigError(f"observation has shape {values.shape}; valid: {valid.removeprefix('shape ')}")
    if not np.isfinite(values).all():
        raise ConfigError("observation holds NaN or infinity; valid: finite numbers")
    return values[None] if single else values, single


def check_episode_start(episode_start: Any, count: int) -> np.ndarray | None:
    """Return `episode_start` of `count` observations as an array of bool `(count,)`; None if it is None.

    Raises:
        ConfigError: Another number of them.
    """
    if episode_start is None:
        return None
    starts = np.atleast_1d(np.asarray(episode_start, bool))
    if starts.shape != (count,):
        raise ConfigError(f"episode_start has shape {starts.shape}; valid: ({count},), one for each observation")
    return starts
