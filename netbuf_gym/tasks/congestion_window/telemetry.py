"""Telemetry and controls of a TCP sender."""

from __future__ import annotations

from dataclasses import replace

from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.telemetry import Field, TelemetrySchema

TELEMETRY = TelemetrySchema(
    version=1,
    fields=(
        Field("elapsed_s", "s", "length of the interval; 0 between two ACKs that arrive at one instant"),
        Field("ssthresh_bytes", "B", "slow-start threshold as last set; NaN while infinite"),
        Field("cwnd_bytes", "B", "congestion window in force at the end of the interval"),
        Field("mss_bytes", "B", "payload of a full segment"),
        Field("bytes_in_flight_sum", "B", "bytes in flight, summed over the ACKs of the interval"),
        Field("bytes_in_flight_mean", "B", "bytes in flight, mean over the ACKs; NaN without an ACK"),
        Field("segments_acked_sum", "1", "segments newly acknowledged"),
        Field("segments_acked_mean", "1", "segments newly acknowledged per ACK; NaN without an ACK"),
        Field("rtt_mean_s", "s", "mean of the round-trip samples; NaN without one"),
        Field("rtt_min_s", "s", "least round-trip sample of the interval; NaN without one"),
        Field("send_interval_mean_s", "s", "mean gap between sendings of consecutively acknowledged packets; NaN"),
        Field("receive_interval_mean_s", "s", "mean gap between ACK arrivals; NaN without two"),
        Field("throughput_bps", "bit/s", "bytes newly acknowledged or SACKed, over the interval; NaN if it has no length"),
        Field("goodput_bps", "bit/s", "bytes delivered in order, over the interval; NaN likewise", privileged=True),
        Field("packets_sent", "1", "data packets sent, retransmissions included"),
        Field("packets_lost", "1", "packets the sender marked lost"),
        Field("packets_retransmitted", "1", "data packets sent again"),
        Field("acks", "1", "ACKs received"),
        Field("timeouts", "1", "retransmission time-outs"),
        Field("in_flight_bytes", "B", "bytes in flight at the end of the interval"),
        Field("rtt_min_ever_s", "s", "least round-trip sample since the start; NaN before the first"),
        Field("queue_delay_mean_s", "s", "mean sojourn at the flow's tightest link; NaN without one", privileged=True),
        Field("queue_packets", "1", "packets queued at the flow's tightest link, of whichever flow", privileged=True),
        Field("queue_drops", "1", "data packets of the flow dropped by full queues, at all links of its path", privileged=True),
    ),
)

SENDER = AgentKind(
    name="sender",
    telemetry=TELEMETRY,
    controls=(Control("cwnd_bytes", "B", "congestion window, in force until a time-out or the next decision", 1.0, 2.0**40),),
    event="an ACK arrives at any of the world's agents; `interval_ns` is the longest wait",
    counters="a dict: now_s, start_s, delivered_bytes, packets_sent, rtt_count, rtt_sum_s, rtt_min_s, queue_drops, "
    "random_losses, timeouts since the reset, and of the slowest link on its path sojourn_sum_s and sojourn_count",
)


Range = tuple[float, float]

FINEST_SEGMENTS = 1 / 16
"""Least window in segments of senders that pace fine windows."""


def sender(
    paced: bool = False,
    slow_start: bool = False,
    latency_s: Range = (0.0, 0.0),
    jitter_s: Range = (0.0, 0.0),
    fine: bool = False,
) -> AgentKind:
    """Return the agent kind of senders with paced packets, an initial slow start, or decisions that take time.

    Args:
        paced: Whether packets leave at 1.2 windows in the least round trip so far, rather than as fast as the sender's device.
        slow_start: Whether the window grows by what is acknowledged (RFC 5681) until the first decision, a time-out, a round
            of which more than 2 % and at least 8 packets are lost (draft-ietf-ccwg-bbr), or eight round trips in a row that are
            longer than the least so far by an eighth, 4 to 16 ms (RFC 9406); then the threshold is known.
        latency_s: Range in seconds from which the decision latency of each sender of a world is drawn.
        jitter_s: Range in seconds from which each sender's largest additional latency is drawn; the additional latency of a
            decision is uniform from 0 to it.
        fine: Whether windows below two segments, down to `FINEST_SEGMENTS`, leave at one window in the smoothed round trip,
            where packets are paced; otherwise a window is of whole segments.
    """
    given = {"paced": float(paced), "slow_start": float(slow_start), "latency_s": latency_s[0], "latency_high_s": latency_s[1]}
    given |= {"jitter_s": jitter_s[0], "jitter_high_s": jitter_s[1], "fine": float(fine)}
    return replace(SENDER, parameters=given)
