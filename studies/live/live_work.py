"""Runs of the campaign: every cell in the simulator, without and with host noise, then every cell on the kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.linux.plant import LATE_INTERVALS
from studies.common import agents
from studies.common.experiment import Chunk, Part, Work, complete_rows
from studies.live.live_measures import ACTIONS, MEASURES, average_reports, read_timing
from studies.live.live_schemes import LEARNED, CountedController, count_actions, get_controller
from studies.live.live_settings import KEYS_OF_AGENTS, Settings
from studies.live.live_worlds import WORLDS, add_noise, to_live

KEYS = ("task", "world", "scheme", "plant", "seed")
TEXTS = ("task", "world", "scheme", "plant")
SIMULATED, NOISY, LIVE = "sim", "noise", "linux"
PLANTS = (SIMULATED, NOISY, LIVE)
"""Plants: the simulator, the simulator with host noise, and the kernel."""


ATTEMPTS = 3
"""Times that a run on the kernel is played, all but the first alone, until its controller decides in time."""


class Turns:
    """Turns of threads that run beside each other, or alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running, self._waiting = 0, 0

    @contextmanager
    def take(self, alone: bool) -> Iterator[None]:
        """Wait for a turn; while somebody waits to be alone nobody else begins."""
        with self._changed:
            self._waiting += alone
            self._changed.wait_for(lambda: self._running == 0 if alone else self._waiting == 0)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._waiting -= alone
                self._changed.notify_all()


TURNS = Turns()
"""Turns of all runs of this process."""


def make_parts(settings: Settings) -> list[Part]:
    """Return all parts, those of the simulator first: nothing may run beside the kernel's."""
    parts = []
    for plant in PLANTS:
        if plant == NOISY and not settings.noise_ms:
            continue
        for task in settings.tasks:
            for world in list(WORLDS[task])[: settings.worlds]:
                for scheme in settings.list_schemes(task):
                    seeds = settings.list_cell_seeds(task, world, scheme, simulated=plant != LIVE)
                    runs = tuple((task, world, scheme, plant, seed) for seed in seeds)
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
        """Run a chunk; see `Work.run`. On the kernel again, alone, while its controller decides too late."""
        (key,) = chunk.runs
        for attempt in range(ATTEMPTS):
            with TURNS.take(alone=attempt > 0):
                found = self._play(key, stop)
            if not found.get("interval_p50_s", 0.0) > LATE_INTERVALS * tasks.get(key[0]).rules.default_interval_s:
                break
        return complete_rows(chunk, KEYS, MEASURES, [found])

    def _play(self, key: tuple[Any, ...], stop: threading.Event) -> dict[str, float]:
        """Return the measures of a run."""
        task, world, scheme, plant, seed = key
        controller = count_actions(self.controller(task, scheme))
        found: dict[str, float] = {}

        def keep(view: rollout.View) -> None:
            found.update(average_reports(view.whole_report()) | read_timing(view.simulated))

        scenario = self.world(task, world)
        if plant == NOISY:
            scenario = add_noise(scenario, self.settings.noise_ms)
        own: dict[str, Any] = {"plant": LIVE} if plant == LIVE else {}
        if plant == LIVE:
            scenario = to_live(scenario)
        rollout.play(controller, [rollout.World(scenario, seed, seed)], keep, task=task, stop=stop, **own)
        if isinstance(controller, CountedController):
            found |= dict(zip(ACTIONS, controller.shares.tolist(), strict=True))
        return found
