"""What an experiment is: its settings, the runs of its campaign, its figures, its part of the appendix.

Each is an object in a folder of its own; `studies.catalogue` has them by name. What all have in common, the
folder of a campaign and its resuming, the tidy file, how claims are judged, is not theirs.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.utils.arguments import whole
from netbuf_gym.utils.executors import LOCAL, Executor, executor
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.settings import Settings, kinds, read

Key = tuple[Any, ...]
"""What tells a run from every other: values of `Experiment.keys`."""
S = TypeVar("S", bound=Settings)
Section = Callable[[Kept], str]
"""A part of the appendix, Markdown, of the rows that are kept of it; puts pictures that were drawn here beside the page."""


class Part(NamedTuple):
    """What is written at a time: the keys of its rows, in their order. The name is its file's."""

    name: str
    runs: tuple[Key, ...]


class Chunk(NamedTuple):
    """A thread's task: runs of a part that are run together."""

    part: Part
    runs: tuple[Key, ...]


class Work(ABC, Generic[S]):
    """The runs of a campaign, and who plays in them.

    Attributes:
        settings: What is run.
        parts: All of it, in the order of the tidy file.
        identity: What else results depend on, by name: the SHA-256 of files; "" where there is none. `agent_sha256` among it.
    """

    settings: S
    parts: list[Part]
    identity: Mapping[str, str]

    @abstractmethod
    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """These parts, cut up for threads, in the order in which to begin."""

    @abstractmethod
    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """The rows of a chunk, in any order: keys and measures by column.

        Args:
            chunk: The runs.
            folder: The campaign's, for what outlasts an interruption within a run.
            stop: Ends the work early, by an exception, when it is set.
        """


@dataclass(frozen=True, kw_only=True)
class Order(Generic[S]):
    """The settings, and what does not change the results.

    Attributes:
        settings: What to run.
        output: The campaign's folder.
        jobs: Threads, or processes, of the executor.
        executor: Where the runs are made.
        figures: Whether to draw.
    """

    settings: S
    output: Path
    jobs: int
    executor: Executor
    figures: bool


class Experiment(ABC, Generic[S]):
    """An experiment of a paper.

    Attributes:
        name: On the command line, and of its page.
        summary: A line.
        settings: The type of its settings.
        keys: Columns that tell a run from every other.
        texts: Those of them that are text.
        measures: Columns that were measured, with what they are. NaN (an empty field) where nothing was.
        explained: What is to be said of other columns.
        help: Its settings with their defaults.
        examples: Command lines, after the experiment's name.
        choices: What keys take, for the completion of command lines: names with what they mean (of lists their items), or
            what `netbuf_gym.cli.completion` calls it.
        sections: Of its appendix, by their marks.
        verdicts: The table of its page, of all sections whose rows are there, by their marks; "" where these are too few.
        kept_measures: Those of the measures that are kept in results; empty: all.
    """

    name: str
    summary: str
    settings: type[S]
    keys: tuple[str, ...]
    texts: tuple[str, ...]
    measures: Mapping[str, str]
    explained: Mapping[str, str] = {}
    help: str
    examples: tuple[str, ...]
    choices: Mapping[str, Any]
    sections: Mapping[str, Section]
    verdicts: Callable[[Mapping[str, Kept]], str]
    kept_measures: tuple[str, ...] = ()

    @abstractmethod
    def work(self, settings: S) -> Work[S]:
        """Who plays, loaded and checked, before anything is run.

        Raises:
            ConfigError, CheckpointError: What plays does not fit.
            MissingExtraError: It needs what is not installed.
        """

    @abstractmethod
    def draw(self, work: Work[S], runs: Runs, folder: Path) -> list[Path]:
        """All figures of a finished campaign; returns the files.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OSError: A file cannot be written.
        """

    def choose(self, runs: Runs) -> Runs:
        """Those of a campaign's rows that are kept in results."""
        return runs

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the tidy file."""
        return (*self.keys, *self.measures)

    def read(self, path: str | Path) -> Runs:
        """The runs of a finished campaign; raises as `Runs.read`."""
        return Runs.read(path, self.keys, self.texts, tuple(self.measures))

    def parse(self, arguments: Sequence[str]) -> Order[S]:
        """The order that `key=value` arguments give.

        Raises:
            ConfigError: An unknown key, a key given twice, a value that is no such thing or out of range.
            CheckpointError: An agent that is neither a file nor a name.
            MissingExtraError: What the executor needs is not installed.
        """
        given = read(self.settings, arguments)
        settings: Any = self.settings.made({key: value for key, value in given.items() if key in kinds(self.settings)})
        output = given.get("output") or f"runs/reproduce/{settings.label}-{settings.digest()}"
        jobs = whole("jobs", given["jobs"], 1, 1024) if given.get("jobs") is not None else len(os.sched_getaffinity(0))
        figures = given.get("figures", True)
        if not isinstance(figures, bool):
            raise ConfigError(f"figures = {shown(figures)} is not a truth value; valid: true, false")
        engine = executor(given.get("executor", LOCAL.name))
        return Order(settings=settings, output=Path(output), jobs=jobs, executor=engine, figures=figures)
