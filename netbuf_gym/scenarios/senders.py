"""Senders of traffic, and the relays that their flows pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import WITHOUT_AGENT, CongestionControl, congestion_control
from netbuf_gym.scenarios.hosts import check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.utils import checks


@dataclass(frozen=True, kw_only=True)
class Relay:
    """A proxy on the way of a sender's flows: each is two connections, to the proxy and from there to the client.

    The proxy sends on what it has read, through a buffer of its own. A flow begins with the client's SYN to the proxy: when
    that, its request and the proxy's own handshake and request can have arrived, the sender's connection begins. It is
    complete when the client has all of it.

    Args:
        host: The `Host` that the proxy is, by name; the sender's connections end there.
        path, return_path: The links that data and ACKs take between proxy and client, as in `Sender`.
        buffer_bytes: What the proxy holds between its two sockets at most, 1 to 2**40.
        cc: Congestion control of the proxy's connection to the client; None: the sender's.
        receiver_host: The `Host` that the client is; None: one whose buffers never limit.
        sndbuf_bytes, rcvbuf_bytes: Explicit buffers of the proxy's sending and the client's receiving socket, as in `Flow`.
        initial_cwnd_packets: 1 to 1000.
        ecn: As in `Flow`, of the connection to the client.
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
            put(self, "cc", congestion_control("relay.cc", self.cc, WITHOUT_AGENT))
        cwnd = checks.integer("relay.initial_cwnd_packets", self.initial_cwnd_packets, 1, 1000)
        put(self, "initial_cwnd_packets", cwnd)
        put(self, "ecn", checks.boolean("relay.ecn", self.ecn))
        check_sockets(self, "relay")

    @property
    def sender_host(self) -> str:
        """The host that sends on this leg."""
        return self.host


@dataclass(frozen=True, kw_only=True)
class Sender:
    """A host that opens flows.

    Args:
        cc: Congestion control of its flows, as in `Flow`; not "agent".
        path, return_path: The links that data and ACKs take, as indices into `Scenario.links` or link names.
        initial_cwnd_packets: 1 to 1000.
        name: For people.
        sender_host, receiver_host, sndbuf_bytes, rcvbuf_bytes: As in `Flow`.
        ecn: As in `Flow`, of all its flows.
        relay: The proxy that its flows pass; `path` and `receiver_host` are those to the proxy then. None: none.
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
        put(self, "cc", congestion_control("sender.cc", self.cc, WITHOUT_AGENT))
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
        """Its connections, in the order in which bytes pass them."""
        return (self,) if self.relay is None else (self, self.relay)
