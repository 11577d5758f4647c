"""Sampling of a suite's worlds by family: each by the arguments that make it, spread evenly over their ranges."""

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
    """Distribution of a number over a range.

    Args:
        low, high: Ends of the range.
        evenly: Whether it is uniform; log-uniform otherwise, for a range above 0.
        whole: Whether values are rounded to whole numbers.
    """

    low: float
    high: float
    evenly: bool = False
    whole: bool = False

    def sample_at(self, u: float) -> float | int:
        """Return the value at a quantile, 0 to 1."""
        value = self.low + u * (self.high - self.low) if self.evenly else self.low * (self.high / self.low) ** u
        return round(value) if self.whole else value


@dataclass(frozen=True)
class OneOf:
    """Uniform distribution over several values."""

    values: Sequence[Any]

    def sample_at(self, u: float) -> Any:
        """Return the value at a quantile, 0 to 1."""
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Seed:
    """Distribution of a seed, for example of a trace."""

    def sample_at(self, u: float) -> int:
        """Return the seed at a quantile, 0 to 1."""
        return int(u * MAX_SEED)


@dataclass(frozen=True)
class Family:
    """Family of worlds that results are averaged over.

    Attributes:
        says: Description, a phrase.
        arguments: Arguments of the function that makes the worlds; those that are drawn as `Between`, `OneOf` or `Seed`.
    """

    says: str
    arguments: Mapping[str, Any]

    def with_overrides(self, says: str, **arguments: Any) -> Family:
        """Return a family with some arguments replaced or added."""
        return Family(says, {**self.arguments, **arguments})


@dataclass(frozen=True)
class GeneratedWorld:
    """Scenario of a world, and for each generated trace the generator's name and the mean rate, Mbit/s."""

    scenario: Scenario
    generated: Sequence[tuple[str, float]] = ()


WorldMaker = Callable[..., GeneratedWorld]
"""Function that makes a world from JSON arguments; raises ScenarioError if they do not make one."""


def draw_worlds(families: Mapping[str, Family], make: WorldMaker, count: int, stream: Sequence[int]) -> list[dict[str, Any]]:
    """Return `count` worlds of each family, as a suite's file holds them; a world that cannot be made is drawn anew.

    Args:
        stream: Seeds of the worlds' own random stream.
    """
    worlds = []
    for at, (family, one) in enumerate(families.items()):
        rng = np.random.default_rng((*stream, at))
        free = [key for key, value in one.arguments.items() if hasattr(value, "sample_at")]
        places = (np.stack([rng.permutation(count) for _ in free], axis=1) + rng.random((count, len(free)))) / count
        for k, place in enumerate(places):
            while True:
                chosen = {key: one.arguments[key].sample_at(float(u)) for key, u in zip(free, place, strict=True)}
                arguments = frozen.round_floats({**one.arguments, **chosen})
                try:
                    means = [frozen.round_floats(mean) for _, mean in make(**arguments).generated]
                    break
                except ScenarioError:
                    place = rng.random(len(free))
            made = {"name": f"{family}-{k + 1:0{len(str(count))}}", "seed": int(rng.integers(MAX_SEED))}
            worlds.append(made | {"family": family, "world": arguments} | ({"capacities_mbps": means} if means else {}))
    return worlds
