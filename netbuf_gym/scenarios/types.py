"""Scenario: a world of links, flows, switches and traffic.

All types are immutable, check their fields on construction, and convert to and from JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, describe_scenario, quote
from netbuf_gym.scenarios import scheme_catalogue
from netbuf_gym.scenarios.catalogue import (
    HYSTART_PLUS_PLUS,
    RECEIVER_CONTROLS,
    CongestionControl,
    Controls,
    check_segments,
    congestion_controls,
    find_stacks,
    get_control_name,
    parse_congestion_control,
    parse_sender_list,
    sender_controls,
)
from netbuf_gym.scenarios.fields import (
    Indices,
    boolean,
    check_fields,
    choice,
    copy_with,
    get_indices,
    integer,
    number,
    rule,
    text,
)
from netbuf_gym.scenarios.flows import Application, Bulk, Flow, OnOff, Paused, Route, Sized
from netbuf_gym.scenarios.hosts import Host, check_host_names, resolve_hosts
from netbuf_gym.scenarios.limits import (
    ACK_BYTES,
    AGENT,
    DATA_BYTES,
    MAX_COUNT,
    MAX_DELAY_MS,
    MAX_DURATION_S,
    MAX_FLOWS,
    MIN_DURATION_S,
    MSS_BYTES,
    PACES,
    SPEAKS_ECN,
    STACKS,
    TIMESTAMP_BYTES,
)
from netbuf_gym.scenarios.links import GilbertElliott, Link
from netbuf_gym.scenarios.packet_limits import warn_of_small_limits
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.scenarios.tcp_settings import HANDSHAKE_OPTIONS, TcpSettings, uses_option
from netbuf_gym.traces.types import MAX_RATE_MBPS
from netbuf_gym.utils import checks
from netbuf_gym.utils.identity_cache import IdentityCache
from netbuf_gym.utils.sums import sequential_sum

__all__ = [
    "ACK_BYTES",
    "AGENT",
    "DATA_BYTES",
    "MAX_COUNT",
    "MAX_DELAY_MS",
    "MAX_DURATION_S",
    "MAX_RATE_MBPS",
    "MSS_BYTES",
    "STACKS",
    "Application",
    "Bulk",
    "Flow",
    "GilbertElliott",
    "Link",
    "OnOff",
    "Paused",
    "Scenario",
    "Sized",
]

TYPE_CHECKING = False
if TYPE_CHECKING:  # of these, a world has few: they are imported with the first that has any
    from netbuf_gym.scenarios.disciplines import Discipline
    from netbuf_gym.scenarios.senders import Relay, Sender
    from netbuf_gym.scenarios.switches import Admission, Switch
    from netbuf_gym.scenarios.traffic import Probe, Traffic
    from netbuf_gym.scenarios.udp import DatagramSource, PacketReplay, UdpSource

    Crossing = TypeVar("Crossing", Flow, Route, Sender, Relay, Probe, UdpSource, PacketReplay, Switch)
"""Record that crosses links, or has them as ports."""


def _check_hystart(label: str, value: object) -> bool | str:
    if not isinstance(value, str):
        return checks.boolean(label, value)
    if value != HYSTART_PLUS_PLUS:
        raise ScenarioError(f"{label} = {quote(value)} is unknown; valid: true, false, {HYSTART_PLUS_PLUS!r}")
    return value


class PathFigures(NamedTuple):
    """What a flow's path offers; rates are means over the scenario, on the wire.

    Attributes:
        tightest: index of the first slowest link that the data cross.
        capacity_mbps: that link's rate.
        fair_share_mbps: see `Scenario.fair_share_mbps`.
        propagation_rtt_ms, base_rtt_ms: see `Scenario.propagation_rtt_ms` and `Scenario.base_rtt_ms`.
        mss_bytes: the flow's largest segment.
    """

    tightest: int
    capacity_mbps: float
    fair_share_mbps: float
    propagation_rtt_ms: float
    base_rtt_ms: float
    mss_bytes: int


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """World of links, flows, switches and traffic, with a duration.

    Args:
        links: At least one `Link`, names unique. Results report on the link named "bottleneck".
        flows: `Flow`s; at least one if there is neither traffic nor udp.
        duration_s: Length of the world, 1e-9 to 1e6 seconds.
        stack: "linux" (kernel TCP, the default) or "ns3" (TCP of ns-3.44, for comparison with ns-3).
        name: Label; `scenarios.get` sets the registered name.
        hystart: Whether CUBIC leaves slow start by HyStart; or "rfc9406": `cubic` and `newreno` slow down and leave it by
            HyStart++ (RFC 9406) instead, Linux stack. A flow's own parameter `hystart_plus_plus` goes before.
        pacing: Linux stack: whether senders that do not pace themselves are paced too, at 2 windows a round trip in slow
            start and 1.2 after it. Linux does so under the fq queue discipline, and for sockets that have used BBR.
        switches: Shared-buffer switches, names unique, each link a port of at most one.
        traffic: Finite flows that are opened over time; random arrivals may open at most 5 million flows in the mean.
        probes: `Probe`s.
        udp: `UdpSource`s and `PacketReplay`s: sources of unanswered datagrams, names unique.
        hosts: `Host`s where flows end, names unique; Linux stack. An end at no host has the buffer that its flow sets.
        mss_bytes: Largest segment, 100 to 9000; None: the stack's, 1448.
        min_rto_ms: Least retransmission time-out, 1 to 60000; None: the stack's, 200 (linux) or 1000 (ns3).
        max_rto_ms: Largest retransmission time-out, between window probes as well, 1000 to 120000 (tcp_rto_max_ms); None: the
            stack's, 120000 (linux) or 60000 (ns3).
        slow_start_after_idle: Linux stack: whether a window that a sender has not used for a time-out starts anew
            (tcp_slow_start_after_idle, RFC 2861). Senders of the ns3 stack keep their windows.
        window_scaling: Linux stack: whether windows are scaled (tcp_window_scaling, RFC 7323, 2); otherwise receivers advertise
            at most 65535 bytes.
        timestamps: Linux stack: whether segments carry time stamps (tcp_timestamps, RFC 7323, 3). Without them headers are 12
            bytes shorter and segments as much longer (1460 bytes), RTTs are measured of segments that were sent once (Karn),
            time-outs stay backed off until then, and no echo tells that a retransmission was needless. Receiver controls
            need them. Receivers' autotuning knows round trips all the same.
        sack: Linux stack: whether receivers acknowledge selectively (tcp_sack, RFC 2018), duplicates included (D-SACK).
            Without it three duplicate ACKs make a loss, later losses of a window are found one a round trip (NewReno, RFC
            6582), tails are not probed, and only time stamps tell that a retransmission was needless.
        delayed_ack: Largest number of segments per ACK, 1 to 1000; None: the stack's, 2.
        syn_retries: Linux stack: how often a SYN is repeated beyond the first four times, 1 to 127 (tcp_syn_retries); None:
            6, so that SYNs leave at 0, 1, 2, 3, 4, 5, 7, 11, 19, 35 and 67 s, and the connection has failed after 131 s and
            what the timer's clock adds.
        data_retries: Linux stack: after how many time-outs in a row, the first of 200 ms, a connection has failed, 1 to 255
            (tcp_retries2); None: 15, 924.6 s. So many probes of a closed window may go unanswered too.
        start_jitter_ms: Flows start later than they say by a time of their own, drawn by the world's seed from 0 to so many
            milliseconds, at most 60000; both legs over a relay by the same.

    Warns:
        ScenarioWarning: A limit in bytes that is less than a packet.

    Raises:
        ScenarioError: A field out of range, two links of one name, a path over an unknown link, a priority without a queue at
            a switch.
    """

    links: Sequence[Link]
    flows: Sequence[Flow] = ()
    duration_s: float = field(metadata=number(MIN_DURATION_S, MAX_DURATION_S))
    stack: str = field(default="linux", metadata=choice(STACKS, core="stack"))
    name: str = field(default="", metadata=text())
    hystart: bool | str = field(default=True, metadata=rule(_check_hystart))
    pacing: bool = field(default=False, metadata=boolean(core="pacing"))
    switches: Sequence[Switch] = ()
    traffic: Traffic | None = None
    probes: Sequence[Probe] = ()
    udp: Sequence[DatagramSource] = ()
    hosts: Sequence[Host] = ()
    mss_bytes: int | None = field(default=None, metadata=integer(100, 9000, core="mss"))
    min_rto_ms: float | None = field(default=None, metadata=number(1, 60_000, core="min_rto_ns"))
    max_rto_ms: float | None = field(default=None, metadata=number(1000, 120_000, core="max_rto_ns"))
    slow_start_after_idle: bool = field(default=True, metadata=boolean(core="slow_start_after_idle"))
    window_scaling: bool = field(default=True, metadata=boolean(core="window_scaling"))
    timestamps: bool = field(default=True, metadata=boolean(core="timestamps"))
    sack: bool = field(default=True, metadata=boolean(core="sack"))
    delayed_ack: int | None = field(default=None, metadata=integer(1, 1000, core="delayed_ack_packets"))
    syn_retries: int | None = field(default=None, metadata=integer(1, 127, core="syn_retries"))
    data_retries: int | None = field(default=None, metadata=integer(1, 255, core="data_retries"))
    start_jitter_ms: float = field(default=0.0, metadata=number(0, 60_000, core="start_jitter_ns"))

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "links", checks.sequence("links", self.links, "links"))
        check_fields(self)
        if self.hystart == HYSTART_PLUS_PLUS and self.stack not in find_stacks("hystart_plus_plus"):
            raise ScenarioError(f"hystart = {self.hystart!r} is not in the {self.stack} stack; valid: True, False")
        if self.pacing and not PACES[self.stack]:
            raise ScenarioError(f"pacing = True is not in the {self.stack} stack; valid: False")
        self._check_settings("", self)
        for name in ("syn_retries", "data_retries"):
            if self.stack != "linux" and (value := getattr(self, name)) is not None:
                raise ScenarioError(f"{name} = {value} is not in the {self.stack} stack; valid: None")
        index: dict[str, int] = {}
        for i, link in enumerate(self.links):
            if not isinstance(link, Link):
                raise ScenarioTypeError(f"links[{i}] = {quote(link)} is not a Link")
            if index.setdefault(link.name, i) != i:
                raise ScenarioError(
                    f"links[{i}].name = {link.name!r} is taken by links[{index[link.name]}]; valid: unique names"
                )
        put(self, "flows", self._resolve_all("flows", self.flows, Flow, index))
        if not self.flows and self.traffic is None and not self.udp:
            raise ScenarioError("flows is empty; valid: at least one flow, or a traffic, or udp")
        for i, flow in enumerate(self.flows):
            check_segments(f"flows[{i}].receiver", flow.receiver, self.mss)
        for name in ("probes", "udp", "switches"):
            put(self, name, _convert_to_tuple(name, getattr(self, name)))
        if self.traffic is not None or self.probes:
            self._resolve_traffic(index)
        if self.udp:
            self._resolve_sources(index)
        if self.switches:
            from netbuf_gym.scenarios.switches import Switch

            put(self, "switches", self._resolve_all("switches", self.switches, Switch, index))
        self._check_switches()
        ports = {port for switch in self.switches for port in get_indices(switch.ports)}
        hosts = _convert_to_tuple("hosts", self.hosts)
        put(self, "hosts", resolve_hosts(hosts, partial(self._resolve_indices, index=index), ports, self.stack))
        check_host_names("flows", self.flows, self.hosts)
        for sender in self._senders:
            check_host_names("traffic.senders", sender.legs, self.hosts)
        for i, flow in enumerate(self.flows):
            if flow.receiver is not None and not self._uses("timestamps", flow):
                ends = flow.sender_host, flow.receiver_host
                at_hosts = [
                    f"hosts[{k}]." for k, host in enumerate(self.hosts) if host.timestamps is False and host.name in ends
                ]
                where = [f"flows[{i}]."] if flow.timestamps is False else at_hosts or [""]
                raise ScenarioError(
                    f"{where[0]}timestamps = False beside flows[{i}].receiver, a control that reads them; valid: True"
                )
        for i, host in enumerate(self.hosts):
            self._check_settings(f"hosts[{i}].", host)
        warn_of_small_limits(self)

    def _resolve_traffic(self, index: dict[str, int]) -> None:
        from netbuf_gym.scenarios.senders import Sender
        from netbuf_gym.scenarios.traffic import Probe, Traffic

        if self.traffic is not None:
            if not isinstance(self.traffic, Traffic):
                raise ScenarioTypeError(f"traffic = {quote(self.traffic)} is not a Traffic")
            senders = self._resolve_all("traffic.senders", self.traffic.senders, Sender, index)
            if senders is not self.traffic.senders:
                object.__setattr__(self, "traffic", replace(self.traffic, senders=senders))
            self._check_arrivals(self.traffic)
        object.__setattr__(self, "probes", self._resolve_all("probes", self.probes, Probe, index))

    def _resolve_sources(self, index: dict[str, int]) -> None:
        from netbuf_gym.scenarios.udp import PacketReplay, UdpSource, list_source_names

        object.__setattr__(self, "udp", self._resolve_all("udp", self.udp, (UdpSource, PacketReplay), index))
        source: dict[str, int] = {}
        for i, name in enumerate(list_source_names(self.udp)):
            if source.setdefault(name, i) != i:
                raise ScenarioError(f"udp[{i}].name = {name!r} is taken by udp[{source[name]}]; valid: unique names")

    @property
    def _senders(self) -> Sequence[Sender]:
        return self.traffic.senders if self.traffic is not None else ()

    def _resolve_all(self, label: str, items: object, cls: type | tuple[type, ...], index: dict[str, int]) -> tuple[Any, ...]:
        """Return items that cross links with links as indices; the same tuple if all are indices already."""
        given = _convert_to_tuple(label, items)
        for i, item in enumerate(given):
            if not isinstance(item, cls):
                raise ScenarioTypeError(
                    f"{label}[{i}] = {quote(item)} is not a {(cls if isinstance(cls, type) else cls[0]).__name__}"
                )
        resolved = tuple(self._resolve(f"{label}[{i}]", item, index) for i, item in enumerate(given))
        return given if all(a is b for a, b in zip(given, resolved, strict=True)) else resolved

    def _resolve(self, label: str, item: Crossing, index: dict[str, int]) -> Crossing:
        """Check an item against the stack, and return it with links as indices."""
        changes: dict[str, Any] = {}
        if isinstance(item, TcpSettings):
            _check_control(self.stack, label, cast("Flow | Sender | Relay", item))
            self._check_settings(f"{label}.", item)
        own_relay: Relay | None = getattr(item, "relay", None)
        if own_relay is not None:
            relay = self._resolve(f"{label}.relay", own_relay, index)
            if relay is not own_relay:
                changes["relay"] = relay
        elif isinstance(item, Flow) and item.routes:
            routes = self._resolve_all(f"{label}.routes", item.routes, Route, index)
            if routes is not item.routes:
                changes["routes"] = routes
        for name in _list_link_fields(item):
            links = getattr(item, name)
            indices = self._resolve_indices(label, name, links, index)
            if indices is not links:
                changes[name] = indices
        return replace(item, **changes) if changes else item

    def _check_settings(self, label: str, settings: Scenario | TcpSettings) -> None:
        least, most = self.min_rto_ms, settings.max_rto_ms
        if least is not None and most is not None and least > most:
            if not label:
                raise ScenarioError(f"min_rto_ms = {least:g} exceeds max_rto_ms; valid: 1 to {most:g}")
            raise ScenarioError(f"{label}max_rto_ms = {most:g} is below min_rto_ms; valid: {least:g} to 120000")
        for name in HANDSHAKE_OPTIONS:
            if getattr(settings, name) is False and self.stack != "linux":
                raise ScenarioError(f"{label}{name} = False is not in the {self.stack} stack; valid: True")

    def _uses(self, option: str, ends: Flow | Sender) -> bool:
        return uses_option(option, ends, self.hosts, getattr(self, option))

    def _resolve_indices(self, owner: str, name: str, links: Sequence[int | str], index: dict[str, int]) -> Indices:
        """Return the links in the field `name` of `owner` as indices; the same object if they are indices already."""
        most = len(self.links) - 1
        if isinstance(links, Indices) and (not links or (min(links) >= 0 and max(links) <= most)):
            return links
        label, result = f"{owner}.{name}", []
        for link in links:
            if isinstance(link, str):
                if link not in index:
                    raise ScenarioError(f"{label} has no link {link!r}; valid: {', '.join(index)}")
                link = index[link]
            result.append(checks.integer(f"{label} link", link, 0, most))
        return Indices(result)

    def _check_arrivals(self, traffic: Traffic) -> None:
        """Raise ScenarioError if random arrivals would open more than `MAX_FLOWS` flows."""
        from netbuf_gym.scenarios.traffic import FlowList

        left = float(MAX_FLOWS)
        for i, arrivals in enumerate(traffic.arrivals):
            if isinstance(arrivals, FlowList):
                continue
            flows = arrivals.count_expected_flows(self.duration_s)
            if not flows <= left:
                name, value, grows = arrivals.get_frequency()
                if grows:
                    valid = value * left / flows
                else:
                    valid = value * flows / left if left else float("inf")  # earlier arrivals may have used up the limit
                raise ScenarioError(
                    f"traffic.arrivals[{i}].{name} = {value:g} makes {flows:.4g} flows in duration_s = {self.duration_s:g};"
                    f" valid: {valid:.4g} or {'less' if valid < value else 'more'}, for {MAX_FLOWS} flows of all arrivals"
                )
            left -= flows

    def _check_switches(self) -> None:
        owner: dict[int, str] = {}
        names = set()
        queued: dict[str, Sequence[Flow | Probe | DatagramSource]] = {
            "flows": self.flows,
            "probes": self.probes,
            "udp": self.udp,
        }
        for i, switch in enumerate(self.switches):
            if switch.name in names:
                raise ScenarioError(f"switches[{i}].name = {switch.name!r} is taken; valid: unique names")
            names.add(switch.name)
            for port in get_indices(switch.ports):
                link = self.links[port]
                at = f"switches[{i}]: port {link.name!r}"
                if port in owner:
                    raise ScenarioError(f"{at} is a port of {owner[port]!r} already; valid: a port of one switch, once")
                owner[port] = switch.name
                if not link.has_finite_rate:
                    raise ScenarioError(f"{at} has no rate; valid: rate_mbps or a trace")
                if link.discipline is not None or link.queue_packets is not None or link.queue_bytes is not None:
                    raise ScenarioError(f"{at} has a queue of its own; valid: neither queue limit nor discipline")
            for what, items in queued.items():
                for k, item in enumerate(items):
                    if item.priority >= switch.queues and _crosses(item, switch):
                        raise ScenarioError(
                            f"{what}[{k}].priority = {item.priority} is beyond the {switch.queues} queues of switch "
                            f"{switch.name!r}; valid: 0..{switch.queues - 1}"
                        )
            if self.traffic is not None and any(_crosses(leg, switch) for sender in self._senders for leg in sender.legs):
                self.traffic.check_queues(switch.queues, switch.name)
        for i, link in enumerate(self.links):
            if link.device_packets and link.discipline is None and i not in owner:
                raise ScenarioError(
                    f"links[{i}].device_packets = {link.device_packets} without a discipline or a switch; valid: 0"
                )

    @property
    def bottleneck(self) -> int:
        """Index of the link named "bottleneck", or of the slowest one on the first flow's (or sender's, or source's) path."""
        for i, link in enumerate(self.links):
            if link.name == "bottleneck":
                return i
        if not self.flows and self.traffic is None:
            return min(get_indices(self.udp[0].path), key=self._get_mean_mbps)
        return self.tightest_link(0)

    def bottleneck_of(self, flow: int) -> int:
        """Return the index of the slowest link on a flow's data path, by mean rate over the scenario; the traffic's senders are
        numbered after the flows. Among equally slow links, the scenario's `bottleneck`, or else the first."""
        rates = {i: self.links[i].mean_mbps(self.duration_s) for i in self._get_path(flow)}
        tightest = [i for i, rate in rates.items() if rate == min(rates.values())]
        return self.bottleneck if self.bottleneck in tightest else tightest[0]

    @property
    def capacity_mbps(self) -> float:
        """Mean rate of the bottleneck over the scenario, Mbit/s on the wire."""
        return self.links[self.bottleneck].mean_mbps(self.duration_s)

    def links_of(self, flow: int) -> list[Link]:
        """Return the links on a flow's data path, with its relay, in order; the traffic's senders come after the flows."""
        endpoint = self._get_endpoint(flow)
        legs = (endpoint,) if isinstance(endpoint, Flow) else endpoint.legs
        return [self.links[i] for leg in legs for i in get_indices(leg.path)]

    def tightest_link(self, flow: int) -> int:
        """Return the index of the first slowest link on a flow's data path, by mean rate over the scenario."""
        path = self._get_path(flow)
        return path[0] if len(path) == 1 else min(path, key=self._get_mean_mbps)

    def _get_mean_mbps(self, link: int) -> float:
        return self.links[link].mean_mbps(self.duration_s)

    def measure_path(self, flow: int) -> PathFigures:
        """Return what a flow's path offers, which of all its links is computed once."""
        ends, links, duration_s = self._get_endpoint(flow), self.links, self.duration_s
        there, back = get_indices(ends.path), get_indices(ends.return_path)
        rates = [links[i].mean_mbps(duration_s) for i in there]
        capacity = min(rates)
        shares = [rate / self._count_users(i) for i, rate in zip(there, rates, strict=True)]
        propagation = sequential_sum([links[i].least_delay_ms for i in (*there, *back)])
        stamped = self._uses("timestamps", ends)
        base = self._add_transmission(propagation, ends, stamped)
        return PathFigures(there[rates.index(capacity)], capacity, min(shares), propagation, base, self._get_mss(stamped))

    def fair_share_mbps(self, flow: int) -> float:
        """Return the fair share of a flow, Mbit/s: the least share along its path if each link split its mean rate evenly
        between the flows whose data cross it. Flows of the traffic do not count."""
        return min([self._get_mean_mbps(i) / self._count_users(i) for i in set(self._get_path(flow))])

    def _count_users(self, link: int) -> int:
        """Return the number of flows whose data cross a link, at least 1."""
        return max(sum([link in flow.path for flow in self.flows]), 1)

    @property
    def buffer_packets(self) -> int | None:
        """Queue limit of the bottleneck, or its switch's buffer, in full packets; None: no limit."""
        at = self.bottleneck
        for switch in self.switches:
            if at in switch.ports:
                return switch.capacity // self.data_bytes if switch.in_bytes else switch.capacity
        return self.links[at].queue_packets

    @property
    def agents(self) -> int:
        """Number of flows that agents control."""
        return sum(flow.cc == AGENT for flow in self.flows)

    @property
    def agent_receivers(self) -> tuple[int, ...]:
        """Indices of the flows whose receiver an agent steers."""
        return tuple(i for i, flow in enumerate(self.flows) if flow.receiver is not None and _is_agent_driven(flow.receiver))

    @property
    def agent_switches(self) -> tuple[int, ...]:
        """Indices of the switches whose thresholds an agent sets."""
        if not self.switches:
            return ()
        from netbuf_gym.scenarios.switches import AgentThresholds

        return tuple(i for i, switch in enumerate(self.switches) if isinstance(switch.admission, AgentThresholds))

    @property
    def agent_hosts(self) -> tuple[int, ...]:
        """Indices of the hosts whose buffers an agent sets."""
        return tuple(i for i, host in enumerate(self.hosts) if host.agent)

    @property
    def mss(self) -> int:
        """Largest segment, bytes, of connections without settings of their own."""
        return self._get_mss(self.timestamps)

    def mss_of(self, flow: int) -> int:
        """Return the largest segment of a flow, bytes; the traffic's senders are numbered after the flows."""
        return self._get_mss(self._uses("timestamps", self._get_endpoint(flow)))

    def _get_mss(self, timestamps: bool) -> int:
        if self.mss_bytes is not None:
            return self.mss_bytes
        return MSS_BYTES + (0 if timestamps else TIMESTAMP_BYTES)

    @property
    def data_bytes(self) -> int:
        """Size of a full data packet on the wire, bytes."""
        return self.mss + self.ack_bytes

    @property
    def ack_bytes(self) -> int:
        """Size of an ACK without SACK blocks on the wire, bytes: that of the headers of data, too."""
        return self._get_ack_bytes(self.timestamps)

    def _get_ack_bytes(self, timestamps: bool) -> int:
        return ACK_BYTES[self.stack] - (0 if timestamps else TIMESTAMP_BYTES)

    def _get_endpoint(self, flow: int) -> Flow | Sender:
        """Return a flow by index; indices after the flows are the traffic's senders."""
        if type(flow) is int and 0 <= flow < len(self.flows):
            return self.flows[flow]
        if not self.flows and not self._senders:
            raise ScenarioError("the world has no flows; valid: a world with a flow, or with traffic that has a sender")
        flow = checks.integer("flow", flow, 0, len(self.flows) + len(self._senders) - 1)
        return self.flows[flow] if flow < len(self.flows) else self._senders[flow - len(self.flows)]

    def _get_path(self, flow: int) -> Indices:
        return get_indices(self._get_endpoint(flow).path)

    def propagation_rtt_ms(self, flow: int = 0) -> float:
        """Return the round-trip propagation delay of a flow, ms: changing delays at their least, without jitter. The traffic's
        senders are numbered after the flows."""
        f = self._get_endpoint(flow)
        path = (*get_indices(f.path), *get_indices(f.return_path))
        return sequential_sum([self.links[i].least_delay_ms for i in path])

    def base_rtt_ms(self, flow: int = 0) -> float:
        """Return the least round-trip time of a flow, ms: propagation and transmission of one full packet and one ACK."""
        ends = self._get_endpoint(flow)
        return self._add_transmission(self.propagation_rtt_ms(flow), ends, self._uses("timestamps", ends))

    def _add_transmission(self, rtt_ms: float, ends: Flow | Sender, stamped: bool) -> float:
        """Return a round trip with the transmission of a full packet there and of an ACK back, with time stamps or without."""
        links, ack_bytes = self.links, self._get_ack_bytes(stamped)
        data_bytes = self._get_mss(stamped) + ack_bytes
        rtt_ms += sequential_sum([links[i].service_ms(data_bytes) for i in get_indices(ends.path)])
        return rtt_ms + sequential_sum([links[i].service_ms(ack_bytes) for i in get_indices(ends.return_path)])

    def ideal_s(self, sender: int, size_bytes: float, start_s: float = 0.0) -> float:
        """Return the ideal completion time of a flow of the traffic that starts at `start_s`, seconds.

        The time is the round-trip propagation delay, plus the transmission time of the flow's bytes (without headers) at the
        slowest link of its path. For a link of varying rate, transmission follows the trace from the earliest end of the
        handshake, one round trip of propagation after the start: no byte is sent earlier, so no flow is faster. With a relay,
        the delay is two round trips on both legs, from the client's SYN on, and a link's trace counts from when the first byte
        can reach it.
        """
        rtt_s = self.propagation_rtt_ms(len(self.flows) + sender) * 1e-3
        first, *relays = self._senders[sender].legs
        if not relays:
            path = get_indices(first.path)
            return rtt_s + max(self.links[i].compute_carrying_s(size_bytes, start_s + rtt_s) for i in path)
        (relay,) = relays
        ways = [get_indices(way) for way in (first.path, first.return_path, relay.path, relay.return_path)]
        delay_s = [link.least_delay_ms * 1e-3 for link in self.links]
        there, back, relay_there, relay_back = (sequential_sum(delay_s[i] for i in way) for way in ways)
        reached_s = start_s + there + 2 * back + relay_there + 2 * relay_back  # when the first byte can set out
        carrying_s = 0.0
        for i in (*ways[0], *ways[2]):
            carrying_s = max(carrying_s, self.links[i].compute_carrying_s(size_bytes, reached_s))
            reached_s += delay_s[i]
        return 2 * (there + back + relay_there + relay_back) + carrying_s

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product: capacity times the first flow's propagation RTT, in full packets on the wire."""
        return self.capacity_mbps * 1e3 * self.propagation_rtt_ms() / 8 / self.data_bytes

    def with_senders(self, senders: Controls | Iterable[Controls]) -> Scenario:
        """Return the world with other congestion controls: one for each flow and then each sender of the traffic, or one for
        all. Each is a name, a dict of `name` and parameters, or Python code (`python_control`).

        Raises:
            ScenarioError: An unknown name, or a number of names other than that of flows and senders.
        """
        n = len(self.flows)
        most = n + len(self._senders)
        listed = parse_sender_list(senders)
        names: tuple[Any, ...] = (senders,) * most if listed is None else listed
        if len(names) != most:
            raise ScenarioError(f"senders has {len(names)} names for {most} flows; valid: as many, or one name for all")
        flows = tuple(replace(f, cc=cc) for f, cc in zip(self.flows, names[:n], strict=True))
        traffic = self.traffic.with_senders(names[n:]) if self.traffic is not None else None
        return replace(self, flows=flows, traffic=traffic)

    @property
    def has_own_controls(self) -> bool:
        """Whether a congestion control is the user's own code (`OwnControl`)."""
        return any(isinstance(end.cc, OwnControl) for ends in (self.flows, self._senders) for end in ends)

    def with_agents(self, n: int | None = None) -> Scenario:
        """Return the world with its first `n` flows (None: all) controlled by agents.

        Raises:
            ScenarioError: An `n` that is not between 1 and the number of flows.
        """
        n = len(self.flows) if n is None else checks.integer("agents", n, 1, len(self.flows))
        return copy_with(self, flows=_control_flows(self.flows, n, self.stack))

    def with_scheme(self, scheme: str | dict | Admission | Discipline) -> Scenario:
        """Return the world with another buffer management scheme; see `netbuf_gym.scenarios.SCHEMES`.

        Args:
            scheme: A name; a dict of `name` and the scheme's parameters, e.g. `{"name": "dt", "alphas": [2, 0.5]}`; an
                admission rule for every switch; or a queue discipline that replaces every switch.

        Raises:
            ScenarioError: An unknown name or parameter, or a scheme that needs a switch in a world without one.
        """
        from netbuf_gym.scenarios.disciplines import Discipline
        from netbuf_gym.scenarios.switches import Admission

        if isinstance(scheme, Admission):
            return self.with_admission(lambda switch: scheme)
        if isinstance(scheme, Discipline):
            return self.with_discipline(scheme)
        return scheme_catalogue.apply_scheme(self, scheme)

    def with_admission(self, admission: Callable[[Switch], Admission]) -> Scenario:
        """Return the world with another admission rule for each switch.

        Args:
            admission: (switch) -> admission rule of the switch.

        Raises:
            ScenarioError: A world without a switch.
        """
        if not self.switches:
            raise ScenarioError(f"{describe_scenario(self)} has no switch; valid: a scenario with one, or a queue discipline")
        return replace(self, switches=tuple(replace(switch, admission=admission(switch)) for switch in self.switches))

    def with_discipline(self, discipline: Discipline) -> Scenario:
        """Return the world with one queue under a discipline at each port of its switches, whose buffers are split between
        their ports; without switches, the discipline is set at the bottleneck."""
        links = list(self.links)
        if not self.switches:
            at = self.bottleneck
            links[at] = replace(links[at], discipline=discipline)
        for switch in self.switches:
            share = max(1, switch.capacity // len(switch.ports))
            queue_bytes, queue_packets = (share, None) if switch.in_bytes else (None, share)
            for port in get_indices(switch.ports):
                links[port] = replace(links[port], queue_bytes=queue_bytes, queue_packets=queue_packets, discipline=discipline)
        return replace(self, links=tuple(links), switches=())

    def to_dict(self) -> dict:
        """Return a JSON-serialisable dict for `from_dict`."""
        from netbuf_gym.scenarios.codec import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, data: dict) -> Scenario:
        """Build a scenario from a dict that `to_dict` returned.

        Raises:
            ScenarioError: A field that is missing, unknown or out of range.
        """
        from netbuf_gym.scenarios.codec import from_dict

        return from_dict(cls, data)


def _check_control(stack: str, label: str, item: Flow | Sender | Relay) -> None:
    valid = congestion_controls(stack) if isinstance(item, Flow) else sender_controls(stack)
    if item.cc is not None and not isinstance(item.cc, OwnControl):
        if (name := get_control_name(item.cc)) not in valid:
            raise ScenarioError(f"{label}.cc = {name!r} is not in the {stack} stack; valid: {', '.join(valid)}")
        if isinstance(item.cc, CongestionControl):
            parse_congestion_control(f"{label}.cc", item.cc, valid, stack)
    if item.ecn and not SPEAKS_ECN[stack]:
        raise ScenarioError(f"{label}.ecn = True is not in the {stack} stack; valid: False")


@IdentityCache
def _control_flows(flows: tuple[Flow, ...], n: int, stack: str) -> tuple[Flow, ...]:
    """Return flows with agents in place of the first `n`, one tuple for all the worlds that have these flows."""
    controlled = tuple([copy_with(flow, cc=AGENT) for flow in flows[:n]])
    for i, flow in enumerate(controlled):
        _check_control(stack, f"flows[{i}]", flow)
    return (*controlled, *flows[n:])


def _is_agent_driven(receiver: object) -> bool:
    return RECEIVER_CONTROLS[get_control_name(receiver)].agent


def _list_link_fields(item: object) -> list[str]:
    """Return the fields of a record that hold links."""
    return [name for name in ("path", "return_path", "ports") if hasattr(item, name)]


def _crosses(item: Flow | Sender | Relay | Probe | DatagramSource, switch: Switch) -> bool:
    """Return whether packets of the item, data or ACKs, pass a port of the switch."""
    return any(not set(getattr(item, name)).isdisjoint(switch.ports) for name in _list_link_fields(item))


def _convert_to_tuple(field: str, value: object) -> tuple:
    """Convert an iterable to a tuple, possibly empty.

    Raises:
        ScenarioTypeError: A string, or no iterable.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ScenarioTypeError(f"{field} = {quote(value)} is not a list")
    return value if type(value) is tuple else tuple(value)
