"""The telemetry schema: what a plant measures in one decision interval, field by field.

A plant reports an array of shape ``(worlds, agents, fields)`` in float64. The names, units and order of the fields are
fixed by :data:`TELEMETRY` and versioned; a field that a plant could not measure in an interval is NaN, never a guess.
Models are saved with the schema they were trained on, and :meth:`TelemetrySchema.require` refuses another one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from netbuf_gym.errors import CheckpointError


@dataclass(frozen=True)
class Field:
    """One measured quantity of one sender over one decision interval.

    Attributes:
        name: identifier, ending in its unit where it has one.
        unit: SI unit, ``"1"`` for counts.
        meaning: one sentence.
        privileged: True when a real sender could not know it; reports and rewards may use it, observations may not.
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
        """Column of a field; raises :class:`KeyError` naming the valid ones."""
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"telemetry has no field {name!r}; it has {', '.join(self.names)}") from None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, the inverse of :meth:`from_dict`."""
        return {"version": self.version, "fields": [asdict(field) for field in self.fields]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TelemetrySchema:
        """Rebuilds a schema; raises :class:`CheckpointError` for anything that is not one."""
        try:
            return cls(int(data["version"]), tuple(Field(**field) for field in data["fields"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"not a telemetry schema: {error}") from error

    def require(self, other: TelemetrySchema, owner: str = "the saved model") -> None:
        """Raises :class:`CheckpointError` unless ``other`` has this version and these names and units in order."""
        if other.version != self.version:
            raise CheckpointError(
                f"{owner} uses telemetry version {other.version}, this package has version {self.version}"
            )
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


TELEMETRY = TelemetrySchema(
    version=1,
    fields=(
        Field("elapsed_s", "s", "length of the interval; 0 between two ACKs that arrive at one instant"),
        Field("ssthresh_bytes", "B", "slow-start threshold as last set; NaN while infinite"),
        Field("cwnd_bytes", "B", "congestion window in force at the end of the interval"),
        Field("mss_bytes", "B", "payload of a full segment"),
        Field("bytes_in_flight_sum", "B", "bytes in flight, summed over the ACKs of the interval"),
        Field("bytes_in_flight_mean", "B", "bytes in flight, mean over the ACKs; NaN without an ACK"),
        Field("segments_acked_sum", "1", "segments newly acknowledged"),
        Field("segments_acked_mean", "1", "segments newly acknowledged per ACK; NaN without an ACK"),
        Field("rtt_mean_s", "s", "mean of the round-trip samples; NaN without one"),
        Field("rtt_min_s", "s", "least round-trip sample of the interval; NaN without one"),
        Field("send_interval_mean_s", "s", "mean gap between sendings of consecutively acknowledged packets; NaN"),
        Field("receive_interval_mean_s", "s", "mean gap between ACK arrivals; NaN without two"),
        Field("throughput_bps", "bit/s", "bytes newly acknowledged or SACKed, over the interval; NaN if it has no length"),
        Field("goodput_bps", "bit/s", "bytes delivered in order, over the interval; NaN likewise", privileged=True),
        Field("packets_sent", "1", "data packets sent, retransmissions included"),
        Field("packets_lost", "1", "packets the sender marked lost"),
        Field("packets_retransmitted", "1", "data packets sent again"),
        Field("acks", "1", "ACKs received"),
        Field("timeouts", "1", "retransmission time-outs"),
        Field("in_flight_bytes", "B", "bytes in flight at the end of the interval"),
        Field("rtt_min_ever_s", "s", "least round-trip sample since the start; NaN before the first"),
        Field("queue_delay_mean_s", "s", "mean sojourn at the flow's tightest link; NaN without one", privileged=True),
        Field("queue_packets", "1", "packets queued at the flow's tightest link", privileged=True),
        Field("queue_drops", "1", "packets of the flow dropped by full queues", privileged=True),
    ),
)
