"""The settings of a host that are tuned together: reading, targets, and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from netbuf_gym.errors import ConfigError
from netbuf_gym.host.rate_limits import ChangeRateLimit
from netbuf_gym.host.settings import KNOBS, Knob, Ring, Setting, SettingError, Sysctl, Value, make_ring_knob, replace_numbers
from netbuf_gym.plants.linux.sysctls import KINDS, TRIPLE
from netbuf_gym.utils.suggestions import suggest_valid

Values = dict[str, Value]
"""Values of settings, by name."""

RISING = frozenset(name for name, kind in KINDS.items() if kind.labels == TRIPLE)
"""Settings of which each number is at most the next."""


def make_setting(name: str) -> Setting:
    """Create the setting of a name, as journals have it."""
    ring = name.removeprefix("ring of ")
    return Ring(ring) if ring != name else Sysctl(name)


class HostSettings:
    """Settings, and the knobs that turn them.

    Args:
        settings: all settings; those that no knob turns are left out.
        ranges: ranges by control, where another than the knob's own is allowed.

    Raises:
        ConfigError: a range of a control that does not exist, or is not among these, or one that is empty or that holds nothing
            that a setting takes. SettingError: a setting that cannot be read.
    """

    def __init__(self, settings: Iterable[Setting], ranges: Mapping[str, tuple[int, int]] | None = None):
        given = {setting.name: setting for setting in settings}
        knobs = dict(KNOBS)
        for setting in given.values():
            if isinstance(setting, Ring):
                knobs["ring_packets"] = make_ring_knob(setting)
        for control, (low, high) in (ranges or {}).items():
            if control not in knobs and control != "ring_packets":
                raise ConfigError(f"range of {control!r}: there is no such control here; {suggest_valid(control, knobs)}")
            if not 1 <= low <= high <= 2**32 - 1:
                raise ConfigError(f"range of {control} = {low}:{high}; valid: LOW:HIGH with 1 <= LOW <= HIGH <= {2**32 - 1}")
            if control in knobs:
                knobs[control] = replace(knobs[control], low=low, high=high)
        self.knobs = {name: knob for name, knob in knobs.items() if all(place in given for place, _ in knob.places)}
        self._places = {name: [place for place, _ in knob.places] for name, knob in knobs.items()}
        for control, (low, high) in (ranges or {}).items():
            self.require(control, f"range of {control} = {low}:{high} would do nothing")
            for place, index in self.knobs[control].places:
                least, most = self._bounds(given[place], index, given[place].read())
                if high < least or low > most:
                    why = f"holds nothing that {_name_number(given[place], index)} takes"
                    raise ConfigError(f"range of {control} = {low}:{high} {why}; valid: within {least}:{most}")
        used = {place for knob in self.knobs.values() for place, _ in knob.places}
        self.settings = {name: setting for name, setting in given.items() if name in used}

    def require(self, control: str, what: str) -> None:
        """Raise ConfigError, which begins with `what`, unless a control turns one of the settings."""
        if control in self.knobs:
            return
        if control not in self._places:
            raise ConfigError(f"{what}: no ring is tuned; valid: --ring DEVICE beside it, or another control")
        needed = " and ".join(self._places[control])
        valid = ", ".join(self.knobs) or "none of these settings has one"
        raise ConfigError(f"{what}: {needed} {'are' if ' and ' in needed else 'is'} not tuned here; valid controls: {valid}")

    def resolve_targets(self, numbers: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
        """Resolve targets of controls to the values aimed at here, with notes where these differ from what was asked for.

        Args:
            numbers: targets by control.

        Raises:
            ConfigError: a control that turns nothing here, or a default that is to be above its maximum. SettingError: a
                setting that cannot be read.
        """
        found, notes = {}, []
        values = self.read()
        for control, wanted in numbers.items():
            self.require(control, f"{control} = {wanted:.0f} would do nothing")
            knob = self.knobs[control]
            found[control] = min(max(wanted, knob.low), knob.high)
            if found[control] != wanted:
                why = f"is out of its range, {knob.low} to {knob.high} (--range)"
                notes.append(f"{control} = {wanted:.0f} {why}: {found[control]:.0f} is aimed at")
            for name, index in knob.places:
                least, most = self._bounds(self.settings[name], index, values[name])
                if not least <= found[control] <= most:
                    aim = least if found[control] < least else most
                    which = f"the {'least' if aim == least else 'most'} that {_name_number(self.settings[name], index)} takes"
                    notes.append(f"{control} = {found[control]:.0f}: {aim} is aimed at, {which}")
        for name, value in values.items():
            if name in RISING:
                notes += self._check_order(name, value, found, numbers)
        return found, notes

    def _check_order(self, name: str, value: Value, aims: Mapping[str, float], asked: Mapping[str, float]) -> list[str]:
        """Return notes on how targets of a default and a maximum limit each other; raises ConfigError where both cannot be met.

        Args:
            asked: the requested numbers, for messages.
        """
        default, most = (next((one for one in aims if self.knobs[one].places == ((name, index),)), None) for index in (1, 2))
        if default is not None and most is not None and aims[default] > aims[most]:
            valid = f"valid: at most {most}, {aims[most]:.0f}"
            raise ConfigError(f"{default} = {asked[default]:.0f} is above the maximum that is to be reached; {valid}")
        if default is not None and most is None and aims[default] > value[2]:
            why = f"is above the maximum in force, {value[2]}, which is not to be changed"
            return [f"{default} = {aims[default]:.0f} {why}: {value[2]} is aimed at"]
        if most is not None and default is None and aims[most] < value[1]:
            return [f"{most} = {aims[most]:.0f} is below the default in force, {value[1]}, which is lowered with it"]
        return []

    def read(self) -> Values:
        """Read the settings in force; raises SettingError."""
        return {name: setting.read() for name, setting in self.settings.items()}

    def telemetry(self, values: Values) -> dict[str, float]:
        """Return the settings in force by the names of agents' telemetry; of two places the lesser one."""
        found = {}
        for control, knob in self.knobs.items():
            present = [values[name][index] for name, index in knob.places if name in values]
            if present:
                found[control] = float(min(present))
        return found

    def plan_changes(
        self, values: Values, controls: Mapping[str, float], pace: ChangeRateLimit, time_s: float, kept: Sequence[str]
    ) -> Values:
        """Return the settings that controls ask for, within what is allowed, of those that would change.

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
                    parts.setdefault(name, {})[index] = self._limit_value(knob, name, index, values[name], wanted, pace, time_s)
        found = {}
        for name, wishes in parts.items():
            value = _order_triple(name, replace_numbers(values[name], wishes))
            if value != values[name]:
                found[name] = value
        return found

    def _limit_value(
        self, knob: Knob, name: str, index: int, now: Value, wanted: float, pace: ChangeRateLimit, time_s: float
    ) -> int:
        low, high = self._bounds(self.settings[name], index, now)
        low, high = max(low, knob.low), min(high, knob.high)
        aim = round(min(max(wanted, low), max(low, high)))
        if (wanted - now[index]) * (aim - now[index]) <= 0:  # a value out of range does not go further out
            return now[index]
        return pace.clip((name, index), now[index], aim, time_s)

    @staticmethod
    def _bounds(setting: Setting, index: int, now: Value) -> tuple[int, int]:
        """Return the least and the greatest value of a number of a setting, `now` being the setting's value."""
        low, high = setting.limits(index)
        return (max(low, now[0]), high) if setting.name in RISING else (low, high)


def _name_number(setting: Setting, index: int) -> str:
    """Name a number of a setting, for messages."""
    return f"the {setting.labels[index]} of {setting.name}" if setting.labels[index] else setting.name


def _order_triple(name: str, value: Value) -> Value:
    """Return a value whose default is at most its maximum, lowering the default if need be."""
    if name not in RISING:
        return value
    least, default, most = value
    return least, min(max(default, least), most), most


def select_usable(settings: Iterable[Setting], write: bool) -> tuple[list[Setting], list[str]]:
    """Select the settings that can be read (and, with `write`, written), and list why the others cannot."""
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
