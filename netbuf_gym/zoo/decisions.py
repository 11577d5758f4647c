"""Measure how many different actions agents take, and keep that in `metrics.json` and in the first line of the card.

The card also says what is not learned, as the task's measures have it.

Usage:
    python -m netbuf_gym.zoo.decisions [AGENT...]

An agent is a name (`host_buffers/a2c`) or a folder with `model.zip`, `metrics.json` and `card.md`; default: all agents of the
package. Each plays 20 worlds of its suite `v1/TASK`, spread evenly over the families. Numbers of an action count as equal that
fall into the same hundredth of their range. `netbuf_gym.zoo.load` warns of agents that mostly decide the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.leaderboard import controllers, play, standings
from netbuf_gym.utils import scripts
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.zoo import library

WORLDS = 20
BUILT_IN = "* Not learned: "
"""Beginning of a card's line about what every agent of its recipe has."""
LEVELS = 100
"""Number of parts of the range of a number of an action."""


def measure_decisions(agent: str | Path, worlds: int = WORLDS) -> dict[str, Any]:
    """Play an agent in some worlds of the suite that ranks it, and count its actions.

    Returns:
        JSON-able: `suite`, `version`, `worlds`; `decisions`, their number, over all agents of all worlds; `actions`, the number
        of different ones; `share`, the share of an agent's decisions in a world that are its most frequent action, as the
        least, the mean and the largest; `model_sha256`.

    Raises:
        CheckpointError: No such agent, or a damaged one.
        ConfigError: An agent of a task without a suite.
    """
    path = library.find_agent_path(agent)
    task = _find_task(library.read_metrics(path if path.is_dir() else path.parent))
    own = standings.get_ranking_suite(task)
    edition = own.load()
    cells = [edition.cells[k] for k in np.linspace(0, len(edition.cells) - 1, worlds).round().astype(int)]
    watched = play.WatchedController(controllers.resolve_controller(str(agent), own))
    play.run(own, cells, watched)
    counts: Counter[bytes] = Counter()
    shares = []
    for group in watched.groups:
        for row in np.moveaxis(np.stack(group.actions), 1, 0):
            own_counts = Counter(one.tobytes() for one in quantise_actions(row, group.rules.action_space))
            counts += own_counts
            shares.append(max(own_counts.values()) / len(row))
    return {
        "suite": own.name,
        "version": edition.version,
        "worlds": len(cells),
        "decisions": counts.total(),
        "actions": len(counts),
        "share": [float(f"{one:.4g}") for one in (min(shares), np.mean(shares), max(shares))],
        "model_sha256": controllers.compute_model_digest(str(agent)),
    }


def _find_task(metrics: dict[str, Any]) -> str:
    """Return the task that an agent's measurements are of."""
    task = tasks.find_task(str(metrics.get("env")))
    if task is None:
        raise ConfigError(f"metrics.json: env = {quote(metrics.get('env'))}; valid: an environment of netbuf-gym")
    return task


def quantise_actions(actions: np.ndarray, space: gym.Space) -> np.ndarray:
    """Return actions (decisions, ...) as whole numbers: those of a bounded box as hundredths of its range."""
    if isinstance(space, gym.spaces.Box):
        parts = (np.clip(actions, space.low, space.high) - space.low) / (space.high - space.low)
        return np.round(parts * LEVELS).astype(np.int64)
    return actions.astype(np.int64)


def format_built_in(task: str, recipe: str) -> list[str]:
    """Return the card's line about what is not learned; [] if the task says nothing of the recipe."""
    said = tasks.get(task).measures.built_in.get(recipe)
    return [f"{BUILT_IN}{said}."] if said else []


def keep_decisions(agent: str | Path) -> str:
    """Measure an agent's decisions, and write them to its `metrics.json` and the first line of its card; return that line.

    Raises:
        CheckpointError, ConfigError: See `measure_decisions`; also an agent without these files.
        OSError: A file cannot be written.
    """
    path = library.find_agent_path(agent)
    folder = path if path.is_dir() else path.parent
    metrics, card = library.read_metrics(folder), library.read_card(folder)
    if not metrics or not card.startswith("# "):
        raise ConfigError(f"{folder}: lacks metrics.json or card.md; valid: the folder of an agent that has been evaluated")
    metrics["decisions"] = measure_decisions(agent)
    first, _, rest = card.partition("\n")
    first = first.partition(f"{library.DECIDES}takes ")[0]
    if said := library.describe_decisions(metrics):
        first += f"{library.DECIDES}{said}"
    lines = [line for line in rest.split("\n") if not line.startswith(BUILT_IN)]
    at = next((k for k, line in enumerate(lines) if line.startswith("* `model.zip` ")), len(lines))
    rest = "\n".join([*lines[:at], *format_built_in(_find_task(metrics), metrics["recipe"]), *lines[at:]])
    write_json(folder / "metrics.json", metrics)
    write_atomic(folder / "card.md", f"{first}\n{rest}")
    return first


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status, 0."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    for agent in argv or library.names():
        print(keep_decisions(agent), flush=True)
    return 0


if __name__ == "__main__":
    scripts.run("decisions", main)
