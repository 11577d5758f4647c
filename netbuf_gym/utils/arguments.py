"""Argument checks that raise `ConfigError`: those of `netbuf_gym.utils.checks`, and those of values read from KEY=VALUE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from netbuf_gym.errors import ConfigError, ScenarioError, quote
from netbuf_gym.utils import checks

P = ParamSpec("P")
T = TypeVar("T")


def as_argument_check(check: Callable[P, T]) -> Callable[P, T]:
    """Wrap a check so that its `ScenarioError` becomes a `ConfigError`."""

    @wraps(check)
    def check_argument(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    return check_argument


check_real = as_argument_check(checks.number)
check_integer = as_argument_check(checks.integer)
check_boolean = as_argument_check(checks.boolean)
check_choice = as_argument_check(checks.choice)
check_sequence = as_argument_check(checks.sequence)


def check_text(key: str, value: object) -> str:
    """Return a text that is not empty; a number is returned as a text, since a path or a name may be one."""
    text = f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(f"{key} = {quote(value)}; valid: a text that is not empty")
    return text


def check_texts(key: str, value: object) -> tuple[str, ...]:
    """Return a list of different texts, as `check_text` returns each; a single one counts as a list of one."""
    return check_unique(key, [check_text(key, one) for one in (value if isinstance(value, list) else [value])])


def check_unique(key: str, values: Sequence[Any], least: int = 1) -> tuple[Any, ...]:
    """Return a list's values after checking that there are at least `least`, and that each occurs once."""
    values = tuple(values)
    if len(values) < least:
        raise ConfigError(f"{key} is empty; valid: at least one")
    for value in values:
        if values.count(value) > 1:
            raise ConfigError(f"{key} holds {quote(value)} twice; valid: each once")
    return values
