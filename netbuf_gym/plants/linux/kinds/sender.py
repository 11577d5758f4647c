"""Senders of flows: an agent sets how much may be in flight, from user space, and sees TCP_INFO and what passes its device."""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from typing import Any

from netbuf_gym.plants.linux.kinds import base

NAN = math.nan
INFINITE_SSTHRESH = 0x7FFFFFFF
_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q6I2HI")
_NAMES = {
    "snd_mss": 10, "unacked": 12, "sacked": 13, "lost": 14, "retrans": 15, "snd_ssthresh": 25, "snd_cwnd": 26,
    "total_retrans": 31, "total_rto": 56,
}  # fmt: skip


def tcp_info(descriptor: int) -> dict[str, int]:
    """Some of TCP_INFO of a socket; empty when it is none any more."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as own:
            raw = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    except OSError:
        return {}
    values = _INFO.unpack(raw.ljust(_INFO.size, b"\0"))
    return {name: values[at] for name, at in _NAMES.items()}


class Kind(base.Kind):
    """Windows kept from user space: what is written and not acknowledged is never more than the agent's window.

    The kernel's own congestion control limits it too (Reno, which halves its window after a loss), where it is smaller.
    """

    def __init__(self, world: Any):
        super().__init__(world)
        for flow in self.places:
            world.setup["flows"][flow] |= {"cc": "reno", "limited": True}
        self._windows = [NAN] * len(self.places)
        self._then: list[dict[str, Any]] = [{} for _ in self.places]

    def about(self) -> dict[str, Any]:
        """How the window is kept."""
        return {"window": "from user space, within the kernel's Reno"}

    def begin(self) -> None:
        """See `base.Kind`."""
        for at, flow in enumerate(self.places):
            self._then[at] = self._now(flow)
            self.world.emulator.begin_interval(flow)

    def apply(self, control: list[list[float]]) -> None:
        """See `base.Kind`."""
        for at, (flow, row) in enumerate(zip(self.places, control, strict=True)):
            if not math.isnan(row[0]):
                self._windows[at] = row[0]
                self.world.flows.set_window(flow, row[0])

    def observe(self) -> list[list[float]]:
        """See `base.Kind`."""
        return [self._row(at, flow) for at, flow in enumerate(self.places)]

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Any) -> None:
        """Until an ACK arrives at any of them."""
        while self.world.emulator.now_ns < end_ns:
            heard = [self.world.emulator.route_stat(flow)["acks"] for flow in self.places]
            if any(acks > then["acks"] for acks, then in zip(heard, self._then, strict=True)):
                return
            sleep(min(end_ns, self.world.emulator.now_ns + 500_000))

    def report(self) -> list[dict[str, Any]]:
        """See `base.Kind`."""
        return [{"timeouts": self._now(flow)["total_rto"]} for flow in self.places]

    def _now(self, flow: int) -> dict[str, Any]:
        world = self.world
        link = world.emulator.link_stats()[world.setup["bottlenecks"][flow]]
        info = {"total_rto": 0}
        descriptor = world.flows.sender_fd(flow)
        if descriptor >= 0:
            info |= tcp_info(descriptor)
            os.close(descriptor)
        return {
            **world.emulator.route_stat(flow),
            **info,
            "delivered_bytes": world.flows.flow_stats()[flow]["delivered_bytes"],
            "sojourn_sum_s": link["sojourn_sum_s"],
            "sojourn_count": link["sojourn_count"],
            "queue_packets": link["queue_packets"],
            "time_s": time.monotonic(),
        }

    def _row(self, at: int, flow: int) -> list[float]:
        then, now = self._then[at], self._now(flow)
        elapsed_s = now["time_s"] - then["time_s"]
        grown = {key: now[key] - then[key] for key in now if key in then}
        known = "snd_mss" in now
        mss = now["snd_mss"] if known else NAN
        ssthresh = now["snd_ssthresh"] if known else INFINITE_SSTHRESH
        cwnd = now["snd_cwnd"] * mss if known else NAN
        window = self._windows[at]
        sent, acks = grown["packets_sent"], grown["acks"]
        return [
            elapsed_s,
            NAN if ssthresh >= INFINITE_SSTHRESH else ssthresh * mss,
            cwnd if math.isnan(window) else min(cwnd, window),
            mss,
            grown["in_flight_sum_bytes"],
            _ratio(grown["in_flight_sum_bytes"], acks),
            grown["acked_bytes"] / mss,
            _ratio(grown["acked_bytes"] / mss, acks),
            _ratio(grown["rtt_sum_s"], grown["rtt_count"]),
            now["interval_rtt_min_s"],
            _ratio(now["last_sent_s"] - (then["last_sent_s"] or now["first_sent_s"]), sent - (not then["packets_sent"])),
            _ratio(now["last_ack_s"] - (then["last_ack_s"] or now["first_ack_s"]), acks - (not then["acks"])),
            grown["acked_bytes"] * 8 / elapsed_s,
            grown["delivered_bytes"] * 8 / elapsed_s,
            sent,
            grown["packets_retransmitted"],
            grown["packets_retransmitted"],
            acks,
            grown["total_rto"],
            (now["unacked"] - now["sacked"] - now["lost"] + now["retrans"]) * mss if known else 0.0,
            now["rtt_min_s"],
            _ratio(grown["sojourn_sum_s"], grown["sojourn_count"]),
            now["queue_packets"],
            grown["queue_drops"],
        ]


def _ratio(amount: float, count: float) -> float:
    return amount / count if count > 0 else NAN
