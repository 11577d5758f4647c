"""Worlds whose traffic comes through a real proxy: what the world is without its flows, and what programs are to do instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.scenarios.catalogue import cc_name
from netbuf_gym.scenarios.flows import Bulk, Flow
from netbuf_gym.scenarios.limits import MAX_DURATION_S
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.traffic import PoissonArrivals
from netbuf_gym.scenarios.types import Scenario

PROXIES = ("plain", "shadowsocks")


def relayed(scenario: Scenario) -> tuple[Scenario, dict[str, Any]]:
    """The world with one flow that never starts, for its way; and the clients' work, as `proxy.load` takes it.

    A target at the agent's host serves what the flows, and the arrivals, would send; clients at the other end fetch it.

    Raises:
        ConfigError: not all that is sent goes from the one host of the agent to one other host, over one path.
    """

    def refuse(field: str, value: object, valid: str) -> None:
        raise ConfigError(f"scenario {scenario.name!r}: {field} = {shown(value)}; valid with a proxy on plant 'linux': {valid}")

    if len(scenario.agent_hosts) != 1:
        refuse("hosts", len(scenario.agent_hosts), "one that an agent sets")
    host = scenario.hosts[scenario.agent_hosts[0]]
    senders = () if scenario.traffic is None else scenario.traffic.senders
    ways: list[Flow | Sender] = [*scenario.flows, *senders]
    first = ways[0]
    for one in ways:
        if one.sender_host != host.name or one.receiver_host is None:
            refuse("sender_host, receiver_host", [one.sender_host, one.receiver_host], f"{host.name!r} and another host")
        for field in ("path", "return_path", "receiver_host", "cc"):
            if getattr(one, field) != getattr(first, field):
                refuse(field, getattr(one, field), "the same of all that is sent")
        for field in ("sndbuf_bytes", "rcvbuf_bytes"):
            if getattr(one, field) is not None:
                refuse(field, getattr(one, field), "None: proxies ask for no buffers")
    for flow in scenario.flows:
        if not isinstance(flow.app, Bulk):
            refuse("flow.app", type(flow.app).__name__, "Bulk()")
    given = () if scenario.traffic is None else scenario.traffic.arrivals
    arrivals = [one for one in given if isinstance(one, PoissonArrivals) and one.stop_s is None]
    if len(given) > 1 or len(arrivals) < len(given):
        refuse("traffic.arrivals", len(given), "one PoissonArrivals without an end")
    work: dict[str, Any] = {
        "host": scenario.agent_hosts[0],
        "cc": cc_name(first.cc),
        "bulk": [{"start_s": flow.start_s} for flow in scenario.flows],
        "arrivals_per_s": arrivals[0].flows_per_s if arrivals else 0.0,
        "sizes": [list(arrivals[0].sizes.size_bytes), list(arrivals[0].sizes.cumulative)] if arrivals else [[1.0], [1.0]],
        "page": [1, 1],
        "think_s": 0.0,
    }
    asleep = Flow(
        cc=first.cc,
        path=first.path,
        return_path=first.return_path,
        sender_host=first.sender_host,
        receiver_host=first.receiver_host,
        initial_cwnd_packets=first.initial_cwnd_packets,
        start_s=MAX_DURATION_S,
    )
    return replace(scenario, flows=(asleep,), traffic=None), work
