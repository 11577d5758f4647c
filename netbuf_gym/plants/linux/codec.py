"""Codec for the core's description of a world: to JSON, without fields that have their default value, and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from netbuf_gym import _core

_CLASS = "_"


def encode(config: Any) -> Any:
    """Encode a configuration of the core (or a list, dict or plain value of them) as JSON data."""
    if isinstance(config, (list, tuple)):
        return [encode(one) for one in config]
    if isinstance(config, dict):
        return {key: encode(value) for key, value in config.items()}
    if config is None or isinstance(config, (bool, int, float, str)):
        return config
    cls: Any = type(config)
    plain = _default_values(cls)
    values = {name: encode(getattr(config, name)) for name in _property_names(cls)}
    return {_CLASS: cls.__name__, **{name: value for name, value in values.items() if value != plain[name]}}


def decode(data: Any) -> Any:
    """Decode the JSON data of `encode`."""
    if isinstance(data, list):
        return [decode(one) for one in data]
    if not isinstance(data, dict):
        return data
    if _CLASS not in data:
        return {key: decode(value) for key, value in data.items()}
    config = getattr(_core, data[_CLASS])()
    for name, value in data.items():
        if name != _CLASS:
            setattr(config, name, decode(value))
    return config


@lru_cache
def _property_names(cls: type) -> tuple[str, ...]:
    return tuple(name for name, value in vars(cls).items() if isinstance(value, property))


@lru_cache
def _default_values(cls: type) -> dict[str, Any]:
    config = cls()
    return {name: encode(getattr(config, name)) for name in _property_names(cls)}
