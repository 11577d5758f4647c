"""Results of a simulation: statistics of flows, links, switches, traffic and video, with their time series."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbuf_gym.simulation.results.flows import FlowResult, LinkResult
    from netbuf_gym.simulation.results.result import Result

__all__ = ["FlowResult", "LinkResult", "Result"]


def __getattr__(name: str) -> Any:
    """Import a class on first access: modules that need a part of results do not load all of it."""
    if name in __all__:
        return getattr(importlib.import_module("netbuf_gym.simulation.results.result"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
