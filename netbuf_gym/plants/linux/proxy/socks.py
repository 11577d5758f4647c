"""Client side of SOCKS5 (RFC 1928), as far as connecting without a password needs it."""

from __future__ import annotations

import socket
import struct

ANSWERS = (
    *("succeeded", "general failure", "not allowed", "network unreachable", "host unreachable", "connection refused"),
    *("expired", "command not supported", "address type not supported"),
)


def connect_through(connection: socket.socket, address: tuple[str, int]) -> None:
    """Ask a SOCKS5 proxy, over a fresh connection, to connect on to an IPv4 address behind it.

    Raises:
        OSError: the proxy refuses, is none, or has gone.
    """
    connection.sendall(b"\x05\x01\x00")
    if _receive_exactly(connection, 2) != b"\x05\x00":
        raise ConnectionError("no SOCKS5 proxy that takes connections without a password")
    connection.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(address[0]) + struct.pack(">H", address[1]))
    _, status, _, kind = _receive_exactly(connection, 4)
    if status:
        raise ConnectionError(f"SOCKS5: {ANSWERS[status] if status < len(ANSWERS) else f'status {status}'}")
    _receive_exactly(connection, {1: 6, 4: 18}.get(kind, 6) if kind != 3 else _receive_exactly(connection, 1)[0] + 2)


def _receive_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("the proxy closed the connection")
        data += more
    return data
