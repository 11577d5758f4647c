"""Hosts: an agent sets the buffers of a node's sockets and its ring, and observes the kernel's counters of its connections."""

from __future__ import annotations

import math
import os
import site
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from netbuf_gym.plants.linux.kinds import base
from netbuf_gym.plants.linux.netlink import Routing
from netbuf_gym.plants.linux.nodes import DEVICE, get_sysctl
from netbuf_gym.plants.linux.proxy.workload import TARGET, Workload
from netbuf_gym.plants.linux.sysctls import INT_MAX, KINDS, PLACES

NAN = math.nan
CONTROLS = (
    *("ring_packets", "socket_bytes", "tcp_rmem_default_bytes", "tcp_rmem_max_bytes", "tcp_wmem_default_bytes"),
    *("tcp_wmem_max_bytes", "limit_output_bytes", "notsent_lowat_bytes", "window_clamp_bytes", "congestion_control"),
    "slow_start",
)
CHOICES = ("cubic", "bbr", "vegas")
"""Congestion controls by the number of the control, under the kernel's names, which are the package's."""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TELEMETRY = (
    *("elapsed_s", "sent_bytes", "received_bytes", "throughput_bps", "total_throughput_bps", "latency_s", "rtt_min_s", "loss"),
    *("packets_sent", "packets_retransmitted", "connections", "connections_opened", "connections_closed", "flows_sending"),
    *("rwnd_limited_s", "sndbuf_limited_s", "busy_s", "cwnd_bytes", "unsent_bytes", "in_flight_bytes", "send_buffer_bytes"),
    *("receive_buffer_bytes", "send_queued_bytes", "receive_queued_bytes", "memory_bytes", "memory_limit_bytes"),
    *("memory_pressure", "ring_packets", "socket_bytes", "tcp_rmem_default_bytes", "tcp_rmem_max_bytes"),
    *("tcp_wmem_default_bytes", "tcp_wmem_max_bytes", "ring_queue_packets", "ring_drops", "interrupted_s"),
    "delivery_rate_bps",
)
"""Telemetry of agents of kind `host`; a test checks that the schema is the same."""
NODE_SYSCTLS = {control: places[0] for control, places in PLACES.items() if KINDS[places[0][0]].in_namespace}
"""By control, the sysctl that is a node's own, and which number of it."""


class BufferSysctls:
    """A node's sysctls of buffers, open for as long as the world exists."""

    def __init__(self, node: Any):
        node.enter()
        self._files: dict[str, int] = {}
        for name, _ in NODE_SYSCTLS.values():
            if name not in self._files:
                with suppress(FileNotFoundError):
                    self._files[name] = os.open("/proc/sys/" + name.replace(".", "/"), os.O_RDWR | os.O_CLOEXEC)
        self._values = {name: [int(word) for word in get_sysctl(name).split()] for name in self._files}

    def get(self, control: str) -> float:
        """Return the value to which a control of `NODE_SYSCTLS` was last set; NaN where the kernel has no sysctl for it."""
        name, index = NODE_SYSCTLS[control]
        return float(self._values[name][index]) if name in self._values else NAN

    def set(self, controls: dict[str, float]) -> None:
        """Set the sysctls of controls of `NODE_SYSCTLS`; others are left out."""
        parts: dict[str, dict[int, float]] = {}
        for control, value in controls.items():
            if control in NODE_SYSCTLS:
                name, index = NODE_SYSCTLS[control]
                parts.setdefault(name, {})[index] = value
        for name, own in parts.items():
            if name in self._files:
                self._set(name, own)

    def _set(self, name: str, parts: dict[int, float]) -> None:
        """Set numbers of a sysctl by their places; of three none is above the next."""
        values, kind = self._values[name], KINDS[name]
        wanted = [min(max(round(parts.get(i, one)), kind.low), kind.high) for i, one in enumerate(values)]
        if len(wanted) == 3:
            wanted[1] = min(wanted[1], wanted[2])
            wanted[0] = min(wanted[0], wanted[1])
        if wanted != values:
            os.pwrite(self._files[name], " ".join(map(str, wanted)).encode() + b"\n", 0)
            self._values[name] = wanted

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}


def _require_choices(choices: int) -> None:
    """Raise OSError where this kernel lacks one of the congestion controls that agents choose among, or BBR for a slow start.

    Args:
        choices: Sum of 1, 2 and 4 for each of `CHOICES`.
    """
    have = AVAILABLE.read_text().split()
    wanted = [name for number, name in enumerate(CHOICES) if choices >> number & 1]
    if not wanted or {*wanted, "bbr", "cubic"} <= set(have):
        return
    here = [name for name in CHOICES if name in have]
    if not {"bbr", "cubic"} <= set(here):
        raise OSError(
            f"controls = {wanted}: this kernel has {here} loaded; valid: a kernel with cubic and bbr (modprobe tcp_bbr)"
        )
    lacking = next(name for name in wanted if name not in here)
    raise OSError(
        f"controls = {wanted}: this kernel has no {lacking} loaded; valid: controls = {here}, or modprobe tcp_{lacking}"
    )


class TunedHost:
    """A host controlled by an agent."""

    workload: Workload | None = None
    """Real programs that send and receive in place of the world's flows."""

    def __init__(self, world: Any, host: dict[str, Any]):
        from netbuf_gym.plants.linux.host_meter import HostMeter

        self.world, self.node = world, world.nodes[host["node"]]
        self.devices: list[int] = host["devices"]
        self.ring_packets = NAN if host["ring_packets"] is None or not self.devices else float(host["ring_packets"])
        self.socket_bytes = float(host["socket_bytes"])
        self.routes = [i for i, route in enumerate(world.setup["routes"]) if route["sender_node"] == host["node"]]
        self.receives = any(route["receiver_node"] == host["node"] for route in world.setup["routes"])
        self.buffers = BufferSysctls(self.node)
        self.meter = HostMeter(behind=[TARGET[1]] if world.setup.get("work") else [])
        self.interrupted_s = 0.0
        self.window_clamp = 0
        self.congestion_control = ""
        self.sums = dict.fromkeys(("sent_bytes", "received_bytes", "packets_sent", "packets_retransmitted"), 0.0)
        self.memory_s, self.memory_max, self.seconds = 0.0, 0.0, 0.0
        if not math.isnan(self.ring_packets):
            self._resize(self.ring_packets)
        self.interrupted_s = 0.0
        self._drops = 0

    def apply(self, row: list[float]) -> None:
        """Set the controls that are not NaN."""
        controls = {name: value for name, value in zip(CONTROLS, row, strict=True) if not math.isnan(value)}
        self.buffers.set(controls)
        if "ring_packets" in controls and self.devices and round(controls["ring_packets"]) != self.ring_packets:
            self._resize(round(controls["ring_packets"]))
        if "socket_bytes" in controls:
            self.socket_bytes = float(round(controls["socket_bytes"]))
            self.world.flows.cap_buffers(self.node.number, round(self.socket_bytes))
        if "window_clamp_bytes" in controls:
            self.window_clamp = min(max(round(controls["window_clamp_bytes"]), 1), INT_MAX)
            self.world.flows.clamp_windows(self.node.number, self.window_clamp)
        if "congestion_control" in controls:
            self._choose(CHOICES[round(controls["congestion_control"])])
        if controls.get("slow_start", 0) >= 1 and self.congestion_control:
            own = self.congestion_control
            self._choose("bbr" if own != "bbr" else "cubic")  # BBR begins with an infinite ssthresh, which outlives it
            self._choose(own)

    def _choose(self, name: str) -> None:
        """Set the congestion control of what the host sends; the kernel leaves connections alone that have it already."""
        self.congestion_control = name
        self.world.flows.set_congestion_control(self.node.number, name)
        if self.workload is not None:
            self.workload.set_congestion_control(name)

    def _resize(self, packets: float) -> None:
        """Resize the ring: the queue of the links that leave the host, and that of its device."""
        before_s = time.monotonic()
        self.node.enter()
        with Routing() as netlink:
            netlink.set_queue(DEVICE, round(packets))
        self.interrupted_s += time.monotonic() - before_s
        for link in self.devices:
            self.world.emulator.limit_packets(link, round(packets))
        self.ring_packets = float(round(packets))

    def observe(self) -> list[float]:
        """Return the telemetry of the interval."""
        found = self.meter.measure()
        seconds = found["elapsed_s"]
        for name in self.sums:
            self.sums[name] += found[name]
        self.memory_s += found["memory_bytes"] * seconds
        self.memory_max = max(self.memory_max, found["memory_bytes"])
        self.seconds += seconds
        found |= {control: self.buffers.get(control) for control in NODE_SYSCTLS if control in TELEMETRY}
        links = [self.world.emulator.link_stat(link) for link in self.devices]
        drops = sum(link["queue_drops"] for link in links)
        found |= {
            "ring_packets": self.ring_packets,
            "socket_bytes": self.socket_bytes,
            "ring_queue_packets": float(sum(link["queue_packets"] for link in links)) if self.devices else NAN,
            "ring_drops": float(drops - self._drops) if self.devices else NAN,
            "interrupted_s": self.interrupted_s,
        }
        self._drops, self.interrupted_s = drops, 0.0
        return [found[name] for name in TELEMETRY]

    def report(self) -> dict[str, Any]:
        """Return counters since the world began."""
        routes = [self.world.emulator.route_stat(route) for route in self.routes]
        least = [route["rtt_min_s"] for route in routes if route["rtt_count"]]
        ring = sum(self.world.emulator.link_stat(link)["queue_integral_packet_s"] for link in self.devices)
        return {
            **{name: round(value) for name, value in self.sums.items()},
            "flows_completed": self.world.flows.completed_at(self.node.number),
            "rtt_count": sum(route["rtt_count"] for route in routes),
            "rtt_sum_s": sum(route["rtt_sum_s"] for route in routes),
            "rtt_min_s": min(least, default=NAN),
            "memory_mean_bytes": self.memory_s / max(self.seconds, 1e-9),
            "memory_max_bytes": self.memory_max,
            "ring_mean_packets": ring / max(self.world.emulator.now_ns * 1e-9, 1e-9),
        }

    def close(self) -> None:
        """Close the meter and the sysctls."""
        self.meter.close()
        self.buffers.close()


class Kind(base.Kind):
    """Hosts of agents. Explicit buffers are capped by `socket_bytes` here, since net.core is the whole machine's."""

    look_s = 0.25

    def __init__(self, world: Any):
        super().__init__(world)
        _require_choices(world.setup["parameters"].get("choices", 0))
        site.main()  # makes numpy importable, which a world's process does without otherwise
        self._hosts: list[TunedHost] = []
        self._workload: Any = None
        self._begun = False
        try:
            for place in self.places:
                self._hosts.append(TunedHost(world, world.setup["hosts"][place]))
            if world.setup.get("work"):
                self._workload = Workload(world, world.setup["work"], world.setup["seed"])
                self._hosts[0].workload = self._workload
        except BaseException:
            self.close()
            raise

    def about(self) -> dict[str, Any]:
        """Return how the ring is made, and on whose windows a clamp is set."""
        clamps = "connections that a host receives"
        if self._workload is not None:
            clamps = f"connections of the proxy that stand, looked for every {self.look_s:g} s"
        elif not any(host.receives for host in self._hosts):
            clamps = "none: the hosts receive no connections"
        ring = "the device's transmit queue, and that of the emulated links that leave the host"
        return {"ring": ring, "window_clamp": clamps}

    def begin(self) -> None:
        """See `base.Kind`; the meter's intervals follow each other by themselves."""
        if self._workload is not None and not self._begun:
            self._workload.start()
            for host in self._hosts:
                host.meter.measure()  # discards the traffic of starting
        self._begun = True

    def look(self) -> None:
        if self._workload is not None:
            self._workload.look()
            if self._hosts[0].window_clamp:
                self._workload.clamp_windows(self._hosts[0].window_clamp)
            if self._hosts[0].congestion_control:  # of connections that came since
                self._workload.set_congestion_control(self._hosts[0].congestion_control)
        for host in self._hosts:
            host.meter.look()

    def apply(self, control: list[list[float]]) -> None:
        for host, row in zip(self._hosts, control, strict=True):
            host.apply(row)

    def observe(self) -> list[list[float]]:
        """Return each host's telemetry of the interval, see `base.Kind`."""
        return [host.observe() for host in self._hosts]

    def report(self) -> list[dict[str, Any]]:
        """Return each host's counters and what its clients got, see `base.Kind`."""
        clients = {} if self._workload is None else self._workload.look()
        more = {"flows_completed": clients["completed"], "flows_failed": clients["failures"]} if clients else {}
        return [{**host.report(), **more} for host in self._hosts]

    def close(self) -> None:
        if self._workload is not None:
            self._workload.close()
            self._workload = None
        for host in self._hosts:
            host.close()
        self._hosts = []
