"""Routes, rests, token buckets, receivers that misbehave, accurate ECN: descriptions, files, and what comes of them."""

import json

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import TBF, Flow, Link, Paused, Policer, Route, Scenario
from netbuf_gym.traces import RateTrace

ENDS = {"path": ["first"], "return_path": ["back"]}


def world(flow, duration_s=20, **first):
    links = [
        Link(name="first", rate_mbps=10, delay_ms=10, queue_packets=60, **first),
        Link(name="second", rate_mbps=5, delay_ms=30, queue_packets=60),
        Link(name="back", delay_ms=10),
    ]
    return Scenario(links=links, flows=[flow], duration_s=duration_s)


WORLDS = {
    "routes": world(Flow(**ENDS, routes=[Route(at_s=10, path=["second"], return_path=["back"])])),
    "rests": world(Flow(**ENDS, app=Paused(rests_s=[(5, 8), (10, 12)], rate_mbps=3))),
    "tbf": world(Flow(**ENDS), discipline=TBF(rate_mbps=4, burst_bytes=30000)),
    "policer": world(Flow(**ENDS), discipline=Policer(rate_mbps=4)),
    "misbehaviour": world(Flow(**ENDS, misbehaviour="optimistic", send_buffer_bytes=200_000)),
    "accurate": world(Flow(**ENDS, ecn="accurate"), discipline="codel"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_they_can_be_kept_in_a_file_and_run_the_same(name):
    again = Scenario.from_dict(json.loads(json.dumps(WORLDS[name].to_dict())))
    assert again == WORLDS[name]
    one, other = nb.simulate(WORLDS[name], seed=1), nb.simulate(again, seed=1)
    assert (one.series["cwnd_packets"] == other.series["cwnd_packets"]).all() and one.flows[0].goodput_mbps > 1


def test_a_route_is_taken_when_its_time_comes():
    result = nb.simulate(WORLDS["routes"], seed=1)
    times, goodput = result.series["time_s"], result.series["goodput_mbps"][:, 0]
    assert goodput[(times > 5) & (times < 10)].mean() == pytest.approx(9.6, abs=0.3)
    assert goodput[times > 15].mean() == pytest.approx(4.8, abs=0.3)


def test_a_bucket_s_rate_is_the_capacity_and_the_link_s_the_peak():
    bucket = WORLDS["tbf"]
    assert bucket.capacity_mbps == bucket.fair_share_mbps(0) == 4
    assert bucket.base_rtt_ms() == world(Flow(**ENDS)).base_rtt_ms()  # a packet alone is sent at the peak
    slower = Link(name="a", rate_mbps=3, discipline=TBF(rate_mbps=4))
    assert (
        slower.mean_mbps() == 3
        and slower.throughput_limit_mbps == 4
        and Link(name="a", rate_mbps=3).throughput_limit_mbps == float("inf")
    )
    varying = Link(name="a", trace=RateTrace([0, 1], [10, 2]), discipline=Policer(rate_mbps=4))
    assert varying.capacity_steps(3)[1].tolist() == [4, 2]


def test_accurate_ecn_tells_of_every_mark():
    flow = nb.simulate(WORLDS["accurate"], seed=1).flows[0]
    assert flow.marks > 5 and flow.mark_responses > 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Flow(**ENDS, routes=[Route(at_s=0, **ENDS)]), r"route.at_s = 0"),
        (lambda: Flow(**ENDS, routes=[Route(at_s=2, **ENDS)] * 2), r"routes\[1\].at_s = 2; valid: after the one"),
        (lambda: Flow(**ENDS, routes=[3]), r"routes\[0\] = 3; valid: Route"),
        (lambda: world(Flow(**ENDS, routes=[Route(at_s=2, path=["none"], return_path=[2])])), r"\[0\].path has no link 'none'"),
        (lambda: Paused(rests_s=[]), r"rests_s is empty"),
        (lambda: Paused(rests_s=[(5, 4)]), r"rests_s\[0\] = \(5, 4\); valid: \(from, to\)"),
        (lambda: Paused(rests_s=[(1, 4), (3, 6)]), r"rests_s\[1\] = \(3, 6\)"),
        (lambda: Paused(rests_s=[(1, 4)], rate_mbps=0), r"rate_mbps = 0"),
        (lambda: Flow(**ENDS, misbehaviour="rude"), r"misbehaviour = 'rude'"),
        (lambda: Flow(**ENDS, ecn="exact"), r"flow.ecn = 'exact'"),
        (lambda: TBF(rate_mbps=0), r"tbf.rate_mbps"),
    ],
)
def test_what_is_none_is_refused(make, said):
    with pytest.raises(ScenarioError, match=said):
        make()


def test_the_core_refuses_what_depends_on_more():
    with pytest.raises(ConfigError, match=r"misbehaviour = split: must be empty for all but endless bulk flows"):
        nb.simulate(world(Flow(**ENDS, misbehaviour="split", stop_s=5)))


def marked(env):
    return env.unwrapped.engine.plant.world(0).switch_stats()[0]["queues"]


@pytest.mark.parametrize("congested", ["drop", "mark", "agent"])
def test_a_switch_agent_marks_or_drops(congested):
    scenario = {"name": "rlbm/default", "ecn": True, "load": 0.8, "queue_packets": 100, "duration_s": 10}
    env = gym.make("netbuf/QueueThreshold-v0", scenario=scenario, congested=congested)
    env.reset(seed=1)
    assert env.action_space.shape == (3 if congested == "agent" else 2,)
    counts = []
    for marks in (1.0, -1.0):
        before = sum(queue["marks"] for queue in marked(env))
        for _ in range(40):
            env.step(np.array([-0.6, -0.6, marks][: env.action_space.shape[0]], np.float32))
        counts.append(sum(queue["marks"] for queue in marked(env)) - before)
    env.close()
    if congested == "drop":
        assert counts == [0, 0]
    else:
        assert counts[0] > 10 and (counts[1] > 0) == (congested == "mark")


def test_a_grid_has_twice_the_actions_for_marks():
    plain, marks, both = (
        gym.make("netbuf/QueueThreshold-v0", actions="pulse_grid", **more).unwrapped
        for more in ({}, {"congested": "agent"}, {"congested": "agent", "drop": "agent"})
    )
    assert (plain.action_space.n, marks.action_space.n, both.action_space.n) == (64, 128, 256)
    assert both.engine.task.to_dict()["congested"] == "agent" and "congested" not in plain.engine.task.to_dict()
    with pytest.raises(ConfigError, match='congested = "agent" with recipe'):
        gym.make("netbuf/QueueThreshold-v0", recipe="thesis-text", congested="agent")
