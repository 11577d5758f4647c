"""TCP connections that a scenario names one by one, and what their applications send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym import checks
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import (
    CONGESTION_CONTROLS,
    CongestionControl,
    ReceiverControl,
    congestion_control,
    receiver_control,
)
from netbuf_gym.scenarios.hosts import check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.own_control import OwnControl
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Sends for as long as the flow lives."""


@dataclass(frozen=True, kw_only=True)
class Sized:
    """Sends `size_bytes` (1 to 2**40) and is done."""

    size_bytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_bytes", checks.integer("size_bytes", self.size_bytes, 1, MAX_COUNT))


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Sends during on periods and rests during off periods, on first.

    Args:
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds; their mean when `random`.
        rate_mbps: While on, 1e-6 to 1e6 Mbit/s; None: as fast as TCP takes it.
        random: Exponentially distributed periods instead of fixed ones.
    """

    on_s: float
    off_s: float
    rate_mbps: float | None = None
    random: bool = False

    def __post_init__(self) -> None:
        for field in ("on_s", "off_s"):
            object.__setattr__(self, field, checks.number(field, getattr(self, field), 1e-6, MAX_DURATION_S))
        if self.rate_mbps is not None:
            rate = checks.number("rate_mbps", self.rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
            object.__setattr__(self, "rate_mbps", rate)
        object.__setattr__(self, "random", checks.boolean("random", self.random))


Application = Bulk | Sized | OnOff | Video


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A TCP connection with its sender, application and path.

    Args:
        cc: Congestion control, by name or as a dict of `name` and parameters: `{"name": "cubic", "beta": 0.8}`
            (`netbuf-gym list congestion-controls`); "agent": an environment sets the window; or a class or function
            of your own (`netbuf_gym.scenarios.own_control`).
        path, return_path: The links that data and ACKs take, as indices into `Scenario.links` or link names.
        start_s: 0 to 1e6 seconds.
        stop_s: After `start_s`, at most 1e6; None: never.
        app: `Bulk()`, `Sized(...)`, `OnOff(...)` or `Video(...)`.
        send_buffer_bytes, receive_buffer_bytes: 4096 to 2**40; None: never limits.
        receiver: What the receiver limits the advertised window by: a receiver control, by name or as a dict of `name` and
            parameters: `{"name": "nuwa", "k": 7, "target_ms": "video"}` (`netbuf-gym list receiver-controls`); "agent": an
            environment steers it; None: its buffer alone. The congestion control `receiver_driven` leaves it the last word.
        clock_offset_ms: What the receiver's clock is ahead of the sender's at the start, -1e9 to 1e9.
        clock_drift_ppm: What it gains, -1e5 to 1e5 parts in a million.
        timestamp_resolution_us: Unit of the time stamps in packets, 1000 (Linux) or 1 (Linux with `tcp_usec_ts`).
        clamp_interval_ms: How often what the receiver control says is set by TCP_WINDOW_CLAMP, 0 to 10000; 0: with every
            packet. Linux then offers more by two segments for each that arrives, and acknowledges that one at once. None: the
            control is code in the kernel, whose word is the window; on plant "linux" it is 0 all the same.
        read_mbps: What the receiving application reads at most, 1e-6 to 1e6 Mbit/s, with `receive_buffer_bytes`, which
            holds the rest; None: everything at once.
        initial_cwnd_packets: 1 to 1000.
        ecn: Both ends speak ECN (RFC 3168): queues that mark do so instead of dropping its packets, and it gives way once a
            window. `dctcp` does in any case, its receiver echoing every mark (RFC 8257). Linux stack only.
        name: For people.
        priority: Its queue at switches, 0 to 63.
        sender_host, receiver_host: Names of the `Host`s of `Scenario.hosts` whose sockets its ends are; None: ends whose
            buffers are what `send_buffer_bytes` and `receive_buffer_bytes` say.
        sndbuf_bytes, rcvbuf_bytes: What the applications ask for at these hosts (SO_SNDBUF, SO_RCVBUF), 1 to 2**40; the
            kernel caps it by `Host.socket_bytes`, doubles it, and leaves it so. None: autotuning.
    """

    cc: str | Mapping[str, Any] | CongestionControl | OwnControl | Callable[..., Any] = "cubic"
    path: Sequence[int | str]
    return_path: Sequence[int | str]
    start_s: float = 0.0
    stop_s: float | None = None
    app: Application = Bulk()
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    receiver: str | Mapping[str, Any] | ReceiverControl | None = None
    clock_offset_ms: float = 0.0
    clock_drift_ppm: float = 0.0
    timestamp_resolution_us: int = 1000
    clamp_interval_ms: float | None = None
    read_mbps: float | None = None
    initial_cwnd_packets: int = 10
    name: str = ""
    priority: int = 0
    sender_host: str | None = None
    receiver_host: str | None = None
    sndbuf_bytes: int | None = None
    rcvbuf_bytes: int | None = None
    ecn: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cc", congestion_control("flow.cc", self.cc, CONGESTION_CONTROLS))
        put(self, "path", checks.sequence("flow.path", self.path, "links"))
        put(self, "return_path", checks.sequence("flow.return_path", self.return_path, "links"))
        put(self, "start_s", checks.number("flow.start_s", self.start_s, 0, MAX_DURATION_S))
        if self.stop_s is not None:
            put(self, "stop_s", checks.number("flow.stop_s", self.stop_s, 0, MAX_DURATION_S, low_open=True))
            if self.stop_s <= self.start_s:
                raise ScenarioError(f"flow.stop_s = {self.stop_s:g} is not after start_s = {self.start_s:g}")
        if not isinstance(self.app, (Bulk, Sized, OnOff, Video)):
            raise ScenarioTypeError(f"flow.app = {shown(self.app)}; valid: Bulk(), Sized(...), OnOff(...) or Video(...)")
        for field in ("send_buffer_bytes", "receive_buffer_bytes"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(f"flow.{field}", getattr(self, field), 4096, MAX_COUNT))
        if self.receiver is not None:
            put(self, "receiver", receiver_control("flow.receiver", self.receiver))
        put(self, "clock_offset_ms", checks.number("flow.clock_offset_ms", self.clock_offset_ms, -1e9, 1e9))
        put(self, "clock_drift_ppm", checks.number("flow.clock_drift_ppm", self.clock_drift_ppm, -1e5, 1e5))
        unit = checks.integer("flow.timestamp_resolution_us", self.timestamp_resolution_us, 1, 1000)
        if unit not in (1, 1000):
            raise ScenarioError(f"flow.timestamp_resolution_us = {unit}; valid: 1000 or 1")
        put(self, "timestamp_resolution_us", unit)
        if self.clamp_interval_ms is not None:
            put(self, "clamp_interval_ms", checks.number("flow.clamp_interval_ms", self.clamp_interval_ms, 0, 1e4))
        if self.read_mbps is not None:
            put(self, "read_mbps", checks.number("flow.read_mbps", self.read_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS))
            if isinstance(self.app, Video):
                raise ScenarioError(f"flow.read_mbps = {self.read_mbps:g} beside app = Video(...); valid: None")
            if self.receive_buffer_bytes is None and self.receiver_host is None:
                raise ScenarioError(
                    f"flow.read_mbps = {self.read_mbps:g} without receive_buffer_bytes, which what is not read yet fills;"
                    " valid: both, or None"
                )
        cwnd = checks.integer("flow.initial_cwnd_packets", self.initial_cwnd_packets, 1, 1000)
        put(self, "initial_cwnd_packets", cwnd)
        checks.text("flow.name", self.name)
        put(self, "priority", checks.integer("flow.priority", self.priority, 0, MAX_QUEUES - 1))
        put(self, "ecn", checks.boolean("flow.ecn", self.ecn))
        check_sockets(self, "flow")
        for field, host in (("send_buffer_bytes", "sender_host"), ("receive_buffer_bytes", "receiver_host")):
            size, name = getattr(self, field), getattr(self, host)
            if size is not None and name is not None:
                raise ScenarioError(f"flow.{field} = {size} beside {host} = {name!r}; valid: one of them, or neither")
