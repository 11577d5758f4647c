"""Simulation without an agent: statistics and time series from a scenario and a seed."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netbuf_gym.simulation.runner import simulate

__all__ = ["simulate"]


def __getattr__(name: str) -> Any:
    """Import what users name on first access: modules that need a part of results do not load the runner."""
    if name == "results":
        return importlib.import_module(f"{__name__}.{name}")
    if name in __all__:
        from netbuf_gym.simulation.runner import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
