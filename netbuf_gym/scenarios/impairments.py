"""What happens to a packet between two ends of a link: propagation that changes, jitter, loss that changes.

All three take effect on a packet at the moment when its transmission begins, as in ns-3.44, whose point-to-point channel
reads its delay then: what is in flight keeps the delay that it set out with. There a fall of the delay therefore lets later
packets overtake earlier ones; here that is `reorder=True`. Otherwise a link delivers in order: a packet that would overtake
arrives together with the last one before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.traces.types import MAX_TIME_S
from netbuf_gym.utils import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DISTRIBUTIONS = ("uniform", "exponential", "normal", "pareto")
MIN_SHAPE, MAX_SHAPE = 0.1, 100.0
MAX_CORRELATION = 0.9999


@dataclass(frozen=True, eq=False)
class _Steps:
    """Values that hold from one moment to the next, compared by what they hold."""

    time_s: np.ndarray

    values_field: ClassVar[str]

    def _check(self, low: float, high: float, period_s: float | None) -> None:
        field, put = self.values_field, object.__setattr__
        time_s = _numbers("time_s", self.time_s, 0, MAX_TIME_S)
        values = _numbers(field, getattr(self, field), low, high)
        if len(time_s) != len(values):
            raise ScenarioError(f"{field} has {len(values)} values for {len(time_s)} in time_s; valid: as many")
        if time_s[0] != 0:
            raise ScenarioError(f"time_s[0] = {time_s[0]:g}; valid: 0, the start of the world")
        fall = np.flatnonzero(np.diff(np.round(time_s * 1e9)) <= 0)
        if len(fall):
            i = int(fall[0]) + 1
            raise ScenarioError(f"time_s[{i}] = {time_s[i]:g} is not after {time_s[i - 1]:g}; valid: rising times, to 1 ns")
        if period_s is not None:
            period = checks.number("period_s", period_s, 0, MAX_TIME_S, low_open=True)
            if round(period * 1e9) <= round(time_s[-1] * 1e9):
                raise ScenarioError(f"period_s = {period:g} is not above the last time_s, {time_s[-1]:g}")
            put(self, "period_s", period)
        put(self, "time_s", time_s)
        put(self, field, values)

    def _at(self, time_s: np.ndarray | float) -> np.ndarray:
        t = np.asarray(time_s, np.float64)
        period_s = getattr(self, "period_s", None)
        if period_s is not None:
            t = np.mod(t, period_s)
        return getattr(self, self.values_field)[np.searchsorted(self.time_s, t, side="right") - 1]

    def _key(self) -> tuple:
        return tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in vars(self).values())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, eq=False)
class DelaySchedule(_Steps):
    """Propagation delay that changes in steps: route changes, handovers, satellites that take over from each other.

    A packet takes the delay that holds when its transmission begins. `netbuf_gym.scenarios.route_change`, `handovers` and
    `leo_delays` make such schedules.

    Args:
        time_s: When each step begins, seconds, rising from 0, at most 1e6. Shape (steps,).
        delay_ms: Milliseconds from then on, 0 to 1e5. Shape (steps,).
        period_s: The schedule starts again every `period_s` seconds (above the last time); None: the last delay holds.
        reorder: Whether a packet may overtake those that set out before a fall of the delay, as in ns-3; else it arrives
            no earlier than they do.

    Raises:
        ScenarioError: A value that is not finite or out of range, times not rising, lengths that differ.
    """

    delay_ms: np.ndarray
    period_s: float | None = None
    reorder: bool = False

    values_field: ClassVar[str] = "delay_ms"

    if TYPE_CHECKING:  # lists become arrays

        def __init__(
            self, time_s: ArrayLike, delay_ms: ArrayLike, period_s: float | None = None, reorder: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        self._check(0, MAX_DELAY_MS, self.period_s)
        object.__setattr__(self, "reorder", checks.boolean("reorder", self.reorder))

    @property
    def least_ms(self) -> float:
        """The smallest delay, ms."""
        return float(self.delay_ms.min())

    def delay_at_ms(self, time_s: np.ndarray | float) -> np.ndarray:
        """The delay of what sets out at each moment, ms. Same shape as `time_s`."""
        return self._at(time_s)


@dataclass(frozen=True, eq=False)
class LossSchedule(_Steps):
    """Loss probability that changes in steps; 1 is an outage in which everything that is sent is lost.

    Args:
        time_s: When each step begins, seconds, rising from 0, at most 1e6. Shape (steps,).
        loss: Probability from then on that a packet whose transmission begins is lost, 0 to 1. Shape (steps,).
        period_s: The schedule starts again every `period_s` seconds (above the last time); None: the last value holds,
            which must be below 1.

    Raises:
        ScenarioError: A value that is not finite or out of range, times not rising, lengths that differ, nothing ever passes.
    """

    loss: np.ndarray
    period_s: float | None = None

    values_field: ClassVar[str] = "loss"

    if TYPE_CHECKING:

        def __init__(self, time_s: ArrayLike, loss: ArrayLike, period_s: float | None = None) -> None: ...

    def __post_init__(self) -> None:
        self._check(0, 1, self.period_s)
        if (self.loss[-1] if self.period_s is None else self.loss.min()) == 1:
            raise ScenarioError("loss is 1 for ever, which lets nothing pass; valid: a last value, or one of a period, below 1")

    def loss_at(self, time_s: np.ndarray | float) -> np.ndarray:
        """The probability at each moment. Same shape as `time_s`."""
        return self._at(time_s)


@dataclass(frozen=True, kw_only=True)
class Jitter:
    """Random delay of each packet, ACKs included, on top of propagation. Never negative.

    With u uniform in (0, 1), milliseconds:

    * `uniform`: `scale_ms` u
    * `exponential`: -`scale_ms` ln(1 - u)
    * `normal`: `scale_ms` times a standard normal variable, plus `mean_ms`; below 0 it counts as 0
    * `pareto`: `scale_ms` ((1 - u)^(-1/`shape`) - 1), the Pareto distribution shifted to begin at 0 (Lomax); above 1e5 ms it
      counts as 1e5

    Args:
        distribution: One of these.
        scale_ms: 0 to 1e5 ms.
        mean_ms: Of `normal`, 0 to 1e5 ms.
        shape: Of `pareto`, 0.1 to 100; the mean, `scale_ms` / (shape - 1), is finite above 1.
        correlation: Of each packet's jitter with the one before, 0 to 0.9999: u is the normal distribution function of a
            first-order autoregressive sequence, so that the distribution stays as it is.
        reorder: Whether a packet may overtake another (ns-3's and tc-netem's jitter does that); else it arrives no earlier
            than those that were sent before it.
    """

    distribution: str = "uniform"
    scale_ms: float
    mean_ms: float = 0.0
    shape: float = 3.0
    correlation: float = 0.0
    reorder: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        checks.choice("jitter.distribution", self.distribution, DISTRIBUTIONS)
        for field, low, high in (
            ("scale_ms", 0.0, MAX_DELAY_MS),
            ("mean_ms", 0.0, MAX_DELAY_MS),
            ("shape", MIN_SHAPE, MAX_SHAPE),
            ("correlation", 0.0, MAX_CORRELATION),
        ):
            put(self, field, checks.number(f"jitter.{field}", getattr(self, field), low, high))
        if self.mean_ms and self.distribution != "normal":
            raise ScenarioError(f"jitter.mean_ms = {self.mean_ms:g} of {self.distribution}; valid: 0, or distribution='normal'")
        put(self, "reorder", checks.boolean("jitter.reorder", self.reorder))


def delay_of(field: str, value: object) -> float | DelaySchedule:
    """A propagation delay: a number of ms or a schedule."""
    return value if isinstance(value, DelaySchedule) else checks.number(field, value, 0, MAX_DELAY_MS)


def loss_of(field: str, value: object) -> float | LossSchedule:
    """A loss probability: a number below 1 or a schedule."""
    if isinstance(value, LossSchedule):
        return value
    loss = checks.number(field, value, 0, 1)
    if loss == 1:
        raise ScenarioError(f"{field} = 1 lets nothing pass; valid: 0 to below 1")
    return loss


def _numbers(field: str, values: object, low: float, high: float) -> np.ndarray:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{field} = {shown(values)} is not a list; valid: a list of numbers")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        if array.size and array.dtype.kind not in "fiu":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ScenarioTypeError(f"{field} = {shown(values)} is not a list of numbers") from None
    if array.ndim != 1 or not array.size:
        raise ScenarioError(f"{field} has shape {array.shape}; valid: one dimension, at least one number")
    bad = np.flatnonzero(~((array >= low) & (array <= high)))
    if len(bad):
        i = int(bad[0])
        raise ScenarioError(f"{field}[{i}] = {array[i]:g} is out of range; valid: {low:g} to {high:g}")
    array.setflags(write=False)
    return array
