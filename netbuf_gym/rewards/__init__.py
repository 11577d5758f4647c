"""Rewards, as sums of named terms over one decision interval: of a sender, and of a switch.

Each reward is a small immutable object: parameters in, terms out. It reads what an environment remembers of telemetry
(`netbuf_gym.plants`) and writes one row per term; the environment adds the terms up once and shows them in `info`.
"""

from netbuf_gym.rewards.making import make_reward, reward_spec
from netbuf_gym.rewards.sender import REWARDS, AlphaFair, LinearUtility, LogUtility, Power, Reward, UtilitySign
from netbuf_gym.rewards.switch import SWITCH_REWARDS, SwitchUtility, ThesisCode, ThesisText

__all__ = [
    "REWARDS",
    "SWITCH_REWARDS",
    "AlphaFair",
    "LinearUtility",
    "LogUtility",
    "Power",
    "Reward",
    "SwitchUtility",
    "ThesisCode",
    "ThesisText",
    "UtilitySign",
    "make_reward",
    "reward_spec",
]
