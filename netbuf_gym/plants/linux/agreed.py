"""Constants shared by the owner of a live world and the world's process. Needs the standard library only."""

from __future__ import annotations

DRIVEN = "receiver_driven"
"""The congestion control whose window is the receiver's."""

NOTSENT_LOWAT_BYTES = 128 * 1024
"""Unsent data that a socket accepts: enough for the sleeps of a thread, little enough to stop when a flow stops."""

PACED_BYTES_PER_S = 1 << 40
"""A limit (SO_MAX_PACING_RATE) that never binds: with any limit set, the kernel paces a socket by itself."""


def format_address(node: int, route: int) -> str:
    """Return the address of an end of a route, at a node."""
    return f"10.{node}.{route >> 8}.{route & 255}"
