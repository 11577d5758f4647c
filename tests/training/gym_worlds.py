"""Gymnasium's own worlds behind `VectorEnvAdapter`, to hold learners against stock ones on."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from netbuf_gym.integrations.sb3 import VectorEnvAdapter

WORLDS = 6


def cart_poles(worlds=WORLDS, limit=5):
    """Discrete actions; episodes end by themselves, or are truncated after `limit` steps."""
    return _adapter("CartPole-v1", worlds, limit)


def pendulums(worlds=WORLDS, limit=5):
    """Actions in a box of one dimension; episodes are truncated after `limit` steps."""
    return _adapter("Pendulum-v1", worlds, limit)


def _adapter(name, worlds, limit):
    one = [lambda: gym.make(name, max_episode_steps=limit)] * worlds
    return VectorEnvAdapter(SyncVectorEnv(one, autoreset_mode=AutoresetMode.SAME_STEP))


class Ends(VectorEnv):
    """World 0 is truncated at every second step, world 1 terminated, world 2 goes on; all rewards are 0."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    num_envs, step_count = 3, 0
    single_observation_space = spaces.Box(-9.0, 9.0, (2,), np.float32)
    single_action_space = spaces.Discrete(2)
    action_space = spaces.MultiDiscrete([2] * 3)

    def reset(self, *, seed=None, options=None):
        return np.zeros((3, 2), np.float32), {}

    def step(self, actions):
        self.step_count += 1
        end = self.step_count % 2 == 0
        info = {"final_obs": np.full((3, 2), 2.0, np.float32), "_final_obs": np.array([end, end, False])}
        truncated, terminated = np.array([end, False, False]), np.array([False, end, False])
        return np.ones((3, 2), np.float32), np.zeros(3), terminated, truncated, info if end else {}
