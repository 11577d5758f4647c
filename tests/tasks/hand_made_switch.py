"""Telemetry of a switch made by hand, for golden values: two queues, 10 Mbit/s, 1000 packets of 1500 bytes."""

import numpy as np

from netbuf_gym.tasks.queue_threshold.telemetry import switch_telemetry
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker

NOTHING = ("worst_difference_s", "worst_ratio", "queue_delay_mean_s", "at_")


def telemetry(rows=1, queues=2, **fields):
    """An interval of 0.1 s in which nothing happened but `fields`."""
    schema = switch_telemetry(queues)
    array = np.zeros((rows, len(schema.fields)))
    for column, name in enumerate(schema.names):
        if name.startswith(NOTHING):
            array[:, column] = np.nan
    quiet = {"elapsed_s": 0.1, "capacity": 1000, "free": 1000, "free_fraction": 1}
    quiet |= {f"alpha_{q}": 1 for q in range(queues)}
    for name, value in {**quiet, **fields}.items():
        array[:, schema.index(name)] = value
    return array


def tracker(rows=1, queues=2, **world):
    made = SwitchTracker(rows, queues)
    defaults = {"capacity_bps": 10e6, "capacity": 1000, "in_bytes": False, "packet_bytes": 1500}
    made.reset(slice(0, rows), **(defaults | {"alphas": (1.0,) * queues, "betas": (1.0, 0.5)[:queues]} | world))
    return made


BUSY = {
    "free": 600,
    "free_fraction": 0.6,
    "packets_received": 80,
    "delivered_bytes": 100_000,
    "flows_started": 3,
    "flows_completed": 2,
    "worst_difference_s": 0.5,
    "worst_ratio": 4.0,
    "packets_dropped": 9,
    "alpha_0": 8.0,
    "queue_packets_0": 100,
    "queue_bytes_0": 150_000,
    "queue_packets_1": 300,
    "queue_bytes_1": 450_000,
    "queue_bytes_min_0": 25_000,
    "queue_bytes_min_1": 6_000,
    "syns_0": 3,
    "flows_opened_0": 2,
    "flows_closed_0": 1,
    "queue_packets_max_0": 250,
    "queue_packets_max_1": 360,
    "arrivals_0": 100,
    "arrivals_1": 25,
    "drops_1": 9,
    "drained_bytes_0": 75_000,
    "drained_bytes_1": 45_000,
    "queue_delay_mean_s_0": 0.1,
    "queue_delay_mean_s_1": 0.3,
    "flows_completed_0": 2,
    "ratio_sum_0": 6.0,
    "log_ratio_sum_0": np.log(8.0),
    "worst_ratio_0": 4.0,
    "at_free_fraction": 0.7,
    "at_flows_completed": 2,
    "at_packets_dropped": 5,
    "at_elapsed_s": 0.05,
    "at_drained_bytes_0": 25_000,
    "at_drained_bytes_1": 12_500,
}
"""Flows of ratios 2 and 4 completed, the last at half the interval; 80 % of what the port can send was sent of queue 0's."""
