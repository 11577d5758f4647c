"""Settings of the campaign: tasks, schemes, worlds; checked when constructed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.errors import ConfigError
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.zoo import library
from studies.common.settings import Range
from studies.common.settings import Settings as Common
from studies.live.live_schemes import LEARNED, NAMES, SCHEMES, count_runs, count_simulated_runs
from studies.live.live_worlds import RECEIVER, SENDER, SWITCH, WORLDS

KEYS_OF_AGENTS = {"sender": SENDER, "receiver": RECEIVER, "switch": SWITCH}
"""Task of each key that names an agent's file."""

LIVE_S, AT_ONCE = 5400.0, 2
"""Longest permitted real time of a campaign's runs on the kernel, and the assumed number of simultaneous ones."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        tasks: Names of tasks, of `WORLDS`.
        schemes: Names of schemes, of `schemes.NAMES`.
        worlds: Number of worlds of each task; None: all.
        duration_s: Duration of every run.
        noise_ms: Delay of packets at each host in the simulator's noisy runs, mean of an exponential
            distribution; 0: there are no such runs.
        repeats: Number of runs of each cell on each plant, times `count_runs` and `count_simulated_runs` of `live_schemes`.
        sender, receiver, switch: Files of the trained agents.
    """

    experiment: ClassVar[str] = "live"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = SENDER
    shipped: ClassVar[str] = library.SENDER
    agents: ClassVar[Mapping[str, tuple[tuple[str, ...], str]]] = {
        "sender": ((LEARNED,), library.SENDER),
        "receiver": ((LEARNED,), f"{RECEIVER}/ppo_lstm"),
        "switch": ((LEARNED,), f"{SWITCH}/ppo"),
    }
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = tuple(name for name in NAMES if name != LEARNED)
    valid: ClassVar = {
        "tasks": WORLDS,
        "schemes": NAMES,
        "worlds": Range(1, max(map(len, WORLDS.values()))),
        "duration_s": Range(1, 3600),
        "noise_ms": Range(0, 100),
        "repeats": Range(1, 100),
    }

    tasks: tuple[str, ...] = (SENDER,)
    schemes: tuple[str, ...] = by_default
    worlds: int | None = None
    duration_s: float = 30.0
    noise_ms: float = 0.05
    repeats: int = 1
    first_seed: int = FIRST_EVALUATION_SEED
    sender: str = ""
    receiver: str = ""
    switch: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        live_s = (
            sum(
                len(self.list_cell_seeds(task, world, scheme)) * self.duration_s
                for task in self.tasks
                for world in list(WORLDS[task])[: self.worlds]
                for scheme in self.list_schemes(task)
            )
            / AT_ONCE
        )
        if live_s > LIVE_S:
            raise ConfigError(
                f"the kernel's runs take {live_s / 60:.0f} minutes of real time, {AT_ONCE} at once; valid: {LIVE_S / 60:.0f} or"
                " less, by fewer tasks=, worlds= or schemes=, or a shorter duration_s="
            )

    def list_schemes(self, task: str) -> list[str]:
        """Return the schemes that play a task."""
        return [scheme for scheme in SCHEMES[task] if scheme in self.schemes]

    def list_cell_seeds(self, task: str, world: str, scheme: str, simulated: bool = False) -> list[int]:
        """Return the seeds of a cell's runs on the kernel, or in the simulator."""
        runs = count_simulated_runs(task, world, scheme) if simulated else count_runs(task, world)
        return list(range(self.first_seed, self.first_seed + runs * self.repeats))
