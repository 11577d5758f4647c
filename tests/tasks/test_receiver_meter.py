"""Nuwa's utility, interval by interval, and the task's rewards, by hand."""

from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.receiver_window import REWARDS, RunningUtility, UtilityMeter, nuwa_utility
from netbuf_gym.tasks.receiver_window import meter as meters
from tests.tasks.hand_made_receiver import arrived, telemetry, tracker


def test_the_utility_by_hand():
    assert nuwa_utility(1.0, 0.0, 0.0) == 1 and nuwa_utility(0.0, 0.5, 1.0) == -1.5
    assert nuwa_utility(0.5, 0.1, 0.02) == pytest.approx(0.5**0.4 - 0.2**0.4 - 0.5 * 0.02**0.4)
    assert nuwa_utility(2.0, 9.0, 0.0) == 0  # each is clipped


def test_a_meter_adds_up_and_keeps_delays():
    meter = UtilityMeter(2)
    meter.reset(slice(None), [1e6, 2e6], [0.0, 0.25])
    assert np.isnan(meter.summarize(0)["utility"])
    delays = np.array([0.1, 0.05, np.nan, 0.2, 0.3])
    for delay in delays:
        each = np.ones(2)
        meter.add(0.1 * each, 1e6 * each, np.array([delay, delay]), 10 * each, 0 * each)
    own, late = meter.summarize(0), meter.summarize(1)
    carried = np.array([0.1, 0.05, 0.05, 0.2, 0.3])  # an interval in which nothing left the queue
    assert own["utility"] == pytest.approx(np.mean(nuwa_utility(1.0, carried, 0.0)), rel=1e-6)
    assert late["utility"] == pytest.approx(np.mean(nuwa_utility(0.5, carried[3:], 0.0)), abs=1e-6)  # begun after 0.25 s
    assert own["queue_delay_p95_s"] == np.float32(0.3) and late["queue_delay_p95_s"] == np.float32(0.3)
    meter.reset(slice(0, 1), 1e6, 0.0)
    assert np.isnan(meter.summarize(0)["utility"]) and meter.summarize(1) == late


def test_percentiles_are_nearest_rank_and_of_the_latest(monkeypatch):
    monkeypatch.setattr(meters, "MAX_INTERVALS", 100)
    meter, one = UtilityMeter(1), np.ones(1)
    for k in range(250):
        meter.add(0.1 * one, one, np.array([k * 1e-3]), one, one)
    assert meter.summarize(0)["queue_delay_p95_s"] == pytest.approx(0.244)  # of 150 to 249 ms the 95th


def test_a_tracker_meters_what_its_agents_achieve():
    made = tracker()
    made.update(arrived(20, 0.1, packets_sent=20, packets_lost=1))
    made.update(telemetry())
    expected = (nuwa_utility(0.5, 0.1, 0.05) + nuwa_utility(0.0, 0.1, 0.0)) / 2
    assert made.meter.summarize(0)["utility"] == pytest.approx(expected)


def terms_of(reward, made):
    out = np.empty((len(reward.terms), made.rows), np.float32)
    reward(made, out)
    return dict(zip(reward.terms, out[:, 0].tolist(), strict=True))


def test_alpha_fair_is_the_papers():
    made = tracker()
    made.update(arrived(20, 0.1, packets_sent=20, packets_lost=1))
    given = terms_of(REWARDS["alpha_fair"](), made)
    assert sum(given.values()) == pytest.approx(0.1 * nuwa_utility(0.5, 0.1, 0.05), rel=1e-5)


def test_running_utility_by_hand():
    """Half of the capacity at 50 ms of queue, then all of it at 100 ms: means 0.75 and 2.5, as base RTT is 50 ms."""
    made = tracker()
    made.update(arrived(20, 0.05))
    made.update(arrived(40, 0.1, packets_lost=4))
    assert (made.means.share()[0], made.means.rtt_ratio()[0]) == (pytest.approx(0.75), pytest.approx(2.5))
    given = terms_of(RunningUtility(standing_weight=0.01), made)
    share = 1 / 0.75
    expected = {"throughput": 0.05 * share, "delay": 0.05 * share * (1 - 3 / 2.5), "loss": -0.003, "standing": -0.003}
    assert given == pytest.approx(expected)


def sums_of(reward, segments, queues_s):
    """What the rewards of such intervals add up to."""
    made, total = tracker(), 0.0
    for many, queue_s in zip(segments, queues_s, strict=True):
        made.update(arrived(many, queue_s))
        total += sum(terms_of(reward, made).values())
    return total, made


@pytest.mark.slow
def test_with_a_horizon_rewards_are_worth_the_utility_of_the_whole():
    """Of starts with a tenth of the capacity for 20 and 10 s; what they are apart is, discounted, slope and level ln X."""
    interval_s, horizon_s = 0.1, 4.0
    discounts = (1 - interval_s / horizon_s) ** np.arange(500)  # from 10 s on, where the two part
    rewards, added, plain = RunningUtility(horizon_s=horizon_s, cap=100), RunningUtility(cap=100), []
    worth, exact = [], []
    for slow in (200, 100):
        made, given, wanted = tracker(), [], []
        for many in np.where(np.arange(600) < slow, 4, 40):
            made.update(arrived(many))
            given.append(terms_of(rewards, made)["throughput"])
            wanted.append(terms_of(added, made)["throughput"] + 0.5 * np.log(made.means.share()[0]) * interval_s)
        worth.append(discounts @ given[100:])
        exact.append(discounts @ wanted[100:])
        plain.append(sums_of(RunningUtility(), np.where(np.arange(600) < slow, 4, 40), np.zeros(600))[0])
    assert worth[1] - worth[0] == pytest.approx(exact[1] - exact[0], rel=0.1) and worth[1] > worth[0]
    assert plain[1] < plain[0]  # without it a slow start pays


def test_a_horizon_multiplies_by_the_worlds_age():
    made = tracker()
    reward = RunningUtility(horizon_s=4.0)
    assert terms_of(reward, made)["throughput"] == 0  # nothing has arrived
    for _ in range(9):
        made.update(arrived(20, 0.05))
    made.update(arrived(40, 0.1))
    x, y = made.means.share()[0], made.means.rtt_ratio()[0]
    given, times = terms_of(reward, made), 1 + 4 / 1.0
    assert given["throughput"] == pytest.approx(0.05 * (1 / x - 1) * times, rel=1e-5)
    assert given["delay"] == pytest.approx(-0.05 / x * (3 / y - 1) * times, rel=1e-5)


def test_all_rewards_are_finite_before_the_first_packet_and_in_silence():
    for reward in (*(kind() for kind in REWARDS.values()), RunningUtility(horizon_s=4, surplus_weight=0)):
        made = tracker(rows=2)
        for step in (telemetry(2), arrived(rows=2), telemetry(2), telemetry(2)):
            made.update(step)
            out = np.full((len(reward.terms), 2), np.nan, np.float32)
            reward(made, out)
            assert np.isfinite(out).all(), reward


@pytest.mark.parametrize("field", [field.name for field in fields(RunningUtility) if field.name != "loss_in_shares"])
def test_parameters_have_ranges(field):
    for value in (-1, float("nan"), 1e4, "a"):
        with pytest.raises(ConfigError, match=field):
            RunningUtility(**{field: value})


def test_a_team_is_rewarded_together():
    """Three receivers, the first and the last on one bottleneck: what each of those two is given is half its own."""
    made = tracker(rows=3, first_beside=[0, 1, 0])
    made.update(arrived(20, rows=3))
    made.update(arrived(np.array([10, 20, 30]), np.array([0.05, 0.0, 0.05]), rows=3))
    alone, together = np.zeros((2, 4, 3), np.float32)
    RunningUtility()(made, alone)
    RunningUtility(team_weight=0.5)(made, together)
    mean = (alone[:, [0, 2]].sum(axis=1, keepdims=True)) / 2
    assert together[:, 1] == pytest.approx(alone[:, 1])
    assert together[:, [0, 2]] == pytest.approx((alone[:, [0, 2]] + mean) / 2)
    assert alone[0, 0] != alone[0, 2]


@pytest.mark.parametrize(("paths", "expected"), [(1, [0, 0, 0, 0, 4, 4, 4, 4]), (2, [0, 1, 0, 1, 4, 5, 4, 5])])
def test_who_is_beside_whom_follows_from_the_paths(paths, expected):
    links = [Link(name=f"{rate}", rate_mbps=rate, delay_ms=5.0, queue_packets=50) for rate in (10.0, 20.0)]
    flows = [Flow(cc=AGENT, path=(i % paths,), return_path=(2,)) for i in range(4)]
    world = Scenario(links=[*links, Link(name="back", delay_ms=5.0)], flows=flows, duration_s=5)
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=8, senders=4, scenario=world)
    env.reset(seed=1)
    assert env.unwrapped.engine.tracker.first_beside.tolist() == expected
