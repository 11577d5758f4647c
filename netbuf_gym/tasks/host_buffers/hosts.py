"""Hosts of scenarios as the task sees them: their settings, and the capacity, share and base RTT of their paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from netbuf_gym.errors import ConfigError, ScenarioError, describe_scenario
from netbuf_gym.scenarios.catalogue import get_control_name
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.traffic import FlowList
from netbuf_gym.scenarios.types import DATA_BYTES, Scenario
from netbuf_gym.tasks.flows import LEAST_RTT_S, links_at
from netbuf_gym.tasks.host_buffers.actions import INITIAL_VALUES
from netbuf_gym.tasks.host_buffers.settings import CHOICES, Settings
from netbuf_gym.tasks.host_buffers.telemetry import CONTROLS
from netbuf_gym.tasks.task import outage_message
from netbuf_gym.utils.sums import sequential_sum

DEFAULT_HOST_NAME = "host"
"""Name of the host added to a scenario without hosts."""

ENDLESS_BYTES = 2**40
"""Size from which a flow lasts as long as its world."""


def ensure_hosts(scenario: Scenario) -> Scenario:
    """Return the scenario, with one host without a ring added as the sender of all flows if there is none."""
    if scenario.hosts:
        return scenario
    flows = tuple(replace(flow, sender_host=DEFAULT_HOST_NAME) for flow in scenario.flows)
    traffic = scenario.traffic
    if traffic is not None:
        traffic = replace(traffic, senders=tuple(replace(one, sender_host=DEFAULT_HOST_NAME) for one in traffic.senders))
    return replace(scenario, hosts=(Host(name=DEFAULT_HOST_NAME),), flows=flows, traffic=traffic)


def change_hosts(scenario: Scenario, which: Sequence[int], change: Callable[[Host], Host]) -> Scenario:
    """Return the scenario with some hosts changed, the same object if nothing differs; raise ConfigError for a bad value."""
    try:
        hosts = tuple(change(host) if i in which else host for i, host in enumerate(scenario.hosts))
        return scenario if hosts == tuple(scenario.hosts) else replace(scenario, hosts=hosts)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None


def apply_settings(host: Host, settings: Settings) -> Host:
    """Return the host with these settings; the ring only where it has a device."""

    def bound_sizes(old: Sequence[int], default: int, most: int) -> tuple[int, int, int]:
        return min(int(old[0]), default), default, most

    own: dict[str, Any] = {} if host.device is None else {"ring_packets": settings.ring_packets}
    return replace(
        host,
        tcp_rmem=bound_sizes(host.tcp_rmem, settings.rmem_default_bytes, settings.rmem_max_bytes),
        tcp_wmem=bound_sizes(host.tcp_wmem, settings.wmem_default_bytes, settings.wmem_max_bytes),
        socket_bytes=settings.socket_bytes,
        **own,
    )


def initial_settings(scenario: Scenario, host: Host) -> list[float]:
    """Return a host's initial settings in the order of the controls; NaN for a missing ring."""
    said = {
        "ring_packets": _ring_packets(scenario, host),
        "socket_bytes": host.socket_bytes,
        "tcp_rmem_default_bytes": host.tcp_rmem[1],
        "tcp_rmem_max_bytes": host.tcp_rmem[2],
        "tcp_wmem_default_bytes": host.tcp_wmem[1],
        "tcp_wmem_max_bytes": host.tcp_wmem[2],
        "limit_output_bytes": host.limit_output_bytes,
        "notsent_lowat_bytes": host.notsent_lowat_bytes,
        "window_clamp_bytes": None,
        "congestion_control": _chosen_control(scenario, host),
        "slow_start": None,
    }
    settings = []
    for control in CONTROLS:
        value = said[control.name]
        settings.append(INITIAL_VALUES.get(control.name, math.nan) if value is None else float(value))
    return settings


def _chosen_control(scenario: Scenario, host: Host) -> int | None:
    """Return the number in `CHOICES` of the one congestion control of what a host sends; None: others, or several."""
    names = set()
    for flow in scenario.flows:
        if flow.sender_host == host.name:
            names.add(get_control_name(flow.cc))
    for sender in () if scenario.traffic is None else scenario.traffic.senders:
        relay = sender.relay
        if relay is not None and relay.host == host.name:
            names.add(get_control_name(sender.cc if relay.cc is None else relay.cc))
        elif sender.sender_host == host.name:
            names.add(get_control_name(sender.cc))
    name = names.pop() if len(names) == 1 else None
    return CHOICES.index(name) if name in CHOICES else None


def _ring_packets(scenario: Scenario, host: Host) -> float | None:
    if not host.devices:
        return None
    if host.ring_packets is not None:
        return host.ring_packets
    return links_at(scenario, host.devices)[0].queue_packets


def find_agent_hosts(scenario: Scenario) -> list[int]:
    """Return the indices of the hosts that agents control."""
    return [i for i, host in enumerate(scenario.hosts) if host.agent]


class Way(Protocol):
    """Flow, sender or relay, by the links of its data and of its ACKs."""

    @property
    def path(self) -> Sequence[int | str]: ...

    @property
    def return_path(self) -> Sequence[int | str]: ...


def list_connections(scenario: Scenario, host: Host) -> list[tuple[Sequence[Way], int]]:
    """Return what a host carries: one entry for each lasting connection, and for each sender whose flows it sends or relays.

    Traffic that the host only receives counts where it sends nothing.

    Returns:
        for each entry: the ways whose links bound it, the last of them that of what the host sends or receives; and the number
        of its connections that last as long as the world.
    """
    sent: list[tuple[Sequence[Way], int]] = []
    received: list[tuple[Sequence[Way], int]] = []
    for flow in scenario.flows:
        if flow.sender_host == host.name:
            sent.append(([flow], 1))
        elif flow.receiver_host == host.name:
            received.append(([flow], 1))
    for number, sender in enumerate(() if scenario.traffic is None else scenario.traffic.senders):
        relay, count = sender.relay, _count_lasting(scenario, number)
        ways: list[Way] = [sender] if relay is None else [sender, relay]
        if relay is not None and relay.host == host.name:
            sent.append((ways, count))
        elif sender.sender_host == host.name:
            sent.append(([sender], count))
        elif host.name in (sender.receiver_host, relay and relay.receiver_host):
            received.append((ways, count))
    return sent or received


def _count_lasting(scenario: Scenario, sender: int) -> int:
    """Return the number of flows of a traffic sender that last as long as the world."""
    arrivals = () if scenario.traffic is None else scenario.traffic.arrivals
    lists = [one for one in arrivals if isinstance(one, FlowList)]
    return sum(int(((one.sender == sender) & (one.size_bytes >= ENDLESS_BYTES)).sum()) for one in lists)


def compute_offer(scenario: Scenario, host: Host) -> tuple[float, float, float]:
    """Return what the world offers a host: capacity and share of a connection in bit/s, base RTT in s.

    The capacity is the sum of the slowest links of the host's connections, each counted once; the share divides it evenly among
    the lasting connections; the base RTT is a mean over all connections.

    Raises:
        ConfigError: No connection of the host crosses a link of finite rate, or these links carry nothing.
    """
    slowest: dict[int, float] = {}
    rtts, lasting = [], 0
    for ways, count in list_connections(scenario, host):
        links = [int(index) for way in ways for index in way.path]
        rates = {link: scenario.links[link].mean_mbps(scenario.duration_s) for link in links}
        tightest = min(rates, key=lambda link: rates[link]) if rates else None
        if tightest is not None and math.isfinite(rates[tightest]):
            slowest[tightest] = rates[tightest] * 1e6
        size = DATA_BYTES[scenario.stack]
        there = sequential_sum(_transit_ms(link, size) for link in links_at(scenario, ways[-1].path))
        rtts.append(there + sequential_sum(_transit_ms(link, 0) for link in links_at(scenario, ways[-1].return_path)))
        lasting += count
    if not slowest:
        at = f"{describe_scenario(scenario)}: nothing limits what host {host.name!r} sends or receives"
        raise ConfigError(f"{at}, so that there is nothing to control; valid: a link with rate_mbps or a trace on its paths")
    capacity = sequential_sum(slowest.values())
    if not capacity > 0:
        raise ConfigError(outage_message(scenario))
    return capacity, capacity / max(lasting, 1), max(float(np.mean(rtts)) * 1e-3, LEAST_RTT_S)


def _transit_ms(link: Link, size_bytes: int) -> float:
    return link.least_delay_ms + link.service_ms(size_bytes)


def with_congestion_control(scenario: Scenario, which: Sequence[int], cc: Any) -> Scenario:
    """Return the scenario with another congestion control for everything that some hosts send."""
    names = {scenario.hosts[i].name for i in which}

    def replace_control(flow: Any) -> Any:
        relay = getattr(flow, "relay", None)
        if relay is not None and relay.host in names:
            flow = replace(flow, relay=replace(relay, cc=cc))
        return replace(flow, cc=cc) if flow.sender_host in names else flow

    try:
        traffic = scenario.traffic
        if traffic is not None:
            traffic = replace(traffic, senders=tuple(replace_control(one) for one in traffic.senders))
        return replace(scenario, flows=tuple(replace_control(flow) for flow in scenario.flows), traffic=traffic)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
