"""Rewards as sums of named terms over one decision interval: the parts common to all tasks, and custom rewards.

A custom reward is a function or a callable object that takes telemetry and returns terms, batch first:

    def frugal(telemetry, price=0.1):
        mbit = telemetry["throughput_bps"] * telemetry["elapsed_s"] * 1e-6
        return {"delivered": mbit, "lost": -price * telemetry["packets_lost"]}

    env = gym.make("netbuf/CongestionWindow-v0", reward=frugal)

`telemetry` (`Telemetry`) holds arrays `(rows,)` by name, one number per agent. The terms are a dict of such arrays, which the
environment sums, or one array. They must be finite and have the same names in every call. Further parameters need defaults.

An object may declare `name`, a string; `terms`, the names of its terms; and `requires`, the names of the telemetry that it
needs. Each environment has its own copy (`copy.deepcopy`), so that an object's state belongs to one environment;
`telemetry.first` marks the agents whose episode has just begun. Unless both `terms` and `requires` are declared, a copy is
called once with made-up telemetry (1 everywhere) when the environment is made, and then discarded: missing telemetry and wrong
shapes are refused at that point. Functions are not copied, so a function with state must expect this call.

`netbuf_gym.tasks.register_reward` gives a reward a name; `netbuf_gym.wrappers.exchange_reward` sets the reward of an existing
environment.
"""

from netbuf_gym.rewards.custom import OwnReward, bind_reward
from netbuf_gym.rewards.episode_means import RunningUtility
from netbuf_gym.rewards.ranges import ThreeSigmaRange, in_range
from netbuf_gym.rewards.specs import index_rewards, is_redefinition, make_reward, reward_of, reward_spec
from netbuf_gym.rewards.telemetry import Telemetry
from netbuf_gym.rewards.utility import UTILITIES, AlphaFair, LinearUtility, LogUtility, Power, RangeNormalized, alpha_fair

__all__ = [
    "UTILITIES",
    "AlphaFair",
    "LinearUtility",
    "LogUtility",
    "OwnReward",
    "Power",
    "RangeNormalized",
    "RunningUtility",
    "Telemetry",
    "ThreeSigmaRange",
    "alpha_fair",
    "bind_reward",
    "in_range",
    "index_rewards",
    "is_redefinition",
    "make_reward",
    "reward_of",
    "reward_spec",
]
