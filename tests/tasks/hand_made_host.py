"""Telemetry of hosts made by hand, for golden values."""

import numpy as np

from netbuf_gym.tasks.host_buffers.settings import NAMED
from netbuf_gym.tasks.host_buffers.telemetry import CONTROLS, TELEMETRY
from netbuf_gym.tasks.host_buffers.tracker import Tracker

COUNTS = (
    *("sent_bytes", "received_bytes", "total_throughput_bps", "packets_sent", "packets_retransmitted", "connections"),
    *("connections_opened", "connections_closed", "flows_sending", "rwnd_limited_s", "sndbuf_limited_s", "busy_s"),
    *("unsent_bytes", "in_flight_bytes", "send_queued_bytes", "receive_queued_bytes", "memory_bytes", "memory_pressure"),
    *("ring_queue_packets", "ring_drops", "interrupted_s"),
)


def settings(ring=256, tcp=None, **changes):
    """Linux's own in the order of controls; `tcp`: both maxima."""
    linux = NAMED["autotuning"]
    values = {
        "ring_packets": ring,
        "socket_bytes": linux.socket_bytes,
        "tcp_rmem_default_bytes": linux.rmem_default_bytes,
        "tcp_rmem_max_bytes": linux.rmem_max_bytes if tcp is None else tcp,
        "tcp_wmem_default_bytes": linux.wmem_default_bytes,
        "tcp_wmem_max_bytes": linux.wmem_max_bytes if tcp is None else tcp,
        "limit_output_bytes": 2.0**20,
        "notsent_lowat_bytes": 2.0**26,
        "window_clamp_bytes": 2.0**26,
        "congestion_control": 0.0,
        "slow_start": np.nan,
        **changes,
    }
    return [float(values[control.name]) for control in CONTROLS]


def telemetry(rows=1, **fields):
    """An interval of 3 s in which nothing was sent, and nothing was measured but `fields`."""
    array = np.full((rows, len(TELEMETRY.fields)), np.nan)
    for name in COUNTS:
        array[:, TELEMETRY.index(name)] = 0
    for name, value in {"elapsed_s": 3.0, **fields}.items():
        array[:, TELEMETRY.index(name)] = value
    return array


def sent(mbps=8.0, rtt_s=0.1, rows=1, **fields):
    """An interval in which one connection sent at this rate, at 100 ms of which none is queueing."""
    own = {
        "sent_bytes": mbps * 3e6 / 8,
        "throughput_bps": mbps * 1e6,
        "total_throughput_bps": mbps * 1e6,
        "delivery_rate_bps": mbps * 1e6,
        "latency_s": rtt_s,
        "rtt_min_s": 0.1,
        "loss": 0.0,
        "packets_sent": mbps * 3e6 / 8 / 1448,
        "connections": 1,
        "flows_sending": 1,
        "busy_s": 3.0,
        "cwnd_bytes": 200_000,
        "in_flight_bytes": 100_000,
        "send_buffer_bytes": 400_000,
        "receive_buffer_bytes": 131_072,
        "memory_bytes": 300_000,
    }
    return telemetry(rows, **{**own, **fields})


def tracker(rows=1, tcp=None, **world):
    made = Tracker(rows, 3.0)
    defaults = {"capacity_bps": [8e6] * rows, "share_bps": [8e6] * rows, "base_rtt_s": [0.1] * rows}
    made.reset(slice(0, rows), **({"settings": [settings(tcp=tcp)] * rows} | defaults | world))
    return made
