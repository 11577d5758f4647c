"""The gate of agents: each of the package plays some worlds of its suite again, and is held to its kept rows.

A world in which a constant or a rule, which act by the same control, has other figures than its rows, too, is not the one
that the rows are of: the simulator has changed there. Such worlds are told of, and no agent is held to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, rows, runner
from netbuf_gym.leaderboard import constants, scores
from netbuf_gym.leaderboard.results import replay
from netbuf_gym.utils.tables import markdown_table
from netbuf_gym.zoo import resolve

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
    """An agent beside its kept rows.

    Attributes:
        name: Of the agent.
        worlds: Number of worlds that it has played again and is held to.
        moved: Number of those that are not what they were.
        off: See `Off`.
        change: Mean of the score now less the kept one, over the worlds that have both.
        seconds: How long it took.
    """

    name: str
    worlds: int
    moved: int
    off: Off
    change: float
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the agent still does what its rows say."""
        return reproduced(self.off, self.worlds)


def sample(edition: Edition) -> list[Cell]:
    """The worlds that are played again: the same ones always."""
    cells = [edition.of([family]) for family in edition.families]
    return [own[k] for own in cells for k in sorted({len(own) * i // SAMPLED for i in range(SAMPLED)})]


@dataclass(frozen=True)
class _Course:
    """The suite of a task, its kept rows, and how its worlds are played again."""

    own: Suite
    edition: Edition
    folder: Path | None
    threads: int
    each: Callable[[str], None]

    def play(self, name: str, cells: Sequence[Cell]) -> tuple[rows.Rows, runner.Played]:
        """A controller's kept rows, and what it comes to in worlds now."""
        self.each(name)
        try:
            found = rows.read(rows.file_of(self.own, name, self.folder))
            rows.require_whole(found, self.own, self.edition)
        except ConfigError as error:
            raise ConfigError(f"{error}; `netbuf-gym results make {self.own.name} {name}` makes it") from None
        one = resolve.controller(name, self.own)
        resolve.require_fit(one, cells, self.own)
        return found, runner.run(self.own, cells, one, threads=self.threads)

    def witnesses(self) -> tuple[list[str], list[str]]:
        """Controllers that act by the agents' control and do not learn: the best constant and a rule; all further rules."""
        rule, *further = tasks.get(self.own.task).measures.heuristics
        return [constants.constant_of(self.own.task, self.folder), rule], further

    def find_moved(self, names: Sequence[str], cells: Sequence[Cell]) -> set[str]:
        """Worlds in which one of these has other figures than its rows."""
        moved = set[str]()
        for name in names:
            found, played = self.play(name, cells)
            now = {cell.name: dict(values) for cell, values in zip(cells, played.values, strict=True)}
            moved |= {one.world for one in replay.compare(found, now, self.own)}
        return moved


def check(
    names: Sequence[str], folder: Path | None = None, threads: int = 1, each: Callable[[str], None] = lambda name: None
) -> list[Held]:
    """Play agents of the package again.

    The best constant and a rule play the same worlds first, the further rules those in which an agent is not what its rows say:
    no agent is held to worlds in which one of these has other figures than its own rows.

    Args:
        names: Of the agents.
        folder: Of kept results; None: the package's.
        threads: That run the worlds.
        each: Called with every controller that begins.

    Raises:
        ConfigError: An agent without rows on today's worlds; names the file and what makes it.
    """
    held = []
    for task in dict.fromkeys(name.partition("/")[0] for name in names):
        own = scores.ranked_by(task)
        course = _Course(own, own.load(), folder, threads, each)
        cells, (first, further) = sample(course.edition), course.witnesses()
        moved = course.find_moved(first, cells)
        for name in names:
            if name.partition("/")[0] == task:
                found, played = course.play(name, cells)
                one = _hold(name, found, played, own, moved)
                if not one.holds:
                    moved |= course.find_moved(further, [cell for cell in cells if cell.name in one.off])
                    one = _hold(name, found, played, own, moved)
                held.append(one)
    return held


def _hold(name: str, found: rows.Rows, played: runner.Played, own: Suite, moved: Collection[str]) -> Held:
    key = own.score.key
    pairs = zip(played.cells, played.of(key), strict=True)
    judged = [(cell, found.worlds[cell.name][key], now) for cell, now in pairs if cell.name not in moved]
    off = others(*(tuple(column) for column in zip(*judged, strict=True))) if judged else {}
    changes = [now - was for _, was, now in judged if np.isfinite(now - was)]
    mean = float(np.mean(changes)) if changes else 0.0
    return Held(name, len(judged), len(played.cells) - len(judged), off, mean, played.seconds)


def others(cells: Sequence[Cell], said: Sequence[float], now: Sequence[float]) -> Off:
    """Worlds whose score is not what was said, with both; NaN: there is none."""
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
    made = []
    for one in held:
        changes = ((world, "-" if was is None else f"{was:.3f}", now) for world, (was, now) in one.off.items())
        where = ", ".join(f"{world} {was} -> {now:.3f}" for world, was, now in changes)
        same = f"{one.worlds - len(one.off)} of {one.worlds}"
        verdict = "not judged" if not one.worlds else "holds" if one.holds else "does not"
        change = round(one.change, 4) + 0.0
        made.append([one.name, same, str(one.moved), f"{change:+.4f}", f"{one.seconds:.1f}", verdict, where])
    heads = ["agent", f"worlds within {TOLERANCE:g}", "other worlds now", "mean change", "seconds", "its rows", "then -> now"]
    return markdown_table(heads, made)
