"""Individual TCP connections of a scenario, and their applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import (
    CONGESTION_CONTROLS,
    Controls,
    ReceiverControl,
    parse_congestion_control,
    parse_receiver_control,
)
from netbuf_gym.scenarios.fields import (
    boolean,
    check_fields,
    check_span,
    choice,
    integer,
    links,
    number,
    rule,
    text,
    to_nanoseconds,
)
from netbuf_gym.scenarios.hosts import HOST_NAME, check_sockets
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.tcp_settings import TcpSettings
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Application that always has data to send."""

    kind: ClassVar[str] = "bulk"


@dataclass(frozen=True, kw_only=True)
class Sized:
    """Application that sends `size_bytes` (1 to 2**40) and ends."""

    size_bytes: int = field(metadata=integer(1, MAX_COUNT, core="size_bytes"))
    kind: ClassVar[str] = "sized"

    def __post_init__(self) -> None:
        check_fields(self)


_RATE = number(MIN_RATE_MBPS, MAX_RATE_MBPS, core="app_rate_bps")


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Application that alternates between sending (on, first) and silence (off).

    Args:
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds; the mean length when `random`.
        rate_mbps: Rate during on periods, 1e-6 to 1e6 Mbit/s; None: as fast as TCP accepts data. In the linux stack a socket
            accepts data until 128 KiB wait to leave (a host's: as its settings say), which leave in the off period.
        random: Whether the periods are exponentially distributed instead of fixed.
    """

    on_s: float = field(metadata=number(1e-6, MAX_DURATION_S, core="on_ns"))
    off_s: float = field(metadata=number(1e-6, MAX_DURATION_S, core="off_ns"))
    rate_mbps: float | None = field(default=None, metadata=_RATE)
    random: bool = field(default=False, metadata=boolean(core="random_on_off"))
    kind: ClassVar[str] = "on_off"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Application that always has data to send, except during given pauses.

    Args:
        rests_s: Pauses `((from, to), ...)` in seconds of the world, in order and without overlap, 0 to 1e6.
        rate_mbps: As in `OnOff`.
    """

    rests_s: Sequence[Sequence[float]] = field(
        metadata=rule(
            lambda label, rests: _check_rests(f"paused.{label}", rests),
            core="rest_ns",
            convert=lambda rests: [to_nanoseconds(time) for rest in rests for time in rest],
        )
    )
    rate_mbps: float | None = field(default=None, metadata=_RATE)
    kind: ClassVar[str] = "paused"

    def __post_init__(self) -> None:
        check_fields(self)


def _check_rests(label: str, value: object) -> tuple[tuple[float, ...], ...]:
    rests, before = [], -1.0
    for i, rest in enumerate(checks.sequence(label, value, "rests")):
        at = f"{label}[{i}]"
        times = tuple(checks.number(at, time, 0, MAX_DURATION_S) for time in checks.sequence(at, rest, "times"))
        if len(times) != 2 or not before < times[0] < times[1]:
            raise ScenarioError(f"{at} = {quote(rest)}; valid: (from, to), from before to and after the rest before")
        before = times[1]
        rests.append(times)
    return tuple(rests)


Application = Bulk | Sized | OnOff | Paused | Video
APPLICATIONS: dict[str, type] = {cls.kind: cls for cls in (Bulk, Sized, OnOff, Paused, Video)}

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

    at_s: float = field(metadata=number(0, MAX_DURATION_S, low_open=True, core="from_ns"))
    path: Sequence[int | str] = field(metadata=links(core="path"))
    return_path: Sequence[int | str] = field(metadata=links(core="return_path"))

    def __post_init__(self) -> None:
        check_fields(self, "route.")


def _check_application(label: str, value: object) -> object:
    if isinstance(value, Application):
        return value
    raise ScenarioTypeError(f"{label} = {quote(value)}; valid: Bulk(), Sized(...), OnOff(...), Paused(...) or Video(...)")


def _check_resolution(label: str, value: object) -> int:
    unit = checks.integer(label, value, 1, 1000)
    if unit not in (1, 1000):
        raise ScenarioError(f"{label} = {unit}; valid: 1000 or 1")
    return unit


def _check_ecn(label: str, value: object) -> bool | str:
    return ACCURATE if isinstance(value, str) and value == ACCURATE else checks.boolean(label, value)


def _check_routes(label: str, value: Any) -> tuple[Route, ...]:
    if not value:
        return ()
    routes, before = checks.sequence(label, value, "routes"), 0.0
    for i, route in enumerate(routes):
        if not isinstance(route, Route):
            raise ScenarioTypeError(f"{label}[{i}] = {quote(route)}; valid: Route(...)")
        if route.at_s <= before:
            raise ScenarioError(f"{label}[{i}].at_s = {route.at_s:g}; valid: after the one before, {before:g}")
        before = route.at_s
    return routes


_BUFFER = 4096, MAX_COUNT


@dataclass(frozen=True, kw_only=True)
class Flow(TcpSettings):
    """TCP connection with its sender, application and path.

    Args:
        cc: Congestion control, by name or as a dict of `name` and parameters: `{"name": "cubic", "beta": 0.8}`
            (`netbuf-gym list congestion-controls`); "agent": an environment sets the window; or a user-defined class or
            function (`netbuf_gym.scenarios.python_control`).
        path, return_path: Links of data and ACKs, as indices into `Scenario.links` or link names.
        start_s: Start of the flow, 0 to 1e6 seconds.
        stop_s: End of what the application writes, after `start_s`, at most 1e6; None: never. On the linux stack what the
            socket has taken by then still leaves.
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
        max_rto_ms, slow_start_after_idle: As in `Scenario`, for this flow; None: the hosts', or else the scenario's.
        window_scaling, timestamps, sack: As in `Scenario`, for this flow, which uses each unless it or one of its hosts is
            without; None: the hosts', or else the scenario's.
    """

    cc: Controls = field(
        default="cubic", metadata=rule(lambda label, cc: parse_congestion_control(label, cc, CONGESTION_CONTROLS))
    )
    path: Sequence[int | str] = field(metadata=links(core="path"))
    return_path: Sequence[int | str] = field(metadata=links(core="return_path"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    stop_s: float | None = field(default=None, metadata=number(0, MAX_DURATION_S, low_open=True, core="stop_ns"))
    app: Application = field(default=Bulk(), metadata=rule(_check_application))
    send_buffer_bytes: int | None = field(default=None, metadata=integer(*_BUFFER, core="send_buffer_bytes"))
    receive_buffer_bytes: int | None = field(default=None, metadata=integer(*_BUFFER, core="receive_buffer_bytes"))
    receiver: str | Mapping[str, Any] | ReceiverControl | None = field(default=None, metadata=rule(parse_receiver_control))
    clock_offset_ms: float = field(default=0.0, metadata=number(-1e9, 1e9, core="clock_offset_ns"))
    clock_drift_ppm: float = field(default=0.0, metadata=number(-1e5, 1e5, core="clock_drift_ppm"))
    timestamp_resolution_us: int = field(default=1000, metadata=rule(_check_resolution, core="timestamp_ns"))
    clamp_interval_ms: float | None = field(default=None, metadata=number(0, 1e4, core="clamp_interval_ns"))
    read_mbps: float | None = field(default=None, metadata=number(MIN_RATE_MBPS, MAX_RATE_MBPS, core="read_bps"))
    initial_cwnd_packets: int = field(default=10, metadata=integer(1, 1000, core="initial_cwnd_packets"))
    name: str = field(default="", metadata=text())
    priority: int = field(default=0, metadata=integer(0, MAX_QUEUES - 1, core="priority"))
    sender_host: str | None = field(default=None, metadata=HOST_NAME)
    receiver_host: str | None = field(default=None, metadata=HOST_NAME)
    sndbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="sndbuf_bytes"))
    rcvbuf_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="rcvbuf_bytes"))
    ecn: bool | str = field(default=False, metadata=rule(_check_ecn, core="ecn", convert=bool))
    routes: Sequence[Route] = field(default=(), metadata=rule(_check_routes))
    misbehaviour: str | None = field(default=None, metadata=choice(MISBEHAVIOURS, core="misbehaviour"))

    def __post_init__(self) -> None:
        check_fields(self, "flow.")
        check_span(self, "flow.")
        if self.read_mbps is not None:
            if isinstance(self.app, Video):
                raise ScenarioError(f"flow.read_mbps = {self.read_mbps:g} beside app = Video(...); valid: None")
            if self.receive_buffer_bytes is None and self.receiver_host is None:
                raise ScenarioError(
                    f"flow.read_mbps = {self.read_mbps:g} without receive_buffer_bytes, which what is not read yet fills;"
                    " valid: both, or None"
                )
        check_sockets(self, "flow")
        for buffer, end in (("send_buffer_bytes", "sender_host"), ("receive_buffer_bytes", "receiver_host")):
            size, host = getattr(self, buffer), getattr(self, end)
            if size is not None and host is not None:
                raise ScenarioError(f"flow.{buffer} = {size} beside {end} = {host!r}; valid: one of them, or neither")
