"""The TCP connections of a network namespace, as the kernel tells of them: counters, memory, and those that have just ended."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Iterator

import numpy as np

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
DUMP = 0x301
"""NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH."""
NLMSG_ERROR, NLMSG_DONE = 2, 3
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBxI48x")
INFO, SKMEMINFO = 2, 7
"""Attributes of a connection: its `tcp_info`, its memory."""
EXTENSIONS = 1 << (INFO - 1) | 1 << (SKMEMINFO - 1)
STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
"""Established, and on its way to the end with the kernel still at work for it."""
ESTABLISHED = 1
TCP_DESTROY, TCP6_DESTROY = 1 << 0, 1 << 2
NO_RTT = 0xFFFFFFFF

MESSAGE_BYTES, COOKIE_AT, PEER_PORT_AT, ADDRESSES_AT, WQUEUE_AT = 72, 44, 6, 8, 60
INFO_FIELDS = {
    "retrans_out": (36, "u4"),
    "snd_mss": (16, "u4"),
    "unacked": (24, "u4"),
    "rtt_us": (68, "u4"),
    "cwnd": (80, "u4"),
    "total_retrans": (100, "u4"),
    "bytes_acked": (120, "u8"),
    "bytes_received": (128, "u8"),
    "notsent_bytes": (144, "u4"),
    "min_rtt_us": (148, "u4"),
    "data_segs_out": (156, "u4"),
    "delivery_rate": (160, "u8"),
    "busy_us": (168, "u8"),
    "rwnd_limited_us": (176, "u8"),
    "sndbuf_limited_us": (184, "u8"),
}
"""Where `tcp_info` has what is read of it."""
MEMORY_FIELDS = {"rmem_alloc": 0, "rcvbuf": 1, "sndbuf": 3, "fwd_alloc": 4, "wmem_queued": 5}
FIELDS = ("state", "local", "peer_port", "wqueue", *INFO_FIELDS, *MEMORY_FIELDS)
"""Of a connection, in this order; `local` is 1 between addresses of the loopback device, or of one address with itself;
`peer_port` is the other end's. Times in us, rates in bytes/s."""


class Table:
    """Connections at one time: `cookie` uint64 `(n,)`, unique to each; `values` float64 `(n, len(FIELDS))`, NaN: not told."""

    def __init__(self, cookie: np.ndarray, values: np.ndarray):
        self.cookie, self.values = cookie, values

    def __len__(self) -> int:
        return len(self.cookie)

    def __getitem__(self, field: str) -> np.ndarray:
        return self.values[:, FIELDS.index(field)]

    def where(self, kept: np.ndarray) -> Table:
        """Some of them."""
        return Table(self.cookie[kept], self.values[kept])


def joined(tables: list[Table]) -> Table:
    """Several tables as one."""
    cookies = [np.zeros(0, np.uint64), *(table.cookie for table in tables)]
    return Table(np.concatenate(cookies), np.concatenate([np.zeros((0, len(FIELDS))), *(table.values for table in tables)]))


class Connections:
    """A way to ask for the connections of the network namespace that it is opened in. Needs no privileges. A context.

    Raises:
        OSError: the kernel cannot tell (no INET_DIAG).
    """

    def __init__(self) -> None:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._asking = socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG)
        self._ended = socket.socket(socket.AF_NETLINK, kind | socket.SOCK_NONBLOCK, NETLINK_SOCK_DIAG)
        try:
            self._asking.settimeout(5.0)
            self._asking.bind((0, 0))
            self._asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self._ended.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self._ended.bind((0, TCP_DESTROY | TCP6_DESTROY))
        except BaseException:
            self.close()
            raise
        self._buffer = bytearray(1 << 18)

    def __enter__(self) -> Connections:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives back its sockets."""
        self._asking.close()
        self._ended.close()

    def read(self) -> Table:
        """Those that there are now."""
        tables: list[Table] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            body = REQUEST.pack(family, socket.IPPROTO_TCP, EXTENSIONS, STATES)
            self._asking.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, DUMP, 1, 0) + body)
            done = False
            while not done:
                received = self._asking.recv_into(self._buffer)
                table, done = _parsed(bytes(self._buffer[:received]))
                tables.append(table)
        return joined(tables)

    def ended(self) -> Table:
        """Those that ended since this was last asked, with their last counters. Some are missing where too many ended."""
        tables: list[Table] = []
        while True:
            try:
                received = self._ended.recv_into(self._buffer)
            except BlockingIOError:
                return joined(tables)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                continue
            tables.append(_parsed(bytes(self._buffer[:received]))[0])


def _parsed(data: bytes) -> tuple[Table, bool]:
    """The connections of one datagram, and whether it ends the answer."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    done = False
    for at, length, kind in _messages(data):
        if kind == NLMSG_DONE:
            done = True
        elif kind == NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", data, at + HEADER.size)
            if code:
                raise OSError(-code, "the kernel does not tell of connections (INET_DIAG)")
            done = True
        else:
            begin = at + HEADER.size + MESSAGE_BYTES
            groups.setdefault((length, data[begin : begin + 4]), []).append(at)
    raw = np.frombuffer(data, np.uint8)
    return joined([_group(raw, data, length, np.array(starts)) for (length, _), starts in groups.items()]), done


def _messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    at, end, unpack = 0, len(data) - HEADER.size, struct.Struct("=IH").unpack_from
    while at <= end:
        length, kind = unpack(data, at)
        if length < HEADER.size:
            return
        yield at, length, kind
        at += (length + 3) & ~3


def _group(raw: np.ndarray, data: bytes, length: int, starts: np.ndarray) -> Table:
    """Messages of one length, which have their attributes in the same places; those that have not are read one by one."""
    places = _attributes(data, int(starts[0]), length)
    rows = raw[starts[:, None] + np.arange(length)]
    alike = np.ones(len(starts), bool)
    for at in places.values():
        alike &= (rows[:, at - 4 : at] == rows[0, at - 4 : at]).all(axis=1)
    if not alike.all():
        others = (_group(raw, data, length, one[None]) for one in starts[~alike])
        return joined([_group(raw, data, length, starts[alike]), *others])
    head = rows[:, HEADER.size :]
    values = np.full((len(starts), len(FIELDS)), np.nan)
    values[:, 0] = head[:, 1]
    values[:, 1] = _loopback(head)
    values[:, 2] = head[:, PEER_PORT_AT] * 256.0 + head[:, PEER_PORT_AT + 1]
    values[:, 3] = _numbers(head, WQUEUE_AT, "u4")
    column = 4
    for offset, kind in INFO_FIELDS.values():
        if INFO in places and places[INFO] + offset + int(kind[1]) <= length:
            values[:, column] = _numbers(rows, places[INFO] + offset, kind)
        column += 1
    for index in MEMORY_FIELDS.values():
        if SKMEMINFO in places:
            values[:, column] = _numbers(rows, places[SKMEMINFO] + 4 * index, "u4")
        column += 1
    return Table(_numbers(head, COOKIE_AT, "u8"), values)


def _attributes(data: bytes, start: int, length: int) -> dict[int, int]:
    """Where, from a message's start, the values of its attributes are."""
    found, at, end = {}, start + HEADER.size + MESSAGE_BYTES, start + length
    while at + 4 <= end:
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            break
        found[kind] = at + 4 - start
        at += (size + 3) & ~3
    return found


def _numbers(rows: np.ndarray, at: int, kind: str) -> np.ndarray:
    return np.ascontiguousarray(rows[:, at : at + int(kind[1])]).view(f"={kind}")[:, 0]


def _loopback(head: np.ndarray) -> np.ndarray:
    """Whether both ends are on the loopback device: 127/8, ::1, and 127/8 as IPv6 writes it."""
    source, other = (head[:, ADDRESSES_AT + k : ADDRESSES_AT + k + 16] for k in (0, 16))
    four = head[:, 0] == int(socket.AF_INET)
    mapped = (source[:, :10] == 0).all(axis=1) & (source[:, 10:12] == 255).all(axis=1)
    one = (source[:, :15] == 0).all(axis=1) & (source[:, 15] == 1)
    same = (source == other).all(axis=1)
    return np.where(four, source[:, 0] == 127, one | (mapped & (source[:, 12] == 127))) | same


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("connections are read on little-endian machines only")
