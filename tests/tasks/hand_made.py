"""Telemetry made by hand, for golden values."""

import numpy as np

from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY

MSS = 1448
WORLD = {"capacity_bps": 1e7, "share_bps": 1e7, "base_rtt_s": 0.05, "initial_window": 10 * MSS, "highest_window": 100 * MSS}
WORLD |= {"mss_bytes": MSS, "first_beside": 0}


def telemetry(rows=1, **fields):
    """An interval of 0.1 s in which nothing was measured but `fields`."""
    array = np.full((rows, len(TELEMETRY.fields)), np.nan)
    zero = ("bytes_in_flight_sum", "segments_acked_sum", "throughput_bps", "goodput_bps", "packets_sent", "packets_lost")
    for name in (*zero, "packets_retransmitted", "acks", "timeouts", "in_flight_bytes", "queue_packets", "queue_drops"):
        array[:, TELEMETRY.index(name)] = 0
    for name, value in {"elapsed_s": 0.1, "mss_bytes": MSS, "cwnd_bytes": 10 * MSS, **fields}.items():
        array[:, TELEMETRY.index(name)] = value
    return array


def acknowledged(segments=10, rtt_s=0.05, rows=1, **fields):
    """An interval after the slow start in which segments were acknowledged, each by an ACK, after such round trips."""
    own = {"ssthresh_bytes": 20 * MSS, "segments_acked_sum": segments, "acks": segments, "throughput_bps": segments * MSS * 80}
    own |= {"rtt_mean_s": rtt_s, "rtt_min_s": rtt_s, "receive_interval_mean_s": 0.1 / segments}
    return telemetry(rows, **{**own, **fields})


def tracker(rows=1, task=None, **world):
    made = (CongestionWindow() if task is None else task).make_tracker(rows, 0.1)
    defaults = {"capacity_bps": 4.6336e6, "share_bps": 4.6336e6, "base_rtt_s": 0.05, "initial_window": 10 * MSS}
    defaults |= {"highest_window": 100 * MSS, "mss_bytes": MSS, "first_beside": range(rows)}
    made.reset(slice(0, rows), **(defaults | world))
    return made


def free(**options):
    """Any factor, no cap, and a tracker of its own."""
    task = CongestionWindow(**{"actions": "continuous", "clamp": "none"} | options)
    return task, tracker(task=task)


def decided(task, made, *actions):
    """Windows in segments, one for each row."""
    given = np.repeat(np.array(actions), made.rows // len(actions), axis=0)
    return (task.decode(task.check_actions(given, made.rows), made, np.empty((made.rows, 1)))[:, 0] / MSS).tolist()


def after_two_intervals():
    """10 then 20 segments acknowledged, RTT 60 then 100 ms, window doubled, a fifth of the second lot lost.

    The ACKs of the second interval span 90 ms from the last one of the first: a delivery rate of 2.5742 Mbit/s.
    """
    made = tracker()
    first = {"segments_acked_sum": 10, "throughput_bps": 1.1584e6, "acks": 5, "in_flight_bytes": 10 * MSS}
    made.update(telemetry(rtt_mean_s=0.06, rtt_min_s=0.05, rtt_min_ever_s=0.048, **first))
    second = {"segments_acked_sum": 20, "throughput_bps": 2.3168e6, "acks": 10, "in_flight_bytes": 10 * MSS}
    second |= {"cwnd_bytes": 20 * MSS, "packets_lost": 5, "receive_interval_mean_s": 0.009}
    made.update(telemetry(rtt_mean_s=0.1, rtt_min_s=0.075, rtt_min_ever_s=0.048, **second))
    return made
