"""Capabilities of this machine for the live plant."""

from __future__ import annotations

from dataclasses import dataclass

from netbuf_gym.errors import ConfigError, PlantFault
from netbuf_gym.plants.linux.process import Process
from netbuf_gym.plants.linux.setup import available_controls


@dataclass(frozen=True)
class Machine:
    """Result of trying out the machine.

    Attributes:
        missing: why no live world can be made here, in a sentence that says what to do; empty: one can.
        realtime: whether links may have a real-time priority, so that they are seldom late on a busy machine.
        controls: the kernel's congestion controls, by its own names.
    """

    missing: str
    realtime: bool = False
    controls: tuple[str, ...] = ()


def look() -> Machine:
    """Try out the machine: create and close a world's process, its namespaces and its devices, which takes some tens of ms."""
    try:
        process = Process()
    except PlantFault as fault:
        return Machine(str(fault))
    try:
        answer = process.ask({"do": "check"})
    except (ConfigError, PlantFault) as error:
        return Machine(str(error))
    finally:
        process.close()
    return Machine("", answer["realtime"], tuple(sorted(available_controls())))
