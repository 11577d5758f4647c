"""Helpers independent of networks and learning: files, argument checks, tables, plots, statistics, executors."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # not from `typing`, whose import takes longer than all that comes before interruptions are looked after
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    """Import the module that users name on first access."""
    if name == "statistics":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
