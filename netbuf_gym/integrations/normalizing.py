"""Observations normalised by running statistics within a policy's networks, for learners of stable-baselines3.

The statistics are part of the policy's state, as those of batch normalisation are: every copy and every file of the
networks has them. Training moves them, between an update and the next rollout, and nothing else does. Rollouts and
replay buffers hold observations as they are.

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

from netbuf_gym.wrappers.normalize import LEAST_VARIANCE, RunningMoments, box_within, clip_of

SEEN, RUNNING = "seen", "running"
"""Statistics of all that training saw, and those in use.

What is called `running_` is what stable-baselines3 copies to target networks.
"""


class NormalizingExtractor(BaseFeaturesExtractor):
    """Scales each component of the observation to mean 0 and variance 1, by the formula of `wrappers.NormalizeObservation`.

    Until `adopt` is called, mean 0 and variance 1 are taken for granted.

    Args:
        observation_space: a flat Box.
        clip: bound of the result, 0.1 to 1000.

    Raises:
        ConfigError: an argument is not as said.
    """

    def __init__(self, observation_space: gym.Space, clip: float = 10.0):
        self.clip = clip_of(clip)
        width = box_within(observation_space, self.clip).shape[0]
        super().__init__(observation_space, width)
        for kind in (SEEN, RUNNING):
            for name, value in RunningMoments(width).to_dict().items():
                self.register_buffer(f"{kind}_{name}", th.as_tensor(value, dtype=th.float64))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """`(n, width)` normalised, by the statistics in use."""
        mean, variance = self.get_buffer("running_mean"), self.get_buffer("running_variance")
        mean, deviation = mean.to(observations.dtype), (variance + LEAST_VARIANCE).sqrt().to(observations.dtype)
        return ((observations - mean) / deviation).clamp(-self.clip, self.clip)

    def see(self, observations: np.ndarray | th.Tensor) -> None:
        """Counts observations, `(..., width)`; they are in use from the next `adopt` on."""
        moments = self.moments(SEEN)
        moments.update(np.asarray(observations).reshape(-1, self.features_dim))
        for name, value in moments.to_dict().items():
            self._set(f"{SEEN}_{name}", value)

    def adopt(self) -> None:
        """Normalises by all that was seen from now on."""
        for name in self.moments(SEEN).to_dict():
            self._set(f"{RUNNING}_{name}", self.get_buffer(f"{SEEN}_{name}"))

    def moments(self, kind: str = RUNNING) -> RunningMoments:
        """A copy of the statistics in use, or of `SEEN`.

        Raises:
            CheckpointError: they are none.
        """
        moments = RunningMoments(self.features_dim)
        moments.load({name: self.get_buffer(f"{kind}_{name}").cpu().numpy().copy() for name in moments.to_dict()})
        return moments

    def _set(self, name: str, value: Any) -> None:
        own = self.get_buffer(name)
        own.copy_(th.as_tensor(value, dtype=own.dtype))

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """See torch; what a file holds is checked."""
        super()._load_from_state_dict(*args, **kwargs)
        for kind in (SEEN, RUNNING):
            self.moments(kind)


def extractors(policy: th.nn.Module) -> list[NormalizingExtractor]:
    """Those that a policy learns with; target networks take theirs over with the weights."""
    found = policy.named_modules()
    return [one for name, one in found if isinstance(one, NormalizingExtractor) and "target" not in name]


def normalize_by(policy: th.nn.Module, observations: np.ndarray | th.Tensor) -> None:
    """Counts observations, `(..., width)`, and normalises by them at once, as learning from data does before it begins."""
    for one in extractors(policy):
        one.see(observations)
        one.adopt()


class UpdateStatistics(BaseCallback):
    """Counts what a learner sees, and adopts it between an update and the next rollout.

    A rollout and the updates by it so have the same statistics, and a model that is saved has those that its weights
    were fitted with. The first rollout has none.
    """

    def _init_callback(self) -> None:
        self._extractors = extractors(self.model.policy)

    def _on_rollout_start(self) -> None:
        for one in self._extractors:
            one.adopt()

    def _on_step(self) -> bool:
        for one in self._extractors:
            one.see(self.locals["new_obs"])
        return True
