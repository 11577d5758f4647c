"""Entries of kept rows: each controller on each suite that ranks it, and their names on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import Suite, field, rows
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.leaderboard import constants, scores
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.zoo import library

LEADERBOARD, FIELD = "leaderboard", "field"
"""Names of two groups of suites: those that agents of all tasks are ranked by, and those of the field."""
FIELD_CONTROLLERS = (
    *("cubic", "newreno", "bbr", "bbr3", "bbrplus", "vegas", "westwood", "copa", "vivace", "ledbat", "ledbatpp", "dctcp"),
    *("prague", "inigo", "qtcp", "queue_target"),
    *(f"congestion_window/{agent}" for agent in ("sender", "ppo", "a2c", "dqn", "ppo_lstm")),
)
"""Controllers kept on suites of the field: the Linux stack's controls that need no receiver of their own, the hand-written
rule, and the agents that observe no more than a sender does."""


@dataclass(frozen=True)
class Entry:
    """A controller's rows on a suite.

    Attributes:
        suite: The suite.
        controller: Word that names the controller (`netbuf_gym.zoo.resolve.resolve_controller`).
        folder: Folder of all rows.
    """

    suite: Suite
    controller: str
    folder: Path

    @property
    def key(self) -> tuple[str, str]:
        """Names of suite and controller."""
        return self.suite.name, self.controller

    @property
    def is_learned(self) -> bool:
        """Whether the controller is an agent of the package."""
        return self.controller in library.names()

    @property
    def file(self) -> Path:
        """File of the rows."""
        return rows.get_file(self.suite, self.controller, self.folder)

    @property
    def names(self) -> set[str]:
        """Words that select the entry on the command line."""
        group = FIELD if isinstance(self.suite, FieldSuite) else LEADERBOARD
        return {group, self.suite.name, self.suite.task, self.controller, self.controller.rpartition("/")[2]}


def list_ranking_suites() -> list[Suite]:
    """Return the suites of the leaderboard and of the field."""
    return [*(scores.get_ranking_suite(task) for task in CHOOSE_ON), *field.SUITES]


def list_entries(folder: Path) -> list[Entry]:
    """Return all expected entries, suite by suite; without a leaderboard's best constant if that is unknown."""
    found = []
    for own in list_ranking_suites():
        if isinstance(own, FieldSuite):
            names: Sequence[str] = FIELD_CONTROLLERS
        else:
            try:
                constant = [constants.read_best_constant(own.task, folder)]
            except ConfigError:
                constant = []
            names = scores.list_controllers(own.task, *constant)
        found += [Entry(own, name, folder) for name in names]
    return found


def find_orphans(folder: Path) -> list[Path]:
    """Return files of rows in the suites' folders that belong to no entry, e.g. of a controller that has been renamed."""
    known = {one.file for one in list_entries(folder)}
    return [
        path
        for own in list_ranking_suites()
        for path in sorted(rows.get_folder(own, folder).glob("*.csv"))
        if path not in known
    ]


def select_entries(all_entries: Sequence[Entry], what: Sequence[str]) -> list[Entry]:
    """Return the entries that words select; suites and controllers together select their intersection.

    Args:
        all_entries: Entries to select from.
        what: Words, each a group, suite, task or controller.

    Raises:
        ConfigError: A word names no entry, or the words together select none.
    """
    chosen = list(all_entries)
    suites = [word for word in what if word in (LEADERBOARD, FIELD, *tasks.names(), *(one.suite.name for one in all_entries))]
    controllers = [word for word in what if word not in suites]
    known = sorted({name for one in all_entries for name in one.names})
    for word in controllers:
        if word not in known:
            valid = f"{LEADERBOARD}, {FIELD}, a suite, a task or a controller"
            raise ConfigError(f"WHAT = {shown(word)} names no kept results; {did_you_mean(word, known)}valid: {valid}")
    if suites:
        chosen = [one for one in chosen if one.names & set(suites)]
    if controllers:
        chosen = [one for one in chosen if one.names & set(controllers)]
    if not chosen:
        raise ConfigError(f"WHAT = {' '.join(what)} names no kept results; valid: a controller of that suite")
    return chosen
