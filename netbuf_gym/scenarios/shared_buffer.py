"""Senders behind one shared-buffer switch: the topology and the traffic of the thesis on learned queue thresholds (RLBM)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from netbuf_gym import checks
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import CongestionControl, names_of, several
from netbuf_gym.scenarios.distributions import Distribution
from netbuf_gym.scenarios.limits import MAX_COUNT, STACKS
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.sizes import SizeDistribution, sizes_of
from netbuf_gym.scenarios.switches import DRR, SCHEDULERS, Admission, Scheduler, Switch
from netbuf_gym.scenarios.traffic import Arrivals, FlowList, Incast, PoissonArrivals, Probe, Sender, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS

HOSTS = 10
SMALL_BYTES = 2000 * 1000
"""Flows below this have priority 0, the others 1: 2000 packets of 1000 bytes."""
QUEUE_PACKETS = tuple(range(100, 1001, 100))
"""The thesis' sizes: packets a queue, half of the shared buffer."""
PING_BYTES = {"linux": 92, "ns3": 94}
"""A datagram of 64 bytes on the wire."""
DRR_QUANTUM_BYTES = 1500

THESIS_FLOWS_PER_S = 500.0
"""The thesis' text: this times the load, from all senders together."""
THESIS_CODE_FLOWS_PER_S = 5.0
"""The thesis' code: this times the load, from each sender."""


def shared_buffer(
    *,
    senders: str | dict | Iterable[str | dict] = "cubic",
    hosts: int = HOSTS,
    arrivals: Arrivals | Iterable[Arrivals],
    rate_mbps: float = 10.0,
    delay_ms: float = 10.0,
    access_mbps: float = 100.0,
    access_delay_ms: float = 0.1,
    buffer_packets: int | None = None,
    buffer_bytes: int | None = None,
    queue_cap: int | None = None,
    scheme: str | dict | Admission = "naive",
    scheduler: str | dict | Scheduler = "round_robin",
    priority_below: int | Sequence[int] = (SMALL_BYTES,),
    queues: int | None = None,
    duration_s: float = 60.0,
    stack: str = "linux",
    device_packets: int | None = None,
    ping: bool = True,
    mss_bytes: int | None = None,
    min_rto_ms: float | None = None,
    delayed_ack: int | None = None,
    hystart: bool = True,
    name: str = "",
) -> Scenario:
    """Senders with an access link each, a shared-buffer switch, and one bottleneck from there to one sink.

    The way back has the same links: the bottleneck's rate and delay without a queue limit, then each sender's access
    link.

    Args:
        senders: Congestion controls as in `Flow`, one for each sender, or a single one for all of `hosts`.
        hosts: Senders when a single one is given, 1 to 10000.
        arrivals: When they open flows, and how large: `PoissonArrivals`, `Incast`, `FlowList`, or several of these.
        rate_mbps, delay_ms: Of the bottleneck.
        access_mbps, access_delay_ms: Of each access link.
        buffer_packets, buffer_bytes: The switch's shared buffer; 1000 packets when neither is given.
        queue_cap: No queue grows beyond this, in the buffer's unit; None: no such limit.
        scheme: Who is admitted to the buffer; see `Scenario.with_scheme`.
        scheduler: "round_robin" (by packet), "drr" (quanta of 1500 bytes), "strict_priority", or a dict of `kind` and
            the scheduler's fields.
        priority_below: As in `Traffic`.
        queues: Priority queues; None: as many as `priority_below` makes priorities.
        duration_s, stack, hystart, mss_bytes, min_rto_ms, delayed_ack, name: As in `Scenario`.
        device_packets: As in `Link`, of the bottleneck; None: 1 in the ns3 stack, 0 in the linux stack.
        ping: A datagram of 64 bytes a second from sender 0 at priority 0, the first at 0.5 s.

    Raises:
        ScenarioError: A value out of range.
    """
    checks.choice("stack", stack, STACKS)
    hosts = checks.integer("hosts", hosts, 1, 10_000)
    names = several(senders)
    if names is None:
        names = (senders,) * hosts
    if isinstance(arrivals, Arrivals):
        arrivals = (arrivals,)
    if not isinstance(priority_below, Iterable):
        priority_below = (priority_below,)
    if buffer_packets is None and buffer_bytes is None:
        buffer_packets = 1000
    priority_below = tuple(priority_below)
    queues = len(priority_below) + 1 if queues is None else queues
    links = [
        Link(
            name="bottleneck",
            rate_mbps=rate_mbps,
            delay_ms=delay_ms,
            device_packets=(1 if stack == "ns3" else 0) if device_packets is None else device_packets,
        ),
        Link(name="return", rate_mbps=rate_mbps, delay_ms=delay_ms),
    ]
    hosts_made = []
    for i, cc in enumerate(names):
        first = len(links)
        for end in ("sender", "sender-back"):
            links.append(Link(name=f"{end}-{i}", rate_mbps=access_mbps, delay_ms=access_delay_ms))
        hosts_made.append(Sender(cc=cc, path=(first, 0), return_path=(1, first + 1)))
    ping = checks.boolean("ping", ping)
    world = Scenario(
        links=links,
        duration_s=duration_s,
        stack=stack,
        name=name,
        hystart=hystart,
        switches=(
            Switch(
                ports=(0,),
                queues=queues,
                buffer_packets=buffer_packets,
                buffer_bytes=buffer_bytes,
                scheduler=_scheduler(scheduler, queues),
                queue_cap=queue_cap,
            ),
        ),
        traffic=Traffic(senders=hosts_made, arrivals=tuple(arrivals), priority_below=priority_below),
        probes=(Probe(path=(2, 0), start_s=0.5, bytes=PING_BYTES[stack]),) if ping else (),
        mss_bytes=mss_bytes,
        min_rto_ms=min_rto_ms,
        delayed_ack=delayed_ack,
    )
    return world.with_scheme(scheme)


def rlbm_default(
    *,
    cc="cubic",
    queue_packets=500,
    load=0.6,
    rate_mbps=10.0,
    duration_s=60.0,
    scheme="naive",
    hosts=HOSTS,
    sizes="web_search",
    flow_list=None,
    incast=None,
    scheduler="round_robin",
    per_queue_cap=False,
    priority_below=(SMALL_BYTES,),
    delay_ms=10.0,
    access_mbps=100.0,
    access_delay_ms=0.1,
    stack="linux",
    mss_bytes=None,
    min_rto_ms=None,
    delayed_ack=None,
) -> Scenario:
    """RLBM as ours: ten senders offer `load` times 10 Mbit/s to a switch with a buffer of 2 * `queue_packets`, 60 s."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2)
    if flow_list is None:
        arrivals = [PoissonArrivals.for_load(load, _rate(rate_mbps), sizes_of(sizes))]
    else:
        arrivals = [_flow_list(flow_list)]
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=arrivals + _bursts(incast),
        rate_mbps=rate_mbps,
        delay_ms=delay_ms,
        access_mbps=access_mbps,
        access_delay_ms=access_delay_ms,
        buffer_packets=2 * queue_packets,
        queue_cap=queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        scheme=scheme,
        scheduler=scheduler,
        priority_below=priority_below,
        duration_s=duration_s,
        stack=stack,
        mss_bytes=mss_bytes,
        min_rto_ms=min_rto_ms,
        delayed_ack=delayed_ack,
        name="rlbm/default",
    )


def rlbm_incast(
    *,
    cc="cubic",
    queue_packets=500,
    load=0.5,
    rate_mbps=10.0,
    duration_s=60.0,
    scheme="naive",
    hosts=HOSTS,
    sizes="web_search",
    interval_s=1.0,
    fan_in=10,
    size_bytes=20_000,
    random=False,
    scheduler="round_robin",
    per_queue_cap=False,
    stack="linux",
) -> Scenario:
    """RLBM with incast: beside the default's flows, every second all ten senders start a flow of 20 kB at once."""
    world = rlbm_default(
        cc=cc,
        queue_packets=queue_packets,
        load=load,
        rate_mbps=rate_mbps,
        duration_s=duration_s,
        scheme=scheme,
        hosts=hosts,
        sizes=sizes,
        incast={"interval_s": interval_s, "fan_in": fan_in, "size_bytes": size_bytes, "random": random},
        scheduler=scheduler,
        per_queue_cap=per_queue_cap,
        stack=stack,
    )
    return replace(world, name="rlbm/incast")


def rlbm_thesis_text(
    *,
    cc="cubic",
    queue_packets=500,
    load=0.6,
    rate_mbps=10.0,
    duration_s=60.0,
    scheme="naive",
    hosts=HOSTS,
    sizes="web_search",
    incast=None,
    scheduler="round_robin",
    per_queue_cap=False,
    stack="linux",
) -> Scenario:
    """RLBM as the thesis describes it: 500 * `load` flows a second in all, permanent overload of the 10 Mbit/s."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2)
    rate = THESIS_FLOWS_PER_S * checks.number("load", load, 0, 1e3, low_open=True)
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=[PoissonArrivals(flows_per_s=rate, sizes=sizes_of(sizes)), *_bursts(incast)],
        rate_mbps=rate_mbps,
        buffer_packets=2 * queue_packets,
        queue_cap=queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        scheme=scheme,
        scheduler=scheduler,
        duration_s=duration_s,
        stack=stack,
        name="rlbm/thesis-text",
    )


def rlbm_thesis_code(
    *,
    cc="cubic",
    queue_packets=500,
    load=0.6,
    rate_mbps=10.0,
    duration_s=60.0,
    stop_s=45.0,
    scheme="naive",
    hosts=HOSTS,
    sizes="web_search",
    incast=None,
    scheduler="round_robin",
    per_queue_cap=False,
    stack="linux",
) -> Scenario:
    """RLBM as coded: 5 * `load` flows a second from each sender until 45 s, buffer in bytes, MSS 1000, RTO from 10 ms."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2000)
    each = THESIS_CODE_FLOWS_PER_S * checks.number("load", load, 0, 1e3, low_open=True)
    n = checks.integer("hosts", hosts, 1, 10_000) if isinstance(cc, str) else len(checks.sequence("cc", cc, "names"))
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=[PoissonArrivals(flows_per_s=n * each, sizes=sizes_of(sizes), stop_s=stop_s), *_bursts(incast)],
        rate_mbps=rate_mbps,
        buffer_bytes=2000 * queue_packets,
        queue_cap=1000 * queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        scheme=scheme,
        scheduler=scheduler,
        duration_s=duration_s,
        stack=stack,
        mss_bytes=1000,
        min_rto_ms=10.0,
        name="rlbm/thesis-code",
    )


@dataclass(frozen=True, kw_only=True)
class RandomSharedBuffer(Distribution):
    """RLBM's default world at random loads, buffer sizes and congestion controls.

    Args:
        load: Range of the offered load, drawn uniformly, above 0 to 1e3.
        queue_packets: Sizes of which one is drawn; the shared buffer is twice that.
        cc: Congestion controls of which one is drawn for all senders.
        incast_probability: Share of the worlds that have bursts, 0 to 1.
        incast: The bursts: a dict of `Incast`'s fields.
        rate_mbps, duration_s, scheme, hosts, sizes, scheduler, per_queue_cap, stack: As in the scenario `rlbm/default`.
    """

    load: tuple[float, float] = (0.1, 0.8)
    queue_packets: tuple[int, ...] = QUEUE_PACKETS
    cc: tuple[str | CongestionControl, ...] = ("cubic", "newreno")
    incast_probability: float = 0.0
    incast: dict | None = None
    rate_mbps: float = 10.0
    duration_s: float = 60.0
    scheme: str | dict = "naive"
    hosts: int = HOSTS
    sizes: str | SizeDistribution = "web_search"
    scheduler: str | dict = "round_robin"
    per_queue_cap: bool = False
    stack: str = "linux"
    name: str = "rlbm/random"
    _bases: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self):
        put = object.__setattr__
        low, high = _pair("load", self.load)
        low = checks.number("load[0]", low, 0, 1e3, low_open=True)
        put(self, "load", (low, checks.number("load[1]", high, low, 1e3)))
        packets = _choices("queue_packets", self.queue_packets)
        put(self, "queue_packets", tuple(checks.integer("queue_packets", p, 1, MAX_COUNT // 2) for p in packets))
        put(self, "cc", names_of(self.cc, "cc"))
        put(self, "incast_probability", checks.number("incast_probability", self.incast_probability, 0, 1))
        if self.incast_probability and self.incast is None:
            put(self, "incast", {"interval_s": 1.0, "fan_in": min(10, self.hosts), "size_bytes": 20_000, "random": True})
        put(self, "sizes", sizes_of(self.sizes))
        for cc in self.cc:  # the remaining fields are checked where they are used
            self._base(cc, self.queue_packets[0])

    def __hash__(self) -> int:
        """Of the fields that cannot be dicts; equal distributions have equal ones."""
        return hash((self.load, self.queue_packets, self.cc, self.incast_probability, self.rate_mbps, self.duration_s))

    @property
    def flows(self) -> int:
        return 0

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(4)
        base, bursts = self._base(_pick(self.cc, u[0]), _pick(self.queue_packets, u[1]))
        load = self.load[0] + u[2] * (self.load[1] - self.load[0])
        arrivals = (PoissonArrivals.for_load(load, self.rate_mbps, self.sizes),)
        if u[3] < self.incast_probability:
            arrivals += bursts
        return replace(base, traffic=replace(base.traffic, arrivals=arrivals))

    def _base(self, cc: str, queue_packets: int) -> tuple[Scenario, tuple[Arrivals, ...]]:
        """The world but for its arrivals, made once, and its bursts."""
        key = cc, queue_packets
        if key not in self._bases:
            world = rlbm_default(
                cc=cc,
                queue_packets=queue_packets,
                rate_mbps=self.rate_mbps,
                duration_s=self.duration_s,
                scheme=self.scheme,
                hosts=self.hosts,
                sizes=self.sizes,
                incast=self.incast,
                scheduler=self.scheduler,
                per_queue_cap=self.per_queue_cap,
                stack=self.stack,
            )
            self._bases[key] = replace(world, name=self.name), world.traffic.arrivals[1:]
        return self._bases[key]


def rlbm_random(
    *,
    load=(0.1, 0.8),
    queue_packets=QUEUE_PACKETS,
    cc=("cubic", "newreno"),
    incast_probability=0.0,
    incast=None,
    rate_mbps=10.0,
    duration_s=60.0,
    scheme="naive",
    hosts=HOSTS,
    sizes="web_search",
    scheduler="round_robin",
    per_queue_cap=False,
    stack="linux",
) -> RandomSharedBuffer:
    """RLBM's default world at random: loads of 0.1..0.8, buffers of 200..2000 packets, CUBIC or NewReno."""
    return RandomSharedBuffer(
        load=load,
        queue_packets=queue_packets,
        cc=cc,
        incast_probability=incast_probability,
        incast=incast,
        rate_mbps=_rate(rate_mbps),
        duration_s=duration_s,
        scheme=scheme,
        hosts=hosts,
        sizes=sizes,
        scheduler=scheduler,
        per_queue_cap=per_queue_cap,
        stack=stack,
    )


def _rate(rate_mbps: object) -> float:
    return checks.number("rate_mbps", rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)


def _flow_list(flow_list: object) -> FlowList:
    if isinstance(flow_list, FlowList):
        return flow_list
    if not isinstance(flow_list, (str, os.PathLike)):
        raise ScenarioTypeError(f"flow_list = {shown(flow_list)} is not a file's path")
    return FlowList.read_csv(flow_list)


def _bursts(incast: object) -> list[Arrivals]:
    if incast is None:
        return []
    if isinstance(incast, Incast):
        return [incast]
    if not isinstance(incast, dict):
        raise ScenarioTypeError(f"incast = {shown(incast)}; valid: a dict of interval_s, fan_in, size_bytes, random, ...")
    return [_made("incast", Incast, incast)]


def _scheduler(scheduler: object, queues: int) -> Scheduler:
    if isinstance(scheduler, Scheduler):
        return scheduler
    if isinstance(scheduler, str):
        scheduler = {"kind": scheduler}
    if not isinstance(scheduler, dict):
        raise ScenarioTypeError(f"scheduler = {shown(scheduler)}; valid: {', '.join(SCHEDULERS)}, or a dict of kind and fields")
    kind = checks.choice("scheduler", scheduler.get("kind"), SCHEDULERS)
    values = {key: value for key, value in scheduler.items() if key != "kind"}
    if kind == DRR.kind and not values:
        values = {"quanta_bytes": (DRR_QUANTUM_BYTES,) * queues}
    return _made("scheduler", SCHEDULERS[kind], values)


def _made(field: str, cls: type, values: dict) -> object:
    known = [f.name for f in fields(cls)]
    for name in values:
        if name not in known:
            raise ScenarioError(f"{field} has no field {name!r}; valid: {', '.join(known) or 'none'}")
    try:
        return cls(**values)
    except TypeError as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"{field} = {shown(values)} lacks a field; valid: {', '.join(known)}") from None


def _pair(field: str, value: object) -> tuple:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ScenarioTypeError(f"{field} = {shown(value)}; valid: two numbers, the lowest and the highest, or one")
    return tuple(value)


def _choices(field: str, value: object) -> tuple:
    return (value,) if isinstance(value, (str, int, float)) else checks.sequence(field, value, "values")


def _pick(options: tuple, u: float) -> object:
    return options[min(int(u * len(options)), len(options) - 1)]
