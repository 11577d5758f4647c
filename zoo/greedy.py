"""Greedy decisions of stable-baselines3's policies by their networks alone.

`predict` makes a distribution of every call, looks at the space of what it observes, and sets modes; of small networks and a
few worlds that is four fifths of its time. Here the same operations are done on the same numbers, so that decisions are equal
to the bit, and nothing else; nothing is kept between calls, so that threads may decide at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.distributions import CategoricalDistribution, DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.dqn.policies import DQNPolicy

from netbuf_gym.contenders import Policy

Output = Callable[[th.Tensor], np.ndarray]
"""Actions of what a policy's actor comes to, `(rows, width)`."""


def greedy(model: BaseAlgorithm) -> Policy | None:
    """What a trained model decides; None where its policy is of another kind, which its `predict` knows.

    The model is not trained afterwards: its modules are set to evaluate.
    """
    policy: Any = model.policy
    if not isinstance(model.observation_space, gym.spaces.Box) or len(model.observation_space.shape) != 1:
        return None
    policy.set_training_mode(False)
    if isinstance(policy, DQNPolicy):
        return _valued(policy)
    if not isinstance(policy, ActorCriticPolicy) or (output := _output(policy)) is None:
        return None
    return _remembering(policy, output) if isinstance(policy, RecurrentActorCriticPolicy) else _acting(policy, output)


def _valued(policy: Any) -> Policy:
    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            features = policy.q_net.features_extractor(_tensor(observations, policy))
            return policy.q_net.q_net(features).argmax(dim=1).cpu().numpy(), None

    return decide


def _acting(policy: Any, output: Output) -> Policy:
    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            features = policy.pi_features_extractor(_tensor(observations, policy))
            return output(policy.mlp_extractor.forward_actor(features)), None

    return decide


def _remembering(policy: Any, output: Output) -> Policy:
    """With the hidden and the cell states of the actor's LSTM, `(layers, rows, width)`, cleared where episodes start."""
    layers, _, width = policy.lstm_hidden_state_shape

    def decide(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        with th.inference_mode():
            rows = len(observations)
            before = [th.zeros(layers, rows, width, device=policy.device)] * 2 if state is None else map(_same, state)
            if starts.any():
                keep = 1.0 - th.as_tensor(starts, dtype=th.float32, device=policy.device).view(1, rows, 1)
                before = [keep * one for one in before]
            features = policy.pi_features_extractor(_tensor(observations, policy))
            latent, after = policy.lstm_actor(features.unsqueeze(0), tuple(before))
            actions = output(policy.mlp_extractor.forward_actor(latent[0]))
            return actions, tuple(one.cpu().numpy() for one in after)

    def _same(one: np.ndarray) -> th.Tensor:
        return th.as_tensor(one, device=policy.device)

    return decide


def _tensor(observations: np.ndarray, policy: Any) -> th.Tensor:
    return th.as_tensor(observations, dtype=th.float32, device=policy.device)


def _output(policy: Any) -> Output | None:
    """The mode of a policy's distribution; None of one that is not made here."""
    space, head = policy.action_space, policy.action_net
    if type(policy.action_dist) is CategoricalDistribution:

        def likeliest(latent: th.Tensor) -> np.ndarray:
            logits = head(latent)
            logits = logits - logits.logsumexp(dim=-1, keepdim=True)
            return th.softmax(logits, dim=-1).argmax(dim=1).cpu().numpy()  # of what is rounded, ties are others than of logits

        return likeliest
    if type(policy.action_dist) is DiagGaussianDistribution and not policy.squash_output:
        return lambda latent: np.clip(head(latent).cpu().numpy(), space.low, space.high)
    return None
