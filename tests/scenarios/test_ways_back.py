"""Ways back that are slower than the ACKs of what comes forward: Linux' receiver, and filters of ACKs."""

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import AckFilter, Link, dumbbell

THIN = {"rate_mbps": 10, "rtt_ms": 60, "return_rate_mbps": 0.1, "return_buffer_packets": 1000, "senders": ["newreno"]}


KERNEL = [  # goodputs of Linux 6.18 on the live plant in 18 s, Mbit/s: each way in which its runs fell
    ({}, [5.05, 5.48]),
    ({"return_rate_mbps": 0.05}, [3.38, 3.46]),
    ({"return_rate_mbps": 0.2}, [6.51, 6.67, 7.06]),
    ({"return_rate_mbps": 0.5}, [9.55]),
    ({"senders": ["cubic"]}, [5.39]),
]
PHASES_S = [0, 0.25e-3, 0.5e-3, 0.8e-3]
"""Starts within a millisecond, the unit of time stamps: where in it packets fall decides on early rounds."""

KERNEL_ACKS = [  # of runs of it: how many segments an ACK is for, and up to which, until the queue overflows
    (0.2, 0.8e-3, [(1, 22), (2, 32), (1, 64), (2, 72), (1, 118), (2, 152), (1, 362), (2, 564), (1, 773)]),
    (0.2, 0, [(1, 22), (2, 32), (1, 64), (2, 72), (1, 118), (2, 152), (1, 362), (2, 566), (1, 773)]),
    (0.2, 0.5e-3, [(1, 22), (2, 32), (1, 56), (2, 72), (1, 140), (2, 152), (1, 272), (2, 294), (1, 424), (2, 574), (1, 851)]),
    (0.1, 0.25e-3, [(1, 22), (2, 32), (1, 64), (2, 72), (1, 126), (2, 246)]),
]
KERNEL_LARGEST = [(0.8e-3, 5023), (0, 3345), (0.5e-3, 3599)]
"""Of these runs at 0.2 Mbit/s, by start: the largest window, in units of 2048 bytes, which the holes that are filled decide."""
KERNEL_WINDOWS = [34, 35, 37, 38, 39, 40, 41, 43, 44, 45, 47, 48, 50, 51, 53, 54]
"""Of its first ACKs, each once, in units of 2048 bytes, the scale of a receive buffer that may reach 64 MiB."""


def run(**changes):
    """Return the flow, and the link back."""
    result = nb.simulate(dumbbell(**{**THIN, "duration_s": 18, **changes}), seed=1)
    return result.flows[0], result.links["return"]


@pytest.mark.parametrize(("changes", "goodputs_mbps"), KERNEL)
def test_a_thin_way_back_costs_what_it_costs_the_kernel(changes, goodputs_mbps):
    ours = [run(**changes, start_s=[start])[0].goodput_mbps for start in PHASES_S]
    for goodput in ours:
        assert min(abs(goodput - one) / one for one in goodputs_mbps) < 0.02


@pytest.mark.parametrize(("start_s", "units"), KERNEL_LARGEST)
def test_windows_end_as_large_as_the_kernels(start_s, units):
    world = dumbbell(**{**THIN, "return_rate_mbps": 0.2, "start_s": [start_s], "duration_s": 12})
    packets = nb.simulate(world, seed=1, packets=True).packets
    assert packets["window_bytes"][(packets["kind"] == "ack") & packets["to_sender"]].max() == units * 2048


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
    assert np.unique(acks["window_bytes"] / 2048).tolist()[: len(KERNEL_WINDOWS)] == KERNEL_WINDOWS


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
