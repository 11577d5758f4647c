"""Netlink: requests and their answers, and the few requests needed: routes and devices, and generic families."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import TypeVar

HEADER = struct.Struct("=IHHII")
"""Header of a message: length, type, flags, sequence number, port."""
GENERIC = struct.Struct("=BBH")
ATTRIBUTE = struct.Struct("=HH")
ERROR = struct.Struct("=i")
DEVICE = struct.Struct("=BxHiII")
"""struct ifinfomsg: family, type, number, flags, mask of the flags to change."""
ROUTE = struct.Struct("=BBBBBBBBI")
"""struct rtmsg: family, bits of destination and source, TOS, table, protocol, scope, type, flags."""

NETLINK_GENERIC, SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 16, 270, 10, 11
NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_CREATE = 2, 1, 4, 0x100, 0x400
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
NLA_F_NESTED, NLA_TYPE = 0x8000, 0x3FFF
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
RTM_NEWLINK, RTM_NEWROUTE, RTPROT_BOOT = 16, 24, 3
IFF_UP, IFLA_MTU, IFLA_TXQLEN = 1, 4, 13
RTA_DST, RTA_OIF, RTA_PREFSRC, RTA_METRICS = 1, 4, 7, 8
RT_TABLE_MAIN, RT_TABLE_LOCAL, RTN_UNICAST, RTN_LOCAL, RT_SCOPE_UNIVERSE, RT_SCOPE_HOST = 254, 255, 1, 2, 0, 254
INITCWND, FEATURES, INITRWND, QUICKACK, CC_ALGO = 11, 12, 14, 15, 16
"""Metrics of routes: RTAX_*."""
TIMEOUT_S = 30.0
"""Longest time to wait for an answer: a driver that resizes its rings may take seconds."""

Value = bytes | int | str | Mapping[int, "bytes | int | str"]
Self = TypeVar("Self", bound="Netlink")


def attribute(kind: int, value: Value) -> bytes:
    """Encode an attribute: bytes as they are, a number as 32 bits, text ended by a zero, a mapping as nested attributes."""
    if isinstance(value, Mapping):
        kind |= NLA_F_NESTED
        value = b"".join(attribute(one, inner) for one, inner in value.items())
    elif isinstance(value, str):
        value = value.encode() + b"\0"
    elif isinstance(value, int):
        value = struct.pack("=I", value)
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes of a message by their kinds; one that is cut off at the end is left out."""
    found, at = {}, 0
    while at + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < ATTRIBUTE.size or at + length > len(data):
            break
        found[kind & NLA_TYPE] = data[at + ATTRIBUTE.size : at + length]
        at += length + (-length % 4)
    return found


class Netlink:
    """A socket to a part of the kernel, of the network namespace that it is opened in. A context manager.

    Args:
        protocol: the part of the kernel, NETLINK_*.

    Raises:
        OSError: the kernel does not have this part.
    """

    def __init__(self, protocol: int):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        try:
            for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK):
                self._socket.setsockopt(SOL_NETLINK, option, 1)
            self._socket.settimeout(TIMEOUT_S)
            self._socket.bind((0, 0))
        except BaseException:
            self._socket.close()
            raise
        self._sequence = 0

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._socket.close()

    def request(self, kind: int, flags: int, body: bytes) -> bytes:
        """Send one message; return the payload of the last message of the answer, empty where it was only acknowledged.

        Raises:
            OSError: refused, in the kernel's words where it has some, or not answered.
        """
        self._sequence += 1
        flags |= NLM_F_REQUEST | NLM_F_ACK
        self._socket.send(HEADER.pack(HEADER.size + len(body), kind, flags, self._sequence, 0) + body)
        found = b""
        while True:
            data, at = self._socket.recv(1 << 16), 0
            while at + HEADER.size <= len(data):
                length, answer, answer_flags, sequence, _ = HEADER.unpack_from(data, at)
                if length < HEADER.size:
                    break
                payload, at = data[at + HEADER.size : at + length], at + length + (-length % 4)
                if sequence != self._sequence:
                    continue
                if answer == NLMSG_ERROR:
                    _raise_refusal(payload, answer_flags)
                    return found
                found = payload


def _raise_refusal(payload: bytes, flags: int) -> None:
    (code,) = ERROR.unpack_from(payload)
    if code == 0:
        return
    said = os.strerror(-code)
    if flags & NLM_F_ACK_TLVS:
        skipped = ERROR.size + HEADER.size
        if not flags & NLM_F_CAPPED:
            skipped = ERROR.size + HEADER.unpack_from(payload, ERROR.size)[0]
        words = attributes(payload[skipped:]).get(NLMSGERR_ATTR_MSG)
        if words:
            said = f"{said} ({words.rstrip(bytes(1)).decode(errors='replace')})"
    raise OSError(-code, said)


class Generic(Netlink):
    """A socket to the kernel's generic families."""

    def __init__(self) -> None:
        super().__init__(NETLINK_GENERIC)

    def family(self, name: str) -> int:
        """Return the number of a family; raises OSError (ENOENT) where the kernel does not have it."""
        answer = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name))
        return int(struct.unpack("=H", answer[CTRL_ATTR_FAMILY_ID])[0])

    def ask(self, family: int, command: int, body: bytes) -> dict[int, bytes]:
        """Send one request; return the attributes of its answer, none where it was only acknowledged. Raises OSError."""
        return attributes(self.request(family, 0, GENERIC.pack(command, 1, 0) + body)[GENERIC.size :])


class Routing(Netlink):
    """A socket to the kernel's devices and routes."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def set_up(self, device: str, mtu: int | None = None, queue_packets: int | None = None) -> None:
        """Set a device up, and its MTU and transmit queue. Raises OSError."""
        given = {IFLA_MTU: mtu, IFLA_TXQLEN: queue_packets}
        self._change(device, IFF_UP, {kind: value for kind, value in given.items() if value is not None})

    def set_queue(self, device: str, packets: int) -> None:
        """Set a device's transmit queue. Raises OSError."""
        self._change(device, 0, {IFLA_TXQLEN: packets})

    def route(
        self, to: str, bits: int, device: str, metrics: Mapping[int, int | bytes] | None = None, source: str | None = None
    ) -> None:
        """Route `to`/`bits` over a device.

        Args:
            metrics: metrics by RTAX_ number.
            source: source address of sockets without an address.

        Raises:
            OSError: refused.
        """
        more: dict[int, Value] = {} if source is None else {RTA_PREFSRC: socket.inet_aton(source)}
        if metrics:
            more[RTA_METRICS] = metrics
        self._route(to, bits, device, (RT_TABLE_MAIN, RTPROT_BOOT, RT_SCOPE_UNIVERSE, RTN_UNICAST), more)

    def local(self, to: str, bits: int) -> None:
        """Make all addresses of `to`/`bits` this namespace's own. Raises OSError."""
        self._route(to, bits, "lo", (RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL), {})

    def _change(self, device: str, flags: int, given: Mapping[int, int]) -> None:
        body = DEVICE.pack(socket.AF_UNSPEC, 0, socket.if_nametoindex(device), flags, flags)
        self.request(RTM_NEWLINK, 0, body + b"".join(attribute(kind, value) for kind, value in given.items()))

    def _route(self, to: str, bits: int, device: str, about: tuple[int, int, int, int], more: Mapping[int, Value]) -> None:
        given = {RTA_DST: socket.inet_aton(to), RTA_OIF: socket.if_nametoindex(device), **more}
        body = ROUTE.pack(socket.AF_INET, bits, 0, 0, *about, 0)
        body += b"".join(attribute(kind, value) for kind, value in given.items())
        self.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body)
