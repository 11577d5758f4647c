"""Gate of the package's agents: each one replays some worlds of its suite and must reproduce its kept rows.

Where a constant or a rule, which act by the same control, has other figures than its rows too, the simulator has changed and
the world is not the one of the rows. Such worlds are reported, and no agent is judged by them.
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
"""Number of replayed worlds per family, evenly spread."""
TOLERANCE = 0.02
"""Largest absolute difference of the score in a replayed world."""
REPRODUCED = 0.9
"""Share of replayed worlds in which the score must be reproduced: the last bits of a network's sums depend on the machine, and
decisions between nearly equal actions depend on the last bits."""
ChangedScores = dict[str, tuple[float | None, float]]
"""Kept score (None: none) and score now, by the name of each world where they differ."""


@dataclass(frozen=True)
class GateResult:
    """Comparison of an agent with its kept rows.

    Attributes:
        name: Name of the agent.
        worlds: Number of replayed worlds by which the agent is judged.
        changed_worlds: Number of replayed worlds that have changed, by which the agent is not judged.
        changed_scores: Worlds with another score; see `ChangedScores`.
        change: Mean of the score now minus the kept one, over the worlds that have both.
        seconds: Duration of the replay.
    """

    name: str
    worlds: int
    changed_worlds: int
    changed_scores: ChangedScores
    change: float
    seconds: float

    @property
    def reproduces_rows(self) -> bool:
        """Whether the agent still reproduces its rows."""
        return is_reproduced(self.changed_scores, self.worlds)


def sample_worlds(edition: Edition) -> list[Cell]:
    """Return the worlds to replay, always the same ones."""
    cells = [edition.of([family]) for family in edition.families]
    return [own[k] for own in cells for k in sorted({len(own) * i // SAMPLED for i in range(SAMPLED)})]


@dataclass(frozen=True)
class _SuiteReplay:
    """The suite of a task, its kept rows, and settings for replaying its worlds."""

    own: Suite
    edition: Edition
    folder: Path | None
    threads: int
    each: Callable[[str], None]

    def play(self, name: str, cells: Sequence[Cell]) -> tuple[rows.Rows, runner.SuiteRun]:
        """Return a controller's kept rows, and its results on cells now."""
        self.each(name)
        try:
            found = rows.read(rows.get_file(self.own, name, self.folder))
            rows.require_whole(found, self.own, self.edition)
        except ConfigError as error:
            raise ConfigError(f"{error}; `netbuf-gym results make {self.own.name} {name}` makes it") from None
        one = resolve.resolve_controller(name, self.own)
        resolve.require_fit(one, cells, self.own)
        return found, runner.run(self.own, cells, one, threads=self.threads)

    def list_witnesses(self) -> tuple[list[str], list[str]]:
        """Return unlearned controllers that act by the agents' control: the best constant and a rule; all further rules."""
        rule, *further = tasks.get(self.own.task).measures.heuristics
        return [constants.read_best_constant(self.own.task, self.folder), rule], further

    def find_changed_worlds(self, names: Sequence[str], cells: Sequence[Cell]) -> set[str]:
        """Return the worlds in which one of the named controllers has other figures than its rows."""
        moved = set[str]()
        for name in names:
            found, played = self.play(name, cells)
            now = {cell.name: dict(values) for cell, values in zip(cells, played.values, strict=True)}
            moved |= {one.world for one in replay.compare_rows(found, now, self.own)}
        return moved


def check_agents(
    names: Sequence[str], folder: Path | None = None, threads: int = 1, each: Callable[[str], None] = lambda name: None
) -> list[GateResult]:
    """Replay worlds with agents of the package, and compare their scores with their kept rows.

    The best constant and a rule play the same worlds first, the further rules those in which an agent fails to reproduce its
    rows: no agent is judged by worlds in which one of these has other figures than its own rows.

    Args:
        names: Names of the agents.
        folder: Folder of kept results; None: the package's.
        threads: Number of threads that run the worlds.
        each: Called with the name of every controller that begins.

    Raises:
        ConfigError: An agent without rows on today's worlds; the message names the file and the command that makes it.
    """
    held = []
    for task in dict.fromkeys(name.partition("/")[0] for name in names):
        own = scores.get_ranking_suite(task)
        course = _SuiteReplay(own, own.load(), folder, threads, each)
        cells, (first, further) = sample_worlds(course.edition), course.list_witnesses()
        moved = course.find_changed_worlds(first, cells)
        for name in names:
            if name.partition("/")[0] == task:
                found, played = course.play(name, cells)
                one = _judge_agent(name, found, played, own, moved)
                if not one.reproduces_rows:
                    moved |= course.find_changed_worlds(further, [cell for cell in cells if cell.name in one.changed_scores])
                    one = _judge_agent(name, found, played, own, moved)
                held.append(one)
    return held


def _judge_agent(name: str, found: rows.Rows, played: runner.SuiteRun, own: Suite, moved: Collection[str]) -> GateResult:
    key = own.score.key
    pairs = zip(played.cells, played.of(key), strict=True)
    judged = [(cell, found.worlds[cell.name][key], now) for cell, now in pairs if cell.name not in moved]
    off = find_changed_scores(*(tuple(column) for column in zip(*judged, strict=True))) if judged else {}
    changes = [now - was for _, was, now in judged if np.isfinite(now - was)]
    mean = float(np.mean(changes)) if changes else 0.0
    return GateResult(name, len(judged), len(played.cells) - len(judged), off, mean, played.seconds)


def find_changed_scores(cells: Sequence[Cell], said: Sequence[float], now: Sequence[float]) -> ChangedScores:
    """Return the worlds whose score differs from the stated one, with both scores; NaN stands for no score."""
    off: ChangedScores = {}
    for cell, was, one in zip(cells, said, now, strict=True):
        if not (np.isnan(was) and np.isnan(one)) and not abs(was - one) <= TOLERANCE:
            off[cell.name] = (None if np.isnan(was) else was, one)
    return off


def is_reproduced(off: Sized, worlds: int) -> bool:
    """Return whether few enough of the worlds have another score."""
    return len(off) <= round((1 - REPRODUCED) * worlds, 9)


def format_table(held: Sequence[GateResult]) -> str:
    """Format comparisons as a Markdown table: one row per agent, with the worlds where its score differs."""
    made = []
    for one in held:
        changes = ((world, "-" if was is None else f"{was:.3f}", now) for world, (was, now) in one.changed_scores.items())
        where = ", ".join(f"{world} {was} -> {now:.3f}" for world, was, now in changes)
        same = f"{one.worlds - len(one.changed_scores)} of {one.worlds}"
        verdict = "not judged" if not one.worlds else "holds" if one.reproduces_rows else "does not"
        change = round(one.change, 4) + 0.0
        made.append([one.name, same, str(one.changed_worlds), f"{change:+.4f}", f"{one.seconds:.1f}", verdict, where])
    heads = ["agent", f"worlds within {TOLERANCE:g}", "other worlds now", "mean change", "seconds", "its rows", "then -> now"]
    return markdown_table(heads, made)
