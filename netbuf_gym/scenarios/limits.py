"""Constants of the stacks and the ranges that the fields of a scenario keep to."""

from __future__ import annotations

from netbuf_gym import _core

_PROFILES = _core.stacks()
STACKS = tuple(_PROFILES)
AGENT = "agent"
"""The congestion control whose window an environment sets."""

MSS_BYTES: int = _PROFILES["linux"]["mss_bytes"]
"""The largest segment of every stack, when it is not said."""
DATA_BYTES = {stack: profile["data_bytes"] for stack, profile in _PROFILES.items()}
"""A full data packet on the wire: IP without a link header, and with the two bytes of PPP in the ns3 stack."""
ACK_BYTES = {stack: profile["ack_bytes"] for stack, profile in _PROFILES.items()}

MAX_DELAY_MS = 100_000.0
MAX_DURATION_S = 1e6
MAX_COUNT = 2**40
MAX_QUEUES = 64
"""Priority queues of one switch."""
MAX_ALPHA = 1e6
MAX_FLOWS = 5_000_000
"""Finite flows that the random arrivals of a scenario may open in the mean: each is remembered until the end."""
