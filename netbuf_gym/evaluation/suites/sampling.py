"""Worlds of a suite drawn family by family: each by the arguments that make it, spread evenly over their ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError
from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.scenarios import Scenario

MAX_SEED = 2**53


@dataclass(frozen=True)
class Between:
    """A number from a range.

    Args:
        low, high: Its ends.
        evenly: Whether it is uniform; log-uniform otherwise, of a range above 0.
        whole: Whether it is rounded to a whole number.
    """

    low: float
    high: float
    evenly: bool = False
    whole: bool = False

    def at(self, u: float) -> float | int:
        """What lies at a share of the range, 0 to 1."""
        value = self.low + u * (self.high - self.low) if self.evenly else self.low * (self.high / self.low) ** u
        return round(value) if self.whole else value


@dataclass(frozen=True)
class OneOf:
    """One of several, each as likely."""

    values: Sequence[Any]

    def at(self, u: float) -> Any:
        """The one at a share of the list, 0 to 1."""
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Seed:
    """A seed, of a trace for instance."""

    def at(self, u: float) -> int:
        """The one of a number from 0 to 1."""
        return int(u * MAX_SEED)


@dataclass(frozen=True)
class Family:
    """Worlds that results are averaged over.

    Attributes:
        says: What they are, a phrase.
        arguments: Of the function that makes them; what is drawn as `Between`, `OneOf` or `Seed`.
    """

    says: str
    arguments: Mapping[str, Any]

    def but(self, says: str, **arguments: Any) -> Family:
        """One with other arguments."""
        return Family(says, {**self.arguments, **arguments})


@dataclass(frozen=True)
class Made:
    """A world: its scenario, and the mean rates of what was generated for it, Mbit/s, each with its generator's name."""

    scenario: Scenario
    generated: Sequence[tuple[str, float]] = ()


Make = Callable[..., Made]
"""A world from its arguments, which are JSON; raises ScenarioError where there is none."""


def drawn(families: Mapping[str, Family], make: Make, count: int, stream: Sequence[int]) -> list[dict[str, Any]]:
    """Worlds as a file of a suite holds them, `count` of each family; where one cannot be made its chances are drawn anew.

    Args:
        stream: Of their random numbers, their own.
    """
    worlds = []
    for at, (family, one) in enumerate(families.items()):
        rng = np.random.default_rng((*stream, at))
        free = [key for key, value in one.arguments.items() if hasattr(value, "at")]
        places = (np.stack([rng.permutation(count) for _ in free], axis=1) + rng.random((count, len(free)))) / count
        for k, place in enumerate(places):
            while True:
                chosen = {key: one.arguments[key].at(float(u)) for key, u in zip(free, place, strict=True)}
                arguments = frozen.rounded({**one.arguments, **chosen})
                try:
                    means = [frozen.rounded(mean) for _, mean in make(**arguments).generated]
                    break
                except ScenarioError:
                    place = rng.random(len(free))
            made = {"name": f"{family}-{k + 1:0{len(str(count))}}", "seed": int(rng.integers(MAX_SEED))}
            worlds.append(made | {"family": family, "world": arguments} | ({"capacities_mbps": means} if means else {}))
    return worlds
