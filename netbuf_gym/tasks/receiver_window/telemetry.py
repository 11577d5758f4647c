"""Telemetry schema and controls of a TCP receiver."""

from __future__ import annotations

from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.telemetry import Field, TelemetrySchema

TELEMETRY = TelemetrySchema(
    version=1,
    fields=(
        Field("elapsed_s", "s", "length of the interval"),
        Field("received_bytes", "B", "payload that arrived, in whatever order, duplicates included"),
        Field("delivered_bytes", "B", "payload that the application could read in order"),
        Field("packets_received", "1", "data packets that arrived"),
        Field("receive_rate_bps", "bit/s", "payload that arrived, over the interval; NaN if it has no length"),
        Field("window_bytes", "B", "receive window as decided, at the end of the interval"),
        Field("advertised_bytes", "B", "window that the last ACK advertised; NaN before the first"),
        Field("buffered_bytes", "B", "held at the receiver: unread, or out of order"),
        Field("queue_delay_last_s", "s", "one-way queueing delay of the last packet; NaN without one"),
        Field("queue_delay_s", "s", "one-way queueing delay at the end of the interval, filtered; NaN before the first packet"),
        Field("queue_delay_mean_s", "s", "one-way queueing delay, mean over the packets; NaN without one"),
        Field("queue_delay_min_s", "s", "likewise, the least; NaN without one"),
        Field("queue_delay_max_s", "s", "likewise, the greatest; NaN without one"),
        Field("delay_gradient", "1", "seconds of one-way delay per second; NaN where it cannot be told"),
        Field("rtt_s", "s", "round-trip time as the receiver measures it by time stamps; NaN before the first"),
        Field("rtt_min_s", "s", "least round-trip time that it has measured; NaN before the first"),
        Field("packets_missing", "1", "packets newly found missing between others"),
        Field("packets_repeated", "1", "packets of an old sequence number with a newer stamp: sent again"),
        Field("silence_s", "s", "time since the last data packet, at the end of the interval; NaN before the first"),
        Field("longest_gap_s", "s", "longest time between two data packets that ends in the interval; NaN without one"),
        Field("k", "1", "gain of Nuwa's rule in force"),
        Field("target_delay_s", "s", "target of Nuwa's rule in force"),
        Field("bdp_gain", "1", "window in products of rate and round trip as measured, as decided; 0 while another rule runs"),
        Field("mss_bytes", "B", "payload of a full segment"),
        Field("goodput_bps", "bit/s", "bytes delivered in order, over the interval; NaN if it has no length", privileged=True),
        Field("true_queue_delay_mean_s", "s", "mean sojourn at the flow's tightest link; NaN without one", privileged=True),
        Field("queue_packets", "1", "packets queued at the flow's tightest link, of whichever flow", privileged=True),
        Field("queue_drops", "1", "data packets of the flow dropped by full queues, at all links of its path", privileged=True),
        Field("packets_sent", "1", "data packets sent, retransmissions included", privileged=True),
        Field("packets_lost", "1", "packets that the sender marked lost", privileged=True),
        Field("cwnd_bytes", "B", "the sender's congestion window at the end of the interval", privileged=True),
    ),
)

RECEIVER = AgentKind(
    name="receiver",
    telemetry=TELEMETRY,
    controls=(
        Control("k", "1", "gain of Nuwa's rule, which runs on every ACK; 0: the rule leaves the window alone", 0.0, 64.0),
        Control("target_delay_s", "s", "queueing delay that Nuwa's rule aims at", 0.0005, 2.0),
        Control("window_bytes", "B", "receive window from now on", 1.0, 2.0**40),
        Control("bdp_gain", "1", "window in products of rate and round trip as measured, k segments more; 0: off", 0.0, 16.0),
    ),
    event="a data packet arrives at any of the world's agents; `interval_ns` is the longest wait",
    counters="a dict of each agent's flow: now_s, start_s, delivered_bytes, packets_sent, rtt_count, rtt_sum_s, rtt_min_s, "
    "queue_drops, random_losses, timeouts since the reset, and of the slowest link on its path sojourn_sum_s and sojourn_count",
)
