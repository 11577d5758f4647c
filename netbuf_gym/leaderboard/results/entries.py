"""The rows that are kept: each controller on each suite that ranks it, and how they are named on the command line."""

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
        controller: What the controller is made of (`netbuf_gym.zoo.resolve.controller`), and its name.
        folder: Of all rows.
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
        """Where the rows are kept."""
        return rows.file_of(self.suite, self.controller, self.folder)

    @property
    def names(self) -> set[str]:
        """Words that select it on the command line."""
        group = FIELD if isinstance(self.suite, FieldSuite) else LEADERBOARD
        return {group, self.suite.name, self.suite.task, self.controller, self.controller.rpartition("/")[2]}


def ranking_suites() -> list[Suite]:
    """The suites of the leaderboard and of the field."""
    return [*(scores.ranked_by(task) for task in CHOOSE_ON), *field.SUITES]


def entries(folder: Path) -> list[Entry]:
    """All rows that are to be there, suite by suite: of a leaderboard without its best constant where that is not known."""
    found = []
    for own in ranking_suites():
        if isinstance(own, FieldSuite):
            names: Sequence[str] = FIELD_CONTROLLERS
        else:
            try:
                constant = [constants.constant_of(own.task, folder)]
            except ConfigError:
                constant = []
            names = scores.words_of(own.task, *constant)
        found += [Entry(own, name, folder) for name in names]
    return found


def find_orphans(folder: Path) -> list[Path]:
    """Files of rows in folders of these suites that belong to no entry, as those of a controller that has another name now."""
    known = {one.file for one in entries(folder)}
    return [path for own in ranking_suites() for path in sorted(rows.folder_of(own, folder).glob("*.csv")) if path not in known]


def select(all_entries: Sequence[Entry], what: Sequence[str]) -> list[Entry]:
    """Entries that words name: a group, suite, task or controller each; of a controller and a suite those of both.

    Raises:
        ConfigError: A word names none, or none is named by all of them together.
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
