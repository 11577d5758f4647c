"""Runs of the campaign: every cell in the simulator, without and with host noise, then every cell on the kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from studies.common import agents
from studies.common.experiment import Chunk, Part, Work, complete_rows
from studies.live.live_measures import ACTIONS, MEASURES, average_reports, read_timing
from studies.live.live_schemes import LEARNED, CountedController, count_actions, get_controller
from studies.live.live_settings import KEYS_OF_AGENTS, Settings
from studies.live.live_worlds import WORLDS, add_noise

KEYS = ("task", "world", "scheme", "plant", "seed")
TEXTS = ("task", "world", "scheme", "plant")
SIMULATED, NOISY, LIVE = "sim", "noise", "linux"
PLANTS = (SIMULATED, NOISY, LIVE)
"""Plants: the simulator, the simulator with host noise, and the kernel."""


def make_parts(settings: Settings) -> list[Part]:
    """Return all parts, those of the simulator first: nothing may run beside the kernel's."""
    parts = []
    for plant in PLANTS:
        if plant == NOISY and not settings.noise_ms:
            continue
        for task in settings.tasks:
            for world in list(WORLDS[task])[: settings.worlds]:
                for scheme in settings.list_schemes(task):
                    runs = tuple((task, world, scheme, plant, seed) for seed in settings.list_task_seeds(task))
                    parts.append(Part(f"{plant}-{task}-{world}-{scheme}", runs))
    return parts


class LiveWork(Work[Settings]):
    """Runs of the campaign, and the controllers that play in them."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = make_parts(settings)
        played = LEARNED in settings.schemes
        own = {key: task for key, task in KEYS_OF_AGENTS.items() if played and task in settings.tasks}
        self.identity = {f"{key}_sha256": agents.compute_agent_digest(settings, key) for key in KEYS_OF_AGENTS}
        self._learned = {
            task: agents.load_agent(settings, self.world(task, next(iter(WORLDS[task]))), key, LEARNED, task)
            for key, task in own.items()
        }

    def world(self, task: str, name: str) -> Any:
        """Return a world by its task and name."""
        return WORLDS[task][name](self.settings.duration_s)

    def controller(self, task: str, scheme: str) -> Controller:
        """Return the controller of a scheme."""
        return self._learned[task] if scheme == LEARNED else get_controller(scheme, task)

    def chunks(self, parts: Sequence[Part]) -> Iterator[Chunk]:
        """Yield one chunk for each run."""
        return (Chunk(part, (run,)) for part in parts for run in part.runs)

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """Run a chunk; see `Work.run`."""
        (key,) = chunk.runs
        task, world, scheme, plant, seed = key
        controller = count_actions(self.controller(task, scheme))
        found: dict[str, float] = {}

        def keep(view: rollout.View) -> None:
            found.update(average_reports(view.whole_report()) | read_timing(view.simulated))

        scenario = self.world(task, world)
        if plant == NOISY:
            scenario = add_noise(scenario, self.settings.noise_ms)
        own: dict[str, Any] = {"plant": LIVE} if plant == LIVE else {}
        rollout.play(controller, [rollout.World(scenario, seed, seed)], keep, task=task, stop=stop, **own)
        if isinstance(controller, CountedController):
            found |= dict(zip(ACTIONS, controller.shares.tolist(), strict=True))
        return complete_rows(chunk, KEYS, MEASURES, [found])
