"""Impairments of a link: changing propagation delay, jitter, changing loss.

All three are evaluated when a packet's transmission begins, as in ns-3.44, whose point-to-point channel reads its delay then:
packets in flight keep their delay. In ns-3 a fall of the delay therefore lets later packets overtake earlier ones; here
`reorder=True` does that. Otherwise a link delivers in order: a packet that would overtake arrives together with its
predecessor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.fields import boolean, check_fields, choice, number
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.traces.types import MAX_TIME_S
from netbuf_gym.utils import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DISTRIBUTIONS = ("uniform", "exponential", "normal", "pareto")
MIN_SHAPE, MAX_SHAPE = 0.1, 100.0
MAX_CORRELATION = 0.9999


@dataclass(frozen=True, eq=False)
class _StepSchedule:
    """Step function of time, compared by value."""

    time_s: np.ndarray

    values_field: ClassVar[str]

    def _check_steps(self, low: float, high: float, period_s: float | None) -> None:
        field, put = self.values_field, object.__setattr__
        time_s = _check_numbers("time_s", self.time_s, 0, MAX_TIME_S)
        values = _check_numbers(field, getattr(self, field), low, high)
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

    def _values_at(self, time_s: np.ndarray | float) -> np.ndarray:
        t = np.asarray(time_s, np.float64)
        period_s = getattr(self, "period_s", None)
        if period_s is not None:
            t = np.mod(t, period_s)
        return getattr(self, self.values_field)[np.searchsorted(self.time_s, t, side="right") - 1]

    def _comparison_key(self) -> tuple:
        return tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in vars(self).values())

    def __eq__(self, other: object) -> bool:
        return self._comparison_key() == other._comparison_key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._comparison_key())


@dataclass(frozen=True, eq=False)
class DelaySchedule(_StepSchedule):
    """Propagation delay that changes in steps: route changes, handovers, satellite reassignments.

    A packet's delay is the value at the start of its transmission. `netbuf_gym.scenarios.route_change`, `handovers` and
    `leo_delays` return such schedules.

    Args:
        time_s: Start of each step, seconds, rising from 0, at most 1e6. Shape (steps,).
        delay_ms: Delay of each step, milliseconds, 0 to 1e5. Shape (steps,).
        period_s: Time after which the schedule repeats, seconds, above the last time; None: the last delay holds.
        reorder: Whether a packet may overtake packets sent before a fall of the delay, as in ns-3; otherwise it arrives no
            earlier than they do.

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
        self._check_steps(0, MAX_DELAY_MS, self.period_s)
        object.__setattr__(self, "reorder", checks.boolean("reorder", self.reorder))

    @property
    def least_ms(self) -> float:
        """Smallest delay, ms."""
        return float(self.delay_ms.min())

    def delay_at_ms(self, time_s: np.ndarray | float) -> np.ndarray:
        """Return the delay of packets sent at each time, ms. Same shape as `time_s`."""
        return self._values_at(time_s)


@dataclass(frozen=True, eq=False)
class LossSchedule(_StepSchedule):
    """Loss probability that changes in steps; 1 is an outage in which all packets are lost.

    Args:
        time_s: Start of each step, seconds, rising from 0, at most 1e6. Shape (steps,).
        loss: Loss probability of packets whose transmission begins in the step, 0 to 1. Shape (steps,).
        period_s: Time after which the schedule repeats, seconds, above the last time; None: the last value holds, which must
            be below 1.

    Raises:
        ScenarioError: A value that is not finite or out of range, times not rising, lengths that differ, nothing ever passes.
    """

    loss: np.ndarray
    period_s: float | None = None

    values_field: ClassVar[str] = "loss"

    if TYPE_CHECKING:

        def __init__(self, time_s: ArrayLike, loss: ArrayLike, period_s: float | None = None) -> None: ...

    def __post_init__(self) -> None:
        self._check_steps(0, 1, self.period_s)
        if (self.loss[-1] if self.period_s is None else self.loss.min()) == 1:
            raise ScenarioError("loss is 1 for ever, which lets nothing pass; valid: a last value, or one of a period, below 1")

    def loss_at(self, time_s: np.ndarray | float) -> np.ndarray:
        """Return the loss probability at each time. Same shape as `time_s`."""
        return self._values_at(time_s)

    def mean_loss(self, duration_s: float) -> float:
        """Return the mean over `duration_s` seconds, or over a period where that is shorter."""
        end_s = duration_s if self.period_s is None else min(duration_s, self.period_s)
        lasts_s = np.diff(np.minimum(np.append(self.time_s, end_s), end_s))
        return float(self.loss @ lasts_s / end_s)


def _scale_to_ns(milliseconds: float) -> float:
    return milliseconds * 1e6


@dataclass(frozen=True, kw_only=True)
class Jitter:
    """Random delay of each packet, ACKs included, in addition to propagation. Never negative.

    With u uniform in (0, 1), in milliseconds:

    * `uniform`: `scale_ms` u
    * `exponential`: -`scale_ms` ln(1 - u)
    * `normal`: `scale_ms` times a standard normal variable, plus `mean_ms`; below 0 it counts as 0
    * `pareto`: `scale_ms` ((1 - u)^(-1/`shape`) - 1), the Pareto distribution shifted to begin at 0 (Lomax); above 1e5 ms it
      counts as 1e5

    Args:
        distribution: One of the names above.
        scale_ms: Scale, 0 to 1e5 ms.
        mean_ms: Mean for `normal`, 0 to 1e5 ms.
        shape: Shape for `pareto`, 0.1 to 100; the mean, `scale_ms` / (shape - 1), is finite above 1.
        correlation: Correlation of successive packets' jitter, 0 to 0.9999: u is the normal distribution function of a
            first-order autoregressive sequence, which leaves the distribution unchanged.
        reorder: Whether packets may overtake each other (as with the jitter of ns-3 and tc-netem); otherwise a packet arrives
            no earlier than those sent before it.
    """

    distribution: str = field(default="uniform", metadata=choice(DISTRIBUTIONS, core="distribution"))
    scale_ms: float = field(metadata=number(0, MAX_DELAY_MS, core="scale_ns", convert=_scale_to_ns))
    mean_ms: float = field(default=0.0, metadata=number(0, MAX_DELAY_MS, core="mean_ns", convert=_scale_to_ns))
    shape: float = field(default=3.0, metadata=number(MIN_SHAPE, MAX_SHAPE, core="shape"))
    correlation: float = field(default=0.0, metadata=number(0, MAX_CORRELATION, core="correlation"))
    reorder: bool = field(default=False, metadata=boolean(core="reorder"))

    def __post_init__(self) -> None:
        check_fields(self, "jitter.")
        if self.mean_ms and self.distribution != "normal":
            raise ScenarioError(f"jitter.mean_ms = {self.mean_ms:g} of {self.distribution}; valid: 0, or distribution='normal'")


def check_delay(field: str, value: object) -> float | DelaySchedule:
    """Check a propagation delay: a number of ms or a schedule."""
    return value if isinstance(value, DelaySchedule) else checks.number(field, value, 0, MAX_DELAY_MS)


def check_loss(field: str, value: object) -> float | LossSchedule:
    """Check a loss probability: a number below 1 or a schedule."""
    if isinstance(value, LossSchedule):
        return value
    loss = checks.number(field, value, 0, 1)
    if loss == 1:
        raise ScenarioError(f"{field} = 1 lets nothing pass; valid: 0 to below 1")
    return loss


def _check_numbers(field: str, values: object, low: float, high: float) -> np.ndarray:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{field} = {quote(values)} is not a list; valid: a list of numbers")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        if array.size and array.dtype.kind not in "fiu":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ScenarioTypeError(f"{field} = {quote(values)} is not a list of numbers") from None
    if array.ndim != 1 or not array.size:
        raise ScenarioError(f"{field} has shape {array.shape}; valid: one dimension, at least one number")
    bad = np.flatnonzero(~((array >= low) & (array <= high)))
    if len(bad):
        i = int(bad[0])
        raise ScenarioError(f"{field}[{i}] = {array[i]:g} is out of range; valid: {low:g} to {high:g}")
    array.setflags(write=False)
    return array
