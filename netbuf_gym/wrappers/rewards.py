"""Other rewards for environments that are made already, scalar and vector.

The environment itself computes the reward: a vector environment resets ended worlds within the step, and their last
telemetry is gone when a wrapper could look at it. So these wrappers exchange the environment's reward and pass on what
it returns; `info["reward_terms"]` of the scalar environment shows the new terms.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import AlphaFair, LogUtility


def exchange_reward(env: gym.Env | gym.vector.VectorEnv, reward: Any) -> None:
    """Makes an environment of this package, however wrapped, reward by another rule from now on."""
    engine = getattr(env.unwrapped, "engine", None)
    if engine is None:
        raise ConfigError(f"env = {env} is no environment of netbuf_gym; valid: one made from its ids")
    engine.set_reward(reward)


class LogUtilityReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a scalar environment by `netbuf_gym.rewards.LogUtility`, whose parameters it takes."""

    def __init__(self, env: gym.Env, **parameters: Any):
        gym.utils.RecordConstructorArgs.__init__(self, **parameters)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, LogUtility(**parameters))


class AlphaFairReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a scalar environment by `netbuf_gym.rewards.AlphaFair`, whose parameters it takes."""

    def __init__(self, env: gym.Env, **parameters: Any):
        gym.utils.RecordConstructorArgs.__init__(self, **parameters)
        gym.Wrapper.__init__(self, env)
        exchange_reward(env, AlphaFair(**parameters))


class VectorLogUtilityReward(gym.vector.VectorWrapper):
    """`LogUtilityReward` for vector environments."""

    def __init__(self, env: gym.vector.VectorEnv, **parameters: Any):
        super().__init__(env)
        exchange_reward(env, LogUtility(**parameters))


class VectorAlphaFairReward(gym.vector.VectorWrapper):
    """`AlphaFairReward` for vector environments."""

    def __init__(self, env: gym.vector.VectorEnv, **parameters: Any):
        super().__init__(env)
        exchange_reward(env, AlphaFair(**parameters))
