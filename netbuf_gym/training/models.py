"""Construction of environment and learner from a configuration."""

from __future__ import annotations

import importlib
import math
import os
import warnings
from bisect import bisect_right
from typing import Any, cast

import torch as th
from omegaconf import DictConfig
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import LinearSchedule

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.integrations.normalizing import NormalizingExtractor
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training.config import to_plain
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.ranges import ARGUMENTS, check_algo
from netbuf_gym.training.schema import ACTIVATIONS

__all__ = ["ALGORITHMS", "build_env_kwargs", "get_worlds", "make_env", "make_model", "resolve_device"]

ALGORITHMS = {
    "ppo": "netbuf_gym.training.algorithms.ppo:BatchPPO",
    "ppo_kl": "netbuf_gym.training.algorithms.ppo:KLPenaltyPPO",
    "a2c": "stable_baselines3:A2C",
    "dqn": "stable_baselines3:DQN",
    "ppo_lstm": "netbuf_gym.training.algorithms.ppo_lstm:BatchRecurrentPPO",
}


def make_env(env_id: str, num_envs: int, threads: int, kwargs: dict[str, Any]) -> VectorEnvAdapter:
    """Make a batch of worlds for stable-baselines3; raises as `environment.make_worlds` does."""
    return VectorEnvAdapter(make_worlds(env_id, num_envs, threads, kwargs))


def resolve_device(name: str) -> th.device:
    """Return the device named `cpu`, `cuda` or `cuda:N`; for `auto` the first GPU, or the CPU if there is none.

    Raises:
        ConfigError: The device does not exist.
    """
    found = th.cuda.device_count() if th.cuda.is_available() else 0
    if name == "auto":
        return th.device("cuda" if found else "cpu")
    there = ["cpu", *["cuda"][:found], *(f"cuda:{number}" for number in range(found))]
    if name not in there:
        seen = f"torch {th.__version__} sees {found or 'no'} GPU{'s' if found > 1 else ''}"
        raise ConfigError(f"device = {quote(name)} is not there, {seen}; valid: {', '.join(there)}, auto")
    return th.device(name)


def make_model(
    algo: DictConfig,
    env: VectorEnvAdapter,
    seed: int,
    verbose: int = 0,
    device: str = "cpu",
    optimizer: type[Any] | None = None,
) -> BaseAlgorithm:
    """Make an untrained learner on an environment.

    Args:
        algo: Configuration of the learner.
        env: Environment.
        seed: Seed of networks and exploration.
        verbose: Verbosity of stable-baselines3.
        device: Device of the networks, see `resolve_device`.
        optimizer: Class of the optimiser; None: that of the algorithm.

    Raises:
        ConfigError: An unknown algorithm or argument, a value that the algorithm refuses, or a missing device.
    """
    check_algo(algo)
    own = resolve_device(device)
    module, _, name = ALGORITHMS[algo.name].partition(":")
    algorithm = getattr(importlib.import_module(module), name)
    kwargs = to_plain(algo.kwargs)
    _require_memory(algo, env)
    kwargs.setdefault("stats_window_size", max(100, env.num_envs))  # at least one episode per world
    policy_kwargs = {
        "net_arch": to_plain(algo.net_arch),
        "activation_fn": getattr(th.nn, ACTIVATIONS[algo.activation]),
        **to_plain(algo.policy_kwargs),
    }
    if algo.normalize == "running":
        policy_kwargs["features_extractor_class"] = NormalizingExtractor
        policy_kwargs["features_extractor_kwargs"] = {"clip": float(algo.normalize_clip)}
    if optimizer is not None:
        policy_kwargs["optimizer_class"] = optimizer
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about batch sizes; see `ranges.check_rollout`
            return algorithm(
                algo.policy,
                env,
                learning_rate=_build_learning_rate(algo),
                policy_kwargs=policy_kwargs,
                seed=seed,
                device=own,
                verbose=verbose,
                **kwargs,
            )
    except (ValueError, TypeError, AssertionError, KeyError) as error:
        raise ConfigError(f"{name} refuses its configuration: {error}") from None


def _build_learning_rate(algo: DictConfig) -> float | Schedule:
    """Return a constant, or a linear schedule that starts again at each restart (like Loshchilov & Hutter's SGDR)."""
    final = algo.learning_rate_final
    begins = [0.0, *(one["at"] for one in to_plain(algo.restarts))]
    rates = [float(algo.learning_rate), *(float(one["learning_rate"]) for one in to_plain(algo.restarts))]
    falls = [LinearSchedule(rate, rate if final is None else float(final), 1.0) for rate in rates]

    def compute_rate(remaining: float) -> float:
        over = 1.0 - remaining
        last = bisect_right(begins, over) - 1
        begin, end = begins[last], [*begins, 1.0][last + 1]
        return falls[last]((end - over) / (end - begin))

    return compute_rate if algo.restarts else rates[0] if final is None else falls[0]


def get_worlds(model: BaseAlgorithm) -> VectorEnvAdapter:
    """Return the environment of a learner made by `make_model`."""
    return cast(VectorEnvAdapter, model.get_env())


def _require_memory(algo: DictConfig, env: VectorEnvAdapter) -> None:
    """Raise ConfigError if rollouts or replay memory are larger than the machine's memory."""
    width = math.prod(env.observation_space.shape or ()) + math.prod(env.action_space.shape or ())
    if "buffer_size" in ARGUMENTS[algo.name]:
        key, decisions = "buffer_size", algo.kwargs.get("buffer_size", 1_000_000)
        needed = decisions * (2 * width + 4) * 4
    else:
        key, decisions = "n_steps", algo.kwargs.get("n_steps", 2048) * env.num_envs
        kept = 0
        if algo.policy == "MlpLstmPolicy":  # hidden and cell states of actor and critic
            kept = 4 * algo.policy_kwargs.get("lstm_hidden_size", 256) * algo.policy_kwargs.get("n_lstm_layers", 1)
        needed = decisions * (width + kept + 8) * 4
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        gib = f"about {needed / 2**30:.1f} GiB of memory, and the machine has {there / 2**30:.1f}"
        raise ConfigError(f"algo.kwargs.{key} makes {decisions:,} decisions of {env.num_envs} worlds, {gib}; valid: fewer")
