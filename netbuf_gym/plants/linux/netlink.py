"""Routes and devices over raw netlink: the few requests that a world's namespaces need. A request that fails raises OSError."""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

_NEWLINK, _NEWROUTE = 16, 24
_REQUEST, _ACK, _CREATE, _REPLACE = 1, 4, 0x400, 0x100
_ERROR = 2
_HEADER = struct.Struct("=IHHII")
_UP = 1
_MTU, _QUEUE_LENGTH = 4, 13                       # IFLA_*
_DESTINATION, _DEVICE, _SOURCE, _TABLE, _METRICS = 1, 4, 7, 15, 8  # RTA_*
MAIN, LOCAL = 254, 255
_UNICAST, _LOCAL_TYPE = 1, 2
INITCWND, FEATURES, QUICKACK = 11, 12, 15         # RTAX_*


def attribute(kind: int, value: bytes) -> bytes:
    """A netlink attribute, padded."""
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


class Netlink:
    """A connection to the kernel's routing, of the network namespace in which it is made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._number = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def set_up(self, device: str, mtu: int | None = None, queue_packets: int | None = None) -> None:
        """Sets a device up, and its MTU and transmit queue."""
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, socket.if_nametoindex(device), _UP, _UP)
        if mtu is not None:
            body += attribute(_MTU, struct.pack("=I", mtu))
        if queue_packets is not None:
            body += attribute(_QUEUE_LENGTH, struct.pack("=I", queue_packets))
        self._ask(_NEWLINK, 0, body)

    def set_queue(self, device: str, packets: int) -> None:
        """Sets a device's transmit queue."""
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, socket.if_nametoindex(device), 0, 0)
        self._ask(_NEWLINK, 0, body + attribute(_QUEUE_LENGTH, struct.pack("=I", packets)))

    def route(
        self, to: str, bits: int, device: str, metrics: dict[int, int | bytes] | None = None, source: str | None = None
    ) -> None:
        """Sends what goes to `to`/`bits` over a device; `metrics` by RTAX_ number; `source` of sockets without an address."""
        self._route(to, bits, device, MAIN, _UNICAST, 0, metrics, source)

    def local(self, to: str, bits: int) -> None:
        """Makes all addresses of `to`/`bits` this namespace's own."""
        self._route(to, bits, "lo", LOCAL, _LOCAL_TYPE, 254, None, None)

    def _route(
        self, to: str, bits: int, device: str, table: int, kind: int, scope: int, metrics: Any, source: str | None
    ) -> None:
        body = struct.pack("=BBBBBBBBI", socket.AF_INET, bits, 0, 0, table, 3, scope, kind, 0)
        body += attribute(_DESTINATION, socket.inet_aton(to))
        body += attribute(_DEVICE, struct.pack("=I", socket.if_nametoindex(device)))
        if source is not None:
            body += attribute(_SOURCE, socket.inet_aton(source))
        if metrics:
            packed = {key: struct.pack("=I", value) if isinstance(value, int) else value for key, value in metrics.items()}
            body += attribute(_METRICS, b"".join(attribute(key, value) for key, value in packed.items()))
        self._ask(_NEWROUTE, _CREATE | _REPLACE, body)

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._number += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _ACK | flags, self._number, 0) + body)
        while True:
            answer = self._socket.recv(65536)
            _, kind_back, _, number, _ = _HEADER.unpack_from(answer)
            if kind_back == _ERROR and number == self._number:
                code = struct.unpack_from("=i", answer, _HEADER.size)[0]
                if code != 0:
                    raise OSError(-code, f"netlink request {kind}: {os.strerror(-code)}")
                return
