"""RLBM's worlds by name: our default, with incast, randomised, as in the thesis' text, and as in its code."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import CongestionControl, parse_sender_list, parse_senders
from netbuf_gym.scenarios.codec import build_dataclass
from netbuf_gym.scenarios.distributions import Distribution
from netbuf_gym.scenarios.factories import derive_factory
from netbuf_gym.scenarios.limits import MAX_COUNT
from netbuf_gym.scenarios.named import Pattern, World
from netbuf_gym.scenarios.sizes import SizeDistribution, sizes_of
from netbuf_gym.scenarios.switched import HOSTS, shared_buffer
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.scenarios.traffic import Arrivals, FlowList, Incast, PoissonArrivals
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.queue_threshold.families import SwitchFamilies
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks

QUEUE_PACKETS = tuple(range(100, 1001, 100))
"""The thesis' sizes: packets per queue, half of the shared buffer."""

THESIS_FLOWS_PER_S = 500.0
"""Flows per second at load 1 from all senders together, by the thesis' text."""
THESIS_CODE_FLOWS_PER_S = 5.0
"""Flows per second at load 1 from each sender, by the thesis' code."""


_COMMON = ("rate_mbps", "scheme", "hosts", "scheduler", "drop", "protect_syn", "ecn", "congested", "duration_s", "stack")
_ALL = (*_COMMON, "priority_below", "delay_ms", "access_mbps", "access_delay_ms", "mss_bytes", "min_rto_ms", "delayed_ack")
"""Arguments of `shared_buffer` that RLBM's worlds have, and those that only the default has."""


def make_switch_world(
    *,
    cc: Any = "cubic",
    queue_packets: int = 500,
    load: float = 0.6,
    sizes: str | os.PathLike[str] | SizeDistribution = "web_search",
    flow_list: str | os.PathLike[str] | FlowList | None = None,
    incast: Mapping[str, Any] | Incast | None = None,
    per_queue_cap: bool = False,
    rate_mbps: float = 10.0,
    name: str = "rlbm/default",
    **world: Any,
) -> Scenario:
    """Return the world in which ten senders offer `load` times the bottleneck's rate to a buffer of 2 * `queue_packets`.

    Args:
        cc: Congestion control of all senders, or one for each, as in `shared_buffer`.
        queue_packets: Packets of a queue, 1 to 2**39; the shared buffer is twice as large.
        load: Offered load as a share of `rate_mbps`, above 0 to 1e3.
        sizes: Flow sizes: a distribution, the name of a built-in one, or a CSV file.
        flow_list: Flows to open instead of random ones: a list, or a CSV file.
        incast: Bursts beside these flows: `Incast` or its fields; None: none.
        per_queue_cap: Whether no queue exceeds `queue_packets`.
        rate_mbps: Rate of the bottleneck, 1e-6 to 1e6 Mbit/s.
        name: Name of the scenario.
        world: Further arguments of `shared_buffer`.

    Raises:
        ScenarioError: A value out of range.
    """
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // 2)
    if flow_list is None:
        arrivals = [PoissonArrivals.for_load(load, _check_rate(rate_mbps), sizes_of(sizes))]
    else:
        arrivals = [_resolve_flow_list(flow_list)]
    return shared_buffer(
        senders=cc,
        arrivals=arrivals + _resolve_incast(incast),
        rate_mbps=rate_mbps,
        buffer_packets=2 * queue_packets,
        queue_cap=queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        name=name,
        **world,
    )


rlbm_default = derive_factory(
    make_switch_world,
    "RLBM's world with our defaults: ten senders offer `load` times 10 Mbit/s to a buffer of 2 * `queue_packets`, 60 s.",
    like=shared_buffer,
    only=_ALL,
    without=("name",),
)


def make_incast_world(
    *, interval_s: float = 1.0, fan_in: int = 10, size_bytes: int = 20_000, random: bool = False, **world: Any
) -> Scenario:
    """Return `make_switch_world` with incast; the arguments are the fields of `Incast`, and those of `make_switch_world`."""
    bursts = Incast(interval_s=interval_s, fan_in=fan_in, size_bytes=size_bytes, random=random)
    return make_switch_world(incast=bursts, name="rlbm/incast", **world)


def make_thesis_world(
    *,
    code: bool,
    cc: Any = "cubic",
    queue_packets: int = 500,
    load: float = 0.6,
    sizes: str | os.PathLike[str] | SizeDistribution = "web_search",
    incast: Mapping[str, Any] | Incast | None = None,
    per_queue_cap: bool = False,
    stop_s: float | None = None,
    hosts: int = HOSTS,
    **world: Any,
) -> Scenario:
    """Return the thesis' world, whose `load` is flows per second; other arguments are as in `make_switch_world`.

    Args:
        code: Whether the world is that of the thesis' code (a rate for each sender, a buffer in bytes) or that of its text.
        stop_s: End of the arrivals; None: never.
    """
    queue_packets = checks.integer("queue_packets", queue_packets, 1, MAX_COUNT // (2000 if code else 2))
    load = checks.number("load", load, 0, 1e3, low_open=True)
    named = parse_sender_list(cc)
    senders = checks.integer("hosts", hosts, 1, 10_000) if named is None else len(named)
    rate = senders * (THESIS_CODE_FLOWS_PER_S * load) if code else THESIS_FLOWS_PER_S * load
    unit = 1000 if code else 1
    buffer = {"buffer_bytes" if code else "buffer_packets": 2 * unit * queue_packets}
    return shared_buffer(
        senders=cc,
        hosts=hosts,
        arrivals=[PoissonArrivals(flows_per_s=rate, sizes=sizes_of(sizes), stop_s=stop_s), *_resolve_incast(incast)],
        queue_cap=unit * queue_packets if checks.boolean("per_queue_cap", per_queue_cap) else None,
        **buffer,
        **world,
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
            drawn = {"cc": cc, "queue_packets": queue_packets, "rate_mbps": rate_mbps, "sizes": sizes, "drop": drop}
            others = (
                "duration_s",
                "scheme",
                "hosts",
                "incast",
                "scheduler",
                "per_queue_cap",
                "protect_syn",
                "ecn",
                "congested",
            )
            world = make_switch_world(**drawn, **{field: getattr(self, field) for field in (*others, "stack")})
            self._bases[key] = replace(world, name=self.name), world.traffic.arrivals[1:]
        return self._bases[key]


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
        raise ScenarioTypeError(f"flow_list = {quote(flow_list)} is not a file's path")
    return FlowList.read_csv(flow_list)


def _resolve_incast(incast: object) -> list[Arrivals]:
    if incast is None:
        return []
    if isinstance(incast, Incast):
        return [incast]
    if not isinstance(incast, dict):
        raise ScenarioTypeError(f"incast = {quote(incast)}; valid: a dict of interval_s, fan_in, size_bytes, random, ...")
    return [build_dataclass("incast", Incast, incast)]


def _check_pair(field: str, value: object) -> tuple:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ScenarioTypeError(f"{field} = {quote(value)}; valid: two numbers, the lowest and the highest, or one")
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

    fixed = {"cc": cc, "queue_packets": queue_packets, "load": load, "name": name}
    return derive_factory(make_switch_world, rlbm_default.__doc__ or "", like=shared_buffer, only=_ALL, fixed=fixed)


SCENARIOS: dict[str, Callable[..., World]] = {
    "rlbm/default": rlbm_default,
    "rlbm/incast": derive_factory(
        make_incast_world,
        "RLBM's world with incast: beside the default's flows, every second all ten senders start a flow of 20 kB at once.",
        like=derive_factory(make_switch_world, "", like=shared_buffer, only=_COMMON, without=("flow_list", "incast", "name")),
        load=0.5,
    ),
    "rlbm/random": derive_factory(
        RandomSharedBuffer,
        "RLBM's default world, randomised: loads of 0.1..0.8, buffers of 200..2000 packets, CUBIC or NewReno.",
        fixed={"name": "rlbm/random"},
    ),
    "rlbm/thesis-code": derive_factory(
        make_thesis_world,
        "RLBM's world by its code: 5 * `load` flows a second a sender until 45 s, buffer in bytes, MSS 1000, RTO from 10 ms.",
        like=shared_buffer,
        only=_COMMON,
        fixed={"code": True, "mss_bytes": 1000, "min_rto_ms": 10.0, "name": "rlbm/thesis-code"},
        stop_s=45.0,
    ),
    "rlbm/thesis-text": derive_factory(
        make_thesis_world,
        "RLBM's world by the thesis' text: 500 * `load` flows a second in all, permanent overload of the 10 Mbit/s.",
        like=shared_buffer,
        only=_COMMON,
        without=("stop_s",),
        fixed={"code": False, "name": "rlbm/thesis-text"},
    ),
    "switch/families": derive_factory(
        SwitchFamilies,
        "Families of switch worlds: 7 to 200 Mbit/s, round trips of 0.5 to 150 ms, many hosts, mice, incast, 2 to 4 queues.",
        fixed={"name": "switch/families"},
    ),
}
"""Makers of worlds by scenario name."""

CELLS = Pattern(
    "rlbm/CC-SIZE-LOAD",
    "RLBM's cells, e.g. rlbm/cubic-500-0.6: congestion control, packets a queue, offered load.",
    _find_cell_maker,
    "rlbm/cubic-500-0.6",
)
"""Pattern of names for the cells of the thesis' grid."""
