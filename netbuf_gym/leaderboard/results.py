"""Kept results of the package's controllers: their entries, replays that tell whether they are current, remaking, and the gate.

An entry is a controller's rows on a suite that ranks it. A replay plays some or all worlds of an entry again and compares the
figures; stale entries are made anew, which continues after an interruption.

At the gate each agent of the package replays some worlds of its suite and must reproduce its rows. Where a constant or a rule,
which act by the same control, has other figures than its rows too, the simulator has changed and the world is not the one of
the rows. Such worlds are reported, and no agent is judged by them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.comparison import WorldProgress
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, get_suite
from netbuf_gym.evaluation.suites import field as suites_of_the_field
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.evaluation.suites.frozen import round_floats
from netbuf_gym.leaderboard import controllers, play, rows, standings
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.executors import LOCAL, Executor
from netbuf_gym.utils.files import make_folder
from netbuf_gym.utils.progress import ProgressBar, format_duration, print_line
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.utils.tables import markdown_table
from netbuf_gym.version import __version__
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
EXACT_TOLERANCE = 1e-5
"""Largest relative difference of equal figures: rows have six significant digits."""
DECISION_TOLERANCE = 0.02
"""Largest difference of equal figures of agents and rules, relative, or absolute for the score: the last bits of sums depend on
the machine and on neighbouring worlds, and decisions between nearly equal actions depend on the last bits."""
REPRODUCED = 0.9
"""Share of the worlds of an agent or rule whose figures must be equal; in a replay at least half in each family must be."""
GATE_WORLDS = 5
"""Number of worlds per family that agents replay at the gate, evenly spread."""
RUNS = Path("runs", "results")
"""Folder of finished parts until an entry is complete."""
COMMAND = "netbuf-gym results make"


# ---- entries


@dataclass(frozen=True)
class Entry:
    """A controller's rows on a suite.

    Attributes:
        suite: The suite.
        controller: Word that names the controller (`netbuf_gym.leaderboard.controllers.resolve_controller`).
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
    return [*(standings.get_ranking_suite(task) for task in CHOOSE_ON), *suites_of_the_field.SUITES]


def list_entries(folder: Path) -> list[Entry]:
    """Return all expected entries, suite by suite; without a leaderboard's best constant if that is unknown."""
    found = []
    for own in list_ranking_suites():
        names: Sequence[str] = FIELD_CONTROLLERS
        if not isinstance(own, FieldSuite):
            constant = []
            with suppress(ConfigError):
                constant = [standings.read_best_constant(own.task, folder)]
            names = standings.list_controllers(own.task, *constant)
        found += [Entry(own, name, folder) for name in names]
    return found


def find_orphans(folder: Path) -> list[Path]:
    """Return files of rows in the suites' folders that belong to no entry, e.g. of a controller that has been renamed."""
    known = {one.file for one in list_entries(folder)}
    files = [path for own in list_ranking_suites() for path in sorted(rows.get_folder(own, folder).glob("*.csv"))]
    return [path for path in files if path not in known]


def select_entries(all_entries: Sequence[Entry], what: Sequence[str]) -> list[Entry]:
    """Return the entries that words select; suites and controllers together select their intersection.

    Args:
        all_entries: Entries to select from.
        what: Words, each a group, suite, task or controller.

    Raises:
        ConfigError: A word names no entry, or the words together select none.
    """
    suites = [word for word in what if word in (LEADERBOARD, FIELD, *tasks.names(), *(one.suite.name for one in all_entries))]
    names = [word for word in what if word not in suites]
    known = sorted({name for one in all_entries for name in one.names})
    for word in names:
        if word not in known:
            valid = f"{LEADERBOARD}, {FIELD}, a suite, a task or a controller"
            raise ConfigError(f"WHAT = {quote(word)} names no kept results; {did_you_mean(word, known)}valid: {valid}")
    chosen = list(all_entries)
    for words in (suites, names):
        if words:
            chosen = [one for one in chosen if one.names & set(words)]
    if not chosen:
        raise ConfigError(f"WHAT = {' '.join(what)} names no kept results; valid: a controller of that suite")
    return chosen


# ---- replays


@dataclass(frozen=True)
class Difference:
    """A figure that has changed.

    Attributes:
        world, metric: World and metric of the figure.
        was, now: Kept value and present value; NaN: none.
    """

    world: str
    metric: str
    was: float
    now: float

    @property
    def size(self) -> float:
        """Relative size; infinite if one of the values is missing."""
        size = abs(self.now - self.was) / max(abs(self.was), 1e-12)
        return size if math.isfinite(size) else math.inf

    def __str__(self) -> str:
        return f"{self.metric} of {self.world} {self.was:.6g} -> {self.now:.6g}"


@dataclass(frozen=True)
class Replay:
    """Comparison of kept rows with their worlds played again.

    Attributes:
        entry: Entry of the rows.
        reason: Why the rows are stale, in words; "" if they are current.
        worlds: Number of replayed worlds.
        differences: Largest difference of each world that has one.
        cpu_seconds: CPU time of the replay.
        simulated_s: Simulated time of the replay.
    """

    entry: Entry
    reason: str
    worlds: int = 0
    differences: Sequence[Difference] = field(default_factory=tuple)
    cpu_seconds: float = 0.0
    simulated_s: float = 0.0

    @property
    def is_current(self) -> bool:
        """Whether the rows equal those that would be made now."""
        return not self.reason


def _sample_replayed(own: Suite, controller: str, every: bool) -> list[Cell]:
    """Return one world of each family, the quickest to play; all worlds if `every`."""
    edition = _load_edition(own.load)
    if every:
        return list(edition.cells)
    decides = 200 if controller in library.names() else 0  # a network's decisions cost more than packets do

    def estimate_cost(cell: Cell) -> float:
        scenario = cell.scenario
        return scenario.duration_s * (scenario.capacity_mbps + len(scenario.flows) + decides * cell.agents)

    return [min(edition.select_cells([family]), key=estimate_cost) for family in edition.families]


@cache
def _load_edition(load: Callable[[], Edition]) -> Edition:
    return load()


def _play(own: Suite, name: str, cells: Sequence[Cell], threads: int = 1) -> play.SuiteRun:
    """Look up a controller by name, check that it fits the given worlds of a suite, and play it in them."""
    controller = controllers.resolve_controller(name, own)
    controllers.require_fit(controller, cells, own)
    return play.run(own, cells, controller, threads=threads)


def computes_decisions(controller: str, own: Suite) -> bool:
    """Return whether a controller, as an agent or rule, computes decisions, whose last bits depend on the machine."""
    constant = controller in tasks.get(own.task).measures.constants or controller.startswith(rollout.CONSTANT)
    return not constant and not isinstance(controllers.resolve_controller(controller, own), InWorld)


def compare_rows(found: rows.Rows, now: dict[str, dict[str, float]], own: Suite) -> list[Difference]:
    """Return the largest significant difference of each replayed world that has one."""
    made, computed = [], computes_decisions(found.controller, own)
    for world, values in now.items():
        own_differences = [
            Difference(world, metric.key, found.worlds[world][metric.key], values[metric.key])
            for metric in own.metrics
            if metric.key in found.worlds[world]  # rows of earlier versions lack numbers of flows
            and not _is_same_figure(found.worlds[world][metric.key], values[metric.key], computed, metric is own.score)
        ]
        if own_differences:
            made.append(max(own_differences, key=lambda one: one.size))
    return made


def _is_same_figure(was: float, now: float, computed: bool, score: bool) -> bool:
    if math.isnan(was) or math.isnan(now):
        return math.isnan(was) and math.isnan(now)
    if computed:
        return math.isclose(was, now, rel_tol=DECISION_TOLERANCE, abs_tol=DECISION_TOLERANCE if score else 1e-6)
    return math.isclose(was, now, rel_tol=EXACT_TOLERANCE, abs_tol=1e-12)


def replay_entries(
    entries: Sequence[Entry],
    *,
    every: bool = False,
    executor: Executor = LOCAL,
    jobs: int = 1,
    timed: bool = False,
    each: Callable[[Replay], None] = lambda one: None,
    stop: threading.Event | None = None,
) -> list[Replay]:
    """Play worlds of kept rows again, and compare.

    Args:
        entries: Entries of the rows.
        every: Whether to play all worlds instead of one per family.
        executor, jobs: Executor that plays worlds, and number of concurrent entries.
        timed: Whether to play a world of each family also for rows that cannot be compared, to learn how long they take.
        each: Called with every finished replay.
        stop: Event that an early end of the run sets.

    Raises:
        ConfigError, CheckpointError, PlantFault, WorkerError: See `play.run` and `Executor.run`.
    """
    made: dict[tuple[str, str], Replay] = {}
    reasons = {one.key: reason for one in entries if (reason := _why_incomparable(one))}
    for one in entries:
        if one.key in reasons and not timed:
            made[one.key] = Replay(one, reasons[one.key])
            each(made[one.key])

    def rank_by_duration(one: Entry) -> tuple[bool, float]:
        cells = _sample_replayed(one.suite, one.controller, every)
        return one.is_learned, -sum(cell.scenario.duration_s for cell in cells)

    longest_first = sorted(entries, key=rank_by_duration)
    ahead = {one.key: one for one in longest_first if one.key not in made}
    whole = frozenset(key for key in ahead if every and key not in reasons)
    for task, (worlds, cpu_seconds, simulated_s) in executor.run(_ReplayJob(whole), ahead, jobs, stop):
        entry = ahead[task]
        if task in reasons:
            made[task] = Replay(entry, reasons[task], len(worlds), (), cpu_seconds, simulated_s)
        else:
            kept = rows.read(entry.file)
            differing = compare_rows(kept, worlds, entry.suite)
            if differing and not every and computes_decisions(entry.controller, entry.suite):
                worlds |= _play_groups(entry, {one.world for one in differing})
                differing = compare_rows(kept, worlds, entry.suite)
            reason = _why_stale(kept, entry, differing, worlds)
            made[task] = Replay(entry, reason, len(worlds), differing, cpu_seconds, simulated_s)
        each(made[task])
    return [made[one.key] for one in entries]


def _play_groups(entry: Entry, names: set[str]) -> dict[str, dict[str, float]]:
    """Play the named worlds with all worlds of their groups, and return the metrics of each world.

    These were played together: there is more to judge by, and decisions in one world may depend on its neighbours in the last
    bit.
    """
    groups = play.group_cells(_load_edition(entry.suite.load).cells)
    together = [cell for group in groups if any(cell.name in names for cell in group) for cell in group]
    return play.run(entry.suite, together, controllers.resolve_controller(entry.controller, entry.suite)).worlds


def _is_within_machines(entry: Entry, differing: Sequence[Difference], worlds: Collection[str]) -> bool:
    """Return whether no more worlds differ than another machine's last bits can explain."""
    if not computes_decisions(entry.controller, entry.suite):
        return not differing
    family = {cell.name: cell.family for cell in _load_edition(entry.suite.load).cells}
    played, changed = (Counter(family[world] for world in names) for names in (worlds, [one.world for one in differing]))
    return is_reproduced(differing, len(worlds)) and all(2 * changed[name] <= max(played[name], 2) for name in changed)


def is_reproduced(off: Sized, worlds: int) -> bool:
    """Return whether few enough of the worlds have other figures."""
    return len(off) <= round((1 - REPRODUCED) * worlds, 9)


def mark_rows(one: Replay) -> None:
    """Mark the rows of a replay as stale, or remove their mark; a damaged file is left as it is.

    Raises:
        OSError: The file cannot be written.
    """
    if one.entry.file.is_file():
        with suppress(ConfigError):
            rows.mark_stale(one.entry.file, one.reason)


def _why_incomparable(entry: Entry) -> str:
    """Return why rows cannot be compared with a replay: missing, damaged, or of other worlds; "" if they can."""
    if not entry.file.is_file():
        return "missing"
    try:
        found = rows.read(entry.file)
        rows.require_whole(found, entry.suite, _load_edition(entry.suite.load))
        rows.require_controller(found, entry.file, entry.suite)
        return ""
    except ConfigError as error:
        return str(error).removeprefix(f"{entry.file}: ")


def _why_stale(kept: rows.Rows, entry: Entry, differing: Sequence[Difference], worlds: Collection[str]) -> str:
    """Return why rows are stale, judged by the replayed worlds that differ; "" if they are not."""
    if _is_within_machines(entry, differing, worlds):
        return ""
    was = kept.about.get("model_sha256")
    model = "of another model: " if was and was != controllers.compute_model_digest(entry.controller) else ""
    return f"{model}{describe_differences(differing, len(worlds))}"


def describe_differences(differing: Sequence[Difference], worlds: int) -> str:
    """Describe how many of the replayed worlds differ, and the largest difference."""
    most = max(differing, key=lambda one: one.size)
    return f"differs in {len(differing)} of {worlds} worlds played again by netbuf-gym {__version__}, most in {most}"


@dataclass(frozen=True)
class _ReplayJob:
    """Callable that plays a controller in worlds of a suite, here or in another process.

    It returns metrics by world, CPU seconds, and simulated seconds.

    Attributes:
        whole: Pairs of suite and controller of which all worlds are played.
    """

    whole: frozenset[tuple[str, str]]

    def __call__(self, task: tuple[str, str]) -> tuple[dict[str, dict[str, float]], float, float]:
        own, began = get_suite(task[0]), time.thread_time()
        cells = _sample_replayed(own, task[1], task in self.whole)
        worlds = _play(own, task[1], cells).worlds
        return worlds, time.thread_time() - began, sum(cell.scenario.duration_s for cell in cells)


# ---- remaking


@dataclass(frozen=True)
class ResultMaker:
    """Maker of complete entries.

    Attributes:
        executor, jobs, threads: See `netbuf_gym.leaderboard.play.SuiteRunner`.
        runs: Folder of finished parts until an entry is complete.
    """

    executor: Executor
    jobs: int
    threads: int
    runs: Path = RUNS

    def make(self, entry: Entry) -> rows.Rows:
        """Play a controller on all worlds of a suite, and write and return its rows; parts of an earlier call are reused.

        Raises:
            ConfigError, CheckpointError, PlantFault, WorkerError: See `play.SuiteRunner.play`.
            OSError: The rows cannot be written.
        """
        own, word, edition = entry.suite, entry.controller, entry.suite.load()
        make_folder(entry.file.parent, "results")
        with ProgressBar(f"{own.name}: {word}") as bar:
            one, played = self._play_suite(own, word, WorldProgress(bar, len(edition.cells), text=""))
        about = controllers.describe_agent(one.saved) if isinstance(one, SavedAgent) else {}
        about |= {"model_sha256": controllers.compute_model_digest(word)}
        about |= {"decision_us": play.measure_decision_us(own, edition.cells[0], one)}
        made = rows.make_rows(played, own, edition, f"{COMMAND} {own.name} {word}", **about)
        rows.write(entry.file, made, own, edition)
        self._make_runner(own).remove_parts(word, one, edition.cells)
        return made

    def make_best_constant(self, task: str, folder: Path) -> rows.Rows:
        """Play the constants of a task on the worlds for that choice, record that of the highest mean score, and make its rows.

        Raises:
            ConfigError, CheckpointError, PlantFault, WorkerError, OSError: See `make`.
        """
        own, words = get_suite(CHOOSE_ON[task]), tasks.get(task).measures.constants
        edition, scores = own.load(), dict[str, float]()
        with ProgressBar(f"{task}: constants") as bar:
            counted = WorldProgress(bar, len(edition.cells) * len(words), text="")
            for word in words:
                scores[word] = float(np.nanmean(self._play_suite(own, word, counted)[1].list_values(own.score.key)))
        best = max(scores, key=lambda word: scores[word])
        kept = {"suite": own.name, "version": edition.version, "digest": edition.digest, "scores": round_floats(scores)}
        file = standings.get_constants_file(task, folder)
        make_folder(file.parent, "results")
        rows.write_result(file, {**kept, "best": best, "command": f"{COMMAND} {V1}/{task}"})
        return self.make(Entry(get_suite(f"{V1}/{task}"), best, folder))

    def _play_suite(self, own: Suite, word: str, each: Callable[[Cell], None]) -> tuple[Controller, play.SuiteRun]:
        edition, one = own.load(), controllers.resolve_controller(word, own)
        controllers.require_fit(one, edition.cells, own)
        return one, self._make_runner(own).play(word, one, edition.cells, each)

    def _make_runner(self, own: Suite) -> play.SuiteRunner:
        return play.SuiteRunner(own, own.load(), rows.get_folder(own, self.runs), self.executor, self.jobs, self.threads)


def estimate_seconds(one: Replay) -> float:
    """Estimate CPU seconds for all worlds of an entry from its replayed worlds."""
    simulated_s = sum(cell.scenario.duration_s for cell in one.entry.suite.load().cells)
    return one.cpu_seconds / one.simulated_s * simulated_s


def print_plan(stale: Sequence[Replay], jobs: int, unchosen: Sequence[str] = ()) -> float:
    """Print what will be played and for how long, and return the total of CPU seconds.

    Args:
        stale: Replays of the entries to make.
        jobs: Number of cores.
        unchosen: Tasks whose best constant is to be chosen; their worlds are assumed to take as long as those of a rule.
    """
    total = 0.0
    for task in unchosen:
        measures = tasks.get(task).measures
        worlds = len(get_suite(CHOOSE_ON[task]).load().cells) * len(measures.constants)
        of_rule = [one for one in stale if one.entry.key == (f"{V1}/{task}", measures.heuristics[0])]
        seconds = worlds * sum(estimate_seconds(one) / len(one.entry.suite.load().cells) for one in of_rule)
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


# ---- the gate

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
    found = []
    for task in dict.fromkeys(name.partition("/")[0] for name in names):
        found += _check_task([name for name in names if name.partition("/")[0] == task], task, folder, threads, each)
    return found


def _check_task(
    names: Sequence[str], task: str, folder: Path | None, threads: int, each: Callable[[str], None]
) -> list[GateResult]:
    own = standings.get_ranking_suite(task)
    edition = own.load()

    def replay(name: str, cells: Sequence[Cell]) -> tuple[rows.Rows, play.SuiteRun]:
        each(name)
        try:
            kept = rows.read(rows.get_file(own, name, folder))
            rows.require_whole(kept, own, edition)
        except ConfigError as error:
            raise ConfigError(f"{error}; `{COMMAND} {own.name} {name}` makes it") from None
        return kept, _play(own, name, cells, threads)

    def find_changed_worlds(names: Sequence[str], cells: Sequence[Cell]) -> set[str]:
        """Return the worlds in which one of the named controllers has other figures than its rows."""
        changed = set[str]()
        for name in names:
            kept, played = replay(name, cells)
            changed |= {one.world for one in compare_rows(kept, played.worlds, own)}
        return changed

    cells, (rule, *further) = _sample_for_gate(edition), tasks.get(task).measures.heuristics
    moved, found = find_changed_worlds([standings.read_best_constant(task, folder), rule], cells), []
    for name in names:
        kept, played = replay(name, cells)
        one = _judge_agent(kept, played, own, moved)
        if not one.reproduces_rows:
            moved |= find_changed_worlds(further, [cell for cell in cells if cell.name in one.changed_scores])
            one = _judge_agent(kept, played, own, moved)
        found.append(one)
    return found


def _sample_for_gate(edition: Edition) -> list[Cell]:
    """Return the worlds to replay, always the same ones."""
    cells = [edition.select_cells([family]) for family in edition.families]
    return [own[k] for own in cells for k in sorted({len(own) * i // GATE_WORLDS for i in range(GATE_WORLDS)})]


def _judge_agent(kept: rows.Rows, played: play.SuiteRun, own: Suite, moved: Collection[str]) -> GateResult:
    key, cells = own.score.key, [cell for cell in played.cells if cell.name not in moved]
    was, now = ([worlds[cell.name][key] for cell in cells] for worlds in (kept.worlds, played.worlds))
    off = find_changed_scores(cells, was, now)
    changes = [after - before for before, after in zip(was, now, strict=True) if np.isfinite(after - before)]
    mean = float(np.mean(changes)) if changes else 0.0
    return GateResult(played.name, len(cells), len(played.cells) - len(cells), off, mean, played.seconds)


def find_changed_scores(cells: Sequence[Cell], said: Sequence[float], now: Sequence[float]) -> ChangedScores:
    """Return the worlds whose score differs from the stated one, with both scores; NaN stands for no score."""
    off: ChangedScores = {}
    for cell, was, one in zip(cells, said, now, strict=True):
        if not (np.isnan(was) and np.isnan(one)) and not abs(was - one) <= DECISION_TOLERANCE:
            off[cell.name] = (None if np.isnan(was) else was, one)
    return off


def format_gate(found: Sequence[GateResult]) -> str:
    """Format comparisons as a Markdown table: one row per agent, with the worlds where its score differs."""
    made = []
    for one in found:
        changes = ((world, "-" if was is None else f"{was:.3f}", now) for world, (was, now) in one.changed_scores.items())
        where = ", ".join(f"{world} {was} -> {now:.3f}" for world, was, now in changes)
        same = f"{one.worlds - len(one.changed_scores)} of {one.worlds}"
        verdict = "not judged" if not one.worlds else "holds" if one.reproduces_rows else "does not"
        change = round(one.change, 4) + 0.0
        made.append([one.name, same, str(one.changed_worlds), f"{change:+.4f}", f"{one.seconds:.1f}", verdict, where])
    tolerance = f"worlds within {DECISION_TOLERANCE:g}"
    heads = ["agent", tolerance, "other worlds now", "mean change", "seconds", "its rows", "then -> now"]
    return markdown_table(heads, made)
