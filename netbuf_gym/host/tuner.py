"""The loop of `netbuf-gym live tune`: measures, decides, and sets, or only says what it would set."""

from __future__ import annotations

import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from netbuf_gym.host.decider import Decider
from netbuf_gym.host.journal import ForeignChangeError, Journal
from netbuf_gym.host.rate_limits import ChangeRateLimit, Watchdog
from netbuf_gym.host.settings import Value, format_value
from netbuf_gym.host.targets import HostSettings, Values
from netbuf_gym.utils.arguments import check_real

LOOKS, LOOK_S = 8, 0.5
"""Least number of looks at the connections in an interval, and greatest number of seconds between two."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Meter(Protocol):
    """Protocol of meters of connections (`netbuf_gym.plants.linux.host_meter.HostMeter`)."""

    def look(self) -> object: ...

    def measure(self) -> dict[str, float]: ...


@dataclass(frozen=True)
class Change:
    """One setting that was, or would be, changed: the values before and after, and the reason."""

    name: str
    before: Value
    after: Value
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {format_value(self.before)} -> {format_value(self.after)}"


@dataclass(frozen=True)
class Step:
    """One interval: its end, the measurements, the settings then in force, the changes made, and further notes."""

    time_s: float
    telemetry: dict[str, float]
    values: Values
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Tuner:
    """Tuner of a host's settings, interval by interval.

    Args:
        host: the settings.
        decider: decides on controls.
        meter: measures connections.
        journal: records changes; None: nothing is set, only reported.
        pace, watchdog: limits on changes.
        interval_s: time between decisions, 0.05 to 3600.
        clock: a clock of monotonic seconds.
    """

    host: HostSettings
    decider: Decider
    meter: Meter
    journal: Journal | None = None
    pace: ChangeRateLimit = field(default_factory=ChangeRateLimit)
    watchdog: Watchdog = field(default_factory=Watchdog)
    interval_s: float = 5.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        check_real("interval_s", self.interval_s, 0.05, 3600.0)
        self.left_alone: list[str] = []
        self._begin_s = self.clock()
        self._expected = self.host.read()
        self.watchdog.start(self._expected)

    def step(self) -> Step:
        """End an interval: measure, decide, set. Raises SettingError where a setting cannot be read, or set any more."""
        time_s = self.clock() - self._begin_s
        values = self.host.read()
        notes = self._exclude_foreign(values)
        telemetry = {**self.meter.measure(), **self.host.telemetry(values)}
        tuned = {name: value for name, value in values.items() if name not in self.left_alone}
        wishes, why = dict(self.watchdog.judge(telemetry, tuned, time_s)), "the last good setting"
        restores = bool(wishes)
        if not restores:
            controls = self.decider.decide(telemetry)
            paused = self.watchdog.is_paused(time_s)
            wishes = {} if paused else self.host.plan_changes(values, controls, self.pace, time_s, self.left_alone)
            why = self.decider.name
        changes = [Change(name, values[name], value, why) for name, value in wishes.items()]
        if self.journal is not None:
            changes = [done for change in changes if (done := self._make_change(change, time_s, notes)) is not None]
        if self.watchdog.why:
            notes.append(self.watchdog.why + (", the last good settings are restored" if restores and changes else ""))
        return Step(time_s, telemetry, values, tuple(changes), tuple(notes))

    def _exclude_foreign(self, values: Values) -> list[str]:
        """Exclude settings that somebody else has changed from tuning, and return notes on them."""
        notes = []
        for name, value in values.items():
            if name in self.left_alone or value == self._expected[name]:
                continue
            if self.journal is not None and name in self.journal.entries:
                self.journal.changed_by_others(self.host.settings[name])
            self.left_alone.append(name)
            was = format_value(self._expected[name])
            notes.append(f"{name} is {format_value(value)}, which somebody else has set (it was {was}): no longer tuned")
        self._expected.update({name: values[name] for name in self.left_alone})
        return notes

    def _make_change(self, change: Change, time_s: float, notes: list[str]) -> Change | None:
        """Set one setting; return the change as made, None where somebody else has changed the setting."""
        assert self.journal is not None
        setting = self.host.settings[change.name]
        try:
            became = self.journal.set(setting, setting.check_value(change.after))
        except ForeignChangeError as error:
            self.left_alone.append(change.name)
            notes.append(str(error))
            return None
        self._expected[change.name] = became
        for index, (before, after) in enumerate(zip(change.before, became, strict=True)):
            if before != after:
                self.pace.record_value((change.name, index), before, time_s)
        return Change(change.name, change.before, became, change.why)

    def run(self, each: Callable[[Step], None], ended: EndSignal, duration_s: float = math.inf) -> None:
        """Step until the duration is over, or a signal ends the run. The caller restores the settings."""
        end_s = self._begin_s + duration_s
        due_s = self._begin_s + self.interval_s
        while due_s <= end_s + 1e-3:
            self._wait(ended, due_s)
            if ended.number:
                return
            each(self.step())
            due_s = max(due_s + self.interval_s, self.clock())

    def _wait(self, ended: EndSignal, until_s: float) -> None:
        """Look at connections now and then, until a time or a signal."""
        while not ended.number and (left_s := until_s - self.clock()) > 0:
            ended.wait(min(left_s, LOOK_S, self.interval_s / LOOKS))
            self.meter.look()


class EndSignal:
    """Flag set by a signal that ends the run: the signal's number, else 0."""

    def __init__(self) -> None:
        self.number = 0
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.number = number
        os.write(self._write, b".")

    def wait(self, seconds: float) -> None:
        """Return after this time, or when the signal comes."""
        select.select([self._read], [], [], seconds)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)


@contextmanager
def catch_end_signals() -> Iterator[EndSignal]:
    """Turn signals that would end the process into a flag; in other threads than the main one no signal is received."""
    ended, before = EndSignal(), {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, ended.receive)
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        ended.close()
