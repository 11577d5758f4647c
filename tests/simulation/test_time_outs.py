"""Connections that meet nobody: when the Linux stack sends again and when it gives up, held against this kernel's measurements.

`tests/data/linux_timeouts.csv` was measured by `studies.validation.kernel_timeouts`, three repeats a case.
"""

import csv
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.scenarios import Flow, Host, LossSchedule, OnOff, Sized

DATA = Path(__file__).parents[1] / "data" / "linux_timeouts.csv"
NOISY = "middle_3_far"
"""Ends at 5.2 s or at 9.3 s, as the first time-out is of 0.5 s or of 0.4 s."""
SLOTS = 1.075
"""By how much the slots of the kernel's timer wheel can make a chain of time-outs longer."""


def path(time_s, loss, duration_s, app=None, back=None, rtt_ms=50, **settings):
    """Return a world whose way there loses packets as scheduled, and its way back as `back` says."""
    made = scenarios.dumbbell(rate_mbps=10, rtt_ms=rtt_ms, buffer_packets=100, duration_s=duration_s)
    links = [replace(made.links[0], loss=LossSchedule(time_s, loss), loss_on_acks=True), made.links[1]]
    if back is not None:
        links[1] = replace(links[1], loss=LossSchedule(*back), loss_on_acks=True)
    flow = Flow(path=(0,), return_path=(1,), **({} if app is None else {"app": app}))
    return replace(made, links=links, flows=[flow], **settings)


def run(world):
    result = nb.simulate(world, packets=True, sample_interval_s=None)
    return result.flows[0], result.packets


def sent(packets, kind, to_sender=False):
    """Return the times at which packets of a kind left their end."""
    ours = (packets["event"] == "sent") & (packets["kind"] == kind) & (packets["to_sender"] == to_sender)
    return np.unique(packets["time_s"][ours])


def read_measured():
    """Return the rows of each case by end and kind, in order."""
    cases = defaultdict(lambda: defaultdict(list))
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            cases[row["case"]][row["end"], row["what"]].append(row)
    return cases


MEASURED = read_measured()


def check_times(measured, ours, largest_s=0.15, share=0.06):
    """Compare times with the kernel's medians; rows that not all three repeats have are left out."""
    theirs = [float(row["time_s"]) for row in measured if row["repeats"] == "3"]
    assert len(ours) == len(theirs)
    for mine, kernel in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(kernel, rel=share, abs=largest_s)


SYNS_S = (0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67)


@pytest.mark.parametrize("outage_s", [0.5, 0.99, 1.2, 2.5, 4.5, 6, 9, 15, 30, 60, 71, 100, 120, 140, 300])
def test_an_outage_at_the_start_costs_as_many_syns_as_fall_into_it(outage_s):
    """The first SYN that passes is answered; after two lost ones or more a single segment goes first."""
    flow, packets = run(path([0, outage_s], [1, 0], outage_s + 80, Sized(size_bytes=100_000)))
    syns = sent(packets, "syn")
    lost = sum(at < outage_s for at in syns)
    first_s = next((at for at in syns if at >= outage_s), None)
    for due, at in zip(SYNS_S, syns, strict=False):
        assert due <= at <= SLOTS * due + 0.05
    if first_s is None:
        assert len(syns) == 11 and 131 <= flow.failed_s <= 136 and flow.delivered_bytes == 0
        assert np.isnan(flow.completion_s)
        return
    assert np.isnan(flow.failed_s) and flow.delivered_bytes == 100_000
    data = packets[(packets["event"] == "sent") & (packets["kind"] == "data") & ~packets["to_sender"]]
    flight = int((data["time_s"] < first_s + 0.05 + 0.03).sum())
    assert flight == (1 if lost >= 2 else 10)
    assert flow.completion_s == pytest.approx(first_s + (0.45 if lost >= 2 else 0.25), abs=0.15)


@pytest.mark.parametrize("name", [name for name in MEASURED if re.fullmatch("syn_[0-9](_plain)?", name)])
def test_lost_syns_cost_what_they_cost_the_kernel(name):
    measured, lost, timestamps = MEASURED[name], int(name.split("_")[1]), not name.endswith("plain")
    until_s = (SYNS_S[lost - 1] + SYNS_S[lost]) / 2 if lost else 0
    made = path([0, until_s], [1, 0], 60, timestamps=timestamps) if lost else path([0, 1], [0, 0], 60, timestamps=timestamps)
    _, packets = run(made)
    check_times(measured["a", "syn"], sent(packets, "syn"))
    check_times(measured["b", "synack"], sent(packets, "syn-ack", True))
    flight = packets[(packets["event"] == "sent") & (packets["kind"] == "data")]
    first = int((flight["time_s"] == flight["time_s"][0]).sum())
    assert first == float(measured["a", "established"][0]["window"])


@pytest.mark.parametrize(
    ("retries", "least_s"), [(2, 3 + 4 + 1), (11, 131 + 5 * 120), (20, 131 + 14 * 120), (127, 131 + 121 * 120)]
)
def test_syns_are_given_up_after_as_many_retries_as_are_set(retries, least_s):
    flow, packets = run(path([0, 20_000], [1, 0], 16_000, syn_retries=retries))
    assert len(sent(packets, "syn")) == 5 + retries
    assert least_s <= flow.failed_s <= SLOTS * least_s + 5


@pytest.mark.parametrize("app", [None, Sized(size_bytes=100_000_000)])
@pytest.mark.parametrize("sndbuf", [None, 60_000])
def test_a_stream_that_its_application_still_writes_is_nobodys_orphan(app, sndbuf):
    """Whatever is written by the time that the link dies: tcp_retries2 holds, not tcp_orphan_retries."""
    world = path([0, 3, 9999], [0, 1, 0], 1200, app)
    if sndbuf is not None:
        flow = replace(world.flows[0], sender_host="a", sndbuf_bytes=sndbuf)
        world = replace(world, flows=[flow], hosts=[Host(name="a", kernel="6.18")])
    assert 924.6 <= run(world)[0].failed_s <= 1100


def test_a_syn_that_nobody_answers_is_tried_as_often_as_by_the_kernel():
    flow, packets = run(path([0, 500], [1, 0], 400))
    check_times(MEASURED["syn_all"]["a", "syn"], sent(packets, "syn"), share=0.02)
    check_times(MEASURED["syn_all"]["a", "failed"], [flow.failed_s], share=0.02)


def test_answers_that_are_lost_are_repeated_as_by_the_kernel():
    """The sender's SYNs and the answer's own timer share the answers: their number depends on which comes first."""
    _, packets = run(path([0, 1], [0, 0], 150, back=([0, 500], [1, 0])))
    check_times(MEASURED["synack_all"]["a", "syn"], sent(packets, "syn"), share=0.02)
    answers, kernel = sent(packets, "syn-ack", True), MEASURED["synack_all"]["b", "synack"]
    assert 11 <= len(answers) <= len(kernel) + 2


@pytest.mark.parametrize("name", [name for name in MEASURED if name.startswith("middle") and name != NOISY])
def test_data_that_nobody_answers_ends_when_the_kernels_does(name):
    """The kernel's RTT estimate, and so the first time-out, has noise: all that comes of it is within an eighth."""
    _, retries, *more = name.split("_")
    back = ([0, 1, 9999], [0, 1, 0]) if "forward" not in more else None
    rtt_ms = 200 if "far" in more else 50
    slow = OnOff(on_s=5000, off_s=1, rate_mbps=1.6)
    flow, packets = run(path([0, 1, 9999], [0, 1, 0], 1200, slow, rtt_ms=rtt_ms, back=back, data_retries=int(retries)))
    (failed,) = MEASURED[name]["a", "failed"]
    assert flow.failed_s == pytest.approx(float(failed["time_s"]), rel=0.12)
    copies = sent(packets, "data")
    late = [at for at in copies if at > 1.6 + rtt_ms * 1e-3]
    kernel = [row for row in MEASURED[name]["a", "repeat"] if float(row["time_s"]) > 1.6 + rtt_ms * 1e-3]
    assert len(late) == pytest.approx(len(kernel), abs=1)


def test_an_agent_whose_flow_never_connects_sees_no_ack_and_ends_in_time():
    world = path([0, 200], [1, 0], 150)
    world = replace(world, flows=[replace(world.flows[0], cc="agent")])
    env = gym.make("netbuf/CongestionWindow-v0", scenario=world, interval_s=5.0)
    env.reset(seed=1)
    steps, over = 0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation) and np.isfinite(reward)
        steps, over = steps + 1, terminated or truncated
    assert 29 <= steps <= 31


@pytest.mark.parametrize("cut_s", [1.0, 2.3])
@pytest.mark.parametrize(("retries", "least_s"), [(3, 3.0), (8, 102.2), (None, 924.6)])
def test_data_that_nobody_answers_is_given_up(cut_s, retries, least_s):
    flow, packets = run(path([0, cut_s, 9999], [0, 1, 0], 2 * least_s + 200, data_retries=retries))
    assert cut_s + least_s <= flow.failed_s <= cut_s + 2.2 * least_s + 2
    assert sent(packets, "data").max() < flow.failed_s


def test_a_flow_behind_a_shorter_outage_lives():
    flow, _ = run(path([0, 1, 700], [0, 1, 0], 1000))
    assert np.isnan(flow.failed_s) and flow.delivered_bytes > 50e6


def test_traffic_counts_what_was_given_up():
    world = scenarios.get("rlbm/default", duration_s=150)
    dead = [replace(link, loss=LossSchedule([0, 1, 9999], [0, 1, 0]), loss_on_acks=True) for link in world.links]
    result = nb.simulate(replace(world, links=dead), 1, sample_interval_s=None)
    t = result.traffic
    assert 0 < t.flows_failed < t.flows_started - t.flows_completed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"syn_retries": 0}, "syn_retries = 0"),
        ({"syn_retries": 128}, "syn_retries = 128"),
        ({"data_retries": 0}, "data_retries = 0"),
        ({"data_retries": 256}, "data_retries = 256"),
        ({"syn_retries": 3, "stack": "ns3"}, "syn_retries = 3 is not in the ns3 stack; valid: None"),
        ({"data_retries": 3, "stack": "ns3"}, "data_retries = 3 is not in the ns3 stack; valid: None"),
        ({"start_jitter_ms": -1}, "start_jitter_ms = -1"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ScenarioError, match=message):
        replace(scenarios.dumbbell(), **settings)


def test_a_live_world_has_the_same_sysctls():
    sysctls = Setup(replace(scenarios.dumbbell(), syn_retries=2, data_retries=9), Agents()).message["sysctls"]
    assert (sysctls["net.ipv4.tcp_syn_retries"], sysctls["net.ipv4.tcp_retries2"]) == ("2", "9")
    usual = Setup(scenarios.dumbbell(), Agents()).message["sysctls"]
    assert not {"net.ipv4.tcp_syn_retries", "net.ipv4.tcp_retries2"} & set(usual)


def test_starts_are_drawn_by_the_seed():
    made = scenarios.dumbbell(senders=["cubic"] * 3, stagger_s=0.5, duration_s=20, start_jitter_ms=80)
    starts = {seed: [flow.start_s for flow in nb.simulate(made, seed).flows] for seed in (1, 2, 1)}
    later = np.array([np.array(own) - [0, 0.5, 1.0] for own in starts.values()])
    assert (later >= 0).all() and (later <= 0.08).all() and len(np.unique(later)) == 6
    again = [flow.start_s for flow in nb.simulate(made, 1).flows]
    assert again == starts[1]
    goodputs = {nb.simulate(made, seed).flows[0].goodput_mbps for seed in range(5)}
    assert len(goodputs) > 1
    assert len({nb.simulate(replace(made, start_jitter_ms=0), seed).flows[0].goodput_mbps for seed in range(5)}) == 1
