"""Replays of kept rows: some of their worlds, or all, played again and compared."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, rows, runner, suite
from netbuf_gym.evaluation.suites.scoring import CHANCE
from netbuf_gym.leaderboard.results.entries import Entry
from netbuf_gym.utils.executors import LOCAL, Executor
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library, resolve

EXACT = 1e-5
"""Largest relative difference of figures that are the same: rows have six significant digits."""
DECIDED = 0.02
"""The same of agents and rules, relatively or of their score: the last bits of sums depend on the machine and on the worlds
beside, and decisions between two that are nearly equal on the last bits."""
REPRODUCED = 0.9
"""Share of the worlds of an agent or rule whose figures are the same; of each family at least half are."""


@dataclass(frozen=True)
class Difference:
    """A figure that is another one now.

    Attributes:
        world, metric: Of which figure.
        was, now: Its kept value, and the one of today; NaN: none.
    """

    world: str
    metric: str
    was: float
    now: float

    @property
    def size(self) -> float:
        """Relative size; infinite where one of both is not there."""
        size = abs(self.now - self.was) / max(abs(self.was), 1e-12)
        return size if math.isfinite(size) else math.inf

    def __str__(self) -> str:
        return f"{self.metric} of {self.world} {self.was:.6g} -> {self.now:.6g}"


@dataclass(frozen=True)
class Replay:
    """Kept rows beside what their worlds come to today.

    Attributes:
        entry: Whose.
        reason: Why the rows are stale, in words; "": they are current.
        worlds: Number of worlds that were played again.
        differences: The largest difference of each world that has one.
        cpu_seconds: Of the replay.
        simulated_s: Simulated seconds of it.
    """

    entry: Entry
    reason: str
    worlds: int = 0
    differences: Sequence[Difference] = field(default_factory=tuple)
    cpu_seconds: float = 0.0
    simulated_s: float = 0.0

    @property
    def is_current(self) -> bool:
        """Whether the rows are what they would be if they were made now."""
        return not self.reason


def sample(edition: Edition, every: bool = False, decides: bool = False) -> list[Cell]:
    """One world of each family, the quickest to play; all worlds if `every`.

    Args:
        decides: Whether the controller is asked for decisions, which then cost more than packets do.
    """
    if every:
        return list(edition.cells)
    return [min(edition.of([family]), key=lambda cell: _cost(cell, decides)) for family in edition.families]


def _cost(cell: Cell, decides: bool) -> float:
    scenario = cell.scenario
    return scenario.duration_s * (scenario.capacity_mbps + len(scenario.flows) + decides * 200 * cell.agents)


def decides(controller: str, own: Suite) -> bool:
    """Whether a controller computes decisions, whose last bits depend on the machine: an agent or a rule, and no constant."""
    constant = controller in tasks.get(own.task).measures.constants or controller.startswith(rollout.CONSTANT)
    return not constant and not isinstance(resolve.controller(controller, own), InWorld)


def compare(found: rows.Rows, now: dict[str, dict[str, float]], own: Suite) -> list[Difference]:
    """Of each world that was played again the largest difference that counts, if there is one."""
    made, computed = [], decides(found.controller, own)
    for world, values in now.items():
        own_differences = [
            Difference(world, metric.key, found.worlds[world][metric.key], values[metric.key])
            for metric in own.metrics
            if not _same(found.worlds[world][metric.key], values[metric.key], computed, metric is own.score)
        ]
        if own_differences:
            made.append(max(own_differences, key=lambda one: one.size))
    return made


def _same(was: float, now: float, computed: bool, score: bool) -> bool:
    if math.isnan(was) or math.isnan(now):
        return math.isnan(was) and math.isnan(now)
    if computed:
        return math.isclose(was, now, rel_tol=DECIDED, abs_tol=DECIDED if score else 1e-6)
    return math.isclose(was, now, rel_tol=EXACT, abs_tol=1e-12)


def replay(
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
        entries: Which rows.
        every: All worlds instead of one a family.
        executor, jobs: Where, and how many entries at once.
        timed: Whether a world of each family is played of rows, too, that cannot be compared, as to know how long they take.
        each: Called with every entry that is done.

    Raises:
        ConfigError, CheckpointError, PlantFault, WorkerError: As `running.run` and `Executor.run`.
    """
    made: dict[tuple[str, str], Replay] = {}
    reasons = {one.key: reason for one in entries if (reason := _why_incomparable(one))}
    for one in entries:
        if one.key in reasons and not timed:
            made[one.key] = Replay(one, reasons[one.key])
            each(made[one.key])
    longest_first = sorted(entries, key=lambda one: (one.is_learned, -_simulated(one, every)))
    ahead = {one.key: one for one in longest_first if one.key not in made}
    whole = frozenset(key for key in ahead if every and key not in reasons)
    for task, (worlds, cpu_seconds, simulated_s) in executor.run(_Played(whole), ahead, jobs, stop):
        entry = ahead[task]
        if task in reasons:
            made[task] = Replay(entry, reasons[task], len(worlds), (), cpu_seconds, simulated_s)
        else:
            kept = rows.read(entry.file)
            differing = compare(kept, worlds, entry.suite)
            if differing and not every and decides(entry.controller, entry.suite):
                worlds |= _play_groups(entry, {one.world for one in differing})
                differing = compare(kept, worlds, entry.suite)
            reason = _why_stale(kept, entry, differing, worlds)
            made[task] = Replay(entry, reason, len(worlds), differing, cpu_seconds, simulated_s)
        each(made[task])
    return [made[one.key] for one in entries]


def _play_groups(entry: Entry, names: set[str]) -> dict[str, dict[str, float]]:
    """Metrics of worlds, and of all of their suite's of as many agents and one duration, with which they were played: more to
    judge by, and what is decided in one may depend on its neighbours in the last bit."""
    cells = _loaded(entry.suite.load).cells
    groups = {(cell.agents, cell.scenario.duration_s) for cell in cells if cell.name in names}
    together = [cell for cell in cells if (cell.agents, cell.scenario.duration_s) in groups]
    played = runner.run(entry.suite, together, resolve.controller(entry.controller, entry.suite))
    return {cell.name: dict(values) for cell, values in zip(together, played.values, strict=True)}


def _is_within_machines(entry: Entry, differing: Sequence[Difference], worlds: Collection[str]) -> bool:
    """Whether no more worlds differ than another machine's last bits make of decisions."""
    if not decides(entry.controller, entry.suite):
        return not differing
    family = {cell.name: cell.family for cell in _loaded(entry.suite.load).cells}
    played, changed = (Counter(family[world] for world in names) for names in (worlds, [one.world for one in differing]))
    halves = all(2 * changed[name] <= max(played[name], 2) for name in changed)
    return halves and len(differing) <= round((1 - REPRODUCED) * len(worlds), 9)


def mark(one: Replay) -> None:
    """Mark the rows of a replay as stale, or take their mark away; a damaged file is left as it is.

    Raises:
        OSError: The file cannot be written.
    """
    if one.entry.file.is_file():
        with suppress(ConfigError):
            rows.mark(one.entry.file, one.reason)


def _why_incomparable(entry: Entry) -> str:
    """Reason why rows cannot be compared with what their worlds come to: missing, damaged, or of other worlds; "": they can."""
    try:
        if not entry.file.is_file():
            return "missing"
        found = rows.read(entry.file)
        rows.require_whole(found, entry.suite, _loaded(entry.suite.load))
        rows.require_controller(found, entry.file, entry.suite)
        return ""
    except ConfigError as error:
        return str(error).removeprefix(f"{entry.file}: ")


def _why_stale(kept: rows.Rows, entry: Entry, differing: Sequence[Difference], worlds: Collection[str]) -> str:
    """Reason why rows are stale, by the worlds that differ of those that were played again; "": they are not."""
    if _is_within_machines(entry, differing, worlds):
        return ""
    was = kept.about.get("model_sha256")
    model = "of another model: " if was and was != resolve.digest_of(entry.controller) else ""
    return f"{model}{describe(differing, len(worlds))}"


def describe(differing: Sequence[Difference], worlds: int) -> str:
    """How many worlds differ of so many, and the largest difference, in words."""
    most = max(differing, key=lambda one: one.size)
    return f"differs in {len(differing)} of {worlds} worlds played again by netbuf-gym {__version__}, most in {most}"


@cache
def _loaded(load: Callable[[], Edition]) -> Edition:
    return load()


def _simulated(entry: Entry, every: bool) -> float:
    return sum(cell.scenario.duration_s for cell in _sample(entry.suite, entry.controller, every))


def _sample(own: Suite, controller: str, every: bool) -> list[Cell]:
    """As `sample`; of chance, whose numbers are drawn for all worlds that are played together, all of them."""
    return sample(_loaded(own.load), every or controller == CHANCE, controller in library.names())


@dataclass(frozen=True)
class _Played:
    """Plays a controller in worlds of a suite, here or in another process: metrics, the processor's seconds, simulated ones.

    Attributes:
        whole: Suites and controllers of which all worlds are played.
    """

    whole: frozenset[tuple[str, str]]

    def __call__(self, task: tuple[str, str]) -> tuple[dict[str, dict[str, float]], float, float]:
        own, began = suite(task[0]), time.thread_time()
        cells = _sample(own, task[1], task in self.whole)
        one: Controller = resolve.controller(task[1], own)
        resolve.require_fit(one, cells, own)
        played = runner.run(own, cells, one)
        worlds = {cell.name: dict(values) for cell, values in zip(cells, played.values, strict=True)}
        return worlds, time.thread_time() - began, sum(cell.scenario.duration_s for cell in cells)
