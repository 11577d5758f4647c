"""Runs of the campaign: its grid, divided into chunks for threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from studies.common import agents
from studies.common.experiment import Chunk, Key, Part, Work
from studies.rlbm.controllers import make_controller, play
from studies.rlbm.rlbm_measures import measure_run
from studies.rlbm.rlbm_settings import CONTROLLED, SWEPT_SIZES, Settings

KEYS = ("scheme", "cc", "size", "load", "interval_s", "seed")
LOAD, INTERVAL = KEYS.index("load"), KEYS.index("interval_s")


def make_parts(settings: Settings) -> list[Part]:
    """Return all parts: a scheme, congestion control and size at all loads under all seeds; the interval sweep's parts last."""
    parts = []
    for scheme in settings.schemes:
        interval_s = settings.interval_s if scheme in CONTROLLED else None
        parts += [_make_part(settings, scheme, cc, size, interval_s) for cc in settings.ccs for size in settings.sizes]
    for scheme in settings.schemes:
        if scheme in CONTROLLED:
            cc = "cubic" if "cubic" in settings.ccs else settings.ccs[0]
            sizes = [size for size in settings.sizes if size in SWEPT_SIZES] or settings.sizes[:1]
            parts += [_make_part(settings, scheme, cc, size, value) for value in settings.intervals for size in sizes]
    return list(dict.fromkeys(parts))


def _make_part(settings: Settings, scheme: str, cc: str, size: int, interval_s: float | None) -> Part:
    """Build a part; `interval_s` is None for schemes that make no decisions."""
    interval = "" if interval_s is None else f"-{interval_s:g}s"
    runs: tuple[Key, ...] = tuple(
        (scheme, cc, size, load, interval_s, seed) for load in settings.loads for seed in settings.list_seeds()
    )
    return Part(f"{scheme}-{cc}-{size}{interval}", runs)


class CampaignGrid(Work[Settings]):
    """Runs of the campaign and their controllers.

    Attributes:
        controllers: Controllers by scheme.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = make_parts(settings)
        self.controllers = {scheme: make_controller(scheme, settings) for scheme in settings.schemes}
        self.identity = {"agent_sha256": agents.compute_agent_digest(settings)}

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """Yield parts with decisions whole, as joint stepping is cheaper, and the others load by load, the highest first."""
        controlled = [part for part in parts if part.runs[0][INTERVAL] is not None]
        for part in controlled:
            yield Chunk(part, part.runs)
        for part in parts:
            if part.runs[0][INTERVAL] is None:
                for load in sorted(self.settings.loads, reverse=True):
                    yield Chunk(part, tuple(run for run in part.runs if run[LOAD] == load))

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        scheme, cc, size, _, interval_s, _ = chunk.runs[0]
        worlds = {run[LOAD]: self.settings.scenario(cc, size, run[LOAD]) for run in chunk.runs}
        rows: list[dict[str, Any]] = []

        def keep(view: View, occupancy: np.ndarray | None) -> None:
            rows.append(dict(zip(KEYS, chunk.runs[view.index], strict=True)) | measure_run(view, occupancy))

        interval_s = self.settings.interval_s if interval_s is None else interval_s
        play(self.controllers[scheme], [(worlds[run[LOAD]], run[-1]) for run in chunk.runs], keep, interval_s, stop)
        return rows
