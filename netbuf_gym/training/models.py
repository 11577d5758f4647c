"""From configuration to objects: the environment for a learner, and the learner on it."""

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

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.integrations.normalizing import NormalizingExtractor
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training.config import plain
from netbuf_gym.training.environment import env_kwargs, make_worlds
from netbuf_gym.training.ranges import ARGUMENTS, check_algo
from netbuf_gym.training.schema import ACTIVATIONS

__all__ = ["ALGORITHMS", "device_of", "env_kwargs", "make_env", "make_model", "worlds_of"]

ALGORITHMS = {
    "ppo": "netbuf_gym.training.algorithms.ppo:BatchPPO",
    "ppo_kl": "netbuf_gym.training.algorithms.ppo:KLPenaltyPPO",
    "a2c": "stable_baselines3:A2C",
    "dqn": "stable_baselines3:DQN",
    "ppo_lstm": "netbuf_gym.training.algorithms.ppo_lstm:BatchRecurrentPPO",
}


def make_env(env_id: str, num_envs: int, threads: int, kwargs: dict[str, Any]) -> VectorEnvAdapter:
    """A batch of worlds for stable-baselines3; raises as `worlds.make_worlds` does."""
    return VectorEnvAdapter(make_worlds(env_id, num_envs, threads, kwargs))


def device_of(name: str) -> th.device:
    """The device of a name, `cpu`, `cuda` or `cuda:N`; of `auto` the first GPU, or the CPU where there is none.

    Raises:
        ConfigError: it is not there.
    """
    found = th.cuda.device_count() if th.cuda.is_available() else 0
    if name == "auto":
        return th.device("cuda" if found else "cpu")
    there = ["cpu", *["cuda"][:found], *(f"cuda:{number}" for number in range(found))]
    if name not in there:
        seen = f"torch {th.__version__} sees {found or 'no'} GPU{'s' if found > 1 else ''}"
        raise ConfigError(f"device = {shown(name)} is not there, {seen}; valid: {', '.join(there)}, auto")
    return th.device(name)


def make_model(algo: DictConfig, env: VectorEnvAdapter, seed: int, verbose: int = 0, device: str = "cpu") -> BaseAlgorithm:
    """An untrained learner on an environment.

    Args:
        device: that its networks are on, see `device_of`.

    Raises:
        ConfigError: an unknown algorithm or argument, a value that the algorithm refuses, or a device that is not there.
    """
    check_algo(algo)
    own = device_of(device)
    module, _, name = ALGORITHMS[algo.name].partition(":")
    algorithm = getattr(importlib.import_module(module), name)
    kwargs = plain(algo.kwargs)
    _require_memory(algo, env)
    kwargs.setdefault("stats_window_size", max(100, env.num_envs))  # the worlds' last episodes
    policy_kwargs = {
        "net_arch": plain(algo.net_arch),
        "activation_fn": getattr(th.nn, ACTIVATIONS[algo.activation]),
        **plain(algo.policy_kwargs),
    }
    if algo.normalize == "running":
        policy_kwargs["features_extractor_class"] = NormalizingExtractor
        policy_kwargs["features_extractor_kwargs"] = {"clip": float(algo.normalize_clip)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about batch sizes, in four lines: see `ranges.check_rollout`
            return algorithm(
                algo.policy,
                env,
                learning_rate=_learning_rate(algo),
                policy_kwargs=policy_kwargs,
                seed=seed,
                device=own,
                verbose=verbose,
                **kwargs,
            )
    except (ValueError, TypeError, AssertionError, KeyError) as error:
        raise ConfigError(f"{name} refuses its configuration: {error}") from None


def _learning_rate(algo: DictConfig) -> float | Schedule:
    """Constant, or falling linearly, and beginning again at each restart (as Loshchilov & Hutter's SGDR does)."""
    final = algo.learning_rate_final
    begins = [0.0, *(one["at"] for one in plain(algo.restarts))]
    rates = [float(algo.learning_rate), *(float(one["learning_rate"]) for one in plain(algo.restarts))]
    falls = [LinearSchedule(rate, rate if final is None else float(final), 1.0) for rate in rates]

    def by(remaining: float) -> float:
        over = 1.0 - remaining
        last = bisect_right(begins, over) - 1
        begin, end = begins[last], [*begins, 1.0][last + 1]
        return falls[last]((end - over) / (end - begin))

    return by if algo.restarts else rates[0] if final is None else falls[0]


def worlds_of(model: BaseAlgorithm) -> VectorEnvAdapter:
    """What a learner that was made here learns in."""
    return cast(VectorEnvAdapter, model.get_env())


def _require_memory(algo: DictConfig, env: VectorEnvAdapter) -> None:
    """Raises ConfigError where rollouts or memories are larger than what the machine has."""
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
