"""Sources of unanswered datagrams: constant rate, or on and off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.fields import boolean, check_fields, check_span, integer, links, number, text
from netbuf_gym.scenarios.limits import MAX_DATAGRAM_BYTES, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS

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

    path: Sequence[int | str] = field(metadata=links(core="path"))
    rate_mbps: float = field(metadata=number(MIN_RATE_MBPS, MAX_RATE_MBPS, core="rate_bps"))
    packet_bytes: int = field(default=1500, metadata=integer(1, MAX_DATAGRAM_BYTES, core="bytes"))
    on_s: float | None = field(default=None, metadata=number(1e-6, MAX_DURATION_S, core="on_ns"))
    off_s: float | None = field(default=None, metadata=number(1e-6, MAX_DURATION_S, core="off_ns"))
    random: bool = field(default=False, metadata=boolean(core="random_on_off"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    stop_s: float | None = field(default=None, metadata=number(0, MAX_DURATION_S, core="stop_ns"))
    name: str = field(default="", metadata=text())
    priority: int = field(default=0, metadata=integer(0, MAX_QUEUES - 1, core="priority"))

    def __post_init__(self) -> None:
        check_fields(self, "udp.")
        most_mbps = MOST_PACKETS_PER_S * self.packet_bytes * 8e-6
        if self.rate_mbps > most_mbps:
            raise ScenarioError(
                f"udp.rate_mbps = {self.rate_mbps:g} is more than 1e9 packets a second; valid: {most_mbps:g} or less"
            )
        for given, other in (("on_s", "off_s"), ("off_s", "on_s")):
            length_s = getattr(self, given)
            if length_s is not None and getattr(self, other) is None:
                raise ScenarioError(f"udp.{given} = {length_s:g}, udp.{other} = None; valid: both in seconds, or neither")
        if self.random and self.on_s is None:
            raise ScenarioError("udp.random = True without periods; valid: on_s and off_s, or False")
        check_span(self, "udp.")

    @property
    def mean_mbps(self) -> float:
        """Mean rate on the wire between start and stop, off periods included, Mbit/s."""
        if self.on_s is None or self.off_s is None:
            return self.rate_mbps
        return self.rate_mbps * self.on_s / (self.on_s + self.off_s)


def list_source_names(sources: Sequence[UdpSource]) -> list[str]:
    """Return the names of the sources in results; `udp-N` for a source without a name."""
    return [source.name or f"udp-{i}" for i, source in enumerate(sources)]
