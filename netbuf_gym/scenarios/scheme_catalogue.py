"""Registry of buffer management schemes by name; `netbuf_gym.scenarios.schemes` and tasks implement them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, quote
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import suggest_valid


@dataclass(frozen=True)
class Scheme:
    """Buffer management scheme.

    Attributes:
        name: Name for `Scenario.with_scheme`.
        description: Description in one line.
        make: (scenario, **parameters) -> scenario.
    """

    name: str
    description: str
    make: Callable[..., Any]

    @property
    def parameters(self) -> list[str]:
        """Names of the scheme's parameters."""
        return list(inspect.signature(self.make).parameters)[1:]


SCHEMES: dict[str, Scheme] = {}
"""Schemes by name; `register` adds one."""


def register(scheme: Scheme) -> None:
    """Register a scheme for `Scenario.with_scheme`.

    Raises:
        ConfigError: Another scheme has the name.
    """
    if SCHEMES.setdefault(scheme.name, scheme) != scheme:
        raise ConfigError(f"scheme {scheme.name!r} is registered already")


def unregister(name: str) -> None:
    """Remove a scheme from the registry, if registered."""
    SCHEMES.pop(name, None)


def apply_scheme(scenario: Any, scheme: str | dict) -> Any:
    """Return the scenario under a scheme, a name or a dict of name and parameters; see `Scenario.with_scheme`.

    Raises:
        ScenarioError: An unknown name or parameter.
    """
    importlib.import_module(f"{__package__}.schemes")  # the package's own, of records that most worlds do not have
    if isinstance(scheme, str):
        scheme = {"name": scheme}
    if not isinstance(scheme, dict) or not isinstance(scheme.get("name"), str):
        valid = "a name, a dict of name and parameters, an admission or a queue discipline"
        raise ScenarioTypeError(f"scheme = {quote(scheme)}; valid: {valid}")
    parameters = {key: value for key, value in scheme.items() if key != "name"}
    name = checks.choice("scheme", scheme["name"], SCHEMES)
    known = SCHEMES[name].parameters
    for parameter in parameters:
        if parameter not in known:
            raise ScenarioError(f"scheme {name} has no parameter {parameter!r}; {suggest_valid(parameter, known)}")
    return SCHEMES[name].make(scenario, **parameters)
