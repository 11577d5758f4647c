"""Settings of a host's buffers: their names, their ranges, and recommended values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RING_RANGE = (64.0, 4096.0)
SOCKET_RANGE = (5120.0, 67_108_864.0)
TCP_RANGE = (512.0, 67_108_864.0)
"""The paper's ranges, for an Ubuntu 18.04 with an e1000e: packets, bytes, bytes."""

RING_SLOT_BYTES = 2048
"""Memory of one slot of a ring, filled or not: drivers of Ethernet devices keep half a page for each packet."""


@dataclass(frozen=True)
class Settings:
    """Buffer settings of a host.

    Attributes:
        ring_packets: Size of the ring.
        socket_bytes: Cap of explicit socket buffers (net.core.{r,w}mem_max).
        rmem_default_bytes, rmem_max_bytes: net.ipv4.tcp_rmem[1] and [2].
        wmem_default_bytes, wmem_max_bytes: net.ipv4.tcp_wmem[1] and [2].
    """

    ring_packets: int
    socket_bytes: int
    rmem_default_bytes: int
    rmem_max_bytes: int
    wmem_default_bytes: int
    wmem_max_bytes: int

    @property
    def controls(self) -> dict[str, float]:
        """Settings by the names of an agent's controls."""
        return {
            "ring_packets": float(self.ring_packets),
            "socket_bytes": float(self.socket_bytes),
            "tcp_rmem_default_bytes": float(self.rmem_default_bytes),
            "tcp_rmem_max_bytes": float(self.rmem_max_bytes),
            "tcp_wmem_default_bytes": float(self.wmem_default_bytes),
            "tcp_wmem_max_bytes": float(self.wmem_max_bytes),
        }

    def with_controls(self, controls: Mapping[str, float]) -> Settings:
        """Return a copy with some values replaced, by the names of controls; other names are ignored."""
        found = {name: int(controls.get(name, value)) for name, value in self.controls.items()}
        return Settings(*found.values())

    @classmethod
    def from_paper(cls, ring: int, tcp: int, socket: int) -> Settings:
        """Return the settings of a row of the paper's Table I, with its columns in this order.

        The table has one number for TCP where Linux has two. They are read as in the guides that the paper takes them from: the
        TCP column is the initial buffer of connections, and the larger of the TCP and the socket column is the maximum of
        autotuning.
        """
        most = max(tcp, socket)
        return cls(ring, socket, tcp, most, tcp, most)


DEFAULT = Settings.from_paper(256, 65_536, 212_992)
"""The paper's `default`."""

NAMED: dict[str, Settings] = {
    "default": DEFAULT,
    "tune-1": Settings.from_paper(512, 1_048_576, 4_194_304),
    "tune-2": Settings.from_paper(256, 87_380, 67_108_864),
    "max": Settings.from_paper(4096, 67_108_864, 67_108_864),
    "autotuning": Settings(256, 212_992, 131_072, 6_291_456, 16_384, 4_194_304),
}
"""The paper's four settings, and Linux's defaults, which tune every connection's buffers up to Linux's own maxima."""
PAIRS = tuple(f"{name}+{cc}" for cc in ("bbr", "vegas") for name in NAMED if name != "default")
"""Names of these settings with another congestion control than CUBIC."""

CHOICES = ("cubic", "bbr", "vegas")
"""Congestion controls that a program chooses among for its sockets, in the order of the control `congestion_control`."""

GRID_RINGS = (64, 256, 512, 1024, 4096)
GRID_TCP_BYTES = (131_072, 524_288, 2_097_152, 8_388_608, 67_108_864)
GRID_SOCKET_BYTES = (212_992, 4_194_304, 67_108_864)


def constant_settings(ring: int, tcp: int, socket: int) -> Settings:
    """Return settings with TCP maxima of `tcp` bytes both ways, and Linux's defaults limited to them."""
    linux = NAMED["autotuning"]
    return Settings(ring, socket, min(linux.rmem_default_bytes, tcp), tcp, min(linux.wmem_default_bytes, tcp), tcp)


GRID: dict[str, Settings] = {
    f"ring {ring}, tcp {tcp}, socket {socket}": constant_settings(ring, tcp, socket)
    for ring in GRID_RINGS
    for tcp in GRID_TCP_BYTES
    for socket in GRID_SOCKET_BYTES
}
"""Constant settings, 5 x 5 x 3, the best of which is compared with agents."""
