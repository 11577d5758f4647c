"""Senders of flows: an agent sets the congestion window, and observes the kernel's counters at each acknowledgement.

Where the kernel takes a congestion control of ours (`netbuf_gym.plants.linux.bpf`), the window is the agent's alone, as in the
simulator, and sums and means are over acknowledgements. Elsewhere it is kept from user space, within what Reno allows.

Where the kind's senders are paced, the kernel's own pacing is on (SO_MAX_PACING_RATE), at 1.2 windows in the least round trip,
of fine windows, below two segments, at one in the smoothed round trip; for a window that is kept from user space that socket
option holds Reno's rate, which is of Reno's window, down to it.
"""

from __future__ import annotations

import math
import os
import random
import socket
import struct
from typing import Any

from netbuf_gym import _core
from netbuf_gym.plants.linux.agreed import NOTSENT_LOWAT_BYTES, PACED_BYTES_PER_S
from netbuf_gym.plants.linux.kinds import base
from netbuf_gym.plants.linux.steering import flow_addresses, make_steered_sockets, summarize_row

NAN = math.nan
INFINITE_SSTHRESH = 0x7FFFFFFF
SO_MAX_PACING_RATE = 47
PACED_WINDOWS = 1.2
"""Windows sent in the least round trip when paced."""
FINEST_SEGMENTS = 1 / 16
"""Least window in segments where fine windows are paced."""
INFO_FIELDS = (
    *("mss_bytes", "unacked_packets", "sacked_packets", "lost_packets", "retransmitting_packets", "ssthresh_packets"),
    *("cwnd_packets", "retransmitted_packets", "data_segments_sent", "timeouts", "rtt_s"),
)
"""Fields of TCP_INFO that are read."""
PLACES = [_core.tcp_info_columns().index(name) for name in INFO_FIELDS]


class Kind(base.Kind):
    """The windows of flows, in the kernel or kept from user space.

    Kept from user space, what is written and not acknowledged is never more than the agent's window, and the kernel's own
    congestion control limits it too (Reno, which halves its window after a loss), where it is smaller.
    """

    _fine = False

    def __init__(self, world: Any):
        super().__init__(world)
        self._steered, self._reason = make_steered_sockets("agent", max(1, len(self.places)))
        self._rows: list[int] = []
        self._draw_delays(world)
        parameters = world.setup["parameters"]
        for flow in self.places:
            socket_setup = world.setup["flows"][flow]
            if self._paced:
                socket_setup |= {"pacing_bytes_per_s": PACED_BYTES_PER_S}
            if self._steered is None:
                socket_setup |= {"cc": "reno", "limited": True}
                continue
            self._rows.append(self._steered.expect(*flow_addresses(world.setup, flow)))
            if self._paced:
                self._steered.pace(self._rows[-1])
                if self._fine:
                    self._steered.pace_fine_windows(self._rows[-1])
            if parameters.get("slow_start"):
                self._steered.start_slowly(self._rows[-1])
            socket_setup |= {"cc": self._steered.name}
            if not socket_setup.get("send_buffer_bytes"):
                socket_setup |= {"notsent_lowat_bytes": NOTSENT_LOWAT_BYTES}
        self._windows = [NAN] * len(self.places)
        self._timeouts = [0] * len(self.places)  # when the window was set
        self._then: list[dict[str, Any]] = [{} for _ in self.places]

    def about(self) -> dict[str, Any]:
        """Return how the window is set."""
        if self._steered is not None:
            return {"window": "in the kernel (BPF)"}
        return {"window": f"from user space, within the kernel's Reno ({self._reason})"}

    def begin(self) -> None:
        for at, flow in enumerate(self.places):
            self._then[at] = self._take_snapshot(at, flow)
            self.world.emulator.begin_interval(flow)
            if self._steered is not None:
                self._steered.begin_interval(self._rows[at])
            else:
                self._pace(at)

    def delays_ns(self) -> list[int]:
        """Return a delay for each sender: its latency, and up to its jitter more; see `base.Kind`."""
        if not any(self._latencies_s) and not any(self._jitters_s):
            return []
        pairs = zip(self._latencies_s, self._jitters_s, strict=True)
        return [round((latency_s + jitter_s * self._random.random()) * 1e9) for latency_s, jitter_s in pairs]

    def apply(self, control: list[list[float]]) -> None:
        for at, (flow, row) in enumerate(zip(self.places, control, strict=True)):
            if math.isnan(row[0]):
                continue
            window = max(row[0], self.world.setup["mss"][flow] * FINEST_SEGMENTS) if self._fine else row[0]
            self._windows[at] = window
            if self._steered is None:
                self.world.flows.set_window(flow, self._fill_segments(at, window))
                self._pace(at)
            else:
                self._timeouts[at] = self._steered.read_row(self._rows[at])["timeouts"]
                self._steered.set_window(self._rows[at], window)

    def observe(self) -> list[list[float]]:
        read = self._row_from_tap if self._steered is None else self._row_from_kernel
        return [read(at, self._then[at], self._take_snapshot(at, flow)) for at, flow in enumerate(self.places)]

    def wait(self, end_ns: int, interval_ns: int, most: int, sleep: Any) -> None:
        """Sleep until an ACK arrives at any of the senders."""

        def acknowledged() -> bool:
            return any(self._count_acks(at, flow) > self._then[at]["acks"] for at, flow in enumerate(self.places))

        self.sleep_until(acknowledged, end_ns, sleep)

    def report(self) -> list[dict[str, Any]]:
        """Return time-outs, and with the window in the kernel the round trips of its acknowledgements; see `base.Kind`."""
        if self._steered is None:
            return [{"timeouts": self._take_snapshot(at, flow)["timeouts"]} for at, flow in enumerate(self.places)]
        return [summarize_row(self._steered.read_row(number)) for number in self._rows]

    def close(self) -> None:
        if self._steered is not None:
            self._steered.close()

    def _draw_delays(self, world: Any) -> None:
        """Draw the latency and jitter of decisions, which the parameters of the kind leave open."""
        parameters = world.setup["parameters"]
        self._paced = bool(parameters.get("paced"))
        self._fine = self._paced and bool(parameters.get("fine"))
        self._random = random.Random(world.setup["seed"])
        self._latencies_s, self._jitters_s = ([0.0] * len(self.places) for _ in range(2))
        for name, drawn in (("latency", self._latencies_s), ("jitter", self._jitters_s)):
            low, high = (parameters.get(f"{name}{end}_s", 0.0) for end in ("", "_high"))
            drawn[:] = [self._random.uniform(min(low, high), high) for _ in self.places]

    def _fill_segments(self, at: int, window: float) -> float:
        """Return the bytes that may be unacknowledged: of a fine window the segments that it touches, since its pace binds."""
        mss = self.world.setup["mss"][self.places[at]]
        return math.ceil(window / mss) * mss if self._fine and window < 2 * mss else window

    def _find_window(self, at: int, cwnd: float, mss: float, overruled: bool) -> float:
        """Return the window in force in bytes, where the kernel's own is `cwnd`; `overruled`: by a time-out, or undecided."""
        window = self._windows[at]
        if not overruled:
            return max(window, mss * FINEST_SEGMENTS if self._fine else mss)
        return min(cwnd, window) if self._fine and window < cwnd else cwnd

    def _pace(self, at: int) -> None:
        """Limit Reno's pacing to that of the window that is kept from user space."""
        then, window = self._then[at], self._windows[at]
        if not self._paced or math.isnan(window) or not then["rtt_min_s"] > 0 or "mss_bytes" not in then:
            return
        mss = then["mss_bytes"]
        if self._fine and window < 2 * mss and then["rtt_s"] > 0:
            rate = window / then["rtt_s"]
        else:
            rate = PACED_WINDOWS * max(window, mss, then["unacked_packets"] * mss) / then["rtt_min_s"]
        descriptor = self.world.flows.sender_fd(self.places[at])
        if descriptor < 0:
            return
        with socket.socket(fileno=descriptor) as sender:
            sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", min(round(rate), PACED_BYTES_PER_S)))

    def _count_acks(self, at: int, flow: int) -> int:
        if self._steered is None:
            return self.world.emulator.route_stat(flow)["acks"]
        return self._steered.read_row(self._rows[at])["acks"]

    def _take_snapshot(self, at: int, flow: int) -> dict[str, Any]:
        world = self.world
        link = world.emulator.link_stat(world.setup["bottlenecks"][flow])
        info: dict[str, float] = {"timeouts": 0.0}
        descriptor = world.flows.sender_fd(flow)
        if descriptor >= 0:
            row = _core.tcp_info_row(descriptor)
            os.close(descriptor)
            if row:
                info = {name: row[at] for name, at in zip(INFO_FIELDS, PLACES, strict=True)}
                if math.isnan(info["timeouts"]):
                    info["timeouts"] = 0.0
        return {
            **world.emulator.route_stat(flow),
            **info,
            **({} if self._steered is None else self._steered.read_row(self._rows[at])),
            "delivered_bytes": world.flows.flow_stat(flow)["delivered_bytes"],
            "sojourn_sum_s": link["sojourn_sum_s"],
            "sojourn_count": link["sojourn_count"],
            "queue_packets": link["queue_packets"],
            "time_s": world.emulator.now_ns * 1e-9,
        }

    def _row_from_kernel(self, at: int, then: dict[str, Any], now: dict[str, Any]) -> list[float]:
        """Return a telemetry row from the kernel's counters at acknowledgements."""
        elapsed_s = now["time_s"] - then["time_s"]
        grown = {key: now[key] - then[key] for key in now if key in then}
        mss = now["mss"] or (now["mss_bytes"] if "mss_bytes" in now else self.world.setup["mss"][self.places[at]])
        acks, sent = grown["acks"], grown["packets_sent"]
        in_flight = grown["in_flight_sum"] * mss
        overruled = math.isnan(self._windows[at]) or now["timeouts"] > self._timeouts[at]
        cwnd = now.get("cwnd_packets", now["cwnd"])
        since_sent = then["last_sent_ns"] if then["packets_sent"] else now["first_sent_ns"]
        since_ack = then["last_ack_us"] if then["acks"] else now["first_ack_us"]
        ssthresh = now["ssthresh"] or INFINITE_SSTHRESH
        left = grown.get("data_segments_sent", sent)
        again = grown.get("retransmitted_packets", grown["packets_retransmitted"])
        return [
            elapsed_s,
            NAN if ssthresh >= INFINITE_SSTHRESH else ssthresh * mss,
            self._find_window(at, cwnd * mss, mss, overruled),
            mss,
            in_flight,
            _ratio(in_flight, acks),
            grown["delivered"],
            _ratio(grown["delivered"], acks),
            _ratio(grown["rtt_sum_us"] * 1e-6, grown["rtt_count"]),
            now["rtt_min_us"] * 1e-6 if grown["rtt_count"] and now["rtt_interval"] == now["interval"] else NAN,
            _ratio((now["last_sent_ns"] - since_sent) * 1e-9, sent - (not then["packets_sent"])),
            _ratio((now["last_ack_us"] - since_ack) * 1e-6, acks - (not then["acks"])),
            grown["delivered"] * mss * 8 / elapsed_s,
            grown["delivered_bytes"] * 8 / elapsed_s,
            left,
            grown["packets_lost"],
            again,
            acks,
            grown["timeouts"],
            _in_flight_bytes(now, mss),
            now["rtt_least_us"] * 1e-6 if now["rtt_least_us"] else NAN,
            _ratio(grown["sojourn_sum_s"], grown["sojourn_count"]),
            now["queue_packets"],
            grown["queue_drops"],
        ]

    def _row_from_tap(self, at: int, then: dict[str, Any], now: dict[str, Any]) -> list[float]:
        """Return a telemetry row from the packets that have passed the sender's device."""
        elapsed_s = now["time_s"] - then["time_s"]
        grown = {key: now[key] - then[key] for key in now if key in then}
        mss = now.get("mss_bytes", NAN)
        cwnd = now.get("cwnd_packets", NAN) * mss
        window = self._windows[at]
        sent, acks = grown["packets_sent"], grown["acks"]
        return [
            elapsed_s,
            now.get("ssthresh_packets", NAN) * mss,
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
            grown["timeouts"],
            _in_flight_bytes(now, mss),
            now["rtt_min_s"],
            _ratio(grown["sojourn_sum_s"], grown["sojourn_count"]),
            now["queue_packets"],
            grown["queue_drops"],
        ]


def _in_flight_bytes(now: dict[str, Any], mss: float) -> float:
    """Return the bytes in flight by the kernel's reckoning; 0 for a connection that is gone."""
    if "unacked_packets" not in now:
        return 0.0
    gone = now["sacked_packets"] + now["lost_packets"] - now["retransmitting_packets"]
    return float((now["unacked_packets"] - gone) * mss)


def _ratio(amount: float, count: float) -> float:
    return amount / count if count > 0 else NAN
