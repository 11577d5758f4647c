"""RLBM's worlds by name: our default, with incast, randomised, as in the thesis' text, and as in its code."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import CongestionControl, parse_sender_list, parse_senders
from netbuf_gym.scenarios.codec import build_dataclass
from netbuf_gym.scenarios.distributions import Distribution
from netbuf_gym.scenarios.limits import MAX_COUNT
from netbuf_gym.scenarios.named import Pattern, World, remove_parameters
from netbuf_gym.scenarios.shared_buffer import HOSTS, SMALL_BYTES, shared_buffer
from netbuf_gym.scenarios.sizes import SizeDistribution, sizes_of
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.scenarios.traffic import Arrivals, FlowList, Incast, PoissonArrivals
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks

QUEUE_PACKETS = tuple(range(100, 1001, 100))
"""The thesis' sizes: packets per queue, half of the shared buffer."""

THESIS_FLOWS_PER_S = 500.0
"""Flows per second at load 1 from all senders together, by the thesis' text."""
THESIS_CODE_FLOWS_PER_S = 5.0
"""Flows per second at load 1 from each sender, by the thesis' code."""


def rlbm_default(
    *,
    cc: Any = "cubic",
    queue_packets: Any = 500,
    load: Any = 0.6,
    rate_mbps: Any = 10.0,
    duration_s: Any = 60.0,
    scheme: Any = "naive",
    hosts: Any = HOSTS,
    sizes: Any = "web_search",
    flow_list: Any = None,
    incast: Any = None,
    scheduler: Any = "round_robin",
    per_queue_cap: Any = False,
    drop: Any = "tail",
    protect_syn: Any = False,
    ecn: Any = False,
    congested: Any = "drop",
    priority_below: Any = (SMALL_BYTES,),
    delay_ms: Any = 10.0,
    access_mbps: Any = 100.0,
    access_delay_ms: Any = 0.1,
    stack: Any = "linux",
    mss_bytes: Any = None,
    min_rto_ms: Any = None,
    delayed_ack: Any = None,
) -> Scenario:
    """RLBM's world with our defaults: ten senders offer `load` times 10 Mbit/s to a buffer of 2 * `queue_packets`, 60 s."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2)
    if flow_list is None:
        arrivals = [PoissonArrivals.for_load(load, _check_rate(rate_mbps), sizes_of(sizes))]
    else:
        arrivals = [_resolve_flow_list(flow_list)]
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=arrivals + _resolve_incast(incast),
        rate_mbps=rate_mbps,
        delay_ms=delay_ms,
        access_mbps=access_mbps,
        access_delay_ms=access_delay_ms,
        buffer_packets=2 * queue_packets,
        queue_cap=queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        drop=drop,
        protect_syn=protect_syn,
        ecn=ecn,
        congested=congested,
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
    cc: Any = "cubic",
    queue_packets: Any = 500,
    load: Any = 0.5,
    rate_mbps: Any = 10.0,
    duration_s: Any = 60.0,
    scheme: Any = "naive",
    hosts: Any = HOSTS,
    sizes: Any = "web_search",
    interval_s: Any = 1.0,
    fan_in: Any = 10,
    size_bytes: Any = 20_000,
    random: Any = False,
    scheduler: Any = "round_robin",
    per_queue_cap: Any = False,
    drop: Any = "tail",
    protect_syn: Any = False,
    ecn: Any = False,
    congested: Any = "drop",
    stack: Any = "linux",
) -> Scenario:
    """RLBM's world with incast: beside the default's flows, every second all ten senders start a flow of 20 kB at once."""
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
        drop=drop,
        protect_syn=protect_syn,
        ecn=ecn,
        congested=congested,
        stack=stack,
    )
    return replace(world, name="rlbm/incast")


def rlbm_thesis_text(
    *,
    cc: Any = "cubic",
    queue_packets: Any = 500,
    load: Any = 0.6,
    rate_mbps: Any = 10.0,
    duration_s: Any = 60.0,
    scheme: Any = "naive",
    hosts: Any = HOSTS,
    sizes: Any = "web_search",
    incast: Any = None,
    scheduler: Any = "round_robin",
    per_queue_cap: Any = False,
    drop: Any = "tail",
    protect_syn: Any = False,
    ecn: Any = False,
    congested: Any = "drop",
    stack: Any = "linux",
) -> Scenario:
    """RLBM's world by the thesis' text: 500 * `load` flows a second in all, permanent overload of the 10 Mbit/s."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2)
    rate = THESIS_FLOWS_PER_S * checks.number("load", load, 0, 1e3, low_open=True)
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=[PoissonArrivals(flows_per_s=rate, sizes=sizes_of(sizes)), *_resolve_incast(incast)],
        rate_mbps=rate_mbps,
        buffer_packets=2 * queue_packets,
        queue_cap=queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        drop=drop,
        protect_syn=protect_syn,
        ecn=ecn,
        congested=congested,
        scheme=scheme,
        scheduler=scheduler,
        duration_s=duration_s,
        stack=stack,
        name="rlbm/thesis-text",
    )


def rlbm_thesis_code(
    *,
    cc: Any = "cubic",
    queue_packets: Any = 500,
    load: Any = 0.6,
    rate_mbps: Any = 10.0,
    duration_s: Any = 60.0,
    stop_s: Any = 45.0,
    scheme: Any = "naive",
    hosts: Any = HOSTS,
    sizes: Any = "web_search",
    incast: Any = None,
    scheduler: Any = "round_robin",
    per_queue_cap: Any = False,
    drop: Any = "tail",
    protect_syn: Any = False,
    ecn: Any = False,
    congested: Any = "drop",
    stack: Any = "linux",
) -> Scenario:
    """RLBM's world by its code: 5 * `load` flows a second a sender until 45 s, buffer in bytes, MSS 1000, RTO from 10 ms."""
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2000)
    each = THESIS_CODE_FLOWS_PER_S * checks.number("load", load, 0, 1e3, low_open=True)
    named = parse_sender_list(cc)
    n = checks.integer("hosts", hosts, 1, 10_000) if named is None else len(named)
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=[PoissonArrivals(flows_per_s=n * each, sizes=sizes_of(sizes), stop_s=stop_s), *_resolve_incast(incast)],
        rate_mbps=rate_mbps,
        buffer_bytes=2000 * queue_packets,
        queue_cap=1000 * queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        drop=drop,
        protect_syn=protect_syn,
        ecn=ecn,
        congested=congested,
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
        queue_packets: Sizes of which one is drawn; the shared buffer is twice as large.
        cc: Congestion controls of which one is drawn for all senders.
        incast_probability: Share of the worlds that have bursts, 0 to 1.
        incast: The bursts: a dict of `Incast`'s fields.
        rate_mbps, sizes, drop: As in the scenario `rlbm/default`, or several of which one is drawn.
        duration_s, scheme, hosts, scheduler, per_queue_cap, protect_syn, ecn, congested, stack: As in `rlbm/default`.
    """

    load: tuple[float, float] = (0.1, 0.8)
    queue_packets: Sequence[int] = QUEUE_PACKETS
    cc: Sequence[str | CongestionControl] = ("cubic", "newreno")
    incast_probability: float = 0.0
    incast: dict | None = None
    rate_mbps: float | Sequence[float] = 10.0
    duration_s: float = 60.0
    scheme: str | dict = "naive"
    hosts: int = HOSTS
    sizes: str | SizeDistribution | Sequence[str | SizeDistribution] = "web_search"
    scheduler: str | dict = "round_robin"
    per_queue_cap: bool = False
    drop: str | Sequence[str] = "tail"
    protect_syn: bool = False
    ecn: bool = False
    congested: str = "drop"
    stack: str = "linux"
    name: str = "rlbm/random"
    _bases: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        low, high = _check_pair("load", self.load)
        low = checks.number("load[0]", low, 0, 1e3, low_open=True)
        put(self, "load", (low, checks.number("load[1]", high, low, 1e3)))
        packets = _check_choices("queue_packets", self.queue_packets)
        put(self, "queue_packets", tuple(checks.integer("queue_packets", p, 1, MAX_COUNT // 2) for p in packets))
        put(self, "cc", parse_senders(self.cc, "cc"))
        put(self, "incast_probability", checks.number("incast_probability", self.incast_probability, 0, 1))
        if self.incast_probability and self.incast is None:
            put(self, "incast", {"interval_s": 1.0, "fan_in": min(10, self.hosts), "size_bytes": 20_000, "random": True})
        put(self, "sizes", _convert_each("sizes", self.sizes, sizes_of))
        put(self, "rate_mbps", _convert_each("rate_mbps", self.rate_mbps, _check_rate))
        put(self, "drop", _convert_each("drop", self.drop, lambda value: checks.choice("drop", value, DROPS)))
        for cc, drop, rate, sizes in itertools.product(self.cc, *map(_as_tuple, (self.drop, self.rate_mbps, self.sizes))):
            self._make_base(cc, self.queue_packets[0], rate, sizes, drop)  # checks the remaining fields

    def __hash__(self) -> int:
        """Return a hash of the fields that cannot be dicts; equal distributions have equal hashes."""
        return hash((self.load, self.queue_packets, self.cc, self.incast_probability, self.rate_mbps, self.duration_s))

    @property
    def flows(self) -> int:
        return 0

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(4)
        rate, sizes, drop = (  # a single value draws no random number
            _pick_option(several, rng.random()) if len(several) > 1 else several[0]
            for several in map(_as_tuple, (self.rate_mbps, self.sizes, self.drop))
        )
        base, bursts = self._make_base(_pick_option(self.cc, u[0]), _pick_option(self.queue_packets, u[1]), rate, sizes, drop)
        load = self.load[0] + u[2] * (self.load[1] - self.load[0])
        arrivals = (PoissonArrivals.for_load(load, rate, sizes),)
        if u[3] < self.incast_probability:
            arrivals += bursts
        return replace(base, traffic=replace(base.traffic, arrivals=arrivals))

    def _make_base(
        self, cc: Any, queue_packets: Any, rate_mbps: Any, sizes: Any, drop: Any
    ) -> tuple[Scenario, tuple[Arrivals, ...]]:
        """Return the cached world without its final arrivals, and the arrivals of its bursts."""
        key = cc, queue_packets, rate_mbps, sizes, drop
        if key not in self._bases:
            world = rlbm_default(
                cc=cc,
                queue_packets=queue_packets,
                rate_mbps=rate_mbps,
                duration_s=self.duration_s,
                scheme=self.scheme,
                hosts=self.hosts,
                sizes=sizes,
                incast=self.incast,
                scheduler=self.scheduler,
                per_queue_cap=self.per_queue_cap,
                drop=drop,
                protect_syn=self.protect_syn,
                ecn=self.ecn,
                congested=self.congested,
                stack=self.stack,
            )
            self._bases[key] = replace(world, name=self.name), world.traffic.arrivals[1:]
        return self._bases[key]


def rlbm_random(
    *,
    load: Any = (0.1, 0.8),
    queue_packets: Any = QUEUE_PACKETS,
    cc: Any = ("cubic", "newreno"),
    incast_probability: Any = 0.0,
    incast: Any = None,
    rate_mbps: Any = 10.0,
    duration_s: Any = 60.0,
    scheme: Any = "naive",
    hosts: Any = HOSTS,
    sizes: Any = "web_search",
    scheduler: Any = "round_robin",
    per_queue_cap: Any = False,
    drop: Any = "tail",
    protect_syn: Any = False,
    ecn: Any = False,
    congested: Any = "drop",
    stack: Any = "linux",
) -> RandomSharedBuffer:
    """RLBM's default world, randomised: loads of 0.1..0.8, buffers of 200..2000 packets, CUBIC or NewReno."""
    return RandomSharedBuffer(
        load=load,
        queue_packets=queue_packets,
        cc=cc,
        incast_probability=incast_probability,
        incast=incast,
        rate_mbps=rate_mbps,
        duration_s=duration_s,
        scheme=scheme,
        hosts=hosts,
        sizes=sizes,
        scheduler=scheduler,
        per_queue_cap=per_queue_cap,
        drop=drop,
        protect_syn=protect_syn,
        ecn=ecn,
        congested=congested,
        stack=stack,
    )


def _convert_each(field: str, value: Any, made: Callable[[Any], Any]) -> Any:
    """Apply `made` to one value, or to each of several, which become a tuple."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(made(one) for one in checks.sequence(field, value, "values"))
    return made(value)


def _as_tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def _check_rate(rate_mbps: object) -> float:
    return checks.number("rate_mbps", rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)


def _resolve_flow_list(flow_list: object) -> FlowList:
    if isinstance(flow_list, FlowList):
        return flow_list
    if not isinstance(flow_list, (str, os.PathLike)):
        raise ScenarioTypeError(f"flow_list = {shown(flow_list)} is not a file's path")
    return FlowList.read_csv(flow_list)


def _resolve_incast(incast: object) -> list[Arrivals]:
    if incast is None:
        return []
    if isinstance(incast, Incast):
        return [incast]
    if not isinstance(incast, dict):
        raise ScenarioTypeError(f"incast = {shown(incast)}; valid: a dict of interval_s, fan_in, size_bytes, random, ...")
    return [build_dataclass("incast", Incast, incast)]


def _check_pair(field: str, value: object) -> tuple:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ScenarioTypeError(f"{field} = {shown(value)}; valid: two numbers, the lowest and the highest, or one")
    return tuple(value)


def _check_choices(field: str, value: object) -> tuple:
    return (value,) if isinstance(value, (str, int, float)) else checks.sequence(field, value, "values")


def _pick_option(options: tuple, u: float) -> object:
    return options[min(int(u * len(options)), len(options) - 1)]


CELL = re.compile(r"rlbm/([a-z0-9]+)-(\d+)-(\d+(?:\.\d+)?)")


def _find_cell_maker(name: str) -> Callable[..., Scenario] | None:
    cell = CELL.fullmatch(name)
    if cell is None:
        return None
    cc, queue_packets, load = cell[1], int(cell[2]), float(cell[3])

    def from_cell(**kwargs: Any) -> Scenario:
        world = rlbm_default(cc=cc, queue_packets=queue_packets, load=load, **kwargs)
        return replace(world, name=name)

    from_cell.__signature__ = remove_parameters(rlbm_default, "cc", "queue_packets", "load")
    return from_cell


SCENARIOS: dict[str, Callable[..., World]] = {
    "rlbm/default": rlbm_default,
    "rlbm/incast": rlbm_incast,
    "rlbm/random": rlbm_random,
    "rlbm/thesis-code": rlbm_thesis_code,
    "rlbm/thesis-text": rlbm_thesis_text,
}
"""Makers of worlds by scenario name."""

CELLS = Pattern(
    "rlbm/CC-SIZE-LOAD",
    "RLBM's cells, e.g. rlbm/cubic-500-0.6: congestion control, packets a queue, offered load.",
    _find_cell_maker,
    "rlbm/cubic-500-0.6",
)
"""Pattern of names for the cells of the thesis' grid."""
