"""What a receiver knows of the queue in whole worlds: clocks apart, and routes that change."""

from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.scenarios import route_change
from netbuf_gym.scenarios.native import build_world_config


@pytest.mark.parametrize("change_ms", [0, 30, -30])
def test_the_queue_is_known_15_s_after_a_route_change(change_ms):
    """Against what the last packet that had arrived waited, as the link counted it; 50 ms of offset, 50 ppm of drift."""
    tick_s, one_way_s, cases = 0.01, 0.05, [(1, 50), (1, -50), (1000, 50), (1000, -50)]
    delays = route_change(delay_ms=50, change_ms=change_ms, at_s=10) if change_ms else None
    batch = _core.Batch(len(cases), 1, 1, kind="receiver")
    for index, (unit, ppm) in enumerate(cases):
        world = nb.scenarios.dumbbell(rtt_ms=100, buffer_packets=500, duration_s=40, senders=["receiver_driven"], delays=delays)
        clock = {"clock_offset_ms": 50, "clock_drift_ppm": ppm, "timestamp_resolution_us": unit}
        flow = replace(world.flows[0], receiver="agent", **clock)
        batch.reset(index, build_world_config(replace(world, flows=(flow,))), 1)
    columns = [batch.fields.index(name) for name in ("queue_delay_s", "true_queue_delay_mean_s")]
    rows = []
    for _ in range(3500):
        batch.advance(round(tick_s * 1e9))
        rows.append(batch.telemetry[:, 0, columns].copy())
    estimate, truth = np.moveaxis(np.array(rows), 2, 0)
    late = round((one_way_s + change_ms * 1e-3) / tick_s)
    errors = np.abs(estimate[2500 + late :] - truth[2500:-late])
    medians = np.nanmedian(errors, axis=0)
    assert (medians[:2] < 2e-3).all() and (medians[2:] < 3e-3).all()
    assert np.nanmax(truth[2500:]) > 0.02  # there is a queue to know
