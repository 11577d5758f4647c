"""Congestion controls that `netbuf-gym install` has installed: found by whoever asks, read, removed.

The kernel is the only place that knows of them: a control is found by its link, what it counts by the maps of its programs.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.plants.linux.bpf import senders, syscalls
from netbuf_gym.plants.linux.bpf.objects import load_object
from netbuf_gym.plants.linux.bpf.struct_ops import BpfError, kernel_structs
from netbuf_gym.utils.arguments import check_real

SHOWN = ("settings", "totals", "rows")
"""Maps that are read while a control is in use."""
TOTALS = ("sockets", "opened", "decisions", "windows", "clamped", "late", "time_ns")
"""`struct totals` before its histogram, 64 bits each."""
TIMES = 256
_TOTALS = struct.Struct(f"<{len(TOTALS) + TIMES}Q")
_ROW = struct.Struct("<6Q2I16s16s2I")
_REMOVAL_S = 5.0


@dataclass(frozen=True)
class Bounds:
    """Bounds within which the kernel keeps a control's sockets.

    Attributes:
        max_window_mb: Largest window in megabytes, 0.01 to 1000; a segment at least is sent.
        max_rate_mbps: Highest pacing rate in Mbit/s, 0.01 to 10^6; None: any.
        max_growth: Largest factor of a window by one decision, 1.125 to 1000; None: any.
    """

    max_window_mb: float = senders.USUAL_WINDOW_MB
    max_rate_mbps: float | None = None
    max_growth: float | None = None

    def __post_init__(self) -> None:
        check_real("max_window_mb", self.max_window_mb, 0.01, 1000)
        if self.max_rate_mbps is not None:
            check_real("max_rate_mbps", self.max_rate_mbps, 0.01, 1e6)
        if self.max_growth is not None:
            check_real("max_growth", self.max_growth, 1.125, 1000)

    def pack(self, agent: str) -> bytes:
        """Return `struct settings` with these bounds and an agent's name."""
        return senders.pack_settings(self.max_window_mb, self.max_rate_mbps or 0, self.max_growth or 0, agent)

    @classmethod
    def unpack(cls, data: bytes) -> tuple[Bounds, str]:
        """Return what `pack` was given."""
        window, rate, growth, agent = senders.SETTINGS.unpack(data)
        bounds = cls(window / 1e6, rate / 125_000 if rate else None, growth / 1024 if growth else None)
        return bounds, agent.rstrip(b"\0").decode(errors="replace")


@dataclass(frozen=True)
class Socket:
    """A socket that uses a control, as of its latest decision.

    Attributes:
        local, remote: Address and port; IPv6 in brackets.
        decisions, clamped, timeouts: Number of decisions, windows that were clamped, and retransmission time-outs.
        window_bytes: The window.
        rate_mbps, rtt_ms: Delivery rate and mean round trip of the latest interval with ACKs.
        action: Index of the latest action.
    """

    local: str
    remote: str
    decisions: int
    clamped: int
    timeouts: int
    window_bytes: int
    rate_mbps: float
    rtt_ms: float
    action: int


@dataclass(frozen=True)
class Totals:
    """Counters of a control over all of its sockets, those that are closed among them.

    Attributes:
        sockets, opened: Number of sockets that use it now, and ever did.
        decisions, windows: Number of decisions, and of those with a window: an agent that has seen no ACK decides on none.
        clamped: Number of windows that the bounds cut.
        late: Number of decisions more than 10 ms after the end of their interval, since no ACK came.
        time_ns: Sum of the durations of decisions.
        times: Number of decisions that took so many whole microseconds; the last: or more.
    """

    sockets: int
    opened: int
    decisions: int
    windows: int
    clamped: int
    late: int
    time_ns: int
    times: tuple[int, ...] = field(repr=False)

    def percentile_us(self, percent: float) -> float:
        """Return a percentile of the duration of decisions in microseconds, NaN without any; at most `TIMES`."""
        counted = np.cumsum(self.times)
        if not counted[-1]:
            return float("nan")
        return float(np.searchsorted(counted, counted[-1] * percent / 100) + 0.5)


@dataclass(frozen=True)
class FoundSender:
    """A control of this machine that some process has installed.

    Attributes:
        name: Its name.
        link: Id of its link.
        pinned: Whether it outlives its process.
        maps: Ids of its maps by name; empty for one of another version, which can only be removed.
    """

    name: str
    link: int
    pinned: bool
    maps: dict[str, int]

    def read_settings(self) -> tuple[Bounds, str]:
        """Return the bounds, and the agent's name."""
        with _opened(syscalls.MAP_BY_ID, self.maps["settings"]) as fd:
            return Bounds.unpack(syscalls.read_element(fd, bytes(4), senders.SETTINGS.size) or bytes(senders.SETTINGS.size))

    def read_totals(self) -> Totals:
        """Return the counters."""
        with _opened(syscalls.MAP_BY_ID, self.maps["totals"]) as fd:
            numbers = _TOTALS.unpack(syscalls.read_element(fd, bytes(4), _TOTALS.size) or bytes(_TOTALS.size))
        return Totals(**dict(zip(TOTALS, numbers, strict=False)), times=numbers[len(TOTALS) :])

    def read_sockets(self) -> list[Socket]:
        """Return the sockets that use it now, in all namespaces; at most 65,536."""
        with _opened(syscalls.MAP_BY_ID, self.maps["rows"]) as fd:
            rows = [syscalls.read_element(fd, key, _ROW.size) for key in dict.fromkeys(syscalls.list_keys(fd, 8))]
        return sorted((_unpack_row(row) for row in rows if row), key=lambda one: (one.local, one.remote))

    def remove(self) -> None:
        """Unregister the control, whoever holds it; sockets that use it keep it until they are closed.

        Raises:
            ConfigError: A kernel before 6.11, in which only the process that holds it can.
        """
        with _opened(syscalls.LINK_BY_ID, self.link) as fd:
            try:
                syscalls.detach_link(fd)
            except BpfError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
        _remove_pin(self.name)
        end = time.monotonic() + _REMOVAL_S
        while any(one.link == self.link for one in find_senders()):  # the kernel frees what was unpinned after a while
            if time.monotonic() > end:
                raise ConfigError(f"{self.name} is held by the process that installed it; valid on this kernel: end that one")
            time.sleep(0.05)


def find_senders() -> list[FoundSender]:
    """Return the controls that are installed on this machine, by name.

    Raises:
        ConfigError: Privileges are missing.
    """
    try:
        numbers = syscalls.list_links()
    except BpfError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise ConfigError("installed controls cannot be listed: privileges are missing; valid: CAP_SYS_ADMIN") from None
        raise
    found = []
    for number in numbers:
        with suppress(SenderGone):
            sender = _inspect_link(number)
            if sender is not None:
                found.append(sender)
    return sorted(found, key=lambda one: one.name)


def get_sender(name: str) -> FoundSender:
    """Return an installed control by name.

    Raises:
        ConfigError: There is none of this name.
    """
    found = {one.name: one for one in find_senders()}
    if name not in found:
        if name in _list_pins():
            _remove_pin(name)  # of a control that was removed where this file system is not seen
        valid = f"valid: {', '.join(found)}" if found else "none is installed"
        raise ConfigError(f"name = {quote(name)} is no control that netbuf-gym install has installed; {valid}")
    return found[name]


class SenderGone(ConfigError):
    """A control was removed before it was read."""


@contextmanager
def _opened(command: int, number: int) -> Iterator[int]:
    """Open an object by its id for a `with` block."""
    try:
        fd = syscalls.open_by_id(command, number)
    except BpfError as error:
        if error.errno in (errno.ENOENT, errno.EAGAIN):  # EAGAIN: a link that is being made
            raise SenderGone("the control was removed meanwhile") from None
        raise
    try:
        yield fd
    finally:
        os.close(fd)


def _inspect_link(number: int) -> FoundSender | None:
    """Return the control that a link keeps registered; None if it is none of ours."""
    with _opened(syscalls.LINK_BY_ID, number) as fd:
        link_type, _, _, _, table = struct.unpack("<5I", syscalls.read_info(fd, 20))
    if link_type != syscalls.LINK_STRUCT_OPS or table == 0:
        return None
    operations, value = kernel_structs()
    start = value["members"]["data"][1]
    with _opened(syscalls.MAP_BY_ID, table) as fd:
        _, _, _, value_bytes, _, _, name = struct.unpack("<6I16s", syscalls.read_info(fd, 40))
        if value_bytes != value["bytes"]:  # of another structure
            return None
        filled = syscalls.read_element(fd, bytes(4), value_bytes)
    if filled is None:
        return None
    (program,) = struct.unpack_from("<Q", filled, start + operations["members"]["cong_control"][1])
    (initial,) = struct.unpack_from("<Q", filled, start + operations["members"]["init"][1])
    maps = _list_maps(program) | _list_maps(initial)
    if not {"policies", *SHOWN} <= set(maps):
        return None
    sizes = {key: spec.value_bytes for key, spec in load_object("sender").maps.items()}
    same = all(maps[key][1] == sizes[key] for key in SHOWN)
    text = name.rstrip(b"\0").decode()
    return FoundSender(text, number, _is_pinned(text, number), {key: maps[key][0] for key in SHOWN} if same else {})


def _list_pins() -> list[str]:
    with suppress(OSError):
        return os.listdir(senders.PINS)
    return []


def _is_pinned(name: str, link: int) -> bool:
    """Return whether the pin of a name is that of a link, rather than of one that was detached since."""
    if name not in _list_pins():
        return False
    with suppress(BpfError):
        fd = syscalls.open_pinned(str(senders.PINS / name))
        try:
            return struct.unpack("<2I", syscalls.read_info(fd, 8))[1] == link
        finally:
            os.close(fd)
    return False


def _remove_pin(name: str) -> None:
    """Remove the pin of a name, and their folder with the last one."""
    with suppress(OSError):
        (senders.PINS / name).unlink(missing_ok=True)
        senders.PINS.rmdir()


def _list_maps(program: int) -> dict[str, tuple[int, int]]:
    """Return id and bytes of a value of each map of a program, by name."""
    found: dict[str, tuple[int, int]] = {}
    if program == 0:
        return found
    with _opened(syscalls.PROG_BY_ID, program) as fd:
        numbers = syscalls.list_program_maps(fd)
    for number in numbers:
        with _opened(syscalls.MAP_BY_ID, number) as fd:
            _, _, _, value_bytes, _, _, name = struct.unpack("<6I16s", syscalls.read_info(fd, 40))
        found[name.rstrip(b"\0").decode()] = (number, value_bytes)
    return found


def _unpack_row(data: bytes) -> Socket:
    decisions, clamped, timeouts, window, rate, rtt, action, family, near, far, local, remote = _ROW.unpack(data)
    six = family == socket.AF_INET6

    def show(address: bytes, port: int) -> str:
        return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}" if six else f"{socket.inet_ntoa(address[:4])}:{port}"

    own = (show(near, local), show(far, remote))
    return Socket(*own, decisions, clamped, timeouts, window, rate * 8e-6, rtt * 1e-6, action)
