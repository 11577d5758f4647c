"""Controllers, the rollout and evaluation on a plant and a task that have nothing to do with networks (`heating.py`)."""

import dataclasses
import json

import numpy as np
import pytest

from netbuf_gym import plants, tasks
from netbuf_gym.cli import program
from netbuf_gym.controllers import Callback, ConstantAction, Decider, RandomAction
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.tasks.metrics import Column, Measures
from tests.plants.heating import Rooms, a_room, record


class Thermostat(Decider):
    """Full power below 20 degrees."""

    name, recipes = "thermostat", ("default",)

    def start(self, rules, seeds):
        self._require_recipe(rules)
        return lambda observations, state, starts: (np.where(observations[:, 0] < 0.5, 4, 0), None)


MEASURES = Measures(
    metrics=("temperature_c", "energy_j"),
    columns=(Column("temperature_c", "temperature (C)", 1), Column("energy_j", "energy (kJ)", 2, 1e-3)),
    score="energy_j",
    lower_is_better=True,
    series=(("power_w", "power (W)"),),
    baselines=("thermostat", "random"),
)
ON = {"task": "heating", "plant": "rooms"}


@pytest.fixture(autouse=True)
def heating(monkeypatch):
    """The task with controllers of its own; the record of the task, to be changed."""
    own = {"thermostat": Thermostat, "off": lambda: ConstantAction(0, "off"), "random": RandomAction}
    made = dataclasses.replace(record(), controllers=own)
    tasks.register(made)
    plants.register("rooms", Rooms)
    Rooms.made.clear()
    yield made
    monkeypatch.undo()
    plants.unregister("rooms")
    tasks.unregister("heating")


def test_controllers_of_a_stranger_play_on_its_plant():
    hot, cold = (rollout.evaluate(name, seeds=[1, 2, 3], **ON) for name in ("thermostat", "off"))
    assert all(20 <= one["temperature_c"] < 30 and one["energy_j"] > 0 for one in hot)
    assert all(one["temperature_c"] < 10 and one["energy_j"] == 0 for one in cold)
    assert all(2.0 <= one["seconds"] < 2.2 for one in hot)  # by the measured clock
    two = rollout.evaluate("thermostat", seeds=[1, 2, 3], agents=2, **ON)
    assert len(two) == 6 and two[0] == two[1] and two[0]["energy_j"] < hot[0]["energy_j"]
    with pytest.raises(ConfigError, match="valid: thermostat, off, random"):
        rollout.evaluate("cubic", seeds=[1], **ON)


@pytest.mark.parametrize("actions", ["steps", "share", "digits"])
def test_chance_does_not_depend_on_its_neighbours(actions):
    reports = rollout.evaluate("random", seeds=[1, 2, 3], actions=actions, **ON)
    assert rollout.evaluate("random", seeds=[1], actions=actions, **ON) == reports[:1]
    assert len({one["energy_j"] for one in reports}) == 3


def test_the_first_recipe_is_played_unless_another_is_asked_for(heating, monkeypatch):
    class Warm(heating.rules):
        recipes, default_history = ("warm", "cosy"), {"warm": 1, "cosy": 2}

    monkeypatch.setitem(tasks.record._REGISTRY, "heating", dataclasses.replace(heating, rules=Warm))
    seen = []
    look = Callback(lambda observations: seen.append(observations.shape) or np.zeros(len(observations), int))
    for kwargs in ({}, {"recipe": "cosy"}):
        rollout.evaluate(look, seeds=[1, 2], **ON, **kwargs)
    assert set(seen) == {(2, 3), (2, 6)}
    with pytest.raises(ConfigError, match="thermostat does not support recipe 'warm'; valid: 'default'"):
        rollout.evaluate("thermostat", seeds=[1], recipe="warm", **ON)


def test_worlds_end_each_by_itself():
    """By the measured clock, for good, or by failing; the others go on."""
    full = Callback(lambda observations: np.full(len(observations), 4), "full")
    rooms = [{"outside_c": 30}, {}, {"fails_at_s": 0.55}, {"duration_s": 0.9}]
    worlds = [rollout.World(a_room(**one), 7 + number, 0) for number, one in enumerate(rooms)]
    order, ends, steps = [], {}, np.zeros(4, int)

    def count(view):
        steps[view.index] += 1
        assert view.show()["time_s"] > 0 and view.show()["power_w"] in (0, 2000)

    def each(view):
        order.append(view.index)
        ends[view.index] = view.report()[0]

    rollout.play(full, worlds, each, scenario="test/room", watch=dict.fromkeys(range(4), count), too_hot_c=45, **ON)
    assert order[0] == 2 and sorted(order) == [0, 1, 2, 3]
    assert ends[2]["failure"] == "the window broke" and [k for k, end in ends.items() if "failure" in end] == [2]
    assert ends[0]["temperature_c"] > 45 and ends[0]["seconds"] < 1
    assert 0.9 <= ends[3]["seconds"] < 1.1 and ends[3]["temperature_c"] < 45
    assert steps[2] <= 6 and steps[0] < steps[1]
    for index, world in enumerate(worlds):  # alone as together
        alone = []
        each_alone = lambda view, alone=alone: alone.extend(view.report())  # noqa: E731
        rollout.play(full, [world], each_alone, scenario="test/room", too_hot_c=45, **ON)
        assert alone == [ends[index]]


def test_plants_are_closed():
    def broken(observations):
        raise RuntimeError

    rollout.evaluate("off", seeds=[1], **ON)
    with pytest.raises(RuntimeError):
        rollout.evaluate(Callback(broken), seeds=[1], **ON)
    assert len(Rooms.made) == 4 and all(plant.closings == 1 for plant in Rooms.made)


@pytest.mark.slow
@pytest.mark.parametrize("measures", [Measures(), MEASURES])
def test_a_task_of_a_stranger_is_evaluated(heating, measures, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(tasks.record._REGISTRY, "heating", dataclasses.replace(heating, measures=measures))
    command = ["evaluate", "model=null", "env=heating", "plant=rooms", "seeds=3"]
    assert program.main([*command, "baselines=[thermostat,off]", f"run_dir={tmp_path}"]) == 0
    heading, row = ("temperature (C)", "| off | ") if measures.metrics else ("| energy_j |", "| off | 0.000")
    text = capsys.readouterr().out
    assert heading in text and row in text
    result = json.loads((tmp_path / "result.json").read_text())
    metrics = {"energy_j", "temperature_c"} | (set() if measures.metrics else {"seconds"})
    episodes = {name: one["episodes"] for name, one in result["controllers"].items()}
    assert all(set(one) == metrics for one in episodes.values())
    assert episodes["off"]["energy_j"] == [0, 0, 0] and min(episodes["thermostat"]["temperature_c"]) >= 20
    assert (tmp_path / "time_series.png").exists() == bool(measures.series)
    if measures.baselines:
        assert program.main([*command, "plots=false", f"run_dir={tmp_path}"]) == 0
        assert list(json.loads((tmp_path / "result.json").read_text())["controllers"]) == ["thermostat", "random"]
    else:
        assert program.main([*command, f"run_dir={tmp_path}"]) == 2
