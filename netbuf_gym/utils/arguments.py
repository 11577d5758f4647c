"""Argument checks of environments, rewards and wrappers: those of `netbuf_gym.utils.checks`, raising `ConfigError`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.utils import checks

P = ParamSpec("P")
T = TypeVar("T")


def as_argument_check(check: Callable[P, T]) -> Callable[P, T]:
    """Wrap a check so that its `ScenarioError` becomes a `ConfigError`."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    return checked


check_real = as_argument_check(checks.number)
check_integer = as_argument_check(checks.integer)
check_boolean = as_argument_check(checks.boolean)
check_choice = as_argument_check(checks.choice)
check_sequence = as_argument_check(checks.sequence)
