"""Paths to a receiver over trace files: each seed another file, and another window of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, TraceError, quote
from netbuf_gym.scenarios.distributions import Distribution
from netbuf_gym.scenarios.limits import MAX_DELAY_MS, MAX_DURATION_S, compute_bdp_packets
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.receiver_window.random_paths import (
    DEFAULT_RECEIVER,
    RECEIVER_DRIVEN,
    assign_receivers,
    check_resolutions,
    check_senders,
    receiver_world,
)
from netbuf_gym.traces.calibration import PARTS, SPLIT
from netbuf_gym.traces.types import Trace
from netbuf_gym.traces.windows import cut_window, find_window_starts
from netbuf_gym.utils import checks

LEAST_PACKETS = 10
"""Least buffer in packets where it is given in bandwidth-delay products."""


def trace_files(
    path: str | os.PathLike[str] | Sequence[Any], network: str | None = None, part: str = "evaluation"
) -> list[Path]:
    """Return trace files in the order of their names.

    Args:
        path: A file, a folder that holds only trace files, or several of them. Of a folder all files are taken, hidden ones
            left out; with `network` those below it that belong to the network's part.
        network: `"4g"` or `"5g"`; None: all files.
        part: `"calibration"`, `"validation"` or `"evaluation"`, as `netbuf_gym.traces.calibration.SPLIT` names their traces.

    Raises:
        TraceError: There is no such file, or a folder has no traces.
        ScenarioTypeError: The value is not a path.
    """
    several = [path] if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(several, Sequence) or not several or not all(isinstance(one, (str, os.PathLike)) for one in several):
        raise ScenarioTypeError(f"path = {quote(path)}; valid: a trace file, a folder of them, or a list of these")
    wanted = None
    if network is not None:
        names = SPLIT[checks.choice("network", network, SPLIT)]
        wanted = names[checks.choice("part", part, PARTS)]
    found: list[Path] = []
    for one in map(Path, several):
        if not one.is_dir():
            found.append(one)
        elif wanted is not None:
            found += sorted(file for file in one.rglob("*") if file.is_file() and file.name in wanted)
        else:
            found += sorted(file for file in one.iterdir() if file.is_file() and not file.name.startswith("."))
    if not found:
        of = "" if wanted is None else f" of the {part} of {network}: {', '.join(wanted)}"
        raise TraceError(f"holds no trace file{of}", str(several[0]))
    return found


@lru_cache(maxsize=64)
def _read_trace(path: str, changed_ns: int, duration_s: float) -> tuple[Trace, tuple[float, ...]]:
    """Return a trace and the starts of its windows; a change of `changed_ns`, the file's time stamp, makes it read again."""
    trace = traces.read(path)
    return trace, tuple(find_window_starts(trace, duration_s))


def read_windows(path: str | os.PathLike[str], duration_s: float) -> tuple[Trace, tuple[float, ...]]:
    """Return a trace, and the starts of its windows of `duration_s` seconds that are not an outage throughout.

    Raises:
        TraceError: The file cannot be read.
    """
    try:
        changed_ns = os.stat(path).st_mtime_ns
    except OSError:
        changed_ns = 0  # reading says why
    return _read_trace(str(path), changed_ns, duration_s)


def compute_buffer_packets(trace: Trace, rtt_ms: float, products: float) -> int:
    """Return the packets in this many bandwidth-delay products of a trace's mean rate, 10 or more."""
    return max(LEAST_PACKETS, round(products * compute_bdp_packets(trace.mean_mbps(), rtt_ms)))


@dataclass(frozen=True, kw_only=True)
class TraceWindows(Distribution):
    """Worlds over windows of trace files. File, window, round trip and buffer are drawn uniformly.

    Windows follow each other from a file's start. One without a second of 0.3 Mbit/s or more, an outage throughout, is left
    out, and a file that is shorter than a window starts again.

    Args:
        path, network, part: See `trace_files`.
        rtt_ms: Propagation there and back, above 0 to 1e5 ms; or several, each as likely.
        buffer_bdp: The bottleneck's queue limit in bandwidth-delay products of the window's mean rate, 10 packets or more; or
            several, each as likely.
        buffer_packets: The limit instead, 1 or more.
        senders: Congestion controls of the flows.
        receiver: Receiver control of the flows that a receiver drives.
        loss: Random loss of data packets after the bottleneck, 0 to below 1.
        on_outage: Treatment of the bottleneck's queue at outages, see `Link`.
        clock_offset_ms, clock_drift_ppm: As in `ReceiverPaths`.
        timestamp_us: Resolutions of time stamps, 1 or 1000, each as likely.
        duration_s: Length of a window, 1 to 1e4 s.
        stagger_s, name: As in `receiver_world`.

    Raises:
        TraceError: A file cannot be read, or no file carries anything.
        ScenarioError: A value is out of range.
    """

    path: Any
    network: str | None = None
    part: str = "evaluation"
    rtt_ms: Any = 40.0
    buffer_bdp: Any = (1.0, 4.0)
    buffer_packets: Any = None
    senders: Sequence[Any] = (RECEIVER_DRIVEN,)
    receiver: Any = DEFAULT_RECEIVER
    loss: float = 0.0
    on_outage: str = "hold"
    clock_offset_ms: float = 50.0
    clock_drift_ppm: float = 50.0
    timestamp_us: Any = (1000, 1)
    duration_s: float = 60.0
    stagger_s: float = 0.1
    name: str = "nuwa/traces"
    _windows: tuple[tuple[Path, tuple[float, ...]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "duration_s", checks.number("duration_s", self.duration_s, 1, min(1e4, MAX_DURATION_S)))
        put(self, "rtt_ms", _check_options("rtt_ms", self.rtt_ms, MAX_DELAY_MS))
        put(self, "buffer_bdp", _check_options("buffer_bdp", self.buffer_bdp, 1e4))
        put(self, "timestamp_us", _check_options("timestamp_us", self.timestamp_us, 1000))
        check_resolutions(self.timestamp_us)
        put(self, "senders", check_senders(self.senders))
        for name, high in (("clock_offset_ms", 1e6), ("clock_drift_ppm", 1e3)):
            put(self, name, checks.number(name, getattr(self, name), 0, high))
        files = trace_files(self.path, self.network, self.part)
        windows = {file: read_windows(file, self.duration_s)[1] for file in files}
        if not any(windows.values()):
            raise TraceError("never carries 0.3 Mbit/s, nor does any other file; valid: a trace that does", files[0])
        put(self, "_windows", tuple((file, starts_s) for file, starts_s in windows.items() if starts_s))
        self.sample(np.random.default_rng(0))  # the remaining fields are checked where they are used

    @property
    def flows(self) -> int:
        return len(self.senders)

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(7)
        file, starts_s = _pick_option(self._windows, u[0])
        window = cut_window(read_windows(file, self.duration_s)[0], _pick_option(starts_s, u[1]), self.duration_s)
        if window is None:
            raise ScenarioError(f"path: {file} has changed since it was read; valid: files that do not change")
        return trace_world(
            window,
            rtt_ms=_pick_option(self.rtt_ms, u[2]),
            buffer_bdp=_pick_option(self.buffer_bdp, u[3]),
            buffer_packets=self.buffer_packets,
            senders=self.senders,
            receiver=self.receiver,
            loss=self.loss,
            on_outage=self.on_outage,
            clock_offset_ms=self.clock_offset_ms * (2 * u[4] - 1),
            clock_drift_ppm=self.clock_drift_ppm * (2 * u[5] - 1),
            timestamp_resolution_us=int(_pick_option(self.timestamp_us, u[6])),
            stagger_s=self.stagger_s,
            name=self.name,
        )


def trace_world(
    window: Trace,
    *,
    rtt_ms: float = 40.0,
    buffer_bdp: float = 1.0,
    buffer_packets: int | None = None,
    senders: Sequence[Any] = (RECEIVER_DRIVEN,),
    receiver: Any = DEFAULT_RECEIVER,
    name: str = "nuwa/traces",
    **more: Any,
) -> Scenario:
    """Return the world over one trace, with the trace's duration.

    Args:
        window: Trace that the bottleneck follows.
        buffer_bdp: Queue limit of the bottleneck in bandwidth-delay products of the trace's mean rate, 10 packets or more.
        buffer_packets: Queue limit instead.
        more: Further arguments of `receiver_world`.

    Raises:
        ScenarioError: A value is out of range.
    """
    senders = check_senders(senders)
    return receiver_world(
        trace=window,
        rtt_ms=rtt_ms,
        buffer_packets=compute_buffer_packets(window, rtt_ms, buffer_bdp) if buffer_packets is None else buffer_packets,
        senders=senders,
        receivers=assign_receivers(senders, receiver),
        duration_s=window.duration_s,
        name=name,
        **more,
    )


def _pick_option(several: Sequence[Any], u: float) -> Any:
    return several[int(u * len(several))]


def _check_options(field_name: str, value: Any, high: float) -> tuple[float, ...]:
    values = (value,) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise ScenarioTypeError(f"{field_name} = {quote(value)}; valid: a number, or several")
    return tuple(checks.number(f"{field_name}[{i}]", one, 0, high, low_open=True) for i, one in enumerate(values))
