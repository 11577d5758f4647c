"""What a kind of agent is to a live world: it sets, sees and reports for all agents of the world."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbuf_gym.plants.linux.world import LiveWorld


class Kind:
    """Of a world that has its nodes and its emulator, but no connections yet.

    A kind may change what sockets the flows are given: `world.setup["flows"]`, dicts of `_core.LiveSocket`'s fields.

    Args:
        world: `world.setup["places"]` are what the agents control, by number; `world.setup["parameters"]` those of the kind.

    Raises:
        OSError, ValueError, RuntimeError: the machine does not have what it takes; the message says what.
    """

    def __init__(self, world: LiveWorld):
        self.world = world
        self.places: list[int] = world.setup["places"]

    def about(self) -> dict[str, Any]:
        """What is told of it once it is made, for `info`."""
        return {}

    look_s = math.inf
    """How often `look` is called in an interval."""

    def look(self) -> None:
        """Looks at what changes within an interval."""

    def begin(self) -> None:
        """An interval begins; the first when the emulator and the flows have just been started."""

    def delays_ns(self) -> list[int]:
        """How long what each agent has decided now takes to be in force, at most until the interval ends; empty: no time."""
        return []

    def apply(self, control: list[list[float]]) -> None:
        """Sets what the agents decided, a row each; NaN: leave it. Where decisions take time, what is due of them."""
        raise NotImplementedError

    def observe(self) -> list[list[float]]:
        """The telemetry since `begin`, a row for each agent; `elapsed_s` is filled in by the plant."""
        raise NotImplementedError

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Callable[[int], None]) -> None:
        """Sleeps until what the agents wait for: at most until `end_ns`, or `most` intervals, as the kind has it.

        Args:
            sleep: (time of the world in ns), until then.

        Raises:
            RuntimeError: they wait for nothing.
        """
        raise RuntimeError("agents of this kind wait for no event on plant 'linux'")

    def report(self) -> list[dict[str, Any]]:
        """What is added to each agent's counters."""
        return [{} for _ in self.places]

    def close(self) -> None:
        """The world ends, before its connections do. Also of a world that was not made to the end."""
