"""Laws of networking that simulated worlds are held to, and their comparisons, kept as one row for each world.

    python -m studies.validation laws [jobs=N] [--only NAME ...]

`--only` compares the named laws and keeps nothing. An interrupted command goes on where it was, as long as the program is
the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import netbuf_gym
from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import format_number, format_percent, markdown_table, text_table
from studies.common import kept, replay
from studies.common.campaign import describe_machine

STUDY, SECTION = "validation", "laws"
COLUMNS = ("law", "world", "low", "high", "ours")
UNFINISHED = "unfinished.json"
ROUNDING = 1e-6
"""Deviation below which tables show none."""
HOLDS, FAILS = "holds", "does not hold"


class Comparison(NamedTuple):
    """Least and largest value that a law allows in a world, and ours."""

    low: float
    high: float
    ours: float

    @classmethod
    def of_value(cls, due: float, ours: float) -> Comparison:
        """Return a comparison with a law that says one value."""
        return cls(due, due, ours)

    @property
    def deviation(self) -> float:
        """Relative difference from the nearest value that the law allows; NaN counts as infinite."""
        if self.low <= self.ours <= self.high:
            return 0.0
        nearest = self.low if self.ours < self.low else self.high
        found = (self.ours - nearest) / abs(nearest)
        return found if found == found else float("inf")


@dataclass(frozen=True, kw_only=True)
class Law:
    """A law, the worlds it is compared in, and how closely it should hold there.

    Attributes:
        name, title: Name on the command line; title in tables.
        source: Paper, RFC or kernel function.
        formula: Formula in words and symbols, with what it gives.
        compare: Simulates a world, given by keywords, and returns the comparison.
        worlds: Keywords of each world.
        middle, largest: Tolerated median and largest deviation: the law's own accuracy, and what chance adds.
    """

    name: str
    title: str
    source: str
    formula: str
    compare: Callable[..., Comparison]
    worlds: Sequence[Mapping[str, Any]]
    middle: float
    largest: float


def make_grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the worlds of all combinations of keywords' values."""
    return [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]


def format_world(world: Mapping[str, Any]) -> str:
    """Return a world's keywords as text."""
    return " ".join(f"{key}={value}" for key, value in world.items())


@dataclass(frozen=True)
class LawVerdict:
    """Comparisons of one law with the simulator, by world."""

    law: Law
    worlds: Mapping[str, Comparison]

    @cached_property
    def middle(self) -> float:
        """Median of the absolute deviations."""
        return median(abs(one.deviation) for one in self.worlds.values())

    @cached_property
    def worst(self) -> tuple[str, Comparison]:
        """World with the largest deviation, and its comparison."""
        return max(self.worlds.items(), key=lambda item: abs(item[1].deviation))

    @property
    def within(self) -> bool:
        """Whether median and largest deviation are tolerated."""
        return self.middle <= self.law.middle and abs(self.worst[1].deviation) <= self.law.largest

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return HOLDS if self.within else FAILS


@dataclass(frozen=True)
class LawReport:
    """Verdicts on laws, in the order of the catalogue."""

    laws: Sequence[LawVerdict]

    @property
    def within(self) -> bool:
        """Whether all laws hold."""
        return all(one.within for one in self.laws)

    @property
    def summary(self) -> str:
        """Numbers of laws and worlds, and of laws that do not hold."""
        worlds = sum(len(one.worlds) for one in self.laws)
        return f"{len(self.laws)} laws in {worlds} worlds, {sum(not one.within for one in self.laws)} do not hold"

    def text(self) -> str:
        """Return the summary and a table as text."""
        rows = [
            [
                one.law.name,
                str(len(one.worlds)),
                _format_deviation(one.middle),
                _format_deviation(abs(one.worst[1].deviation)),
                _format_worst(one),
                one.verdict,
            ]
            for one in self.laws
        ]
        return f"{text_table(['law', 'worlds', 'median', 'largest', 'largest in', 'verdict'], rows)}\n{self.summary}"

    def markdown(self) -> str:
        """Return the summary and a table with sources and formulas as Markdown."""
        rows = [
            [
                f"{one.law.title} (`{one.law.name}`)",
                f"{one.law.formula}; {one.law.source}",
                _format_ranges(one.law.worlds),
                f"{_format_deviation(one.middle)} ({_format_deviation(one.law.middle)})",
                f"{_format_deviation(abs(one.worst[1].deviation))} ({_format_deviation(one.law.largest)})",
                one.verdict,
            ]
            for one in self.laws
        ]
        header = ["law", "formula; source", "worlds", "median (tolerated)", "largest (tolerated)", "verdict"]
        return f"{self.summary}.\n\n{markdown_table(header, rows)}"


def _format_deviation(share: float) -> str:
    return "0" if share < ROUNDING else format_percent(share).lstrip("+")


def _format_worst(one: LawVerdict) -> str:
    world, found = one.worst
    due = format_number(found.low) if found.low == found.high else f"{format_number(found.low)}..{format_number(found.high)}"
    return f"{world}: law {due}, ours {format_number(found.ours)}" if abs(found.deviation) >= ROUNDING else ""


def _format_ranges(worlds: Sequence[Mapping[str, Any]]) -> str:
    """Return the values of each keyword over the worlds, ends only where there are more than three."""
    said = []
    for key in worlds[0]:
        values = list(dict.fromkeys(world[key] for world in worlds))
        if len(values) > 3 and not isinstance(values[0], str):
            said.append(f"{key} {min(values)} to {max(values)}")
        else:
            said.append(f"{key} {', '.join(map(str, values))}")
    return f"{len(worlds)}: {'; '.join(said)}"


def run_laws(
    laws: Sequence[Law],
    jobs: int | None = None,
    done: Mapping[tuple[str, str], Comparison] | None = None,
    put: Callable[[Mapping[tuple[str, str], Comparison]], None] = lambda found: None,
) -> LawReport:
    """Compare the laws in their worlds, but for those done already, and return the report.

    Args:
        laws: The laws.
        jobs: Number of threads; None: one for each core.
        done: Comparisons by law and world.
        put: Receives all comparisons so far whenever one is added.
    """
    found = dict(done or {})
    tasks = [(law, world) for law in laws for world in law.worlds if (law.name, format_world(world)) not in found]
    total, left = sum(len(law.worlds) for law in laws), len(tasks)

    def compare(task: tuple[Law, Mapping[str, Any]]) -> Comparison:
        law, world = task
        return law.compare(**world)

    with ProgressBar(f"{STUDY} {SECTION}") as bar:
        for (law, world), comparison in LOCAL.run(compare, tasks, jobs or len(os.sched_getaffinity(0)), threading.Event()):
            found[law.name, format_world(world)] = Comparison(*map(float, comparison))
            put(found)
            left -= 1
            bar(total - left, total, law.name)
    return LawReport([LawVerdict(law, {name: found[law.name, name] for name in map(format_world, law.worlds)}) for law in laws])


def keep_laws(laws: Sequence[Law], root: Path, jobs: int | None = None) -> Path:
    """Compare the laws, going on with an interrupted run of the same program, keep the rows and return their file."""
    path = root / kept.DRAWN / STUDY / SECTION / UNFINISHED
    path.parent.mkdir(parents=True, exist_ok=True)
    program = _compute_program_digest()

    def put(found: Mapping[tuple[str, str], Comparison]) -> None:
        rows = [[*key, *one] for key, one in found.items()]
        write_atomic(path, json.dumps({"program": program, "rows": rows}))

    report = run_laws(laws, jobs, _read_unfinished(path, program), put)
    rows = [
        {"law": one.law.name, "world": world, **{name: repr(value) for name, value in found._asdict().items()}}
        for one in report.laws
        for world, found in one.worlds.items()
    ]
    header = {"command": f"python -m studies.{STUDY} {SECTION}", "machine": describe_machine()}
    file = kept.write_rows(root, STUDY, SECTION, header, kept.format_rows(COLUMNS, rows))
    path.unlink()
    return file


def _compute_program_digest() -> str:
    """Return the digest of the package, its core included, and of the laws."""
    package = Path(netbuf_gym.__file__).parent
    files = [*package.rglob("*.py"), *package.glob("_core*.so"), *Path(__file__).parent.glob("laws*.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _read_unfinished(path: Path, program: str) -> dict[tuple[str, str], Comparison]:
    """Return the comparisons of an interrupted run of this program; none without one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if data.get("program") != program:
        return {}
    return {(law, world): Comparison(*values) for law, world, *values in data["rows"]}


def build_law_report(laws: Iterable[Law], rows: kept.KeptRows) -> LawReport:
    """Return the verdicts on kept rows.

    Raises:
        ReferenceDataError: The rows of a law are not those of its worlds.
    """
    by_law: dict[str, dict[str, Comparison]] = {}
    for row in rows.records:
        by_law.setdefault(row["law"], {})[row["world"]] = Comparison(*(float(row[name]) for name in COLUMNS[2:]))
    laws = list(laws)
    for law in laws:
        worlds = {format_world(world) for world in law.worlds}
        found = by_law.get(law.name, {}).keys()
        if worlds != found:
            others = len(found - worlds)
            told = f"has rows of {len(found & worlds)} of the {len(worlds)} worlds of {law.name}, and of {others} others"
            valid = f"rows of its worlds alone, by netbuf-gym results make studies/{STUDY}/{SECTION}"
            raise ReferenceDataError(f"{told}; valid: {valid}", rows.path)
    return LawReport([LawVerdict(law, by_law[law.name]) for law in laws])


def find_stale_laws(laws: Iterable[Law], rows: kept.KeptRows, same: float) -> str:
    """Return why rows of laws are stale: a law's first world comes out differently, by more than the share `same`; "": none."""
    before = {(row["law"], row["world"]): row for row in rows.records}
    differing, count = {}, 0
    for one in run_laws([replace(law, worlds=law.worlds[:1]) for law in laws]).laws:
        for world, now in one.worlds.items():
            count += 1
            was = before.get((one.law.name, world), {})
            if found := replay.find_largest_difference(was, now._asdict(), COLUMNS[2:], same):
                differing[f"{one.law.name} {world}"] = found
            elif not was:
                differing[f"{one.law.name} {world}"] = (math.inf, "no row")
    return replay.describe_differences(differing, count, most=0)
