"""Buffer schemes and thresholds in the agent's place: same worlds, same traffic, same reports."""

import math

import numpy as np
import pytest

from netbuf_gym import baselines, simulate
from netbuf_gym.env import Env
from netbuf_gym.errors import ConfigError
from netbuf_gym.vector import VectorEnv

SHORT = {"name": "rlbm/cubic-100-0.8", "duration_s": 20.0}
RANDOM = {"name": "rlbm/random", "duration_s": 10.0, "load": [0.5, 2.0], "queue_packets": [20, 100]}
NAMES = baselines.CONTROLLERS["queue_threshold"]


def same(a, b):
    return a.keys() == b.keys() and all(
        a[key] == b[key] or (isinstance(a[key], float) and math.isnan(a[key]) and math.isnan(b[key])) for key in a
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_controller_reports_every_seed(name):
    make = lambda: baselines.make(name, "queue_threshold")  # noqa: E731
    reports, again = (make().evaluate(SHORT, seeds=[1, 2, 3], threads=threads) for threads in (1, 2))
    assert len(reports) == 3 and all(same(a, b) for a, b in zip(reports, again, strict=True))
    for report in reports:
        assert 0 < report["goodput_mbps"] < 10 and report["slowdown_p99_p0"] >= 1 and report["duration_s"] == 20
        assert {"slowdown_p99_p1", "occupancy_p99", "queue_mean_packets_1", "difference_p99_s"} <= set(report)


@pytest.mark.parametrize("scenario", [SHORT, RANDOM, {"name": "rlbm/incast", "duration_s": 10}])
def test_constant_thresholds_are_the_static_schemes_exactly(scenario):
    for alphas, name in (((1, 1), "naive"), ((8, 1), "sophisticated")):
        fixed = baselines.FixedThresholds(alphas).evaluate(scenario, seeds=[4, 5, 6])
        scheme = baselines.BufferScheme(name).evaluate(scenario, seeds=[4, 5, 6])
        assert all(same(a, b) for a, b in zip(fixed, scheme, strict=True))
    coded = baselines.FixedThresholds((1, 1), "thesis-code").evaluate(SHORT, seeds=[4], betas=[1, 1])
    assert same(coded[0], baselines.BufferScheme("naive").evaluate(SHORT, seeds=[4])[0])


def test_reports_are_those_of_simulate():
    drawn = baselines.draw_worlds(RANDOM, [8])
    for name in ("naive", "abm", "dt", "static_bdp", "codel"):
        report = baselines.BufferScheme(name).evaluate(RANDOM, seeds=[8])[0]
        result = simulate(drawn[0][0].with_scheme(name), seed=drawn[0][1])
        assert report["goodput_mbps"] == pytest.approx(result.goodput_mbps)
        assert report["flows_completed"] == result.traffic.flows_completed
        for priority in (0, 1):
            expected = result.slowdown(99, priority)
            assert report[f"slowdown_p99_p{priority}"] == pytest.approx(expected, nan_ok=True)
        assert report["difference_max_s"] == pytest.approx(result.completed()["difference_s"].max())
        if result.switches:
            assert report["occupancy_p99"] == result.switches[0].occupancy_p99
            assert report["drops"] == result.switches[0].drops
        assert report["probe_delay_mean_ms"] == pytest.approx(result.probes[0].mean_ms)


def test_controllers_meet_the_same_worlds_and_traffic():
    env = VectorEnv(3, task="queue_threshold", scenario=RANDOM)
    env.reset(seed=[4, 5, 6])
    drawn = baselines.draw_worlds(RANDOM, [4, 5, 6])
    assert drawn == list(zip(env.engine.scenarios, env.engine.seeds.tolist(), strict=True))
    started = {
        name: [r["flows_started"] for r in baselines.make(name, "queue_threshold").evaluate(RANDOM, seeds=[4, 5, 6])]
        for name in ("naive", "abm", "fq_codel", "random")
    }
    assert len({tuple(one) for one in started.values()}) == 1


def test_series_of_a_scheme():
    scenario, seed = baselines.draw_worlds(SHORT, [1])[0]
    for name in ("naive", "codel"):
        series = baselines.BufferScheme(name).series(scenario, seed, 0.1)
        assert len(series["time_s"]) == 200 and series["time_s"][-1] == 20
        assert series["drops"].sum() == baselines.BufferScheme(name).episode(scenario, seed)["drops"]
        assert series["queue_packets"].max() > 20
    naive = baselines.BufferScheme("naive").series(scenario, seed, 0.1)
    assert np.array_equal(naive["queue_packets"], naive["queue_packets_0"] + naive["queue_packets_1"])


@pytest.mark.parametrize("recipe", ["default", "thesis-text", "thesis-code"])
def test_predict_takes_rows_or_one_switch(recipe):
    for controller in (baselines.FixedThresholds((1, 0.5), recipe), baselines.RandomThresholds(3, recipe)):
        vector = VectorEnv(3, task="queue_threshold", scenario=SHORT, recipe=recipe)
        scalar = Env(task="queue_threshold", scenario=SHORT, recipe=recipe)
        rows, _ = vector.reset(seed=0)
        actions, _ = controller.predict(rows, None, np.ones(3, bool), deterministic=True)
        assert actions in vector.action_space
        one, _ = controller.predict(scalar.reset(seed=0)[0])
        assert one in scalar.action_space and np.array_equal(one, actions[0])


def test_random_thresholds_are_uniform_and_seeded():
    obs = np.zeros((200, 5))
    controller, state, seen = baselines.RandomThresholds(1), None, []
    for _ in range(50):
        actions, state = controller.predict(obs, state)
        seen.append(actions)
    seen = np.stack(seen)
    assert np.abs(seen).max() <= 1 and abs(seen.mean()) < 0.02 and seen.std() == pytest.approx(3**-0.5, abs=0.01)
    assert np.array_equal(baselines.RandomThresholds(1).predict(obs)[0], seen[0])
    assert not np.array_equal(baselines.RandomThresholds(2).predict(obs)[0], seen[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: baselines.make("best", "queue_threshold"),
        lambda: baselines.make("naive"),
        lambda: baselines.make("naive", "switching"),
        lambda: baselines.BufferScheme("agent"),
        lambda: baselines.BufferScheme("dt", beta=1),
        lambda: baselines.BufferScheme("dt", alphas=(-1, 1)).evaluate(SHORT, [1]),
        lambda: baselines.BufferScheme("naive").evaluate("ppcc/1", [1]),
        lambda: baselines.FixedThresholds((0, 1)),
        lambda: baselines.FixedThresholds((1, 1), "ppcc"),
        lambda: baselines.RandomThresholds(-1),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(ConfigError):
        make()
