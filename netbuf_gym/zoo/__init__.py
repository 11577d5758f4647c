"""Training, evaluation and the trained agents. All but `names` needs `pip install netbuf-gym[train]`.

>>> from netbuf_gym import zoo
>>> zoo.names()
>>> agent = zoo.load("congestion_window/sender")
>>> env = agent.make_env(scenario="ppcc/4")
>>> observation, info = env.reset(seed=1)
>>> action, memory = agent.predict(observation)
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import netbuf_gym.training  # noqa: F401  # first, so that OpenMP is told not to spin before torch is loaded
from netbuf_gym.errors import require_extra
from netbuf_gym.zoo.library import describe_decisions, names

if TYPE_CHECKING:
    from netbuf_gym.zoo.agent import Agent

__all__ = ["load", "names"]
_WARNED = set[Path]()
"""Models that this process has been warned of."""


def load(agent: str | Path) -> Agent:
    """Load a trained agent: its decisions, and the environment that it was trained in.

    Args:
        agent: One of `names()`, or the path of a model file or a run directory; an existing path takes precedence.

    Warns:
        UserWarning: Once for each agent that mostly takes the same action, as it was measured (`Agent.metrics`).

    Raises:
        CheckpointError: No such agent (the message lists the names), a damaged one, or one that does not fit.
        MissingExtraError: The learner's library is not installed.
    """
    with require_extra("a trained agent", "train"):
        from netbuf_gym.zoo.agent import Agent
    loaded = Agent(agent)
    if (said := describe_decisions(loaded.metrics)) and loaded.path not in _WARNED:
        _WARNED.add(loaded.path)
        warnings.warn(f"{loaded.name} {said}: a constant action may do as well", UserWarning, stacklevel=2)
    return loaded
