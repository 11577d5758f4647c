"""A kind of agent, as plants and tasks agree on it: what is measured in its place, and what it can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netbuf_gym.plants.telemetry import TelemetrySchema


@dataclass(frozen=True)
class Control:
    """One number that an agent of a kind is told for the next interval. NaN leaves things as they are.

    Attributes:
        name: identifier, ending in its unit where it has one.
        unit: SI unit, `"1"` for ratios and counts.
        meaning: one sentence.
        low, high: what the plant takes; tasks keep to it.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float


@dataclass(frozen=True)
class AgentKind:
    """What any plant with agents of this kind measures and can be told.

    Attributes:
        name: what messages and PettingZoo call one of them: `"sender"`, `"switch"`; plants say by it which kinds they carry.
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
