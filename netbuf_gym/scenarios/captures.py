"""Reader of packet captures: time stamps and lengths of pcap and pcapng files."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ScenarioError, prefix_location
from netbuf_gym.utils.files import check_text_file

MAX_PACKETS = 5_000_000
_CLASSIC = {b"\xd4\xc3\xb2\xa1": ("<", 1e-6), b"\xa1\xb2\xc3\xd4": (">", 1e-6), b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
            b"\xa1\xb2\x3c\x4d": (">", 1e-9)}  # fmt: skip
_HEADER_BYTES = 24
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_RESOLUTION, _OFFSET = 9, 14
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
MAX_INTERFACES = 10_000


def is_capture(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as a pcap or pcapng file does.

    Raises:
        ScenarioError: The file cannot be read.
    """
    try:
        check_text_file(Path(path))
        with open(path, "rb") as file:
            first = file.read(4)
    except OSError as error:
        raise ScenarioError(prefix_location(f"cannot be read: {error.strerror or error}", path, None)) from None
    return first in _CLASSIC or first == _SECTION.to_bytes(4, "big")


def read_capture(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read the packets of a capture, in order of time.

    Classic pcap with microseconds or nanoseconds (draft-ietf-opsawg-pcap) and pcapng with enhanced and old packet blocks
    (draft-ietf-opsawg-pcapng), in either byte order. Lengths are those on the wire, link header included,
    whatever part of a packet the file holds.

    Returns:
        Times in seconds from the first packet, and lengths in bytes. Shapes (packets,).

    Raises:
        ScenarioError: No such file; no capture, a damaged one, one without packets, without time stamps, or with more than 5
            million packets or 256 MiB.
    """
    try:
        check_text_file(Path(path))
        data = Path(path).read_bytes()
    except OSError as error:
        raise ScenarioError(prefix_location(f"cannot be read: {error.strerror or error}", path, None)) from None
    records = _read_classic(data) if data[:4] in _CLASSIC else _read_blocks(data)
    ticks, lengths = [], []
    try:
        for second, fraction, length in records:
            ticks.append((second, fraction))
            lengths.append(length)
            if len(lengths) > MAX_PACKETS:
                raise ValueError("has more than 5 million packets; valid: fewer")
    except (ValueError, struct.error) as error:
        found = "ends within a block" if isinstance(error, struct.error) else str(error)
        raise ScenarioError(prefix_location(found, path, None)) from None
    if not lengths:
        raise ScenarioError(prefix_location("holds no packets; valid: at least one", path, None))
    seconds, fractions = np.array(ticks, np.float64).T
    first = seconds.min()  # whole seconds apart: since 1970 there are too many of them for the nanoseconds
    time_s = (seconds - first) + fractions
    order = np.argsort(time_s, kind="stable")
    return (time_s - time_s.min())[order], np.array(lengths, np.int64)[order]


def _read_classic(data: bytes) -> Iterator[tuple[int, float, int]]:
    """Yield whole seconds, the rest in seconds, and the length of each packet of a pcap file."""
    order, unit_s = _CLASSIC[data[:4]]
    if len(data) < _HEADER_BYTES:
        raise ValueError(f"ends within its header; valid: {_HEADER_BYTES} bytes or more")
    major, minor = struct.unpack_from(order + "HH", data, 4)
    if (major, minor) != (2, 4):
        raise ValueError(f"is pcap of version {major}.{minor}; valid: 2.4")
    at, header = _HEADER_BYTES, struct.Struct(order + "IIII")
    while at < len(data):
        second, fraction, captured, length = header.unpack_from(data, at)
        at += header.size + captured
        if at > len(data) or fraction * unit_s >= 1:
            raise ValueError("ends within a packet, or holds a damaged one")
        yield second, fraction * unit_s, length


def _read_blocks(data: bytes) -> Iterator[tuple[int, float, int]]:
    """Yield the same of each packet of a pcapng file."""
    if len(data) < 12 or data[:4] != _SECTION.to_bytes(4, "big"):
        raise ValueError("is no capture; valid: pcap or pcapng, not compressed")
    at, order = 0, "<"
    units: list[tuple[int, int]] = []
    while at < len(data):
        if data[at : at + 4] == _SECTION.to_bytes(4, "big"):
            found = _ORDERS.get(data[at + 8 : at + 12])
            if found is None:
                raise ValueError("has a section without a byte order")
            order, units = found, []
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < 12 or size % 4 or at + size > len(data):
            raise ValueError(f"has a block of {size} bytes at byte {at}; valid: a multiple of 4 within the file, 12 or more")
        body = data[at + 8 : at + size - 4]
        at += size
        if kind == _INTERFACE:
            units.append(_read_units(body, order))
            if len(units) > MAX_INTERFACES:
                raise ValueError(f"has more than {MAX_INTERFACES} interfaces; valid: fewer")
        elif kind == _SIMPLE_PACKET:
            raise ValueError("has packets without time stamps (simple packet blocks); valid: enhanced packet blocks")
        elif kind in (_PACKET, _OLD_PACKET):
            form = order + ("IIIII" if kind == _PACKET else "HHIIII")
            fields = struct.unpack_from(form, body)
            interface, (high, low, _, length) = fields[0], fields[-4:]
            if interface >= len(units):
                raise ValueError(f"has a packet of interface {interface}; valid: one that the section describes")
            per_s, offset_s = units[interface]
            second, rest = divmod((high << 32) | low, per_s)
            yield second + offset_s, rest / per_s, length


def _read_units(body: bytes, order: str) -> tuple[int, int]:
    """Return units of time in a second, and seconds to be added, of an interface of a pcapng file."""
    per_s, offset_s, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == _RESOLUTION and size == 1:
            exponent = value[0] & 0x7F
            if exponent > (63 if value[0] & 0x80 else 18):
                raise ValueError(f"has an interface whose resolution of time is {value[0]}; valid: 10^-18 s or 2^-63 s at most")
            per_s = (2 if value[0] & 0x80 else 10) ** exponent
        elif code == _OFFSET and size == 8:
            (offset_s,) = struct.unpack(order + "q", value)
        elif code == 0:
            break
        at += 4 + (size + 3) // 4 * 4
    return per_s, offset_s
