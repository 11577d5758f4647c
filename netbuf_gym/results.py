"""What a simulation gives back: statistics of flows and links over the measured window, and time series."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import asdict, dataclass

import numpy as np

from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.scenarios.types import Scenario

SCHEMA = "netbuf-gym/result/1"
NAN = float("nan")


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
        packets_in: Arrivals, dropped or not. `packets_out`: those that left the queue.
        throughput_mbps: What left the queue, on the wire.
        utilisation: What left the queue as a share of what the link's rate could have carried; NaN without a rate.
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


class Links(tuple):
    """The links' results, by index or by name."""

    __slots__ = ()

    def __getitem__(self, key):
        if isinstance(key, str):
            for link in self:
                if link.name == key:
                    return link
            raise KeyError(f"no link {key!r}; there are {', '.join(link.name for link in self)}")
        return super().__getitem__(key)


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
            (samples, links): queue_packets, queue_delay_ms, queue_drops, random_losses, throughput_mbps. NaN where
            nothing was measured.
    """

    scenario: Scenario
    seed: int
    window_s: tuple[float, float]
    flows: tuple[FlowResult, ...]
    links: Links
    bottleneck: str
    series: dict[str, np.ndarray]

    @property
    def goodput_mbps(self) -> float:
        """The sum over the flows."""
        return sum(flow.goodput_mbps for flow in self.flows)

    @property
    def loss_rate(self) -> float:
        """Data packets lost over data packets sent, all flows together; NaN when none was sent."""
        sent = sum(flow.packets_sent for flow in self.flows)
        lost = sum(flow.queue_drops + flow.random_losses for flow in self.flows)
        return lost / sent if sent else NAN

    @property
    def fairness(self) -> float:
        """Jain's index over the flows' goodputs, 1/n to 1; NaN when nothing was delivered."""
        goodput = np.array([flow.goodput_mbps for flow in self.flows])
        squares = float(goodput @ goodput)
        return float(goodput.sum()) ** 2 / (len(goodput) * squares) if squares else NAN

    def to_dict(self, series: bool = True) -> dict:
        """A JSON-able form (but for NaN); without the time series when `series` is False."""
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
        if series:
            data["series"] = {name: values.tolist() for name, values in self.series.items()}
        return data

    def write_json(self, path: str | os.PathLike, series: bool = True) -> None:
        """Writes `to_dict` as JSON, NaN as null; the whole file or none.

        Raises:
            OSError: The file cannot be written.
        """
        write_json(path, self.to_dict(series))

    def write_csv(self, path: str | os.PathLike) -> None:
        """Writes the time series, one row for each sample and flow, the bottleneck's columns repeated in each.

        Raises:
            OSError: The file cannot be written.
        """
        at = self.scenario.bottleneck
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["time_s", "flow", "cc", *FLOW_SERIES, *(f"bottleneck_{n}" for n in LINK_SERIES)])
        for i, time_s in enumerate(self.series.get("time_s", ())):
            link = [_cell(self.series[n][i, at]) for n in LINK_SERIES]
            for f, flow in enumerate(self.flows):
                rows.writerow([_cell(time_s), f, flow.cc, *(_cell(self.series[n][i, f]) for n in FLOW_SERIES), *link])
        write_atomic(path, text.getvalue())


FLOW_SERIES = (
    "cwnd_packets",
    "ssthresh_packets",
    "rtt_ms",
    "srtt_ms",
    "in_flight_packets",
    "pacing_mbps",
    "goodput_mbps",
)
LINK_SERIES = ("queue_packets", "queue_delay_ms", "queue_drops", "random_losses", "throughput_mbps")


def _cell(value: float) -> str:
    return f"{value:.9g}" if np.isfinite(value) else ""
