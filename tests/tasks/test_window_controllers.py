import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.controllers import ConstantAction
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import get
from netbuf_gym.tasks.congestion_window import CongestionControl, QueueTarget, episode_report

SHORT = {"name": "ppcc/4", "duration_s": 10.0}
TASK = "congestion_window"


def evaluate(controller, scenario=SHORT, seeds=(1, 2, 3), **kwargs):
    return rollout.evaluate(controller, TASK, scenario, seeds, **kwargs)


def spec_of(name):
    """A world that the controller can play in: some congestion controls are of one stack."""
    return {"name": "dumbbell", "rate_mbps": 10, "duration_s": 5, "stack": "ns3"} if name == "linuxreno" else SHORT


@pytest.mark.parametrize("name", tasks.get(TASK).controllers)
def test_every_controller_reports_every_seed(name):
    reports = evaluate(name, spec_of(name))
    assert len(reports) == 3
    expected = {"goodput_mbps", "mean_rtt_ms", "base_rtt_ms", "queue_delay_mean_ms", "loss_rate", "utility", "Mt"}
    for report in reports:
        assert expected <= set(report)
        assert 0 < report["goodput_mbps"] < 10 and report["utility"] < 0
    assert evaluate(name, spec_of(name)) == reports
    assert evaluate(name, spec_of(name), threads=3) == reports
    assert evaluate(name, spec_of(name), [1]) == reports[:1]


def test_controllers_meet_the_same_worlds():
    random = {"name": "ppcc/random", "duration_s": 1.0}
    ours, theirs = (evaluate(name, random, [4, 5]) for name in ("keep", "cubic"))
    assert [r["base_rtt_ms"] for r in ours] == [r["base_rtt_ms"] for r in theirs]


def test_several_senders():
    for controller in ("newreno", "queue_target"):
        reports = evaluate(controller, seeds=[1, 2], senders=2)
        assert len(reports) == 4 and sum(r["goodput_mbps"] for r in reports[:2]) < 9.7


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_default_observations_suffice(number):
    """A rule of a few lines on them beats BBR, CUBIC and NewReno in utility on the paper's scenarios."""
    utility = {
        name: np.mean([r["utility"] for r in evaluate(name, f"ppcc/{number}", range(3))])
        for name in ("queue_target", "newreno", "cubic", "bbr")
    }
    assert utility["queue_target"] > -0.06
    assert max(utility, key=utility.get) == "queue_target"


def test_keeping_the_window_in_both_recipes():
    still = ConstantAction([0.0])
    assert evaluate("keep") == evaluate("keep", recipe="default") == evaluate(still, actions="continuous")
    assert evaluate("keep", recipe="ppcc") == evaluate(ConstantAction(4), recipe="ppcc")
    keep = rollout.get_controller("keep", TASK)
    assert keep.match_arguments({"actions": "discrete", "drain": False}) == {"actions": "continuous", "drain": False}
    assert keep.match_arguments({"recipe": "ppcc", "interval_s": 0.2}) == {"recipe": "ppcc", "interval_s": 0.2}
    with pytest.raises(ConfigError, match="has none that keeps a window"):
        evaluate("keep", actions="discrete")
    reports = evaluate("keep", seeds=[0], recipe="ppcc")
    assert reports[0]["goodput_mbps"] == pytest.approx(2.29, rel=0.03)  # 10 segments a round trip of 50.4 ms


def test_a_rule_decides_as_in_the_environment():
    env, rule = Env(scenario=SHORT), QueueTarget()
    observation, _ = env.reset(seed=3)
    while not env.out_of_time:
        observation, *_ = env.step(env.engine.task.nearest_actions(rule.log_window_changes(observation[None]))[0])
    assert evaluate(rule, seeds=[3]) == [env.report()]


def test_a_congestion_control_over_time():
    worlds = rollout.draw_worlds(TASK, SHORT, [1, 2])
    for name in ("cubic", "keep"):
        seen, ends = [], []
        controller = rollout.get_controller(name, TASK)
        watch = {1: lambda view, seen=seen: seen.append(view.show())}
        each = lambda view, ends=ends: ends.append(view.index)  # noqa: E731
        rollout.play(controller, worlds, each, task=TASK, watch=watch, interval_s=0.5)
        assert sorted(ends) == [0, 1] and [one["time_s"] for one in seen] == pytest.approx(np.arange(1, 21) / 2)
        for one in seen:
            assert {"time_s", "cwnd_packets", "rtt_ms", "queue_packets"} <= one.keys()
        if name == "cubic":
            assert 48 < max(one["rtt_ms"] for one in seen) < 500 and max(one["queue_packets"] for one in seen) > 10
        else:
            settled = np.median([one["cwnd_packets"] for one in seen if one["time_s"] > 2])
            assert settled == pytest.approx(45, rel=0.2)  # what the slow start came to


@pytest.mark.parametrize(
    "make",
    [
        lambda: evaluate("best"),
        lambda: evaluate("agent"),
        lambda: CongestionControl("agent"),
        lambda: CongestionControl("fast"),
        lambda: evaluate(ConstantAction(12)),
        lambda: evaluate("keep", recipe="paper"),
        lambda: evaluate("queue_target", recipe="ppcc"),
        lambda: QueueTarget(segments=0),
        lambda: QueueTarget(gain=float("nan")),
        lambda: evaluate("linuxreno"),
        lambda: evaluate("cubic", "rlbm/default"),
        lambda: evaluate("cubic", surprise=1),
        lambda: evaluate("cubic", threads=0),
        lambda: evaluate("cubic", senders=0),
        lambda: evaluate("cubic", seeds=[]),
        lambda: evaluate("cubic", seeds=[1.5]),
        lambda: evaluate("cubic", seeds=3),
        lambda: rollout.evaluate("cubic", "switching", SHORT),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(NetbufError):
        make()
    with pytest.raises(ConfigError):
        evaluate("")


def test_a_report_of_a_flow_that_delivered_nothing_is_finite_where_it_can_be():
    counters = ("delivered_bytes", "rtt_count", "rtt_sum_s", "queue_drops", "random_losses", "packets_sent", "timeouts")
    nothing = {**dict.fromkeys(counters, 0), "rtt_min_s": np.nan, "sojourn_count": 0, "sojourn_sum_s": 0.0, "now_s": 100.0}
    report = episode_report(get("ppcc/1"), 0, nothing)
    assert report["goodput_mbps"] == 0 and report["loss_rate"] == 0
    assert np.isnan(report["utility"]) and np.isnan(report["mean_rtt_ms"]) and np.isnan(report["queue_delay_mean_ms"])
