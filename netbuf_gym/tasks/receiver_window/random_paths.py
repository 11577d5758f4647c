"""Random paths to a receiver, on which agents of the receiver-window task are trained and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, get_control_name, parse_congestion_control, sender_controls
from netbuf_gym.scenarios.distributions import SHARE, Distribution, interval, log_uniform
from netbuf_gym.scenarios.fields import check_fields, integer, number, rule, text
from netbuf_gym.scenarios.flows import Flow
from netbuf_gym.scenarios.impairments import DelaySchedule
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DELAY_MS, MAX_DURATION_S, compute_bdp_packets
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.traffic import FlowList, Sender, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.generators import check_parameters
from netbuf_gym.traces.types import Trace
from netbuf_gym.traces.windows import by_seconds
from netbuf_gym.utils import checks

NETWORKS = ("wired", "wifi", "4g", "5g")
RECEIVER_DRIVEN = "receiver_driven"
"""The sender whose congestion window follows the receiver's window."""

DEFAULT_RECEIVER = "nuwa"
"""Receiver control that moves the window of such a sender without an agent."""

LEAST_MBPS = 0.05
"""Traces with a lower mean rate are drawn again."""

MAX_TRIES = 16


def receiver_world(
    *,
    trace: Trace | None = None,
    rate_mbps: float | None = None,
    rtt_ms: float = 40.0,
    buffer_packets: int | None = 250,
    loss: float = 0.0,
    senders: Sequence[Any] = (RECEIVER_DRIVEN,),
    receivers: Sequence[Any] = (DEFAULT_RECEIVER,),
    duration_s: float = 80.0,
    stagger_s: float = 0.1,
    clock_offset_ms: float = 0.0,
    clock_drift_ppm: float = 0.0,
    timestamp_resolution_us: int = 1000,
    return_mbps: float | None = None,
    return_packets: int | None = None,
    traffic: Traffic | None = None,
    delay: Any = None,
    on_outage: str = "hold",
    name: str = "",
) -> Scenario:
    """Return flows to receivers over one link of constant or varying rate, "bottleneck", and back over "return".

    Args:
        trace, rate_mbps: Capacity of the bottleneck, one of the two.
        rtt_ms: Propagation there and back, 0 to 1e5 ms, half of it on each link.
        buffer_packets: The bottleneck's queue limit, at least 1; None: none.
        loss: Random loss of data packets after the bottleneck, 0 to below 1.
        senders, receivers: Congestion control and receiver control (None: a window that never limits the sender) of each flow.
        duration_s, stagger_s: Flow i starts at i * stagger_s.
        clock_offset_ms, clock_drift_ppm, timestamp_resolution_us: Clocks of all flows, see `Flow`.
        return_mbps, return_packets: Rate and queue limit of the way back; None: infinitely fast.
        traffic: Finite flows in addition.
        on_outage: Treatment of the bottleneck's queue at outages, see `Link`.
        delay: Delay of the bottleneck in place of half of `rtt_ms`: any value of `Link.delay_ms`.
        name: The scenario's name.

    Raises:
        ScenarioError: A value is out of range.
    """
    one_way_ms = checks.number("rtt_ms", rtt_ms, 0, MAX_DELAY_MS) / 2
    links = [
        Link(
            name="bottleneck",
            rate_mbps=rate_mbps,
            trace=trace,
            delay_ms=one_way_ms if delay is None else delay,
            queue_packets=buffer_packets,
            loss=loss,
            on_outage=on_outage,
        ),
        Link(name="return", rate_mbps=return_mbps, delay_ms=one_way_ms, queue_packets=return_packets),
    ]
    stagger_s = checks.number("stagger_s", stagger_s, 0, MAX_DURATION_S)
    flows = [
        Flow(
            cc=cc,
            path=(0,),
            return_path=(1,),
            start_s=i * stagger_s,
            receiver=receiver,
            clock_offset_ms=clock_offset_ms,
            clock_drift_ppm=clock_drift_ppm,
            timestamp_resolution_us=timestamp_resolution_us,
        )
        for i, (cc, receiver) in enumerate(zip(senders, receivers, strict=True))
    ]
    return Scenario(links=links, flows=flows, traffic=traffic, duration_s=duration_s, name=name)


def check_senders(senders: object) -> tuple[Any, ...]:
    """Return the congestion controls of the flows, as `Flow` makes them.

    Raises:
        ScenarioError: A congestion control is unknown, or a value out of range.
    """
    given = checks.sequence("senders", senders, "congestion controls")
    return tuple(parse_congestion_control(f"senders[{i}]", cc, CONGESTION_CONTROLS) for i, cc in enumerate(given))


def check_resolutions(timestamp_us: Sequence[Any]) -> None:
    """Raise ScenarioError unless each is a valid time-stamp resolution: any may be drawn first in mid-training."""
    for i, unit in enumerate(timestamp_us):
        if checks.integer(f"timestamp_us[{i}]", unit, 1, 1000) not in (1, 1000):
            raise ScenarioError(f"timestamp_us[{i}] = {quote(unit)}; valid: 1000 or 1")


def assign_receivers(senders: Sequence[Any], receiver: Any) -> tuple[Any, ...]:
    """Return `receiver` for each of the `check_senders` that a receiver drives, None for the others."""
    return tuple(receiver if _is_receiver_driven(cc) else None for cc in senders)


def _is_receiver_driven(cc: Any) -> bool:
    return get_control_name(cc) == RECEIVER_DRIVEN


def _check_networks(label: str, value: object) -> tuple[str, ...]:
    networks = checks.sequence(label, value, "names")
    return tuple(checks.choice("network", network, tuple(traces.GENERATORS)) for network in networks)


def _check_resolutions(label: str, value: object) -> tuple[int, ...]:
    resolutions = checks.sequence(label, value, "resolutions in microseconds")
    check_resolutions(resolutions)
    return resolutions


def _check_competitors(label: str, value: object) -> tuple[Any, ...]:
    competitors = checks.sequence(label, value, "congestion controls")
    for i, cc in enumerate(competitors):
        parse_congestion_control(f"{label}[{i}]", cc, sender_controls("linux"), "linux")
    return competitors


@dataclass(frozen=True, kw_only=True)
class ReceiverPaths(Distribution):
    """Worlds over generated networks, each with a trace, a round trip, a buffer and clocks of its own.

    Args:
        networks: Networks to draw from, each as likely: of `NETWORKS`, or any other of `netbuf_gym.traces.GENERATORS`.
        arguments: Further arguments of their generators.
        rtt_ms: Range of the propagation RTT, log-uniform, within (0, 1e5].
        buffer_bdp: Range of the buffer in bandwidth-delay products of the mean rate, log-uniform, within (0, 1e4]; never less
            than `min_buffer_packets`.
        buffer_packets: The buffer instead, 1 or more.
        senders: Congestion controls of the flows.
        receiver: Receiver control of the flows that a receiver drives.
        unchanged_probability: Share of the worlds whose driven senders are CUBIC instead, 0 to 1.
        clock_offset_ms, clock_drift_ppm: Largest deviation of the receiver's clock from the sender's, either way, uniform.
        timestamp_us: Resolutions of time stamps, 1 or 1000, each as likely.
        competitor_probability: Share of the worlds in which another flow joins for a while, 0 to 1.
        competitors: Congestion controls of that flow, each as likely.
        reverse_probability: Share of the worlds with a CUBIC flow on the way back, which then has a rate and a buffer, 0 to 1.
        reverse_mbps: Range of that rate, log-uniform.
        loss_probability, loss: Share of the worlds that lose packets at random, and range of their loss rate, log-uniform.
        step_probability, step_ms: Share of the worlds whose route changes once, and range of the increase or decrease of the
            delay, log-uniform, each way as likely; never below a tenth of the previous delay.
        drop_probability: Share of the worlds whose bottleneck's queue is dropped at outages.
        seconds_probability: Share of the worlds whose path spreads the data that its trace carries in each second evenly over
            that second, as in traces recorded by the second, 0 to 1.
        duration_s: Length of a world, 0.001 to 1e4 seconds.
        stagger_s, name: As in `receiver_world`.
        min_buffer_packets: Least buffer, 1 or more.
    """

    networks: Sequence[str] = field(default=NETWORKS, metadata=rule(_check_networks))
    arguments: Any = None
    rtt_ms: Any = field(default=(20.0, 80.0), metadata=interval(MAX_DELAY_MS))
    buffer_bdp: Any = field(default=(1.0, 4.0), metadata=interval(1e4))
    buffer_packets: int | None = field(default=None, metadata=integer(1, MAX_COUNT))
    senders: Sequence[Any] = field(default=(RECEIVER_DRIVEN,), metadata=rule(lambda _, senders: check_senders(senders)))
    receiver: Any = DEFAULT_RECEIVER
    unchanged_probability: float = field(default=0.0, metadata=SHARE)
    clock_offset_ms: float = field(default=50.0, metadata=number(0, 1e6))
    clock_drift_ppm: float = field(default=50.0, metadata=number(0, 1e3))
    timestamp_us: Sequence[int] = field(default=(1000, 1), metadata=rule(_check_resolutions))
    competitor_probability: float = field(default=0.0, metadata=SHARE)
    competitors: Sequence[Any] = field(default=("cubic", "bbr", "newreno"), metadata=rule(_check_competitors))
    reverse_probability: float = field(default=0.0, metadata=SHARE)
    reverse_mbps: Any = field(default=(1.0, 20.0), metadata=interval(1e6))
    loss_probability: float = field(default=0.0, metadata=SHARE)
    loss: Any = field(default=(1e-5, 1e-2), metadata=interval(0.999))
    step_probability: float = field(default=0.0, metadata=SHARE)
    step_ms: Any = field(default=(5.0, 80.0), metadata=interval(MAX_DELAY_MS))
    drop_probability: float = field(default=0.0, metadata=SHARE)
    seconds_probability: float = field(default=0.0, metadata=SHARE)
    duration_s: float = field(default=80.0, metadata=number(0.001, 1e4))
    stagger_s: float = 0.1
    name: str = field(default="receiver paths", metadata=text())
    min_buffer_packets: int = field(default=20, metadata=integer(1, MAX_COUNT))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.arguments is not None and not isinstance(self.arguments, dict):
            raise ScenarioTypeError(f"arguments = {quote(self.arguments)}; valid: a dict")
        for network in self.networks:  # each may be drawn first in the middle of a training
            check_parameters(network, self.arguments or {})
        self.sample(np.random.default_rng(0))  # the remaining fields are checked where they are used

    @property
    def flows(self) -> int:
        return len(self.senders)

    def sample(self, rng: np.random.Generator) -> Scenario:
        u, v = rng.random(12), rng.random(5)
        trace = self._draw_trace(rng, self.networks[int(u[0] * len(self.networks))])
        rtt_ms = log_uniform(u[1], self.rtt_ms)
        mean_mbps = trace.mean_mbps(self.duration_s)
        held = compute_bdp_packets(mean_mbps, rtt_ms)
        buffer = max(self.min_buffer_packets, round(log_uniform(u[2], self.buffer_bdp) * held))
        senders = tuple("cubic" if _is_receiver_driven(cc) and u[3] < self.unchanged_probability else cc for cc in self.senders)
        competes, returns = u[4] < self.competitor_probability, u[5] < self.reverse_probability
        return_mbps = log_uniform(u[6], self.reverse_mbps) if returns else None
        return_packets = None if return_mbps is None else max(20, round(return_mbps * rtt_ms * 1e3 / 8 / 1500))
        return receiver_world(
            trace=trace,
            rtt_ms=rtt_ms,
            buffer_packets=buffer if self.buffer_packets is None else self.buffer_packets,
            loss=log_uniform(u[7], self.loss) if u[8] < self.loss_probability else 0.0,
            senders=senders,
            receivers=assign_receivers(self.senders, self.receiver),
            duration_s=self.duration_s,
            stagger_s=self.stagger_s,
            clock_offset_ms=self.clock_offset_ms * (2 * u[9] - 1),
            clock_drift_ppm=self.clock_drift_ppm * (2 * u[10] - 1),
            timestamp_resolution_us=self.timestamp_us[int(u[11] * len(self.timestamp_us))],
            return_mbps=return_mbps,
            return_packets=return_packets,
            traffic=self._draw_traffic(rng, mean_mbps if competes else None, return_mbps),
            delay=self._draw_route(rtt_ms / 2, v[1:4]) if v[0] < self.step_probability else None,
            on_outage="drop" if v[4] < self.drop_probability else "hold",
            name=self.name,
        )

    def _draw_route(self, delay_ms: float, u: np.ndarray) -> DelaySchedule:
        """Return the schedule of a delay that changes once."""
        step_ms = log_uniform(u[0], self.step_ms)
        after_ms = delay_ms + step_ms if u[1] < 0.5 else max(delay_ms - step_ms, delay_ms / 10)
        return DelaySchedule([0.0, (0.1 + 0.6 * u[2]) * self.duration_s], [delay_ms, after_ms])

    def _draw_trace(self, rng: np.random.Generator, network: str) -> Trace:
        """Return a trace of the network that carries something."""
        for _ in range(MAX_TRIES):
            seed = int(rng.integers(2**62))
            try:
                trace = traces.generate(network, duration_s=self.duration_s, seed=seed, **(self.arguments or {}))
            except ScenarioError as error:
                if "outage throughout" in str(error):
                    continue
                raise
            if self.seconds_probability > 0 and rng.random() < self.seconds_probability:
                trace = by_seconds(trace)
            if trace.mean_mbps(self.duration_s) >= LEAST_MBPS:
                return trace
        found = f"network {network!r} gave no path of {LEAST_MBPS:g} Mbit/s in {MAX_TRIES} tries"
        raise ScenarioError(f"{found}; valid: a longer duration_s")

    def _draw_traffic(
        self, rng: np.random.Generator, competitor_mbps: float | None, return_mbps: float | None
    ) -> Traffic | None:
        """Return a temporary competitor sized for half of the bottleneck's mean rate, and a flow on the way back."""
        senders, start_s, size_bytes = [], [], []
        u = rng.random(4)
        cc = self.competitors[int(u[3] * len(self.competitors))]
        if competitor_mbps is not None:
            senders.append(Sender(cc=cc, path=(0,), return_path=(1,)))
            start_s.append(0.6 * u[0] * self.duration_s)
            lasts_s = (0.1 + 0.4 * u[1]) * self.duration_s
            size_bytes.append(max(1500, int(competitor_mbps * lasts_s * 1e6 / 8 / 2)))
        if return_mbps is not None:
            senders.append(Sender(cc="cubic", path=(1,), return_path=(0,)))
            start_s.append(0.5 * u[2] * self.duration_s)
            size_bytes.append(max(1500, int(return_mbps * self.duration_s * 1e6 / 8)))
        if not senders:
            return None
        flows = FlowList(start_s=start_s, sender=range(len(senders)), size_bytes=size_bytes, priority=[0] * len(senders))
        return Traffic(senders=senders, arrivals=[flows])
