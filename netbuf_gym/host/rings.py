"""Rings of network devices, by ethtool's messages over netlink."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

from netbuf_gym.plants.linux.netlink import Generic, attribute

RINGS_GET, RINGS_SET = 15, 16
HEADER, TX_MAX, TX = 1, 5, 9
DEVICE_NAME = 2


@dataclass(frozen=True)
class Rings:
    """What a device says of the ring that it sends from, in packets: how long it is, and may be."""

    tx: int
    tx_max: int


class Access(Protocol):
    """Reads and writes rings; OSError where that is refused."""

    def get(self, device: str) -> Rings: ...

    def set(self, device: str, tx: int) -> Rings: ...


class Kernel:
    """The kernel's, of the network namespace that it is used in."""

    def get(self, device: str) -> Rings:
        """Asks the kernel; raises OSError (EOPNOTSUPP: the device has none)."""
        with Generic() as netlink:
            return _get(netlink, netlink.family("ethtool"), device)

    def set(self, device: str, tx: int) -> Rings:
        """Sets the ring, and says what the driver made of it; raises OSError."""
        with Generic() as netlink:
            family = netlink.family("ethtool")
            netlink.ask(family, RINGS_SET, attribute(HEADER, {DEVICE_NAME: device}) + attribute(TX, tx))
            return _get(netlink, family, device)


def _get(netlink: Generic, family: int, device: str) -> Rings:
    answer = netlink.ask(family, RINGS_GET, attribute(HEADER, {DEVICE_NAME: device}))
    number = struct.Struct("=I").unpack
    return Rings(tx=number(answer[TX])[0] if TX in answer else 0, tx_max=number(answer[TX_MAX])[0] if TX_MAX in answer else 0)
