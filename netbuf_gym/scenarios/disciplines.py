"""Queue disciplines of links: order of waiting packets, and which packets are dropped or marked.

The queue limit is the link's (`queue_packets`, `queue_bytes`). Each discipline of the native core has a class here, generated
from its record: parameters have the names of the RFCs, defaults are the RFCs' recommendations, and a few further parameters
reproduce deviations of ns-3.44. `netbuf-gym list queue-disciplines` prints all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import ClassVar

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.catalogue import KINDS, QUEUE_DISCIPLINES, CatalogueEntry, split_name_and_parameters
from netbuf_gym.utils.checks import choice
from netbuf_gym.utils.suggestions import suggest_valid


@dataclass(frozen=True, kw_only=True)
class Discipline:
    """Base of the queue disciplines: fields with defaults and ranges: numbers, truth values and words.

    Attributes:
        kind: Name in JSON and in the core.
        record: The core's description.
        manages_buffer: Whether it shares a buffer among flows: not so token buckets, which have rates of their own, and the
            filter of ACKs, for ways back.
    """

    kind: ClassVar[str] = ""
    record: ClassVar[CatalogueEntry]
    manages_buffer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for parameter in self.record.parameters:
            value = getattr(self, parameter.name)
            if value is not None or parameter.default is not None:
                value = parameter.check(f"{self.kind}.{parameter.name}", value)
            object.__setattr__(self, parameter.name, value)
        try:
            _core.check_discipline(self.kind, self.parameters())
        except ValueError as error:
            raise ScenarioError(f"{self.kind}.{error}") from None

    @property
    def throughput_limit_mbps(self) -> float:
        """Long-run throughput limit, Mbit/s: the token rate; infinity for disciplines without tokens."""
        rate_mbps = getattr(self, "rate_mbps", None)
        return math.inf if rate_mbps is None else float(rate_mbps)

    def parameters(self) -> dict[str, float]:
        """Return the core's parameters, without those that are None (the core chooses their values)."""
        values = {parameter: getattr(self, parameter.name) for parameter in self.record.parameters}
        return {parameter.name: parameter.encode(value) for parameter, value in values.items() if value is not None}


def _build_class(record: CatalogueEntry, name: str) -> type[Discipline]:
    """Build a frozen dataclass whose keyword-only fields are the record's parameters."""
    entries, lines = [], []
    for parameter in record.parameters:
        kind = KINDS[parameter.kind].type.__name__ + (" | None" if parameter.default is None else "")
        entries.append((parameter.name, kind, field(default=parameter.default)))
        meaning = parameter.meaning.replace("auto:", "None:")
        lines.append(f"    {parameter.name}: {meaning}; {parameter.range}.")
    text = f"{record.meaning[0].upper()}{record.meaning[1:]}.\n"
    if lines:
        text += "\nArgs:\n" + "\n".join(lines) + "\n"
    manages_buffer = record.name not in ("policer", "tbf", "ack_filter")
    about = {"kind": record.name, "record": record, "manages_buffer": manages_buffer, "__doc__": text, "__module__": __name__}
    return make_dataclass(name, entries, bases=(Discipline,), namespace=about, frozen=True, kw_only=True)


_NAMES = {
    "droptail": "DropTail",
    "red": "RED",
    "codel": "CoDel",
    "fq_codel": "FqCoDel",
    "fq_pie": "FqPIE",
    "fq": "FQ",
    "cake": "CAKE",
    "pie": "PIE",
    "dualpi2": "DualPI2",
    "policer": "Policer",
    "tbf": "TBF",
    "ack_filter": "AckFilter",
}
"""Class names of the disciplines, spelled as in their RFCs."""

DISCIPLINES: dict[str, type[Discipline]] = {
    name: _build_class(record, _NAMES.get(name, name.title().replace("_", ""))) for name, record in QUEUE_DISCIPLINES.items()
}
"""Discipline classes by name in JSON and in the core."""

globals().update({cls.__name__: cls for cls in DISCIPLINES.values()})  # where pickle looks for them
DropTail, RED, CoDel, FqCoDel, FqPIE, FQ, CAKE, PIE, DualPI2, Policer, TBF, AckFilter = (DISCIPLINES[name] for name in _NAMES)


def parse_discipline(label: str, value: object) -> Discipline:
    """Build a discipline from a value of `Link.discipline`: a discipline, a name, or a dict of `name` and parameters.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, Discipline):
        return value
    if isinstance(value, Mapping) and "kind" in value and "name" not in value:  # as in JSON
        value = {"name" if key == "kind" else key: item for key, item in value.items()}
    name, given = split_name_and_parameters(label, value, "a queue discipline")
    cls = DISCIPLINES[choice(label, name, DISCIPLINES)]
    known = [entry.name for entry in fields(cls)]
    for key in given:
        if key not in known:
            raise ScenarioError(f"{label}: {name} has no parameter {key!r}; {suggest_valid(key, known)}")
    try:
        return cls(**given)
    except ScenarioError as error:
        raise type(error)(f"{label}: {error}") from None
