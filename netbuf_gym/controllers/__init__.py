"""Contenders: whatever decides or acts in an episode, under one protocol. Tasks bring those that know their worlds.

>>> import netbuf_gym as nb
>>> reports = nb.rollout.evaluate("cubic", task="congestion_window", scenario="ppcc/2", seeds=range(5), threads=2)
>>> rule = nb.controllers.Callback(lambda observations: [5] * len(observations))
>>> reports = nb.rollout.evaluate(rule, task="congestion_window", scenario="ppcc/2", seeds=range(5))
"""

from netbuf_gym.controllers.policies import Callback, ConstantAction, Model, RandomAction, lock_of
from netbuf_gym.controllers.protocol import Contender, Decider, InWorld, Named, Policy, Rules

__all__ = [
    "Callback",
    "ConstantAction",
    "Contender",
    "Decider",
    "InWorld",
    "Model",
    "Named",
    "Policy",
    "RandomAction",
    "Rules",
    "lock_of",
]
