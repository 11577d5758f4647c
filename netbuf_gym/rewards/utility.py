"""Utilities of senders in a network, as sums of named terms over one decision interval.

They read a tracker (`Path`) and are finite for every interval. All but one are integrals over time: the value in the table
times the measured length of the interval in seconds. An episode's sum over its duration is thus a mean over time, independent
of the decision interval. `range_normalized` is a value, as in its paper (Auter): a R(x) - b R(queueing delay) - c R(l) with
R(v) = (v - least) / (greatest - least) over the samples so far without outliers. `requires` lists the telemetry that each
needs; the `quantities` of a task's tracker say which of these a task has, and what they mean there.

| name              | terms                    | per second                                                             |
|-------------------|--------------------------|------------------------------------------------------------------------|
| `log_utility`     | throughput, delay, loss  | a ln(x) - b ln(y) - c l                                                |
| `linear_utility`  | throughput, delay, loss  | a (x - 1) - b (min(y, cap) - 1) - c l                                  |
| `alpha_fair`      | throughput, delay, loss  | a U(x') - b U(d) - c U(l), U(z) = z^(1 - alpha) / (1 - alpha)  (Nuwa)  |
| `power`           | power                    | x^e / y                                                 (Kleinrock)    |

with x = throughput / fair share, y = RTT / base RTT, l = lost / (lost + acknowledged) packets,
x' = min(x, 1), d = queueing delay / `delay_scale_s`, at most 1. The fair share is the least, over the links of the
sender's own path, of the link's rate over the number of flows that cross it; with one sender it is the capacity.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards.ranges import ThreeSigmaRange
from netbuf_gym.utils.arguments import check_boolean, check_real

NEAR_ONE = 1e-6
"""Distance from 1 within which alpha counts as 1, the logarithm: the formula's 1 / (1 - alpha) would swamp float32."""

MAX_ALPHA = sys.float_info.max
"""Upper limit of alpha: any finite number is accepted."""

LARGEST = 1e30
"""Alpha-fair utilities lie in [-1e30, 1e30], within the range of float32 for all weights and intervals."""


class Path(Protocol):
    """Path as known to a tracker; each method returns float32 `(rows,)`, finite."""

    def __getitem__(self, field: str) -> np.ndarray:
        """Return the last measured values of a field of telemetry: `elapsed_s`, the measured length of the interval."""

    def throughput_ratio(self) -> np.ndarray:
        """Return throughput over the fair share."""

    def rtt_ratio(self) -> np.ndarray:
        """Return RTT over base RTT, at least 1; 1 before the first round trip."""

    def queueing_s(self) -> np.ndarray:
        """Return RTT less base RTT in seconds, at least 0."""

    def loss_ratio(self) -> np.ndarray:
        """Return packets marked lost over packets marked lost or acknowledged, 0 when there were none."""


class _Weighted:
    """Reward of three terms with weights: throughput, delay, loss."""

    throughput_weight: float
    delay_weight: float
    loss_weight: float

    @cached_property
    def _signed_weights(self) -> np.ndarray:
        """Signed weights of the terms, `(3, 1)`."""
        return np.array([[self.throughput_weight], [-self.delay_weight], [-self.loss_weight]], np.float32)


@dataclass(frozen=True)
class LogUtility(_Weighted):
    """Log-utility, whose episode sum over the duration tracks the utility that controllers are compared by.

    Args:
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100.
        floor: least throughput ratio that the logarithm sees, 1e-4 to 1.
    """

    throughput_weight: float = 0.5
    delay_weight: float = 0.5
    loss_weight: float = 0.0
    floor: float = 0.05
    name: ClassVar[str] = "log_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "rtt_ratio", "loss_ratio")

    def __post_init__(self) -> None:
        _check_weights(self)
        check_real("floor", self.floor, 1e-4, 1)

    @cached_property
    def _floor(self) -> np.ndarray:
        """The floor, as numpy compares with twice as fast as with a number."""
        return np.array([self.floor], np.float32)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, into `out`."""
        np.log(np.maximum(tracker.throughput_ratio(), self._floor), out=out[0])
        np.log(tracker.rtt_ratio(), out=out[1])
        out[2] = tracker.loss_ratio() if self.loss_weight else 0
        out *= self._signed_weights * tracker["elapsed_s"]


@dataclass(frozen=True)
class LinearUtility(_Weighted):
    """Tangent of log-utility at full throughput and an empty queue.

    A whole-episode utility is a logarithm of *means*, so that near the optimum every interval counts linearly.

    Args:
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100.
        cap: largest RTT ratio that counts, 1 to 1000.
    """

    throughput_weight: float = 0.5
    delay_weight: float = 0.5
    loss_weight: float = 0.0
    cap: float = 5.0
    name: ClassVar[str] = "linear_utility"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "rtt_ratio", "loss_ratio")

    def __post_init__(self) -> None:
        _check_weights(self)
        check_real("cap", self.cap, 1, 1000)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, into `out`."""
        np.subtract(tracker.throughput_ratio(), np.float32(1), out=out[0])
        np.subtract(np.minimum(tracker.rtt_ratio(), np.float32(self.cap)), np.float32(1), out=out[1])
        out[2] = tracker.loss_ratio() if self.loss_weight else 0
        out *= self._signed_weights * tracker["elapsed_s"]


@dataclass(frozen=True)
class AlphaFair(_Weighted):
    """Alpha-fair utility of throughput, delay and loss, as in Nuwa; all arguments normalised to [0, 1].

    Args:
        alpha: fairness, 0 or more; see `alpha_fair`. 0 is linear, 1 the logarithm.
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100.
        delay_scale_s: queueing delay that counts as 1, in seconds, 1e-4 to 100.
        floor: least argument from alpha = 1 on, where utilities are unbounded at 0, 1e-6 to 1. This includes delay and loss:
            less than `floor` is no better.
    """

    alpha: float = 0.6
    throughput_weight: float = 0.4
    delay_weight: float = 0.4
    loss_weight: float = 0.2
    delay_scale_s: float = 0.5
    floor: float = 0.01
    name: ClassVar[str] = "alpha_fair"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss")
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "queueing_s", "loss_ratio")

    def __post_init__(self) -> None:
        _check_weights(self)
        check_real("alpha", self.alpha, 0, MAX_ALPHA)
        check_real("delay_scale_s", self.delay_scale_s, 1e-4, 100)
        check_real("floor", self.floor, 1e-6, 1)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, into `out`."""
        queueing = tracker.queueing_s()
        np.minimum(tracker.throughput_ratio(), np.float32(1), out=out[0])
        np.minimum(queueing * np.float32(1 / self.delay_scale_s), np.float32(1), out=out[1])
        out[2] = tracker.loss_ratio()
        if self.alpha <= 0.99:  # float32 is precise enough
            np.power(out, np.float32(1 - self.alpha), out=out)
            out *= self._signed_weights * np.float32(1 / (1 - self.alpha))
        else:
            out[...] = self._signed_weights * _alpha_fair(np.asarray(out, np.float64), self.alpha, self.floor)
        out *= tracker["elapsed_s"]


def alpha_fair(values: Any, alpha: float, floor: float = 0.01) -> np.ndarray:
    """Return U(z) = z^(1 - alpha) / (1 - alpha), and ln z for alpha = 1, float64.

    The formula's limit at alpha = 1 is infinite; the logarithm replaces it for an alpha closer to 1 than `NEAR_ONE`.

    Args:
        values: z, numbers of any shape, 0 or more; NaN, as for unmeasured values, stays NaN.
        alpha: Fairness, 0 or more.
        floor: Least z that counts, for alpha >= 1, above 0.

    Returns:
        Utilities, at most `LARGEST` in size.

    Raises:
        ConfigError: A value, `alpha` or `floor` is out of range or not a number.
    """
    alpha = check_real("alpha", alpha, 0, MAX_ALPHA)
    floor = check_real("floor", floor, 0, MAX_ALPHA, low_open=True)
    try:
        values = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"values = {quote(values)} are not numbers; valid: 0 or more") from None
    if (values < 0).any():
        raise ConfigError(f"values = {quote(values)} hold numbers below 0; valid: 0 or more")
    return _alpha_fair(values, alpha, floor)


def _alpha_fair(values: np.ndarray, alpha: float, floor: float) -> np.ndarray:
    if abs(alpha - 1) < NEAR_ONE:
        return np.log(np.maximum(values, floor))
    if alpha < 1:
        return np.minimum(values ** (1 - alpha) / (1 - alpha), LARGEST)
    with np.errstate(over="ignore"):
        log_size = (1 - alpha) * np.log(np.maximum(values, floor)) - np.log(alpha - 1)
    return -np.exp(np.minimum(log_size, np.log(LARGEST)))


@dataclass(frozen=True)
class RangeNormalized(_Weighted):
    """Throughput, delay and loss, each normalised by the range of its samples so far, as in Auter's Eqs. 2 and 3.

    R(v) = (v - least) / (greatest - least), over the samples of all agents and episodes so far, this interval's included, that
    are no outliers by the three-sigma rule (`ThreeSigmaRange`). It is 0 as long as all samples are equal. Values not measured
    in an interval count with the last measurement. The sum over a decision is the paper's reward; it is no integral over time.

    Args:
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100; in the paper a is above both others.
        memory: number of remembered samples, 2 to 10 million.
        clip: whether R is clipped to [0, 1]; otherwise the R of an outlier lies outside, as in the equation, by at most 1e6.
    """

    throughput_weight: float = 1.0
    delay_weight: float = 0.5
    loss_weight: float = 0.5
    memory: int = 10_000
    clip: bool = True
    name: ClassVar[str] = "range_normalized"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss")
    requires: ClassVar[tuple[str, ...]] = ("throughput_ratio", "queueing_s", "loss_ratio")

    def __post_init__(self) -> None:
        _check_weights(self)
        check_boolean("clip", self.clip)
        self.__dict__["_ranges"] = tuple(ThreeSigmaRange(self.memory) for _ in self.terms)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the terms, `(3, rows)`, into `out`."""
        values = (tracker.throughput_ratio(), tracker.queueing_s(), tracker.loss_ratio())
        for row, own, samples in zip(out, values, self.__dict__["_ranges"], strict=True):
            samples.update(own)
            row[...] = samples.normalize(own, self.clip)
        out *= self._signed_weights


@dataclass(frozen=True)
class Power:
    """Kleinrock's power, throughput over delay, normalised: 1 at full throughput without queueing.

    Args:
        exponent: exponent of the throughput ratio, 0.1 to 10.
    """

    exponent: float = 1.0
    name: ClassVar[str] = "power"
    terms: ClassVar[tuple[str, ...]] = ("power",)
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "rtt_ratio")

    def __post_init__(self) -> None:
        check_real("exponent", self.exponent, 0.1, 10)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Write the term, `(1, rows)`, into `out`."""
        np.power(tracker.throughput_ratio(), np.float32(self.exponent), out=out[0])
        out[0] /= tracker.rtt_ratio()
        out[0] *= tracker["elapsed_s"]


UTILITIES: tuple[type[Any], ...] = (LogUtility, LinearUtility, AlphaFair, Power, RangeNormalized)
"""Rewards available to a task whose tracker is a `Path`."""


def _check_weights(reward: Any) -> None:
    for name in ("throughput_weight", "delay_weight", "loss_weight"):
        check_real(name, getattr(reward, name), 0, 100)
