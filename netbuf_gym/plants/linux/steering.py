"""What steers connections of a live world beside agents: Nuwa's sender, and receiver controls."""

from __future__ import annotations

import errno
from typing import Any

from netbuf_gym import _core
from netbuf_gym.plants.linux.agreed import DRIVEN, address
from netbuf_gym.plants.linux.bpf.struct_ops import BpfError, unavailable
from netbuf_gym.plants.linux.bpf.windows import SteeredSockets
from netbuf_gym.plants.linux.system import BPF_PRIVILEGES

INSTEAD = "cubic"
"""The kernel's control where ours cannot be: its window binds as well as the receiver's."""


def steered_sockets(control: str, most: int) -> tuple[SteeredSockets | None, str]:
    """A congestion control of BPF programs; None where there can be none, and why."""
    reason = unavailable()
    if reason:
        return None, reason
    try:
        return SteeredSockets(control, most), ""
    except BpfError as error:
        return None, f"{error.strerror}{f'; it takes {BPF_PRIVILEGES}' if error.errno == errno.EPERM else ''}"
    except OSError as error:
        return None, str(error)


def addresses(setup: dict[str, Any], flow: int) -> tuple[str, str]:
    """The sender's and the receiver's address of a flow."""
    number = setup["flows"][flow]["route"]
    route = setup["routes"][number]
    return address(route["sender_node"], number), address(route["receiver_node"], number)


class Steering:
    """Of the flows of a world that has its emulator, but no connections yet.

    Flows with the congestion control `receiver_driven` get it from the kernel, or CUBIC where it takes none of ours; the
    receivers with a control are told what arrives, and clamped.
    """

    def __init__(self, world: Any):
        self._sockets: SteeredSockets | None = None
        self._rows: dict[int, int] = {}
        self._reason = ""
        setup = world.setup
        driven = [flow for flow, socket in enumerate(setup["flows"]) if socket["cc"] == DRIVEN]
        if driven:
            self._sockets, self._reason = steered_sockets(DRIVEN, len(driven))
        for flow in driven:
            if self._sockets is None:
                setup["flows"][flow]["cc"] = INSTEAD
                continue
            self._rows[flow] = self._sockets.expect(*addresses(setup, flow))
            self._sockets.limits(self._rows[flow], _limited(world.config.flows[flow]))
            setup["flows"][flow]["cc"] = self._sockets.name
        for flow, config in enumerate(world.config.flows):
            if config.receiver:
                _core.meter_receiver(world.emulator, setup["flows"][flow]["route"], config, setup["mtu"] - setup["headers"])

    def about(self) -> dict[str, Any]:
        """How the senders that a receiver drives are steered."""
        if self._sockets is not None:
            return {"receiver_driven": "in the kernel (BPF)"}
        return {"receiver_driven": f"CUBIC instead ({self._reason})"} if self._reason else {}

    def receivers(self, world: Any) -> list[dict[str, Any] | None]:
        """What the receiver of each flow has counted; None of one without a control."""
        told: list[dict[str, Any] | None] = []
        for flow, config in enumerate(world.config.flows):
            route = world.setup["flows"][flow]["route"]
            told.append(_core.receiver_stat(world.emulator, route) if config.receiver else None)
        return told

    def row(self, flow: int) -> dict[str, int]:
        """What the kernel counted of a flow's sender; empty of one that is not ours."""
        if self._sockets is None or flow not in self._rows:
            return {}
        return self._sockets.row(self._rows[flow])

    def report(self, flow: int) -> dict[str, Any]:
        """Likewise, as reports have it."""
        row = self.row(flow)
        if not row:
            return {}
        return {
            "timeouts": row["timeouts"],
            "packets_lost_marked": row["packets_lost"],
            "rtt_count": row["rtt_count"],
            "rtt_sum_s": row["rtt_sum_us"] * 1e-6,
            "rtt_min_s": row["rtt_least_us"] * 1e-6 if row["rtt_least_us"] else float("nan"),
        }

    def close(self) -> None:
        """Takes the congestion control back."""
        if self._sockets is not None:
            self._sockets.close()


def _limited(config: Any) -> bool:
    return bool(config.receiver or config.window_clamp_bytes or config.receive_buffer_bytes)
