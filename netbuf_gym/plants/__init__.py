"""Plants: what is being controlled, behind one protocol (`reset`, `apply`, `advance`, `telemetry`)."""

from netbuf_gym.plants.telemetry import TELEMETRY, Field, TelemetrySchema

__all__ = ["TELEMETRY", "Field", "TelemetrySchema"]
