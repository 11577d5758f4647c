"""Training, evaluation and the trained agents. All but `names` needs `pip install netbuf-gym[train]`.

>>> from netbuf_gym import zoo
>>> zoo.names()
>>> agent = zoo.load("congestion_window/sender")
>>> env = agent.make_env(scenario="ppcc/4")
>>> observation, info = env.reset(seed=1)
>>> action, memory = agent.predict(observation)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import netbuf_gym.training  # noqa: F401  # first: it tells OpenMP, before torch is loaded, not to spin
from netbuf_gym.errors import needing
from netbuf_gym.zoo.library import names

if TYPE_CHECKING:
    from netbuf_gym.zoo.agent import Agent

__all__ = ["load", "names"]


def load(agent: str | Path) -> Agent:
    """A trained agent: its decisions, and the environment that it was trained in.

    Args:
        agent: one of `names()`, or the path of a model file or a run directory, which goes first where it exists.

    Raises:
        CheckpointError: there is none (the message lists the names), it is damaged, or it does not fit.
        MissingExtraError: what learned it is not installed.
    """
    with needing("a trained agent", "train"):
        from netbuf_gym.zoo.agent import Agent
    return Agent(agent)
