"""Choice of the best controller of a task from kept results, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.controllers import InWorld
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard import scoring, standings
from netbuf_gym.leaderboard.scoring import Standing

BEST = "best"
"""Word that stands for the best controller of a task where a controller is named."""


def find_best(task: str, folder: Path | None = None) -> str:
    """Return the name of the best controller of a task by the rows of its ranking suite; see `select_best`.

    Args:
        task: Name of the task.
        folder: Folder of kept results; None: the package's.

    Raises:
        ConfigError: An unknown task, one without results, or results that do not fit the suite as it is now.
    """
    return select_best(task, standings.compute_standings(task, folder)).name


def select_best(task: str, standing: Sequence[Standing]) -> Standing:
    """Return the best controller of a task's standings, the best first.

    It is the first one that decides in the agents' place; what acts in the world on its own (`InWorld`: congestion controls,
    queue disciplines) has nothing to decide. A trained agent counts only where it is surely ahead of the best constant and of
    all others that decide, with 95 % confidence: where a rule does as well, the rule is the better choice.
    """
    return next(one for one in standing if one.checked and _is_eligible(task, one))


def _is_eligible(task: str, one: Standing) -> bool:
    if one.role == scoring.AGENT:
        return earns_network(one)
    return one.role != scoring.CHANCE and not isinstance(rollout.get_controller(one.name, task), InWorld)


def earns_network(one: Standing) -> bool:
    """Return whether an agent is surely ahead of the best constant and of all else that decides in the agents' place."""
    return not one.behind_constant and one.over_rules is not None and one.over_rules.low > 0


def resolve_best(word: str, task: str) -> str:
    """Return the name of the best controller for the word `best`, unless the task has a controller of that name; else the word.

    Raises:
        ConfigError: See `find_best`.
    """
    return find_best(task) if word == BEST and word not in tasks.get(task).controllers else word
