"""Other rewards for environments that are made already, scalar and vector.

The environment itself computes the reward: a vector environment resets ended worlds within the step, and their last
telemetry is gone when a wrapper could look at it. So these wrappers exchange the environment's reward and pass on what
it returns; `info["reward_terms"]` of the scalar environment shows the new terms.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards import AlphaFair, LogUtility, RangeNormalized, make_reward


def exchange_reward(env: Any, reward: Any) -> None:
    """Makes an environment of this package, however wrapped, reward by another rule from now on.

    Args:
        env: scalar, vector or multi-agent, also as a `VecEnv` of stable-baselines3. Of Gymnasium's own vector environments
            (`vectorization_mode="sync"`), and of `DummyVecEnv`, each part gets a copy of the reward.
        reward: whatever the environments' argument of the same name takes: a name, a dict of `name` and parameters, a function
            or an object, see `netbuf_gym.rewards`.

    Raises:
        ConfigError: an environment of another package, or of another process; or what is no reward, or needs telemetry that the
            environment does not have: the reward is as it was.
    """
    inner = getattr(env, "unwrapped", env)
    engine = getattr(inner, "engine", None)
    adapted = getattr(inner, "env", None)  # stable-baselines3's view of a vector environment
    parts = getattr(inner, "envs", None) or ([] if adapted is None else [adapted])
    if engine is not None:
        return engine.set_reward(reward)
    if not parts:
        raise ConfigError(f"env = {shown(env)} is no environment of netbuf_gym in this process; valid: one made from its ids")
    for part in parts:
        exchange_reward(part, reward)


class ExchangeReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a scalar environment by another rule, as `exchange_reward`."""

    def __init__(self, env: gym.Env, reward: Any):
        gym.utils.RecordConstructorArgs.__init__(self, reward=reward)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, reward)


class VectorExchangeReward(gym.vector.VectorWrapper):
    """`ExchangeReward` for vector environments."""

    def __init__(self, env: gym.vector.VectorEnv, reward: Any):
        super().__init__(env)
        exchange_reward(env, reward)


class _Utility(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a scalar environment by one class of rewards, whose parameters it takes."""

    utility: ClassVar[Any]

    def __init__(self, env: gym.Env, **parameters: Any):
        gym.utils.RecordConstructorArgs.__init__(self, **parameters)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, _made(self.utility, parameters))


class _VectorUtility(gym.vector.VectorWrapper):
    """Likewise a vector environment."""

    utility: ClassVar[Any]

    def __init__(self, env: gym.vector.VectorEnv, **parameters: Any):
        super().__init__(env)
        exchange_reward(env, _made(self.utility, parameters))


def _made(utility: Any, parameters: dict[str, Any]) -> Any:
    return make_reward({**parameters, "name": utility.name}, {utility.name: utility})


class LogUtilityReward(_Utility):
    """Rewards a scalar environment by `netbuf_gym.rewards.LogUtility`, whose parameters it takes."""

    utility = LogUtility


class AlphaFairReward(_Utility):
    """Rewards a scalar environment by `netbuf_gym.rewards.AlphaFair`, whose parameters it takes."""

    utility = AlphaFair


class NormalizedReward(_Utility):
    """Rewards a scalar environment by `netbuf_gym.rewards.RangeNormalized`, whose parameters it takes."""

    utility = RangeNormalized


class VectorLogUtilityReward(_VectorUtility):
    """`LogUtilityReward` for vector environments."""

    utility = LogUtility


class VectorAlphaFairReward(_VectorUtility):
    """`AlphaFairReward` for vector environments."""

    utility = AlphaFair


class VectorNormalizedReward(_VectorUtility):
    """`NormalizedReward` for vector environments; the samples are those of all rows."""

    utility = RangeNormalized
