"""Kinds of agents, on which plants and tasks agree: what is measured for an agent, and which controls it sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netbuf_gym.plants.telemetry import TelemetrySchema


@dataclass(frozen=True)
class Control:
    """One number that an agent of a kind sets for the next interval. NaN leaves the present value unchanged.

    Attributes:
        name: identifier, ending in its unit where it has one.
        unit: SI unit, `"1"` for ratios and counts.
        meaning: one sentence.
        low, high: the range that the plant accepts; tasks keep within it.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float


@dataclass(frozen=True)
class AgentKind:
    """Telemetry and controls that every plant with agents of this kind provides.

    Attributes:
        name: name of one agent in messages and PettingZoo: `"sender"`, `"switch"`; plants list the kinds that they carry by it.
        telemetry: the columns of `Plant.telemetry`. One of them is `elapsed_s`, the measured length of the interval.
        controls: the columns of `Plant.control`.
        event: what `Plant.advance(..., until="event")` waits for; `""`: nothing, decisions come at intervals.
        counters: what `Plant.report` gives for each agent, in words.
        parameters: what else a plant must know of the agents, by name (a switch's number of queues).
    """

    name: str
    telemetry: TelemetrySchema
    controls: tuple[Control, ...]
    event: str = ""
    counters: str = "what the task's `report` takes"
    parameters: Mapping[str, Any] = field(default_factory=dict)
