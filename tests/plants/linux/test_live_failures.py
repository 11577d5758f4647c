"""Connections that fail on the live plant: those of the world's other flows go on."""

import math

import pytest

import netbuf_gym as nb
from netbuf_gym.scenarios import Flow, Link, LossSchedule, Scenario
from tests.helpers.machines import needs_live_worlds


@pytest.mark.slow
def test_a_flow_that_is_given_up_is_told_of_and_the_other_goes_on():
    """After time-outs of 0.2, 0.4, 0.8 and 1.6 s (`tcp_retries2` of 3)."""
    needs_live_worlds()
    dies = LossSchedule([0, 1, 99], [0, 1, 0])
    links = [
        Link(name="dies", rate_mbps=5, delay_ms=10, queue_packets=50, loss=dies),
        Link(name="lives", rate_mbps=5, delay_ms=10, queue_packets=50),
        Link(name="back", delay_ms=10),
    ]
    flows = [Flow(path=[link], return_path=["back"]) for link in ("dies", "lives")]
    world = Scenario(links=links, flows=flows, data_retries=3, duration_s=9)
    live, simulated = (nb.simulate(world, 1, plant=plant).flows for plant in ("linux", "sim"))
    assert live[0].failed_s == pytest.approx(simulated[0].failed_s, rel=0.1)
    assert live[0].delivered_bytes == pytest.approx(simulated[0].delivered_bytes, rel=0.05)
    assert math.isnan(live[1].failed_s) and live[1].goodput_mbps == pytest.approx(4.81, rel=0.02)
