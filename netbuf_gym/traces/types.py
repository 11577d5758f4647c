"""Time-varying capacity: a rate that changes in steps, or the times at which packets may leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.utils import checks

OPPORTUNITY_BYTES = 1504
"""Size of one delivery opportunity: Mahimahi's packet, 1500 bytes and the 4 bytes of its TUN header."""
TUN_HEADER_BYTES = 4
"""Bytes beside its own that Mahimahi's link shell counts of every packet: its TUN device's packet information."""

MIN_RATE_MBPS = 1e-6
"""Lowest rate above 0: 1 bit/s."""
MAX_RATE_MBPS = 1e6
MAX_TIME_S = 1e6
MAX_STEPS = 10_000_000
"""Largest number of steps of a generated rate."""
MAX_SPLIT = 30_000_000
"""Largest number of milliseconds, and of steps, of a rate that is converted to deliveries."""
MAX_OPPORTUNITIES = 100_000_000
"""Largest number of generated deliveries."""


@dataclass(frozen=True, eq=False)
class RateTrace:
    """Stepped rate: `rate_mbps[i]` holds from `time_s[i]` to the next time, for the packet in service too
    (with `stack="ns3"` that packet keeps the rate at which it began, as ns-3's do).

    Args:
        time_s: Start of each step, seconds, strictly rising from 0, at most 1e6. Shape (steps,).
        rate_mbps: Rate of each step, Mbit/s, 0 (an outage) or 1e-6 to 1e6, at least one above 0. Shape (steps,).
        period_s: Time after which the trace repeats, seconds, above the last time; None: the last rate holds.
        name: Label, e.g. the name of the trace's file.

    Raises:
        ScenarioError: A value that is not finite or out of range, times not rising, lengths that differ.
    """

    time_s: np.ndarray
    rate_mbps: np.ndarray
    period_s: float | None = None
    name: str = ""

    if TYPE_CHECKING:  # lists become arrays

        def __init__(self, time_s: ArrayLike, rate_mbps: ArrayLike, period_s: float | None = None, name: str = "") -> None: ...

    def __post_init__(self) -> None:
        time_s = _check_numbers("time_s", self.time_s)
        rate = _check_numbers("rate_mbps", self.rate_mbps)
        if len(time_s) != len(rate):
            raise ScenarioError(f"rate_mbps has {len(rate)} values for {len(time_s)} in time_s; valid: as many")
        _check_range("time_s", time_s, 0, MAX_TIME_S)
        bad = np.flatnonzero((rate != 0) & ~((rate >= MIN_RATE_MBPS) & (rate <= MAX_RATE_MBPS)))
        if len(bad):
            i, valid = int(bad[0]), f"0 (an outage), or {MIN_RATE_MBPS:g} to {MAX_RATE_MBPS:g}"
            raise ScenarioError(f"rate_mbps[{i}] = {rate[i]:g} is out of range; valid: {valid}")
        if time_s[0] != 0:
            raise ScenarioError(f"time_s[0] = {time_s[0]:g}; valid: 0, the start of the trace")
        fall = np.flatnonzero(np.diff(time_s) <= 0)
        if len(fall):
            i = int(fall[0]) + 1
            raise ScenarioError(f"time_s[{i}] = {time_s[i]:g} is not after {time_s[i - 1]:g}; valid: rising times")
        if not rate.any():
            raise ScenarioError("rate_mbps is 0 throughout; valid: at least one rate above 0")
        if self.period_s is not None:
            period = checks.number("period_s", self.period_s, 0, MAX_TIME_S, low_open=True)
            if period <= time_s[-1]:
                raise ScenarioError(f"period_s = {period:g} is not above the last time_s, {time_s[-1]:g}")
            object.__setattr__(self, "period_s", period)
        elif rate[-1] == 0:
            raise ScenarioError("rate_mbps ends in 0, which would hold for ever; valid: a last rate above 0, or period_s")
        object.__setattr__(self, "time_s", _freeze(time_s))
        object.__setattr__(self, "rate_mbps", _freeze(rate))
        checks.text("name", self.name)

    @property
    def duration_s(self) -> float:
        """Seconds until the trace repeats, or without a period until the last step begins."""
        return self.period_s if self.period_s is not None else float(self.time_s[-1])

    @property
    def peak_mbps(self) -> float:
        """Highest rate, Mbit/s."""
        return float(self.rate_mbps.max())

    @property
    def longest_gap_s(self) -> float:
        """Longest time at rate 0, seconds, repetitions included."""
        held = self._compute_step_lengths()
        if self.period_s is None:
            return _find_longest_run(self.rate_mbps == 0, held)
        return min(_find_longest_run(np.tile(self.rate_mbps == 0, 2), np.tile(held, 2)), self.period_s)

    def rate_at_mbps(self, time_s: np.ndarray | float) -> np.ndarray:
        """Return the rate at each time, Mbit/s. Same shape as `time_s`."""
        t = np.asarray(time_s, np.float64)
        if self.period_s is not None:
            t = np.mod(t, self.period_s)
        return self.rate_mbps[np.searchsorted(self.time_s, t, side="right") - 1]

    def mean_mbps(self, duration_s: float | None = None) -> float:
        """Return the mean rate over the first `duration_s` seconds, Mbit/s.

        None: over one period; without a period, until the last step begins, or the last step's rate if all earlier steps are
        outages.
        """
        if duration_s is None:
            return self.mean_mbps(self.duration_s) or float(self.rate_mbps[-1])
        if duration_s <= 0:
            return float(self.rate_mbps[0])
        if self.period_s is None:
            ends = np.append(self.time_s[1:], max(duration_s, self.time_s[-1]))
            held = np.clip(np.minimum(ends, duration_s) - self.time_s, 0, None)
            return float(held @ self.rate_mbps / duration_s)
        whole, rest = divmod(duration_s, self.period_s)
        ends = np.append(self.time_s[1:], self.period_s)
        held = (ends - self.time_s) * whole + np.clip(np.minimum(ends, rest) - self.time_s, 0, None)
        return float(held @ self.rate_mbps / duration_s)

    def compute_carrying_s(self, size_bytes: float, start_s: float = 0.0) -> float:
        """Return the time in seconds to carry `size_bytes` from `start_s` on."""
        if size_bytes <= 0:
            return 0.0
        held = self._compute_step_lengths()
        carried = np.append(0.0, np.cumsum(held * self.rate_mbps))  # Mbit, up to each step and up to the end
        phase = start_s if self.period_s is None else start_s % self.period_s
        step = int(np.searchsorted(self.time_s, phase, side="right")) - 1
        target = carried[step] + (phase - self.time_s[step]) * self.rate_mbps[step] + size_bytes * 8e-6
        repeats_s = 0.0
        if self.period_s is not None:
            rounds = max(0, int(np.ceil(target / carried[-1])) - 1)
            target = min(target - rounds * carried[-1], carried[-1])
            repeats_s = rounds * self.period_s
        last = max(int(np.searchsorted(carried[:-1], target)) - 1, 0)
        end_s = self.time_s[last] + (target - carried[last]) / self.rate_mbps[last]
        return float(end_s - phase) + repeats_s

    def to_deliveries(self, duration_s: float | None = None) -> DeliveryTrace:
        """Convert the rate to delivery opportunities over `duration_s` seconds, to the millisecond, as in Mahimahi.

        Raises:
            ScenarioError: No opportunity in that time, or too many.
        """
        if duration_s is None:
            duration_s = self.duration_s
        duration_s = checks.number("duration_s", duration_s, 0, MAX_TIME_S, low_open=True)
        self._check_deliveries(duration_s)
        edges = np.arange(round(duration_s * 1000) + 1) / 1000
        if len(edges) < 2:
            raise ScenarioError(f"duration_s = {duration_s:g} is not one millisecond; valid: 0.001 or more")
        fine = np.union1d(edges, self._find_step_starts(duration_s))
        carried = np.cumsum(np.diff(fine) * self.rate_at_mbps((fine[:-1] + fine[1:]) / 2)) * 1e6 / 8
        at_edge = np.interp(edges[1:], fine[1:], carried)
        count = np.floor(at_edge / OPPORTUNITY_BYTES + 1e-9).astype(np.int64)
        time_ms = np.repeat(np.arange(1, len(count) + 1), np.diff(count, prepend=0))
        if not len(time_ms):
            raise ScenarioError(f"rate_mbps delivers no packet within {duration_s:g} s; valid: at least one")
        return DeliveryTrace(time_ms, period_ms=len(count), name=self.name)

    def _check_deliveries(self, duration_s: float) -> None:
        """Raise ScenarioError if the conversion to deliveries would not fit into memory."""
        rounds = 1.0 if self.period_s is None else duration_s / self.period_s + 1
        packets = self.mean_mbps(duration_s) * duration_s * 1e6 / 8 / OPPORTUNITY_BYTES
        for count, most, what in (
            (duration_s * 1000, MAX_SPLIT, "milliseconds"),
            (rounds * len(self.time_s), MAX_SPLIT, "steps"),
            (packets, MAX_OPPORTUNITIES, "opportunities"),
        ):
            if count > most:
                raise ScenarioError(f"duration_s = {duration_s:g} makes {count:.4g} {what}; valid: at most {most:.0e}")

    def _compute_step_lengths(self) -> np.ndarray:
        end = self.period_s if self.period_s is not None else self.time_s[-1]
        return np.diff(np.append(self.time_s, end))

    def _find_step_starts(self, duration_s: float) -> np.ndarray:
        if self.period_s is None:
            return self.time_s[self.time_s < duration_s]
        rounds = np.arange(int(duration_s // self.period_s) + 1)[:, None] * self.period_s
        breaks = (rounds + self.time_s).ravel()
        return breaks[breaks < duration_s]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RateTrace):
            return NotImplemented
        return (self.period_s, self.name) == (other.period_s, other.name) and (
            np.array_equal(self.time_s, other.time_s) and np.array_equal(self.rate_mbps, other.rate_mbps)
        )

    def __hash__(self) -> int:
        return hash((self.time_s.tobytes(), self.rate_mbps.tobytes(), self.period_s, self.name))


@dataclass(frozen=True, eq=False)
class DeliveryTrace:
    """Delivery opportunities, as in Mahimahi: at each time of `time_ms`, up to 1504 bytes may leave; unused ones are lost.

    Args:
        time_ms: Times in milliseconds, rising, repeats allowed, 0 to 1e9. Shape (opportunities,).
        period_ms: Time after which the trace repeats, milliseconds, above 0, at least the last time; None: the last time,
            as in Mahimahi.
        name: Label, e.g. the name of the trace's file.
        packet_overhead_bytes: Bytes that each packet takes beside its own, 0 to 1000: 4 as Mahimahi replays a trace, so
            that a packet of 1500 bytes fills an opportunity.

    Raises:
        ScenarioError: A value that is not finite or out of range, or times that fall.
    """

    time_ms: np.ndarray
    period_ms: float = None  # type: ignore[assignment]  # None becomes the last time
    name: str = ""
    packet_overhead_bytes: int = 0

    if TYPE_CHECKING:

        def __init__(
            self, time_ms: ArrayLike, period_ms: float | None = None, name: str = "", packet_overhead_bytes: int = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        time_ms = _check_numbers("time_ms", self.time_ms)
        _check_range("time_ms", time_ms, 0, MAX_TIME_S * 1e3)
        fall = np.flatnonzero(time_ms[1:] < time_ms[:-1])
        if len(fall):
            i = int(fall[0]) + 1
            raise ScenarioError(f"time_ms[{i}] = {time_ms[i]:g} is before {time_ms[i - 1]:g}; valid: times that do not fall")
        period = float(time_ms[-1]) if self.period_ms is None else self.period_ms
        period = checks.number("period_ms", period, 0, MAX_TIME_S * 1e3, low_open=True)
        if period < time_ms[-1]:
            raise ScenarioError(f"period_ms = {period:g} is below the last time_ms, {time_ms[-1]:g}")
        object.__setattr__(self, "time_ms", _freeze(time_ms))
        object.__setattr__(self, "period_ms", period)
        checks.text("name", self.name)
        overhead = checks.integer("packet_overhead_bytes", self.packet_overhead_bytes, 0, 1000)
        object.__setattr__(self, "packet_overhead_bytes", overhead)

    @property
    def duration_s(self) -> float:
        """Seconds until the trace repeats."""
        return self.period_ms / 1e3

    @property
    def peak_mbps(self) -> float:
        """Highest mean rate over an aligned span of 100 ms, Mbit/s; at least the mean, which applies to shorter traces."""
        return max(float(self._count_opportunities(0.1).max()) * OPPORTUNITY_BYTES * 8 / 1e5, self.mean_mbps())

    @property
    def longest_gap_s(self) -> float:
        """Longest time without an opportunity, seconds, across the repetition too."""
        around = self.time_ms[0] + self.period_ms - self.time_ms[-1]
        return float(max(np.diff(self.time_ms).max(initial=0), around)) / 1e3

    def mean_mbps(self, duration_s: float | None = None) -> float:
        """Return the mean capacity over the first `duration_s` seconds, Mbit/s; None: over one period."""
        if duration_s is None:
            return len(self.time_ms) * OPPORTUNITY_BYTES * 8 / (self.period_ms * 1e3)
        whole, rest = divmod(duration_s * 1e3, self.period_ms)
        count = whole * len(self.time_ms) + np.searchsorted(self.time_ms, rest, side="right")
        return float(count) * OPPORTUNITY_BYTES * 8 / (duration_s * 1e6)

    def compute_carrying_s(self, size_bytes: float, start_s: float = 0.0) -> float:
        """Return the time in seconds to carry `size_bytes` from `start_s` on, an opportunity at that moment included."""
        if size_bytes <= 0:
            return 0.0
        start_ms, count = start_s * 1e3, len(self.time_ms)
        round_ = max(0, int(np.ceil(start_ms / self.period_ms)) - 1)
        first = round_ * count + int(np.searchsorted(self.time_ms, start_ms - round_ * self.period_ms))
        rounds, index = divmod(first + int(np.ceil(size_bytes / OPPORTUNITY_BYTES)) - 1, count)
        return max(0.0, float(rounds * self.period_ms + self.time_ms[index] - start_ms) / 1e3)

    def to_rates(self, step_s: float = 0.1) -> RateTrace:
        """Convert to the mean rate in each step of `step_s` seconds, for plots and schedules, with the same period.

        The last step is the remainder of the period; a step longer than the period gives one step with the mean.
        """
        step_s = checks.number("step_s", step_s, 0, MAX_TIME_S, low_open=True)
        counts = self._count_opportunities(step_s)
        time_s = np.arange(len(counts)) * step_s
        held = np.full(len(counts), step_s)
        held[-1] = self.duration_s - time_s[-1]
        rate = counts * OPPORTUNITY_BYTES * 8 / (held * 1e6)
        return RateTrace(time_s, rate, period_s=self.duration_s, name=self.name)

    def to_mahimahi(self) -> DeliveryTrace:
        """Return the trace as a Mahimahi file can hold it: whole milliseconds, and an opportunity at the period's end.

        Such a file repeats after its last time. Where this trace ends without an opportunity, as in an outage, its last one
        moves to the end: length and mean stay.
        """
        time_ms = np.ceil(self.time_ms - 1e-6)
        time_ms[-1] = max(round(self.period_ms), time_ms[-1], 1)
        return replace(self, time_ms=time_ms, period_ms=float(time_ms[-1]))

    def _count_opportunities(self, step_s: float) -> np.ndarray:
        """Count the opportunities in each step; the last step ends with the period."""
        count = np.ceil(self.duration_s / step_s - 1e-9)
        if not count <= MAX_STEPS:
            made = f"{count:.4g} steps of {self.duration_s:g} s"
            raise ScenarioError(f"step_s = {step_s:g} makes {made}; valid: at most {MAX_STEPS}")
        steps = max(1, int(count))
        bins = np.minimum((self.time_ms / (step_s * 1e3)).astype(np.int64), steps - 1)
        return np.bincount(bins, minlength=steps)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeliveryTrace):
            return NotImplemented
        mine, others = ((one.period_ms, one.name, one.packet_overhead_bytes) for one in (self, other))
        return mine == others and np.array_equal(self.time_ms, other.time_ms)

    def __hash__(self) -> int:
        return hash((self.time_ms.tobytes(), self.period_ms, self.name, self.packet_overhead_bytes))


Trace = RateTrace | DeliveryTrace


def _check_numbers(field: str, values: Iterable) -> np.ndarray:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{field} = {quote(values)} is not a list; valid: a list of numbers")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        if array.dtype.kind not in "fiu" and array.size:
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ScenarioTypeError(f"{field} = {quote(values)} is not a list of numbers") from None
    if array.ndim != 1:
        raise ScenarioError(f"{field} has shape {array.shape}; valid: one dimension")
    if not array.size:
        raise ScenarioError(f"{field} is empty; valid: at least one number")
    return array


def _check_range(field: str, values: np.ndarray, low: float, high: float) -> None:
    if not (values.min() >= low and values.max() <= high):
        bad = np.flatnonzero(~((values >= low) & (values <= high)))
        i = int(bad[0])
        raise ScenarioError(f"{field}[{i}] = {values[i]:g} is out of range; valid: {low:g} to {high:g}")


def _freeze(array: np.ndarray) -> np.ndarray:
    """Make an array read-only and return it; the caller must own it."""
    array.setflags(write=False)
    return array


def _find_longest_run(zero: np.ndarray, held_s: np.ndarray) -> float:
    longest = run = 0.0
    for is_zero, held in zip(zero, held_s, strict=True):
        run = run + float(held) if is_zero else 0.0
        longest = max(longest, run)
    return longest
