"""Steering of a live world's connections beside agents: Nuwa's sender, compiled agents, and receiver controls."""

from __future__ import annotations

import base64
import errno
import os
from typing import Any

from netbuf_gym import _core
from netbuf_gym.plants.linux.agreed import DRIVEN, format_address
from netbuf_gym.plants.linux.bpf.senders import InstalledSender, pack_settings
from netbuf_gym.plants.linux.bpf.struct_ops import PREFIX, BpfError, explain_unavailable
from netbuf_gym.plants.linux.bpf.windows import SteeredSockets
from netbuf_gym.plants.linux.system import BPF_PRIVILEGES

FALLBACK_CONTROL = "cubic"
"""The kernel's control that is used where ours cannot be: its window binds as well as the receiver's."""


def make_steered_sockets(control: str, most: int) -> tuple[SteeredSockets | None, str]:
    """Create a congestion control of BPF programs; return None and the reason where that is impossible."""
    reason = explain_unavailable()
    if reason:
        return None, reason
    try:
        return SteeredSockets(control, most), ""
    except BpfError as error:
        return None, f"{error.strerror}{f'; it takes {BPF_PRIVILEGES}' if error.errno == errno.EPERM else ''}"
    except OSError as error:
        return None, str(error)


def flow_addresses(setup: dict[str, Any], flow: int) -> tuple[str, str]:
    """Return the sender's and the receiver's address of a flow."""
    number = setup["flows"][flow]["route"]
    route = setup["routes"][number]
    return format_address(route["sender_node"], number), format_address(route["receiver_node"], number)


def summarize_row(row: dict[str, int]) -> dict[str, Any]:
    """Return time-outs and round trips of a sender from the kernel's counters, in the form of reports."""
    return {
        "timeouts": row["timeouts"],
        "rtt_count": row["rtt_count"],
        "rtt_sum_s": row["rtt_sum_us"] * 1e-6,
        "rtt_min_s": row["rtt_least_us"] * 1e-6 if row["rtt_least_us"] else float("nan"),
    }


class Steering:
    """Steering of the flows of a world that has its emulator, but no connections yet.

    Flows with the congestion control `receiver_driven` get it from the kernel, or CUBIC where the kernel takes none of ours;
    those of compiled agents get one that is installed under a name of this world's; the receivers with a control are told of
    arriving packets, and clamped.
    """

    def __init__(self, world: Any):
        self._sockets: SteeredSockets | None = None
        self._installed: list[InstalledSender] = []
        self._rows: dict[int, int] = {}
        self._reason = ""
        setup = world.setup
        try:
            self._install(setup)
        except BaseException:
            self.close()
            raise
        driven = [flow for flow, socket in enumerate(setup["flows"]) if socket["cc"] == DRIVEN]
        if driven:
            self._sockets, self._reason = make_steered_sockets(DRIVEN, len(driven))
        for flow in driven:
            if self._sockets is None:
                setup["flows"][flow]["cc"] = FALLBACK_CONTROL
                continue
            self._rows[flow] = self._sockets.expect(*flow_addresses(setup, flow))
            self._sockets.set_receiver_limits(self._rows[flow], _has_receiver_limits(world.config.flows[flow]))
            setup["flows"][flow]["cc"] = self._sockets.name
        for flow, config in enumerate(world.config.flows):
            if config.receiver:
                _core.meter_receiver(world.emulator, setup["flows"][flow]["route"], config, setup["mss"][flow])

    def _install(self, setup: dict[str, Any]) -> None:
        """Install the controls of compiled agents, and give their names to the flows that have them."""
        names = {}
        for key, policy in setup["policies"].items():
            settings = pack_settings(agent="an agent of a live world")
            sender = InstalledSender(f"{PREFIX}_{os.urandom(4).hex()}", base64.b64decode(policy), settings)
            self._installed.append(sender)
            names[key] = sender.name
        for socket in (*setup["flows"], *setup["senders"]):
            socket["cc"] = names.get(socket["cc"], socket["cc"])

    def about(self) -> dict[str, Any]:
        """Return how the senders that a receiver drives are steered."""
        if self._sockets is not None:
            return {"receiver_driven": "in the kernel (BPF)"}
        return {"receiver_driven": f"CUBIC instead ({self._reason})"} if self._reason else {}

    def receiver_stats(self, world: Any) -> list[dict[str, Any] | None]:
        """Return the counters of each flow's receiver; None for a receiver without a control."""
        stats: list[dict[str, Any] | None] = []
        for flow, config in enumerate(world.config.flows):
            route = world.setup["flows"][flow]["route"]
            stats.append(_core.receiver_stat(world.emulator, route) if config.receiver else None)
        return stats

    def read_row(self, flow: int) -> dict[str, int]:
        """Return the kernel's counters of a flow's sender; empty for one that is not ours."""
        if self._sockets is None or flow not in self._rows:
            return {}
        return self._sockets.read_row(self._rows[flow])

    def report(self, flow: int) -> dict[str, Any]:
        """Return the counters of a flow's sender in the form of reports; empty for one that is not ours."""
        row = self.read_row(flow)
        return {**summarize_row(row), "packets_lost_marked": row["packets_lost"]} if row else {}

    def close(self) -> None:
        """Unregister the congestion controls."""
        for sender in self._installed:
            sender.close()
        if self._sockets is not None:
            self._sockets.close()


def _has_receiver_limits(config: Any) -> bool:
    return bool(config.receiver or config.window_clamp_bytes or config.receive_buffer_bytes)
