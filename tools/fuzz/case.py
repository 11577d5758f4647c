"""One case of fuzzing: drawn from its seed, kind and number alone, so that it can be run again by itself."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REFUSED, ACCEPTED = "refused", "accepted"
WEIRD = (
    None, True, False, 0, 1, -1, 0.5, 1e-300, 1e-12, 1e308, math.nan, math.inf, -math.inf, 2**31, 2**53, 2**63, 2**64, 2**80,
    10**400, -(2**63), "", " ", "x", "1", "nan", "agent", "\0", "é", "a" * 5000, [], {}, [1], [[]], {"a": 1}, [None],
    {"name": "x"}, {"kind": 1},
)  # fmt: skip
"""JSON-able values that somebody might bring in the place of another one."""


class Finding(Exception):
    """Something that should not be: said in a line or more."""


@dataclass
class Case:
    """A case.

    Attributes:
        seed, kind, number: what it is drawn from.
        folder: empty, its own, and the working directory while it runs.
        tell: hands over what it was made of, before anything is tried with it.
    """

    seed: int
    kind: str
    number: int
    folder: Path
    tell: Callable[[Any], None]

    def __post_init__(self):
        self.rng = np.random.default_rng([self.seed, zlib.crc32(self.kind.encode()), self.number])

    def chance(self, probability: float) -> bool:
        """True in so many of the cases."""
        return bool(self.rng.random() < probability)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of several, as it is."""
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        return int(self.rng.integers(low, high, endpoint=True))

    def log(self, low: float, high: float) -> float:
        """A number in [low, high], log-uniformly, with few digits half of the time."""
        value = float(np.exp(self.rng.uniform(math.log(low), math.log(high))))
        return min(max(float(f"{value:.2g}"), low), high) if self.chance(0.5) else value

    def weird(self) -> Any:
        """One of `WEIRD`."""
        return self.pick(WEIRD)

    def some(self, options: Sequence[Any], most: int) -> list[Any]:
        """Up to `most` of several, each at most once."""
        count = min(self.whole(0, most), len(options))
        return [options[i] for i in self.rng.permutation(len(options))[:count]]


def spoil(case: Case, data: Any) -> Any:
    """`data`, dicts and lists of JSON, with one place changed: another value, an entry too few, too many or twice."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(data)
    if not places:
        return data
    node, key = case.pick(places)
    value, how = node[key], case.rng.random()
    if how < 0.55:
        node[key] = case.weird()
    elif how < 0.75 and isinstance(value, (int, float)) and not isinstance(value, bool):
        whole = int(value) if math.isfinite(value) else 0
        node[key] = case.pick((-value, value * 10.0 ** case.whole(-12, 12), value + 0.5, whole))
    elif how < 0.85:
        del node[key]
    elif isinstance(node, dict):
        node[case.pick(("x", "name", "kind", "", key + "s"))] = case.weird()
    else:
        node.append(value)
    return data


def shorten_text(text: object, limit: int = 4000) -> str:
    """Return a value as text, cut where it is long."""
    found = text if isinstance(text, str) else repr(text)
    return found if len(found) <= limit else f"{found[:limit]}... ({len(found)} characters)"
