"""On-off applications without a rate write, and leave in the socket, as much on the kernel as in the simulator."""

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.scenarios import OnOff, dumbbell
from tests.helpers.busy_machine import undisturbed
from tests.helpers.machines import needs_live_worlds


@pytest.mark.parametrize(
    ("rate_mbps", "rtt_ms", "on_s", "off_s"),
    [
        (10, 40, 0.3, 0.7),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [(10, 40, 1, 1), (5, 20, 0.5, 1.5), (20, 100, 0.8, 0.4)]),
    ],
)
@undisturbed
def test_as_much_goes_through_as_in_the_simulator(rate_mbps, rtt_ms, on_s, off_s):
    needs_live_worlds()
    world = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=200,
        senders=["cubic"],
        app=OnOff(on_s=on_s, off_s=off_s),
        duration_s=6,
    )
    simulated, live = (
        np.median([nb.simulate(world, 1 + i, plant=plant).flows[0].goodput_mbps for i in range(repeats)])
        for plant, repeats in (("sim", 1), ("linux", 3))
    )
    assert live == pytest.approx(simulated, rel=0.05)
