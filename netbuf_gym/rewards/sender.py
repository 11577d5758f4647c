"""Rewards of a sender, as sums of named terms over one decision interval.

Each reward is a small immutable object: parameters in, terms out. It reads a :class:`~netbuf_gym.plants.tracker.Tracker`
(telemetry, and what the world offers) and writes one row per term; the environment adds the terms up once and shows
them in `info`. Throughput of an interval without an ACK is 0, which was measured; the round-trip time is then the last
one measured, and counts as the base RTT (no delay) before the first. All rewards are finite for every interval. All but
`utility_sign` are integrals over time: what the table gives, times the length of the interval in seconds. An episode's
sum over its duration is thus a mean over time, whether decisions come every 100 ms or on every ACK.

| name              | terms                    | per second                                                             |
|-------------------|--------------------------|------------------------------------------------------------------------|
| `log_utility`     | throughput, delay, loss  | a ln(x) - b ln(y) - c l                                                |
| `linear_utility`  | throughput, delay, loss  | a (x - 1) - b (min(y, cap) - 1) - c l                                  |
| `utility_sign`    | utility_sign             | sign of the change of a ln(throughput) - b ln(RTT)      (TCP-PPCC)     |
| `alpha_fair`      | throughput, delay, loss  | a U(x') - b U(d) - c U(l), U(z) = z^(1 - alpha) / (1 - alpha)  (Nuwa)  |
| `power`           | power                    | x^e / y                                                 (Kleinrock)    |

with x = throughput / fair share of the bottleneck, y = RTT / base RTT, l = lost / (lost + acknowledged) packets,
x' = min(x, 1), d = queueing delay / `delay_scale_s`, at most 1. A fair share is the rate of the tightest link over the
number of flows in the world; with one sender it is the capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.arguments import real
from netbuf_gym.plants.tracker import ELAPSED, PACKETS_LOST, RTT, SEGMENTS_ACKED, THROUGHPUT, Tracker


def throughput_ratio(tracker: Tracker) -> np.ndarray:
    """Throughput over the fair share, `(rows,)`."""
    return tracker.last[THROUGHPUT] / tracker.share_bps


def rtt_ratio(tracker: Tracker) -> np.ndarray:
    """RTT over base RTT, at least 1, `(rows,)`; 1 before the first round trip."""
    return np.maximum(tracker.last[RTT] / tracker.base_rtt_s, np.float32(1))


def loss_ratio(tracker: Tracker) -> np.ndarray:
    """Packets marked lost over packets marked lost or acknowledged, `(rows,)`, 0 when there were none."""
    lost = tracker.last[PACKETS_LOST]
    return lost / np.maximum(lost + tracker.last[SEGMENTS_ACKED], np.float32(1))


def elapsed_s(tracker: Tracker) -> np.ndarray:
    """Length of this interval in seconds, `(rows,)`: sums are integrals over time, however often is decided."""
    return tracker.last[ELAPSED]


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

    def __post_init__(self):
        _check_weights(self)
        real("floor", self.floor, 1e-4, 1)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        time_s = elapsed_s(tracker)
        np.log(np.maximum(throughput_ratio(tracker), np.float32(self.floor)), out=out[0])
        np.log(rtt_ratio(tracker), out=out[1])
        out[0] *= np.float32(self.throughput_weight) * time_s
        out[1] *= np.float32(-self.delay_weight) * time_s
        np.multiply(loss_ratio(tracker), np.float32(-self.loss_weight) * time_s, out=out[2])


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

    def __post_init__(self):
        _check_weights(self)
        real("cap", self.cap, 1, 1000)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        time_s = elapsed_s(tracker)
        np.subtract(throughput_ratio(tracker), np.float32(1), out=out[0])
        np.subtract(np.minimum(rtt_ratio(tracker), np.float32(self.cap)), np.float32(1), out=out[1])
        out[0] *= np.float32(self.throughput_weight) * time_s
        out[1] *= np.float32(-self.delay_weight) * time_s
        np.multiply(loss_ratio(tracker), np.float32(-self.loss_weight) * time_s, out=out[2])


@dataclass(frozen=True)
class UtilitySign:
    """TCP-PPCC's reward, its Eqs. 2 and 3: +1, 0 or -1 as U = a ln(throughput) - b ln(RTT) rose, stayed or fell.

    Throughput counts as at least 1 bit/s. The reward is 0 until two intervals have known a round trip. The paper gives
    no weights; a = b = 0.5 is ours.

    Args:
        throughput_weight: a, 0 to 1; b = 1 - a.
    """

    throughput_weight: float = 0.5
    name: ClassVar[str] = "utility_sign"
    terms: ClassVar[tuple[str, ...]] = ("utility_sign",)

    def __post_init__(self):
        real("throughput_weight", self.throughput_weight, 0, 1)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the term, `(1, rows)`."""
        a, known = self.throughput_weight, tracker.previous_rtt_known
        values = np.ones((4, tracker.rows))
        np.maximum(tracker.last[THROUGHPUT], 1, out=values[0])
        np.maximum(tracker.previous_throughput, 1, out=values[1])
        np.copyto(values[2], tracker.last[RTT], where=known)
        np.copyto(values[3], tracker.previous_rtt, where=known)
        np.log(values, out=values)
        now = a * values[0] - (1 - a) * values[2]
        before = a * values[1] - (1 - a) * values[3]
        np.sign(now - before, out=out[0], casting="same_kind")
        out[0] *= known


@dataclass(frozen=True)
class AlphaFair:
    """Alpha-fair utility of throughput, delay and loss, as in Nuwa; all arguments normalised to [0, 1].

    Args:
        alpha: fairness, 0 to 0.99 (0: linear; 1 would be the logarithm, which is unbounded at 0).
        throughput_weight, delay_weight, loss_weight: weights a, b, c, 0 to 100.
        delay_scale_s: queueing delay that counts as 1, in seconds, 1e-4 to 100.
    """

    alpha: float = 0.6
    throughput_weight: float = 0.4
    delay_weight: float = 0.4
    loss_weight: float = 0.2
    delay_scale_s: float = 0.5
    name: ClassVar[str] = "alpha_fair"
    terms: ClassVar[tuple[str, ...]] = ("throughput", "delay", "loss")

    def __post_init__(self):
        _check_weights(self)
        real("alpha", self.alpha, 0, 0.99)
        real("delay_scale_s", self.delay_scale_s, 1e-4, 100)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the terms, `(3, rows)`."""
        queueing = np.maximum(tracker.last[RTT] - tracker.base_rtt_s, np.float32(0))
        np.minimum(throughput_ratio(tracker), np.float32(1), out=out[0])
        np.minimum(queueing * np.float32(1 / self.delay_scale_s), np.float32(1), out=out[1])
        out[2] = loss_ratio(tracker)
        np.power(out, np.float32(1 - self.alpha), out=out)
        weights = np.array([[self.throughput_weight], [-self.delay_weight], [-self.loss_weight]], np.float32)
        out *= weights * np.float32(1 / (1 - self.alpha))
        out *= elapsed_s(tracker)


@dataclass(frozen=True)
class Power:
    """Kleinrock's power, throughput over delay, normalised: 1 at full throughput without queueing.

    Args:
        exponent: of the throughput ratio, 0.1 to 10.
    """

    exponent: float = 1.0
    name: ClassVar[str] = "power"
    terms: ClassVar[tuple[str, ...]] = ("power",)

    def __post_init__(self):
        real("exponent", self.exponent, 0.1, 10)

    def __call__(self, tracker: Tracker, out: np.ndarray) -> None:
        """Writes the term, `(1, rows)`."""
        np.power(throughput_ratio(tracker), np.float32(self.exponent), out=out[0])
        out[0] /= rtt_ratio(tracker)
        out[0] *= elapsed_s(tracker)


Reward = LogUtility | LinearUtility | UtilitySign | AlphaFair | Power
REWARDS: dict[str, type[Reward]] = {kind.name: kind for kind in (LogUtility, LinearUtility, UtilitySign, AlphaFair, Power)}


def _check_weights(reward: Any) -> None:
    for name in ("throughput_weight", "delay_weight", "loss_weight"):
        real(name, getattr(reward, name), 0, 100)
