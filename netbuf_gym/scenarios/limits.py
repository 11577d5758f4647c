"""Constants of the stacks, and limits of the fields of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from netbuf_gym import _core

_PROFILES = _core.stacks()
STACKS = tuple(_PROFILES)
AGENT = "agent"
"""Name of the congestion control whose window an environment sets."""

MSS_BYTES: int = _PROFILES["linux"]["mss_bytes"]
"""Default largest segment of all stacks."""
DATA_BYTES = {stack: profile["data_bytes"] for stack, profile in _PROFILES.items()}
"""Wire size of a full data packet by stack: IP without a link header, plus the two bytes of PPP in the ns3 stack."""
PACES = {stack: profile["paces"] for stack, profile in _PROFILES.items()}
"""Whether senders that do not pace themselves can be paced, by stack."""
HAS_HOSTS = {stack: bool(profile["has_hosts"]) for stack, profile in _PROFILES.items()}
"""Whether flows can end at hosts, whose socket buffers follow the stack's rules, by stack."""
SPEAKS_ECN = {stack: bool(profile["speaks_ecn"]) for stack, profile in _PROFILES.items()}
"""Whether flows can use explicit congestion notification, by stack."""
ACK_BYTES = {stack: profile["ack_bytes"] for stack, profile in _PROFILES.items()}
TIMESTAMP_BYTES = 12
"""Part of a header that time stamps take (RFC 7323, appendix A)."""


def compute_bdp_packets(rate_mbps: float, rtt_ms: float, stack: str = "linux") -> float:
    """Return the bandwidth-delay product of a path in full packets of a stack."""
    return rate_mbps * rtt_ms * 1e3 / 8 / DATA_BYTES[stack]


@dataclass(frozen=True, kw_only=True)
class HostDefaults:
    """Attachment of a stack's hosts in ready-made worlds, as in the experiments that results are compared with.

    Attributes:
        access_mbps, access_delay_ms: Rate and delay of the access links; rate None: infinitely fast.
        rate_back: Whether the return path has the bottleneck's rate; otherwise it is infinitely fast.
        device_packets: As in `Link`, for a bottleneck that is the port of a switch.
        ping_bytes: Wire size of a datagram of 64 bytes.
    """

    access_mbps: float | None
    access_delay_ms: float
    rate_back: bool
    device_packets: int
    ping_bytes: int


HOST_DEFAULTS = {
    "linux": HostDefaults(access_mbps=None, access_delay_ms=0.0, rate_back=False, device_packets=0, ping_bytes=92),
    "ns3": HostDefaults(access_mbps=1000.0, access_delay_ms=1.0, rate_back=True, device_packets=1, ping_bytes=94),
}

MAX_DELAY_MS = 100_000.0
MIN_DURATION_S = 1e-9
"""One nanosecond, the simulator's unit of time."""
MAX_DURATION_S = 1e6
MAX_COUNT = 2**40
MAX_DATAGRAM_BYTES = 65_535
MAX_QUEUES = 64
"""Largest number of priority queues of a switch."""
MAX_ALPHA = 1e6
MAX_FLOWS = 5_000_000
"""Largest expected number of finite flows that random arrivals of a scenario open: each is kept until the end."""
