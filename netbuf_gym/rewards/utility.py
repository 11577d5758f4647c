"""Utilities of whoever sends through a network, as sums of named terms over one decision interval.

They read a tracker (`Path`) and are finite for every interval. All but one are integrals over time: what the table gives, times
the measured length of the interval in seconds. An episode's sum over its duration is thus a mean over time, however often is
decided. `range_normalized` is a value, as its paper (Auter) has it: a R(x) - b R(queueing delay) - c R(l) with
R(v) = (v - least) / (greatest - least) over the samples so far without outliers. `requires` says what each needs; what of it
a task has, and what it is there, are its tracker's `quantities`.

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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards.ranges import ThreeSigmaRange
from netbuf_gym.utils.arguments import real, truth

NEAR_ONE = 1e-6
"""An alpha this close to 1 is the logarithm: the formula's 1 / (1 - alpha) would leave nothing of it in float32."""

MAX_ALPHA = float(np.finfo(np.float64).max)
"""Every number is an alpha."""

LARGEST = 1e30
"""Alpha-fair utilities lie in [-1e30, 1e30], which float32 holds with all weights and intervals."""


class Path(Protocol):
    """What a tracker knows of the path that is sent through; each returns float32 `(rows,)`, finite."""

    def __getitem__(self, field: str) -> np.ndarray:
        """The last measured values of a field of telemetry: `elapsed_s`, the measured length of the interval."""

    def throughput_ratio(self) -> np.ndarray:
        """Throughput over the fair share."""

    def rtt_ratio(self) -> np.ndarray:
        """RTT over base RTT, at least 1; 1 before the first round trip."""

    def queueing_s(self) -> np.ndarray:
        """RTT less base RTT in seconds, at least 0."""

    def loss_ratio(self) -> np.ndarray:
        """Packets marked lost over packets marked lost or acknowledged, 0 when there were none."""


@dataclass(frozen=True)
class LogUtility:
    """Log-utility: its sum over an episode, divided by the duration, tracks the utility that controllers are compared by.

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
        real("floor", self.floor, 1e-4, 1)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        np.log(np.maximum(tracker.throughput_ratio(), np.float32(self.floor)), out=out[0])
        np.log(tracker.rtt_ratio(), out=out[1])
        out[2] = tracker.loss_ratio() if self.loss_weight else 0
        out *= _factors(self) * tracker["elapsed_s"]


@dataclass(frozen=True)
class LinearUtility:
    """The tangent of log-utility at full throughput and an empty queue.

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
        real("cap", self.cap, 1, 1000)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        np.subtract(tracker.throughput_ratio(), np.float32(1), out=out[0])
        np.subtract(np.minimum(tracker.rtt_ratio(), np.float32(self.cap)), np.float32(1), out=out[1])
        out[2] = tracker.loss_ratio() if self.loss_weight else 0
        out *= _factors(self) * tracker["elapsed_s"]


@dataclass(frozen=True)
class AlphaFair:
    """Alpha-fair utility of throughput, delay and loss, as in Nuwa; all arguments normalised to [0, 1].

    Args:
        alpha: fairness, 0 or more; see `alpha_fair`. 0 is linear, 1 the logarithm.
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100.
        delay_scale_s: queueing delay that counts as 1, in seconds, 1e-4 to 100.
        floor: from alpha = 1 on, where utilities are unbounded at 0, the least argument that they see, 1e-6 to 1. Of delay and
            loss, too: less than `floor` is no better.
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
        real("alpha", self.alpha, 0, MAX_ALPHA)
        real("delay_scale_s", self.delay_scale_s, 1e-4, 100)
        real("floor", self.floor, 1e-6, 1)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        queueing = tracker.queueing_s()
        np.minimum(tracker.throughput_ratio(), np.float32(1), out=out[0])
        np.minimum(queueing * np.float32(1 / self.delay_scale_s), np.float32(1), out=out[1])
        out[2] = tracker.loss_ratio()
        if self.alpha <= 0.99:  # in float32, which holds it
            np.power(out, np.float32(1 - self.alpha), out=out)
            out *= _factors(self) * np.float32(1 / (1 - self.alpha))
        else:
            out[...] = _factors(self) * _alpha_fair(np.asarray(out, np.float64), self.alpha, self.floor)
        out *= tracker["elapsed_s"]


def alpha_fair(values: Any, alpha: float, floor: float = 0.01) -> np.ndarray:
    """U(z) = z^(1 - alpha) / (1 - alpha), and ln z for alpha = 1, float64.

    The formula's limit at alpha = 1 is infinite; there, and for an alpha closer to 1 than `NEAR_ONE`, it is the logarithm.

    Args:
        values: z, numbers of any shape, 0 or more; NaN, as of what was not measured, stays NaN.
        alpha: 0 or more.
        floor: for alpha >= 1 the least z that is seen, above 0.

    Returns:
        numbers, at most `LARGEST` in size.

    Raises:
        ConfigError: a value, `alpha` or `floor` out of range, or no number.
    """
    alpha = real("alpha", alpha, 0, MAX_ALPHA)
    floor = real("floor", floor, 0, MAX_ALPHA, low_open=True)
    try:
        values = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"values = {shown(values)} are no numbers; valid: 0 or more") from None
    if (values < 0).any():
        raise ConfigError(f"values = {shown(values)} hold numbers below 0; valid: 0 or more")
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
class RangeNormalized:
    """Throughput, delay and loss, each normalised by the range of its samples so far, as in Auter's Eqs. 2 and 3.

    R(v) = (v - least) / (greatest - least), over the samples of all agents and episodes so far, this interval's included, that
    are no outliers by the three-sigma rule (`ThreeSigmaRange`). It is 0 as long as all samples are alike. What an interval did
    not measure counts with its last value. The sum over a decision is the paper's reward; it is no integral over time.

    Args:
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100; in the paper a is above both others.
        memory: how many samples are remembered, 2 to 10 million.
        clip: R to [0, 1]; else the R of an outlier is below 0 or above 1, as the equation has it, by at most 1e6.
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
        truth("clip", self.clip)
        self.__dict__["_ranges"] = tuple(ThreeSigmaRange(self.memory) for _ in self.terms)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        values = (tracker.throughput_ratio(), tracker.queueing_s(), tracker.loss_ratio())
        for row, own, samples in zip(out, values, self.__dict__["_ranges"], strict=True):
            samples.update(own)
            row[...] = samples.normalize(own, self.clip)
        out *= _factors(self)


@dataclass(frozen=True)
class Power:
    """Kleinrock's power, throughput over delay, normalised: 1 at full throughput without queueing.

    Args:
        exponent: of the throughput ratio, 0.1 to 10.
    """

    exponent: float = 1.0
    name: ClassVar[str] = "power"
    terms: ClassVar[tuple[str, ...]] = ("power",)
    requires: ClassVar[tuple[str, ...]] = ("elapsed_s", "throughput_ratio", "rtt_ratio")

    def __post_init__(self) -> None:
        real("exponent", self.exponent, 0.1, 10)

    def __call__(self, tracker: Path, out: np.ndarray) -> None:
        """Writes the term, `(1, rows)`."""
        np.power(tracker.throughput_ratio(), np.float32(self.exponent), out=out[0])
        out[0] /= tracker.rtt_ratio()
        out[0] *= tracker["elapsed_s"]


UTILITIES: tuple[type, ...] = (LogUtility, LinearUtility, AlphaFair, Power, RangeNormalized)
"""What a task whose tracker is a `Path` may bring among its rewards."""


def _check_weights(reward: Any) -> None:
    for name in ("throughput_weight", "delay_weight", "loss_weight"):
        real(name, getattr(reward, name), 0, 100)


@lru_cache(maxsize=64)
def _factors(reward: Any) -> np.ndarray:
    """Of the terms throughput, delay and loss, `(3, 1)`; not to be written to."""
    return np.array([[reward.throughput_weight], [-reward.delay_weight], [-reward.loss_weight]], np.float32)
