"""Compatibility check between the schema that a model was trained with and that of an environment."""

from __future__ import annotations

from typing import Any

from netbuf_gym.errors import CheckpointError, quote
from netbuf_gym.plants.telemetry import TelemetrySchema

SHARED = ("task", "recipe", "history", "features", "actions", "interval_s")
"""Keys of every task's schema beside the telemetry. A task adds further keys that its networks depend on, and may leave out
keys with default values: a key that only one of two schemas has makes them differ."""


def require_schema(saved: Any, current: dict[str, Any], owner: str = "the saved model") -> None:
    """Raise CheckpointError if a model's environment differs in anything that its network depends on.

    Args:
        saved: Result of `env.unwrapped.schema()` when the model was trained, possibly after a JSON round trip.
        current: Present result.
        owner: Name of the model in messages.

    Raises:
        CheckpointError: Names the first difference, with both values.
    """
    if not isinstance(saved, dict):
        raise CheckpointError(f"{owner} has no environment schema but {quote(saved)}")
    own = [key for key in current if key not in ("telemetry", *SHARED)]  # reported first, since they determine the columns
    missing = [key for key in ("telemetry", *SHARED) if key not in saved]
    if missing and saved.get("task") in (None, current["task"]):
        raise CheckpointError(f"{owner} has an environment schema without {', '.join(missing)}")
    first = ("task", "recipe", *own, *(key for key in saved if key not in current))
    for key in (*first, "telemetry", *(key for key in SHARED if key not in first)):
        if key == "telemetry":
            TelemetrySchema.from_dict(current[key]).require(TelemetrySchema.from_dict(saved[key]), owner)
            continue
        there, here = (quote(one[key], 120) if key in one else "the default" for one in (saved, current))
        if key in saved and key in current and saved[key] == current[key]:
            continue
        if key == "features" and isinstance(saved[key], list):
            there, here = (quote(one, 120) for one in _first_difference(saved[key], current[key]))
        raise CheckpointError(f"{owner} was trained with {key} = {there}, this environment has {here}; valid: the same")


def _first_difference(then: list, now: list) -> tuple[Any, Any]:
    for a, b in zip(then, now, strict=False):
        if a != b:
            return a, b
    return f"{len(then)} features", f"{len(now)} features"
