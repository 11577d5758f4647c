"""Hosts: kernel settings that determine the socket buffers of the flows that end there."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.fields import Indices, boolean, check_fields, integer, number, rule
from netbuf_gym.scenarios.limits import HAS_HOSTS, MAX_COUNT
from netbuf_gym.scenarios.tcp_settings import TcpSettings
from netbuf_gym.utils import checks

PAGE_BYTES = 4096
"""Page size of simulated hosts, independent of the machine that runs the simulation."""
_KERNEL = re.compile(r"([1-9]\d?)\.(\d{1,3})")


HOST_NAME = rule(partial(checks.name, valid="the name of a host, or None"))
"""Metadata of a field with the name of the host at which a connection ends."""


def _check_sizes(label: str, value: object, least: int = 1) -> tuple[int, ...]:
    """Check three sizes in bytes, each at least `least`."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:
        raise ScenarioTypeError(f"{label} = {quote(value)}; valid: three numbers of bytes")
    return tuple(checks.integer(f"{label}[{i}]", number, least, MAX_COUNT) for i, number in enumerate(value))


def _check_marks(label: str, value: object) -> tuple[int, ...]:
    marks = _check_sizes(label, value, PAGE_BYTES)
    if list(marks) != sorted(marks):
        raise ScenarioError(f"{label} = {marks} does not rise; valid: low, pressure, high")
    return marks


def _parse_kernel(label: str, value: object) -> int:
    """Return a kernel's version as the core has it: 1000 times the major number, plus the minor."""
    found = _KERNEL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ScenarioError(f'{label} = {quote(value)} is no version; valid: "6.18", as `uname -r` begins')
    return int(found[1]) * 1000 + int(found[2])


def _check_kernel(label: str, value: object) -> object:
    _parse_kernel(label, value)
    return value


@dataclass(frozen=True, kw_only=True)
class Host(TcpSettings):
    """Linux host: socket buffers, their memory limits, and the device's ring.

    A flow that ends at a host (`Flow.sender_host`, `Flow.receiver_host`) has its buffer there sized by Linux's rules: the
    default when the connection is opened, then autotuning up to the maximum. A changed default affects connections opened
    later; a changed maximum affects autotuning from then on, so that a larger one lets established connections grow and a
    smaller one shrinks no receive buffer. Explicit buffers (`Flow.sndbuf_bytes`, `Flow.rcvbuf_bytes`) are not tuned.

    Args:
        name: Name, unique in the scenario.
        tcp_rmem, tcp_wmem: Least, default and largest size of receive and send buffers, 1 to 2**40 bytes
            (`net.ipv4.tcp_rmem`, `tcp_wmem`); as in Linux, the three need not ascend. Buffers hold packets with their overhead,
            not payload alone.
        socket_bytes: Cap of explicit buffers, 1 to 2**40 bytes (`net.core.rmem_max` and `wmem_max`).
        tcp_mem: Low, pressure and high mark of the memory of all sockets together, bytes (`net.ipv4.tcp_mem`, which counts
            pages); None: no limit.
        ring_packets: Size of the ring of `device`, 1 to 2**20 packets; None: the queue limit of that link.
        device: Link, or links, by name or index, over which packets leave the host; the queue is the host's ring.
        ring_stall_s: Time for which a resize of the ring stops transmission, 0 to 3600 seconds.
        notsent_lowat_bytes: Amount of unsent data from which on a socket accepts no more, 1 to 2**32 bytes
            (`tcp_notsent_lowat`).
        limit_output_bytes: Limit of a socket's data in the host's queues below TCP, 1 to 2**40 bytes
            (`tcp_limit_output_bytes`); None: no limit, as with devices that orphan packets at once.
        moderate_rcvbuf: Whether receive buffers are tuned (`tcp_moderate_rcvbuf`).
        polls: Whether the host's programs poll for room between writes, as event loops do, or write until the buffer is full.
            Linux counts a connection as limited by its send buffer if data leave after a program found no room; a program that
            only writes has no data left to leave then, unless the device or pacing delays them.
        kernel: Kernel version of the autotuning, as "6.18". Autotuning changed with 6.6, 6.16 and 6.18.
        agent: Whether an agent of kind "host" controls the buffers.
        max_rto_ms, slow_start_after_idle, window_scaling, timestamps, sack: As in `Scenario`, at this host; a connection uses
            the last three only if both ends have them. None: the scenario's.

    Raises:
        ScenarioError: A field out of range, a mark of `tcp_mem` above the next, a ring without a device.
    """

    name: str = field(metadata=rule(checks.name, core="name"))
    tcp_rmem: Sequence[int] = field(default=(4096, 131072, 6291456), metadata=rule(_check_sizes, core="tcp_rmem"))
    tcp_wmem: Sequence[int] = field(default=(4096, 16384, 4194304), metadata=rule(_check_sizes, core="tcp_wmem"))
    socket_bytes: int = field(default=212992, metadata=integer(1, MAX_COUNT, core="socket_bytes"))
    tcp_mem: Sequence[int] | None = field(default=None, metadata=rule(_check_marks, core="tcp_mem"))
    ring_packets: int | None = field(default=None, metadata=integer(1, 2**20, core="ring_packets"))
    device: str | int | Sequence[str | int] | None = None
    ring_stall_s: float = field(default=2.1, metadata=number(0, 3600, core="ring_stall_ns"))
    notsent_lowat_bytes: int | None = field(default=None, metadata=integer(1, 2**32, core="notsent_lowat_bytes"))
    limit_output_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="limit_output_bytes"))
    moderate_rcvbuf: bool = field(default=True, metadata=boolean(core="moderate_rcvbuf"))
    polls: bool = field(default=True, metadata=boolean(core="polls"))
    kernel: str = field(
        default="6.18", metadata=rule(_check_kernel, core="kernel", convert=partial(_parse_kernel, "host.kernel"))
    )
    agent: bool = field(default=False, metadata=boolean(core="agent"))

    def __post_init__(self) -> None:
        check_fields(self, "host.")
        if self.device is not None and not isinstance(self.device, (str, int)):
            object.__setattr__(self, "device", checks.sequence("host.device", self.device, "links"))
        if self.ring_packets is not None and self.device is None:
            raise ScenarioError(f"host.ring_packets = {self.ring_packets} without a device; valid: both, or None")

    @property
    def devices(self) -> tuple[str | int, ...]:
        """Links whose queue is the host's ring."""
        if self.device is None:
            return ()
        return (self.device,) if isinstance(self.device, (str, int)) else tuple(self.device)


def check_sockets(end: object, what: str) -> None:
    """Raise ScenarioError for an explicit buffer of a flow, sender or relay at an end that is at no host."""
    for host, buffer in (("sender_host", "sndbuf_bytes"), ("receiver_host", "rcvbuf_bytes")):
        size = getattr(end, buffer)
        if size is not None and getattr(end, host) is None:
            raise ScenarioError(f"{what}.{buffer} = {size} without {host}; valid: both, or None")


def resolve_hosts(
    hosts: tuple[Any, ...], indices: Callable[[str, str, tuple[str | int, ...]], Indices], ports: Container[int], stack: str
) -> tuple[Host, ...]:
    """Return the hosts of a scenario with their devices as indices; the same tuple if they are indices already.

    Args:
        hosts: Hosts of the scenario.
        indices: (owner, field, links) -> indices of links given by name or index.
        ports: Links that are ports of switches.
        stack: Stack of the scenario.

    Raises:
        ScenarioError: A name used twice, a device that is a switch's port, or a stack without hosts.
    """
    names: dict[str, int] = {}
    placed = []
    for i, host in enumerate(hosts):
        if not isinstance(host, Host):
            raise ScenarioTypeError(f"hosts[{i}] = {quote(host)} is not a Host")
        if names.setdefault(host.name, i) != i:
            raise ScenarioError(f"hosts[{i}].name = {host.name!r} is taken by hosts[{names[host.name]}]; valid: unique names")
        device = indices(f"hosts[{i}]", "device", host.devices)
        for link in device:
            if link in ports:
                raise ScenarioError(f"hosts[{i}].device = {link} is the port of a switch; valid: another link")
        placed.append(host if device == host.devices else replace(host, device=device))
    if hosts and not HAS_HOSTS[stack]:
        valid = ", ".join(name for name, has in HAS_HOSTS.items() if has)
        raise ScenarioError(f"hosts is not empty in the {stack} stack; valid: stack = {valid}")
    return hosts if all(a is b for a, b in zip(hosts, placed, strict=True)) else tuple(placed)


def check_host_names(field: str, ends: Sequence[Any], hosts: Sequence[Host]) -> None:
    """Raise ScenarioError unless all flows, or legs of a sender, end at existing hosts."""
    names = [host.name for host in hosts]
    for i, end in enumerate(ends):
        for end_field in ("sender_host", "receiver_host"):
            name = getattr(end, end_field)
            if name is not None and name not in names:
                valid = ", ".join(map(repr, names)) or "None, for there are no hosts"
                raise ScenarioError(f"{field}[{i}].{end_field} = {name!r} is no host; valid: {valid}")
