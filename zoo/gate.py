"""The gate of agents: each of the package plays some worlds of its suite again, and is held to the committed result."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ConfigError
from netbuf_gym.suites import Cell, Edition, running
from netbuf_gym.tables import markdown_table
from netbuf_gym.zoo import contending, scores

SAMPLED = 5
"""Worlds of each family, spread over them."""
TOLERANCE = 0.02
"""Of the score, in a world that is played again."""
REPRODUCED = 0.9
"""Share of those worlds in which it must be reproduced: the last bits of a network's sums depend on the machine, and a decision
between two that are nearly equal on the last bits."""
Off = dict[str, tuple[float | None, float]]
"""Of worlds whose score is another one: what it was, and what it is."""


@dataclass(frozen=True)
class Held:
    """An agent beside its committed result.

    Attributes:
        name: Of the agent.
        worlds: How many it has played again.
        off: See `Off`.
        change: Mean of the score now less the committed one, over the worlds that have both.
        seconds: How long it took.
    """

    name: str
    worlds: int
    off: Off
    change: float
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the result stands."""
        return reproduced(self.off, self.worlds)


def sample(edition: Edition) -> list[Cell]:
    """The worlds that are played again: the same ones always."""
    cells = [edition.of([family]) for family in edition.families]
    return [own[k] for own in cells for k in sorted({len(own) * i // SAMPLED for i in range(SAMPLED)})]


def check(
    names: Sequence[str], folder: Path, threads: int = 1, each: Callable[[str], None] = lambda name: None
) -> list[Held]:
    """Plays agents of the package again.

    Args:
        names: Of the agents.
        folder: Of the committed results, `scores.file_of`.
        threads: That run the worlds.
        each: Is told every agent that begins.

    Raises:
        ConfigError: An agent without a result of today's worlds and of its model; names the agent and what makes one.
    """
    held = []
    for name in names:
        each(name)
        task = name.partition("/")[0]
        own = scores.ranked_by(task)
        edition, file = own.load(), scores.file_of(folder, task, name)
        if not scores.is_current(file, name, edition):
            valid = f"what `netbuf-gym leaderboard fill task={task}` writes"
            raise ConfigError(f"{file}: holds no result of agent {name} as it is, on {own.name} as it is; valid: {valid}")
        (found,) = scores.results_of(scores.read(file), own, edition, str(file))
        cells, one = sample(edition), contending.contender(name, own)
        contending.require_fit(one, cells, own)
        played = running.run(own, cells, one, threads=threads)
        said = [found.worlds[cell.name] for cell in cells]
        now = np.array(played.of(own.score.key))
        off = others(cells, said, now.tolist())
        change = now - np.array(said)
        mean = float(np.nanmean(change)) if np.isfinite(change).any() else 0.0
        held.append(Held(name, len(cells), off, mean, played.seconds))
    return held


def others(cells: Sequence[Cell], said: Sequence[float], now: Sequence[float]) -> Off:
    """The worlds in which a score is not what was said; NaN: there is none."""
    off: Off = {}
    for cell, was, one in zip(cells, said, now, strict=True):
        if not (np.isnan(was) and np.isnan(one)) and not abs(was - one) <= TOLERANCE:
            off[cell.name] = (None if np.isnan(was) else was, one)
    return off


def reproduced(off: Sized, worlds: int) -> bool:
    """Whether few enough worlds of so many have another score."""
    return len(off) <= round((1 - REPRODUCED) * worlds, 9)


def table(held: Sequence[Held]) -> str:
    """Markdown: a row an agent, and where its score is another one."""
    rows = []
    for one in held:
        changes = ((world, "-" if was is None else f"{was:.3f}", now) for world, (was, now) in one.off.items())
        where = ", ".join(f"{world} {was} -> {now:.3f}" for world, was, now in changes)
        same = f"{one.worlds - len(one.off)} of {one.worlds}"
        verdict, change = "holds" if one.holds else "does not", round(one.change, 4) + 0.0
        rows.append([one.name, same, f"{change:+.4f}", f"{one.seconds:.1f}", verdict, where])
    heads = ["agent", f"worlds within {TOLERANCE:g}", "mean change", "seconds", "its result", "others, then -> now"]
    return markdown_table(heads, rows)
