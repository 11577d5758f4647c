"""Gymnasium's own worlds behind `VectorEnvAdapter`, to hold learners against stock ones on."""

import gymnasium as gym
from gymnasium.vector import AutoresetMode, SyncVectorEnv

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
