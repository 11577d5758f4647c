"""Corrections of values by a critic that is told what no agent observes (Pinto et al., "Asymmetric Actor Critic", RSS 2018).

The queue, the rivals and the capacity of a world determine much of what its agents will be rewarded with, and agents that
cannot see them have to guess. Here they go into the values that advantages are computed from, and into nothing else: the
policy's own critic learns as ever, and what it misses is learned by one that is no part of the policy, so that models are
saved, read and exported as without it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch as th
from torch import nn
from torch.nn import functional as F

from netbuf_gym.envs.engine import Engine
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.rewards import Telemetry

WIDTH = 64
LEARNING_RATE = 1e-3
KEY = "privileged"
"""Prefix of the critic's arrays in the state of a learner."""


class PrivilegedCritic:
    """A perceptron of two layers from an observation and `Task.privileged` to what the policy's critic misses, at first 0.

    Args:
        worlds: Worlds of the learner.
        size: Size of an observation.
        device: Device of the learner.

    Attributes:
        told: What it was told in a rollout, (steps, worlds, names).
        uncorrected: Values of the policy's critic in the rollout, (steps, worlds).
    """

    def __init__(self, worlds: VectorEnvAdapter, size: int, device: th.device):
        native: Any = worlds.env.unwrapped
        engine: Engine = native.engine
        self._scales, self._device = engine.task.privileged, device
        self._telemetry = Telemetry(engine.tracker, engine.task.name, engine.agents)
        self.told = th.zeros(0, engine.rows, len(self._scales), device=device)
        widths = (size + len(self._scales), WIDTH, WIDTH)
        layers = [part for pair in itertools.pairwise(widths) for part in (nn.Linear(*pair), nn.Tanh())]
        last = nn.Linear(WIDTH, 1)
        for one in last.parameters():
            nn.init.zeros_(one)
        self._network = nn.Sequential(*layers, last).to(device)
        self.uncorrected = th.zeros(0, engine.rows, device=device)
        self._optimizer = th.optim.Adam(self._network.parameters(), lr=LEARNING_RATE)

    def read(self) -> th.Tensor:
        """Return what it is told now, (worlds, names): logarithms in each one's range, 0 to 1."""
        columns = [
            np.log(np.clip(self._telemetry[name], low, high) / low) / np.log(high / low) for name, low, high in self._scales
        ]
        return th.as_tensor(np.stack(columns, axis=1), dtype=th.float32, device=self._device)

    def note(self, step: int, steps: int) -> None:
        """Keep what it is told before a step of a rollout of so many."""
        if len(self.told) != steps:
            self.told = self.told.new_zeros(steps, *self.told.shape[1:])
        self.told[step] = self.read()

    def correct(self, observations: th.Tensor, told: th.Tensor) -> th.Tensor:
        """Return what is to be added to values, (...), of observations, (..., size), by what it was told, (..., names)."""
        return self._network(th.cat((observations, told), dim=-1)).squeeze(-1)

    def fit(self, observations: th.Tensor, returns: th.Tensor, epochs: int, batch: int) -> None:
        """Learn what the values of the policy's critic lacked of a rollout's returns, (steps, worlds), in so many passes."""
        rows, told, goals = observations.flatten(0, 1), self.told.flatten(0, 1), (returns - self.uncorrected).flatten()
        for _ in range(epochs):
            for some in th.split(th.randperm(len(goals), device=self._device), batch):
                self._optimizer.zero_grad()
                th.autograd.backward(F.mse_loss(self.correct(rows[some], told[some]), goals[some]))
                self._optimizer.step()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return its state by name."""
        found = {}
        for k, one in enumerate(self._network.parameters()):
            found[f"{KEY}{k}"] = one.detach().cpu().numpy().copy()
            for name, value in self._optimizer.state[one].items():
                found[f"{KEY}{k}_{name}"] = value.cpu().numpy().copy()
        return found

    def load_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Take a state that `to_arrays` returned; raise KeyError or ValueError if it is none of such a critic."""
        for k, one in enumerate(self._network.parameters()):
            own = th.as_tensor(arrays[f"{KEY}{k}"])
            if own.shape != one.shape:
                raise ValueError(f"{KEY}{k} has shape {tuple(own.shape)}, not {tuple(one.shape)}")
            with th.no_grad():
                one.copy_(own)
            begin = f"{KEY}{k}_"
            state = {
                key.removeprefix(begin): th.as_tensor(value.copy()) for key, value in arrays.items() if key.startswith(begin)
            }
            if state:
                self._optimizer.state[one] = {
                    name: value if name == "step" else value.to(self._device) for name, value in state.items()
                }
