"""Controllers, which decide or act in an episode, under one protocol. Tasks add controllers specific to their worlds.

>>> import netbuf_gym as nb
>>> reports = nb.rollout.evaluate("cubic", task="congestion_window", scenario="ppcc/2", seeds=range(5), threads=2)
>>> rule = nb.controllers.Callback(lambda observations: [5] * len(observations))
>>> reports = nb.rollout.evaluate(rule, task="congestion_window", scenario="ppcc/2", seeds=range(5))
"""

from typing import Any

from netbuf_gym.controllers.policies import Callback, ConstantAction, KeepAction, Model, RandomAction, lock_of
from netbuf_gym.controllers.protocol import Controller, ControllerWrapper, Decider, InWorld, Named, Policy, Rules
from netbuf_gym.utils.moved import find_renamed

__all__ = [
    "Callback",
    "ConstantAction",
    "Controller",
    "ControllerWrapper",
    "Decider",
    "InWorld",
    "KeepAction",
    "Model",
    "Named",
    "Policy",
    "RandomAction",
    "Rules",
    "lock_of",
]


def __getattr__(name: str) -> Any:
    """Find the present name of a renamed member."""
    return find_renamed(__name__, name)
