"""Generic netlink, as much of it as the rings of network devices need: a family by its name, one request, its answer."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping

HEADER = struct.Struct("=IHHII")
"""Of a netlink message: length, type, flags, sequence number, port."""
GENERIC = struct.Struct("=BBH")
ATTRIBUTE = struct.Struct("=HH")
ERROR = struct.Struct("=i")

NETLINK_GENERIC, SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 16, 270, 10, 11
NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK = 2, 1, 4
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
NLA_F_NESTED, NLA_TYPE = 0x8000, 0x3FFF
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TIMEOUT_S = 30.0
"""For an answer: a driver that resizes its rings may take seconds."""


def attribute(kind: int, value: bytes | int | str | Mapping[int, bytes | int | str]) -> bytes:
    """An attribute: bytes as they are, a number as 32 bits, text ended by a zero, a mapping as attributes within it."""
    if isinstance(value, Mapping):
        kind |= NLA_F_NESTED
        value = b"".join(attribute(one, inner) for one, inner in value.items())
    elif isinstance(value, str):
        value = value.encode() + b"\0"
    elif isinstance(value, int):
        value = struct.pack("=I", value)
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message by their kinds; what is cut off at the end is left out."""
    found, at = {}, 0
    while at + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < ATTRIBUTE.size or at + length > len(data):
            break
        found[kind & NLA_TYPE] = data[at + ATTRIBUTE.size : at + length]
        at += length + (-length % 4)
    return found


class Generic:
    """A socket to the kernel's generic netlink families, of the network namespace it is opened in. A context.

    Raises:
        OSError: the kernel has none.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_GENERIC)
        for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK):
            self._socket.setsockopt(SOL_NETLINK, option, 1)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Generic:
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def family(self, name: str) -> int:
        """The number of a family; raises OSError (ENOENT) where the kernel does not have it."""
        answer = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name))
        return int(struct.unpack("=H", answer[CTRL_ATTR_FAMILY_ID])[0])

    def ask(self, family: int, command: int, body: bytes, version: int = 1) -> dict[int, bytes]:
        """Sends one request; the attributes of its answer, none where it was only acknowledged.

        Raises:
            OSError: refused, in the kernel's words where it has some.
        """
        self._sequence += 1
        body = GENERIC.pack(command, version, 0) + body
        self._socket.send(HEADER.pack(HEADER.size + len(body), family, NLM_F_REQUEST | NLM_F_ACK, self._sequence, 0) + body)
        found: dict[int, bytes] = {}
        while True:
            data, at = self._socket.recv(1 << 16), 0
            while at + HEADER.size <= len(data):
                length, kind, flags, sequence, _ = HEADER.unpack_from(data, at)
                if length < HEADER.size:
                    break
                payload, at = data[at + HEADER.size : at + length], at + length + (-length % 4)
                if sequence != self._sequence:
                    continue
                if kind == NLMSG_ERROR:
                    _raise_refusal(payload, flags)
                    return found
                found = attributes(payload[GENERIC.size :])


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
