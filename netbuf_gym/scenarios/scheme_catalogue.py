"""Registry of buffer management schemes by name; `netbuf_gym.scenarios.schemes` and tasks implement them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, quote
from netbuf_gym.utils import checks
from netbuf_gym.utils.parameters import TunableParameter, read_settings
from netbuf_gym.utils.suggestions import suggest_valid


@dataclass(frozen=True)
class Scheme:
    """Buffer management scheme.

    Attributes:
        name: Name for `Scenario.with_scheme`.
        description: Description in one line.
        make: (scenario, **parameters) -> scenario.
        tunable: Parameters that a search may set.
        encode: Converts values of those to parameters of `make`; None: they are the same.
    """

    name: str
    description: str
    make: Callable[..., Any]
    tunable: tuple[TunableParameter, ...] = ()
    encode: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None

    @property
    def parameters(self) -> list[str]:
        """Names of the scheme's parameters."""
        return list(inspect.signature(self.make).parameters)[1:]

    def encode_settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of `make` for values of some of `tunable`; the others keep their defaults."""
        if self.encode is None or not values:
            return dict(values)
        return self.encode({one.name: values.get(one.name, one.default) for one in self.tunable})


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
        ConfigError: Invalid settings in a name.
    """
    importlib.import_module(f"{__package__}.schemes")  # the package's own, of records that most worlds do not have
    if isinstance(scheme, str):
        scheme = _read_scheme(scheme)
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


def _read_scheme(word: str) -> dict[str, Any]:
    """Return the name and the parameters of a scheme that a name stands for, with settings or without: `dt:alpha_0=0.03`."""
    name, colon, settings = word.partition(":")
    if not colon or name not in SCHEMES or not SCHEMES[name].tunable:
        return {"name": word}
    return {"name": name, **SCHEMES[name].encode_settings(read_settings(name, settings, SCHEMES[name].tunable))}
