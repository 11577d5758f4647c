"""Queue disciplines of links: order of waiting packets, and which packets are dropped or marked.

The queue limit is the link's (`queue_packets`, `queue_bytes`). Each discipline of the native core has a class here, generated
from its record: parameters have the names of the RFCs, defaults are the RFCs' recommendations, and a few further parameters
reproduce deviations of ns-3.44. `netbuf-gym list queue-disciplines` prints all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym import _core
from netbuf_gym.scenarios.catalogue import QUEUE_DISCIPLINES
from netbuf_gym.scenarios.parameter_records import ParameterRecord, build_class, parse_record


@dataclass(frozen=True, kw_only=True)
class Discipline(ParameterRecord):
    """Base of the queue disciplines: fields with defaults and ranges: numbers, truth values and words.

    Attributes:
        kind: Name in JSON and in the core.
        record: The core's description.
        manages_buffer: Whether it shares a buffer among flows: not so token buckets, which have rates of their own, and the
            filter of ACKs, for ways back.
    """

    manages_buffer: ClassVar[bool] = True

    @staticmethod
    def check_together(kind: str, parameters: dict[str, float]) -> None:
        """Raise ValueError, in the core's words, where parameters do not go together."""
        _core.check_discipline(kind, parameters)

    @property
    def throughput_limit_mbps(self) -> float:
        """Long-run throughput limit, Mbit/s: the token rate; infinity for disciplines without tokens."""
        rate_mbps = getattr(self, "rate_mbps", None)
        return math.inf if rate_mbps is None else float(rate_mbps)


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
    name: build_class(Discipline, record, _NAMES.get(name, name.title().replace("_", "")), __name__)
    for name, record in QUEUE_DISCIPLINES.items()
}
"""Discipline classes by name in JSON and in the core."""

for _name in ("policer", "tbf", "ack_filter"):
    DISCIPLINES[_name].manages_buffer = False

globals().update({cls.__name__: cls for cls in DISCIPLINES.values()})  # where pickle looks for them
DropTail, RED, CoDel, FqCoDel, FqPIE, FQ, CAKE, PIE, DualPI2, Policer, TBF, AckFilter = (DISCIPLINES[name] for name in _NAMES)


def parse_discipline(label: str, value: object) -> Discipline:
    """Build a discipline from a value of `Link.discipline`: a discipline, a name, or a dict of `name` and parameters.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    return parse_record(label, value, Discipline, DISCIPLINES, "a queue discipline")
