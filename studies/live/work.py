"""The runs of the campaign: every cell in the simulator, without and with a host's noise, then every cell on the kernel."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from studies.common import agents
from studies.common.experiment import Chunk, Part, Work
from studies.live.measures import ACTIONS, MEASURES, measures_of, timing_of
from studies.live.schemes import LEARNED, Observed, controller_of, observed
from studies.live.settings import KEYS_OF_AGENTS, Settings
from studies.live.worlds import WORLDS, noisy

KEYS = ("task", "world", "scheme", "plant", "seed")
TEXTS = ("task", "world", "scheme", "plant")
SIMULATED, NOISY, LIVE = "sim", "noise", "linux"
PLANTS = (SIMULATED, NOISY, LIVE)
"""The simulator, the simulator with a host's noise, and the kernel."""


def parts_of(settings: Settings) -> list[Part]:
    """All parts, those of the simulator first: nothing shall run beside the kernel's."""
    parts = []
    for plant in PLANTS:
        if plant == NOISY and not settings.noise_ms:
            continue
        for task in settings.tasks:
            for world in list(WORLDS[task])[: settings.worlds]:
                for scheme in settings.playing(task):
                    runs = tuple((task, world, scheme, plant, seed) for seed in settings.seeds_of(task))
                    parts.append(Part(f"{plant}-{task}-{world}-{scheme}", runs))
    return parts


class Both(Work[Settings]):
    """The runs, and who plays in them."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = parts_of(settings)
        played = LEARNED in settings.schemes
        own = {key: task for key, task in KEYS_OF_AGENTS.items() if played and task in settings.tasks}
        self.identity = {f"{key}_sha256": agents.sha256(settings, key) for key in KEYS_OF_AGENTS}
        self._learned = {
            task: agents.load(settings, self.world(task, next(iter(WORLDS[task]))), key, LEARNED, task)
            for key, task in own.items()
        }

    def world(self, task: str, name: str) -> Any:
        """A world by its task and name."""
        return WORLDS[task][name](self.settings.duration_s)

    def controller(self, task: str, scheme: str) -> Controller:
        """Who plays under a scheme."""
        return self._learned[task] if scheme == LEARNED else controller_of(scheme, task)

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """A run at a time."""
        return (Chunk(part, (run,)) for part in parts for run in part.runs)

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        (key,) = chunk.runs
        task, world, scheme, plant, seed = key
        controller = observed(self.controller(task, scheme))
        found: dict[str, float] = {}

        def keep(view: rollout.View) -> None:
            found.update(measures_of(view.whole_report()) | timing_of(view.simulated))

        scenario = self.world(task, world)
        if plant == NOISY:
            scenario = noisy(scenario, self.settings.noise_ms)
        own = {"plant": LIVE} if plant == LIVE else {}
        rollout.play(controller, [rollout.World(scenario, seed, seed)], keep, task=task, stop=stop, **own)
        if isinstance(controller, Observed):
            found |= dict(zip(ACTIONS, controller.shares.tolist(), strict=True))
        return [dict(zip(KEYS, key, strict=True)) | dict.fromkeys(MEASURES, math.nan) | found]
