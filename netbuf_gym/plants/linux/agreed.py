"""Constants shared by the owner of a live world and the world's process. Needs the core alone."""

from __future__ import annotations

from netbuf_gym import _core

DRIVEN = "receiver_driven"
"""The congestion control whose window is the receiver's."""

NOTSENT_LOWAT_BYTES = _core.stacks()["linux"]["unsent_limit_bytes"]
"""Unsent data that a socket accepts, as in the simulator: enough for the sleeps of a thread."""

PACED_BYTES_PER_S = 1 << 40
"""A limit (SO_MAX_PACING_RATE) that never binds: with any limit set, the kernel paces a socket by itself."""


def format_address(node: int, route: int) -> str:
    """Return the address of an end of a route, at a node."""
    return f"10.{node}.{route >> 8}.{route & 255}"
