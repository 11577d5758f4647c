"""Explicit congestion notification as scenarios say it and results tell it."""

import math

import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import DualPI2, Flow, Incast, Link, Scenario, Sender, Switch, Traffic, dumbbell, sender_controls
from netbuf_gym.tasks.congestion_window.families import EXCLUDED_RIVALS, LATER_RIVALS, SenderPaths, default_rivals

MARKED = {"name": "droptail", "mark_packets": 20}


MARKING = ["codel", "fq_codel", "dualpi2", {"name": "red", "hard_drop": False}, {"name": "pie", "mark_ecnth": 1}]


@pytest.mark.parametrize("discipline", MARKING)
def test_disciplines_mark_instead_of_dropping(discipline):
    path = {"senders": ["cubic"], "discipline": discipline, "buffer_packets": 1000, "duration_s": 20}
    spoken, silent = (nb.simulate(dumbbell(**path, ecn=ecn), 1) for ecn in (True, False))
    flow, link = spoken.flows[0], spoken.links["bottleneck"]
    assert link.queue_drops == flow.packets_retransmitted == flow.timeouts == 0
    assert 0 < flow.mark_responses <= flow.marks <= link.marks
    assert silent.links["bottleneck"].queue_drops > 0
    assert silent.links["bottleneck"].marks == silent.flows[0].marks == silent.flows[0].mark_responses == 0
    assert flow.goodput_mbps > 0.9 * silent.flows[0].goodput_mbps


def test_a_discipline_that_is_told_not_to_mark_drops():
    world = dumbbell(senders=["cubic"], discipline={"name": "codel", "ecn": False}, ecn=True, duration_s=20)
    link = nb.simulate(world, 1).links["bottleneck"]
    assert link.marks == 0 < link.queue_drops


def test_dctcp_keeps_the_queue_at_the_threshold_without_being_asked():
    path = {"rate_mbps": 100, "rtt_ms": 4, "buffer_packets": 500, "duration_s": 5, "discipline": MARKED}
    link = nb.simulate(dumbbell(**path, senders=["dctcp"] * 3), 1).links["bottleneck"]
    reno = nb.simulate(dumbbell(**path, senders=["newreno"] * 3, ecn=True), 1).links["bottleneck"]
    assert link.queue_drops == 0 and link.utilisation > 0.97 and 5 < link.queue_mean_packets < 40
    assert link.marks > 3 * reno.marks > 0


L4S = {"rate_mbps": 40, "rtt_ms": 20, "buffer_packets": 1000, "duration_s": 30, "discipline": "dualpi2"}


def test_prague_behind_dualpi2_hardly_waits_and_shares_with_a_classic_sender():
    alone = nb.simulate(dumbbell(**L4S, senders=["prague"] * 2), 1)
    link = alone.links["bottleneck"]
    assert link.utilisation > 0.9 and link.queue_delay_mean_ms < 1 and link.queue_drops == 0 < link.marks
    both = nb.simulate(dumbbell(**L4S, senders=["prague", "cubic"]), 1)
    mine, other = both.flows
    assert 0.3 < mine.goodput_mbps / (mine.goodput_mbps + other.goodput_mbps) < 0.7
    assert mine.rtt_mean_ms < 22 and other.rtt_mean_ms > 30  # each in its queue
    assert mine.packets_retransmitted == other.marks == 0 < other.packets_retransmitted


def test_dctcp_is_a_classic_sender_to_dualpi2():
    dctcp, prague = (nb.simulate(dumbbell(**L4S, senders=[cc]), 1).links["bottleneck"] for cc in ("dctcp", "prague"))
    assert dctcp.queue_delay_mean_ms > 5 > prague.queue_delay_mean_ms


def test_it_goes_through_json_and_is_left_out_where_it_is_not_spoken():
    world = dumbbell(senders=["cubic", "dctcp"], ecn=True, discipline={**MARKED})
    again = Scenario.from_dict(world.to_dict())
    assert again == world and all(flow.ecn for flow in again.flows)
    assert "ecn" not in dumbbell(senders=["cubic"]).to_dict()["flows"][0]


def test_switches_and_finite_flows():
    links = [Link(name="port", rate_mbps=100, delay_ms=1), Link(name="back", delay_ms=1)]
    sender = Sender(cc="dctcp", path=["port"], return_path=["back"])
    arrivals = Incast(interval_s=0.5, fan_in=4, size_bytes=400_000)
    for mark in (None, 20):
        switch = Switch(ports=["port"], queues=1, buffer_packets=400, mark=mark)
        traffic = Traffic(senders=[sender] * 4, arrivals=[arrivals])
        world = Scenario(links=links, switches=[switch], traffic=traffic, duration_s=5)
        assert Scenario.from_dict(world.to_dict()) == world
        result = nb.simulate(world, 1)
        queue = result.switches[0].queues[0]
        assert (queue.marks > 0) == (mark is not None) == (result.traffic.marks > 0) == (result.traffic.mark_responses > 0)
        assert queue.marks == result.links["port"].marks


def test_what_cannot_be_is_refused():
    with pytest.raises(ScenarioTypeError, match=r"flow\.ecn = 'yes'"):
        Flow(path=[0], return_path=[1], ecn="yes")
    with pytest.raises(ScenarioError, match=r"flows\[0\]\.ecn = True is not in the ns3 stack; valid: False"):
        dumbbell(senders=["cubic"], stack="ns3", ecn=True)
    with pytest.raises(ScenarioError, match="switch 'switch': mark = 0"):
        Switch(buffer_packets=10, mark=0)
    with pytest.raises(ScenarioError, match=r"mark_packets"):
        dumbbell(discipline={"name": "droptail", "mark_packets": -1})


def test_worlds_that_were_drawn_before_keep_their_rivals():
    assert set(default_rivals()) == set(sender_controls("linux")) - {*EXCLUDED_RIVALS, *LATER_RIVALS}
    assert set(LATER_RIVALS) <= set(sender_controls("linux"))
    assert SenderPaths(family="rivals", competitors=LATER_RIVALS).competitors == LATER_RIVALS
    with pytest.raises(ScenarioError, match="dctcp"):
        SenderPaths(family="rivals", competitors=["dctcp"])


def test_marks_are_no_losses():
    world = dumbbell(senders=["dctcp"], discipline=MARKED, duration_s=5)
    flow = nb.simulate(world, 1).flows[0]
    assert flow.loss_rate == 0 and not math.isnan(flow.marks)


def test_prague_has_its_share_of_a_slow_link_where_the_step_spares_short_queues():
    """Below 12 Mbit/s a packet lasts longer than the step of 1 ms, so that all that waits is marked, as by Linux."""
    goodputs = {}
    for least in (0, 2):
        path = {"rate_mbps": 10, "rtt_ms": 20, "buffer_packets": 1000, "duration_s": 40}
        world = dumbbell(senders=["prague", "cubic"], discipline=DualPI2(min_qlen_step=least), **path)
        goodputs[least] = [flow.goodput_mbps for flow in nb.simulate(world, 1, warmup_s=10, sample_interval_s=None).flows]
    assert goodputs[0][0] < 0.6 * goodputs[0][1]
    assert goodputs[2][0] > goodputs[2][1] > 2
    assert all(sum(both) > 9 for both in goodputs.values())
