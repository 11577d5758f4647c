"""Senders of traffic, and relays between senders and clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import WITHOUT_AGENT, Controls, parse_congestion_control
from netbuf_gym.scenarios.fields import boolean, check_fields, integer, links, rule, text
from netbuf_gym.scenarios.hosts import HOST_NAME, check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT
from netbuf_gym.scenarios.tcp_settings import TcpSettings
from netbuf_gym.utils import checks

_CONTROL = rule(lambda label, cc: parse_congestion_control(label, cc, WITHOUT_AGENT))


@dataclass(frozen=True, kw_only=True)
class Relay(TcpSettings):
    """Proxy between a sender and its clients: each flow is two connections, sender to proxy and proxy to client.

    The proxy forwards the data that it has read, through its own buffer. A flow begins with the client's SYN to the proxy; the
    sender's connection begins when that SYN, the client's request, and the proxy's own handshake and request can have arrived.
    The flow is complete when the client has all data.

    Args:
        host: Name of the proxy's `Host`, where the sender's connections end.
        path, return_path: Links of data and ACKs between proxy and client, as in `Sender`.
        buffer_bytes: Largest amount of data that the proxy holds between its two sockets, 1 to 2**40.
        cc: Congestion control of the proxy's connection to the client; None: the sender's.
        receiver_host: Name of the client's `Host`; None: a client with unlimited buffers.
        sndbuf_bytes, rcvbuf_bytes: Explicit buffers of the proxy's sending and the client's receiving socket, as in `Flow`.
        initial_cwnd_packets: Initial window, 1 to 1000.
        ecn: ECN of the connection to the client, as in `Flow`.
        max_rto_ms, slow_start_after_idle, window_scaling, timestamps, sack: As in `Flow`, of the connection to the client.
    """

    host: str = field(metadata=rule(checks.name))
    path: Sequence[int | str] = field(metadata=links(core="path"))
    return_path: Sequence[int | str] = field(metadata=links(core="return_path"))
    buffer_bytes: int = field(default=65536, metadata=integer(1, MAX_COUNT, core="relay_buffer_bytes"))
    cc: Controls | None = field(default=None, metadata=_CONTROL)
    receiver_host: str | None = field(default=None, metadata=HOST_NAME)
    sndbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="sndbuf_bytes"))
    rcvbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="rcvbuf_bytes"))
    initial_cwnd_packets: int = field(default=10, metadata=integer(1, 1000, core="initial_cwnd_packets"))
    ecn: bool = field(default=False, metadata=boolean(core="ecn"))

    def __post_init__(self) -> None:
        check_fields(self, "relay.")
        check_sockets(self, "relay")

    @property
    def sender_host(self) -> str:
        """Name of the host that sends on this leg."""
        return self.host


@dataclass(frozen=True, kw_only=True)
class Sender(TcpSettings):
    """Endpoint that opens flows.

    Args:
        cc: Congestion control of the flows, as in `Flow`; not "agent".
        path, return_path: Links of data and ACKs, as indices into `Scenario.links` or link names.
        initial_cwnd_packets: Initial window, 1 to 1000.
        name: Label.
        sender_host, receiver_host, sndbuf_bytes, rcvbuf_bytes: As in `Flow`.
        ecn: ECN of all flows, as in `Flow`.
        max_rto_ms, slow_start_after_idle, window_scaling, timestamps, sack: As in `Flow`, of all flows, up to a proxy.
        relay: Proxy of the flows; `path` and `receiver_host` then lead to the proxy. None: no proxy.
    """

    cc: Controls = field(default="cubic", metadata=_CONTROL)
    path: Sequence[int | str] = field(metadata=links(core="path"))
    return_path: Sequence[int | str] = field(metadata=links(core="return_path"))
    initial_cwnd_packets: int = field(default=10, metadata=integer(1, 1000, core="initial_cwnd_packets"))
    name: str = field(default="", metadata=text())
    sender_host: str | None = field(default=None, metadata=HOST_NAME)
    receiver_host: str | None = field(default=None, metadata=HOST_NAME)
    sndbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="sndbuf_bytes"))
    rcvbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="rcvbuf_bytes"))
    relay: Relay | None = None
    ecn: bool = field(default=False, metadata=boolean(core="ecn"))

    def __post_init__(self) -> None:
        check_fields(self, "sender.")
        if self.relay is not None:
            if not isinstance(self.relay, Relay):
                raise ScenarioTypeError(f"sender.relay = {quote(self.relay)} is not a Relay")
            host, relay = self.receiver_host, self.relay.host
            if host not in (None, relay):
                raise ScenarioError(f"sender.receiver_host = {host!r} beside relay.host = {relay!r}; valid: that, or None")
            object.__setattr__(self, "receiver_host", relay)
        check_sockets(self, "sender")

    @property
    def legs(self) -> tuple[Sender | Relay, ...]:
        """Connections of a flow, in the order in which data pass them."""
        return (self,) if self.relay is None else (self, self.relay)
