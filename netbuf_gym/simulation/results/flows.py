"""What a simulation gives back about flows and links: statistics over the measured window, and their samples."""

from __future__ import annotations

from dataclasses import dataclass

from netbuf_gym.simulation.results.parts import NAN, Named, Sampled, said

__all__ = ["NAN", "FlowResult", "Flows", "LinkResult", "Links"]


@dataclass(frozen=True, kw_only=True, repr=False)
class FlowResult(Sampled):
    """One flow over the measured window; names ending in `_total` count from the start of the world.

    Rates are Mbit/s, times ms or s as the names say; NaN where nothing was measured. `series` has its samples over time.

    Attributes:
        name, cc: As in the scenario; `flow-N` for a flow without a name.
        start_s, completion_s: When it was to start, and when its receiver had everything (NaN: not, or never).
        delivered_bytes: In order, to the receiving application.
        goodput_mbps: `delivered_bytes` over the whole window, whenever the flow started.
        packets_sent, packets_retransmitted: Data packets; the former counts the latter.
        queue_drops, random_losses: Data packets lost at full queues and at random.
        loss_rate: (queue_drops + random_losses) / packets_sent.
        marks: Data packets that arrived marked (ECN); `mark_responses`: how often the sender gave way to marks. On
            plant="linux" neither is known: NaN.
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
    marks: int
    mark_responses: int
    packets_sent_total: int
    queue_drops_total: int

    def __repr__(self) -> str:
        """Name, congestion control, goodput, RTT and losses."""
        rtt, lost = said(self.rtt_mean_ms, "ms"), said(self.loss_rate, "%", 100)
        return f"<{self.name} ({self.cc}): {said(self.goodput_mbps, 'Mbit/s')}, RTT {rtt}, lost {lost}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class LinkResult(Sampled):
    """One link over the measured window; names ending in `_total` count from the start of the world.

    `series` has its samples over time.

    Attributes:
        packets_in: Arrivals, dropped or not. `packets_out`: those that left the queue, a device's ring included.
        throughput_mbps: What was transmitted, on the wire: of the packet that is in service at either end of the window
            the part that lies within it. Transmissions end at whole nanoseconds.
        utilisation: What the rate could have carried while the link transmitted, as a share of what it could have carried
            in all, at most 1; NaN without a rate, or where all of the window is an outage.
        queue_delay_mean_ms, queue_delay_std_ms: Time in the queue without transmission, over the packets that left it.
        queue_mean_packets: Over time, without the packet in service. `queue_max_packets_total`: since the start.
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
        """Name, throughput, use, queueing and drops."""
        used = "" if self.utilisation != self.utilisation else f", used {said(self.utilisation, '%', 100)}"
        queueing = f"queueing {said(self.queue_delay_mean_ms, 'ms')}, {self.queue_drops} drops"
        return f"<{self.name}: {said(self.throughput_mbps, 'Mbit/s')}{used}, {queueing}>"


class Flows(Named[FlowResult]):
    """The flows' results, by index or by name."""

    __slots__ = ()
    what = "flow"


class Links(Named[LinkResult]):
    """The links' results, by index or by name."""

    __slots__ = ()
    what = "link"
