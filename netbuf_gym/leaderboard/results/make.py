"""Remaking of stale rows: the plan with its duration, and the playing, which continues after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.evaluation.suites import Cell, Suite, frozen, get_suite, rows, runner
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.leaderboard import constants, scores
from netbuf_gym.leaderboard.results.entries import Entry
from netbuf_gym.leaderboard.results.replay import Replay
from netbuf_gym.tasks import get
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.executors import Executor
from netbuf_gym.utils.files import make_folder
from netbuf_gym.utils.progress import ProgressBar, print_line
from netbuf_gym.zoo import resolve, suite_runs

RUNS = Path("runs", "results")
"""Folder of finished parts until an entry is complete."""
COMMAND = "netbuf-gym results make"


@dataclass(frozen=True)
class ResultMaker:
    """Maker of complete entries.

    Attributes:
        executor, jobs, threads: See `netbuf_gym.zoo.suite_runs.SuiteRunner`.
        runs: Folder of finished parts until an entry is complete.
    """

    executor: Executor
    jobs: int
    threads: int
    runs: Path = RUNS

    def make(self, entry: Entry) -> rows.Rows:
        """Play a controller on all worlds of a suite, and write and return its rows; parts of an earlier call are reused.

        Raises:
            ConfigError, CheckpointError, PlantFault, WorkerError: See `suite_runs.SuiteRunner.play`.
            OSError: The rows cannot be written.
        """
        own, word, edition = entry.suite, entry.controller, entry.suite.load()
        make_folder(entry.file.parent, "results")
        with ProgressBar(f"{own.name}: {word}") as bar:
            played = self._play_suite(own, word, scores.WorldCounter(bar, len(edition.cells)))
        one = resolve.resolve_controller(word, own)
        about = scores.describe_agent(one.saved) if isinstance(one, SavedAgent) else {}
        about |= {"model_sha256": resolve.compute_model_digest(word)}
        about |= {"decision_us": frozen.round_floats(runner.measure_decision_us(own, edition.cells[0], one))}
        made = rows.make_rows(played, own, edition, f"{COMMAND} {own.name} {word}", **about)
        rows.write(entry.file, made, own, edition)
        self._make_runner(own).remove_parts(word, one, edition.cells)
        return made

    def make_best_constant(self, task: str, folder: Path) -> rows.Rows:
        """Play the constants of a task on the worlds for that choice, record the best one, and make its rows.

        Raises:
            ConfigError, CheckpointError, PlantFault, WorkerError, OSError: See `make`.
        """
        words, worlds = get(task).measures.constants, len(get_suite(CHOOSE_ON[task]).load().cells)
        with ProgressBar(f"{task}: constants") as bar:
            counted = scores.WorldCounter(bar, worlds * len(words))
            found = scores.choose_constant(task, lambda own, word: self._play_suite(own, word, counted))
        make_folder(constants.get_constants_file(task, folder).parent, "results")
        scores.write_result(constants.get_constants_file(task, folder), {**found, "command": f"{COMMAND} {V1}/{task}"})
        return self.make(Entry(get_suite(f"{V1}/{task}"), str(found["best"]), folder))

    def _play_suite(self, own: Suite, word: str, each: Callable[[Cell], None]) -> runner.SuiteRun:
        edition, one = own.load(), resolve.resolve_controller(word, own)
        resolve.require_fit(one, edition.cells, own)
        return self._make_runner(own).play(word, one, edition.cells, each)

    def _make_runner(self, own: Suite) -> suite_runs.SuiteRunner:
        return suite_runs.SuiteRunner(own, own.load(), rows.get_folder(own, self.runs), self.executor, self.jobs, self.threads)


def estimate_seconds(one: Replay) -> float:
    """Estimate CPU seconds for all worlds of an entry from its replayed worlds."""
    simulated_s = sum(cell.scenario.duration_s for cell in one.entry.suite.load().cells)
    return one.cpu_seconds / one.simulated_s * simulated_s


def _estimate_constants(task: str, worlds: int, stale: Sequence[Replay]) -> float:
    """Estimate CPU seconds for a number of worlds of a task, each taking as long as those of the task's first rule."""
    rule = get(task).measures.heuristics[0]
    each = [
        estimate_seconds(one) / len(one.entry.suite.load().cells) for one in stale if one.entry.key == (f"{V1}/{task}", rule)
    ]
    return worlds * sum(each)


def format_duration(seconds: float) -> str:
    """Format a duration in s, min or h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def print_plan(stale: Sequence[Replay], jobs: int, unchosen: Sequence[str] = ()) -> float:
    """Print what will be played and for how long, and return the total of CPU seconds.

    Args:
        stale: Replays of the entries to make.
        jobs: Number of cores.
        unchosen: Tasks whose best constant is to be chosen; their worlds are assumed to take as long as those of a rule.
    """
    total = 0.0
    for task in unchosen:
        worlds = len(get_suite(CHOOSE_ON[task]).load().cells) * len(get(task).measures.constants)
        seconds = _estimate_constants(task, worlds, stale)
        total += seconds
        print_line(f"{task}: the best constant is chosen, {worlds:,} worlds, {format_duration(seconds)} of a processor")
    for one in stale:
        seconds = estimate_seconds(one)
        total += seconds
        worlds = len(one.entry.suite.load().cells)
        reason = one.reason or "current"
        print_line(f"{' '.join(one.entry.key)}: {worlds:,} worlds, {format_duration(seconds)} of a processor; {reason}")
    print_line(f"{len(stale)} to be played: about {format_duration(total / jobs)} on {jobs} cores")
    return total
