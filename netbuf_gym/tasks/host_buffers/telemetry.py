"""Telemetry of a host's TCP connections, and controls of its buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.telemetry import Field, TelemetrySchema
from netbuf_gym.tasks.host_buffers.settings import CHOICES

MOST_BYTES = 2.0**31
"""Upper limit of sizes, above that of any buffer of Linux."""

_NUMBERED = ", ".join(f"{number} {name}" for number, name in enumerate(CHOICES))

TELEMETRY = TelemetrySchema(
    version=1,
    fields=(
        Field("elapsed_s", "s", "length of the interval"),
        Field("sent_bytes", "B", "payload newly acknowledged, over all connections"),
        Field("received_bytes", "B", "payload in order that the host's applications got, over all connections"),
        Field(
            "throughput_bps",
            "bit/s",
            "payload acknowledged over the time in the interval that the connection was there, mean over the connections with "
            "something to send; NaN without one",
        ),
        Field("total_throughput_bps", "bit/s", "payload acknowledged over all connections, over the interval"),
        Field("latency_s", "s", "round-trip time, mean over the connections of each one's mean; NaN without a sample"),
        Field("rtt_min_s", "s", "least round-trip time of a connection so far, mean over the connections; NaN without one"),
        Field("loss", "1", "packets sent again over packets sent, mean over the connections; NaN where none was sent"),
        Field("packets_sent", "1", "data packets sent, those sent again included"),
        Field("packets_retransmitted", "1", "data packets sent again"),
        Field("connections", "1", "established at the end of the interval"),
        Field("connections_opened", "1", "connections that were opened in the interval"),
        Field("connections_closed", "1", "connections that ended in the interval"),
        Field("flows_sending", "1", "connections that had something to send in the interval"),
        Field("rwnd_limited_s", "s", "time for which the other side's window held a connection up, sum over the connections"),
        Field("sndbuf_limited_s", "s", "time for which its own send buffer held a connection up, sum over the connections"),
        Field("busy_s", "s", "time with data unacknowledged or unsent, sum over the connections"),
        Field("cwnd_bytes", "B", "congestion window, mean over the connections with something to send; NaN without one"),
        Field("unsent_bytes", "B", "written by the applications and not sent yet, over all connections"),
        Field("in_flight_bytes", "B", "sent and not acknowledged, over all connections"),
        Field("send_buffer_bytes", "B", "limit of the send buffer (sk_sndbuf), mean over connections that sent; or NaN"),
        Field("receive_buffer_bytes", "B", "limit of the receive buffer (sk_rcvbuf), mean over those that received; or NaN"),
        Field("send_queued_bytes", "B", "memory that send buffers hold, overhead included, over all connections"),
        Field("receive_queued_bytes", "B", "memory that receive buffers hold, overhead included, over all connections"),
        Field("memory_bytes", "B", "TCP memory of the host (`mem` of sockstat), mean over the interval"),
        Field("memory_limit_bytes", "B", "what TCP memory may be at most (the third number of tcp_mem); NaN without a limit"),
        Field("memory_pressure", "1", "share of the interval under memory pressure"),
        Field("ring_packets", "1", "size of the ring in force at the end of the interval; NaN without a ring"),
        Field("socket_bytes", "B", "cap of explicit socket buffers (net.core.{r,w}mem_max) in force"),
        Field("tcp_rmem_default_bytes", "B", "initial receive buffer of connections (tcp_rmem[1]) in force"),
        Field("tcp_rmem_max_bytes", "B", "largest receive buffer that autotuning makes (tcp_rmem[2]) in force"),
        Field("tcp_wmem_default_bytes", "B", "initial send buffer of connections (tcp_wmem[1]) in force"),
        Field("tcp_wmem_max_bytes", "B", "largest send buffer that autotuning makes (tcp_wmem[2]) in force"),
        Field("ring_queue_packets", "1", "packets in the ring at the end of the interval; NaN without a ring"),
        Field("ring_drops", "1", "packets that found the ring full; NaN without a ring"),
        Field("interrupted_s", "s", "time for which nothing could leave, as the ring was being resized"),
        Field(
            "delivery_rate_bps", "bit/s", "the kernel's estimate of a connection's delivery rate, the greatest; NaN without one"
        ),
    ),
)

CONTROLS = (
    Control("ring_packets", "1", "size of the ring; setting another one lets nothing pass for a while", 1.0, 2.0**20),
    Control("socket_bytes", "B", "cap of explicit socket buffers, of connections that are opened from now on", 1.0, MOST_BYTES),
    Control("tcp_rmem_default_bytes", "B", "initial receive buffer of connections opened from now on", 1.0, MOST_BYTES),
    Control("tcp_rmem_max_bytes", "B", "largest receive buffer that autotuning makes from now on", 1.0, MOST_BYTES),
    Control("tcp_wmem_default_bytes", "B", "initial send buffer of connections opened from now on", 1.0, MOST_BYTES),
    Control("tcp_wmem_max_bytes", "B", "largest send buffer that autotuning makes from now on", 1.0, MOST_BYTES),
    Control("limit_output_bytes", "B", "what a connection may have in the host's queues below TCP", 1.0, MOST_BYTES),
    Control("notsent_lowat_bytes", "B", "unsent data from which on a connection takes no more to write", 1.0, 2.0**32),
    Control("window_clamp_bytes", "B", "what any connection of the host advertises at most", 1.0, MOST_BYTES),
    Control(
        "congestion_control",
        "1",
        f"number of the congestion control of what the host sends, connections that stand included: {_NUMBERED}",
        0.0,
        len(CHOICES) - 1.0,
    ),
    Control(
        "slow_start", "1", "1: what was chosen starts anew, with a slow start, as by two calls of TCP_CONGESTION", 0.0, 1.0
    ),
)

HOST = AgentKind(
    name="host",
    telemetry=TELEMETRY,
    controls=CONTROLS,
    counters="a dict of each host: now_s, sent_bytes, received_bytes, flows_completed, packets_sent, packets_retransmitted, "
    "rtt_count, rtt_sum_s, rtt_min_s, memory_mean_bytes, memory_max_bytes, ring_mean_packets since the reset",
)


def make_choosing_kind(choices: Sequence[str]) -> AgentKind:
    """Return the kind of hosts that choose their congestion control among some of `CHOICES`, on which the plant agrees."""
    return replace(HOST, parameters={"choices": sum(1 << CHOICES.index(name) for name in choices)})
