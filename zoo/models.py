"""From configuration to objects: the environment for a learner, and the learner on it."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import gymnasium as gym
import torch as th
from omegaconf import DictConfig
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import LinearSchedule

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.zoo.config import plain, scenario_spec

ALGORITHMS = {
    "ppo": "netbuf_gym.zoo.ppo:BatchPPO",
    "ppo_kl": "netbuf_gym.zoo.ppo:KLPenaltyPPO",
    "a2c": "stable_baselines3:A2C",
    "dqn": "stable_baselines3:DQN",
    "ppo_lstm": "sb3_contrib:RecurrentPPO",
}
ACTIVATIONS = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU, "elu": th.nn.ELU, "silu": th.nn.SiLU}
_OURS = {"policy", "env", "learning_rate", "policy_kwargs", "seed", "device", "verbose", "tensorboard_log", "self"}


def env_kwargs(config: DictConfig) -> dict[str, Any]:
    """Keyword arguments of `gym.make_vec` beside `num_envs` and `threads`: JSON-able, and stored with the model."""
    kwargs = plain(config.env.kwargs)
    default = tasks.get(config.env.name).rules.default_scenario if config.env.name in tasks.names() else None
    kwargs["scenario"] = scenario_spec(config.scenario, default)
    if config.reward.name is not None:
        kwargs["reward"] = {"name": config.reward.name, **plain(config.reward.kwargs)}
    return kwargs


def make_env(env_id: str, num_envs: int, threads: int, kwargs: dict[str, Any]) -> VectorEnvAdapter:
    """A batch of worlds for stable-baselines3.

    Raises:
        ConfigError: an environment that is not registered, or arguments that it does not take.
    """
    try:
        return VectorEnvAdapter(gym.make_vec(env_id, num_envs=num_envs, threads=threads, **kwargs))
    except NetbufError:
        raise
    except (gym.error.Error, TypeError, ValueError) as error:
        raise ConfigError(f"environment {env_id!r}: {error}") from None


def make_model(algo: DictConfig, env: VectorEnvAdapter, seed: int, verbose: int = 0) -> BaseAlgorithm:
    """An untrained learner on an environment, on the CPU.

    Raises:
        ConfigError: an unknown algorithm or argument, or a value that the algorithm refuses.
    """
    if algo.name not in ALGORITHMS:
        raise ConfigError(f"algo.name = {algo.name!r} is unknown; valid: {', '.join(ALGORITHMS)}")
    if algo.activation not in ACTIVATIONS:
        raise ConfigError(f"algo.activation = {algo.activation!r} is unknown; valid: {', '.join(ACTIVATIONS)}")
    if not all(isinstance(width, int) and width >= 1 for width in algo.net_arch):
        raise ConfigError(f"algo.net_arch = {shown(plain(algo.net_arch))}; valid: a list of widths, 1 or more")
    _check_number("algo.learning_rate", algo.learning_rate, positive=True)
    module, _, name = ALGORITHMS[algo.name].partition(":")
    algorithm = getattr(importlib.import_module(module), name)
    kwargs = plain(algo.kwargs)
    valid = _arguments_of(algorithm)
    for key, value in kwargs.items():
        if key not in valid:
            raise ConfigError(f"algo.kwargs.{key} is not an argument of {name}; valid: {', '.join(sorted(valid))}")
        if isinstance(valid[key], (int, float)) and not isinstance(valid[key], bool):
            _check_number(f"algo.kwargs.{key}", value)
    learning_rate: Any = float(algo.learning_rate)
    if algo.learning_rate_final is not None:
        _check_number("algo.learning_rate_final", algo.learning_rate_final)
        learning_rate = LinearSchedule(learning_rate, float(algo.learning_rate_final), 1.0)
    if "stats_window_size" in valid:
        kwargs.setdefault("stats_window_size", max(100, env.num_envs))  # the worlds' last episodes
    policy_kwargs = {
        "net_arch": plain(algo.net_arch),
        "activation_fn": ACTIVATIONS[algo.activation],
        **plain(algo.policy_kwargs),
    }
    try:
        return algorithm(
            algo.policy,
            env,
            learning_rate=learning_rate,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device="cpu",
            verbose=verbose,
            **kwargs,
        )
    except (ValueError, TypeError, AssertionError, KeyError) as error:
        raise ConfigError(f"{name} refuses its configuration: {error}") from None


def _arguments_of(algorithm: type[BaseAlgorithm]) -> dict[str, Any]:
    """Arguments of the constructor with their defaults, through `**kwargs` of subclasses, less those that the job sets."""
    found: dict[str, Any] = {}
    for ancestor in algorithm.__mro__:
        parameters = inspect.signature(ancestor.__init__).parameters.values()
        for one in parameters:
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and not one.name.startswith("_"):
                found.setdefault(one.name, one.default)
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return {name: default for name, default in found.items() if name not in _OURS}


def _check_number(key: str, value: Any, positive: bool = False) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value < 1e12 or (positive and value == 0):
        raise ConfigError(f"{key} = {value!r} is out of range; valid: {'above 0' if positive else '0 or more'}")
