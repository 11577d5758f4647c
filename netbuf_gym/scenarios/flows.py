"""Individual TCP connections of a scenario, and their applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import (
    CONGESTION_CONTROLS,
    CongestionControl,
    ReceiverControl,
    parse_congestion_control,
    parse_receiver_control,
)
from netbuf_gym.scenarios.hosts import check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Application that always has data to send."""


@dataclass(frozen=True, kw_only=True)
class Sized:
    """Application that sends `size_bytes` (1 to 2**40) and ends."""

    size_bytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_bytes", checks.integer("size_bytes", self.size_bytes, 1, MAX_COUNT))


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Application that alternates between sending (on, first) and silence (off).

    Args:
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds; the mean length when `random`.
        rate_mbps: Rate during on periods, 1e-6 to 1e6 Mbit/s; None: as fast as TCP accepts data.
        random: Whether the periods are exponentially distributed instead of fixed.
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


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Application that always has data to send, except during given pauses.

    Args:
        rests_s: Pauses `((from, to), ...)` in seconds of the world, in order and without overlap, 0 to 1e6.
        rate_mbps: Rate between pauses, 1e-6 to 1e6 Mbit/s; None: as fast as TCP accepts data.
    """

    rests_s: Sequence[Sequence[float]]
    rate_mbps: float | None = None

    def __post_init__(self) -> None:
        rests, before = [], -1.0
        for i, rest in enumerate(checks.sequence("paused.rests_s", self.rests_s, "rests")):
            field = f"paused.rests_s[{i}]"
            times = [checks.number(field, time, 0, MAX_DURATION_S) for time in checks.sequence(field, rest, "times")]
            if len(times) != 2 or not before < times[0] < times[1]:
                raise ScenarioError(f"{field} = {shown(rest)}; valid: (from, to), from before to and after the rest before")
            before = times[1]
            rests.append(tuple(times))
        if not rests:
            raise ScenarioError("paused.rests_s is empty; valid: at least one rest")
        object.__setattr__(self, "rests_s", tuple(rests))
        if self.rate_mbps is not None:
            rate = checks.number("rate_mbps", self.rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
            object.__setattr__(self, "rate_mbps", rate)


Application = Bulk | Sized | OnOff | Paused | Video

ACCURATE = "accurate"
"""Value of `Flow.ecn` for accurate ECN, where the receiver reports the number of marked packets."""

MISBEHAVIOURS = ("optimistic", "split", "spoofed")


@dataclass(frozen=True, kw_only=True)
class Route:
    """New path of a running flow's packets and ACKs from a time on; packets in flight stay on the old path.

    Args:
        at_s: Time of the change, above 0 to 1e6 seconds.
        path, return_path: As in `Flow`.
    """

    at_s: float
    path: Sequence[int | str]
    return_path: Sequence[int | str]

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "at_s", checks.number("route.at_s", self.at_s, 0, MAX_DURATION_S, low_open=True))
        put(self, "path", checks.sequence("route.path", self.path, "links"))
        put(self, "return_path", checks.sequence("route.return_path", self.return_path, "links"))


@dataclass(frozen=True, kw_only=True)
class Flow:
    """TCP connection with its sender, application and path.

    Args:
        cc: Congestion control, by name or as a dict of `name` and parameters: `{"name": "cubic", "beta": 0.8}`
            (`netbuf-gym list congestion-controls`); "agent": an environment sets the window; or a user-defined class or
            function (`netbuf_gym.scenarios.python_control`).
        path, return_path: Links of data and ACKs, as indices into `Scenario.links` or link names.
        start_s: Start of the flow, 0 to 1e6 seconds.
        stop_s: End of the flow, after `start_s`, at most 1e6; None: never.
        app: `Bulk()`, `Sized(...)`, `OnOff(...)`, `Paused(...)` or `Video(...)`.
        send_buffer_bytes, receive_buffer_bytes: Buffer sizes, 4096 to 2**40; None: unlimited.
        receiver: Receiver control that limits the advertised window, by name or as a dict of `name` and parameters:
            `{"name": "nuwa", "k": 7, "target_ms": "video"}` (`netbuf-gym list receiver-controls`); "agent": an environment
            steers the window; None: only the receive buffer limits it. Under the congestion control `receiver_driven` the
            receiver alone determines the window.
        clock_offset_ms: Lead of the receiver's clock over the sender's at the start, -1e9 to 1e9.
        clock_drift_ppm: Drift of the receiver's clock (positive: fast), -1e5 to 1e5 parts in a million.
        timestamp_resolution_us: Unit of the time stamps in packets, 1000 (Linux) or 1 (Linux with `tcp_usec_ts`).
        clamp_interval_ms: Interval at which the receiver control's window is set by TCP_WINDOW_CLAMP, 0 to 10000; 0: with every
            packet. Linux then raises the offered window by two segments for each segment that arrives, and acknowledges that
            segment at once. None: the control is code in the kernel and sets the window itself; on plant "linux" None means 0.
        read_mbps: Highest reading rate of the receiving application, 1e-6 to 1e6 Mbit/s; unread data fill
            `receive_buffer_bytes`, which must be set. None: data are read at once.
        initial_cwnd_packets: Initial window, 1 to 1000.
        ecn: Whether both ends use ECN (RFC 3168): queues that mark do so instead of dropping the flow's packets, and the sender
            reduces its window at most once per window of data. `dctcp` always does, with a receiver that echoes every mark
            (RFC 8257); `prague` always uses "accurate": every ACK reports the number of marked packets (RFC 9768). Linux stack
            only.
        routes: `Route`s that replace `path` and `return_path` at rising times; not for flows that end at hosts.
        misbehaviour: Attack of the receiver to get more than its share (RFC 5681, section 5): "optimistic" acknowledges data
            before they arrive, holes included, which are never filled; "split" sends each ACK in four parts; "spoofed" sends
            three duplicates with each ACK. None: no attack. Only for bulk flows that never stop, without receive buffer or
            receiver control; with "optimistic" `send_buffer_bytes` limits the sender, which notices no losses.
        name: Label.
        priority: Queue at switches, 0 to 63.
        sender_host, receiver_host: Names of the `Host`s of `Scenario.hosts` whose sockets the flow uses; None: an end whose
            buffer is `send_buffer_bytes` or `receive_buffer_bytes`.
        sndbuf_bytes, rcvbuf_bytes: Buffer sizes that the applications request at these hosts (SO_SNDBUF, SO_RCVBUF), 1 to
            2**40; the kernel caps them at `Host.socket_bytes` and doubles them, without autotuning. None: autotuning.
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
    ecn: bool | str = False
    routes: Sequence[Route] = ()
    misbehaviour: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cc", parse_congestion_control("flow.cc", self.cc, CONGESTION_CONTROLS))
        put(self, "path", checks.sequence("flow.path", self.path, "links"))
        put(self, "return_path", checks.sequence("flow.return_path", self.return_path, "links"))
        put(self, "start_s", checks.number("flow.start_s", self.start_s, 0, MAX_DURATION_S))
        if self.stop_s is not None:
            put(self, "stop_s", checks.number("flow.stop_s", self.stop_s, 0, MAX_DURATION_S, low_open=True))
            if self.stop_s <= self.start_s:
                raise ScenarioError(f"flow.stop_s = {self.stop_s:g} is not after start_s = {self.start_s:g}")
        if not isinstance(self.app, Application):
            valid = "Bulk(), Sized(...), OnOff(...), Paused(...) or Video(...)"
            raise ScenarioTypeError(f"flow.app = {shown(self.app)}; valid: {valid}")
        for field in ("send_buffer_bytes", "receive_buffer_bytes"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(f"flow.{field}", getattr(self, field), 4096, MAX_COUNT))
        if self.receiver is not None:
            put(self, "receiver", parse_receiver_control("flow.receiver", self.receiver))
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
        if self.ecn != ACCURATE:
            put(self, "ecn", checks.boolean("flow.ecn", self.ecn))
        self._check_routes()
        if self.misbehaviour is not None:
            checks.choice("flow.misbehaviour", self.misbehaviour, MISBEHAVIOURS)
        check_sockets(self, "flow")
        for field, host in (("send_buffer_bytes", "sender_host"), ("receive_buffer_bytes", "receiver_host")):
            size, name = getattr(self, field), getattr(self, host)
            if size is not None and name is not None:
                raise ScenarioError(f"flow.{field} = {size} beside {host} = {name!r}; valid: one of them, or neither")

    def _check_routes(self) -> None:
        object.__setattr__(self, "routes", checks.sequence("flow.routes", self.routes, "routes") if self.routes else ())
        before = 0.0
        for i, route in enumerate(self.routes):
            if not isinstance(route, Route):
                raise ScenarioTypeError(f"flow.routes[{i}] = {shown(route)}; valid: Route(...)")
            if route.at_s <= before:
                raise ScenarioError(f"flow.routes[{i}].at_s = {route.at_s:g}; valid: after the one before, {before:g}")
            before = route.at_s
