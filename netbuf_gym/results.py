"""What a simulation gives back: statistics of flows and links over the measured window, and time series."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import asdict, dataclass, field

import numpy as np

from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.scenarios.traffic import FlowList
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traffic_results import COMPLETED, NAN, OPENED, ProbeResult, TrafficResult, mean, percentile

SCHEMA = "netbuf-gym/result/1"


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """One flow over the measured window; names ending in `_total` count from the start of the world.

    Rates are Mbit/s, times ms or s as the names say; NaN where nothing was measured.

    Attributes:
        name, cc: As in the scenario; `flow-N` for a flow without a name.
        start_s, completion_s: When it was to start, and when its receiver had everything (NaN: not, or never).
        delivered_bytes: In order, to the receiving application.
        goodput_mbps: `delivered_bytes` over the whole window, whenever the flow started.
        packets_sent, packets_retransmitted: Data packets; the former counts the latter.
        queue_drops, random_losses: Data packets lost at full queues and at random.
        loss_rate: (queue_drops + random_losses) / packets_sent.
        rtt_mean_ms: Over the RTT samples of the window. `rtt_min_ms`: the least since the start of the world.
        cwnd_mean_packets: Over time.
        timeouts, fast_recoveries, acks_received: Counts.
    """

    name: str
    cc: str
    start_s: float
    completion_s: float
    delivered_bytes: int
    goodput_mbps: float
    packets_sent: int
    packets_retransmitted: int
    queue_drops: int
    random_losses: int
    loss_rate: float
    rtt_mean_ms: float
    rtt_min_ms: float
    cwnd_mean_packets: float
    acks_received: int
    timeouts: int
    fast_recoveries: int
    packets_sent_total: int
    queue_drops_total: int


@dataclass(frozen=True, kw_only=True)
class LinkResult:
    """One link over the measured window; names ending in `_total` count from the start of the world.

    Attributes:
        packets_in: Arrivals, dropped or not. `packets_out`: those that left the queue, a device's ring included.
        throughput_mbps: What was transmitted, on the wire: of the packet that is in service at either end of the window
            the part that lies within it. Transmissions end at whole nanoseconds.
        utilisation: What the rate could have carried while the link transmitted, as a share of what it could have carried
            in all, at most 1; NaN without a rate, or where all of the window is an outage.
        queue_delay_mean_ms, queue_delay_std_ms: Time in the queue without transmission, over the packets that left it.
        queue_mean_packets: Over time, without the packet in service. `queue_max_packets_total`: since the start.
        queue_drops, random_losses: Counts.
    """

    name: str
    packets_in: int
    packets_out: int
    throughput_mbps: float
    utilisation: float
    queue_delay_mean_ms: float
    queue_delay_std_ms: float
    queue_mean_packets: float
    queue_drops: int
    random_losses: int
    queue_drops_total: int
    queue_max_packets_total: int


class Named(tuple):
    """Results by index or by name."""

    __slots__ = ()
    what = "result"

    def __getitem__(self, key):
        if isinstance(key, str):
            for item in self:
                if item.name == key:
                    return item
            raise KeyError(f"no {self.what} {key!r}; there are {', '.join(item.name for item in self)}")
        return super().__getitem__(key)


class Links(Named):
    """The links' results, by index or by name."""

    __slots__ = ()
    what = "link"


class Switches(Named):
    """The switches' results, by index or by name."""

    __slots__ = ()
    what = "switch"


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A finished simulation.

    Attributes:
        scenario, seed: What was run.
        window_s: The measured window (from, to), seconds.
        flows: A `FlowResult` for each flow.
        links: A `LinkResult` for each link, by index or name: `links["bottleneck"]`.
        bottleneck: Name of the bottleneck link.
        series: Samples over the whole run by name, or empty. `time_s` has shape (samples,); a sample's counts and
            means are of the interval that ends there. Of flows, shape (samples, flows): cwnd_packets,
            ssthresh_packets, rtt_ms, srtt_ms, in_flight_packets, pacing_mbps, goodput_mbps. Of links, shape
            (samples, links): queue_packets, queue_delay_ms, queue_drops, random_losses, throughput_mbps. Of switches,
            shape (samples, switches, queues), over all ports: switch_packets, switch_bytes, switch_drops, and
            switch_threshold, which is that of the first port (in the switch's unit). Of traffic, shape (samples,):
            traffic_goodput_mbps, flows_alive. NaN where nothing was measured, and for queues that a switch lacks.
        traffic: A `TrafficResult` of the finite flows; None without traffic.
        completions: The finite flows that completed, in order of completion, over the whole run: a structured array
            with the fields flow (counted from 0 in order of start), start_s, fct_s, size_bytes, sender, priority,
            ideal_s (`Scenario.ideal_s`: propagation there and back, and the bytes at the slowest link),
            slowdown (fct_s / ideal_s) and difference_s (fct_s - ideal_s). Shape (completed,).
        opened: All finite flows that started, in order: flow, start_s, sender, size_bytes, priority, received_bytes
            (in order, until the end). Shape (started,).
        switches: A `SwitchResult` for each switch, by index or name.
        probes: A `ProbeResult` for each probe.
    """

    scenario: Scenario
    seed: int
    window_s: tuple[float, float]
    flows: tuple[FlowResult, ...]
    links: Links
    bottleneck: str
    series: dict[str, np.ndarray]
    traffic: TrafficResult | None = None
    completions: np.ndarray = field(default_factory=lambda: np.zeros(0, COMPLETED))
    opened: np.ndarray = field(default_factory=lambda: np.zeros(0, OPENED))
    switches: Switches = field(default_factory=Switches)
    probes: tuple[ProbeResult, ...] = ()

    @property
    def goodput_mbps(self) -> float:
        """The sum over the flows, those of the traffic included."""
        return sum(flow.goodput_mbps for flow in self.flows) + (self.traffic.goodput_mbps if self.traffic else 0.0)

    @property
    def loss_rate(self) -> float:
        """Data packets lost, at queues and at random, over data packets sent, all flows together; NaN when none was sent."""
        sent = sum(flow.packets_sent for flow in self.flows)
        lost = sum(flow.queue_drops + flow.random_losses for flow in self.flows)
        if self.traffic is not None:
            sent += self.traffic.packets_sent
            lost += self.traffic.queue_drops + self.traffic.random_losses
        return lost / sent if sent else NAN

    @property
    def fairness(self) -> float:
        """Jain's index over the flows' goodputs, 1/n to 1; NaN when nothing was delivered."""
        goodput = np.array([flow.goodput_mbps for flow in self.flows])
        squares = float(goodput @ goodput)
        return float(goodput.sum()) ** 2 / (len(goodput) * squares) if squares else NAN

    def completed(self, priority: int | None = None) -> np.ndarray:
        """The `completions` of the flows that started in the measured window, of one priority or of all (None)."""
        table = self.completions[self.completions["start_s"] >= self.window_s[0]]
        return table if priority is None else table[table["priority"] == priority]

    def flows_completed(self, priority: int | None = None) -> int:
        """How many of the flows that started in the window completed."""
        return len(self.completed(priority))

    def fct_mean_s(self, priority: int | None = None) -> float:
        """Their mean completion time; NaN without any."""
        return mean(self.completed(priority)["fct_s"])

    def fct_s(self, share: float, priority: int | None = None) -> float:
        """The completion time that `share` per cent (0 to 100, nearest rank) of them do not exceed; NaN without any."""
        return percentile(self.completed(priority)["fct_s"], share)

    def slowdown_mean(self, priority: int | None = None) -> float:
        """Their mean slowdown, the ratio; NaN without any."""
        return mean(self.completed(priority)["slowdown"])

    def slowdown(self, share: float = 99.0, priority: int | None = None) -> float:
        """The slowdown (ratio) that `share` per cent (0 to 100, nearest rank; 100: the worst) of them do not exceed."""
        return percentile(self.completed(priority)["slowdown"], share)

    def difference_s(self, share: float = 99.0, priority: int | None = None) -> float:
        """The slowdown as the thesis on learned thresholds defines it, the difference to the ideal; as `slowdown`."""
        return percentile(self.completed(priority)["difference_s"], share)

    def flow_list(self) -> FlowList:
        """The finite flows that started, as a list that can be replayed here or elsewhere.

        Raises:
            ScenarioError: None did.
        """
        return FlowList(**{name: self.opened[name] for name in ("start_s", "sender", "size_bytes", "priority")})

    def by_priority(self) -> list[dict[str, float]]:
        """Counts, completion times and slowdowns of the finite flows, one row for each priority that occurs."""
        started = self.opened[self.opened["start_s"] >= self.window_s[0]]
        return [
            {
                "priority": p,
                "started": int((started["priority"] == p).sum()),
                "completed": self.flows_completed(p),
                "fct_mean_s": self.fct_mean_s(p),
                "fct_p99_s": self.fct_s(99, p),
                "slowdown_mean": self.slowdown_mean(p),
                "slowdown_p99": self.slowdown(99, p),
                "slowdown_max": self.slowdown(100, p),
                "difference_p99_s": self.difference_s(99, p),
                "difference_max_s": self.difference_s(100, p),
            }
            for p in np.unique(started["priority"]).tolist()
        ]

    def to_dict(self, series: bool = True) -> dict:
        """A JSON-able form (but for NaN); without time series and single finite flows when `series` is False."""
        data = {
            "schema": SCHEMA,
            "scenario": self.scenario.to_dict(),
            "seed": self.seed,
            "window_s": list(self.window_s),
            "bottleneck": self.bottleneck,
            "goodput_mbps": self.goodput_mbps,
            "loss_rate": self.loss_rate,
            "fairness": self.fairness,
            "flows": [asdict(flow) for flow in self.flows],
            "links": [asdict(link) for link in self.links],
        }
        if self.traffic is not None:
            data["traffic"] = {**asdict(self.traffic), "by_priority": self.by_priority()}
        if self.switches:
            data["switches"] = [asdict(switch) for switch in self.switches]
        if self.probes:
            data["probes"] = [
                {"sent": p.sent, "received": p.received, "mean_ms": p.mean_ms, "p99_ms": p.percentile_ms(99)}
                for p in self.probes
            ]
        if series:
            data["series"] = {name: values.tolist() for name, values in self.series.items()}
            if self.traffic is not None:
                for name in ("completions", "opened"):
                    table = getattr(self, name)
                    data[name] = {column: table[column].tolist() for column in table.dtype.names}
        return data

    def write_json(self, path: str | os.PathLike, series: bool = True) -> None:
        """Writes `to_dict` as JSON, NaN as null; the whole file or none.

        Raises:
            OSError: The file cannot be written.
        """
        write_json(path, self.to_dict(series))

    def write_csv(self, path: str | os.PathLike) -> None:
        """Writes the time series, one row for each sample and flow, the columns of bottleneck, switches and traffic
        repeated in each; one row for each sample when there are none but finite flows.

        Raises:
            OSError: The file cannot be written.
        """
        at = self.scenario.bottleneck
        common = {f"bottleneck_{name}": self.series[name][:, at] for name in LINK_SERIES if name in self.series}
        common |= {name: self.series[name] for name in TRAFFIC_SERIES if name in self.series}
        for i, switch in enumerate(self.scenario.switches):
            for q in range(switch.queues):
                for name in SWITCH_SERIES:
                    if name in self.series:
                        common[f"{switch.name}_{name.removeprefix('switch_')}_{q}"] = self.series[name][:, i, q]
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["time_s", "flow", "cc", *FLOW_SERIES, *common])
        for i, time_s in enumerate(self.series.get("time_s", ())):
            shared = [_cell(column[i]) for column in common.values()]
            for f, flow in enumerate(self.flows):
                rows.writerow([_cell(time_s), f, flow.cc, *(_cell(self.series[n][i, f]) for n in FLOW_SERIES), *shared])
            if not self.flows:
                rows.writerow([_cell(time_s), "", "", *("" for _ in FLOW_SERIES), *shared])
        write_atomic(path, text.getvalue())

    def write_flows_csv(self, path: str | os.PathLike) -> None:
        """Writes the finite flows, a row each: a flow list that `FlowList.read_csv` and ns-3 programs can replay, with the
        columns received_bytes, fct_s, ideal_s and slowdown (empty when it did not complete) behind it.

        Raises:
            OSError: The file cannot be written.
        """
        done = {int(row["flow"]): row for row in self.completions}
        lines = ["flow_id,start_s,sender,size_bytes,priority,received_bytes,fct_s,ideal_s,slowdown"]
        for row in self.opened:
            end = done.get(int(row["flow"]))
            times = ("", "", "") if end is None else (f"{end[name]:.9g}" for name in ("fct_s", "ideal_s", "slowdown"))
            whole = (row["sender"], row["size_bytes"], row["priority"], row["received_bytes"])
            lines.append(",".join([str(row["flow"]), f"{row['start_s']:.9f}", *map(str, whole), *times]))
        write_atomic(path, "\n".join(lines) + "\n")


FLOW_SERIES = (
    "cwnd_packets",
    "ssthresh_packets",
    "rtt_ms",
    "srtt_ms",
    "in_flight_packets",
    "pacing_mbps",
    "goodput_mbps",
)
SWITCH_SERIES = ("switch_packets", "switch_bytes", "switch_threshold", "switch_drops")
TRAFFIC_SERIES = ("traffic_goodput_mbps", "flows_alive")
LINK_SERIES = ("queue_packets", "queue_delay_ms", "queue_drops", "random_losses", "throughput_mbps")


def _cell(value: float) -> str:
    return f"{value:.9g}" if np.isfinite(value) else ""
