"""Distributions of positive quantities: gaps and periods in seconds, sizes in bytes. Drawn by the core (`cpp/src/law.cc`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.fields import Rule, check_fields, number, rule
from netbuf_gym.scenarios.limits import MAX_DURATION_S
from netbuf_gym.utils import checks

MAX_VALUE = 1e15
MAX_DRAWS = 10_000_000
LEAST_SHARE = 1e-6
"""Least share of a law that bounds may leave."""
_SCALE = number(1e-12, MAX_VALUE, core="scale")
_SHAPE = number(0.01, 100, core="shape")
_LOW = number(0, MAX_VALUE)
_HIGH = number(0, MAX_VALUE, low_open=True)


class Law(ABC):
    """Base of distributions of positive quantities, in the unit of the field that has them."""

    kind: ClassVar[str]

    @abstractmethod
    def to_core(self, low: float = 0.0, high: float = math.inf) -> _core.LawConfig:
        """Return the core's description of the law within [low, high], as if draws outside were repeated.

        Raises:
            ScenarioError: Bounds that leave less than a millionth of the law.
        """

    def compute_mean(self, limit: float = math.inf) -> float:
        """Return the mean of the lesser of a draw and `limit`; infinite where it does not exist."""
        return self.to_core().mean(limit)

    def compute_share(self, low: float, high: float) -> float:
        """Return the share of draws in [low, high]."""
        config = self.to_core()
        return config.tail(low) - config.tail(math.nextafter(high, math.inf))

    def draw(self, n: int, seed: int = 0) -> np.ndarray:
        """Return draws, of the generator that the core uses.

        Args:
            n: Number of draws, 0 to 10 million.
            seed: Seed of the generator, 0 to 2**64 - 1.

        Returns:
            The draws. Shape (n,).

        Raises:
            ScenarioError: A number or a seed out of range.
        """
        n = checks.integer("n", n, 0, MAX_DRAWS)
        return np.array(self.to_core().sample(checks.integer("seed", seed, 0, 2**64 - 1), n))


@dataclass(frozen=True, kw_only=True)
class Constant(Law):
    """Law of a single value, 0 to 1e15."""

    value: float = field(metadata=_LOW)
    kind: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        check_fields(self, "constant.")

    def to_core(self, low: float = 0.0, high: float = math.inf) -> _core.LawConfig:
        if not low <= self.value <= high:
            raise make_bounds_error(self.kind, low, high)
        return make_config(self.kind, scale=self.value)


@dataclass(frozen=True, kw_only=True)
class _BoundedLaw(Law):
    """Law with bounds: draws outside are as if they were repeated."""

    low: float = field(default=0.0, metadata=_LOW)
    high: float | None = field(default=None, metadata=_HIGH)

    def __post_init__(self) -> None:
        check_fields(self, f"{self.kind}.")
        if self.high is not None and self.high <= self.low:
            raise ScenarioError(f"{self.kind}.high = {self.high:g} is not above low = {self.low:g}")
        self.to_core()

    @abstractmethod
    def _list_parameters(self) -> dict[str, float]:
        """Return the core's `scale` and `shape`."""

    def to_core(self, low: float = 0.0, high: float = math.inf) -> _core.LawConfig:
        low, high = max(self.low, low), min(math.inf if self.high is None else self.high, high)
        config = make_config(self.kind, **self._list_parameters(), low=low, high=high)
        try:
            config.check(self.kind)
        except ValueError:
            raise make_bounds_error(self.kind, low, high) from None
        return config


@dataclass(frozen=True, kw_only=True)
class Exponential(_BoundedLaw):
    """Exponential law.

    Args:
        mean: Mean without bounds, 1e-12 to 1e15.
        low, high: Bounds, 0 to 1e15; None: none.
    """

    mean: float = field(metadata=_SCALE)
    kind: ClassVar[str] = "exponential"

    def _list_parameters(self) -> dict[str, float]:
        return {"scale": self.mean}


@dataclass(frozen=True, kw_only=True)
class Pareto(_BoundedLaw):
    """Pareto law: the share (minimum / x)^shape exceeds x.

    Args:
        minimum: Least value, 1e-12 to 1e15.
        shape: Tail index, 0.01 to 100. Up to 2 the variance is infinite, up to 1 the mean too, unless there is a `high`.
        low, high: Bounds, 0 to 1e15; None: none.
    """

    minimum: float = field(metadata=_SCALE)
    shape: float = field(metadata=_SHAPE)
    kind: ClassVar[str] = "pareto"

    @staticmethod
    def of_mean(mean: float, shape: float) -> Pareto:
        """Return the law without bounds of this mean; its shape is above 1."""
        shape = checks.number("pareto.shape", shape, 1, 100, low_open=True)
        return Pareto(minimum=checks.number("pareto.mean", mean, 1e-9, MAX_VALUE) * (shape - 1) / shape, shape=shape)

    def _list_parameters(self) -> dict[str, float]:
        return {"scale": self.minimum, "shape": self.shape}


@dataclass(frozen=True, kw_only=True)
class Lognormal(_BoundedLaw):
    """Lognormal law: the natural logarithm is normal.

    Args:
        mu: Mean of the logarithm, -100 to 100: exp(mu) is the median.
        sigma: Deviation of the logarithm, 0.01 to 100.
        low, high: Bounds, 0 to 1e15; None: none.
    """

    mu: float = field(metadata=number(-100, 100, core="scale"))
    sigma: float = field(metadata=_SHAPE)
    kind: ClassVar[str] = "lognormal"

    @staticmethod
    def of_mean(mean: float, deviation: float) -> Lognormal:
        """Return the law without bounds of this mean and standard deviation."""
        mean = checks.number("lognormal.mean", mean, 1e-9, MAX_VALUE)
        ratio = checks.number("lognormal.deviation", deviation, 0, MAX_VALUE, low_open=True) / mean
        sigma2 = math.log1p(ratio * ratio)
        return Lognormal(mu=math.log(mean) - sigma2 / 2, sigma=math.sqrt(sigma2))

    def _list_parameters(self) -> dict[str, float]:
        return {"scale": self.mu, "shape": self.sigma}


@dataclass(frozen=True, kw_only=True)
class Weibull(_BoundedLaw):
    """Weibull law: the share exp(-(x / scale)^shape) exceeds x.

    Args:
        scale: 1e-12 to 1e15.
        shape: 0.01 to 100.
        low, high: Bounds, 0 to 1e15; None: none.
    """

    scale: float = field(metadata=_SCALE)
    shape: float = field(metadata=_SHAPE)
    kind: ClassVar[str] = "weibull"

    def _list_parameters(self) -> dict[str, float]:
        return {"scale": self.scale, "shape": self.shape}


@dataclass(frozen=True, kw_only=True)
class Mixed(Law):
    """Law that is one of several, with given shares.

    Args:
        parts: Laws, none of them `Mixed`.
        weights: One for each part, above 0 to 1e9; shares are weights over their sum.
    """

    parts: Sequence[Law]
    weights: Sequence[float]
    kind: ClassVar[str] = "mixed"

    def __post_init__(self) -> None:
        parts = checks.sequence("mixed.parts", self.parts, "laws")
        for i, part in enumerate(parts):
            if not isinstance(part, Law) or isinstance(part, Mixed):
                raise ScenarioTypeError(f"mixed.parts[{i}] = {quote(part)}; valid: a law that is not mixed itself")
        weights = checks.sequence("mixed.weights", self.weights, "weights")
        if len(weights) != len(parts):
            raise ScenarioError(f"mixed.weights has {len(weights)} values for {len(parts)} parts; valid: as many")
        weights = tuple(checks.number(f"mixed.weights[{i}]", w, 0, 1e9, low_open=True) for i, w in enumerate(weights))
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "weights", weights)

    def to_core(self, low: float = 0.0, high: float = math.inf) -> _core.LawConfig:
        """Return the core's description of the law within [low, high], as if draws outside were repeated.

        Repeated draws choose among the parts anew, so that each part counts by its weight times its share within the bounds;
        parts of which the bounds leave less than a millionth are left out.

        Raises:
            ScenarioError: Bounds that leave less than a millionth of the law.
        """
        shares = [part.compute_share(low, high) for part in self.parts]
        inside = [i for i, share in enumerate(shares) if share >= LEAST_SHARE]
        weights = [self.weights[i] * shares[i] for i in inside]
        if math.fsum(weights) < LEAST_SHARE * math.fsum(self.weights):
            raise make_bounds_error(self.kind, low, high)
        cumulative = np.cumsum(weights) / math.fsum(weights)
        cumulative[-1] = 1.0
        parts = [self.parts[i].to_core(low, high) for i in inside]
        return make_config(self.kind, parts=parts, cumulative=np.minimum(cumulative, 1.0).tolist())


def law_or_number(low: float, high: float) -> dict[str, Rule]:
    """Return the metadata of a field with a number in [low, high], or a law."""
    return rule(lambda label, value: value if isinstance(value, Law) else checks.number(label, value, low, high))


def check_law(label: str, value: object) -> Law:
    """Return `value` if it is a law."""
    if not isinstance(value, Law):
        raise ScenarioTypeError(f"{label} = {quote(value)} is not a law; valid: Exponential(...), Pareto(...), ...")
    return value


def check_times(label: str, law: Law, least_s: float) -> Law:
    """Return a law of times, whose mean is finite and which does not make events without end.

    Raises:
        ScenarioError: An infinite mean, or a mean below `least_s` where times count as a second at most.
    """
    mean_s, short_s = law.compute_mean(), law.compute_mean(1.0)
    if not mean_s <= MAX_DURATION_S:
        valid = "a mean of at most 1e+06 s (Pareto: a shape above 1, or a high)"
        raise ScenarioError(f"{label}: the law's mean is {mean_s:g} s; valid: {valid}")
    if short_s < least_s:
        raise ScenarioError(
            f"{label}: the law's times, cut at a second, have a mean of {short_s:g} s; valid: {least_s:g} s or more"
        )
    return law


def make_bounds_error(kind: str, low: float, high: float) -> ScenarioError:
    """Return the error of bounds that leave hardly anything of a law."""
    return ScenarioError(f"{kind}: low = {low:g}, high = {high:g} hold less than a millionth of the law; valid: wider bounds")


def make_config(kind: str, **values: Any) -> _core.LawConfig:
    """Return the core's description of a law."""
    config = _core.LawConfig()
    config.kind = kind
    for name, value in values.items():
        setattr(config, name, value)
    return config


LAWS: dict[str, type] = {law.kind: law for law in (Constant, Exponential, Pareto, Lognormal, Weibull, Mixed)}
"""Laws by their kind; `sizes` adds that which is given by points."""
