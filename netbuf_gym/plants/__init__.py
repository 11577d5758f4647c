"""Plants: what is being controlled, behind one protocol (`netbuf_gym.plants.plant.Plant`), and looked up by name.

>>> import netbuf_gym.plants
>>> netbuf_gym.plants.names()
['sim']

`register(name, plant)` adds one; environments then take `plant=name`, or a dict of `name` and the plant's own arguments.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np

from netbuf_gym.arguments import choice
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.plant import Advance, Plant
from netbuf_gym.plants.telemetry import Field, TelemetrySchema

_REGISTRY: dict[str, type[Plant] | str] = {}


def register(name: str, plant: type[Plant] | str) -> None:
    """Makes a plant known under a name.

    Args:
        name: what environments call it by.
        plant: a class derived from `Plant`, or where to import it from when it is first needed: `"module:Class"`.

    Raises:
        ConfigError: the name is that of another plant, or `plant` is nothing of the kind.
    """
    if not ((isinstance(plant, str) and ":" in plant) or (isinstance(plant, type) and issubclass(plant, Plant))):
        raise ConfigError(f'plant = {shown(plant)}; valid: a class derived from netbuf_gym.plants.Plant, or "module:Class"')
    if _REGISTRY.setdefault(name, plant) is not plant:
        raise ConfigError(f"plant {name!r} is registered already")


def unregister(name: str) -> None:
    """Forgets a plant, if there is one of this name."""
    _REGISTRY.pop(name, None)


def names() -> list[str]:
    """The names of all plants, sorted."""
    return sorted(_REGISTRY)


def get(name: str) -> type[Plant]:
    """The plant of a name; raises ConfigError, naming the valid ones, for another."""
    found = _REGISTRY[choice("plant", name, names())]
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = _REGISTRY[name] = getattr(importlib.import_module(module), attribute)
    return found


def make(spec: str | dict[str, Any], worlds: int, agents: int, kind: AgentKind, threads: int = 1) -> Plant:
    """A plant of worlds with agents of a kind.

    Args:
        spec: a name, or a dict of `name` and the plant's own arguments.

    Raises:
        ConfigError: an unknown name or argument, or a plant that does not carry agents of this kind.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, dict) or "name" not in spec:
        raise ConfigError(f"plant = {shown(spec)} is neither a name nor a dict with a name; valid: {', '.join(names())}")
    name, cls = spec["name"], get(spec["name"])
    if kind.name not in cls.kinds:
        carried = ", ".join(cls.kinds) or "none"
        raise ConfigError(f"plant {name!r} carries no agents of kind {kind.name!r}; those that it carries: {carried}")
    own = {key: value for key, value in spec.items() if key != "name"}
    valid = [key for key in inspect.signature(cls).parameters if key not in inspect.signature(Plant).parameters]
    for key in own:
        if key not in valid:
            raise ConfigError(f"plant {name!r} has no argument {key!r}; valid: {', '.join(valid) or 'none'}")
    plant = cls(worlds, agents, kind, threads, **own)
    for what, array, columns in (
        ("telemetry", plant.telemetry, len(kind.telemetry.fields)),
        ("control", plant.control, len(kind.controls)),
    ):
        if array.shape != (worlds, agents, columns) or array.dtype != np.float64 or not array.flags.c_contiguous:
            plant.close()
            valid = f"float64, {(worlds, agents, columns)}, C-contiguous"
            raise ConfigError(f"plant {name!r} has {what} of {array.dtype} {array.shape}; valid: {valid}")
    return plant


register("sim", "netbuf_gym.plants.sim:SimPlant")

__all__ = [
    "Advance",
    "AgentKind",
    "Control",
    "Field",
    "Plant",
    "TelemetrySchema",
    "get",
    "make",
    "names",
    "register",
    "unregister",
]
