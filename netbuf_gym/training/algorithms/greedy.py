"""Greedy decisions of stable-baselines3's policies from their networks alone.

`predict` builds a distribution for every call, inspects the space of its observations, and sets modes; for small networks and
a few worlds that is four fifths of its time. Here only the same operations on the same numbers are done, so that decisions
are equal to the bit; nothing is kept between calls, so that threads may decide concurrently. Layers are called as functions,
since a module's call and an LSTM's checks take longer than their computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.distributions import CategoricalDistribution, DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from netbuf_gym.controllers import Policy

Output = Callable[[th.Tensor], np.ndarray]
"""Actions of a policy from its actor's latent values, `(rows, width)`."""
Layer = Callable[[th.Tensor], th.Tensor]
FUNCTIONS: dict[type[nn.Module], Layer] = {nn.Tanh: th.tanh, nn.ReLU: th.relu}
"""Functions of modules without parameters."""


def make_greedy_policy(model: BaseAlgorithm) -> Policy | None:
    """Return the decisions of a trained model as a policy; None for kinds of policies that only its `predict` handles.

    The model's modules are set to evaluation mode: it is not to be trained afterwards.
    """
    policy: Any = model.policy
    if not isinstance(model.observation_space, gym.spaces.Box) or len(model.observation_space.shape) != 1:
        return None
    policy.set_training_mode(False)
    if isinstance(policy, DQNPolicy):
        return _make_value_policy(policy)
    if not isinstance(policy, ActorCriticPolicy) or (output := _make_output(policy)) is None:
        return None
    return (
        _make_recurrent_policy(policy, output)
        if isinstance(policy, RecurrentActorCriticPolicy)
        else _make_actor_policy(policy, output)
    )


def _make_value_policy(policy: Any) -> Policy:
    device = policy.device
    values = _chain_modules([policy.q_net.features_extractor, policy.q_net.q_net])

    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            return values(_to_tensor(observations, device)).argmax(dim=1).cpu().numpy(), None

    return decide


def _make_actor_policy(policy: Any, output: Output) -> Policy:
    device = policy.device
    latent = _chain_modules([policy.pi_features_extractor, policy.mlp_extractor.policy_net])

    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            return output(latent(_to_tensor(observations, device))), None

    return decide


def _chain_modules(modules: Iterable[nn.Module]) -> Layer:
    """Return the composition of modules as a function."""
    layers: list[Layer] = []
    for module in modules:
        for one in module if type(module) is nn.Sequential else (module,):
            if type(one) is nn.Linear:
                layers.append(partial(_apply_linear, one.weight, one.bias))
            elif type(one) is not FlattenExtractor:  # observations are flat
                layers.append(FUNCTIONS.get(type(one), one))

    def compute(values: th.Tensor) -> th.Tensor:
        for layer in layers:
            values = layer(values)
        return values

    return compute


def _apply_linear(weight: th.Tensor, bias: th.Tensor, values: th.Tensor) -> th.Tensor:
    return nn.functional.linear(values, weight, bias)


def _make_recurrent_policy(policy: Any, output: Output) -> Policy:
    """Return a policy with the actor LSTM's hidden and cell states, `(layers, rows, width)`, which are reset at starts."""
    device, (layers, _, width) = policy.device, policy.lstm_hidden_state_shape
    features, latent = _chain_modules([policy.pi_features_extractor]), _chain_modules([policy.mlp_extractor.policy_net])
    weights = [weight for one in policy.lstm_actor.all_weights for weight in one]

    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            rows = len(observations)
            if state is None:
                before = [th.zeros(layers, rows, width, device=device)] * 2
            else:
                before = [_to_tensor(one, device) for one in state]
            if starts.any():
                keep = 1.0 - th.as_tensor(starts, dtype=th.float32, device=device).view(1, rows, 1)
                before = [keep * one for one in before]
            seen = features(_to_tensor(observations, device)).unsqueeze(0)
            found, *after = th.lstm(seen, tuple(before), weights, True, layers, 0.0, False, False, False)
            return output(latent(found[0])), tuple(one.cpu().numpy() for one in after)

    return decide


def _to_tensor(values: np.ndarray, device: th.device) -> th.Tensor:
    own = th.from_numpy(np.ascontiguousarray(values, np.float32))
    return own if device.type == "cpu" else own.to(device)


def _make_output(policy: Any) -> Output | None:
    """Return the function from an actor's latent values to the mode of its distribution; None for other distributions."""
    space, head = policy.action_space, _chain_modules([policy.action_net])
    if type(policy.action_dist) is CategoricalDistribution:

        def likeliest(latent: th.Tensor) -> np.ndarray:
            logits = head(latent)
            logits = logits - logits.logsumexp(dim=-1, keepdim=True)
            return th.softmax(logits, dim=-1).argmax(dim=1).cpu().numpy()  # as in SB3: rounding makes other ties than of logits

        return likeliest
    if type(policy.action_dist) is DiagGaussianDistribution and not policy.squash_output:
        return lambda latent: np.clip(head(latent).cpu().numpy(), space.low, space.high)
    return None
