"""Rings of network devices, read and set by ethtool's messages over netlink."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

from netbuf_gym.plants.linux.netlink import Generic, attribute

RINGS_GET, RINGS_SET = 15, 16
HEADER, TX_MAX, TX = 1, 5, 9
DEVICE_NAME = 2


@dataclass(frozen=True)
class RingSizes:
    """Transmit ring of a device: its length and greatest length, in packets."""

    tx: int
    tx_max: int


class RingAccess(Protocol):
    """Protocol for reading and writing rings; OSError where that is refused."""

    def get(self, device: str) -> RingSizes: ...

    def set(self, device: str, tx: int) -> RingSizes: ...


class KernelRings:
    """Access to rings through the kernel, in the network namespace of the caller."""

    def get(self, device: str) -> RingSizes:
        """Read the ring of a device; raises OSError (EOPNOTSUPP: the device has none)."""
        with Generic() as netlink:
            return _read_ring(netlink, netlink.family("ethtool"), device)

    def set(self, device: str, tx: int) -> RingSizes:
        """Set the ring of a device, and return the result as read back from the driver; raises OSError."""
        with Generic() as netlink:
            family = netlink.family("ethtool")
            netlink.ask(family, RINGS_SET, attribute(HEADER, {DEVICE_NAME: device}) + attribute(TX, tx))
            return _read_ring(netlink, family, device)


def _read_ring(netlink: Generic, family: int, device: str) -> RingSizes:
    answer = netlink.ask(family, RINGS_GET, attribute(HEADER, {DEVICE_NAME: device}))
    number = struct.Struct("=I").unpack
    return RingSizes(
        tx=number(answer[TX])[0] if TX in answer else 0, tx_max=number(answer[TX_MAX])[0] if TX_MAX in answer else 0
    )
