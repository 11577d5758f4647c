"""What stands beside agents: the baselines of each task by name, made ready to play. A short way to controllers.

>>> import netbuf_gym as nb
>>> nb.baselines.names("congestion_window")[:3]
('bbr', 'cubic', 'linuxreno')
>>> reports = nb.baselines.evaluate(["cubic", "random"], task="congestion_window", scenario="ppcc/2", seeds=range(3))
>>> reports["cubic"][0]["goodput_mbps"]

`netbuf_gym.controllers` has the protocol, `netbuf_gym.evaluation.rollout` plays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios.sources import ScenarioLike

__all__ = ["evaluate", "make", "names", "usual"]


def names(task: str | None = None) -> tuple[str, ...]:
    """All baselines of a task (None: of the first one), those of the catalogues of the simulator among them."""
    return tuple(tasks.get(task).controllers)


def usual(task: str | None = None) -> tuple[str, ...]:
    """Those that evaluations set beside an agent unless others are asked for; all, where the task says nothing."""
    return tasks.get(task).measures.baselines or names(task)


def make(name: str, task: str | None = None) -> Controller:
    """A baseline by its name, for `netbuf_gym.evaluation.rollout`; raises ConfigError, naming the valid ones, for another."""
    return rollout.controller_of(name, tasks.get(task).name)


def evaluate(
    baselines: Iterable[str | Controller | rollout.Playing] | None = None,
    *,
    task: str | None = None,
    scenario: ScenarioLike | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    **env: Any,
) -> dict[str, list[dict[str, Any]]]:
    """One episode for each baseline and seed, all in the same worlds.

    Args:
        baselines: names, controllers or trained agents; None: the usual ones.
        task, scenario, seeds, threads, env: as for `netbuf_gym.evaluation.rollout.evaluate`; task None: the first one.

    Returns:
        by the baseline's name the reports of its episodes, seed by seed.

    Raises:
        ConfigError: an unknown baseline, the same one twice, or an argument that the environment refuses.
    """
    if isinstance(baselines, str) or not isinstance(baselines, Iterable | None):
        baselines = (baselines,)
    name = tasks.get(task).name
    players = [rollout.player(one, name) for one in (usual(name) if baselines is None else baselines)]
    called = [player.name for player in players]
    if len(set(called)) < len(called):
        raise ConfigError(f"baselines = {shown(called)}; valid: no two of one name")
    return {player.name: rollout.evaluate(player, name, scenario, seeds, threads, **env) for player in players}
