"""Results of traffic of finite flows, shared-buffer switches and probes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.simulation.results.parts import NAN, NamedResults, format_quantity

OPENED = np.dtype(
    {
        "names": ["flow", "start_s", "sender", "size_bytes", "priority", "received_bytes"],
        "formats": ["i8", "f8", "i8", "i8", "i8", "i8"],
    }
)
"""A flow that started."""
COMPLETED = np.dtype(
    {
        "names": ["flow", "start_s", "fct_s", "size_bytes", "sender", "priority", "ideal_s", "slowdown", "difference_s"],
        "formats": ["i8", "f8", "f8", "i8", "i8", "i8", "f8", "f8", "f8"],
    }
)
"""A flow that completed: from its start (the SYN is sent) to the last byte in order at the receiver."""
PAGE = np.dtype(
    {
        "names": ["user", "sender", "start_s", "load_s", "objects", "size_bytes"],
        "formats": ["i8", "i8", "f8", "f8", "i8", "i8"],
    }
)
"""A page that a user of `WebSessions` got: from the click to the last byte of its last object."""
PRIORITY = (
    *("priority", "started", "completed", "fct_mean_s", "fct_p99_s", "slowdown_mean", "slowdown_p99", "slowdown_max"),
    *("difference_p99_s", "difference_max_s"),
)
"""Columns of the statistics of finite flows by priority."""
ENOUGH = 200
"""Number of flows below which one or two of them decide a 99th percentile."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrafficResult:
    """Statistics of all finite flows together over the measured window.

    Attributes:
        flows_started, flows_connected, flows_completed: Flows whose start, handshake, last byte fell into the window.
        flows_failed: Flows that were given up, or reset, in the window.
        delivered_bytes, goodput_mbps: Delivered in order to the receiving applications, incomplete flows included.
        packets_sent, packets_retransmitted: Data packets; the former counts the latter.
        queue_drops, random_losses: Data packets lost at full queues and at random. timeouts: Of data.
        marks, mark_responses: As in `FlowResult`.
        syn_timeouts: SYNs (or their answers) whose timer expired, so that another was sent or the connection given up;
            not among `timeouts`. On `plant="linux"` neither is known: NaN.
    """

    flows_started: int
    flows_connected: int
    flows_completed: int
    flows_failed: int
    delivered_bytes: int
    goodput_mbps: float
    packets_sent: int
    packets_retransmitted: int
    queue_drops: int
    random_losses: int
    timeouts: int
    syn_timeouts: int
    marks: int
    mark_responses: int

    def __repr__(self) -> str:
        """Return the number of flows, and their goodput."""
        flows = f"{self.flows_completed} of {self.flows_started} completed, {format_quantity(self.goodput_mbps, 'Mbit/s')}"
        return f"<finite flows: {flows}, {self.queue_drops} drops, {self.timeouts} time-outs>"


@dataclass(frozen=True, kw_only=True, repr=False)
class QueueResult:
    """Statistics of one queue of a switch at one port, over the whole run.

    Attributes:
        port: Name of the link. `queue`: index of the queue, 0 first.
        arrivals: Packets that came, dropped or not. `drops`: those that were not admitted. `marks`: those marked (ECN).
        departures, bytes_out: Packets taken out to be sent, and their bytes on the wire.
        packets: Packets stored at the end.
        packets_mean, packets_p99, packets_max: Mean, 99th percentile and maximum of the queue's length over time.
        delay_mean_ms: Time in the queue without transmission, over the departures; NaN without any.
    """

    port: str
    queue: int
    arrivals: int
    drops: int
    marks: int
    departures: int
    bytes_out: int
    packets: int
    packets_mean: float
    packets_p99: float
    packets_max: float
    delay_mean_ms: float

    def __repr__(self) -> str:
        """Return port, number, length, delay and drops."""
        length = f"{format_quantity(self.packets_mean, 'packets')}, delay {format_quantity(self.delay_mean_ms, 'ms')}"
        return f"<queue {self.queue} of {self.port}: {length}, {self.drops} drops>"


@dataclass(frozen=True, kw_only=True, repr=False)
class SwitchResult:
    """Statistics of one switch over the whole run, regardless of the warm-up.

    Attributes:
        name, capacity, in_bytes: As in the scenario.
        occupancy_mean, occupancy_p99, occupancy_max: Mean, 99th percentile and maximum over time of the occupied share of the
            shared buffer, 0 to 1.
        queues: A `QueueResult` for each queue of each port, port by port.
    """

    name: str
    capacity: int
    in_bytes: bool
    occupancy_mean: float
    occupancy_p99: float
    occupancy_max: float
    queues: tuple[QueueResult, ...]

    def __repr__(self) -> str:
        """Return name, occupancy and drops."""
        mean, p99 = (format_quantity(share, "%", 100) for share in (self.occupancy_mean, self.occupancy_p99))
        return f"<{self.name}: {len(self.queues)} queues, filled {mean} (99 %: {p99}), {self.drops} drops>"

    @property
    def drops(self) -> int:
        """Packets that were not admitted."""
        return sum(queue.drops for queue in self.queues)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ProbeResult:
    """Delays of one probe over the whole run.

    Attributes:
        sent: Packets sent.
        delays_s: One-way delays of those that arrived, in order of arrival. Shape (arrived,).
    """

    sent: int
    delays_s: np.ndarray

    def __repr__(self) -> str:
        """Return the number of packets that arrived, and their mean delay."""
        return f"<probe: {self.received} of {self.sent} arrived, {format_quantity(self.mean_ms, 'ms')}>"

    @property
    def received(self) -> int:
        """Packets that arrived."""
        return len(self.delays_s)

    @property
    def mean_ms(self) -> float:
        """Mean one-way delay, NaN when none arrived."""
        return float(self.delays_s.mean()) * 1e3 if len(self.delays_s) else NAN

    def percentile_ms(self, share: float) -> float:
        """Return the delay that `share` per cent (0 to 100) of the packets do not exceed, NaN when none arrived."""
        return percentile(self.delays_s, share) * 1e3


class Switches(NamedResults[SwitchResult]):
    """Results of the switches, by index or by name."""

    __slots__ = ()
    what = "switch"


def percentile(values: np.ndarray, share: float) -> float:
    """Return the nearest-rank percentile, the least value that `share` per cent (0 to 100) do not exceed; NaN if empty."""
    return float(np.percentile(values, share, method="inverted_cdf")) if len(values) else NAN


def mean(values: np.ndarray) -> float:
    """Return the mean; NaN if empty."""
    return float(values.mean()) if len(values) else NAN


def build_completions(scenario: Scenario, rows: np.ndarray) -> np.ndarray:
    """Return the completed flows, shape (flows,) of `COMPLETED`, with ideals, from the core's completions, shape (flows, 7)."""
    table = np.zeros(len(rows), COMPLETED)
    for i, name in enumerate(("flow", "start_s", "fct_s", "size_bytes", "sender", "priority")):
        table[name] = rows[:, i]
    senders = scenario.traffic.senders if scenario.traffic is not None else ()
    ends = range(len(scenario.flows), len(scenario.flows) + len(senders))
    ideals = [(scenario.ideal_s(i, 0), scenario.ideal_s(i, 1)) for i in range(len(senders))]
    at_0, at_1 = np.array(ideals).T
    table["ideal_s"] = at_0[table["sender"]] + (at_1 - at_0)[table["sender"]] * table["size_bytes"]
    varying = np.array([any(link.trace is not None for link in scenario.links_of(end)) for end in ends])
    table["ideal_s"] = np.where(varying[table["sender"]], rows[:, 6], table["ideal_s"])
    table["slowdown"] = table["fct_s"] / table["ideal_s"]
    table["difference_s"] = table["fct_s"] - table["ideal_s"]
    return table


def build_opened(rows: np.ndarray) -> np.ndarray:
    """Return the started flows, shape (flows,) of `OPENED`, from the core's flows, shape (flows, 5)."""
    table = np.zeros(len(rows), OPENED)
    table["flow"] = np.arange(len(rows))
    for i, name in enumerate(("start_s", "sender", "size_bytes", "priority", "received_bytes")):
        table[name] = rows[:, i]
    return table


def build_pages(rows: np.ndarray) -> np.ndarray:
    """Return the loaded pages, shape (pages,) of `PAGE`, from the core's pages, shape (pages, 6)."""
    table = np.zeros(len(rows), PAGE)
    for i, name in enumerate(PAGE.names or ()):
        table[name] = rows[:, i]
    return table


def build_switch_result(scenario: Scenario, index: int, stats: dict) -> SwitchResult:
    """Return the result of a switch from the core's counters."""
    switch = scenario.switches[index]
    queues = []
    for q in stats["queues"]:
        counted = {name: q[name] for name in QueueResult.__dataclass_fields__ if name in q and name != "port"}
        delay_ms = q["sojourn_sum_s"] * 1e3 / q["departures"] if q["departures"] else NAN
        queues.append(QueueResult(port=scenario.links[switch.ports[q["port"]]].name, delay_mean_ms=delay_ms, **counted))
    return SwitchResult(
        name=switch.name,
        capacity=switch.capacity,
        in_bytes=switch.in_bytes,
        **{name: stats[name] for name in ("occupancy_mean", "occupancy_p99", "occupancy_max")},
        queues=tuple(queues),
    )
