"""Campaigns of studies that have cells, in each of which schemes play: a part for each study, cell and scheme."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError
from studies.common.experiment import Chunk, Key, Part, S, Work
from studies.common.settings import Settings

KEYS = ("study", "cell", "scheme", "step", "seed")
TEXTS = ("study", "cell", "scheme")


class Study(Protocol):
    """Runs of the same kind in several cells.

    Attributes:
        name: It.
        cells: What differs between its worlds, besides the seed.
    """

    @property
    def name(self) -> str: ...
    @property
    def cells(self) -> Sequence[str]: ...

    def plays(self, scheme: str) -> bool:
        """Whether a scheme is in it."""

    def steps(self, settings: Any, seed: int) -> Sequence[float]:
        """The column `step` of the rows of a seed's run."""

    def play(
        self, controller: Controller, settings: Any, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[dict[str, Any]]:
        """The measures of each world, in the order of the seeds; of each so many rows as there are steps."""


def parts_of(settings: Settings, asked: Sequence[str], known: Mapping[str, Study]) -> list[Part]:
    """All parts of the studies that are asked for.

    Raises:
        ConfigError: A study in which none of the schemes plays, or a scheme that was asked for and plays in none of them.
    """
    studies = [known[name] for name in asked]
    parts: list[Part] = []
    for study in studies:
        schemes = [scheme for scheme in settings.schemes if study.plays(scheme)]
        if not schemes:
            playing = ", ".join(scheme for scheme in settings.names if study.plays(scheme))
            raise ConfigError(f"studies holds {study.name!r}, in which none of the schemes plays; valid there: {playing}")
        for cell in study.cells:
            for scheme in schemes:
                runs: tuple[Key, ...] = tuple(
                    (study.name, cell, scheme, step, seed)
                    for seed in settings.seed_list()
                    for step in study.steps(settings, seed)
                )
                parts.append(Part(f"{study.name}-{cell}-{scheme}", runs))
    named = not set(settings.by_default) <= set(settings.schemes)
    for scheme in settings.schemes if named else ():
        if not any(study.plays(scheme) for study in studies):
            where = ", ".join(study.name for study in known.values() if study.plays(scheme))
            raise ConfigError(f"schemes holds {scheme!r}, which plays in none of the studies; valid with one of {where}")
    return parts


class Cells(Work[S]):
    """The runs, and who plays in them.

    Args:
        settings: What is run.
        asked: Names of the studies.
        studies: All there are, by name.
        measures: Columns of a row.
        identity: See `Work.identity`.
        controller: Who plays under a scheme.

    Attributes:
        controllers: By scheme.
    """

    def __init__(
        self,
        settings: S,
        asked: Sequence[str],
        studies: Mapping[str, Study],
        measures: Mapping[str, str],
        identity: Mapping[str, str],
        controller: Callable[[str], Controller],
    ):
        self.settings, self.identity = settings, identity
        self.parts = parts_of(settings, asked, studies)
        self._studies, self._nothing = studies, dict.fromkeys(measures, math.nan)
        played = dict.fromkeys(part.runs[0][2] for part in self.parts)
        self.controllers = {scheme: controller(scheme) for scheme in played}

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """A part at a time."""
        return (Chunk(part, part.runs) for part in parts)

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        study, cell, scheme, *_ = chunk.runs[0]
        seeds = list(dict.fromkeys(run[-1] for run in chunk.runs))
        found = self._studies[study].play(self.controllers[scheme], self.settings, cell, seeds, stop)
        return [dict(zip(KEYS, run, strict=True)) | self._nothing | row for run, row in zip(chunk.runs, found, strict=True)]
