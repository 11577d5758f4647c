"""Schedules of delay and loss, jitter, outages: the types, their makers, and their way to files and to the core."""

import json

import numpy as np
import pytest

from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import (
    DelaySchedule,
    DeliveryTrace,
    Flow,
    Jitter,
    Link,
    LossSchedule,
    RateTrace,
    Scenario,
    delay_walk,
    handovers,
    interruptions,
    leo_delays,
    route_change,
)
from netbuf_gym.scenarios.native import build_link_config

LINK = {"name": "a", "rate_mbps": 10}


def test_schedules_hold_from_step_to_step_and_repeat():
    delays = DelaySchedule([0, 1, 3], [10, 20, 5], period_s=4)
    assert delays.delay_at_ms([0, 0.99, 1, 2.5, 3, 4, 5.5, 7]).tolist() == [10, 10, 20, 20, 5, 10, 20, 5]
    assert delays.least_ms == 5 and Link(name="a", delay_ms=delays).least_delay_ms == 5
    assert LossSchedule([0, 1], [0.1, 0]).loss_at([0.5, 1, 99]).tolist() == [0.1, 0, 0]


@pytest.mark.parametrize("kind, field", [(DelaySchedule, "delay_ms"), (LossSchedule, "loss")])
def test_schedules_are_values(kind, field):
    a, b = kind([0, 1], [0.5, 0.25]), kind(np.array([0.0, 1.0]), (0.5, 0.25))
    assert a == b and hash(a) == hash(b) and a != kind([0, 1], [0.5, 0.125]) and a != kind([0, 1], [0.5, 0.25], period_s=2)
    with pytest.raises(ValueError, match="read-only"):
        getattr(a, field)[0] = 1


@pytest.mark.parametrize("kind, field, above", [(DelaySchedule, "delay_ms", 1.1e5), (LossSchedule, "loss", 1.1)])
@pytest.mark.parametrize(
    "times, values, period, message",
    [
        ([], [], None, r"time_s has shape \(0,\)"),
        ([0, 1], [0.1], None, "has 1 values for 2 in time_s"),
        ([1], [0.1], None, r"time_s\[0\] = 1; valid: 0"),
        ([0, 2, 1], [0, 0, 0], None, r"time_s\[2\] = 1 is not after 2"),
        ([0, 1], [0, 0], 1, "period_s = 1 is not above the last time_s, 1"),
        ([0, 1], [0, -0.1], None, r"\[1\] = -0.1 is out of range"),
        ([0, 1], [0, "above"], None, r"\[1\] = .* is out of range"),
        ([0, 1], [0, np.nan], None, r"\[1\] = nan is out of range"),
        ([0, 1e7], [0, 0], None, r"time_s\[1\] = 1e\+07 is out of range"),
    ],
)
def test_what_schedules_refuse(kind, field, above, times, values, period, message):
    with pytest.raises(ScenarioError, match=message):
        kind(times, [above if value == "above" else value for value in values], period_s=period)


def test_values_that_are_no_schedules_are_refused():
    with pytest.raises(ScenarioTypeError, match="delay_ms = 'x' is not a list"):
        DelaySchedule([0], "x")
    with pytest.raises(ScenarioTypeError, match=r"loss = .* is not a list of numbers"):
        LossSchedule([0], ["x"])
    for values, period in (([0, 1], None), ([1, 1], 2)):
        with pytest.raises(ScenarioError, match="loss is 1 for ever"):
            LossSchedule([0, 1], values, period_s=period)
    assert LossSchedule([0, 1], [0, 1], period_s=2).loss_at(1.5) == 1


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"distribution": "gauss", "scale_ms": 1}, "jitter.distribution = 'gauss' is unknown"),
        ({"scale_ms": -1}, "jitter.scale_ms = -1"),
        ({"scale_ms": 1, "correlation": 1}, "jitter.correlation = 1"),
        ({"scale_ms": 1, "distribution": "pareto", "shape": 0}, "jitter.shape = 0"),
        ({"scale_ms": 1, "mean_ms": 1}, "jitter.mean_ms = 1 of uniform"),
        ({"scale_ms": 1, "reorder": 1}, "jitter.reorder = 1 is not a truth value"),
    ],
)
def test_what_jitter_refuses(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Jitter(**fields)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"jitter": 5}, "jitter = 5 is not a Jitter"),
        ({"on_outage": "keep"}, "on_outage = 'keep' is unknown; .*valid: hold, drop"),
        ({"on_outage": "drop"}, "on_outage = 'drop' without a trace"),
        ({"outage_ms": 0.5}, "outage_ms = 0.5 is out of range; valid: 1 to 1"),
        ({"loss": LossSchedule([0], [0.5]), "gilbert_elliott": "x"}, "gilbert_elliott = 'x'"),
        (
            {"delay_ms": DelaySchedule([0], [5], reorder=True), "jitter": Jitter(scale_ms=1)},
            "jitter.reorder = False beside a delay_ms that may reorder",
        ),
    ],
)
def test_what_links_refuse(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Link(**LINK, **fields)


def test_links_know_whether_they_reorder():
    assert not Link(**LINK, delay_ms=DelaySchedule([0], [5]), jitter=Jitter(scale_ms=1)).may_reorder
    assert Link(**LINK, delay_ms=DelaySchedule([0], [5], reorder=True)).may_reorder
    assert Link(**LINK, jitter=Jitter(scale_ms=1, reorder=True)).may_reorder


def test_files_hold_them():
    trace = RateTrace([0, 1, 2], [5, 0, 5], period_s=3)
    links = [
        Link(name="a", trace=trace, delay_ms=route_change(delay_ms=5, at_s=1), on_outage="drop", outage_ms=50),
        Link(name="b", delay_ms=3, loss=LossSchedule([0, 1], [0.1, 1], period_s=2), jitter=Jitter(scale_ms=2, reorder=True)),
        Link(name="c", delay_ms=DelaySchedule([0], [0])),
    ]
    world = Scenario(links=links, flows=[Flow(path=["a", "b"], return_path=["c"])], duration_s=5)
    data = json.loads(json.dumps(world.to_dict(), allow_nan=False))
    assert Scenario.from_dict(data) == world and data["links"][1]["delay_ms"] == 3
    data["links"][1]["jitter"]["scale"] = 2
    with pytest.raises(ScenarioError, match=r"links\[1\].jitter has no field 'scale'"):
        Scenario.from_dict(data)
    del data["links"][1]["jitter"], data["links"][0]["delay_ms"]["delay_ms"]
    with pytest.raises(ScenarioError, match=r"links\[0\].delay_ms.delay_ms is missing"):
        Scenario.from_dict(data)


def test_the_core_gets_whole_nanoseconds():
    jitter = Jitter(distribution="pareto", scale_ms=2, shape=2.5, correlation=0.5, reorder=True)
    config = build_link_config(
        Link(name="a", delay_ms=DelaySchedule([0, 0.5], [2, 1.5], period_s=1, reorder=True), jitter=jitter)
    )
    assert (config.delay_ns, config.delay_step_ns) == (1_500_000, [2_000_000, 1_500_000])
    assert config.delay_time_ns == [0, 500_000_000]
    assert config.delay_period_ns == 10**9 and config.delay_reorders and config.outage_ns == 0
    of = config.jitter
    assert (of.distribution, of.scale_ns, of.shape, of.correlation, of.reorder) == ("pareto", 2e6, 2.5, 0.5, True)
    plain = build_link_config(Link(name="a", delay_ms=7))
    assert (plain.delay_ns, plain.delay_time_ns, plain.jitter.distribution) == (7_000_000, [], "")
    config = build_link_config(
        Link(name="a", trace=DeliveryTrace([1, 2, 300]), on_outage="drop", loss=LossSchedule([0], [0.5]))
    )
    assert (config.outage_ns, config.loss, config.loss_time_ns, config.loss_step) == (100_000_000, 0, [0], [0.5])


def test_a_route_change_steps_and_may_step_back():
    there = route_change(delay_ms=20, change_ms=30, at_s=5, until_s=8)
    assert there.delay_at_ms([0, 5, 7.9, 8, 100]).tolist() == [20, 50, 50, 20, 20]
    with pytest.raises(ScenarioError, match=r"change_ms = -30.0 is out of range; valid: -20"):
        route_change(delay_ms=20, change_ms=-30, at_s=5)
    with pytest.raises(ScenarioError, match=r"until_s = 5.0 is out of range; valid: above 5"):
        route_change(delay_ms=20, at_s=5, until_s=5)


def test_a_walk_of_delays_is_a_reflected_one():
    """Steps of the given deviation away from the bounds, uniform within them in the long run, the same from the same seed."""
    walk = delay_walk(low_ms=10, high_ms=50, sigma_ms=2, step_s=0.02, duration_s=2000, seed=3)
    delays = walk.delay_ms
    assert len(delays) == 100_000 and walk.time_s[1] == 0.02 and 10 <= delays.min() < 10.1 and 49.9 < delays.max() <= 50
    inside = np.abs(delays[:-1] - 30) < 10  # no step of ten deviations reaches a bound from there
    assert np.diff(delays)[inside].std() == pytest.approx(2, rel=0.02) and np.abs(np.diff(delays)).max() < 10
    assert np.quantile(delays, [0.25, 0.5, 0.75]) == pytest.approx([20, 30, 40], abs=3)
    again, other = (delay_walk(low_ms=10, high_ms=50, sigma_ms=2, step_s=0.02, duration_s=2000, seed=seed) for seed in (3, 4))
    assert again == walk != other
    assert set(delay_walk(low_ms=5, high_ms=5, duration_s=1).delay_ms) == {5}
    with pytest.raises(ScenarioError, match="sigma_ms = -1"):
        delay_walk(sigma_ms=-1)
    with pytest.raises(ScenarioError, match="high_ms = 3"):
        delay_walk(low_ms=9, high_ms=3)
    with pytest.raises(ScenarioError, match="duration_s = 2000 makes 2e\\+06 steps"):
        delay_walk(step_s=0.001, duration_s=2000)


def test_handovers_follow_their_seed_and_bounds():
    one, same, other = (handovers(low_ms=5, high_ms=50, interval_s=2, duration_s=1000, seed=seed) for seed in (1, 1, 2))
    assert one == same and one != other
    assert one.delay_ms.min() >= 5 and one.delay_ms.max() <= 50 and one.time_s[-1] < 1000
    assert np.diff(one.time_s).mean() == pytest.approx(2, rel=0.2)  # 500 of them: 4.5 % standard error
    with pytest.raises(ScenarioError, match=r"high_ms = 5.0 is out of range; valid: 10"):
        handovers(low_ms=10, high_ms=5)
    with pytest.raises(ScenarioError, match=r"makes 1e\+07 steps"):
        handovers(interval_s=0.1, duration_s=1e6)


def test_satellites_are_reassigned_on_time_and_drift_in_between():
    delays = leo_delays(low_ms=20, high_ms=40, drift_ms=3, first_s=4, duration_s=100, seed=3)
    assert delays == leo_delays(low_ms=20, high_ms=40, drift_ms=3, first_s=4, duration_s=100, seed=3)
    starts = [0, *range(4, 100, 15)]
    assert set(starts) <= set(delays.time_s.tolist())
    for start, end in zip(starts, [*starts[1:], 100], strict=True):
        within = delays.delay_at_ms(np.arange(start, end, 0.5))
        assert np.ptp(within) <= 3 and 20 <= within.min() and within.max() <= 40
    assert np.abs(np.diff(delays.delay_at_ms(np.array(starts)))).max() > 3
    still = leo_delays(drift_ms=0, duration_s=60, step_s=15)
    assert still.time_s.tolist() == [0, 15, 30, 45]


def test_interruptions_last_from_each_change():
    delays = DelaySchedule([0, 10, 20, 20.5], [5, 30, 31, 60])
    losses = interruptions(delays, length_ms=800, least_change_ms=2)
    assert losses.loss_at([0, 9.9, 10, 10.79, 10.81, 20.1, 20.5, 21.2, 21.4]).tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0]
    both = interruptions(delays, length_ms=800)
    assert both.loss_at([20.1, 20.7, 21.29, 21.31]).tolist() == [1, 1, 1, 0]  # the second begins while the first lasts
    around = interruptions(DelaySchedule([0, 1], [5, 9], period_s=2), length_ms=100)
    assert around.loss_at([0.05, 0.2, 1.05, 1.2, 2.05]).tolist() == [1, 0, 1, 0, 1]
