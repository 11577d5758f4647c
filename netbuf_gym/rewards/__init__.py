"""Rewards, as sums of named terms over one decision interval: what all tasks have in common, and how yours are made.

A reward of your own is a function, or an object that can be called, telemetry in and terms out, batch first:

    def frugal(telemetry, price=0.1):
        mbit = telemetry["throughput_bps"] * telemetry["elapsed_s"] * 1e-6
        return {"delivered": mbit, "lost": -price * telemetry["packets_lost"]}

    env = gym.make("netbuf/CongestionWindow-v0", reward=frugal)

`telemetry` (`Telemetry`) has arrays `(rows,)` by name, a number for each agent. The terms are a dict of such arrays, which the
environment adds up, or one array. They must be finite, and of the same names each time. Further parameters have defaults.

An object may declare `name`, a string; `terms`, the names of its terms; and `requires`, the names of the telemetry that it
needs. Each environment has a copy of its own (`copy.deepcopy`), so that whatever an object remembers is one environment's;
`telemetry.first` says whose episode has just begun. Unless both `terms` and `requires` are declared, a copy is called once when
the environment is made, with made-up telemetry (1 everywhere), and then thrown away: what lacks or has a wrong shape is refused
there. Functions have no copies, so that one that remembers something must expect this call.

`netbuf_gym.tasks.register_reward` gives a reward a name; `netbuf_gym.wrappers.exchange_reward` takes one for an environment
that is made already.
"""

from netbuf_gym.rewards.custom import OwnReward, fitted
from netbuf_gym.rewards.episode_means import RunningUtility
from netbuf_gym.rewards.ranges import ThreeSigmaRange, in_range
from netbuf_gym.rewards.specs import defined_anew, make_reward, reward_of, reward_spec
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
    "defined_anew",
    "fitted",
    "in_range",
    "make_reward",
    "reward_of",
    "reward_spec",
]
