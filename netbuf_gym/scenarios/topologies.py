"""Ready-made topologies: the dumbbell, a chain of hops, the parking lot, and a last hop of varying rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from netbuf_gym.errors import ScenarioError, quote
from netbuf_gym.scenarios.catalogue import Controls, parse_senders
from netbuf_gym.scenarios.fields import copy_with
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
from netbuf_gym.scenarios.limits import HOST_DEFAULTS
from netbuf_gym.scenarios.types import (
    MAX_COUNT,
    MAX_DELAY_MS,
    MAX_DURATION_S,
    MAX_RATE_MBPS,
    STACKS,
    Application,
    Bulk,
    Flow,
    GilbertElliott,
    Link,
    Scenario,
)
from netbuf_gym.traces.types import MIN_RATE_MBPS, Trace
from netbuf_gym.utils import checks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.scenarios.disciplines import Discipline
    from netbuf_gym.scenarios.media import Medium

Senders = Controls | Iterable[Controls]
"""Congestion controls, as names or dicts of `name` and parameters; a single one stands for one sender."""


class _OverridableDefault(float):
    """Default value that another argument overrides; a separate object distinguishes it from the same number passed in."""


_RATE_MBPS = _OverridableDefault(10.0)


def dumbbell(
    *,
    rate_mbps: float | None = _RATE_MBPS,
    rtt_ms: float | Sequence[float] = 48.0,
    buffer_packets: int | None = 150,
    loss: float | LossSchedule = 0.0,
    senders: Senders = ("cubic",),
    duration_s: float = 100.0,
    stagger_s: float = 0.1,
    start_s: Sequence[float] | None = None,
    stack: str = "linux",
    access_mbps: float | None = None,
    access_delay_ms: float | None = None,
    trace: Trace | None = None,
    gilbert_elliott: GilbertElliott | None = None,
    app: Application | None = None,
    hystart: bool | str = True,
    pacing: bool = False,
    reverse: Senders = (),
    return_rate_mbps: float | None = None,
    return_buffer_packets: int | None = None,
    return_trace: Trace | Sequence[Trace | None] | None = None,
    return_delay_ms: float | None = None,
    return_discipline: Discipline | str | dict | None = None,
    delays: DelaySchedule | None = None,
    jitter: Jitter | None = None,
    on_outage: str = "hold",
    discipline: Discipline | str | dict | None = None,
    ecn: bool = False,
    duplicate: float = 0.0,
    corrupt: float = 0.0,
    medium: Medium | str | dict | None = None,
    start_jitter_ms: float = 0.0,
    name: str = "",
) -> Scenario:
    """Build a world of senders that share one bottleneck.

    In the linux stack the forward path is one link, "bottleneck", with half of the propagation RTT, and the return path,
    "return", a pure delay of the other half. With access links, which the ns3 stack always has, each flow has its own at both
    ends and in both directions; `rtt_ms` includes their delays. The ns3 stack's return path has the bottleneck's rate and no
    limit. Senders in `reverse` send over the return path, which then is a drop-tail queue of finite rate shared by their data
    and the ACKs of the others; their own ACKs share the bottleneck.

    With a list of `rtt_ms`, the links that all share have the shortest of the round-trip times, and the rest of a flow's own
    is the delay of its links "sender-i" and "sender-back-i", half of it each way. With a list of `return_trace`, flow i has a
    return path "return-i" of its own.

    Args:
        rate_mbps: Rate of the bottleneck, 1e-6 to 1e6 Mbit/s; None: infinitely fast, or given by `trace`. Default 10 without
            a `trace`.
        rtt_ms: Round-trip propagation delay, 0 to 1e5 ms, at least four access delays; or a list, one for each flow, those in
            `reverse` included.
        buffer_packets: Queue limit of the bottleneck, at least 1; None: no limit.
        loss: Random loss of data packets after the bottleneck, 0 to below 1, or a `LossSchedule`.
        senders: One congestion control for each flow, as in `Flow`.
        duration_s: Length of the world, 1e-9 to 1e6 seconds.
        stagger_s: Time between flow starts: flow i starts at i * stagger_s.
        start_s: Start of each flow, those in `reverse` included, 0 to 1e6 s, instead of `stagger_s`; None: as that says.
        stack: "linux" or "ns3".
        access_mbps: Rate of the access links; None: infinitely fast in the linux stack, 1000 in the ns3 stack.
        access_delay_ms: Delay of each access link; None: 0 in the linux stack, 1 in the ns3 stack.
        trace: Varying rate of the bottleneck instead of `rate_mbps`.
        gilbert_elliott: Bursty loss instead of `loss`.
        app: Application of every sender; None: `Bulk()`.
        hystart: Whether CUBIC leaves slow start by HyStart, or "rfc9406", as in `Scenario`.
        pacing: Linux stack: whether senders that do not pace themselves are paced too; see `Scenario`.
        reverse: Senders in the reverse direction, numbered after `senders`.
        return_rate_mbps: Rate of the return path, 1e-6 to 1e6 Mbit/s; None: the bottleneck's (a trace's highest) if the stack
            is ns3 or there are reverse senders or a limit, else infinitely fast.
        return_buffer_packets: Queue limit of the return path, at least 1; None: the bottleneck's if there are reverse senders,
            else no limit.
        return_trace: Varying rate of the return path instead of `return_rate_mbps`; or a list of such traces, one a flow,
            each for a return path of its own (None: infinitely fast), without `reverse`.
        return_delay_ms: Propagation delay of the return path, 0 to `rtt_ms` (the shortest, without access delays), the rest of
            which is the bottleneck's; None: half of it.
        return_discipline: Queue discipline of the return path, as in `Link`: `"ack_filter"`, for example.
        delays: Changing propagation delay of the bottleneck, instead of its part of `rtt_ms`.
        jitter: `Jitter` at the bottleneck.
        on_outage: Treatment of the bottleneck's queue during outages of `trace`, as in `Link`.
        discipline: Queue discipline of the bottleneck, as in `Link`.
        ecn: Whether the flows use ECN, as in `Flow`.
        duplicate, corrupt: Shares of packets that the bottleneck duplicates or damages, as in `Link`.
        medium: `Wifi`, `Cellular`, or a name or a dict, as in `Link`, instead of `rate_mbps`: the bottleneck is a downlink of
            it and the return path an uplink, so that ACKs take their turns, or their grants, too.
        start_jitter_ms: Largest delay of a flow's start, drawn by the seed, as in `Scenario`.
        name: Name of the scenario.

    Raises:
        ScenarioError: A value out of range.
    """
    checks.choice("stack", stack, STACKS)
    if rate_mbps is _RATE_MBPS:
        rate_mbps = float(_RATE_MBPS) if trace is None and medium is None else None
    buffer_packets = check_buffer_limit(buffer_packets)
    return_buffer_packets = check_buffer_limit(return_buffer_packets, "return_buffer_packets")
    senders = parse_senders(senders)
    backward = () if isinstance(reverse, (tuple, list)) and not reverse else parse_senders(reverse, "reverse")
    stagger_s = checks.number("stagger_s", stagger_s, 0, MAX_DURATION_S)
    count = len(senders) + len(backward)
    if start_s is None:
        starts_s = [i * stagger_s for i in range(count)]
    else:
        starts_s = _check_each("start_s", start_s, count, MAX_DURATION_S)
    if isinstance(rtt_ms, (str, bytes)) or not isinstance(rtt_ms, Iterable):
        rtts_ms = [checks.number("rtt_ms", rtt_ms, 0, MAX_DELAY_MS)] * count
    else:
        rtts_ms = _check_each("rtt_ms", rtt_ms, count, MAX_DELAY_MS)
    shortest_ms = min(rtts_ms)
    hosts = HOST_DEFAULTS[stack]
    if access_mbps is None:
        access_mbps = hosts.access_mbps
    if access_delay_ms is None:
        access_delay_ms = hosts.access_delay_ms
    access_delay_ms = checks.number("access_delay_ms", access_delay_ms, 0, MAX_DELAY_MS)
    if access_mbps is not None:
        access_mbps = checks.number("access_mbps", access_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
    has_access = access_mbps is not None or access_delay_ms > 0
    one_way_ms = _subtract_access_delays(shortest_ms, access_delay_ms)
    if return_delay_ms is None:
        return_delay_ms = one_way_ms
    return_delay_ms = checks.number("return_delay_ms", return_delay_ms, 0, 2 * one_way_ms)
    forward = Link(
        name="bottleneck",
        rate_mbps=rate_mbps,
        delay_ms=2 * one_way_ms - return_delay_ms if delays is None else delays,
        queue_packets=buffer_packets,
        loss=loss,
        gilbert_elliott=gilbert_elliott,
        trace=trace,
        jitter=jitter,
        on_outage=on_outage,
        discipline=discipline,
        duplicate=duplicate,
        corrupt=corrupt,
        medium=medium,
    )
    if medium is not None:
        for field, given in (("return_rate_mbps", return_rate_mbps), ("return_trace", return_trace)):
            if given is not None:
                raise ScenarioError(f"{field} = {quote(given)} beside medium, which has the return path too; valid: None")
    if return_trace is not None and return_rate_mbps is not None:
        raise ScenarioError(f"return_rate_mbps = {return_rate_mbps:g} beside return_trace; valid: one of them")
    own_traces: tuple[Trace | None, ...] | None = None
    if isinstance(return_trace, Iterable):
        own_traces = checks.sequence("return_trace", return_trace, "traces")
        if len(own_traces) != count:
            raise ScenarioError(f"return_trace has {len(own_traces)} traces for {count} flows; valid: as many, or one trace")
        if backward:
            raise ScenarioError("return_trace is a list beside reverse, whose data share one return path; valid: one trace")
    elif (
        medium is None
        and return_rate_mbps is None
        and return_trace is None
        and (hosts.rate_back or backward or return_buffer_packets is not None)
    ):
        return_rate_mbps = choose_return_mbps(rate_mbps, trace)
    if return_buffer_packets is None and backward:
        return_buffer_packets = buffer_packets
    back: dict[str, Any] = {
        "delay_ms": return_delay_ms,
        "queue_packets": return_buffer_packets,
        "discipline": return_discipline,
    }
    if own_traces is None:
        shared: Any = return_trace
        if medium is not None:
            back |= {"medium": medium, "uplink": True}
        returns = [Link(name="return", rate_mbps=return_rate_mbps, trace=shared, **back)]
    else:
        returns = [Link(name=f"return-{i}", trace=own, **back) for i, own in enumerate(own_traces)]
    links, flows = [forward, *returns], []
    for i, cc in enumerate((*senders, *backward)):
        behind = 1 if own_traces is None else 1 + i
        ahead, behind = (0, behind) if i < len(senders) else (behind, 0)
        extra_ms = (rtts_ms[i] - shortest_ms) / 2
        path: tuple[int, ...] = (ahead,)
        return_path: tuple[int, ...] = (behind,)
        first = len(links)
        if has_access:
            links += _make_access_links(i, access_mbps, access_delay_ms, extra_ms)
            path, return_path = (first, ahead, first + 1), (first + 2, behind, first + 3)
        elif extra_ms > 0:
            links += [Link(name=f"{end}-{i}", delay_ms=extra_ms) for end in ("sender", "sender-back")]
            path, return_path = (first, ahead), (behind, first + 1)
        app = Bulk() if app is None else app
        flows.append(Flow(cc=cc, path=path, return_path=return_path, start_s=starts_s[i], app=app, ecn=ecn))
    return Scenario(
        links=links,
        flows=flows,
        duration_s=duration_s,
        stack=stack,
        name=name,
        hystart=hystart,
        pacing=pacing,
        start_jitter_ms=start_jitter_ms,
    )


def exchange_bottleneck(
    world: Scenario, *, rate_mbps: float | None, trace: Trace | None, rtt_ms: float, buffer_packets: int, loss: float
) -> Scenario:
    """Return the world that `dumbbell` would make with these arguments, from one that it made with others of them.

    Args:
        world: Dumbbell of one round-trip time, with neither reverse senders nor arguments of access links, the return path or
            the medium.
        rate_mbps, trace, rtt_ms, buffer_packets, loss: As in `dumbbell`; floats that are in its ranges, which are not checked.

    Raises:
        ScenarioError: A buffer out of range, or an `rtt_ms` of less than four access delays.
    """
    hosts = HOST_DEFAULTS[world.stack]
    one_way_ms = _subtract_access_delays(rtt_ms, hosts.access_delay_ms)
    bottleneck, back, *access = world.links
    bottleneck = copy_with(
        bottleneck,
        rate_mbps=rate_mbps,
        trace=trace,
        delay_ms=one_way_ms,
        queue_packets=check_buffer_limit(buffer_packets),
        loss=loss,
    )
    back_mbps = choose_return_mbps(rate_mbps, trace) if hosts.rate_back else None
    return copy_with(world, links=(bottleneck, copy_with(back, rate_mbps=back_mbps, delay_ms=one_way_ms), *access))


def _subtract_access_delays(rtt_ms: float, access_delay_ms: float) -> float:
    """Return what access links leave of half a round-trip time; raise ScenarioError if that is less than nothing."""
    one_way_ms = rtt_ms / 2 - 2 * access_delay_ms
    if one_way_ms < 0:
        valid = f"valid: {4 * access_delay_ms:g} or more"
        raise ScenarioError(f"rtt_ms = {rtt_ms:g} is less than four access delays; {valid}")
    return one_way_ms


def _make_access_links(flow: int, rate_mbps: float | None, delay_ms: float, extra_ms: float = 0) -> list[Link]:
    """Return a flow's links from its sender, to its receiver and back; those at the sender are `extra_ms` longer."""
    delays_ms = {end: delay_ms + (extra_ms if end.startswith("sender") else 0) for end in _ENDS}
    return [Link(name=f"{end}-{flow}", rate_mbps=rate_mbps, delay_ms=delay) for end, delay in delays_ms.items()]


_ENDS = "sender", "receiver", "receiver-back", "sender-back"
MAX_HOPS = 50
"""Largest number of hops of a chain: a path has 100 links at most, access links included."""
PerHop = TypeVar("PerHop")


def parking_lot(
    *,
    hops: int = 3,
    rate_mbps: float | Sequence[float | None] | None = 10.0,
    delay_ms: float | Sequence[float] = 10.0,
    buffer_packets: int | Sequence[int | None] | None = 100,
    loss: float | Sequence[float] = 0.0,
    discipline: Discipline | str | dict | Sequence[Discipline | str | dict | None] | None = None,
    senders: Senders = ("cubic",),
    cross: Senders = ("cubic",),
    duration_s: float = 100.0,
    stagger_s: float = 0.1,
    stack: str = "linux",
    access_mbps: float | None = None,
    access_delay_ms: float | None = None,
    return_rate_mbps: float | Sequence[float | None] | None = None,
    return_delay_ms: float | Sequence[float | None] | None = None,
    return_buffer_packets: int | Sequence[int | None] | None = None,
    return_discipline: Discipline | str | dict | Sequence[Discipline | str | dict | None] | None = None,
    app: Application | None = None,
    hystart: bool | str = True,
    pacing: bool = False,
    ecn: bool = False,
    start_jitter_ms: float = 0.0,
    name: str = "",
) -> Scenario:
    """Build a parking lot: long flows over all hops of a chain, and at each hop flows that cross only that.

    The hops are the links "hop-1", "hop-2", .. and back "back-1", "back-2", ..; `senders` come first among the flows, then
    the flow "cross-1" of the first hop, and so on; of several at each hop "cross-1-0", "cross-1-1", .. are the first hop's.
    Numbers and disciplines of hops are one for all, or a list of one each.
    With access links, which the ns3 stack always has, each flow has its own at both ends, as in `dumbbell`.

    Args:
        hops: Number of hops, 1 to 50.
        rate_mbps: Rates of the hops, 1e-6 to 1e6 Mbit/s; None: infinitely fast.
        delay_ms: Propagation delay of each hop, one way, 0 to 1e5 ms.
        buffer_packets: Queue limits of the hops, at least 1; None: no limit.
        loss: Random loss of data packets after each hop, 0 to below 1.
        discipline: Queue disciplines of the hops, as in `Link`.
        senders: Congestion controls of the long flows.
        cross: Congestion controls of the flows that cross each hop; `()`: none do.
        duration_s: Length of the world, 1e-9 to 1e6 seconds.
        stagger_s: Time between flow starts: flow i starts at i * stagger_s.
        stack: "linux" or "ns3".
        access_mbps, access_delay_ms: Rate and delay of each access link; None: the stack's, as in `dumbbell`.
        return_rate_mbps: Rates of the hops back; None: infinitely fast in the linux stack, as there in the ns3 stack.
        return_delay_ms: Propagation delays of the hops back; None: as there.
        return_buffer_packets: Queue limits of the hops back; None: no limit.
        return_discipline: Queue disciplines of the hops back, as in `Link`.
        app, hystart, pacing, ecn, start_jitter_ms: As in `dumbbell`.
        name: Name of the scenario.

    Raises:
        ScenarioError: A value out of range, or a list that has not one value for each hop.
    """
    checks.choice("stack", stack, STACKS)
    hops = checks.integer("hops", hops, 1, MAX_HOPS)
    defaults = HOST_DEFAULTS[stack]
    access_mbps = defaults.access_mbps if access_mbps is None else access_mbps
    access_delay_ms = defaults.access_delay_ms if access_delay_ms is None else access_delay_ms
    access_delay_ms = checks.number("access_delay_ms", access_delay_ms, 0, MAX_DELAY_MS)
    if access_mbps is not None:
        access_mbps = checks.number("access_mbps", access_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
    stagger_s = checks.number("stagger_s", stagger_s, 0, MAX_DURATION_S)
    rates = _list_per_hop("rate_mbps", rate_mbps, hops)
    delays = [checks.number("delay_ms", value, 0, MAX_DELAY_MS) for value in _list_per_hop("delay_ms", delay_ms, hops)]
    there: dict[str, list[Any]] = {
        "rate_mbps": rates,
        "delay_ms": delays,
        "queue_packets": _list_limits("buffer_packets", buffer_packets, hops),
        "loss": _list_per_hop("loss", loss, hops),
        "discipline": _list_per_hop("discipline", discipline, hops),
    }
    return_rates = _list_per_hop("return_rate_mbps", return_rate_mbps, hops)
    return_delays = _list_per_hop("return_delay_ms", return_delay_ms, hops)
    back: dict[str, list[Any]] = {
        "rate_mbps": [rates[i] if rate is None and defaults.rate_back else rate for i, rate in enumerate(return_rates)],
        "delay_ms": [delays[i] if delay is None else delay for i, delay in enumerate(return_delays)],
        "queue_packets": _list_limits("return_buffer_packets", return_buffer_packets, hops),
        "discipline": _list_per_hop("return_discipline", return_discipline, hops),
    }
    links = [
        Link(name=f"{way}-{i + 1}", **{field: values[i] for field, values in settings.items()})
        for way, settings in (("hop", there), ("back", back))
        for i in range(hops)
    ]
    crossing = () if isinstance(cross, (tuple, list)) and not cross else parse_senders(cross, "cross")
    all_hops = tuple(range(hops))
    spans = [(cc, all_hops, "") for cc in parse_senders(senders)]
    several = len(crossing) > 1
    spans += [
        (cc, (hop,), f"cross-{hop + 1}-{i}" if several else f"cross-{hop + 1}")
        for hop in all_hops
        for i, cc in enumerate(crossing)
    ]
    flows = []
    for i, (cc, path, label) in enumerate(spans):
        return_path = tuple(hops + hop for hop in reversed(path))
        if access_mbps is not None or access_delay_ms > 0:
            first = len(links)
            links += _make_access_links(i, access_mbps, access_delay_ms)
            path, return_path = (first, *path, first + 1), (first + 2, *return_path, first + 3)
        app = Bulk() if app is None else app
        flows.append(Flow(cc=cc, path=path, return_path=return_path, start_s=i * stagger_s, app=app, ecn=ecn, name=label))
    return Scenario(
        links=links,
        flows=flows,
        duration_s=duration_s,
        stack=stack,
        name=name,
        hystart=hystart,
        pacing=pacing,
        start_jitter_ms=start_jitter_ms,
    )


def chain(*, hops: int = 3, **world: Any) -> Scenario:
    """Build a chain of hops that all flows cross: `parking_lot` without crossing flows.

    Args:
        hops: Number of hops, 1 to 50.
        world: Further arguments of `parking_lot`, without `cross`.

    Raises:
        ScenarioError: A value out of range, or `cross`.
    """
    if "cross" in world:
        raise ScenarioError(f"cross = {quote(world['cross'])} of a chain, which no flows cross; valid: only in parking_lot")
    return parking_lot(hops=hops, cross=(), **world)


def _list_per_hop(field: str, value: PerHop | Sequence[PerHop], hops: int) -> list[PerHop]:
    """Return a value for each hop, given one for all or a list of one each."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        return [value] * hops
    listed = list(checks.sequence(field, value, "values"))
    if len(listed) != hops:
        raise ScenarioError(f"{field} has {len(listed)} values for {hops} hops; valid: as many, or one for all")
    return listed


def _list_limits(field: str, value: int | Sequence[int | None] | None, hops: int) -> list[int | None]:
    return [check_buffer_limit(limit, field) for limit in _list_per_hop(field, value, hops)]


def last_hop(
    *,
    trace: Trace,
    return_rate_mbps: float = 100.0,
    rtt_ms: float = 40.0,
    buffer_packets: int | None = 300,
    loss: float = 0.0,
    senders: Senders = ("cubic",),
    duration_s: float = 80.0,
    stagger_s: float = 0.1,
    stack: str = "ns3",
    access_mbps: float = 1000.0,
    access_delay_ms: float = 1.0,
    hystart: bool | str = True,
    name: str = "",
) -> Scenario:
    """Build a world with an access link, a base station, and a last hop ("bottleneck") of varying rate.

    The receiver is attached to the last hop by an ideal link (100 Gbit/s, no delay). Arguments are as in `dumbbell`;
    `return_rate_mbps` is the fixed rate of the last hop's return direction.

    Raises:
        ScenarioError: A value out of range.
    """
    rtt_ms = checks.number("rtt_ms", rtt_ms, 0, MAX_DELAY_MS)
    access_delay_ms = checks.number("access_delay_ms", access_delay_ms, 0, MAX_DELAY_MS)
    stagger_s = checks.number("stagger_s", stagger_s, 0, MAX_DURATION_S)
    buffer_packets = check_buffer_limit(buffer_packets)
    one_way_ms = rtt_ms / 2 - access_delay_ms
    if one_way_ms < 0:
        raise ScenarioError(f"rtt_ms = {rtt_ms:g} is less than two access delays; valid: {2 * access_delay_ms:g} or more")
    links = [
        Link(name="bottleneck", trace=trace, delay_ms=one_way_ms, queue_packets=buffer_packets, loss=loss),
        Link(name="return", rate_mbps=return_rate_mbps, delay_ms=one_way_ms),
    ]
    flows = []
    for i, cc in enumerate(parse_senders(senders)):
        first = len(links)
        links += [
            Link(name=f"sender-{i}", rate_mbps=access_mbps, delay_ms=access_delay_ms),
            Link(name=f"receiver-{i}", rate_mbps=100_000.0),
            Link(name=f"receiver-back-{i}", rate_mbps=100_000.0),
            Link(name=f"sender-back-{i}", rate_mbps=access_mbps, delay_ms=access_delay_ms),
        ]
        flows.append(Flow(cc=cc, path=(first, 0, first + 1), return_path=(first + 2, 1, first + 3), start_s=i * stagger_s))
    return Scenario(links=links, flows=flows, duration_s=duration_s, stack=stack, name=name, hystart=hystart)


def _check_each(field: str, values: object, count: int, high: float) -> list[float]:
    """Check numbers from 0 to `high`, one for each of `count` flows."""
    listed = checks.sequence(field, values, "numbers")
    if len(listed) != count:
        raise ScenarioError(f"{field} has {len(listed)} values for {count} flows; valid: as many")
    return [checks.number(f"{field}[{i}]", value, 0, high) for i, value in enumerate(listed)]


def check_buffer_limit(buffer_packets: int | None, field: str = "buffer_packets") -> int | None:
    """Check a queue limit, called `field` in error messages; None: no limit."""
    return None if buffer_packets is None else checks.integer(field, buffer_packets, 1, MAX_COUNT)


def choose_return_mbps(rate_mbps: float | None, trace: Trace | None) -> float | None:
    """Return the rate of the return path: the bottleneck's, or the highest of its trace; None: infinitely fast."""
    return trace.peak_mbps if trace is not None else rate_mbps
