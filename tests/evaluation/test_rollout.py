"""The rollout: threads, giving up, faults, and a task that it knows nothing of (plants: `plants/test_controllers.py`)."""

import dataclasses
import json
import threading

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import plants, tasks
from netbuf_gym.cli import program
from netbuf_gym.controllers import Callback, Model
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, SimulatorFault
from netbuf_gym.evaluation import comparison, rollout
from netbuf_gym.plants.simulated import SimPlant
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.tasks.congestion_window import CongestionControl, CongestionWindow
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent

SHORT = {"name": "ppcc/4", "duration_s": 2.0}


class Stranger(CongestionWindow):
    """The congestion-window task under another name."""

    name = "stranger"


@pytest.fixture
def stranger():
    own = tasks.get("congestion_window")
    tasks.register(dataclasses.replace(own, rules=Stranger, ids=("test/Stranger-v0",), scenarios={}))
    yield "stranger"
    tasks.unregister("stranger")


@pytest.mark.slow
def test_a_strangers_task_is_trained_and_its_agent_evaluated(stranger, tmp_path):
    env = ["env.name=stranger", "env.id=test/Stranger-v0"]
    tiny = ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "total_timesteps=64", "stagger_steps=0"]
    quiet = ["progress=false", "tensorboard=false", f"run_dir={tmp_path / 'run'}"]
    assert program.main(["train", *env, *tiny, *quiet, "scenario=ppcc/4", "scenario.kwargs.duration_s=1"]) == 0
    command = ["evaluate", f"model={tmp_path / 'run'}", "scenario=ppcc/4", "scenario.kwargs.duration_s=2", "seeds=2"]
    assert program.main([*command, "baselines=[cubic,random]", "plots=false", f"run_dir={tmp_path / 'out'}"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["task"] == "stranger" and list(result["controllers"]) == ["ppo", "cubic", "random"]
    agent = SavedAgent(checkpoint.read_model(tmp_path / "run"))
    reports = rollout.evaluate(agent, "stranger", SHORT, result["controllers"]["ppo"]["seeds"])
    assert [report["utility"] for report in reports] == result["controllers"]["ppo"]["episodes"]["utility"]
    with pytest.raises(nb.errors.CheckpointError, match="task = 'stranger'"):
        rollout.evaluate(agent, "congestion_window", SHORT, [1])


@pytest.mark.slow
@pytest.mark.parametrize("name", tasks.names())
def test_more_threads_and_more_worlds_give_the_same(name):
    record = tasks.get(name)
    scenario = {"name": record.rules.default_scenario, "duration_s": 2.0}
    worlds = rollout.draw_worlds(name, scenario, [5, 6, 7])
    for controller in record.measures.baselines:
        one, many = (
            comparison.run_baselines(name, [controller], worlds, scenario=scenario, threads=threads)[0] for threads in (1, 3)
        )
        alone = comparison.run_baselines(name, [controller], worlds[:1], scenario=scenario)[0]
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
    assert {*measures.baselines, *measures.shown} <= set(record.controllers)
    assert {measures.score, *measures.logged, *measures.metrics} <= report.keys()
    assert {one.metric for one in (*measures.columns, *measures.details)} <= set(measures.metrics)
    assert {key for key, _ in measures.scatter or ()} <= set(measures.metrics)
    assert all(nb.scenarios.get(scenario) is not None for scenario in record.benchmark)
    for controller in record.controllers:
        assert record.controllers[controller]().name == controller


@pytest.mark.parametrize("threads", [1, 2])
def test_giving_up(threads):
    stop, seen = threading.Event(), []
    worlds = rollout.draw_worlds("congestion_window", SHORT, range(6))

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


def test_what_a_controller_sees_is_what_the_environment_shows():
    seen = []

    class Watching:
        def predict(self, observations, state=None, episode_start=None, deterministic=True):
            seen.append((observations, episode_start))
            return np.full(len(observations), 6), state

    env = VectorEnv(2, task="congestion_window", scenario=SHORT, recipe="ppcc", history=2)
    expected, _ = env.reset(seed=[3, 4])
    reports = rollout.evaluate(Model(Watching()), "congestion_window", SHORT, [3, 4], recipe="ppcc", history=2)
    assert len(seen) == 20 and [starts.tolist() for _, starts in seen] == [[True, True]] + [[False, False]] * 19
    for observations, _ in seen:
        np.testing.assert_array_equal(observations, expected)
        expected, _, _, _, info = env.step(np.full(2, 6))
    assert [report["utility"] for report in reports] == info["final_info"]["utility"].tolist()


@pytest.mark.parametrize(
    ("task", "scenario", "env"),
    [
        ("queue_threshold", "rlbm/random", {}),
        ("queue_threshold", "rlbm/thesis-code", {"recipe": "thesis-code"}),  # decides by events
        ("congestion_window", "ppcc/3", {"per_ack": True}),
    ],
)
def test_an_ended_world_stands_still_and_the_others_are_what_they_are_alone(task, scenario, env):
    worlds = [
        rollout.draw_worlds(task, {"name": scenario, "duration_s": seconds}, [seed], **env)[0]
        for seconds, seed in ((1.0, 1), (3.0, 2), (2.0, 3))
    ]
    controller = rollout.get_controller("random", task)
    views, ended_ns, reports = {}, {}, {}

    def keep(view):
        views[view.index], ended_ns[view.index] = view, view.simulated.now_ns
        assert {k: one.simulated.now_ns for k, one in views.items()} == ended_ns
        reports[view.index] = view.report()

    rollout.play(controller, worlds, keep, task=task, scenario=worlds[0].scenario, **env)
    assert list(reports) == [0, 2, 1]
    for index, world in enumerate(worlds):
        alone: list = []
        rollout.play(controller, [world], lambda view, own=alone: own.append(view.report()), task=task, **env)
        assert repr(alone) == repr([reports[index]])  # by repr: NaN is NaN


def test_a_world_that_rests_runs_again_once_it_is_reset():
    engine = rollout._make_engine(2, "congestion_window", SHORT, {})
    (world,) = rollout.draw_worlds("congestion_window", SHORT, [1])
    for index in range(2):
        engine.start_world(index, world.scenario, world.seed)
    engine.start_history(range(2))
    engine.plant.rest(0)
    engine.decide(np.full(2, 5))
    assert [engine.plant.world(index).now_ns for index in range(2)] == [0, engine.interval_ns]
    engine.start_world(0, world.scenario, world.seed)
    engine.decide(np.full(2, 5))
    assert [engine.plant.world(index).now_ns for index in range(2)] == [engine.interval_ns, 2 * engine.interval_ns]
    engine.close()


class Slower(SimPlant):
    """Simulated worlds that are not run as the simulator would."""

    resets = 0

    def reset(self, world, scenario, seed):
        type(self).resets += 1
        super().reset(world, scenario, seed)


@pytest.fixture
def slower(monkeypatch):
    monkeypatch.setattr(Slower, "resets", 0)
    plants.register("slower", Slower)
    yield Slower
    plants.unregister("slower")


@pytest.mark.parametrize(("task", "name"), [("congestion_window", "cubic"), ("queue_threshold", "dt")])
def test_what_acts_in_simulated_worlds_refuses_another_plant(slower, task, name):
    message = f"{name} acts in the world, which plant = 'slower' does not allow; valid: 'sim', 'linux'"
    with pytest.raises(ConfigError, match=message):
        rollout.evaluate(name, task, plant="slower")
    with pytest.raises(ConfigError, match=message):
        rollout.check_controller(rollout.get_controller(name, task), None, task=task, plant="slower")
    worlds = rollout.draw_worlds(task, None, [1])
    with pytest.raises(ConfigError, match=message):
        comparison.run_baselines(task, [name], worlds, scenario=None, env={"plant": "slower"})
    short = {"name": tasks.get(task).rules.default_scenario, "duration_s": 0.2}
    assert len(rollout.evaluate(name, task, short, plant={"name": "sim"})) == 1
    assert slower.resets == 0


def test_a_rule_that_plays_its_own_recipe_does_so_on_the_plant_asked_for(slower):
    worlds = rollout.draw_worlds("congestion_window", SHORT, [1])
    env = {"recipe": "ppcc", "plant": "slower", "interval_s": 0.2}
    for number, name in enumerate(("queue_target", "random"), 1):
        comparison.run_baselines("congestion_window", [name], worlds, scenario=SHORT, env=env)
        assert slower.resets == number
    assert rollout.get_controller("queue_target", "congestion_window").match_arguments(env)["recipe"] != "ppcc"


def test_no_worlds_are_refused():
    with pytest.raises(ConfigError, match="worlds is empty; valid: at least one"):
        rollout.play(CongestionControl("cubic"), [], print, task="congestion_window")


@pytest.mark.parametrize(
    ("task", "name", "control"),
    [("receiver_window", "cubic", "cubic"), ("receiver_window", "nuwa", "newreno"), ("congestion_window", "bbr", "bbr")],
)
def test_what_acts_in_worlds_takes_the_place_that_an_agent_would(task, name, control):
    """In a world without agents, too."""
    world = nb.scenarios.dumbbell(senders=["newreno"] * 2, duration_s=2.0)
    seen = []
    rollout.play(rollout.get_controller(name, task), [rollout.World(world, 1, 1)], seen.append, task=task)
    (view,) = seen
    assert [flow.cc for flow in view.scenario.flows] == [control, "newreno"] and len(view.report()) == 1


def test_a_world_with_too_few_places_is_refused():
    worlds, cubic = [rollout.World(nb.scenarios.dumbbell(), 1, 1)], rollout.get_controller("cubic", "receiver_window")
    with pytest.raises(ConfigError, match="1 flows, 0 of them an agent's"):
        rollout.play(cubic, worlds, print, task="receiver_window", agents=2)
