"""The term `burst` of switches with several ports, whose queues it takes to be equally long."""

import numpy as np
import pytest

from netbuf_gym.tasks.queue_threshold import SwitchUtility
from tests.tasks.hand_made_switch import BUSY, telemetry, tracker


def burst(made, **fields):
    made.update(telemetry(**{**BUSY, **fields}))
    out = np.zeros((6, 1), np.float32)
    SwitchUtility(burst_weight=1, burst_packets=100)(made, out)
    return float(out[5, 0])


@pytest.mark.parametrize(
    ("world", "rooms"),
    [
        ({}, (600, 0)),  # 700 of what is free and held; 1 * 0.5 * 600 - 300
        ({"ports": 2}, (600, 150)),  # a port's queue holds 150, and the threshold is a port's
        ({"queue_cap": 130}, (30, -170)),
        ({"queue_cap": 130, "ports": 2}, (80, -20)),
    ],
)
def test_room_is_that_of_one_ports_queue(world, rooms):
    refused = sum(min(max(1 - room / 100, 0), 1) for room in rooms)
    assert burst(tracker(**world)) == pytest.approx(-refused * 0.1, abs=1e-6)
