"""Queue disciplines: what a link keeps its waiting packets in, and which of them it drops.

The limit is the link's (`queue_packets`, `queue_bytes`). Each discipline of the native core has a class here, made from its
record: the parameters carry the RFCs' names, the defaults are their recommendations, and the few beyond them repeat what
ns-3.44 does otherwise. `netbuf-gym list queue-disciplines` prints them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import ClassVar

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.catalogue import KINDS, QUEUE_DISCIPLINES, Record, named
from netbuf_gym.utils.checks import choice
from netbuf_gym.utils.suggestions import instead


@dataclass(frozen=True, kw_only=True)
class Discipline:
    """What the disciplines have in common: fields that are numbers or truth values, with defaults and ranges.

    Attributes:
        kind: Its name in JSON and in the core.
        record: What the core says of it.
    """

    kind: ClassVar[str] = ""
    record: ClassVar[Record]

    def __post_init__(self) -> None:
        for parameter in self.record.parameters:
            value = getattr(self, parameter.name)
            if value is not None or parameter.default is not None:
                value = parameter.checked(f"{self.kind}.{parameter.name}", value)
            object.__setattr__(self, parameter.name, value)
        try:
            _core.check_discipline(self.kind, self.parameters())
        except ValueError as error:
            raise ScenarioError(f"{self.kind}.{error}") from None

    @property
    def passes_mbps(self) -> float:
        """What it lets through in the long run, Mbit/s: the rate of its tokens; infinity where it has none."""
        return float(getattr(self, "rate_mbps", math.inf))

    def parameters(self) -> dict[str, float]:
        """The core's parameters; those that are None are left to it."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: float(value) for name, value in values.items() if value is not None}


def _class_of(record: Record, name: str) -> type[Discipline]:
    """A frozen dataclass with the record's parameters for its fields, all by keyword."""
    entries, lines = [], []
    for parameter in record.parameters:
        kind = KINDS[parameter.kind].type.__name__ + (" | None" if parameter.default is None else "")
        entries.append((parameter.name, kind, field(default=parameter.default)))
        meaning = parameter.meaning.replace("auto:", "None:")
        lines.append(f"    {parameter.name}: {meaning}; {parameter.range}.")
    text = f"{record.meaning[0].upper()}{record.meaning[1:]}.\n"
    if lines:
        text += "\nArgs:\n" + "\n".join(lines) + "\n"
    about = {"kind": record.name, "record": record, "__doc__": text, "__module__": __name__}
    return make_dataclass(name, entries, bases=(Discipline,), namespace=about, frozen=True, kw_only=True)


_NAMES = {
    "droptail": "DropTail",
    "red": "RED",
    "codel": "CoDel",
    "fq_codel": "FqCoDel",
    "pie": "PIE",
    "dualpi2": "DualPI2",
    "policer": "Policer",
    "tbf": "TBF",
}
"""What classes are called where the RFC writes the name otherwise than CamelCase would."""

DISCIPLINES: dict[str, type[Discipline]] = {
    name: _class_of(record, _NAMES.get(name, name.title().replace("_", ""))) for name, record in QUEUE_DISCIPLINES.items()
}
"""Every discipline by its name in JSON and in the core."""

globals().update({cls.__name__: cls for cls in DISCIPLINES.values()})  # where pickle looks for them
DropTail, RED, CoDel, FqCoDel, PIE, DualPI2, Policer, TBF = (DISCIPLINES[name] for name in _NAMES)


def discipline_of(label: str, value: object) -> Discipline:
    """What `Link.discipline` may be: a discipline, a name, or a dict of `name` and parameters.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, Discipline):
        return value
    if isinstance(value, Mapping) and "kind" in value and "name" not in value:  # as in JSON
        value = {"name" if key == "kind" else key: item for key, item in value.items()}
    name, given = named(label, value, "a queue discipline")
    cls = DISCIPLINES[choice(label, name, DISCIPLINES)]
    known = [entry.name for entry in fields(cls)]
    for key in given:
        if key not in known:
            raise ScenarioError(f"{label}: {name} has no parameter {key!r}; {instead(key, known)}")
    try:
        return cls(**given)
    except ScenarioError as error:
        raise type(error)(f"{label}: {error}") from None
