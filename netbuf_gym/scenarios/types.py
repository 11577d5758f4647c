"""What a world is made of: links, flows with their applications, and the scenario that holds them.

All types are immutable, check their fields when they are made, and go to and from JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from netbuf_gym import checks
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.traces.types import MAX_RATE_MBPS, DeliveryTrace, RateTrace, Trace

if TYPE_CHECKING:
    from netbuf_gym import _core

STACKS = ("linux", "ns3")
AGENT = "agent"
CONGESTION_CONTROLS = ("newreno", "cubic", "bbr", "vegas", "westwood")
"""The schemes of both stacks; the ns3 stack has "linuxreno" too, and "agent" is the environment's own window."""

MSS_BYTES = 1448
DATA_BYTES = {"linux": 1500, "ns3": 1502}
"""A full data packet on the wire: IP without a link header, and with the two bytes of PPP."""
ACK_BYTES = {"linux": 52, "ns3": 54}

MAX_DELAY_MS = 100_000.0
MAX_DURATION_S = 1e6
MAX_COUNT = 2**40


def congestion_controls(stack: str) -> tuple[str, ...]:
    """The names that `Flow.cc` may have in a stack."""
    return (*CONGESTION_CONTROLS, *(("linuxreno",) if stack == "ns3" else ()), AGENT)


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """Bursty loss: a two-state chain that moves with each packet, and a loss probability in each state.

    Args:
        p_good_to_bad, p_bad_to_good: Transition probabilities a packet, 0 to 1.
        loss_good, loss_bad: Probability that a packet is lost, 0 to 1.
    """

    p_good_to_bad: float
    p_bad_to_good: float
    loss_good: float = 0.0
    loss_bad: float = 1.0

    def __post_init__(self):
        for field in ("p_good_to_bad", "p_bad_to_good", "loss_good", "loss_bad"):
            object.__setattr__(self, field, checks.number(f"gilbert_elliott.{field}", getattr(self, field), 0, 1))

    @property
    def mean_loss(self) -> float:
        """The long-run share of packets lost."""
        total = self.p_good_to_bad + self.p_bad_to_good
        bad = self.p_good_to_bad / total if total else 0.0
        return bad * self.loss_bad + (1 - bad) * self.loss_good


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Sends for as long as the flow lives."""


@dataclass(frozen=True, kw_only=True)
class Sized:
    """Sends `size_bytes` (1 to 2**40) and is done."""

    size_bytes: int

    def __post_init__(self):
        object.__setattr__(self, "size_bytes", checks.integer("size_bytes", self.size_bytes, 1, MAX_COUNT))


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Sends during on periods and rests during off periods, on first.

    Args:
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds; their mean when `random`.
        rate_mbps: While on, above 0 to 1e6 Mbit/s; None: as fast as TCP takes it.
        random: Exponentially distributed periods instead of fixed ones.
    """

    on_s: float
    off_s: float
    rate_mbps: float | None = None
    random: bool = False

    def __post_init__(self):
        for field in ("on_s", "off_s"):
            object.__setattr__(self, field, checks.number(field, getattr(self, field), 1e-6, MAX_DURATION_S))
        if self.rate_mbps is not None:
            rate = checks.number("rate_mbps", self.rate_mbps, 0, MAX_RATE_MBPS, low_open=True)
            object.__setattr__(self, "rate_mbps", rate)
        object.__setattr__(self, "random", checks.boolean("random", self.random))


Application = Bulk | Sized | OnOff


@dataclass(frozen=True, kw_only=True)
class Link:
    """A drop-tail queue, transmission, random loss, then propagation delay.

    Args:
        name: Unique in its scenario.
        rate_mbps: Above 0 to 1e6 Mbit/s; None: infinitely fast, or given by `trace`.
        delay_ms: Propagation, 0 to 1e5 ms.
        queue_packets, queue_bytes: The queue's limit, 1 to 2**40; None: no limit. The packet in service does not count.
        loss: Probability that a packet is lost after its transmission, 0 to below 1.
        gilbert_elliott: Bursty loss instead of `loss`.
        loss_on_acks: Random loss hits ACKs too, not data packets only.
        trace: A `RateTrace` or `DeliveryTrace` instead of `rate_mbps`.
    """

    name: str
    rate_mbps: float | None = None
    delay_ms: float = 0.0
    queue_packets: int | None = None
    queue_bytes: int | None = None
    loss: float = 0.0
    gilbert_elliott: GilbertElliott | None = None
    loss_on_acks: bool = False
    trace: Trace | None = None

    def __post_init__(self):
        put = object.__setattr__
        if not checks.text("link.name", self.name):
            raise ScenarioError("link.name is empty; valid: a name")
        at = f"link {self.name!r}: "
        if self.rate_mbps is not None:
            put(self, "rate_mbps", checks.number(f"{at}rate_mbps", self.rate_mbps, 0, MAX_RATE_MBPS, low_open=True))
        put(self, "delay_ms", checks.number(f"{at}delay_ms", self.delay_ms, 0, MAX_DELAY_MS))
        for field in ("queue_packets", "queue_bytes"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(at + field, getattr(self, field), 1, MAX_COUNT))
        put(self, "loss", checks.number(f"{at}loss", self.loss, 0, 1))
        if self.loss == 1:
            raise ScenarioError(f"{at}loss = 1 lets nothing pass; valid: 0 to below 1")
        put(self, "loss_on_acks", checks.boolean(f"{at}loss_on_acks", self.loss_on_acks))
        if self.gilbert_elliott is not None:
            if not isinstance(self.gilbert_elliott, GilbertElliott):
                raise ScenarioTypeError(f"{at}gilbert_elliott = {shown(self.gilbert_elliott)} is not a GilbertElliott")
            if self.loss:
                raise ScenarioError(f"{at}loss = {self.loss:g} beside gilbert_elliott; valid: one of them")
        if self.trace is not None:
            if not isinstance(self.trace, (RateTrace, DeliveryTrace)):
                raise ScenarioTypeError(f"{at}trace = {shown(self.trace)} is not a RateTrace or DeliveryTrace")
            if self.rate_mbps is not None:
                raise ScenarioError(f"{at}rate_mbps = {self.rate_mbps:g} beside a trace; valid: one of them")

    @property
    def finite(self) -> bool:
        """Whether packets take time to pass (there can be a queue)."""
        return self.rate_mbps is not None or self.trace is not None

    def mean_mbps(self, duration_s: float | None = None) -> float:
        """Mean capacity over `duration_s` seconds (a trace's own length when None); infinity when unlimited."""
        if self.trace is not None:
            return self.trace.mean_mbps(duration_s)
        return self.rate_mbps if self.rate_mbps is not None else float("inf")

    def service_ms(self, wire_bytes: int) -> float:
        """The least time that a packet of `wire_bytes` spends in transmission, ms (0 on a delivery trace)."""
        if isinstance(self.trace, DeliveryTrace):
            return 0.0
        rate = self.trace.peak_mbps if self.trace is not None else self.rate_mbps
        return wire_bytes * 8e-3 / rate if rate is not None else 0.0


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A TCP connection with its sender, application and path.

    Args:
        cc: Congestion control; "agent": an environment sets the window.
        path, return_path: The links that data and ACKs take, as indices into `Scenario.links` or link names.
        start_s: 0 to 1e6 seconds.
        stop_s: After `start_s`, at most 1e6; None: never.
        app: `Bulk()`, `Sized(...)` or `OnOff(...)`.
        send_buffer_bytes, receive_buffer_bytes: 4096 to 2**40; None: never limits.
        initial_cwnd_packets: 1 to 1000.
        name: For people.
    """

    cc: str = "cubic"
    path: tuple[int | str, ...]
    return_path: tuple[int | str, ...]
    start_s: float = 0.0
    stop_s: float | None = None
    app: Application = Bulk()
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    initial_cwnd_packets: int = 10
    name: str = ""

    def __post_init__(self):
        put = object.__setattr__
        checks.choice("flow.cc", self.cc, congestion_controls("ns3"))
        put(self, "path", checks.sequence("flow.path", self.path, "links"))
        put(self, "return_path", checks.sequence("flow.return_path", self.return_path, "links"))
        put(self, "start_s", checks.number("flow.start_s", self.start_s, 0, MAX_DURATION_S))
        if self.stop_s is not None:
            put(self, "stop_s", checks.number("flow.stop_s", self.stop_s, 0, MAX_DURATION_S, low_open=True))
            if self.stop_s <= self.start_s:
                raise ScenarioError(f"flow.stop_s = {self.stop_s:g} is not after start_s = {self.start_s:g}")
        if not isinstance(self.app, (Bulk, Sized, OnOff)):
            raise ScenarioTypeError(f"flow.app = {shown(self.app)}; valid: Bulk(), Sized(...) or OnOff(...)")
        for field in ("send_buffer_bytes", "receive_buffer_bytes"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(f"flow.{field}", getattr(self, field), 4096, MAX_COUNT))
        cwnd = checks.integer("flow.initial_cwnd_packets", self.initial_cwnd_packets, 1, 1000)
        put(self, "initial_cwnd_packets", cwnd)
        checks.text("flow.name", self.name)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A world: links, flows over them, and for how long.

    Args:
        links: At least one `Link`, names unique. The one named "bottleneck" is the one that results speak of.
        flows: At least one `Flow`.
        duration_s: Above 0 to 1e6 seconds.
        stack: "linux" (kernel TCP, the default) or "ns3" (ns-3.44's TCP, to compare with it).
        name: For people; `scenarios.get` sets the name it was called with.
        hystart: Whether CUBIC leaves slow start by HyStart.
        pacing: Linux stack: whether senders that do not pace themselves are paced too, at 2 windows a round trip in slow
            start and 1.2 after it. Linux does so under the fq queue discipline, and for sockets that were once BBR's.

    Raises:
        ScenarioError: A field out of range, two links of one name, a path over a link that is not there.
    """

    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    duration_s: float
    stack: str = "linux"
    name: str = ""
    hystart: bool = True
    pacing: bool = False

    def __post_init__(self):
        put = object.__setattr__
        put(self, "links", checks.sequence("links", self.links, "links"))
        put(self, "flows", checks.sequence("flows", self.flows, "flows"))
        put(self, "duration_s", checks.number("duration_s", self.duration_s, 0, MAX_DURATION_S, low_open=True))
        checks.choice("stack", self.stack, STACKS)
        checks.text("name", self.name)
        put(self, "hystart", checks.boolean("hystart", self.hystart))
        put(self, "pacing", checks.boolean("pacing", self.pacing))
        if self.pacing and self.stack != "linux":
            raise ScenarioError(f"pacing = True is not in the {self.stack} stack; valid: False")
        index: dict[str, int] = {}
        for i, link in enumerate(self.links):
            if not isinstance(link, Link):
                raise ScenarioTypeError(f"links[{i}] = {shown(link)} is not a Link")
            if index.setdefault(link.name, i) != i:
                raise ScenarioError(
                    f"links[{i}].name = {link.name!r} is taken by links[{index[link.name]}]; valid: unique names"
                )
        valid = congestion_controls(self.stack)
        flows = []
        for i, flow in enumerate(self.flows):
            if not isinstance(flow, Flow):
                raise ScenarioTypeError(f"flows[{i}] = {shown(flow)} is not a Flow")
            if flow.cc not in valid:
                raise ScenarioError(f"flows[{i}].cc = {flow.cc!r} is not in the {self.stack} stack; valid: {', '.join(valid)}")
            path = self._indices(f"flows[{i}].path", flow.path, index)
            back = self._indices(f"flows[{i}].return_path", flow.return_path, index)
            flows.append(flow if (path, back) == (flow.path, flow.return_path) else replace(flow, path=path, return_path=back))
        put(self, "flows", tuple(flows))

    def _indices(self, field: str, path: tuple, index: dict[str, int]) -> tuple[int, ...]:
        result = []
        for link in path:
            if isinstance(link, str):
                if link not in index:
                    raise ScenarioError(f"{field} has no link {link!r}; valid: {', '.join(index)}")
                link = index[link]
            result.append(checks.integer(f"{field} link", link, 0, len(self.links) - 1))
        return tuple(result)

    @property
    def bottleneck(self) -> int:
        """Index of the link named "bottleneck", or of the slowest one on the first flow's path."""
        for i, link in enumerate(self.links):
            if link.name == "bottleneck":
                return i
        return min(self.flows[0].path, key=lambda i: self.links[i].mean_mbps(self.duration_s))

    @property
    def capacity_mbps(self) -> float:
        """The bottleneck's mean rate over the scenario, Mbit/s on the wire."""
        return self.links[self.bottleneck].mean_mbps(self.duration_s)

    @property
    def buffer_packets(self) -> int | None:
        """The bottleneck's queue limit in packets; None: no limit."""
        return self.links[self.bottleneck].queue_packets

    @property
    def agents(self) -> int:
        """How many flows an agent controls."""
        return sum(flow.cc == AGENT for flow in self.flows)

    def propagation_rtt_ms(self, flow: int = 0) -> float:
        """The delays of a flow's links there and back, ms."""
        f = self.flows[checks.integer("flow", flow, 0, len(self.flows) - 1)]
        return sum(self.links[i].delay_ms for i in (*f.path, *f.return_path))

    def base_rtt_ms(self, flow: int = 0) -> float:
        """The least round-trip time of a flow, ms: propagation and transmission of one full packet and one ACK."""
        rtt = self.propagation_rtt_ms(flow)
        f = self.flows[flow]
        rtt += sum(self.links[i].service_ms(DATA_BYTES[self.stack]) for i in f.path)
        return rtt + sum(self.links[i].service_ms(ACK_BYTES[self.stack]) for i in f.return_path)

    @property
    def bdp_packets(self) -> float:
        """Capacity times the first flow's propagation RTT, in full packets on the wire."""
        return self.capacity_mbps * 1e3 * self.propagation_rtt_ms() / 8 / DATA_BYTES[self.stack]

    def with_senders(self, senders: str | Iterable[str]) -> Scenario:
        """The same world with other congestion controls: one for each flow, or one name for all of them.

        Raises:
            ScenarioError: An unknown name, or not as many names as flows.
        """
        names = (senders,) * len(self.flows) if isinstance(senders, str) else checks.sequence("senders", senders, "senders")
        if len(names) != len(self.flows):
            raise ScenarioError(
                f"senders has {len(names)} names for {len(self.flows)} flows; valid: as many, or one name for all"
            )
        return replace(self, flows=tuple(replace(f, cc=cc) for f, cc in zip(self.flows, names, strict=True)))

    def with_agents(self, n: int | None = None) -> Scenario:
        """The same world with its first `n` flows (all of them when None) controlled by agents.

        Raises:
            ScenarioError: `n` is not between 1 and the number of flows.
        """
        n = len(self.flows) if n is None else checks.integer("agents", n, 1, len(self.flows))
        return replace(self, flows=tuple(replace(f, cc=AGENT) if i < n else f for i, f in enumerate(self.flows)))

    def to_core(self) -> _core.WorldConfig:
        """The native core's form of this scenario: integer nanoseconds, bit/s, bytes."""
        from netbuf_gym.scenarios.native import world_config

        return world_config(self)

    def to_dict(self) -> dict:
        """A JSON-able form that `from_dict` reads back."""
        from netbuf_gym.scenarios.codec import to_dict

        return to_dict(self)

    @staticmethod
    def from_dict(data: dict) -> Scenario:
        """Makes a scenario from what `to_dict` gave.

        Raises:
            ScenarioError: A field that is missing, unknown or out of range.
        """
        from netbuf_gym.scenarios.codec import from_dict

        return from_dict(data)
