"""Sources of unanswered datagrams: constant rate, or on and off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.limits import MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks

MOST_PACKETS_PER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class UdpSource:
    """Source that sends packets of one size at a constant rate, always or during on periods, without congestion control.

    The gap between packets is packet_bytes / rate, to the nearest nanosecond. A source that is always on sends its first packet
    at its start; a source with periods sends a packet after being on for the packet's transmission time, and the remainder of
    an on period that ends earlier counts in the next one. ns-3's UdpClient and OnOffApplication do the same.

    Args:
        path: Links of the path, in either direction, as indices into `Scenario.links` or link names.
        rate_mbps: Rate on the wire while on, 1e-6 to 1e6 Mbit/s, at most 1e9 packets a second.
        packet_bytes: Size of a packet on the wire, headers included, 1 to 65535.
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds, on first; the mean length when `random`. None (both): always
            on.
        random: Whether the periods are exponentially distributed instead of fixed, from the source's own random stream.
        start_s: Start of the source, 0 to 1e6 seconds.
        stop_s: End of the source, after `start_s`, at most 1e6; None: never.
        name: Name in results, unique among the sources.
        priority: Queue at switches, 0 to 63.

    Raises:
        ScenarioError: A value out of range.
    """

    path: Sequence[int | str]
    rate_mbps: float
    packet_bytes: int = 1500
    on_s: float | None = None
    off_s: float | None = None
    random: bool = False
    start_s: float = 0.0
    stop_s: float | None = None
    name: str = ""
    priority: int = 0

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "path", checks.sequence("udp.path", self.path, "links"))
        put(self, "rate_mbps", checks.number("udp.rate_mbps", self.rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS))
        put(self, "packet_bytes", checks.integer("udp.packet_bytes", self.packet_bytes, 1, 65535))
        most_mbps = MOST_PACKETS_PER_S * self.packet_bytes * 8e-6
        if self.rate_mbps > most_mbps:
            raise ScenarioError(
                f"udp.rate_mbps = {self.rate_mbps:g} is more than 1e9 packets a second; valid: {most_mbps:g} or less"
            )
        if (self.on_s is None) != (self.off_s is None):
            raise ScenarioError(f"udp.on_s = {self.on_s}, udp.off_s = {self.off_s}; valid: both in seconds, or neither")
        for field in ("on_s", "off_s"):
            if getattr(self, field) is not None:
                put(self, field, checks.number(f"udp.{field}", getattr(self, field), 1e-6, MAX_DURATION_S))
        put(self, "random", checks.boolean("udp.random", self.random))
        if self.random and self.on_s is None:
            raise ScenarioError("udp.random = True without periods; valid: on_s and off_s, or False")
        put(self, "start_s", checks.number("udp.start_s", self.start_s, 0, MAX_DURATION_S))
        if self.stop_s is not None:
            put(self, "stop_s", checks.number("udp.stop_s", self.stop_s, 0, MAX_DURATION_S))
            if self.stop_s <= self.start_s:
                raise ScenarioError(f"udp.stop_s = {self.stop_s:g} is not after start_s = {self.start_s:g}")
        checks.text("udp.name", self.name)
        put(self, "priority", checks.integer("udp.priority", self.priority, 0, MAX_QUEUES - 1))

    @property
    def mean_mbps(self) -> float:
        """Mean rate on the wire between start and stop, off periods included, Mbit/s."""
        if self.on_s is None or self.off_s is None:
            return self.rate_mbps
        return self.rate_mbps * self.on_s / (self.on_s + self.off_s)


def list_source_names(sources: Sequence[UdpSource]) -> list[str]:
    """Return the names of the sources in results; `udp-N` for a source without a name."""
    return [source.name or f"udp-{i}" for i, source in enumerate(sources)]
