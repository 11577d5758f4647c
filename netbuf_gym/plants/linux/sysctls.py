"""Sysctls of buffers: their numbers, the range that the kernel takes for each, and the host agent's control for each number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TRIPLE = ("min", "default", "max")
INT_MAX, UINT_MAX = 2**31 - 1, 2**32 - 1
RTO_MAX = "net.ipv4.tcp_rto_max_ms"


@dataclass(frozen=True)
class SysctlKind:
    """Properties of a sysctl: labels of its numbers, the range of each, whether it belongs to a network namespace."""

    labels: tuple[str, ...]
    low: int
    high: int
    in_namespace: bool = True


KINDS = {
    "net.ipv4.tcp_rmem": SysctlKind(TRIPLE, 1, INT_MAX),
    "net.ipv4.tcp_wmem": SysctlKind(TRIPLE, 1, INT_MAX),
    "net.ipv4.tcp_limit_output_bytes": SysctlKind(("",), 1, INT_MAX),
    "net.ipv4.tcp_notsent_lowat": SysctlKind(("",), 1, UINT_MAX),
    "net.core.rmem_max": SysctlKind(("",), 2304, INT_MAX, in_namespace=False),
    "net.core.wmem_max": SysctlKind(("",), 4608, INT_MAX, in_namespace=False),
    "net.core.rmem_default": SysctlKind(("",), 2304, INT_MAX, in_namespace=False),
    "net.core.wmem_default": SysctlKind(("",), 4608, INT_MAX, in_namespace=False),
}
"""Properties of sysctls by name."""

PLACES = {
    "socket_bytes": (("net.core.rmem_max", 0), ("net.core.wmem_max", 0)),
    "tcp_rmem_default_bytes": (("net.ipv4.tcp_rmem", 1),),
    "tcp_rmem_max_bytes": (("net.ipv4.tcp_rmem", 2),),
    "tcp_wmem_default_bytes": (("net.ipv4.tcp_wmem", 1),),
    "tcp_wmem_max_bytes": (("net.ipv4.tcp_wmem", 2),),
    "limit_output_bytes": (("net.ipv4.tcp_limit_output_bytes", 0),),
    "notsent_lowat_bytes": (("net.ipv4.tcp_notsent_lowat", 0),),
}
"""By the name of a control, the sysctls that the control is written to, and which number of each."""


def list_tcp_sysctls(settings: Any) -> dict[str, str]:
    """Return the sysctls of the settings that a scenario, a flow or a host has, by name."""
    names = {
        "slow_start_after_idle": "net.ipv4.tcp_slow_start_after_idle",
        "window_scaling": "net.ipv4.tcp_window_scaling",
        "timestamps": "net.ipv4.tcp_timestamps",
        "sack": "net.ipv4.tcp_sack",
    }
    sysctls = {
        name: str(int(getattr(settings, setting))) for setting, name in names.items() if getattr(settings, setting) is not None
    }
    if settings.timestamps:
        sysctls[names["timestamps"]] = "2"  # the monotonic clock, without an offset
    if settings.max_rto_ms is not None:
        sysctls[RTO_MAX] = str(round(settings.max_rto_ms))
    return sysctls
