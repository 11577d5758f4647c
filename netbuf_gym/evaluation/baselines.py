"""Baselines of each task by name, ready to run.

>>> import netbuf_gym as nb
>>> nb.baselines.names("congestion_window")[:3]
('bbr', 'cubic', 'linuxreno')
>>> reports = nb.baselines.evaluate(["cubic", "random"], task="congestion_window", scenario="ppcc/2", seeds=range(3))
>>> reports["cubic"][0]["goodput_mbps"]

`netbuf_gym.controllers` has the controllers' protocol, `netbuf_gym.evaluation.rollout` runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios.sources import ScenarioLike
from netbuf_gym.utils.moved import find_renamed

__all__ = ["evaluate", "list_defaults", "make", "names"]


def names(task: str | None = None) -> tuple[str, ...]:
    """Return the names of all baselines of a task, the simulator's catalogues included.

    Args:
        task: Name of the task; None: the first one.
    """
    return tuple(tasks.get(task).controllers)


def list_defaults(task: str | None = None) -> tuple[str, ...]:
    """Return the baselines that evaluations run beside an agent by default; all of them if the task names none."""
    return tasks.get(task).measures.baselines or names(task)


def make(name: str, task: str | None = None) -> Controller:
    """Return a baseline by name, for `netbuf_gym.evaluation.rollout`.

    Raises:
        ConfigError: For an unknown name; lists the valid ones.
    """
    return rollout.get_controller(name, tasks.get(task).name)


def evaluate(
    baselines: Iterable[str | Controller | rollout.HasController] | None = None,
    *,
    task: str | None = None,
    scenario: ScenarioLike | Sequence[ScenarioLike] | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    **env: Any,
) -> dict[str, list[dict[str, Any]]]:
    """Run one episode per baseline and seed, all baselines in the same worlds.

    Args:
        baselines: Names, controllers or trained agents; None: the usual ones.
        task, scenario, seeds, threads, env: As for `netbuf_gym.evaluation.rollout.evaluate`, and so is `flows`; task None: the
            first one.

    Returns:
        The reports of the episodes, seed by seed, by the baseline's name.

    Raises:
        ConfigError: For an unknown baseline, two of one name, or an argument that the environment refuses.
    """
    if isinstance(baselines, str) or not isinstance(baselines, Iterable | None):
        baselines = (baselines,)
    name = tasks.get(task).name
    players = [rollout.as_controller(one, name) for one in (list_defaults(name) if baselines is None else baselines)]
    called = [player.name for player in players]
    if len(set(called)) < len(called):
        raise ConfigError(f"baselines = {quote(called)}; valid: no two of one name")
    return {player.name: rollout.evaluate(player, name, scenario, seeds, threads, **env) for player in players}


def __getattr__(name: str) -> Any:
    """Find the present name of a renamed member."""
    return find_renamed(__name__, name)
