"""The rollout: tasks and plants that it knows nothing of, ends of all kinds, threads, and giving up."""

import dataclasses
import json
import threading

import kettles
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import cli, plants, rollout, tasks
from netbuf_gym.contenders import Callback, Model
from netbuf_gym.errors import ConfigError, SimulatorFault
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.tasks.congestion_window import CongestionControl, CongestionWindow
from netbuf_gym.tasks.measures import Measures
from netbuf_gym.zoo import checkpoint, running
from netbuf_gym.zoo.saved import SavedAgent

SHORT = {"name": "ppcc/4", "duration_s": 2.0}


@pytest.fixture
def boil(monkeypatch):
    """A task on a plant, both a stranger's."""
    plants.register("kettles", kettles.Kettles)
    tasks.register(kettles.RECORD)
    yield {"task": "boil", "plant": "kettles"}
    tasks.unregister("boil")
    plants.unregister("kettles")


def test_a_strangers_contenders_play_on_a_strangers_plant(boil):
    seeds = [1, 2, 3]
    hot, cold = (rollout.evaluate(name, seeds=seeds, **boil) for name in ("thermostat", "off"))
    assert all(60 <= report["heat_c"] < 66 for report in hot)
    assert all(20 <= report["heat_c"] < 30 and report["seconds"] == pytest.approx(2.02, abs=1e-3) for report in cold)
    assert rollout.evaluate("thermostat", seeds=seeds, agents=2, **boil)[::2] == hot
    chance = rollout.evaluate("random", seeds=seeds, recipe="steps", **boil)
    assert chance[:1] == rollout.evaluate("random", seeds=[1], recipe="steps", **boil)
    assert {report["heat_c"] for report in chance} != {report["heat_c"] for report in cold}
    with pytest.raises(ConfigError, match="thermostat does not speak recipe 'steps'"):
        rollout.evaluate("thermostat", seeds=seeds, recipe="steps", **boil)


def test_worlds_end_each_by_itself(boil):
    """By the measured clock, for good, or by failing; the others go on."""
    full = Callback(lambda observations: np.ones((len(observations), 1), np.float32), "full")
    specs = [{"start_c": 60}, {"start_c": -500}, {"start_c": -500, "bursts_s": 0.5}, {"start_c": -500, "duration_s": 1.0}]
    worlds = [rollout.World(kettles.kitchen(**one), 7, 0) for one in specs]
    order, steps = [], np.zeros(4, int)

    def count(view):
        steps[view.index] += 1

    watch = dict.fromkeys(range(4), count)
    ends = {}

    def each(view):
        order.append(view.index)
        ends[view.index] = view.report()[0]

    rollout.play(full, worlds, each, scenario="kitchen", watch=watch, **boil)
    assert order == [2, 0, 3, 1] and steps.tolist() == [7, 20, 5, 10]
    assert ends[0]["heat_c"] >= 100 and ends[2]["failure"] == "burst" and ends[2]["seconds"] == pytest.approx(0.505)
    assert [index for index, end in ends.items() if "failure" in end] == [2]
    for index, world in enumerate(worlds):  # alone as together
        alone = []
        rollout.play(full, [world], lambda view, alone=alone: alone.extend(view.report()), scenario="kitchen", **boil)
        assert alone == [ends[index]]


def test_plants_are_closed(boil, monkeypatch):
    made = []
    make = plants.make
    monkeypatch.setattr(plants, "make", lambda *args: made.append(make(*args)) or made[-1])
    rollout.evaluate("off", seeds=[1], **boil)
    with pytest.raises(RuntimeError):
        rollout.evaluate(Callback(lambda observations: (_ for _ in ()).throw(RuntimeError())), seeds=[1], **boil)
    assert len(made) == 4 and all(plant.closed for plant in made)


@pytest.mark.parametrize("measures", [Measures(), kettles.MEASURES])
def test_a_strangers_task_is_evaluated(boil, measures, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(tasks.record._REGISTRY, "boil", dataclasses.replace(kettles.RECORD, measures=measures))
    command = ["evaluate", "model=null", "env=boil", "plant=kettles", "scenario=kitchen", "seeds=3"]
    assert cli.main([*command, "baselines=[thermostat,off]", f"run_dir={tmp_path}"]) == 0
    text = capsys.readouterr().out
    assert "| thermostat | 6" in text and "| off | 2" in text
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result["controllers"]["off"]["episodes"]) == ({"heat_c"} if measures.metrics else {"heat_c", "seconds"})
    assert (tmp_path / "time_series.png").exists() == bool(measures.series)
    if not measures.baselines:
        assert cli.main([*command, f"run_dir={tmp_path}"]) == 2
    else:
        assert cli.main([*command, "plots=false", f"run_dir={tmp_path}"]) == 0
        assert list(json.loads((tmp_path / "result.json").read_text())["controllers"]) == ["thermostat", "random"]


class Stranger(CongestionWindow):
    """The congestion-window task under another name."""

    name = "stranger"


@pytest.fixture
def stranger():
    own = tasks.get("congestion_window")
    tasks.register(dataclasses.replace(own, rules=Stranger, ids=("test/Stranger-v0",), scenarios={}))
    yield "stranger"
    tasks.unregister("stranger")


def test_a_strangers_task_is_trained_and_its_agent_evaluated(stranger, tmp_path):
    env = ["env.name=stranger", "env.id=test/Stranger-v0"]
    tiny = ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "total_timesteps=64", "stagger_steps=0"]
    quiet = ["progress=false", "tensorboard=false", f"run_dir={tmp_path / 'run'}"]
    assert cli.main(["train", *env, *tiny, *quiet, "scenario=ppcc/4", "scenario.kwargs.duration_s=1"]) == 0
    command = ["evaluate", f"model={tmp_path / 'run'}", "scenario=ppcc/4", "scenario.kwargs.duration_s=2", "seeds=2"]
    assert cli.main([*command, "baselines=[cubic,random]", "plots=false", f"run_dir={tmp_path / 'out'}"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["task"] == "stranger" and list(result["controllers"]) == ["ppo", "cubic", "random"]
    agent = SavedAgent(checkpoint.read(tmp_path / "run"))
    reports = rollout.evaluate(agent, "stranger", SHORT, result["controllers"]["ppo"]["seeds"])
    assert [report["utility"] for report in reports] == result["controllers"]["ppo"]["episodes"]["utility"]
    with pytest.raises(nb.errors.CheckpointError, match="task = 'stranger'"):
        rollout.evaluate(agent, "congestion_window", SHORT, [1])


@pytest.mark.parametrize("name", tasks.names())
def test_more_threads_and_more_worlds_give_the_same(name):
    record = tasks.get(name)
    scenario = {"name": record.rules.default_scenario, "duration_s": 2.0}
    worlds = rollout.draw(name, scenario, [5, 6, 7])
    for contender in record.measures.baselines:
        one, many = (
            running.run_baselines(name, [contender], worlds, scenario=scenario, threads=threads)[0] for threads in (1, 3)
        )
        alone = running.run_baselines(name, [contender], worlds[:1], scenario=scenario)[0]
        for metric in record.measures.metrics:
            np.testing.assert_array_equal(one.metrics[metric], many.metrics[metric])
            np.testing.assert_array_equal(one.metrics[metric][:1], alone.metrics[metric])
        for key, values in one.series.items():
            np.testing.assert_array_equal(values, many.series[key])
            np.testing.assert_array_equal(values, alone.series[key])


@pytest.mark.parametrize("name", tasks.names())
def test_what_is_compared_is_there(name):
    """Baselines, pictures, benchmark and columns of a task name what it has."""
    record = tasks.get(name)
    measures, report = record.measures, rollout.evaluate("random", name, seeds=[1], max_episode_steps=5)[0]
    assert {*measures.baselines, *measures.shown} <= set(record.contenders)
    assert {measures.score, *measures.logged, *measures.metrics} <= report.keys()
    assert {one.metric for one in (*measures.columns, *measures.details, *measures.benchmark_columns)} <= set(measures.metrics)
    assert {key for key, _ in measures.scatter} <= set(measures.metrics)
    assert all(nb.scenarios.get(scenario) is not None for scenario in record.benchmark)
    for contender in record.contenders:
        assert record.contenders[contender]().name == contender


@pytest.mark.parametrize("threads", [1, 2])
def test_giving_up(threads):
    stop, seen = threading.Event(), []
    worlds = rollout.draw("congestion_window", SHORT, range(6))

    def each(view):
        seen.append(view.index)
        stop.set()

    with pytest.raises(rollout.Stopped):
        rollout.play(CongestionControl("cubic"), worlds, each, task="congestion_window", threads=threads, stop=stop)
    assert 1 <= len(seen) <= threads
    with pytest.raises(rollout.Stopped):
        rollout.play(Callback(lambda observations: [5] * 6), worlds, each, task="congestion_window", stop=stop)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_of_the_simulator_raises(threads, monkeypatch):
    def fault(self, until_ns):
        raise SimulatorFault("broken")

    monkeypatch.setattr(Simulator, "run", fault)
    with pytest.raises(SimulatorFault, match="broken"):
        rollout.evaluate("cubic", "congestion_window", SHORT, range(4), threads=threads)


def test_what_a_contender_sees_is_what_the_environment_shows():
    seen = []

    class Watching:
        def predict(self, observations, state=None, episode_start=None, deterministic=True):
            seen.append((observations, episode_start))
            return np.full(len(observations), 6), state

    env = nb.vector.VectorEnv(2, task="congestion_window", scenario=SHORT, recipe="ppcc", history=2)
    expected, _ = env.reset(seed=[3, 4])
    reports = rollout.evaluate(Model(Watching()), "congestion_window", SHORT, [3, 4], recipe="ppcc", history=2)
    assert len(seen) == 20 and [starts.tolist() for _, starts in seen] == [[True, True]] + [[False, False]] * 19
    for observations, _ in seen:
        np.testing.assert_array_equal(observations, expected)
        expected, _, _, _, info = env.step(np.full(2, 6))
    assert [report["utility"] for report in reports] == info["final_info"]["utility"].tolist()
