"""Observations normalised by running statistics within a policy's networks, for learners of stable-baselines3.

The statistics are part of the policy's state, as those of batch normalisation are: every copy and every file of the
networks includes them. Only training changes them, between an update and the next rollout. Rollouts and
replay buffers hold unnormalised observations.

    model = stable_baselines3.PPO("MlpPolicy", env, policy_kwargs={"features_extractor_class": NormalizingExtractor})
    model.learn(100_000, callback=UpdateStatistics())

Needs stable-baselines3 (`pip install netbuf-gym[train]`).
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from netbuf_gym.wrappers.normalize import LEAST_VARIANCE, RunningMoments, check_clip, make_clipped_box

SEEN, RUNNING = "seen", "running"
"""Prefixes of the statistics of everything that training saw, and of those in use.

Stable-baselines3 copies buffers named `running_` to target networks.
"""


class NormalizingExtractor(BaseFeaturesExtractor):
    """Scales each component of the observation to mean 0 and variance 1, by the formula of `wrappers.NormalizeObservation`.

    Until `use_counted` is called, mean 0 and variance 1 are assumed.

    Args:
        observation_space: A flat Box.
        clip: Bound of the result, 0.1 to 1000.

    Raises:
        ConfigError: An argument is invalid.
    """

    def __init__(self, observation_space: gym.Space, clip: float = 10.0):
        self.clip = check_clip(clip)
        width = make_clipped_box(observation_space, self.clip).shape[0]
        super().__init__(observation_space, width)
        for kind in (SEEN, RUNNING):
            for name, value in RunningMoments(width).to_dict().items():
                self.register_buffer(f"{kind}_{name}", th.as_tensor(value, dtype=th.float64))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return the observations `(n, width)` normalised by the statistics in use."""
        mean, variance = self.get_buffer("running_mean"), self.get_buffer("running_variance")
        mean, deviation = mean.to(observations.dtype), (variance + LEAST_VARIANCE).sqrt().to(observations.dtype)
        return ((observations - mean) / deviation).clamp(-self.clip, self.clip)

    def count_observations(self, observations: np.ndarray | th.Tensor) -> None:
        """Count observations, `(..., width)`, in the statistics that the next `use_counted` puts into use."""
        moments = self.moments(SEEN)
        moments.update(np.asarray(observations).reshape(-1, self.features_dim))
        for name, value in moments.to_dict().items():
            self._set_buffer(f"{SEEN}_{name}", value)

    def use_counted(self) -> None:
        """Normalise by everything seen so far from now on."""
        for name in self.moments(SEEN).to_dict():
            self._set_buffer(f"{RUNNING}_{name}", self.get_buffer(f"{SEEN}_{name}"))

    def moments(self, kind: str = RUNNING) -> RunningMoments:
        """Return a copy of the statistics in use, or of `SEEN`.

        Raises:
            CheckpointError: The buffers hold no valid statistics.
        """
        moments = RunningMoments(self.features_dim)
        moments.load({name: self.get_buffer(f"{kind}_{name}").cpu().numpy().copy() for name in moments.to_dict()})
        return moments

    def _set_buffer(self, name: str, value: Any) -> None:
        own = self.get_buffer(name)
        own.copy_(th.as_tensor(value, dtype=own.dtype))

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Load the state, see torch, and check the statistics."""
        super()._load_from_state_dict(*args, **kwargs)
        for kind in (SEEN, RUNNING):
            self.moments(kind)


def find_extractors(policy: th.nn.Module) -> list[NormalizingExtractor]:
    """Return a policy's normalising extractors, except those of target networks, which are copied with the weights."""
    found = policy.named_modules()
    return [one for name, one in found if isinstance(one, NormalizingExtractor) and "target" not in name]


def normalize_by_observations(policy: th.nn.Module, observations: np.ndarray | th.Tensor) -> None:
    """Count observations, `(..., width)`, and normalise by them at once, for learning from data, before it begins."""
    for one in find_extractors(policy):
        one.count_observations(observations)
        one.use_counted()


class UpdateStatistics(BaseCallback):
    """Counts a learner's observations, and adopts them between an update and the next rollout.

    A rollout and its updates thus share the same statistics, and a saved model has those with which its weights
    were fitted. The first rollout has none.
    """

    def _init_callback(self) -> None:
        self._extractors = find_extractors(self.model.policy)

    def _on_rollout_start(self) -> None:
        for one in self._extractors:
            one.use_counted()

    def _on_step(self) -> bool:
        for one in self._extractors:
            one.count_observations(self.locals["new_obs"])
        return True
