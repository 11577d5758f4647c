"""The settings of a host that are tuned together: read, wished for, and kept within what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from netbuf_gym.errors import ConfigError
from netbuf_gym.live.fence import Pace
from netbuf_gym.live.settings import KNOBS, Knob, Ring, Setting, SettingError, Sysctl, Value, changed, ring_knob
from netbuf_gym.nearest import instead
from netbuf_gym.plants.linux.sysctls import KINDS, TRIPLE

Values = dict[str, Value]
"""Of settings, by name."""

RISING = frozenset(name for name, kind in KINDS.items() if kind.labels == TRIPLE)
"""Settings of which each number is at most the next."""


def setting_of(name: str) -> Setting:
    """The setting of a name, as journals have it."""
    ring = name.removeprefix("ring of ")
    return Ring(ring) if ring != name else Sysctl(name)


class HostSettings:
    """Settings, and the knobs that turn them.

    Args:
        settings: all of them; those that no knob turns are left out.
        ranges: by control, where another than the knob's own is allowed.

    Raises:
        ConfigError: a range of a control that there is not, or is not among these, or an empty one.
    """

    def __init__(self, settings: Iterable[Setting], ranges: Mapping[str, tuple[int, int]] | None = None):
        given = {setting.name: setting for setting in settings}
        knobs = dict(KNOBS)
        for setting in given.values():
            if isinstance(setting, Ring):
                knobs["ring_packets"] = ring_knob(setting)
        for control, (low, high) in (ranges or {}).items():
            if control not in knobs and control != "ring_packets":
                raise ConfigError(f"range of {control!r}: there is no such control here; {instead(control, knobs)}")
            if not 1 <= low <= high <= 2**32 - 1:
                raise ConfigError(f"range of {control} = {low}:{high}; valid: LOW:HIGH with 1 <= LOW <= HIGH <= {2**32 - 1}")
            if control in knobs:
                knobs[control] = replace(knobs[control], low=low, high=high)
        self.knobs = {name: knob for name, knob in knobs.items() if all(place in given for place, _ in knob.places)}
        self._places = {name: [place for place, _ in knob.places] for name, knob in knobs.items()}
        for control, (low, high) in (ranges or {}).items():
            self.require(control, f"range of {control} = {low}:{high} would do nothing")
        used = {place for knob in self.knobs.values() for place, _ in knob.places}
        self.settings = {name: setting for name, setting in given.items() if name in used}

    def require(self, control: str, what: str) -> None:
        """Raises ConfigError, which begins so, where nothing is tuned that a control turns."""
        if control in self.knobs:
            return
        if control not in self._places:
            raise ConfigError(f"{what}: no ring is tuned; valid: --ring DEVICE beside it, or another control")
        needed = " and ".join(self._places[control])
        valid = ", ".join(self.knobs) or "none of these settings has one"
        raise ConfigError(f"{what}: {needed} {'are' if ' and ' in needed else 'is'} not tuned here; valid controls: {valid}")

    def read(self) -> Values:
        """What is in force; raises SettingError."""
        return {name: setting.read() for name, setting in self.settings.items()}

    def telemetry(self, values: Values) -> dict[str, float]:
        """What is in force, by the names that agents know it by; of two places the lesser one."""
        found = {}
        for control, knob in self.knobs.items():
            present = [values[name][index] for name, index in knob.places if name in values]
            if present:
                found[control] = float(min(present))
        return found

    def wished(self, values: Values, controls: Mapping[str, float], pace: Pace, time_s: float, kept: Sequence[str]) -> Values:
        """The settings that controls ask for and that are allowed, of those that would change.

        Args:
            kept: names of settings that are not to be changed.
        """
        parts: dict[str, dict[int, int]] = {}
        for control, wanted in controls.items():
            knob = self.knobs.get(control)
            if knob is None or not math.isfinite(wanted):
                continue
            for name, index in knob.places:
                if name in values and name not in kept:
                    parts.setdefault(name, {})[index] = self._allowed(knob, name, index, values[name], wanted, pace, time_s)
        found = {}
        for name, wishes in parts.items():
            value = _ordered(name, changed(values[name], wishes))
            if value != values[name]:
                found[name] = value
        return found

    def _allowed(self, knob: Knob, name: str, index: int, now: Value, wanted: float, pace: Pace, time_s: float) -> int:
        low, high = self.settings[name].limits(index)
        if name in RISING:
            low = max(low, now[0])
        low, high = max(low, knob.low), min(high, knob.high)
        aim = round(min(max(wanted, low), max(low, high)))
        if (wanted - now[index]) * (aim - now[index]) <= 0:  # what is out of range and to go further stays
            return now[index]
        return pace.clipped((name, index), now[index], aim, time_s)


def _ordered(name: str, value: Value) -> Value:
    """A value whose default is at most its maximum: the default gives way."""
    if name not in RISING:
        return value
    least, default, most = value
    return least, min(max(default, least), most), most


def usable(settings: Iterable[Setting], write: bool) -> tuple[list[Setting], list[str]]:
    """Of settings those that can be read (and written, where they are to be), and why the others cannot."""
    good, why = [], []
    for setting in settings:
        try:
            setting.read()
            if write:
                setting.require_writable()
            good.append(setting)
        except SettingError as error:
            why.append(str(error))
    return good, why
