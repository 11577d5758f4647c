"""Ways back that are slower than the ACKs of what comes forward: Linux' receiver, and filters of ACKs."""

import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import AckFilter, Link, dumbbell

THIN = {"rate_mbps": 10, "rtt_ms": 60, "return_rate_mbps": 0.1, "return_buffer_packets": 1000, "senders": ["newreno"]}


KERNEL = [  # goodput of Linux 6.18 on the live plant in 18 s, Mbit/s: medians of three runs or more
    ({}, 5.49),
    ({"return_rate_mbps": 0.05}, 3.46),
    ({"return_rate_mbps": 0.2}, 6.66),
    ({"return_rate_mbps": 0.5}, 9.55),
    ({"senders": ["cubic"]}, 5.39),
]
PHASES_S = (0, 0.25e-3, 0.5e-3, 0.75e-3)
"""Starts within a millisecond, the unit of time stamps: where in it packets fall decides on early rounds."""

KERNEL_ACKS = [  # of two of its runs: how many segments an ACK is for, and up to which, before the queue overflows
    (0.2, 0, [(1, 22), (2, 32), (1, 64), (2, 72), (1, 118), (2, 152), (1, 362), (2, 564), (1, 773)]),
    (0.1, 0.25e-3, [(1, 22), (2, 32), (1, 64), (2, 72), (1, 126), (2, 246)]),
]
KERNEL_WINDOWS = [34, 35, 37, 38, 39, *22 * [40], 41, 43, 44, 45, 47, 48, 50, 51, 53, 54]
"""Of its first ACKs, in units of 2048 bytes, the scale of a receive buffer that may reach 64 MiB."""


def run(**changes):
    """Return the flow, and the link back."""
    result = nb.simulate(dumbbell(**{**THIN, "duration_s": 18, **changes}), seed=1)
    return result.flows[0], result.links["return"]


@pytest.mark.parametrize(("changes", "goodput_mbps"), KERNEL)
def test_a_thin_way_back_costs_what_it_costs_the_kernel(changes, goodput_mbps):
    ours = [run(**changes, start_s=[start])[0].goodput_mbps for start in PHASES_S]
    off = [abs(goodput - goodput_mbps) / goodput_mbps for goodput in ours]
    assert min(off) < 0.03 and max(off) < 0.12


@pytest.mark.parametrize(("return_rate_mbps", "start_s", "expected"), KERNEL_ACKS)
def test_acks_are_the_kernels_one_by_one(return_rate_mbps, start_s, expected):
    world = dumbbell(**{**THIN, "return_rate_mbps": return_rate_mbps, "start_s": [start_s], "duration_s": 1.6})
    packets = nb.simulate(world, seed=1, packets=True).packets
    acks = packets[(packets["kind"] == "ack") & packets["to_sender"] & (packets["event"] == "sent")]
    upto = ((acks["acknowledgement"] - 1) // 1448).tolist()
    kernels = [0]
    for segments, last in expected:
        kernels += range(kernels[-1] + segments, last + 1, segments)
    assert upto[: len(kernels) - 1] == kernels[1:]
    assert [window / 2048 for window in acks["window_bytes"].tolist()][: len(KERNEL_WINDOWS)] == KERNEL_WINDOWS


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
