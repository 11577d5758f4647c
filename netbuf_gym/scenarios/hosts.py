"""Hosts: kernel settings that determine the socket buffers of the flows that end there."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.limits import HAS_HOSTS, MAX_COUNT
from netbuf_gym.utils import checks

PAGE_BYTES = 4096
"""Page size of simulated hosts, independent of the machine that runs the simulation."""
_KERNEL = re.compile(r"([1-9]\d?)\.(\d{1,3})")


@dataclass(frozen=True, kw_only=True)
class Host:
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
        agent: Whether an agent of kind "host" controls the settings.

    Raises:
        ScenarioError: A field out of range, a mark of `tcp_mem` above the next, a ring without a device.
    """

    name: str
    tcp_rmem: Sequence[int] = (4096, 131072, 6291456)
    tcp_wmem: Sequence[int] = (4096, 16384, 4194304)
    socket_bytes: int = 212992
    tcp_mem: Sequence[int] | None = None
    ring_packets: int | None = None
    device: str | int | Sequence[str | int] | None = None
    ring_stall_s: float = 2.1
    notsent_lowat_bytes: int | None = None
    limit_output_bytes: int | None = None
    moderate_rcvbuf: bool = True
    polls: bool = True
    kernel: str = "6.18"
    agent: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not checks.text("host.name", self.name):
            raise ScenarioError("host.name is empty; valid: a name")
        put(self, "tcp_rmem", _check_three_sizes("host.tcp_rmem", self.tcp_rmem, 1))
        put(self, "tcp_wmem", _check_three_sizes("host.tcp_wmem", self.tcp_wmem, 1))
        put(self, "socket_bytes", checks.integer("host.socket_bytes", self.socket_bytes, 1, MAX_COUNT))
        if self.tcp_mem is not None:
            put(self, "tcp_mem", _check_three_sizes("host.tcp_mem", self.tcp_mem, PAGE_BYTES))
            if not self.tcp_mem[0] <= self.tcp_mem[1] <= self.tcp_mem[2]:
                raise ScenarioError(f"host.tcp_mem = {self.tcp_mem} does not rise; valid: low, pressure, high")
        if self.device is not None and not isinstance(self.device, (str, int)):
            put(self, "device", checks.sequence("host.device", self.device, "links"))
        if self.ring_packets is not None:
            put(self, "ring_packets", checks.integer("host.ring_packets", self.ring_packets, 1, 2**20))
            if self.device is None:
                raise ScenarioError(f"host.ring_packets = {self.ring_packets} without a device; valid: both, or None")
        put(self, "ring_stall_s", checks.number("host.ring_stall_s", self.ring_stall_s, 0, 3600))
        for field, most in (("notsent_lowat_bytes", 2**32), ("limit_output_bytes", MAX_COUNT)):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(f"host.{field}", getattr(self, field), 1, most))
        put(self, "moderate_rcvbuf", checks.boolean("host.moderate_rcvbuf", self.moderate_rcvbuf))
        put(self, "polls", checks.boolean("host.polls", self.polls))
        put(self, "agent", checks.boolean("host.agent", self.agent))
        self.kernel_number  # noqa: B018  # raises for an invalid version

    @property
    def devices(self) -> tuple[str | int, ...]:
        """Links whose queue is the host's ring."""
        if self.device is None:
            return ()
        return (self.device,) if isinstance(self.device, (str, int)) else tuple(self.device)

    @property
    def kernel_number(self) -> int:
        """Kernel version for the core: 1000 times the major number, plus the minor."""
        found = _KERNEL.fullmatch(self.kernel) if isinstance(self.kernel, str) else None
        if found is None:
            raise ScenarioError(f'host.kernel = {shown(self.kernel)} is no version; valid: "6.18", as `uname -r` begins')
        return int(found[1]) * 1000 + int(found[2])


def _check_three_sizes(field: str, value: object, least: int) -> tuple[int, int, int]:
    """Check three sizes in bytes, each at least `least`."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:
        raise ScenarioTypeError(f"{field} = {shown(value)}; valid: three numbers of bytes")
    first, second, third = (checks.integer(f"{field}[{i}]", number, least, MAX_COUNT) for i, number in enumerate(value))
    return first, second, third


def check_sockets(end: object, what: str) -> None:
    """Check the socket fields of a flow, sender or relay: host names, and explicit buffers, which need a host.

    Raises:
        ScenarioError: An empty name, a buffer out of range, or a buffer without a host.
    """
    for host_field, field in (("sender_host", "sndbuf_bytes"), ("receiver_host", "rcvbuf_bytes")):
        host, size = getattr(end, host_field), getattr(end, field)
        if host is not None and not checks.text(f"{what}.{host_field}", host):
            raise ScenarioError(f"{what}.{host_field} is empty; valid: the name of a host, or None")
        if size is None:
            continue
        object.__setattr__(end, field, checks.integer(f"{what}.{field}", size, 1, MAX_COUNT))
        if host is None:
            raise ScenarioError(f"{what}.{field} = {size} without {host_field}; valid: both, or None")


def resolve_hosts(hosts: tuple, indices: Callable[[str, tuple], tuple], ports: Container[int], stack: str) -> tuple:
    """Return the hosts of a scenario with their devices as indices; the same tuple if they are indices already.

    Args:
        hosts: Hosts of the scenario.
        indices: (field, links) -> indices of links given by name or index.
        ports: Links that are ports of switches.
        stack: Stack of the scenario.

    Raises:
        ScenarioError: A name used twice, a device that is a switch's port, or a stack without hosts.
    """
    names: dict[str, int] = {}
    placed = []
    for i, host in enumerate(hosts):
        if not isinstance(host, Host):
            raise ScenarioTypeError(f"hosts[{i}] = {shown(host)} is not a Host")
        if names.setdefault(host.name, i) != i:
            raise ScenarioError(f"hosts[{i}].name = {host.name!r} is taken by hosts[{names[host.name]}]; valid: unique names")
        device = indices(f"hosts[{i}].device", host.devices)
        for link in device:
            if link in ports:
                raise ScenarioError(f"hosts[{i}].device = {link} is the port of a switch; valid: another link")
        placed.append(host if device == host.devices else replace(host, device=device))
    if hosts and not HAS_HOSTS[stack]:
        valid = ", ".join(name for name, has in HAS_HOSTS.items() if has)
        raise ScenarioError(f"hosts is not empty in the {stack} stack; valid: stack = {valid}")
    return hosts if all(a is b for a, b in zip(hosts, placed, strict=True)) else tuple(placed)


def check_host_names(field: str, ends: Sequence[Any], hosts: tuple) -> None:
    """Raise ScenarioError unless all flows, or legs of a sender, end at existing hosts."""
    names = [host.name for host in hosts]
    for i, end in enumerate(ends):
        for end_field in ("sender_host", "receiver_host"):
            name = getattr(end, end_field)
            if name is not None and name not in names:
                valid = ", ".join(map(repr, names)) or "None, for there are no hosts"
                raise ScenarioError(f"{field}[{i}].{end_field} = {name!r} is no host; valid: {valid}")
