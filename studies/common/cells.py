"""Campaigns of studies with cells in which schemes play: one part for each study, cell and scheme."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError
from studies.common.experiment import Chunk, Key, Part, S, Work, complete_rows, require_playing
from studies.common.settings import Settings

KEYS = ("study", "cell", "scheme", "step", "seed")
TEXTS = ("study", "cell", "scheme")


class Study(Protocol):
    """Runs of the same kind in several cells.

    Attributes:
        name: Name of the study.
        cells: Names of the cells, which say how worlds differ apart from the seed.
    """

    @property
    def name(self) -> str: ...
    @property
    def cells(self) -> Sequence[str]: ...

    def plays(self, scheme: str) -> bool:
        """Return whether a scheme plays in the study."""

    def steps(self, settings: Any, seed: int) -> Sequence[float]:
        """Return the values of the column `step` in the rows of a seed's run."""

    def play(
        self, controller: Controller, settings: Any, cell: str, seeds: Sequence[int], stop: threading.Event | None = None
    ) -> list[dict[str, Any]]:
        """Return the measures of each world, in the order of the seeds, one row for each step."""


def make_parts(settings: Settings, asked: Sequence[str], known: Mapping[str, Study]) -> list[Part]:
    """Return all parts of the requested studies.

    Args:
        settings: Settings of the campaign.
        asked: Names of the requested studies.
        known: All studies, by name.

    Raises:
        ConfigError: None of the schemes plays in a study, or a requested scheme plays in none of the studies.
    """
    studies = [known[name] for name in asked]
    parts: list[Part] = []
    for study in studies:
        schemes = require_playing(study.name, study.plays, settings)
        for cell in study.cells:
            for scheme in schemes:
                runs: tuple[Key, ...] = tuple(
                    (study.name, cell, scheme, step, seed)
                    for seed in settings.list_seeds()
                    for step in study.steps(settings, seed)
                )
                parts.append(Part(f"{study.name}-{cell}-{scheme}", runs))
    named = not set(settings.by_default) <= set(settings.schemes)
    for scheme in settings.schemes if named else ():
        if not any(study.plays(scheme) for study in studies):
            where = ", ".join(study.name for study in known.values() if study.plays(scheme))
            raise ConfigError(f"schemes holds {scheme!r}, which plays in none of the studies; valid with one of {where}")
    return parts


class CellWork(Work[S]):
    """Runs of a campaign with cells, and the controllers that play in them.

    Args:
        settings: Settings of the campaign.
        asked: Names of the requested studies.
        studies: All studies, by name.
        measures: Measured columns of a row.
        identity: See `Work.identity`.
        controller: Returns the controller of a scheme.

    Attributes:
        controllers: Controllers by scheme.
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
        self.parts = make_parts(settings, asked, studies)
        self._studies, self._measures = studies, measures
        played = dict.fromkeys(part.runs[0][2] for part in self.parts)
        self.controllers = {scheme: controller(scheme) for scheme in played}

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """Run a chunk; see `Work.run`."""
        study, cell, scheme, *_ = chunk.runs[0]
        seeds = list(dict.fromkeys(run[-1] for run in chunk.runs))
        found = self._studies[study].play(self.controllers[scheme], self.settings, cell, seeds, stop)
        return complete_rows(chunk, KEYS, self._measures, found)
