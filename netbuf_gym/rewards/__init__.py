"""Rewards, as sums of named terms over one decision interval: what all tasks have in common.

Each reward is a small immutable object: parameters in, terms out. It reads what an environment remembers of telemetry (its
task's tracker) and writes one row per term; the environment adds the terms up once and shows them in `info`. Which rewards a
task knows its record says (`netbuf_gym.tasks.get(name).rewards`); `netbuf_gym.tasks.register_reward` adds one of your own,
which may be a plain function.
"""

from netbuf_gym.rewards.making import make_reward, reward_of, reward_spec
from netbuf_gym.rewards.utility import UTILITIES, AlphaFair, LinearUtility, LogUtility, Power

__all__ = [
    "UTILITIES",
    "AlphaFair",
    "LinearUtility",
    "LogUtility",
    "Power",
    "make_reward",
    "reward_of",
    "reward_spec",
]
