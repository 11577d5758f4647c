"""The comparison of what a model was trained on with what an environment offers."""

from __future__ import annotations

from typing import Any

from netbuf_gym.errors import CheckpointError, shown
from netbuf_gym.plants.telemetry import TelemetrySchema

SHARED = ("task", "recipe", "history", "features", "actions", "interval_s")
"""What the schema of every task holds beside the telemetry; each task adds what else its networks depend on."""


def require_schema(saved: Any, current: dict[str, Any], owner: str = "the saved model") -> None:
    """Refuses a model whose environment differs in anything that its network depends on.

    Args:
        saved: what `env.unwrapped.schema()` gave when the model was trained (JSON in between does no harm).
        current: what it gives now.
        owner: how messages call the model.

    Raises:
        CheckpointError: names the first difference, with both values.
    """
    if not isinstance(saved, dict):
        raise CheckpointError(f"{owner} carries no environment schema but {shown(saved)}")
    own = [key for key in current if key not in ("telemetry", *SHARED)]  # a task's own decide the columns: named before these
    missing = [key for key in ("telemetry", *SHARED, *own) if key not in saved]
    if missing and saved.get("task") in (None, current["task"]):
        raise CheckpointError(f"{owner} carries an environment schema without {', '.join(missing)}")
    first = ("task", "recipe", *own)
    for key in (*first, "telemetry", *(key for key in SHARED if key not in first)):
        if key == "telemetry":
            TelemetrySchema.from_dict(current[key]).require(TelemetrySchema.from_dict(saved[key]), owner)
            continue
        if saved[key] == current[key]:
            continue
        then, now = saved[key], current[key]
        if key == "features" and isinstance(then, list):
            then, now = _first_difference(then, now)
        raise CheckpointError(f"{owner} was trained with {key} = {shown(then, 120)}, this environment has {shown(now, 120)}")


def _first_difference(then: list, now: list) -> tuple[Any, Any]:
    for a, b in zip(then, now, strict=False):
        if a != b:
            return a, b
    return f"{len(then)} features", f"{len(now)} features"
