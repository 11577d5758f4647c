"""What the campaign runs: studies, tasks, schemes; from the command line, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.errors import ConfigError
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils.arguments import choice, real, whole
from netbuf_gym.zoo import library
from studies.common.settings import Settings as Common
from studies.common.settings import unique
from studies.live.schemes import LEARNED, NAMES, SCHEMES
from studies.live.worlds import RECEIVER, SENDER, SWITCH, WORLDS

KEYS_OF_AGENTS = {"sender": SENDER, "receiver": RECEIVER, "switch": SWITCH}
"""The task of each key that names an agent's file."""

LIVE_S, AT_ONCE = 5400.0, 2
"""What the kernel's runs of a campaign may take, and how many of them at least are made at a time."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """A campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        tasks: Of `WORLDS`.
        schemes: Of `schemes.NAMES`.
        worlds: How many of each task's; None: all.
        duration_s: Of every run.
        noise_ms: By how much packets are late at each host in the simulator's noisy runs, mean of an exponential
            distribution; 0: there are no such runs.
        repeats: Runs of each cell of a task's on each plant; of queue thresholds five times as many.
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
        put = object.__setattr__
        put(self, "tasks", unique("tasks", [choice("tasks", name, WORLDS) for name in self.tasks]))
        put(self, "schemes", unique("schemes", [choice("schemes", name, NAMES) for name in self.schemes]))
        if self.worlds is not None:
            put(self, "worlds", whole("worlds", self.worlds, 1, max(map(len, WORLDS.values()))))
        put(self, "duration_s", real("duration_s", self.duration_s, 1, 3600))
        put(self, "noise_ms", real("noise_ms", self.noise_ms, 0, 100))
        put(self, "repeats", whole("repeats", self.repeats, 1, 100))
        put(self, "first_seed", whole("first_seed", self.first_seed, 0, 2**62))
        self.require_agent()
        live_s = (
            sum(
                len(list(WORLDS[task])[: self.worlds]) * len(self.playing(task)) * len(self.seeds_of(task)) * self.duration_s
                for task in self.tasks
            )
            / AT_ONCE
        )
        if live_s > LIVE_S:
            raise ConfigError(
                f"the kernel's runs take {live_s / 60:.0f} minutes of real time, {AT_ONCE} at once; valid: {LIVE_S / 60:.0f} or"
                " less, by fewer tasks=, worlds= or schemes=, or a shorter duration_s="
            )

    def playing(self, task: str) -> list[str]:
        """The schemes that play a task."""
        return [scheme for scheme in SCHEMES[task] if scheme in self.schemes]

    def seeds_of(self, task: str) -> list[int]:
        """Of every cell of a task: what one flow does is decided by the path, what many do by when they come."""
        many = 5 if task == SWITCH else 1
        return list(range(self.first_seed, self.first_seed + many * self.repeats))
