"""Constants of the stacks and the ranges that the fields of a scenario keep to."""

from __future__ import annotations

STACKS = ("linux", "ns3")
AGENT = "agent"
CONGESTION_CONTROLS = ("newreno", "cubic", "bbr", "vegas", "westwood")
"""The schemes of both stacks; the ns3 stack has "linuxreno" too, and "agent" is the environment's own window."""

MSS_BYTES = 1448
DATA_BYTES = {"linux": 1500, "ns3": 1502}
"""A full data packet on the wire: IP without a link header, and with the two bytes of PPP."""
ACK_BYTES = {"linux": 52, "ns3": 54}

MAX_DELAY_MS = 100_000.0
MAX_DURATION_S = 1e6
MAX_COUNT = 2**40
MAX_QUEUES = 64
"""Priority queues of one switch."""
MAX_ALPHA = 1e6
MAX_FLOWS = 5_000_000
"""Finite flows that the random arrivals of a scenario may open in the mean: each is remembered until the end."""


def congestion_controls(stack: str) -> tuple[str, ...]:
    """The names that `Flow.cc` may have in a stack."""
    return (*sender_controls(stack), AGENT)


def sender_controls(stack: str) -> tuple[str, ...]:
    """The names that `Sender.cc` may have in a stack: those that need no agent."""
    return (*CONGESTION_CONTROLS, *(("linuxreno",) if stack == "ns3" else ()))
