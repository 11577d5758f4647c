"""Hosts of a scenario in a live world: a node each with its own sysctls, and the links whose queues are the host's ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netbuf_gym.plants.linux.sysctls import list_tcp_sysctls
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.types import Scenario

Refuse = Callable[[str, object, str], object]
"""Callback that raises ConfigError: (field, value, what is valid)."""


def hosts_message(scenario: Scenario, node: Callable[[str], int], refuse: Refuse) -> list[dict[str, Any]]:
    """Return the part of a world's message for each host, in the scenario's order.

    Args:
        node: returns the number of a host's node, by the host's name.
        refuse: raises ConfigError.
    """
    return [_host_message(f"hosts[{number}]", scenario, host, node, refuse) for number, host in enumerate(scenario.hosts)]


def _host_message(at: str, scenario: Scenario, host: Host, node: Callable[[str], int], refuse: Refuse) -> dict[str, Any]:
    if host.tcp_mem is not None:
        refuse(f"{at}.tcp_mem", list(host.tcp_mem), "None: it is the whole machine's")
    sysctls = {
        "net.ipv4.tcp_rmem": " ".join(map(str, host.tcp_rmem)),
        "net.ipv4.tcp_wmem": " ".join(map(str, host.tcp_wmem)),
        "net.ipv4.tcp_moderate_rcvbuf": str(int(host.moderate_rcvbuf)),
    }
    sysctls |= list_tcp_sysctls(host)
    if host.notsent_lowat_bytes is not None:
        sysctls["net.ipv4.tcp_notsent_lowat"] = str(min(host.notsent_lowat_bytes, 2**32 - 1))
    if host.limit_output_bytes is not None:
        sysctls["net.ipv4.tcp_limit_output_bytes"] = str(min(host.limit_output_bytes, 2**31 - 1))
    devices = [int(device) for device in host.devices]  # indices of links in a scenario
    ring = host.ring_packets
    if ring is None and devices:
        ring = scenario.links[devices[0]].queue_packets
    return {
        "name": host.name,
        "node": node(host.name),
        "sysctls": sysctls,
        "devices": devices,
        "ring_packets": ring,
        "socket_bytes": host.socket_bytes,
    }


def cap_buffer(scenario: Scenario, name: str | None, size_bytes: int) -> int:
    """Return the buffer that a program at a host gets when it asks for one: at most the host's cap."""
    host = next(one for one in scenario.hosts if one.name == name)
    return min(size_bytes, host.socket_bytes)
