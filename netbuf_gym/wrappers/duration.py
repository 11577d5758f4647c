"""The time limit of scalar environments whose episodes have no fixed number of steps."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class DurationLimit(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Truncation at the end of the world's duration, for decisions at events, random durations and measured clocks."""

    def __init__(self, env: gym.Env):
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the wrapped environment, with `truncated` set at the end of the world's duration."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        own: Any = self.env.unwrapped
        return observation, reward, terminated, truncated or own.out_of_time, info
