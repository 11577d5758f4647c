"""Rules of the fields of scenario records: valid values, and the field of the core's configuration that takes them.

A record is a frozen dataclass whose fields have a rule as metadata:

    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))

`check_fields` holds a record to its rules, and `copy_to_core` sets the core's fields from it. The core checks what it is given
by its own table of fields (`cpp/include/netbuf/config_fields.h`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeVar

from netbuf_gym.errors import ScenarioError
from netbuf_gym.utils import checks

Check = Callable[[str, Any], Any]
"""(label, value) -> the value as a record stores it; raises ScenarioError."""
Convert = Callable[[Any], Any]
"""(value) -> the value in the unit and type of the core's field."""
Getter = Callable[[object], tuple[Any, ...]]
R = TypeVar("R")


class Indices(tuple[int, ...]):
    """Links of a path or a switch as a scenario has resolved them: indices into `Scenario.links`, no names."""


def get_indices(links: Sequence[int | str]) -> Indices:
    """Return the links of a record of a `Scenario`, which are indices.

    Raises:
        ScenarioError: Names of links, which only a scenario resolves.
    """
    if not isinstance(links, Indices):
        raise ScenarioError(f"links = {tuple(links)} are not indices; valid: those of a record of a Scenario")
    return links


@dataclass(frozen=True)
class Rule:
    """Rule of a record's field. The field's default is valid and is not checked; a default of None: the core's default.

    Attributes:
        check: Check of a value; None: the record checks the field itself, since its range depends on other fields.
        core: Field of the core's configuration; None: `native` translates the field.
        convert: Conversion to the core's unit; None: by the units in the names of both fields.
    """

    check: Check | None
    core: str | None = None
    convert: Convert | None = None


def rule(check: Check | None, core: str | None = None, convert: Convert | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with a check of its own; see `Rule`."""
    return {"rule": Rule(check, core, convert)}


def number(
    low: float, high: float, *, low_open: bool = False, core: str | None = None, convert: Convert | None = None
) -> dict[str, Rule]:
    """Return the metadata of a field with a finite float in [low, high], or (low, high] with `low_open`."""
    return rule(partial(checks.number, low=low, high=high, low_open=low_open), core, convert)


def integer(low: int, high: int, *, core: str | None = None, convert: Convert | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with an integer in [low, high]."""
    return rule(partial(checks.integer, low=low, high=high), core, convert)


def boolean(*, core: str | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with a truth value."""
    return rule(checks.boolean, core)


def text(*, core: str | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with a string."""
    return rule(checks.text, core)


def choice(options: Iterable[str], *, core: str | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with one of several strings."""
    return rule(partial(checks.choice, valid=options), core)


def links(*, core: str | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with one or more links, as indices into `Scenario.links` or names."""
    return rule(_check_links, core)


def _check_links(label: str, value: Any) -> tuple[int | str, ...]:
    if isinstance(value, Indices):
        return value
    items = checks.sequence(label, value, "links")
    return Indices(items) if set(map(type, items)) == {int} else items


def check_fields(record: object, prefix: str = "") -> None:
    """Check the fields of a record by their rules, and store the values as plain Python types.

    Args:
        record: Record under construction.
        prefix: Text before a field's name in error messages.

    Raises:
        ScenarioError: An invalid value; names the field.
    """
    cls: type = type(record)
    get_values, checked_fields = _list_checks(cls)
    for value, (name, check, default) in zip(get_values(record), checked_fields):  # noqa: B905
        if value is not default:
            checked = check(prefix + name, value)
            if checked is not value:
                object.__setattr__(record, name, checked)


def copy_with(record: R, **changes: Any) -> R:
    """Return a copy of a frozen record with other values of some fields, taken as they are, without any check.

    For values that are valid beside the others because of where they come from; `dataclasses.replace` checks all fields again.
    """
    made, values = object.__new__(type(record)), vars(record).copy()
    values.update(changes)
    object.__setattr__(made, "__dict__", values)
    return made


def check_span(record: Any, prefix: str) -> None:
    """Raise ScenarioError unless the `stop_s` of a record is None or after its `start_s`."""
    if record.stop_s is not None and record.stop_s <= record.start_s:
        raise ScenarioError(f"{prefix}stop_s = {record.stop_s:g} is not after start_s = {record.start_s:g}")


def copy_to_core(config: Any, record: object) -> None:
    """Set the fields of a configuration of the core from those of a record that name them; None leaves the core's default."""
    cls: type = type(record)
    get_values, core_fields = _CORE_FIELDS.get(cls) or _list_core_fields(cls, type(config)())
    for value, (name, convert, usual) in zip(get_values(record), core_fields):  # noqa: B905
        if value is not usual and value is not None:
            setattr(config, name, convert(value) if convert is not None else value)


@cache
def _list_checks(cls: type) -> tuple[Getter, list[tuple[str, Check, Any]]]:
    """Return name, check and default (MISSING: none) of a record's fields that have a check."""
    found = [(entry, entry.metadata["rule"]) for entry in fields(cls) if "rule" in entry.metadata]
    checked = [(entry.name, rule.check, entry.default) for entry, rule in found if rule.check is not None]
    return _make_getter([name for name, _, _ in checked]), checked


_CORE_FIELDS: dict[type, tuple[Getter, list[tuple[str, Convert | None, Any]]]] = {}


def _list_core_fields(cls: type, untouched: object) -> tuple[Getter, list[tuple[str, Convert | None, Any]]]:
    """Return core's field, conversion, and the default that is the core's too (MISSING: none) of a record's fields."""
    names, found = [], []
    for entry in fields(cls):
        rule = entry.metadata.get("rule")
        if rule is None or rule.core is None:
            continue
        convert, usual = rule.convert or _find_conversion(entry.name, rule.core), entry.default
        if usual is not None and usual is not MISSING:
            converted = usual if convert is None else convert(usual)
            if getattr(untouched, rule.core) != converted:
                usual = MISSING
        names.append(entry.name)
        found.append((rule.core, convert, usual))
    return _CORE_FIELDS.setdefault(cls, (_make_getter(names), found))


def _make_getter(names: list[str]) -> Getter:
    """Return a function from a record to a tuple of the fields of these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def to_nanoseconds(seconds: Any) -> Any:
    """Round seconds to whole nanoseconds: an int for a number, a list of ints for an array."""
    if isinstance(seconds, (int, float)):
        return round(seconds * 1e9)
    return (seconds * 1e9).round().astype("int64").tolist()


CONVERSIONS: dict[tuple[str, str], Convert] = {
    ("_s", "_ns"): to_nanoseconds,
    ("_ms", "_ns"): lambda ms: round(ms * 1e6),
    ("_us", "_ns"): lambda us: us * 1000,
    ("_mbps", "_bps"): lambda mbps: mbps * 1e6,
}
"""Conversions by the units in which the names of a record's field and of the core's end."""


def _find_conversion(name: str, core: str) -> Convert | None:
    ends = f"_{name.rpartition('_')[2]}", f"_{core.rpartition('_')[2]}"
    return CONVERSIONS.get(ends)
