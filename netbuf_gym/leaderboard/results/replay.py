"""Replays of kept rows: some or all of their worlds, played again and compared."""

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
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, get_suite, rows, runner
from netbuf_gym.evaluation.suites.scoring import CHANCE
from netbuf_gym.leaderboard.results.entries import Entry
from netbuf_gym.utils.executors import LOCAL, Executor
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library, resolve

EXACT_TOLERANCE = 1e-5
"""Largest relative difference of equal figures: rows have six significant digits."""
DECISION_TOLERANCE = 0.02
"""Largest difference of equal figures of agents and rules, relative, or absolute for the score: the last bits of sums depend on
the machine and on neighbouring worlds, and decisions between nearly equal actions depend on the last bits."""
REPRODUCED = 0.9
"""Share of the worlds of an agent or rule whose figures must be equal; in each family at least half must be."""


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


def sample_worlds(edition: Edition, every: bool = False, decides: bool = False) -> list[Cell]:
    """Return one world of each family, the quickest to play; all worlds if `every`.

    Args:
        edition: Edition of the suite.
        every: Whether to return all worlds.
        decides: Whether the controller computes decisions, which then cost more than packets do.
    """
    if every:
        return list(edition.cells)
    return [min(edition.of([family]), key=lambda cell: _estimate_cost(cell, decides)) for family in edition.families]


def _estimate_cost(cell: Cell, decides: bool) -> float:
    scenario = cell.scenario
    return scenario.duration_s * (scenario.capacity_mbps + len(scenario.flows) + decides * 200 * cell.agents)


def computes_decisions(controller: str, own: Suite) -> bool:
    """Return whether a controller, as an agent or rule, computes decisions, whose last bits depend on the machine."""
    constant = controller in tasks.get(own.task).measures.constants or controller.startswith(rollout.CONSTANT)
    return not constant and not isinstance(resolve.resolve_controller(controller, own), InWorld)


def compare_rows(found: rows.Rows, now: dict[str, dict[str, float]], own: Suite) -> list[Difference]:
    """Return the largest significant difference of each replayed world that has one."""
    made, computed = [], computes_decisions(found.controller, own)
    for world, values in now.items():
        own_differences = [
            Difference(world, metric.key, found.worlds[world][metric.key], values[metric.key])
            for metric in own.metrics
            if not _is_same_figure(found.worlds[world][metric.key], values[metric.key], computed, metric is own.score)
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
        ConfigError, CheckpointError, PlantFault, WorkerError: See `runner.run` and `Executor.run`.
    """
    made: dict[tuple[str, str], Replay] = {}
    reasons = {one.key: reason for one in entries if (reason := _why_incomparable(one))}
    for one in entries:
        if one.key in reasons and not timed:
            made[one.key] = Replay(one, reasons[one.key])
            each(made[one.key])
    longest_first = sorted(entries, key=lambda one: (one.is_learned, -_sum_simulated_s(one, every)))
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

    A group is the suite's worlds of the same number of agents and duration, which were played together: there is more to judge
    by, and decisions in one world may depend on its neighbours in the last bit.
    """
    cells = _load_edition(entry.suite.load).cells
    groups = {(cell.agents, cell.scenario.duration_s) for cell in cells if cell.name in names}
    together = [cell for cell in cells if (cell.agents, cell.scenario.duration_s) in groups]
    played = runner.run(entry.suite, together, resolve.resolve_controller(entry.controller, entry.suite))
    return {cell.name: dict(values) for cell, values in zip(together, played.values, strict=True)}


def _is_within_machines(entry: Entry, differing: Sequence[Difference], worlds: Collection[str]) -> bool:
    """Return whether no more worlds differ than another machine's last bits can explain."""
    if not computes_decisions(entry.controller, entry.suite):
        return not differing
    family = {cell.name: cell.family for cell in _load_edition(entry.suite.load).cells}
    played, changed = (Counter(family[world] for world in names) for names in (worlds, [one.world for one in differing]))
    halves = all(2 * changed[name] <= max(played[name], 2) for name in changed)
    return halves and len(differing) <= round((1 - REPRODUCED) * len(worlds), 9)


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
    try:
        if not entry.file.is_file():
            return "missing"
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
    model = "of another model: " if was and was != resolve.compute_model_digest(entry.controller) else ""
    return f"{model}{describe_differences(differing, len(worlds))}"


def describe_differences(differing: Sequence[Difference], worlds: int) -> str:
    """Describe how many of the replayed worlds differ, and the largest difference."""
    most = max(differing, key=lambda one: one.size)
    return f"differs in {len(differing)} of {worlds} worlds played again by netbuf-gym {__version__}, most in {most}"


@cache
def _load_edition(load: Callable[[], Edition]) -> Edition:
    return load()


def _sum_simulated_s(entry: Entry, every: bool) -> float:
    return sum(cell.scenario.duration_s for cell in _sample_for_controller(entry.suite, entry.controller, every))


def _sample_for_controller(own: Suite, controller: str, every: bool) -> list[Cell]:
    """Return the worlds of `sample_worlds`; all worlds for chance, whose numbers are drawn for all worlds played together."""
    return sample_worlds(_load_edition(own.load), every or controller == CHANCE, controller in library.names())


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
        cells = _sample_for_controller(own, task[1], task in self.whole)
        one: Controller = resolve.resolve_controller(task[1], own)
        resolve.require_fit(one, cells, own)
        played = runner.run(own, cells, one)
        worlds = {cell.name: dict(values) for cell, values in zip(cells, played.values, strict=True)}
        return worlds, time.thread_time() - began, sum(cell.scenario.duration_s for cell in cells)
