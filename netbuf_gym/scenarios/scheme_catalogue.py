"""The schemes of buffer management by name. What they do stands in `netbuf_gym.scenarios.schemes`, and in tasks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, shown
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import instead


@dataclass(frozen=True)
class Scheme:
    """A way of managing the buffer.

    Attributes:
        name: What `Scenario.with_scheme` knows it by.
        description: One line.
        make: (scenario, **parameters) -> scenario.
    """

    name: str
    description: str
    make: Callable[..., Any]

    @property
    def parameters(self) -> list[str]:
        """The parameters that may stand beside its name."""
        return list(inspect.signature(self.make).parameters)[1:]


SCHEMES: dict[str, Scheme] = {}
"""Every scheme by its name; `register` adds one."""


def register(scheme: Scheme) -> None:
    """Makes `Scenario.with_scheme` know a scheme.

    Raises:
        ConfigError: Another one has its name.
    """
    if SCHEMES.setdefault(scheme.name, scheme) != scheme:
        raise ConfigError(f"scheme {scheme.name!r} is registered already")


def unregister(name: str) -> None:
    """Forgets a scheme, if there is one of this name."""
    SCHEMES.pop(name, None)


def apply(scenario: Any, scheme: str | dict) -> Any:
    """The scenario under a scheme given by name, or by a dict of name and parameters; see `Scenario.with_scheme`."""
    if isinstance(scheme, str):
        scheme = {"name": scheme}
    if not isinstance(scheme, dict) or not isinstance(scheme.get("name"), str):
        valid = "a name, a dict of name and parameters, an admission or a queue discipline"
        raise ScenarioTypeError(f"scheme = {shown(scheme)}; valid: {valid}")
    parameters = {key: value for key, value in scheme.items() if key != "name"}
    name = checks.choice("scheme", scheme["name"], SCHEMES)
    known = SCHEMES[name].parameters
    for parameter in parameters:
        if parameter not in known:
            raise ScenarioError(f"scheme {name} has no parameter {parameter!r}; {instead(parameter, known)}")
    return SCHEMES[name].make(scenario, **parameters)
