"""Worlds whose traffic comes through a real proxy: the world without its flows, and the work of the programs in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from netbuf_gym.errors import ConfigError, describe_scenario, quote
from netbuf_gym.scenarios.catalogue import get_control_name
from netbuf_gym.scenarios.flows import Bulk, Flow
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DURATION_S
from netbuf_gym.scenarios.senders import Relay, Sender
from netbuf_gym.scenarios.sizes import SizeDistribution
from netbuf_gym.scenarios.traffic import FlowList, PoissonArrivals
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real, check_sequence

PROXIES = ("plain", "shadowsocks")
MOST_OBJECTS = 1000


@dataclass(frozen=True)
class Proxy:
    """Proxy that a host's traffic goes through.

    Attributes:
        name: one of `PROXIES`.
        page: (fewest, most) objects that a client fetches over one connection, one after the other, drawn uniformly, 1 to
            1000. As many objects arrive in the mean as the scenario says.
        think_s: mean of the exponential pause between two objects, 0 to 1e6.
    """

    name: str
    page: tuple[int, int] = (1, 1)
    think_s: float = 0.0

    @staticmethod
    def parse(value: Any) -> Proxy:
        """Create a proxy from a name, or a mapping of `name` and the other attributes.

        Raises:
            ConfigError: something else, or a value out of range.
        """
        if not isinstance(value, Mapping):
            return Proxy(check_choice("proxy", value, PROXIES))
        unknown = set(value) - {"name", "page", "think_s"}
        if unknown or "name" not in value:
            raise ConfigError(f"proxy = {quote(dict(value))}; valid: name, and optionally page and think_s")
        page = check_sequence("proxy.page", value.get("page", (1, 1)), "numbers of objects")
        if len(page) != 2:
            raise ConfigError(f"proxy.page = {quote(list(page))}; valid: two numbers, the fewest objects and the most")
        fewest = check_integer("proxy.page[0]", page[0], 1, MOST_OBJECTS)
        most = check_integer("proxy.page[1]", page[1], fewest, MOST_OBJECTS)
        think_s = check_real("proxy.think_s", value.get("think_s", 0.0), 0, MAX_DURATION_S)
        return Proxy(check_choice("proxy.name", value["name"], PROXIES), (fewest, most), think_s)


def split_proxy_work(scenario: Scenario, proxy: Proxy) -> tuple[Scenario, dict[str, Any]]:
    """Return the world with one flow that never starts, for its path, and the clients' work, as `proxy.load` takes it.

    A target at the agent's host serves what the flows, and the arrivals, would send, and what the scenario's own relay at this
    host would get from elsewhere; clients at the other end fetch it.

    Raises:
        ConfigError: not all that is sent goes from the one host of the agent to one other host, over one path.
    """

    def refuse(field: str, value: object, valid: str) -> None:
        raise ConfigError(
            f"{describe_scenario(scenario)}: {field} = {quote(value)}; valid with a proxy on plant 'linux': {valid}"
        )

    if len(scenario.agent_hosts) != 1:
        refuse("hosts", len(scenario.agent_hosts), "one that an agent sets")
    host = scenario.hosts[scenario.agent_hosts[0]]
    senders = () if scenario.traffic is None else scenario.traffic.senders
    ways: list[Flow | Sender | Relay] = [*scenario.flows, *(_leaving_leg(sender, host.name) for sender in senders)]
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
    points = [one.sizes for one in arrivals if isinstance(one.sizes, SizeDistribution)]
    lists = [one for one in given if isinstance(one, FlowList) and (one.size_bytes >= MAX_COUNT).all()]
    if len(arrivals) > 1 or len(points) + len(lists) < len(given):
        valid = f"one PoissonArrivals of a SizeDistribution without an end, and lists of flows without one ({MAX_COUNT} bytes)"
        refuse("traffic.arrivals", [one.kind for one in given], valid)
    starts = [flow.start_s for flow in scenario.flows] + [float(start_s) for one in lists for start_s in one.start_s]
    work: dict[str, Any] = {
        "host": scenario.agent_hosts[0],
        "proxy": proxy.name,
        "cc": get_control_name(cast(Any, first.cc)),
        "bulk": [{"start_s": start_s} for start_s in starts],
        "arrivals_per_s": arrivals[0].flows_per_s if arrivals else 0.0,
        "sizes": [list(points[0].size_bytes), list(points[0].cumulative)] if points else [[1.0], [1.0]],
        "page": list(proxy.page),
        "think_s": proxy.think_s,
    }
    asleep = Flow(
        cc=cast(Any, first.cc),
        path=first.path,
        return_path=first.return_path,
        sender_host=first.sender_host,
        receiver_host=first.receiver_host,
        initial_cwnd_packets=first.initial_cwnd_packets,
        start_s=MAX_DURATION_S,
    )
    return replace(scenario, flows=(asleep,), traffic=None), work


def _leaving_leg(sender: Sender, host: str) -> Sender | Relay:
    """Return a sender's leg that leaves the host: its own, or that of its relay at this host, which the proxy replaces."""
    relay = sender.relay
    if relay is None or relay.host != host:
        return sender
    return relay if relay.cc is not None else replace(relay, cc=sender.cc)
