"""Safeguards of tuning: allowed ranges, how fast a setting may change, and the watchdog."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netbuf_gym.utils.arguments import check_real

LEAST_SAMPLES = 3
"""Intervals that usual throughput and latency need before anything is called worse than usual."""
BUSY_SHARE = 0.1
"""Share of an interval that connections must have been busy for, in sum, for the interval to tell anything of the network."""


def check_factor(name: str, value: float) -> float:
    """Return a factor above 1, at most 1000; raises ConfigError, with the value's name."""
    return check_real(name, value, 1.0, 1000.0, low_open=True)


def check_seconds(name: str, value: float) -> float:
    """Return seconds, 0 to 86400; raises ConfigError, with the value's name."""
    return check_real(name, value, 0.0, 86400.0)


class ChangeRateLimit:
    """Limit on how fast settings may change: within any `per_s` seconds the greatest value over the least is at most `factor`.

    Args:
        factor: above 1 to 1000.
        per_s: 0 to 86400; 0: no limit.

    Raises:
        ConfigError: out of range.
    """

    def __init__(self, factor: float = 2.0, per_s: float = 10.0):
        self.factor = check_factor("factor", factor)
        self.per_s = check_seconds("per_s", per_s)
        self._past: dict[Hashable, deque[tuple[float, int]]] = {}

    def clip(self, place: Hashable, now: int, wanted: int, time_s: float) -> int:
        """Return the value nearest to `wanted` that a place may take at a time, `now` being its present value."""
        if self.per_s == 0:
            return wanted
        past = self._past.setdefault(place, deque())
        while past and past[0][0] <= time_s - self.per_s:
            past.popleft()
        held = [now, *(value for _, value in past)]
        low, high = math.ceil(max(held) / self.factor), math.floor(min(held) * self.factor)
        return min(max(wanted, low), high) if low <= high else now

    def record_value(self, place: Hashable, before: int, time_s: float) -> None:
        """Record that a place had this value until now."""
        self._past.setdefault(place, deque()).append((time_s, before))


@dataclass
class UsualPerformance:
    """Usual throughput and latency: running means that forget with time.

    Attributes:
        memory_s: time in which an old value fades to a third.
        count: number of intervals taken.
    """

    memory_s: float
    count: int = 0
    rate_bps: float = math.nan
    latency_s: float = math.nan

    def update(self, rate_bps: float, latency_s: float, elapsed_s: float) -> None:
        """Add an interval to the means."""
        self.count += 1
        share = max(1 / self.count, min(elapsed_s / self.memory_s, 1.0))
        self.rate_bps = _blend(self.rate_bps, rate_bps, share)
        self.latency_s = _blend(self.latency_s, latency_s, share)


def _blend(old: float, new: float, share: float) -> float:
    return new if math.isnan(old) else old if math.isnan(new) else old + share * (new - old)


@dataclass
class Watchdog:
    """Watchdog that detects when throughput or latency becomes worse than usual and asks for the last good settings.

    Throughput is that of busy connections, so that users who want less are no reason: only intervals that tell something add up
    to anything. Settings are good once nothing was worse for as long as it takes to call something worse. If it is worse
    although the last good settings are in force, the network has changed: what is usual is learnt anew.

    Args:
        factor: by which throughput is less, or latency more, than usual, above 1 to 1000.
        hold_s: time worse than usual, in intervals that tell something, none of them better, before the watchdog acts, 0 to
            86400.
        pause_s: time for which nothing is tuned after that, 0 to 86400.
        memory_s: memory of the usual values, 1 to 86400.

    Raises:
        ConfigError: out of range.
    """

    factor: float = 2.0
    hold_s: float = 15.0
    pause_s: float = 60.0
    memory_s: float = 300.0
    good: Mapping[str, Any] = field(default_factory=dict, init=False)
    why: str = field(default="", init=False)

    def __post_init__(self) -> None:
        check_factor("factor", self.factor)
        check_seconds("hold_s", self.hold_s)
        check_seconds("pause_s", self.pause_s)
        check_real("memory_s", self.memory_s, 1.0, 86400.0)
        self._usual = UsualPerformance(self.memory_s)
        self._worse_s = self._well_s = 0.0
        self._paused_until = math.nan
        self._settings: Mapping[str, Any] = {}

    def start(self, settings: Mapping[str, Any]) -> None:
        """Start with the settings that are in force, by name."""
        self.good = self._settings = dict(settings)

    def is_paused(self, time_s: float) -> bool:
        """Return whether tuning is paused at this time."""
        return time_s < self._paused_until

    def judge(self, telemetry: Mapping[str, float], settings: Mapping[str, Any], time_s: float) -> Mapping[str, Any]:
        """Return the settings to restore, of those that are not as they were when all was well; empty: all is well.

        Args:
            telemetry: telemetry of an interval.
            settings: settings in force during the interval, those that are tuned: what others have taken over is left out from
                then on.
            time_s: end of the interval.
        """
        elapsed_s = telemetry["elapsed_s"]
        if settings != self._settings:
            self._settings, self._well_s = dict(settings), 0.0
        self.why = ""
        if telemetry["busy_s"] < BUSY_SHARE * elapsed_s:
            return {}
        rate_bps, latency_s = 8 * telemetry["sent_bytes"] / telemetry["busy_s"], telemetry["latency_s"]
        worse = self._worse(rate_bps, latency_s)
        if not worse:
            self._worse_s = 0.0
            self._usual.update(rate_bps, latency_s, elapsed_s)
            self._well_s += elapsed_s
            if self._well_s >= self.hold_s:
                self.good = self._settings
            return {}
        self._well_s = 0.0
        self._worse_s += elapsed_s
        if self._worse_s < self.hold_s:
            return {}
        self._worse_s = 0.0
        restored = {name: good for name, good in self.good.items() if settings.get(name, good) != good}
        if not restored:
            self._usual = UsualPerformance(self.memory_s)
            self.why = f"{worse} with settings that were good: the network has changed, what is usual is learnt anew"
            return {}
        self._paused_until = time_s + self.pause_s
        self.why = f"{worse} for {self.hold_s:g} s: nothing is tuned for {self.pause_s:g} s"
        return restored

    def _worse(self, rate_bps: float, latency_s: float) -> str:
        """Return what is worse than usual, in words; empty: nothing."""
        if self._usual.count < LEAST_SAMPLES:
            return ""
        if rate_bps * self.factor < self._usual.rate_bps:
            return f"throughput is {rate_bps * 1e-6:.3g} Mbit/s where {self._usual.rate_bps * 1e-6:.3g} is usual"
        if latency_s > self._usual.latency_s * self.factor:
            return f"latency is {latency_s * 1e3:.3g} ms where {self._usual.latency_s * 1e3:.3g} is usual"
        return ""
