"""Limits in bytes that are less than a packet: such a packet is dropped whenever it comes, which is rarely meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from netbuf_gym.errors import ScenarioWarning, warn_caller
from netbuf_gym.scenarios.fields import get_indices


def warn_of_small_limits(scenario: Any) -> None:
    """Warn of each limit that lets the longest packet of a link never pass.

    Limits are a link's `queue_bytes`, the `burst_bytes` of its discipline, and `buffer_bytes` and `queue_cap` of a switch in
    bytes. The packet counts as it is on the wire: a full data packet where data cross the link, an ACK where only ACKs do.

    Args:
        scenario: a `Scenario`, whose links are indices.

    Warns:
        ScenarioWarning: One limit; names field, value and packet size.
    """
    limits = list(_list_limits(scenario))
    if not limits:
        return
    longest = _find_longest_packets(scenario)
    for field, value, ports in limits:
        packet_bytes = max((longest.get(port, 0) for port in ports), default=0)
        if value < packet_bytes:
            warn_caller(
                f"{field} = {value:g} is less than a packet of {packet_bytes} bytes, so that every such packet is dropped; "
                f"valid: {packet_bytes} or more",
                ScenarioWarning,
            )


def _list_limits(scenario: Any) -> Iterator[tuple[str, float, tuple[int, ...]]]:
    """Yield each limit in bytes: field, value, and the links whose packets it limits."""
    for i, link in enumerate(scenario.links):
        if link.queue_bytes is not None:
            yield f"links[{i}].queue_bytes", link.queue_bytes, (i,)
        burst_bytes = getattr(link.discipline, "burst_bytes", None)
        if burst_bytes is not None:
            yield f"links[{i}].discipline.burst_bytes", burst_bytes, (i,)
    for i, switch in enumerate(scenario.switches):
        if switch.in_bytes:
            ports = get_indices(switch.ports)
            yield f"switches[{i}].buffer_bytes", switch.capacity, ports
            if switch.queue_cap is not None:
                yield f"switches[{i}].queue_cap", switch.queue_cap, ports


def _find_longest_packets(scenario: Any) -> dict[int, int]:
    """Return the size of the longest packet, by the index of the link that it crosses."""
    longest: dict[int, int] = {}
    senders = scenario.traffic.senders if scenario.traffic is not None else ()
    ends: list[Any] = [*scenario.flows, *(route for flow in scenario.flows for route in flow.routes)]
    ends += [leg for sender in senders for leg in sender.legs]
    crossings = [(end.path, scenario.data_bytes) for end in ends]
    crossings += [(end.return_path, scenario.ack_bytes) for end in ends]
    crossings += [(source.path, source.longest_packet_bytes) for source in scenario.udp]
    crossings += [(probe.path, probe.bytes) for probe in scenario.probes]
    for path, packet_bytes in crossings:
        for link in get_indices(path):
            longest[link] = max(longest.get(link, 0), packet_bytes)
    return longest
