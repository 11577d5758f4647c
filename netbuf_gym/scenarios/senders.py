"""Senders of traffic, and relays between senders and clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import WITHOUT_AGENT, CongestionControl, parse_congestion_control
from netbuf_gym.scenarios.hosts import check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.utils import checks


@dataclass(frozen=True, kw_only=True)
class Relay:
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
    """

    host: str
    path: Sequence[int | str]
    return_path: Sequence[int | str]
    buffer_bytes: int = 65536
    cc: str | Mapping[str, Any] | CongestionControl | OwnControl | Callable[..., Any] | None = None
    receiver_host: str | None = None
    sndbuf_bytes: int | None = None
    rcvbuf_bytes: int | None = None
    initial_cwnd_packets: int = 10
    ecn: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "path", checks.sequence("relay.path", self.path, "links"))
        put(self, "return_path", checks.sequence("relay.return_path", self.return_path, "links"))
        put(self, "buffer_bytes", checks.integer("relay.buffer_bytes", self.buffer_bytes, 1, MAX_COUNT))
        if self.cc is not None:
            put(self, "cc", parse_congestion_control("relay.cc", self.cc, WITHOUT_AGENT))
        cwnd = checks.integer("relay.initial_cwnd_packets", self.initial_cwnd_packets, 1, 1000)
        put(self, "initial_cwnd_packets", cwnd)
        put(self, "ecn", checks.boolean("relay.ecn", self.ecn))
        check_sockets(self, "relay")

    @property
    def sender_host(self) -> str:
        """Name of the host that sends on this leg."""
        return self.host


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Endpoint that opens flows.

    Args:
        cc: Congestion control of the flows, as in `Flow`; not "agent".
        path, return_path: Links of data and ACKs, as indices into `Scenario.links` or link names.
        initial_cwnd_packets: Initial window, 1 to 1000.
        name: Label.
        sender_host, receiver_host, sndbuf_bytes, rcvbuf_bytes: As in `Flow`.
        ecn: ECN of all flows, as in `Flow`.
        relay: Proxy of the flows; `path` and `receiver_host` then lead to the proxy. None: no proxy.
    """

    cc: str | Mapping[str, Any] | CongestionControl | OwnControl | Callable[..., Any] = "cubic"
    path: Sequence[int | str]
    return_path: Sequence[int | str]
    initial_cwnd_packets: int = 10
    name: str = ""
    sender_host: str | None = None
    receiver_host: str | None = None
    sndbuf_bytes: int | None = None
    rcvbuf_bytes: int | None = None
    relay: Relay | None = None
    ecn: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cc", parse_congestion_control("sender.cc", self.cc, WITHOUT_AGENT))
        put(self, "path", checks.sequence("sender.path", self.path, "links"))
        put(self, "return_path", checks.sequence("sender.return_path", self.return_path, "links"))
        cwnd = checks.integer("sender.initial_cwnd_packets", self.initial_cwnd_packets, 1, 1000)
        put(self, "initial_cwnd_packets", cwnd)
        checks.text("sender.name", self.name)
        put(self, "ecn", checks.boolean("sender.ecn", self.ecn))
        if self.relay is not None:
            if not isinstance(self.relay, Relay):
                raise ScenarioTypeError(f"sender.relay = {shown(self.relay)} is not a Relay")
            host, relay = self.receiver_host, self.relay.host
            if host not in (None, relay):
                raise ScenarioError(f"sender.receiver_host = {host!r} beside relay.host = {relay!r}; valid: that, or None")
            put(self, "receiver_host", relay)
        check_sockets(self, "sender")

    @property
    def legs(self) -> tuple[Sender | Relay, ...]:
        """Connections of a flow, in the order in which data pass them."""
        return (self,) if self.relay is None else (self, self.relay)
