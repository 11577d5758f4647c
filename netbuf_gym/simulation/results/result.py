"""Results of simulations: statistics of flows and links over the measured window, and time series."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios.traffic import FlowList
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.simulation.results import plots, tables
from netbuf_gym.simulation.results.flows import FlowResult, Flows, LinkResult, Links
from netbuf_gym.simulation.results.packets import PACKET, POINTS, PacketLog, format_csv, format_pcap, packets_table
from netbuf_gym.simulation.results.parts import NAN, NamedResults, Series, format_first, unique_names
from netbuf_gym.simulation.results.tables import FLOW_SERIES, LINK_SERIES, SWITCH_SERIES, TRAFFIC_SERIES
from netbuf_gym.simulation.results.traffic import (
    COMPLETED,
    OPENED,
    PAGE,
    ProbeResult,
    Switches,
    TrafficResult,
    mean,
    percentile,
)
from netbuf_gym.simulation.results.udp import UdpResults
from netbuf_gym.simulation.results.video import Videos
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.sums import sequential_sum

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = [
    "FLOW_SERIES",
    "LINK_SERIES",
    "SWITCH_SERIES",
    "TRAFFIC_SERIES",
    "FlowResult",
    "Flows",
    "LinkResult",
    "Links",
    "NamedResults",
    "Result",
    "Switches",
]

SCHEMA = "netbuf-gym/result/1"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """A finished simulation.

    Attributes:
        scenario, seed: Scenario and seed of the run.
        window_s: The measured window (from, to), seconds.
        flows: A `FlowResult` for each flow, by index or name; `flows[0].series` holds its samples.
        links: A `LinkResult` for each link, by index or name: `links["bottleneck"]`; `.series` holds its samples.
        bottleneck: Name of the bottleneck link.
        series: Samples over the whole run by name, or empty. `time_s` has shape (samples,); a sample's counts and
            means are of the interval that ends there. Of flows, shape (samples, flows): cwnd_packets,
            ssthresh_packets, rtt_ms, srtt_ms, in_flight_packets, pacing_mbps, goodput_mbps (delivered in order to the
            receiving application, which is much at once when a hole is filled), arrival_mbps (arrivals at the
            receiver in whatever order, duplicates included; never faster than the links). Of links, shape (samples,
            links): queue_packets, queue_delay_ms, queue_drops, random_losses, throughput_mbps. Of switches,
            shape (samples, switches, queues), over all ports: switch_packets, switch_bytes, switch_drops, and
            switch_threshold, which is that of the first port (in the switch's unit). Of traffic, shape (samples,):
            traffic_goodput_mbps (in order), traffic_arrival_mbps, flows_alive. NaN where nothing was measured, and for
            queues that a switch lacks.
        traffic: A `TrafficResult` of the finite flows; None without traffic.
        completions: The finite flows that completed, in order of completion, over the whole run: a structured array
            with the fields flow (counted from 0 in order of start), start_s, fct_s, size_bytes, sender, priority,
            ideal_s (`Scenario.ideal_s`: propagation there and back, and the bytes at the slowest link),
            slowdown (fct_s / ideal_s) and difference_s (fct_s - ideal_s). Shape (completed,).
        opened: All finite flows that started, in order: flow, start_s, sender, size_bytes, priority, received_bytes
            (in order, until the end). Shape (started,).
        pages: The pages that users of `WebSessions` got, in order of their last bytes, over the whole run: user, sender,
            start_s (the click), load_s (from then to the last byte of the last object), objects, size_bytes. Shape (loaded,).
        switches: A `SwitchResult` for each switch, by index or name.
        probes: A `ProbeResult` for each probe.
        udp: A `UdpResult` for each source of datagrams, by index or name.
        videos: A `VideoResult` for each flow with a video client, by index or by the flow's name.
        packet_log: The core's log of packets, of which `packets` is the table; None unless `simulate` was told to keep it.
    """

    scenario: Scenario
    seed: int
    window_s: tuple[float, float]
    flows: Flows
    links: Links
    bottleneck: str
    series: dict[str, np.ndarray]
    traffic: TrafficResult | None = None
    completions: np.ndarray = field(default_factory=lambda: np.zeros(0, COMPLETED))
    opened: np.ndarray = field(default_factory=lambda: np.zeros(0, OPENED))
    pages: np.ndarray = field(default_factory=lambda: np.zeros(0, PAGE))
    switches: Switches = field(default_factory=Switches)
    probes: tuple[ProbeResult, ...] = ()
    udp: UdpResults = field(default_factory=UdpResults)
    videos: Videos = field(default_factory=Videos)
    packet_log: PacketLog | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", Series(self.series))
        tables.distribute_series(self)

    def __repr__(self) -> str:
        """Return scenario, seed, and the results of flows and bottleneck, in a few lines."""
        start_s, end_s = self.window_s
        samples = f", {len(self.series['time_s'])} samples" if self.series else ""
        lines = [f"<Result of {self.scenario.name or 'a scenario'}, seed {self.seed}, {start_s:g} to {end_s:g} s{samples}"]
        if self.flows:
            lines += format_first(self.flows)
        if self.traffic is not None:
            lines.append(f"  {self.traffic!r}")
        lines += format_first(self.udp)
        lines += format_first(self.videos)
        lines.append(f"  {self.links[self.bottleneck]!r}")
        return "\n".join(lines) + ">"

    @cached_property
    def packets(self) -> np.ndarray:
        """Log of packets over the whole run, in order of time: a structured array, empty unless `simulate(..., packets=True)`.

        Fields: time_s; event ("sent", "received" at the other end, "dropped" at a queue, "lost" at random, "duplicated",
        "corrupted"); link (index of the link where it was neither sent nor received, else -1); flow (index; connections of the
        traffic are numbered after the flows, in order of their first packets; -1: a datagram's); udp (index of its source,
        negative for probes and flows); kind ("data", "fin": the last data, or the receiver's FIN, "syn", "syn-ack", "ack",
        "probe": of a closed window, "rst", "datagram"); to_sender; sequence (of the first byte: SYN 0, data from 1 on);
        payload_bytes, wire_bytes; acknowledgement (next byte expected), window_bytes (-1: no limit); stamp_s (the time stamp,
        when the packet set out; of an ACK the echoed one); ecn ("", "ECT0", "ECT1", "CE"); sack (up to three blocks, as pairs).
        Shape (rows,).
        """
        return np.zeros(0, PACKET) if self.packet_log is None else packets_table(self.packet_log)

    @property
    def flow_series(self) -> dict[str, dict[str, np.ndarray]]:
        """Series of each flow by name (with `#index` where two have the same), each as `pandas.DataFrame` takes it."""
        return {name: flow.series for name, flow in zip(unique_names(self.flows), self.flows, strict=True)}

    @property
    def link_series(self) -> dict[str, dict[str, np.ndarray]]:
        """Series of each link by name."""
        return {link.name: link.series for link in self.links}

    @property
    def goodput_mbps(self) -> float:
        """Total goodput of the flows, those of the traffic included."""
        return sequential_sum(flow.goodput_mbps for flow in self.flows) + (self.traffic.goodput_mbps if self.traffic else 0.0)

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
        """Jain's index of the flows' goodputs, 1/n to 1; NaN when nothing was delivered."""
        goodput = np.array([flow.goodput_mbps for flow in self.flows])
        squares = float(goodput @ goodput)
        return float(goodput.sum()) ** 2 / (len(goodput) * squares) if squares else NAN

    def completed(self, priority: int | None = None) -> np.ndarray:
        """Return the `completions` of the flows that started in the measured window, of one priority or of all (None)."""
        table = self.completions[self.completions["start_s"] >= self.window_s[0]]
        return table if priority is None else table[table["priority"] == priority]

    def flows_completed(self, priority: int | None = None) -> int:
        """Return the number of flows that started in the window and completed."""
        return len(self.completed(priority))

    def fct_mean_s(self, priority: int | None = None) -> float:
        """Return the mean completion time of the flows in `completed`; NaN without any."""
        return mean(self.completed(priority)["fct_s"])

    def fct_s(self, share: float, priority: int | None = None) -> float:
        """Return the completion time percentile `share` (0 to 100, nearest rank) of flows in `completed`; NaN without any."""
        return percentile(self.completed(priority)["fct_s"], share)

    def slowdown_mean(self, priority: int | None = None) -> float:
        """Return the mean slowdown (ratio) of the flows in `completed`; NaN without any."""
        return mean(self.completed(priority)["slowdown"])

    def slowdown(self, share: float = 99.0, priority: int | None = None) -> float:
        """Return the slowdown (ratio) percentile `share` (0 to 100, nearest rank; 100: the worst) of flows in `completed`."""
        return percentile(self.completed(priority)["slowdown"], share)

    def difference_s(self, share: float = 99.0, priority: int | None = None) -> float:
        """Return the slowdown defined as a difference to the ideal, as in the thesis on learned thresholds; see `slowdown`."""
        return percentile(self.completed(priority)["difference_s"], share)

    def page_load_s(self, share: float = 50.0) -> float:
        """Return the percentile `share` (0 to 100, nearest rank) of the load times of pages asked for in the window."""
        return percentile(self.pages["load_s"][self.pages["start_s"] >= self.window_s[0]], share)

    def flow_list(self) -> FlowList:
        """Return the finite flows that started, as a list that can be replayed here or elsewhere.

        Raises:
            ScenarioError: No finite flow started.
        """
        if not len(self.opened):
            raise ScenarioError("no finite flow started; valid: a world whose traffic opens flows before its end")
        return FlowList(**{name: self.opened[name] for name in ("start_s", "sender", "size_bytes", "priority")})

    def by_priority(self) -> list[dict[str, float]]:
        """Return counts, completion times and slowdowns of the finite flows, one row for each priority that occurs."""
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

    def to_dataframe(self, what: str = "flows") -> pandas.DataFrame:
        """Return a table as a pandas data frame.

        Args:
            what: "flows", "links": statistics over the window, one row each. "flow_series", "link_series",
                "switch_series": samples, one row per sample and flow, link, or queue of a switch; "traffic_series": one row
                per sample; "series": the table written by `write_csv`. "completions", "opened": finite flows; "pages": of web
                users; "priorities": `by_priority`. "queues": of switches. "probes": one row per packet of a probe that
                arrived. "udp": sources of datagrams. "videos", "chunks": of video clients.

        Raises:
            ConfigError: Another name, or a series of a simulation that took no samples.
            MissingExtraError: pandas is not installed (`pip install netbuf-gym[analysis]`).
        """
        return tables.make_dataframe(self, what)

    def plot(self, path: str | os.PathLike | None = None) -> Figure:
        """Draw the series over time.

        Panels show arrival rate, window and RTT of flows; arrival rate and flows alive of traffic; queues and drops of the
        bottlenecks; queues and thresholds of switches; and the capacity of the links.

        Args:
            path: File to write atomically (.png, .pdf, .svg); None: no file.

        Returns:
            The matplotlib figure.

        Raises:
            ConfigError: The result has no series, or the file format is unknown.
            MissingExtraError: matplotlib is not installed (`pip install netbuf-gym[plots]`).
            OSError: The file cannot be written.
        """
        return plots.plot(self, path)

    def to_dict(self, series: bool = True) -> dict:
        """Return a JSON-able form (but for NaN); without time series and single finite flows when `series` is False."""
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
        if self.udp:
            data["udp"] = [asdict(source) for source in self.udp]
        if self.videos:
            data["videos"] = [one.summary() | ({"chunk_table": one.chunk_table()} if series else {}) for one in self.videos]
        if series:
            data["series"] = {name: values.tolist() for name, values in self.series.items()}
            if self.traffic is not None:
                for name in ("completions", "opened", *(["pages"] if len(self.pages) else [])):
                    table = getattr(self, name)
                    data[name] = {column: table[column].tolist() for column in table.dtype.names}
        return data

    def write_json(self, path: str | os.PathLike[str], series: bool = True) -> None:
        """Write `to_dict` as JSON, NaN as null; the whole file or none.

        Raises:
            OSError: The file cannot be written.
        """
        write_json(path, self.to_dict(series))

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the time series, one row per sample and flow, or one per sample if there are only finite flows.

        Columns: time_s; flow (its index), cc, and the flow's series; its name; bottleneck, the name of the tightest link on the
        flow's own path, and that link's series as bottleneck_queue_packets and so on; repeated in each row the traffic's series
        and those of switches, SWITCH_packets_QUEUE and so on. Empty where nothing was measured.

        Raises:
            OSError: The file cannot be written.
        """
        table = tables.series_table(self)
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(table)
        rows.writerows(zip(*(_format_column(column) for column in table.values()), strict=True))
        write_atomic(path, text.getvalue())

    def write_flows_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the finite flows, one row each, as a flow list that `FlowList.read_csv` and ns-3 programs can replay.

        The last columns are received_bytes, fct_s, ideal_s and slowdown, the last three empty for incomplete flows.

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

    def write_packets_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `packets`, one row each, with links by name; what does not apply is empty.

        Raises:
            ConfigError: The simulation kept no log of packets.
            OSError: The file cannot be written.
        """
        self._require_packet_log()
        write_atomic(path, format_csv(self.packets, self.scenario))

    def write_pcap(self, path: str | os.PathLike[str], point: str = "sender") -> None:
        """Write a capture of all flows' packets for tcpdump, tshark and Wireshark: raw IPv4, headers only, nanoseconds.

        Flow i has the hosts 10.0.0.0 + i + 1 (sender) and 10.128.0.0 + i + 1, and ports 40000 and 5001.

        Args:
            path: File to write.
            point: Where the capture is taken: "sender" or "receiver", of every flow. Datagrams have no answers: at their
                senders they show as they set out, at their receivers as they arrive.

        Raises:
            ConfigError: The simulation kept no log of packets, or another point.
            OSError: The file cannot be written.
        """
        log = self._require_packet_log()
        write_atomic(path, format_pcap(log, check_choice("point", point, POINTS)))

    def _require_packet_log(self) -> PacketLog:
        if self.packet_log is None:
            raise ConfigError("packets = False in this simulation, which logged none; valid: simulate(..., packets=True)")
        return self.packet_log


def _format_column(column: np.ndarray) -> Sequence[str]:
    if column.dtype.kind != "f":
        return column.tolist()
    return [f"{value:.9g}" if finite else "" for value, finite in zip(column.tolist(), np.isfinite(column), strict=True)]
