"""Observations normalised by running statistics that can be frozen, saved and loaded, scalar and vector.

Gymnasium's own wrappers support neither partial resets nor finite bounds, and their statistics have no JSON form.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.utils.arguments import check_real

CLIP = (0.1, 1000.0)
"""Range of the argument `clip`."""
LEAST_VARIANCE = 1e-8
"""Term added to variances, so that a constant component is not divided by 0."""


class RunningMoments:
    """Mean and variance of all vectors seen, updated batch by batch (Chan's parallel formula), in float64."""

    def __init__(self, width: int):
        self.count = 1e-4
        self.mean = np.zeros(width)
        self.variance = np.ones(width)

    def update(self, batch: np.ndarray) -> None:
        """Update the statistics with vectors, `(number, width)`."""
        number = len(batch)
        total = self.count + number
        shift = batch.mean(axis=0, dtype=np.float64) - self.mean
        spread = self.variance * self.count + batch.var(axis=0, dtype=np.float64) * number
        self.variance = (spread + shift**2 * (self.count * number / total)) / total
        self.mean = self.mean + shift * (number / total)
        self.count = total

    def normalize(self, batch: np.ndarray, clip: float) -> np.ndarray:
        """Return (x - mean) / deviation, clipped to [-clip, clip], float32."""
        return np.clip((batch - self.mean) / np.sqrt(self.variance + LEAST_VARIANCE), -clip, clip).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Return the state, JSON-able."""
        return {"count": self.count, "mean": self.mean.tolist(), "variance": self.variance.tolist()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state that `to_dict` returned.

        Raises:
            CheckpointError: The state is damaged, or of another width.
        """
        try:
            count = float(state["count"])
            mean, variance = (np.asarray(state[key], np.float64) for key in ("mean", "variance"))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"not the state of an observation normalisation: {error}") from error
        if mean.shape != self.mean.shape or variance.shape != self.mean.shape:
            raise CheckpointError(
                f"the saved normalisation has {mean.shape} means and {variance.shape} variances, this needs {self.mean.shape}"
            )
        if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance >= 0).all() and 0 < count < np.inf):
            raise CheckpointError("the saved normalisation holds values that are not finite, or a negative variance")
        self.count, self.mean, self.variance = count, mean, variance


def check_clip(value: Any) -> float:
    """Return the checked bound of normalised observations.

    Raises:
        ConfigError: The value is not a number in range.
    """
    return check_real("clip", value, *CLIP)


def make_clipped_box(space: gym.Space, clip: float) -> gym.spaces.Box:
    """Return the space of normalised observations.

    Raises:
        ConfigError: The observations are not a flat Box.
    """
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(f"observations are {space}; valid for normalisation: a flat Box")
    return gym.spaces.Box(-clip, clip, space.shape, np.float32)


class NormalizeObservation(gym.ObservationWrapper, gym.utils.RecordConstructorArgs):
    """Scales each component of the observation to mean 0 and variance 1, as seen so far.

    Args:
        env: A scalar environment with a flat Box of observations.
        clip: Bound of the result, 0.1 to 1000.

    Attributes:
        moments: The statistics; `moments.to_dict()` and `moments.load(...)` save and restore them.
        update: Whether observations update the statistics; False freezes them, for evaluation.
    """

    def __init__(self, env: gym.Env, clip: float = 10.0):
        gym.utils.RecordConstructorArgs.__init__(self, clip=clip)
        gym.ObservationWrapper.__init__(self, env)
        self.clip = check_clip(clip)
        self.observation_space = make_clipped_box(env.observation_space, self.clip)
        self.moments = RunningMoments(self.observation_space.shape[0])
        self.update = True

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Return the normalised observation."""
        if self.update:
            self.moments.update(observation[None])
        return self.moments.normalize(observation, self.clip)


class VectorNormalizeObservation(gym.vector.VectorWrapper):
    """`NormalizeObservation` for vector environments; `info["final_obs"]` is normalised too.

    After a reset of some worlds only those worlds' observations are counted.
    """

    def __init__(self, env: gym.vector.VectorEnv, clip: float = 10.0):
        super().__init__(env)
        self.clip = check_clip(clip)
        self.single_observation_space = make_clipped_box(env.single_observation_space, self.clip)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, env.num_envs)
        self.moments = RunningMoments(self.single_observation_space.shape[0])
        self.update = True

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset the wrapped environment and normalise its observations."""
        mask = (options or {}).get("reset_mask", slice(None))
        observations, info = self.env.reset(seed=seed, options=options)
        if self.update:
            self.moments.update(observations[mask])
        return self.moments.normalize(observations, self.clip), info

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, Any, Any, Any, dict[str, Any]]:
        """Step the wrapped environment and normalise its observations."""
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        if self.update:
            self.moments.update(observations)
        for row in np.flatnonzero(info.get("_final_obs", ())):
            info["final_obs"][row] = self.moments.normalize(info["final_obs"][row], self.clip)
        return self.moments.normalize(observations, self.clip), rewards, terminated, truncated, info
