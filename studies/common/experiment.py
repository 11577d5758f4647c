"""Interface of an experiment: its settings, the runs of its campaign, its figures, its part of the appendix.

Each experiment is an object in a folder of its own; `studies.catalogue` has them by name. Common parts (a campaign's
folder and its resumption, the tidy file, the judging of claims) are in `studies.common`.
"""

from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.utils.executors import LOCAL, Executor, get_executor
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.settings import Settings, find_key_kinds, read_arguments

Key = tuple[Any, ...]
"""Identifier of a run: its values of `Experiment.keys`."""
S = TypeVar("S", bound=Settings)
Section = Callable[[KeptRows], str]
"""Function from kept rows to a part of the appendix, as Markdown; moves figures that were drawn here beside the page."""


class Part(NamedTuple):
    """Unit of writing: a name, which is that of its file, and the keys of its rows, in order."""

    name: str
    runs: tuple[Key, ...]


class Chunk(NamedTuple):
    """Unit of work of a thread: runs of a part that are executed together."""

    part: Part
    runs: tuple[Key, ...]


class Work(ABC, Generic[S]):
    """Runs of a campaign, and the controllers that play in them.

    Attributes:
        settings: Settings of the campaign.
        parts: All parts, in the order of the tidy file.
        identity: Further dependencies of the results, by name: SHA-256 of files, "" if there is none; includes `agent_sha256`.
    """

    settings: S
    parts: list[Part]
    identity: Mapping[str, str]

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """Yield chunks of the given parts, for threads, in the order in which to start them: here one for each part."""
        return (Chunk(part, part.runs) for part in parts)

    @abstractmethod
    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """Return the rows of a chunk, in any order: keys and measures by column.

        Args:
            chunk: Runs to execute.
            folder: The campaign's folder, for data that outlasts an interruption within a run.
            stop: Event that ends the work early, by an exception.
        """


def require_playing(study: str, plays: Callable[[str], bool], settings: Settings) -> list[str]:
    """Return the schemes of the settings that play in a study; raise ConfigError if none does."""
    schemes = [scheme for scheme in settings.schemes if plays(scheme)]
    if not schemes:
        playing = ", ".join(scheme for scheme in settings.names if plays(scheme))
        raise ConfigError(f"studies holds {study!r}, in which none of the schemes plays; valid there: {playing}")
    return schemes


def complete_rows(
    chunk: Chunk, keys: Sequence[str], measures: Iterable[str], found: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of a chunk from what was measured in each of its runs: with keys, and NaN for other measures."""
    nothing = dict.fromkeys(measures, math.nan)
    return [dict(zip(keys, run, strict=True)) | nothing | row for run, row in zip(chunk.runs, found, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Order(Generic[S]):
    """Settings of a campaign, and options that do not change its results.

    Attributes:
        settings: Settings of the campaign.
        output: Folder of the campaign.
        jobs: Number of the executor's threads or processes.
        executor: Executor of the runs.
        figures: Whether to draw figures.
    """

    settings: S
    output: Path
    jobs: int
    executor: Executor
    figures: bool


class Experiment(ABC, Generic[S]):
    """An experiment of a paper.

    Attributes:
        name: Name on the command line, and of the page.
        summary: One-line description.
        settings: Type of the settings.
        work: Returns the campaign's work with its controllers loaded and checked, before anything is run. Raises ConfigError or
            CheckpointError if a controller does not fit, MissingExtraError if a package that one needs is not installed.
        keys: Columns that identify a run.
        texts: Key columns that are text.
        measures: Measured columns, with descriptions. NaN (an empty field) where nothing was measured.
        explained: Descriptions of other columns.
        help: Help text on the settings and their defaults.
        examples: Command lines, after the experiment's name.
        choices: Values that keys take, for command-line completion: names with descriptions (for lists, of the items), or
            a source of `netbuf_gym.cli.completion`: a topic of `netbuf-gym list`, or `folder`.
        sections: Sections of the appendix, by their marks.
        verdicts: Function for the page's table, from all sections whose rows exist, by their marks; "" if these are too few.
        kept_measures: Measures that are kept in results; empty: all.
    """

    name: str
    summary: str
    settings: type[S]
    work: Callable[[S], Work[S]]
    keys: tuple[str, ...]
    texts: tuple[str, ...]
    measures: Mapping[str, str]
    explained: Mapping[str, str] = {}
    help: str
    examples: tuple[str, ...]
    choices: Mapping[str, Any]
    sections: Mapping[str, Section]
    verdicts: Callable[[Mapping[str, KeptRows]], str]
    kept_measures: tuple[str, ...] = ()

    @abstractmethod
    def draw(self, work: Work[S], runs: Runs, folder: Path) -> list[Path]:
        """Draw all figures of a finished campaign and return the files.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OSError: A file cannot be written.
        """

    def choose(self, runs: Runs) -> Runs:
        """Return the rows of a campaign that are kept in results."""
        return runs

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the tidy file."""
        return (*self.keys, *self.measures)

    def read(self, path: str | Path) -> Runs:
        """Return the runs of a finished campaign; raises like `Runs.read`."""
        return Runs.read(path, self.keys, self.texts, tuple(self.measures))

    def parse(self, arguments: Sequence[str]) -> Order[S]:
        """Return the order given by `key=value` arguments.

        Raises:
            ConfigError: An unknown key, a key given twice, a value that is malformed or out of range.
            CheckpointError: An agent that is neither a file nor a name.
            MissingExtraError: A package that the executor needs is not installed.
        """
        given = read_arguments(self.settings, arguments)
        settings: Any = self.settings.from_values(
            {key: value for key, value in given.items() if key in find_key_kinds(self.settings)}
        )
        output = given.get("output") or f"runs/reproduce/{settings.label}-{settings.digest()}"
        jobs = check_integer("jobs", given["jobs"], 1, 1024) if given.get("jobs") is not None else len(os.sched_getaffinity(0))
        figures = given.get("figures", True)
        if not isinstance(figures, bool):
            raise ConfigError(f"figures = {quote(figures)} is not a truth value; valid: true, false")
        engine = get_executor(given.get("executor", LOCAL.name))
        return Order(settings=settings, output=Path(output), jobs=jobs, executor=engine, figures=figures)
