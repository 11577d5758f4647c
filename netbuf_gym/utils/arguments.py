"""The checks of `netbuf_gym.utils.checks` for environment, reward and wrapper arguments: they raise `ConfigError`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.utils import checks

P = ParamSpec("P")
T = TypeVar("T")


def for_arguments(check: Callable[P, T]) -> Callable[P, T]:
    """A check that raises `ConfigError` where the one given raises `ScenarioError`."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    return checked


real = for_arguments(checks.number)
whole = for_arguments(checks.integer)
truth = for_arguments(checks.boolean)
choice = for_arguments(checks.choice)
sequence = for_arguments(checks.sequence)
