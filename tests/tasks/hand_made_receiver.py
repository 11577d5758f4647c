"""Telemetry of receivers made by hand, for golden values."""

import numpy as np

from netbuf_gym.tasks.receiver_window.telemetry import TELEMETRY
from netbuf_gym.tasks.receiver_window.tracker import Tracker

MSS = 1448
COUNTS = (
    *("received_bytes", "delivered_bytes", "packets_received", "receive_rate_bps", "buffered_bytes", "packets_missing"),
    *("packets_repeated", "goodput_bps", "queue_packets", "queue_drops", "packets_sent", "packets_lost"),
)


def telemetry(rows=1, **fields):
    """An interval of 0.1 s in which nothing arrived and nothing was measured but `fields`."""
    array = np.full((rows, len(TELEMETRY.fields)), np.nan)
    for name in COUNTS:
        array[:, TELEMETRY.index(name)] = 0
    for name, value in {"elapsed_s": 0.1, "mss_bytes": MSS, **fields}.items():
        array[:, TELEMETRY.index(name)] = value
    return array


def arrived(packets=10, delay_s=0.0, rows=1, **fields):
    """An interval in which packets arrived, each delayed by as much in the bottleneck's queue; round trips of 50 ms beside."""
    own = {
        "received_bytes": packets * MSS,
        "delivered_bytes": packets * MSS,
        "packets_received": packets,
        "receive_rate_bps": packets * MSS * 80,
        "goodput_bps": packets * MSS * 80,
        "packets_sent": packets,
        "rtt_s": 0.05 + delay_s,
        "rtt_min_s": 0.05,
        "true_queue_delay_mean_s": delay_s,
        "silence_s": 0.01,
        "longest_gap_s": 0.01,
        "delay_gradient": 0.0,
        **{f"queue_delay_{of}s": delay_s for of in ("", "last_", "mean_", "min_", "max_")},
    }
    return telemetry(rows, **{**own, **fields})


def tracker(rows=1, drain=True, long_memory=False, **world):
    made = Tracker(rows, 0.1, drain, long_memory)
    defaults = {"capacity_bps": 4.6336e6, "share_bps": 4.6336e6, "base_rtt_s": 0.05, "start_s": 0.0, "mss_bytes": MSS}
    made.reset(slice(0, rows), **(defaults | {"k": 2.0, "target_s": 0.075, "first_beside": range(rows)} | world))
    return made
