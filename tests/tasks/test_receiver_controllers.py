"""What plays in a receiver's place, and that all are measured alike."""

import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.controllers import ConstantAction
from netbuf_gym.envs.engine import Engine, make_generator
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.evaluation import rollout
from netbuf_gym.tasks.receiver_window import RECEIVERS, CongestionControl, ReceiverControl, UtilityMeter, nuwa_utility

TASK = "receiver_window"
SHORT = {"name": "nuwa/fairness", "n": 1, "duration_s": 8.0, "rtt_ms": 40, "buffer_packets": 100}
KEYS = {"utility", "goodput_mbps", "share", "data_mb", "queue_delay_mean_ms", "queue_delay_p95_ms", "loss_rate", "jain"}


def evaluate(controller, scenario=SHORT, seeds=(1, 2), **kwargs):
    return rollout.evaluate(controller, TASK, scenario, seeds, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in tasks.get(TASK).controllers if name != "linuxreno"])
def test_every_controller_reports_every_seed(name):
    reports = evaluate(name)
    assert len(reports) == 2
    for report in reports:
        assert KEYS <= set(report)
        assert 0 < report["goodput_mbps"] < 10 and 0 < report["share"] < 1 and report["jain"] == 1
        assert -1.5 < report["utility"] < 1 and report["queue_delay_p95_ms"] >= 0
    assert evaluate(name, threads=2) == reports and evaluate(name, seeds=[1]) == reports[:1]


def test_an_agent_and_what_is_in_its_place_are_measured_alike():
    """The utility of an agent's episode, from its telemetry, is that of the world's own counters at the same moments."""
    engine = Engine(1, task=TASK, scenario=SHORT)
    engine.reset_world(0, make_generator(3))
    engine.start_history([0])
    scenario, world = engine.scenarios[0], engine.plant.world(0)
    other = CongestionControl("cubic")
    sample = other.make_sampler(scenario, world)
    while not engine.ended[0]:
        engine.decide(np.array([5]))
        sample()
    (theirs,) = other.report(scenario, world)
    (ours,) = engine.report(0)
    assert ours == pytest.approx(theirs)
    assert ours["utility"] != 0
    engine.close()


def test_a_report_follows_from_what_was_counted():
    env = Env(task=TASK, scenario=SHORT, reward="alpha_fair")
    env.reset(seed=3)
    total, seconds = 0.0, 0.0
    while not env.out_of_time:
        _, reward, *_ = env.step(5)
        total, seconds = total + reward, seconds + 0.1
    assert env.report()["utility"] == pytest.approx(total / seconds, rel=1e-4)  # alone, the fair share is the capacity
    assert evaluate(ConstantAction(5), seeds=[3]) == [env.report()]


def test_a_world_that_was_not_sampled_has_no_utility():
    worlds = rollout.draw_worlds(TASK, SHORT, [1])
    controller, seen = CongestionControl("cubic"), []
    rollout.play(controller, worlds, lambda view: seen.append((view.report(), view.simulated)), task=TASK)
    ((report,), world) = seen[0]
    assert np.isfinite(report["utility"])
    (other,) = CongestionControl("cubic").report(worlds[0].scenario, world)
    assert np.isnan(other["utility"]) and other["goodput_mbps"] == report["goodput_mbps"]


def test_receivers_matter():
    """Where the window rules, the queue is what the receiver says; a fixed window carries a window a round trip."""
    fixed = ReceiverControl("fixed", window_bytes=10 * 1448)
    (report,) = evaluate(fixed, seeds=[1])
    assert report["goodput_mbps"] == pytest.approx(10 * 1448 * 8e-6 / 0.0413, rel=0.05)
    reports = {name: evaluate(name, seeds=[1])[0] for name in ("nuwa", "cubic")}
    assert reports["nuwa"]["queue_delay_mean_ms"] < reports["cubic"]["queue_delay_mean_ms"]
    assert reports["nuwa"]["goodput_mbps"] > 8


def test_gains_and_targets_are_what_is_asked_for():
    low, high = (evaluate(ReceiverControl("nuwa", target_ms=target), seeds=[1])[0] for target in (10, 60))
    assert low["queue_delay_mean_ms"] < high["queue_delay_mean_ms"]
    assert evaluate(ReceiverControl("nuwa", k=7)) == evaluate("nuwa_k7")


def test_several_agents_and_fairness():
    two = {"name": "nuwa/fairness", "n": 2, "stagger_s": 1.0, "duration_s": 8}
    for controller in ("cubic", "nuwa", "keep"):
        reports = evaluate(controller, two, [1], agents=2)
        assert len(reports) == 2 and 0.5 <= reports[0]["jain"] <= 1 and reports[0]["jain"] == reports[1]["jain"]
        shares = [report["goodput_mbps"] for report in reports]
        assert reports[0]["jain"] == pytest.approx(sum(shares) ** 2 / 2 / sum(share**2 for share in shares))


def test_over_time():
    worlds = rollout.draw_worlds(TASK, SHORT, [1])
    for name in ("cubic", "nuwa", "keep"):
        seen = []
        rollout.play(
            rollout.get_controller(name, TASK),
            worlds,
            lambda view: None,
            task=TASK,
            watch={0: lambda view, seen=seen: seen.append(view.show())},
            interval_s=0.5,
        )
        assert [one["time_s"] for one in seen] == pytest.approx(np.arange(1, 17) / 2)
        for one in seen:
            assert {"time_s", "window_packets", "queue_delay_ms", "throughput_mbps", "queue_packets"} <= one.keys()
        assert seen[-1]["throughput_mbps"] > 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: evaluate("best"),
        lambda: evaluate("agent"),
        lambda: evaluate("receiver_driven"),
        lambda: CongestionControl("receiver_driven"),
        lambda: ReceiverControl("cubic"),
        lambda: ReceiverControl("autotuned", window_bytes=5),
        lambda: evaluate(ReceiverControl("nuwa", k=-1)),
        lambda: evaluate(ReceiverControl("nuwa", gains=1)),
        lambda: evaluate("linuxreno"),
        lambda: evaluate("cubic", "rlbm/default"),
        lambda: evaluate("cubic", agents=2),
        lambda: evaluate("keep", sender="agent"),
        lambda: evaluate("keep", sender="fast"),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(NetbufError):
        make()


def test_names():
    controllers = tasks.get(TASK).controllers
    assert {*RECEIVERS, "cubic", "bbr", "vegas", "keep", "random"} <= set(controllers)
    assert "agent" not in controllers and "receiver_driven" not in controllers
    with pytest.raises(ConfigError, match="valid: "):
        rollout.get_controller("nuwa_k3", TASK)


def test_utilities_of_meters_are_within_bounds():
    rng, meter = np.random.default_rng(0), UtilityMeter(50)
    for _ in range(20):
        values = rng.exponential(1, (5, 50))
        values[:, rng.random(50) < 0.1] = np.nan
        meter.add(*values)
    for row in range(50):
        assert -1.5 <= meter.summarize(row)["utility"] <= 1
    assert nuwa_utility(np.zeros(3), 0.0, np.zeros(3)).tolist() == [0, 0, 0]
