"""Worlds of a proxy on a long-distance path, single or random, for training and comparing agents of the host-buffers task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.scenarios.distributions import SHARE, Distribution, interval, log_uniform
from netbuf_gym.scenarios.fields import check_fields, number, rule, text
from netbuf_gym.scenarios.flows import Flow
from netbuf_gym.scenarios.hosts import PAGE_BYTES, Host
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DELAY_MS, MAX_DURATION_S, compute_bdp_packets
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.senders import Relay, Sender
from netbuf_gym.scenarios.sizes import SizeDistribution, sizes_of
from netbuf_gym.scenarios.traffic import Arrivals, FlowList, PoissonArrivals, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.host_buffers.hosts import ENDLESS_BYTES, apply_settings
from netbuf_gym.tasks.host_buffers.settings import NAMED, Settings, constant_settings
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS, RateTrace
from netbuf_gym.utils import checks

PROXY = "proxy"
"""Name of the host."""

KINDS = ("long", "short", "mixed")
LASTING, PAGES = ("long", "mixed"), ("short", "mixed")
"""Kinds of traffic: connections that send as long as the world lasts, web pages, or both."""

MAX_CONNECTIONS = 10_000
NIC_MBPS, LEAST_NIC_MBPS = 1000.0, 10.0
RING_PACKETS = 256
LEAST_QUEUE = 20
RELAY_BYTES = 65_536
"""Data of a connection that a relay like shadowsocks holds beside its sockets: a few reads."""

ACCESS_PACKETS = 1000

WEB_OBJECTS = SizeDistribution(
    name="web_objects",
    size_bytes=(500, 2e3, 6e3, 15e3, 40e3, 100e3, 300e3, 1e6, 4e6),
    cumulative=(0.0, 0.15, 0.35, 0.55, 0.75, 0.88, 0.96, 0.992, 1.0),
)
"""Objects fetched by visits to web pages, one connection each: ours, with the median near 13 kB and the mean near 74 kB."""


def single_size(size_bytes: int) -> SizeDistribution:
    """Return the distribution of files that all have this size."""
    return SizeDistribution(name=f"{size_bytes} B", size_bytes=(size_bytes,), cumulative=(1.0,))


def make_host_world(
    *,
    rate_mbps: float | None = 100.0,
    trace: Any = None,
    rtt_ms: float = 40.0,
    buffer_bdp: float = 1.0,
    buffer_packets: int | None = None,
    loss: Any = 0.0,
    jitter_ms: float = 0.0,
    nic_mbps: float | None = NIC_MBPS,
    traffic: str = "long",
    connections: int = 1,
    sizes: Any = None,
    load: float = 0.5,
    stagger_s: float = 0.1,
    cc: Any = "cubic",
    explicit_bytes: int | None = None,
    relay_bytes: int | None = None,
    access_mbps: float = NIC_MBPS,
    access_ms: float = 2.0,
    client_rmem: Sequence[int] = (4096, 131_072, 67_108_864),
    delay: Any = None,
    duration_s: float = 300.0,
    settings: Settings | str = "autotuning",
    memory_bytes: int | None = None,
    polls: bool = True,
    agent: bool = False,
    rivals: int = 0,
    rival_cc: Any = "cubic",
    rival_start_s: float = 0.0,
    rival_stop_s: float | None = None,
    name: str = "",
) -> Scenario:
    """Return a world of a host, "proxy", that sends over its device, "nic", and a long path, "bottleneck", to its clients.

    The way back is "return". With `relay_bytes` the proxy sends what it receives from a target over the nearby links "access"
    and "access back", two connections for each.

    Args:
        rate_mbps, trace: Rate or trace of the bottleneck, one of the two.
        rtt_ms: Round-trip propagation delay, 0 to 1e5 ms.
        buffer_bdp: Queue of the bottleneck in products of mean rate and rtt_ms, above 0 to 1e4, at least 20 packets.
        buffer_packets: Queue of the bottleneck in packets; None: given by `buffer_bdp`.
        loss: Random loss of data packets after the bottleneck, 0 to below 1, or a `LossSchedule`.
        jitter_ms: Mean of an exponential delay of each packet on the bottleneck, in order, 0 to 1e5 ms.
        nic_mbps: Rate of the device, whose queue is the ring.
        traffic: One of `KINDS`.
        connections: Number of connections that last as long as the world, each with data to send always, 1 to 10000; none with
            kind "short".
        sizes: Sizes of the files or pages that arrive: a distribution, a name or a CSV file; None: `WEB_OBJECTS`.
        load: Mean load of these as a share of the bottleneck's mean rate, above 0 to 1000.
        stagger_s: Interval between starts: connection i starts at i * stagger_s.
        cc: Congestion control of what the host sends.
        explicit_bytes: Send buffers that the host's programs ask for, bounded by its cap; None: TCP's autotuning.
        relay_bytes: Most that the proxy holds of a relayed flow between its two sockets, 1 to 2**40; None: it sends its own
            data.
        access_mbps, access_ms: Rate of the path from the target, and its round-trip propagation delay.
        client_rmem: Receive buffers of the clients, (least, default, maximum), which the host cannot set.
        delay: Delay of the bottleneck in place of half of `rtt_ms`, in any form that `Link.delay_ms` takes.
        duration_s: Duration of the world, 0.001 to 1e6 s.
        settings: Initial settings of the host, or their name in `NAMED`.
        memory_bytes: Limit on the memory of all TCP connections of the host; None: no limit.
        polls: Whether the host's programs ask for room between writes, as `Host.polls`.
        agent: Whether an agent controls the host.
        rivals: Number of connections of others across the bottleneck, 0 to 10000, whose ends no buffer limits. The host's
            share is of the whole bottleneck even so: what it cannot have is the same for every controller.
        rival_cc, rival_start_s, rival_stop_s: Their congestion control, start and end; None: they last as long as the world.
        name: Name of the scenario.

    Raises:
        ScenarioError: A value is out of range.
    """
    one_way_ms = checks.number("rtt_ms", rtt_ms, 0, MAX_DELAY_MS) / 2
    duration_s = checks.number("duration_s", duration_s, 0.001, MAX_DURATION_S)
    kind = checks.choice("traffic", traffic, KINDS)
    load = checks.number("load", load, 0, 1e3, low_open=True)
    count = checks.integer("connections", connections, 1, MAX_CONNECTIONS)
    if trace is not None:
        mean_mbps = trace.mean_mbps(duration_s)
    else:
        mean_mbps = checks.number("rate_mbps", rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
    if buffer_packets is None:
        buffer_packets = _queue_packets(checks.number("buffer_bdp", buffer_bdp, 0, 1e4, low_open=True), mean_mbps, rtt_ms)
    jitter_ms = checks.number("jitter_ms", jitter_ms, 0, MAX_DELAY_MS)
    if memory_bytes is not None:
        memory_bytes = checks.integer("memory_bytes", memory_bytes, 2 * PAGE_BYTES, MAX_COUNT)
    if not isinstance(settings, Settings):
        settings = NAMED[checks.choice("settings", settings, NAMED)]
    links = [
        Link(name="nic", rate_mbps=nic_mbps, queue_packets=settings.ring_packets),
        Link(
            name="bottleneck",
            rate_mbps=None if trace is not None else rate_mbps,
            trace=trace,
            delay_ms=one_way_ms if delay is None else delay,
            queue_packets=buffer_packets,
            loss=loss,
            jitter=Jitter(distribution="exponential", scale_ms=jitter_ms) if jitter_ms else None,
        ),
        Link(name="return", delay_ms=one_way_ms),
    ]
    hosts = [
        apply_settings(_make_proxy(memory_bytes, polls, agent), settings),
        Host(name="client", tcp_rmem=tuple(client_rmem), socket_bytes=67_108_864),
    ]
    way: dict[str, Any] = {
        "cc": cc,
        "path": ("nic", "bottleneck"),
        "return_path": ("return",),
        "sender_host": PROXY,
        "receiver_host": "client",
        "sndbuf_bytes": explicit_bytes,
    }
    stagger_s = checks.number("stagger_s", stagger_s, 0, MAX_DURATION_S)
    starts = [i * stagger_s for i in range(count if kind in LASTING else 0)]
    arrivals: list[Arrivals] = []
    if kind in PAGES:
        chosen = WEB_OBJECTS if sizes is None else sizes_of(sizes)
        arrivals.append(PoissonArrivals.for_load(load, mean_mbps, chosen))
    if relay_bytes is None:
        flows, sender = [Flow(start_s=start_s, **way) for start_s in starts], Sender(**way)
    else:
        near_ms = checks.number("access_ms", access_ms, 0, MAX_DELAY_MS) / 2
        links.append(Link(name="access", rate_mbps=access_mbps, delay_ms=near_ms, queue_packets=ACCESS_PACKETS))
        links.append(Link(name="access back", delay_ms=near_ms))
        flows, sender = (
            [],
            Sender(
                path=("access",),
                return_path=("access back",),
                relay=Relay(host=PROXY, buffer_bytes=relay_bytes, **{key: way[key] for key in _RELAY_FIELDS}),
            ),
        )
        if starts:
            size = [ENDLESS_BYTES] * len(starts)
            arrivals.append(FlowList(start_s=starts, sender=[0] * len(starts), size_bytes=size, priority=[0] * len(starts)))
    flows += [
        Flow(cc=rival_cc, path=("bottleneck",), return_path=("return",), start_s=rival_start_s, stop_s=rival_stop_s)
        for _ in range(checks.integer("rivals", rivals, 0, MAX_CONNECTIONS))
    ]
    traffic_of = Traffic(senders=[sender], arrivals=arrivals) if arrivals else None
    return Scenario(links=links, flows=flows, traffic=traffic_of, hosts=hosts, duration_s=duration_s, name=name)


_RELAY_FIELDS = ("cc", "path", "return_path", "receiver_host", "sndbuf_bytes")


def _queue_packets(bdp: float, rate_mbps: float, rtt_ms: float) -> int:
    """Return a queue of so many bandwidth-delay products in packets, at least `LEAST_QUEUE`."""
    return max(LEAST_QUEUE, round(bdp * compute_bdp_packets(rate_mbps, rtt_ms)))


def _make_proxy(memory_bytes: int | None, polls: bool, agent: bool) -> Host:
    limit = None if memory_bytes is None else (memory_bytes // 2, memory_bytes * 3 // 4, memory_bytes)
    return Host(name=PROXY, device="nic", ring_packets=RING_PACKETS, tcp_mem=limit, polls=polls, agent=agent)


def _check_kinds(label: str, value: object) -> tuple[str, ...]:
    kinds = checks.sequence(label, value, "kinds")
    return tuple(checks.choice(f"{label}[{i}]", kind, KINDS) for i, kind in enumerate(kinds))


@dataclass(frozen=True, kw_only=True)
class HostPaths(Distribution):
    """Distribution over proxies on paths of random rate, round trip, buffer, loss, jitter and traffic.

    Args:
        rate_mbps: Range of the bottleneck's rate, log-uniform, within [1e-6, 1e6].
        rtt_ms: Range of the propagation RTT, log-uniform, within (0, 1e5].
        buffer_bdp: Range of the bottleneck's queue in bandwidth-delay products, log-uniform, within (0, 1e4].
        loss_probability, loss: Share of the worlds that lose packets at random, and range of their loss rate, log-uniform.
        jitter_probability, jitter: Share of the worlds with jitter, and range of its mean in shares of the RTT, log-uniform.
        traffic: Kinds of traffic, with equal probability: "long", "short", "mixed".
        connections: Range of the number of lasting connections, log-uniform, 1 to 10000. They start 0.1 s apart, or within a
            tenth of the time.
        load: Range of the load from pages, uniform, within (0, 1000].
        ccs: Congestion controls, with equal probability.
        change_probability, change_factor: Share of the worlds with a change, and the most by which rate or round trip are
            multiplied or divided, log-uniform, 1 to 1000. One third of the changes is of the rate, one third of the round trip,
            one third of both.
        start_probability, start_bytes: Share of the worlds whose TCP maxima start at random, and their range, log-uniform;
            the others start with Linux's defaults.
        explicit_probability: Share of the worlds whose programs ask for send buffers, of 64 KiB to 16 MiB.
        relay_probability: Share of the worlds in which the host relays what it receives from a nearby target.
        polls_probability: Share of the worlds whose programs ask for room between writes, as `Host.polls`.
        nic_mbps: Rate of the host's device.
        slow_nic_probability: Share of the worlds whose device is no faster than the bottleneck, at least 10 Mbit/s, so that
            packets wait in the ring.
        rise_probability, rise_factor: Share of the worlds whose rate rises once, after 20 to 50 % of the time, and the range
            of what it is multiplied by, log-uniform, 1 to 1000; the rise may pass `rate_mbps`. These worlds have no other
            change.
        rival_probability, rivals, rival_ccs: Share of the worlds with connections of others on the bottleneck, the range of
            their number, log-uniform, 1 to 10000, and their congestion controls, with equal probability. Half of them are
            there from the start on; the others come within the first half of the time and go within the second.
        duration_s: Duration of the worlds, 0.001 to 1e6 seconds.
        name: Label of the worlds.
    """

    rate_mbps: Any = field(default=(1.0, 50.0), metadata=interval(MAX_RATE_MBPS, low=MIN_RATE_MBPS))
    rtt_ms: Any = field(default=(5.0, 300.0), metadata=interval(MAX_DELAY_MS))
    buffer_bdp: Any = field(default=(0.5, 8.0), metadata=interval(1e4))
    loss_probability: float = field(default=0.3, metadata=SHARE)
    loss: Any = field(default=(1e-5, 2e-2), metadata=interval(0.999))
    jitter_probability: float = field(default=0.3, metadata=SHARE)
    jitter: Any = field(default=(0.005, 0.05), metadata=interval(10.0))
    traffic: Sequence[str] = field(default=("long", "long", "mixed", "short"), metadata=rule(_check_kinds))
    connections: Any = field(default=(1, 8), metadata=interval(MAX_CONNECTIONS, low=1))
    load: Any = field(default=(0.1, 0.7), metadata=interval(1e3))
    ccs: Sequence[str] = field(default=("cubic",), metadata=rule(partial(checks.sequence, what="congestion controls")))
    change_probability: float = field(default=0.0, metadata=SHARE)
    change_factor: float = field(default=4.0, metadata=number(1, 1000))
    start_probability: float = field(default=0.0, metadata=SHARE)
    start_bytes: Any = field(default=(32_768.0, 67_108_864.0), metadata=interval(67_108_864.0, low=4096))
    explicit_probability: float = field(default=0.0, metadata=SHARE)
    relay_probability: float = field(default=0.0, metadata=SHARE)
    polls_probability: float = field(default=1.0, metadata=SHARE)
    nic_mbps: float | None = NIC_MBPS
    slow_nic_probability: float = field(default=0.0, metadata=SHARE)
    rise_probability: float = field(default=0.0, metadata=SHARE)
    rise_factor: Any = field(default=(4.0, 12.0), metadata=interval(1e3, low=1))
    rival_probability: float = field(default=0.0, metadata=SHARE)
    rivals: Any = field(default=(1, 2), metadata=interval(MAX_CONNECTIONS, low=1))
    rival_ccs: Sequence[str] = field(default=("cubic",), metadata=rule(partial(checks.sequence, what="congestion controls")))
    duration_s: float = field(default=300.0, metadata=number(0.001, MAX_DURATION_S))
    name: str = field(default="host paths", metadata=text())

    def __post_init__(self) -> None:
        check_fields(self)
        for cc in self.ccs:  # validated here, since one may first be drawn in mid-training
            make_host_world(cc=cc, duration_s=1.0, nic_mbps=self.nic_mbps)
        for cc in self.rival_ccs:
            make_host_world(rivals=1, rival_cc=cc, duration_s=1.0, nic_mbps=self.nic_mbps)

    @property
    def flows(self) -> int:
        """Number of hosts that agents may control: one, however many connections it has."""
        return 1

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(23)
        rate = log_uniform(u[0], self.rate_mbps)
        rtt = log_uniform(u[1], self.rtt_ms)
        settings = NAMED["autotuning"]
        if u[2] < self.start_probability:
            settings = constant_settings(
                settings.ring_packets, round(log_uniform(u[3], self.start_bytes)), settings.socket_bytes
            )
        changes = u[4] < self.change_probability
        at_s = (0.2 + 0.6 * u[5]) * self.duration_s
        factor = log_uniform(u[6], (1 / self.change_factor, self.change_factor))
        longer = log_uniform(u[7], (1 / self.change_factor, self.change_factor))
        by_rate, by_route = changes and u[8] < 2 / 3, changes and u[8] > 1 / 3
        after_ms = max(_clip(rtt * longer, self.rtt_ms) - rtt / 2, 0.0)  # the return delay is unchanged
        trace = RateTrace([0.0, at_s], [rate, _clip(rate * factor, self.rate_mbps)]) if by_rate else None
        if self.rise_probability > 0:  # worlds without the option are drawn as before it came
            rises, start, by = rng.random(3)
            if rises < self.rise_probability:
                at_s = (0.2 + 0.3 * start) * self.duration_s
                trace, by_route = RateTrace([0.0, at_s], [rate, rate * log_uniform(by, self.rise_factor)]), False
        connections = math.floor(log_uniform(u[15], (self.connections[0], self.connections[1] + 1 - 1e-9)))
        return make_host_world(
            rate_mbps=None if trace is not None else rate,
            trace=trace,
            rtt_ms=rtt,
            delay=DelaySchedule([0.0, at_s], [rtt / 2, after_ms]) if by_route else None,
            buffer_packets=_queue_packets(log_uniform(u[9], self.buffer_bdp), rate, rtt),
            loss=log_uniform(u[11], self.loss) if u[10] < self.loss_probability else 0.0,
            jitter_ms=rtt * log_uniform(u[13], self.jitter) if u[12] < self.jitter_probability else 0.0,
            nic_mbps=max(rate, LEAST_NIC_MBPS) if u[22] < self.slow_nic_probability else self.nic_mbps,
            traffic=self.traffic[int(u[14] * len(self.traffic))],
            connections=connections,
            stagger_s=0.1 if 0.1 * connections <= self.duration_s else 0.1 * self.duration_s / connections,
            load=self.load[0] + u[16] * (self.load[1] - self.load[0]),
            cc=self.ccs[int(u[17] * len(self.ccs))],
            explicit_bytes=round(log_uniform(u[19], (2.0**16, 2.0**24))) if u[18] < self.explicit_probability else None,
            relay_bytes=RELAY_BYTES if u[20] < self.relay_probability else None,
            polls=u[21] < self.polls_probability,
            duration_s=self.duration_s,
            settings=settings,
            name=self.name,
            **(self._draw_rivals(rng) if self.rival_probability > 0 else {}),
        )

    def _draw_rivals(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return the arguments of `make_host_world` for connections of others."""
        v = rng.random(6)
        if v[0] >= self.rival_probability:
            return {}
        lasting = v[3] < 0.5
        return {
            "rivals": math.floor(log_uniform(v[1], (self.rivals[0], self.rivals[1] + 1 - 1e-9))),
            "rival_cc": self.rival_ccs[int(v[2] * len(self.rival_ccs))],
            "rival_start_s": 0.0 if lasting else v[4] / 2 * self.duration_s,
            "rival_stop_s": None if lasting else (1 + v[5]) / 2 * self.duration_s,
        }


def draw_long_run(
    seed: int, *, hours: float, rtt_ms: float, rate_mbps: float, loss: float, step_s: float = 900.0
) -> dict[str, Any]:
    """Return the changes of a path over hours: rate, delay and loss that change every `step_s`, by time of day and at random.

    Returns:
        arguments of `make_host_world`.
    """
    rng = np.random.default_rng(seed)
    steps = max(1, math.ceil(hours * 3600 / step_s))
    times = np.arange(steps) * step_s
    busy = 0.5 - 0.5 * np.cos(2 * np.pi * (times / 86_400 + rng.random()))  # 0 at night, 1 in the evening
    wander = np.cumsum(rng.normal(0, 0.08, steps))
    wander -= np.linspace(wander[0], wander[-1], steps)
    rates = rate_mbps * np.exp(np.clip(-0.7 * busy + wander, -1.6, 0.5))
    losses = np.clip(loss * np.exp(1.4 * busy + rng.normal(0, 0.5, steps)), 0, 0.3)
    routes = np.cumsum(rng.random(steps) < 0.04) % 3
    delays = rtt_ms / 2 * (1 + 0.15 * busy) + np.array([0.0, 12.0, 30.0])[routes]
    return {
        "rate_mbps": None,
        "trace": RateTrace(times, rates),
        "delay": DelaySchedule(times, delays),
        "rtt_ms": rtt_ms,
        "loss": LossSchedule(times, losses),
        "duration_s": hours * 3600,
    }


def _clip(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
