"""Baselines by task: their names, and short ways to have them play."""

import subprocess
import sys

import pytest

import netbuf_gym as nb
from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError

SHORT = {"name": "ppcc/4", "duration_s": 1.0}


def test_after_importing_the_package_its_modules_are_there():
    code = "import netbuf_gym as nb; print(nb.rewards, nb.wrappers.exchange_reward, nb.baselines.names(), nb.scenarios.names())"
    code += "; print(nb.stats.interquartile_mean, nb.zoo.names)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cubic" in done.stdout and "rlbm/default" in done.stdout
    assert {"baselines", "rewards", "scenarios", "wrappers"} <= set(nb.__all__) <= set(dir(nb))


@pytest.mark.parametrize("record", tasks.records(), ids=lambda record: record.name)
def test_names_are_those_of_controllers(record):
    names = nb.baselines.names(record.name)
    assert set(names) == set(record.controllers) and set(nb.baselines.list_defaults(record.name)) <= set(names)
    assert nb.baselines.make(nb.baselines.list_defaults(record.name)[0], record.name).name in names
    with pytest.raises(ConfigError, match="controller = 'nobody' is unknown; valid: "):
        nb.baselines.make("nobody", record.name)


def test_they_play_the_same_worlds():
    reports = nb.baselines.evaluate(["cubic", nb.controllers.RandomAction()], scenario=SHORT, seeds=[1, 2])
    assert list(reports) == ["cubic", "random"]
    assert reports["cubic"] == nb.rollout.evaluate("cubic", "congestion_window", SHORT, [1, 2])
    assert set(nb.baselines.evaluate(scenario=SHORT)) == set(nb.baselines.list_defaults())
    assert list(nb.baselines.evaluate("bbr", scenario=SHORT)) == ["bbr"]
    with pytest.raises(ConfigError, match="no two of one name"):
        nb.baselines.evaluate(["cubic", "cubic"], scenario=SHORT)
    with pytest.raises(ConfigError, match="task"):
        nb.baselines.names("nothing")


class Trained:
    """As `netbuf_gym.zoo.load` gives agents: something that has a controller, and can predict."""

    controller = nb.controllers.ConstantAction(5, name="trained")

    def predict(self, observations, state=None, episode_start=None, deterministic=True):
        return [5] * len(observations), state


def test_trained_agents_play_as_they_are():
    agent = Trained()
    reports = nb.baselines.evaluate([agent, "cubic"], scenario=SHORT, seeds=[1])
    assert reports["trained"] == nb.rollout.evaluate(agent, "congestion_window", SHORT, [1])
    assert nb.baselines.evaluate(agent, scenario=SHORT, seeds=[1]) == {"trained": reports["trained"]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (type("Learner", (), {"predict": Trained.predict})(), r"controllers\.Model\(model, name=...\)"),
        (nb.controllers.RandomAction, r"an object of it, RandomAction\(...\)"),
        (lambda observations: [5] * len(observations), r"controllers\.Callback\(function\)"),
        (7, r"controller = 7 is none; valid: a name"),
        (type("Odd", (), {"controller": "cubic"})(), "valid: a name"),
    ],
)
def test_what_is_no_controller_is_told_how_it_becomes_one(given, says):
    for play in (nb.baselines.evaluate, nb.rollout.evaluate):
        with pytest.raises(ConfigError, match=says):
            play(given, task="congestion_window", scenario=SHORT)
