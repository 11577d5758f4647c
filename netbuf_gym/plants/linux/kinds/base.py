"""Base class of the kinds of agents in a live world: sets, observes and reports for all agents of the world."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbuf_gym.plants.linux.world import LiveWorld

EVENT_LOOK_NS = 500_000
"""Time between two looks for the event that agents wait for."""


class Kind:
    """The agents' part of a world that has its nodes and its emulator, but no connections yet.

    A kind may change the socket settings of flows: `world.setup["flows"]`, dicts of `_core.LiveSocket`'s fields.

    Args:
        world: `world.setup["places"]` are what the agents control, by number; `world.setup["parameters"]` those of the kind.

    Raises:
        OSError, ValueError, RuntimeError: the machine does not have what the kind needs; the message says what.
    """

    def __init__(self, world: LiveWorld):
        self.world = world
        self.places: list[int] = world.setup["places"]

    def about(self) -> dict[str, Any]:
        """Return facts on the kind once it is made, for `info`."""
        return {}

    look_s = math.inf
    """Time between two calls of `look` in an interval."""

    def look(self) -> None:
        """Look at what changes within an interval."""

    def begin(self) -> None:
        """Begin an interval; the first when the emulator and the flows have just been started."""

    def delays_ns(self) -> list[int]:
        """Return how long each agent's new decision takes to be in force, at most until the interval ends; empty: no time."""
        return []

    def apply(self, control: list[list[float]]) -> None:
        """Set the agents' decisions, a row each; NaN: unchanged. Where decisions take time, those that are due."""
        raise NotImplementedError

    def observe(self) -> list[list[float]]:
        """Return the telemetry since `begin`, a row for each agent; `elapsed_s` is filled in by the plant."""
        raise NotImplementedError

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Callable[[int], None]) -> None:
        """Sleep until the event that the agents wait for: at most until `end_ns`, or `most` intervals, as the kind has it.

        Args:
            sleep: (time of the world in ns) sleeps until then.

        Raises:
            RuntimeError: the agents wait for no event.
        """
        raise RuntimeError("agents of this kind wait for no event on plant 'linux'")

    def sleep_until(self, occurred: Callable[[], bool], end_ns: int, sleep: Callable[[int], None]) -> None:
        """Sleep, for `wait`, until something has occurred, looked for every `EVENT_LOOK_NS`, at most until `end_ns`."""
        while (now_ns := self.world.emulator.now_ns) < end_ns and not occurred():
            sleep(min(end_ns, now_ns + EVENT_LOOK_NS))

    def report(self) -> list[dict[str, Any]]:
        """Return additions to each agent's counters."""
        return [{} for _ in self.places]

    def close(self) -> None:
        """End the agents' part, before the world's connections end. Also called for a world that was only partly made."""
