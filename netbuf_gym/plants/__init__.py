"""Plants: the systems that are controlled, behind one protocol (`netbuf_gym.plants.plant.Plant`), looked up by name.

>>> import netbuf_gym.plants
>>> netbuf_gym.plants.names()
['linux', 'sim']

`register(name, plant)` adds a plant; environments then take `plant=name`, or a dict of `name` and the plant's own arguments.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.plant import Advance, Plant
from netbuf_gym.plants.telemetry import Field, TelemetrySchema
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.late_members import late_members
from netbuf_gym.utils.moved import find_renamed
from netbuf_gym.utils.suggestions import suggest_valid

__getattr__, __dir__ = late_members(__name__, {}, find_renamed)

_REGISTRY: dict[str, type[Plant] | str] = {}
_PLANTS = 'a class derived from netbuf_gym.plants.Plant, or "module:Class"'


def register(name: str, plant: type[Plant] | str) -> None:
    """Register a plant under a name.

    Args:
        name: the name by which environments ask for the plant.
        plant: a class derived from `Plant`, or where to import it from when it is first needed: `"module:Class"`.

    Raises:
        ConfigError: the name is no string, empty or that of another plant, or `plant` is not such a class, or abstract.
    """
    if not isinstance(name, str) or not name:
        raise ConfigError(f"plant name = {quote(name)}; valid: a string, not empty")
    if not isinstance(plant, str):
        _require_plant(plant, f"plant = {quote(plant)}")
    elif not all(plant.partition(":")):
        raise ConfigError(f"plant = {quote(plant)}; valid: {_PLANTS}")
    if _REGISTRY.setdefault(name, plant) is not plant:
        raise ConfigError(f"plant {name!r} is registered already")


def _require_plant(cls: Any, what: str) -> None:
    """Raise ConfigError, which calls the value `what`, unless `cls` is a concrete class of plants."""
    if not (isinstance(cls, type) and issubclass(cls, Plant)):
        raise ConfigError(f"{what}; valid: {_PLANTS}")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise ConfigError(f"{what} is abstract; valid: a class that has {missing}")


def unregister(name: str) -> None:
    """Remove the plant of this name from the registry, if there is one."""
    _REGISTRY.pop(name, None)


def names() -> list[str]:
    """Return the names of all plants, sorted."""
    return sorted(_REGISTRY)


def get(name: str) -> type[Plant]:
    """Return the plant class of a name.

    Raises:
        ConfigError: no plant has this name, or the class cannot be imported from where it was said to be.
    """
    found = _REGISTRY[check_choice("plant", name, names())]
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        what = f"plant {name!r} = {quote(found)}"
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigError(f"{what} cannot be imported ({error}); valid: {_PLANTS}") from error
        _require_plant(found, what)
        _REGISTRY[name] = found
    return found


def make(spec: str | dict[str, Any], worlds: int, agents: int, kind: AgentKind, threads: int = 1) -> Plant:
    """Create a plant of worlds with agents of a kind.

    Args:
        spec: a name, or a dict of `name` and the plant's own arguments.

    Raises:
        ConfigError: an unknown name or argument, one that is missing, or a plant that does not carry agents of this kind.
    """
    name, cls, own = _resolve_spec(spec, kind)
    plant = cls(worlds, agents, kind, threads, **own)
    for what, array, columns in (
        ("telemetry", plant.telemetry, len(kind.telemetry.fields)),
        ("control", plant.control, len(kind.controls)),
    ):
        if array.shape != (worlds, agents, columns) or array.dtype != np.float64 or not array.flags.c_contiguous:
            plant.close()
            fit = f"float64, {(worlds, agents, columns)}, C-contiguous"
            raise ConfigError(f"plant {name!r} has {what} of {array.dtype} {array.shape}; valid: {fit}")
    return plant


@lru_cache
def _constructor_parameters(cls: type[Plant]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _resolve_spec(spec: Any, kind: AgentKind | None) -> tuple[str, type[Plant], dict[str, Any]]:
    """Return the name, the class and the own arguments of a requested plant for agents of a kind (None: without agents)."""
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, dict) or "name" not in spec:
        raise ConfigError(f"plant = {quote(spec)} is neither a name nor a dict with a name; valid: {', '.join(names())}")
    name, cls = spec["name"], get(spec["name"])
    if kind is not None and kind.name not in cls.kinds:
        carried = ", ".join(cls.kinds) or "none"
        raise ConfigError(f"plant {name!r} carries no agents of kind {kind.name!r}; those that it carries: {carried}")
    own = {key: value for key, value in spec.items() if key != "name"}
    parameters = _constructor_parameters(cls)
    valid = [key for key in parameters if key not in _constructor_parameters(Plant)]
    for key in own:
        if key not in valid:
            raise ConfigError(f"plant {name!r} has no argument {key!r}; {suggest_valid(key, valid)}")
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for key in valid:
        if key not in own and parameters[key].default is inspect.Parameter.empty and parameters[key].kind in named:
            raise ConfigError(f"plant {name!r} needs argument {key!r}; valid: a dict of name and {key}")
    return name, cls, own


def make_lone_world(spec: str | dict[str, Any], scenario: Any, seed: int) -> Any:
    """Create a world without agents on a plant; see `Plant.make_lone_world`.

    Args:
        spec: as for `make`.

    Raises:
        ConfigError: an unknown name or argument, or one that is missing; or as `Plant.make_lone_world`.
        PlantFault: as `Plant.make_lone_world`.
    """
    _, cls, own = _resolve_spec(spec, None)
    return cls.make_lone_world(scenario, seed, **own)


register("sim", "netbuf_gym.plants.simulated:SimPlant")
register("linux", "netbuf_gym.plants.linux.plant:LinuxPlant")

__all__ = [
    "Advance",
    "AgentKind",
    "Control",
    "Field",
    "Plant",
    "TelemetrySchema",
    "get",
    "make",
    "make_lone_world",
    "names",
    "register",
    "unregister",
]
