"""The runs of the campaign: a part for each study, cell and scheme."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.contenders import Contender
from netbuf_gym.errors import ConfigError
from netbuf_gym.reproduce import agents
from netbuf_gym.reproduce.experiment import Chunk, Key, Part, Work
from netbuf_gym.reproduce.sender import trace_cells, worlds
from netbuf_gym.reproduce.sender.measures import MEASURES
from netbuf_gym.reproduce.sender.schemes import LEARNED, NAMES, contender_of
from netbuf_gym.reproduce.sender.settings import TRACES, Settings
from netbuf_gym.reproduce.sender.studies import ALL

KEYS = ("study", "cell", "scheme", "step", "seed")
TEXTS = ("study", "cell", "scheme")


def parts_of(settings: Settings) -> list[Part]:
    """All parts.

    Raises:
        ConfigError: A study in which none of the schemes plays.
    """
    parts = []
    for name in settings.studies:
        study = ALL[name]
        schemes = [scheme for scheme in settings.schemes if study.plays(scheme)]
        if not schemes:
            playing = ", ".join(scheme for scheme in NAMES if study.plays(scheme))
            raise ConfigError(f"studies holds {name!r}, in which none of the schemes plays; valid there: {playing}")
        for cell in study.cells:
            for scheme in schemes:
                runs: tuple[Key, ...] = tuple(
                    (name, cell, scheme, step, seed) for seed in settings.seed_list() for step in study.steps(settings, seed)
                )
                parts.append(Part(f"{name}-{cell}-{scheme}", runs))
    return parts


class Studies(Work[Settings]):
    """The runs, and who plays in them.

    Attributes:
        contenders: By scheme.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = parts_of(settings)
        if TRACES in settings.studies:
            trace_cells.require(settings.traces)
        self.identity = {"agent_sha256": agents.sha256(settings), "traces_sha256": trace_cells.sha256(settings.traces)}
        example = worlds.ppcc(worlds.PPCC_CELLS[0], 0, 10.0).scenario
        played = dict.fromkeys(part.runs[0][2] for part in self.parts)
        self.contenders: dict[str, Contender] = {
            scheme: agents.load(settings, example) if scheme == LEARNED else contender_of(scheme) for scheme in played
        }

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """A part at a time."""
        return (Chunk(part, part.runs) for part in parts)

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        study, cell, scheme, *_ = chunk.runs[0]
        seeds = list(dict.fromkeys(run[-1] for run in chunk.runs))
        found = ALL[study].play(self.contenders[scheme], self.settings, cell, seeds, stop)
        nothing = dict.fromkeys(MEASURES, math.nan)
        return [dict(zip(KEYS, run, strict=True)) | nothing | row for run, row in zip(chunk.runs, found, strict=True)]
