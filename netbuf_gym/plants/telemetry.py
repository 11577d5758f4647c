"""The telemetry schema: what a plant measures in one decision interval, field by field.

A plant reports an array of shape ``(worlds, agents, fields)`` in float64. The names, units and order of the fields are
fixed by the schema of the agents' kind and versioned; a field that a plant could not measure in an interval is NaN, never
a guess. Models are saved with the schema they were trained on, and :meth:`TelemetrySchema.require` refuses another one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from netbuf_gym.errors import CheckpointError


@dataclass(frozen=True)
class Field:
    """One measured quantity of one agent over one decision interval.

    Attributes:
        name: identifier, ending in its unit where it has one.
        unit: SI unit, ``"1"`` for counts.
        meaning: one sentence.
        privileged: True when a real agent could not know it; reports and rewards may use it, observations may not.
    """

    name: str
    unit: str
    meaning: str
    privileged: bool = False


@dataclass(frozen=True)
class TelemetrySchema:
    """Ordered fields with a version; equal schemas mean the same numbers in the same columns."""

    version: int
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Field names in column order."""
        return tuple(field.name for field in self.fields)

    def index(self, name: str) -> int:
        """Return the column of a field; raises :class:`KeyError` naming the valid ones."""
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"telemetry has no field {name!r}; it has {', '.join(self.names)}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as a JSON-able dict, the inverse of :meth:`from_dict`."""
        return {"version": self.version, "fields": [asdict(field) for field in self.fields]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TelemetrySchema:
        """Rebuild a schema; raises :class:`CheckpointError` for anything that is not one."""
        try:
            return cls(int(data["version"]), tuple(Field(**field) for field in data["fields"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"not a telemetry schema: {error}") from error

    def require(self, other: TelemetrySchema, owner: str = "the saved model") -> None:
        """Raise :class:`CheckpointError` unless ``other`` has this version and these names and units in order."""
        if other.version != self.version:
            raise CheckpointError(f"{owner} uses telemetry version {other.version}, this package has version {self.version}")
        ours = [(field.name, field.unit) for field in self.fields]
        theirs = [(field.name, field.unit) for field in other.fields]
        if ours != theirs:
            position = next(
                (i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
                min(len(ours), len(theirs)),
            )
            have = ours[position] if position < len(ours) else "nothing"
            want = theirs[position] if position < len(theirs) else "nothing"
            raise CheckpointError(f"{owner} expects {want} in telemetry column {position}, this package has {have}")
