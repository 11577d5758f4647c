"""Ways back that are slower than the ACKs of what comes forward: Linux' receiver, and filters of ACKs."""

import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import AckFilter, Link, dumbbell

THIN = {"rate_mbps": 10, "rtt_ms": 60, "return_rate_mbps": 0.1, "return_buffer_packets": 1000, "senders": ["newreno"]}


KERNEL = [  # goodput of Linux 6.18 on the live plant in 18 s, Mbit/s, and how far from it is near
    ({}, 5.49, 0.1),
    ({"return_rate_mbps": 0.05}, 3.46, 0.1),
    ({"return_rate_mbps": 0.2}, 6.75, 0.1),
    ({"return_rate_mbps": 0.5}, 9.55, 0.02),
    ({"senders": ["cubic"]}, 5.39, 0.1),
]


def run(**changes):
    """Return the flow, and the link back."""
    result = nb.simulate(dumbbell(**{**THIN, "duration_s": 18, **changes}), seed=1)
    return result.flows[0], result.links["return"]


@pytest.mark.parametrize(("changes", "goodput_mbps", "tolerance"), KERNEL)
def test_a_thin_way_back_costs_what_it_costs_the_kernel(changes, goodput_mbps, tolerance):
    flow, _ = run(**changes)
    assert flow.goodput_mbps == pytest.approx(goodput_mbps, rel=tolerance)


def test_a_filter_gives_a_flow_its_rate_back_and_its_round_trips():
    plain, _ = run()
    for own in (AckFilter(), AckFilter(aggressive=True), AckFilter(aggressive=True, keep_one_of=10)):
        flow, back = run(return_discipline=own)
        assert flow.goodput_mbps > 7.5 > plain.goodput_mbps + 2 and flow.rtt_mean_ms < plain.rtt_mean_ms / 5
        assert back.queue_drops > 0 and back.packets_in >= back.packets_out + back.queue_drops


def test_thinning_halves_the_acks_that_arrive_at_most():
    flow, back = run(return_discipline=AckFilter(aggressive=True, keep_one_of=2))
    assert back.packets_in / 4 < back.queue_drops <= back.packets_in / 2
    assert flow.acks_received >= back.packets_in / 2 - 5


@pytest.mark.parametrize("keep_one_of", [1, 1001, 2.5])
def test_what_is_kept_is_checked(keep_one_of):
    with pytest.raises(ScenarioError, match=rf"ack_filter.keep_one_of = {keep_one_of} .*valid: 2\.\.1000"):
        AckFilter(keep_one_of=keep_one_of)


def test_a_way_back_has_its_discipline():
    world = dumbbell(**THIN, return_discipline={"name": "ack_filter", "aggressive": True})
    assert world.links[1].discipline == AckFilter(aggressive=True) and world.links[0].discipline is None
    assert Link(name="a", discipline="ack_filter").discipline == AckFilter()
