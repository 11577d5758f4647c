"""Results of flows and links: statistics over the measured window, and samples."""

from __future__ import annotations

from dataclasses import dataclass

from netbuf_gym.simulation.results.parts import NAN, NamedResults, SampledResult, format_quantity

__all__ = ["NAN", "FlowResult", "Flows", "LinkResult", "Links"]


@dataclass(frozen=True, kw_only=True, repr=False)
class FlowResult(SampledResult):
    """Statistics of one flow over the measured window; names ending in `_total` count from the start of the world.

    Rates are Mbit/s, times ms or s as the names say; NaN where nothing was measured. `series` has the samples over time.

    Attributes:
        name, cc: Name and congestion control in the scenario; `flow-N` for a flow without a name.
        start_s, completion_s: Scheduled start, and time at which the receiver had everything (NaN: not, or never).
        failed_s: Time at which the connection was given up, or reset (NaN: it was not).
        delivered_bytes: Bytes delivered in order to the receiving application.
        goodput_mbps: `delivered_bytes` over the whole window, whenever the flow started.
        packets_sent, packets_retransmitted: Data packets; the former counts the latter.
        queue_drops, random_losses: Data packets lost at full queues and at random.
        loss_rate: (queue_drops + random_losses) / packets_sent.
        marks: Data packets that arrived marked (ECN); `mark_responses`: window reductions in response to marks, which on
            plant="linux" are not known: NaN.
        rtt_mean_ms: Mean over the RTT samples of the window. `rtt_min_ms`: the least since the start of the world.
        cwnd_mean_packets: Time-averaged congestion window.
        timeouts, fast_recoveries, acks_received: Counts.
    """

    name: str
    cc: str
    start_s: float
    completion_s: float
    failed_s: float
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
    marks: int
    mark_responses: int
    packets_sent_total: int
    queue_drops_total: int

    def __repr__(self) -> str:
        """Return name, congestion control, goodput, RTT and losses."""
        rtt, lost = format_quantity(self.rtt_mean_ms, "ms"), format_quantity(self.loss_rate, "%", 100)
        return f"<{self.name} ({self.cc}): {format_quantity(self.goodput_mbps, 'Mbit/s')}, RTT {rtt}, lost {lost}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class LinkResult(SampledResult):
    """Statistics of one link over the measured window; names ending in `_total` count from the start of the world.

    `series` has the samples over time.

    Attributes:
        packets_in: Arrivals, dropped or not. `packets_out`: those that left the queue, a device's ring included.
        throughput_mbps: Transmitted rate, on the wire: of the packet that is in service at either end of the window
            the part that lies within it. Transmissions end at whole nanoseconds.
        utilisation: Capacity while the link transmitted, as a share of the capacity of the whole window, at most 1; NaN
            without a rate, or where all of the window is an outage.
        queue_delay_mean_ms, queue_delay_std_ms: Time in the queue without transmission, over the packets that left it.
        queue_mean_packets: Time-averaged, without the packet in service. `queue_max_packets_total`: since the start.
        queue_drops, random_losses, marks: Counts; marks are packets marked here (ECN).
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
    marks: int
    queue_drops_total: int
    queue_max_packets_total: int

    def __repr__(self) -> str:
        """Return name, throughput, utilisation, queueing and drops."""
        used = "" if self.utilisation != self.utilisation else f", used {format_quantity(self.utilisation, '%', 100)}"
        queueing = f"queueing {format_quantity(self.queue_delay_mean_ms, 'ms')}, {self.queue_drops} drops"
        return f"<{self.name}: {format_quantity(self.throughput_mbps, 'Mbit/s')}{used}, {queueing}>"


class Flows(NamedResults[FlowResult]):
    """Results of the flows, by index or by name."""

    __slots__ = ()
    what = "flow"


class Links(NamedResults[LinkResult]):
    """Results of the links, by index or by name."""

    __slots__ = ()
    what = "link"
