"""Stale rows made again: what is to be played, how long it takes, and the playing, which an interruption does not undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.evaluation.suites import Cell, Suite, frozen, rows, runner, suite
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.leaderboard import constants, scores
from netbuf_gym.leaderboard.results.entries import Entry
from netbuf_gym.leaderboard.results.replay import Replay
from netbuf_gym.tasks import get
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.executors import Executor
from netbuf_gym.utils.files import make_folder
from netbuf_gym.utils.progress import ProgressBar, say
from netbuf_gym.zoo import resolve, suite_runs

RUNS = Path("runs", "results")
"""What is played is kept below it until all of an entry is there."""
COMMAND = "netbuf-gym results make"


@dataclass(frozen=True)
class Maker:
    """Plays entries whole, and keeps their rows.

    Attributes:
        executor, jobs, threads: Where worlds are played: see `netbuf_gym.zoo.suite_runs.Playing`.
        runs: Folder of what is played until it is whole.
    """

    executor: Executor
    jobs: int
    threads: int
    runs: Path = RUNS

    def make(self, entry: Entry) -> rows.Rows:
        """Play a controller on all worlds of a suite, and write its rows; goes on with what an earlier call has played.

        Raises:
            ConfigError, CheckpointError, PlantFault, WorkerError: As `playing.Playing.play`.
            OSError: The rows cannot be written.
        """
        own, word, edition = entry.suite, entry.controller, entry.suite.load()
        make_folder(entry.file.parent, "results")
        with ProgressBar(f"{own.name}: {word}") as bar:
            played = self._play(own, word, scores.Counted(bar, len(edition.cells)))
        one = resolve.controller(word, own)
        about = scores.described(one.saved) if isinstance(one, SavedAgent) else {}
        about |= {"model_sha256": resolve.digest_of(word)}
        about |= {"decision_us": frozen.rounded(runner.decision_us(own, edition.cells[0], one))}
        made = rows.of_played(played, own, edition, f"{COMMAND} {own.name} {word}", **about)
        rows.write(entry.file, made, own, edition)
        self._playing(own).forget(word, one, edition.cells)
        return made

    def make_constant(self, task: str, folder: Path) -> rows.Rows:
        """Play the constants of a task on the worlds that are there to choose on, keep which is the best, and make its rows.

        Raises:
            As `make`.
        """
        words, worlds = get(task).measures.constants, len(suite(CHOOSE_ON[task]).load().cells)
        with ProgressBar(f"{task}: constants") as bar:
            counted = scores.Counted(bar, worlds * len(words))
            found = scores.choose_constant(task, lambda own, word: self._play(own, word, counted))
        make_folder(constants.file_of(task, folder).parent, "results")
        scores.write(constants.file_of(task, folder), {**found, "command": f"{COMMAND} {V1}/{task}"})
        return self.make(Entry(suite(f"{V1}/{task}"), str(found["best"]), folder))

    def _play(self, own: Suite, word: str, each: Callable[[Cell], None]) -> runner.Played:
        edition, one = own.load(), resolve.controller(word, own)
        resolve.require_fit(one, edition.cells, own)
        return self._playing(own).play(word, one, edition.cells, each)

    def _playing(self, own: Suite) -> suite_runs.Playing:
        return suite_runs.Playing(own, own.load(), rows.folder_of(own, self.runs), self.executor, self.jobs, self.threads)


def estimate_seconds(one: Replay) -> float:
    """The processor's seconds that all worlds of an entry take, by those that were played again."""
    simulated_s = sum(cell.scenario.duration_s for cell in one.entry.suite.load().cells)
    return one.cpu_seconds / one.simulated_s * simulated_s


def _estimate_constants(task: str, worlds: int, stale: Sequence[Replay]) -> float:
    """The processor's seconds that worlds of a task take, as long each as those of its first rule."""
    rule = get(task).measures.heuristics[0]
    each = [
        estimate_seconds(one) / len(one.entry.suite.load().cells) for one in stale if one.entry.key == (f"{V1}/{task}", rule)
    ]
    return worlds * sum(each)


def shown_time(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def tell_plan(stale: Sequence[Replay], jobs: int, unchosen: Sequence[str] = ()) -> float:
    """Say what is to be played and for how long; returns the processor's seconds in all.

    Args:
        unchosen: Tasks whose best constant is to be chosen, whose worlds are taken to last as long as those of a rule.
    """
    total = 0.0
    for task in unchosen:
        worlds = len(suite(CHOOSE_ON[task]).load().cells) * len(get(task).measures.constants)
        seconds = _estimate_constants(task, worlds, stale)
        total += seconds
        say(f"{task}: the best constant is chosen, {worlds:,} worlds, {shown_time(seconds)} of a processor")
    for one in stale:
        seconds = estimate_seconds(one)
        total += seconds
        worlds = len(one.entry.suite.load().cells)
        say(f"{' '.join(one.entry.key)}: {worlds:,} worlds, {shown_time(seconds)} of a processor; {one.reason or 'current'}")
    say(f"{len(stale)} to be played: about {shown_time(total / jobs)} on {jobs} cores")
    return total
