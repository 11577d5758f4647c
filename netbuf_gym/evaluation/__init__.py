"""Evaluation of controllers: rollouts, baselines, statistics over worlds, and suites of fixed worlds."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import a module that users name on first access."""
    if name in ("baselines", "comparison", "rollout", "suites"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
