"""Wrappers that exchange the reward of existing environments, scalar and vector.

The environment itself computes the reward: a vector environment resets ended worlds within the step, so that a wrapper would
find their last telemetry gone. These wrappers therefore exchange the environment's reward and pass on what the environment
returns; `info["reward_terms"]` of the scalar environment shows the new terms.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards import AlphaFair, LogUtility, RangeNormalized, make_reward


def exchange_reward(env: Any, reward: Any) -> None:
    """Make an environment of this package, however wrapped, reward by another rule from now on.

    Args:
        env: A scalar, vector or multi-agent environment, also as a `VecEnv` of stable-baselines3. For Gymnasium's own vector
            environments (`vectorization_mode="sync"`), and `DummyVecEnv`, each part gets a copy of the reward.
        reward: Any value of the environments' argument of the same name: a name, a dict of `name` and parameters, a function
            or an object, see `netbuf_gym.rewards`.

    Raises:
        ConfigError: The environment is of another package or process, or the value is no reward or needs telemetry that the
            environment does not have: the previous reward stays.
    """
    inner = getattr(env, "unwrapped", env)
    engine = getattr(inner, "engine", None)
    adapted = getattr(inner, "env", None)  # stable-baselines3's view of a vector environment
    parts = getattr(inner, "envs", None) or ([] if adapted is None else [adapted])
    if engine is not None:
        return engine.set_reward(reward)
    if not parts:
        raise ConfigError(f"env = {quote(env)} is no environment of netbuf_gym in this process; valid: one made from its ids")
    for part in parts:
        exchange_reward(part, reward)


class ExchangeReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A scalar environment with another reward, set by `exchange_reward`."""

    def __init__(self, env: gym.Env, reward: Any):
        gym.utils.RecordConstructorArgs.__init__(self, reward=reward)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, reward)


class VectorExchangeReward(gym.vector.VectorWrapper):
    """`ExchangeReward` for vector environments."""

    def __init__(self, env: gym.vector.VectorEnv, reward: Any):
        super().__init__(env)
        exchange_reward(env, reward)


class _UtilityReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Base class of scalar wrappers with one class of rewards, whose parameters they take."""

    utility: ClassVar[Any]

    def __init__(self, env: gym.Env, **parameters: Any):
        gym.utils.RecordConstructorArgs.__init__(self, **parameters)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, _make_utility(self.utility, parameters))


class _VectorUtilityReward(gym.vector.VectorWrapper):
    """Base class of vector wrappers with one class of rewards, whose parameters they take."""

    utility: ClassVar[Any]

    def __init__(self, env: gym.vector.VectorEnv, **parameters: Any):
        super().__init__(env)
        exchange_reward(env, _make_utility(self.utility, parameters))


def _make_utility(utility: Any, parameters: dict[str, Any]) -> Any:
    return make_reward({**parameters, "name": utility.name}, {utility.name: utility})


class LogUtilityReward(_UtilityReward):
    """A scalar environment rewarded by `netbuf_gym.rewards.LogUtility`, whose parameters it takes."""

    utility = LogUtility


class AlphaFairReward(_UtilityReward):
    """A scalar environment rewarded by `netbuf_gym.rewards.AlphaFair`, whose parameters it takes."""

    utility = AlphaFair


class NormalizedReward(_UtilityReward):
    """A scalar environment rewarded by `netbuf_gym.rewards.RangeNormalized`, whose parameters it takes."""

    utility = RangeNormalized


class VectorLogUtilityReward(_VectorUtilityReward):
    """`LogUtilityReward` for vector environments."""

    utility = LogUtility


class VectorAlphaFairReward(_VectorUtilityReward):
    """`AlphaFairReward` for vector environments."""

    utility = AlphaFair


class VectorNormalizedReward(_VectorUtilityReward):
    """`NormalizedReward` for vector environments; the samples are those of all rows."""

    utility = RangeNormalized
