import numpy as np
import pytest

from netbuf_gym import baselines
from netbuf_gym.env import Env
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.scenarios import get
from netbuf_gym.tasks.congestion_window import episode_report
from netbuf_gym.vector import VectorEnv

SHORT = {"name": "ppcc/4", "duration_s": 10.0}


@pytest.mark.parametrize("name", baselines.CONTROLLERS["congestion_window"])
def test_every_controller_reports_every_seed(name):
    reports = baselines.make(name).evaluate(SHORT, seeds=[1, 2, 3])
    assert len(reports) == 3
    expected = {"goodput_mbps", "mean_rtt_ms", "base_rtt_ms", "queue_delay_mean_ms", "loss_rate", "utility", "Mt"}
    for report in reports:
        assert expected <= set(report)
        assert 0 < report["goodput_mbps"] < 10 and report["utility"] < 0
    assert baselines.make(name).evaluate(SHORT, seeds=[1, 2, 3]) == reports


def test_controllers_meet_the_same_worlds():
    random = {"name": "ppcc/random", "duration_s": 1.0}
    ours = baselines.FixedAction().evaluate(random, seeds=[4, 5])
    theirs = baselines.CongestionControl("cubic").evaluate(random, seeds=[4, 5])
    assert [r["base_rtt_ms"] for r in ours] == [r["base_rtt_ms"] for r in theirs]


def test_several_senders():
    for controller in (baselines.CongestionControl("newreno"), baselines.QueueTarget()):
        reports = controller.evaluate(SHORT, seeds=[1, 2], senders=2)
        assert len(reports) == 4 and sum(r["goodput_mbps"] for r in reports[:2]) < 9.7


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_default_observations_suffice(number):
    """A rule of a few lines on them beats BBR, CUBIC and NewReno in utility on the paper's scenarios."""
    ours = np.mean([r["utility"] for r in baselines.QueueTarget().evaluate(f"ppcc/{number}", seeds=range(3))])
    assert ours > -0.06
    for name in ("newreno", "cubic", "bbr"):
        assert ours > np.mean([r["utility"] for r in baselines.make(name).evaluate(f"ppcc/{number}", seeds=range(3))])


@pytest.mark.parametrize("controller", [baselines.FixedAction(), baselines.RandomAction(), baselines.QueueTarget()])
def test_predict_takes_rows_or_one_sender(controller):
    vector, scalar = VectorEnv(3, scenario=SHORT), Env(scenario=SHORT)
    rows, _ = vector.reset(seed=0)
    actions, state = controller.predict(rows, None, np.ones(3, bool), deterministic=True)
    assert actions.shape == (3,) and actions in vector.action_space and state is None
    one, _ = controller.predict(scalar.reset(seed=0)[0])
    assert np.shape(one) == () and scalar.action_space.contains(np.int64(one))


def test_fixed_action_speaks_both_recipes():
    assert baselines.FixedAction(recipe="ppcc").action == 4 and baselines.FixedAction().action == 5
    reports = baselines.FixedAction(recipe="ppcc").evaluate(SHORT, seeds=[0])
    assert reports[0]["goodput_mbps"] == pytest.approx(2.29, rel=0.03)  # 10 segments a round trip of 50.4 ms


@pytest.mark.parametrize(
    "make",
    [
        lambda: baselines.make("best"),
        lambda: baselines.CongestionControl("agent"),
        lambda: baselines.CongestionControl("fast").evaluate(SHORT, [1]),
        lambda: baselines.FixedAction(11),
        lambda: baselines.FixedAction(recipe="paper"),
        lambda: baselines.RandomAction(-1),
        lambda: baselines.QueueTarget(segments=0),
        lambda: baselines.QueueTarget(gain=float("nan")),
        lambda: baselines.CongestionControl("linuxreno").evaluate(SHORT, [1]),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(NetbufError):
        make()
    with pytest.raises(ConfigError):
        baselines.make("")


def test_a_report_of_a_flow_that_delivered_nothing_is_finite_where_it_can_be():
    counters = ("delivered_bytes", "rtt_count", "rtt_sum_s", "queue_drops", "random_losses", "packets_sent", "timeouts")
    nothing = dict.fromkeys(counters, 0)
    report = episode_report(get("ppcc/1"), 0, nothing | {"rtt_min_s": np.nan, "sojourn_count": 0, "now_s": 100.0})
    assert report["goodput_mbps"] == 0 and report["loss_rate"] == 0
    assert np.isnan(report["utility"]) and np.isnan(report["mean_rtt_ms"]) and np.isnan(report["queue_delay_mean_ms"])
