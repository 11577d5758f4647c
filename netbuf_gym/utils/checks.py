"""Checks of single fields: each returns the value as a plain Python type, or raises naming field, value and range."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.utils.suggestions import did_you_mean


def number(field: str, value: Any, low: float, high: float, *, low_open: bool = False) -> float:
    """Return `value` as a finite float in [low, high], or (low, high] with `low_open`."""
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ScenarioTypeError(f"{field} = {quote(value)} is not a number; valid: {_range(low, high, low_open)}")
        try:
            value = float(value)
        except OverflowError:  # an integer beyond the float range
            value = math.copysign(math.inf, 1 if value > 0 else -1)
    if not (low < value if low_open else low <= value) or not value <= high:
        raise ScenarioError(f"{field} = {quote(value)} is out of range; valid: {_range(low, high, low_open)}")
    return value


def integer(field: str, value: Any, low: int, high: int) -> int:
    """Return `value` as an integer in [low, high]; 3.0 counts as 3."""
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ScenarioTypeError(f"{field} = {quote(value)} is not a whole number; valid: {low}..{high}")
        if not math.isfinite(value) or value != int(value):  # type: ignore[call-overload]
            raise ScenarioError(f"{field} = {quote(value)} is not a whole number; valid: {low}..{high}")
        value = int(value)  # type: ignore[call-overload]  # every real number has an integer part
    if not low <= value <= high:
        raise ScenarioError(f"{field} = {quote(value)} is out of range; valid: {low}..{high}")
    return value


def boolean(field: str, value: object) -> bool:
    """Return a truth value, numpy's included, as a Python bool."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ScenarioTypeError(f"{field} = {quote(value)} is not a truth value; valid: True or False")


def text(field: str, value: object) -> str:
    """Return `value` if it is a string without control characters."""
    if not isinstance(value, str):
        raise ScenarioTypeError(f"{field} = {quote(value)} is not a string")
    if value and min(value) < " ":
        raise ScenarioError(f"{field} = {quote(value)} holds control characters")
    return value


def name(field: str, value: object, valid: str = "a name") -> str:
    """Return `value` if it is a string that can name a part of a world in the core: not empty, and Unicode."""
    found = text(field, value)
    if not found:
        raise ScenarioError(f"{field} is empty; valid: {valid}")
    if any("\ud800" <= one <= "\udfff" for one in found):
        raise ScenarioError(f"{field} = {quote(value)} is no valid Unicode; valid: {valid}")
    return found


def choice(field: str, value: object, valid: Iterable[str]) -> str:
    """Return `value` if it is one of the strings in `valid`."""
    options = list(valid)
    if not isinstance(value, str):
        raise ScenarioTypeError(f"{field} = {quote(value)} is not a string; valid: {', '.join(options)}")
    if value not in options:
        raise ScenarioError(f"{field} = {quote(value)} is unknown; {did_you_mean(value, options)}valid: {', '.join(options)}")
    return value


def sequence(field: str, value: object, what: str) -> tuple:
    """Return a non-empty iterable as a tuple; a single string or number, or a mapping, is an error."""
    lone = isinstance(value, (str, bytes, Mapping)) or (isinstance(value, np.ndarray) and not value.ndim)
    if lone or not isinstance(value, Iterable):
        raise ScenarioTypeError(f"{field} = {quote(value)} is not a list; valid: a list of {what}")
    items = tuple(value)
    if not items:
        raise ScenarioError(f"{field} is empty; valid: at least one {what.removesuffix('s')}")
    return items


def _range(low: float, high: float, low_open: bool) -> str:
    return f"{'above ' if low_open else ''}{low:g} to {high:g}"
