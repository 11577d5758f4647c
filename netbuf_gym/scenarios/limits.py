"""Constants of the stacks and the ranges that the fields of a scenario keep to."""

from __future__ import annotations

from dataclasses import dataclass

from netbuf_gym import _core

_PROFILES = _core.stacks()
STACKS = tuple(_PROFILES)
AGENT = "agent"
"""The congestion control whose window an environment sets."""

MSS_BYTES: int = _PROFILES["linux"]["mss_bytes"]
"""The largest segment of every stack, when it is not said."""
DATA_BYTES = {stack: profile["data_bytes"] for stack, profile in _PROFILES.items()}
"""A full data packet on the wire: IP without a link header, and with the two bytes of PPP in the ns3 stack."""
PACES = {stack: profile["paces"] for stack, profile in _PROFILES.items()}
"""Whether senders that do not pace themselves can be paced."""
HAS_HOSTS = {stack: bool(profile["has_hosts"]) for stack, profile in _PROFILES.items()}
"""Whether flows can end at hosts, whose sockets' buffers follow the stack's rules."""
SPEAKS_ECN = {stack: bool(profile["speaks_ecn"]) for stack, profile in _PROFILES.items()}
"""Whether flows can have explicit congestion notification."""
ACK_BYTES = {stack: profile["ack_bytes"] for stack, profile in _PROFILES.items()}


def bdp_packets(rate_mbps: float, rtt_ms: float, stack: str = "linux") -> float:
    """The bandwidth-delay product of a path in full packets of a stack."""
    return rate_mbps * rtt_ms * 1e3 / 8 / DATA_BYTES[stack]


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """How the hosts of a stack stand in a ready-made world: as in the experiments that its results are compared with.

    Attributes:
        access_mbps, access_delay_ms: Of the access links; None: they have no rate.
        rate_back: Whether the bottleneck's way back has the bottleneck's rate, or none.
        device_packets: As in `Link`, where the bottleneck is the port of a switch.
        ping_bytes: A datagram of 64 bytes on the wire.
    """

    access_mbps: float | None
    access_delay_ms: float
    rate_back: bool
    device_packets: int
    ping_bytes: int


HOSTS_OF = {
    "linux": Hosts(access_mbps=None, access_delay_ms=0.0, rate_back=False, device_packets=0, ping_bytes=92),
    "ns3": Hosts(access_mbps=1000.0, access_delay_ms=1.0, rate_back=True, device_packets=1, ping_bytes=94),
}

MAX_DELAY_MS = 100_000.0
MIN_DURATION_S = 1e-9
"""A nanosecond, the simulator's unit."""
MAX_DURATION_S = 1e6
MAX_COUNT = 2**40
MAX_QUEUES = 64
"""Priority queues of one switch."""
MAX_ALPHA = 1e6
MAX_FLOWS = 5_000_000
"""Finite flows that the random arrivals of a scenario may open in the mean: each is remembered until the end."""
