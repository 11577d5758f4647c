"""Training, evaluation, the trained agents, and the best controller of each task. All but `names` needs the extra `train`.

>>> from netbuf_gym import zoo
>>> zoo.names()
>>> agent = zoo.load("congestion_window/sender")
>>> env = agent.make_env(scenario="ppcc/4")
>>> observation, info = env.reset(seed=1)
>>> action, memory = agent.predict(observation)
>>> zoo.best("queue_threshold").name
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
    from netbuf_gym.zoo.controller_agent import ControllerAgent

__all__ = ["best", "load", "names"]
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


def best(task: str, results: str | Path | None = None) -> Agent | ControllerAgent:
    """Return the best controller of a task, whoever made it: an agent, a rule, a constant, a setting.

    It is the first of the task's leaderboard (suite v1) that decides in the agents' place, where a trained agent counts only if
    it is surely ahead of the best constant and of every rule. The choice follows the rows in `results/`, and takes about a
    second of a processor.

    Args:
        task: Name of the task.
        results: Folder of results of suites, such as `netbuf-gym results make --results` writes; None: the package's.

    Raises:
        ConfigError: An unknown task, one without results, or results of other worlds.
        CheckpointError, MissingExtraError: See `load`.
    """
    with require_extra("the best controller", "train"):
        from netbuf_gym.evaluation import rollout
        from netbuf_gym.leaderboard.best import find_best
        from netbuf_gym.zoo.controller_agent import ControllerAgent
    name = find_best(task, None if results is None else Path(results))
    return load(name) if name in names() else ControllerAgent(rollout.get_controller(name, task), task)
