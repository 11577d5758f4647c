"""Counts of an agent's different actions: measured, kept, told by the card and, once, by `zoo.load`."""

import json
import shutil
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks, zoo
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.leaderboard import controllers
from netbuf_gym.zoo import decisions, library

CONSTANT, CHANGING = "host_buffers/a2c", "queue_threshold/a2c"


def test_actions_of_a_box_are_the_same_within_a_hundredth_of_its_range():
    box = gym.spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 10.0], np.float32))
    actions = np.array([[0.0, 5.0], [0.001, 5.01], [0.1, 5.0], [9.0, 5.0], [1.0, 5.0]])
    found = decisions.quantise_actions(actions, box)
    assert found.tolist() == [[50, 50], [50, 50], [55, 50], [100, 50], [100, 50]]
    assert decisions.quantise_actions(np.array([3, 4]), gym.spaces.Discrete(9)).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("actions", "share", "said"),
    [
        (1, [1.0, 1.0, 1.0], "takes one action in all of 1,400 decisions in 20 worlds of v1/x"),
        (
            3,
            [0.76, 0.8, 0.91],
            "takes 3 actions in all of 1,400 decisions in 20 worlds of v1/x, one of them in 76 to 91 % of a w",
        ),
        (
            30,
            [0.85, 0.93, 1.0],
            "takes 30 actions in all of 1,400 decisions in 20 worlds of v1/x, one of them in 85 to 100 % of ",
        ),
        (4, [0.4, 0.5, 0.9], ""),
    ],
)
def test_agents_that_mostly_decide_the_same_are_said_to(actions, share, said):
    one = {"suite": "v1/x", "worlds": 20, "decisions": 1400, "actions": actions, "share": share}
    assert library.describe_decisions({"decisions": one}).startswith(said) and bool(said) is bool(
        library.describe_decisions({"decisions": one})
    )
    assert library.describe_decisions({}) == ""


@pytest.mark.parametrize("name", library.names())
def test_the_package_says_of_all_of_its_agents_how_they_decide(name):
    metrics, card = (read(library.FOLDER / name) for read in (library.read_metrics, library.read_card))
    one = metrics["decisions"]
    assert one["model_sha256"] == controllers.compute_model_digest(name), "python -m netbuf_gym.zoo.decisions counts them"
    task, recipe = tasks.find_task(metrics["env"]), metrics["recipe"]
    assert one["suite"] == f"v1/{task}" and one["worlds"] == decisions.WORLDS and one["decisions"] > 100
    said = library.describe_decisions(metrics)
    first = card.partition("\n")[0]
    assert first.endswith(said) and ("takes" in first) is bool(said)
    assert [line for line in card.splitlines() if line.startswith(decisions.BUILT_IN)] == decisions.format_built_in(
        task, recipe
    )


def test_every_task_says_what_agents_of_its_own_recipe_need_not_learn():
    for task in ("congestion_window", "receiver_window", "host_buffers", "queue_threshold"):
        assert decisions.format_built_in(task, tasks.get(task).rules.recipes[0])[0].startswith(decisions.BUILT_IN)
    assert decisions.format_built_in("congestion_window", "own") == []


def test_load_says_once_that_an_agent_always_decides_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "_WARNED", set())
    with pytest.warns(UserWarning, match="host_buffers/a2c takes one action in all of .* decisions in 20 worlds") as found:
        zoo.load(CONSTANT)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zoo.load(CONSTANT)
        zoo.load(CHANGING)
    with pytest.warns(UserWarning, match="host_buffers/auter takes"):
        zoo.load("host_buffers/auter")
    code = f"from netbuf_gym import zoo; zoo.load({CONSTANT!r}); zoo.load({CONSTANT!r})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True).stderr
    assert told.count("UserWarning: host_buffers/a2c takes one action") == 1


@pytest.mark.parametrize(("name", "few"), [(CONSTANT, True), (CHANGING, False)])
def test_decisions_are_counted_and_kept(name, few, tmp_path, capsys):
    folder = tmp_path / "agent"
    shutil.copytree(library.FOLDER / name, folder)
    card = (folder / "card.md").read_text()
    plain = card.replace(card.partition("\n")[0], "# a title (default recipe), takes 2 actions in all of 3 decisions", 1)
    (folder / "card.md").write_text(plain)
    found = decisions.measure_decisions(folder, worlds=2)
    assert found["worlds"] == 2 and (found["actions"] == 1) is few and found["suite"] == f"v1/{name.partition('/')[0]}"
    low, mean, high = found["share"]
    assert 0 < low <= mean <= high <= 1 and (low == 1.0) is few
    assert decisions.measure_decisions(folder, worlds=2) == found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "measure_decisions", lambda agent: found)
        assert decisions.main([str(folder)]) == decisions.main([str(folder)]) == 0
    first = (folder / "card.md").read_text().partition("\n")[0]
    assert capsys.readouterr().out == f"{first}\n" * 2
    assert first == "# a title (default recipe)" + (f", {library.describe_decisions({'decisions': found})}" if few else "")
    assert (folder / "card.md").read_text().partition("\n")[2] == card.partition("\n")[2]
    assert json.loads((folder / "metrics.json").read_text())["decisions"] == found


def test_what_is_no_agent_of_the_zoo_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        decisions.keep_decisions("nobody")
    shutil.copy(library.FOLDER / CONSTANT / library.MODEL, tmp_path)
    with pytest.raises(ConfigError, match=r"lacks metrics.json or card.md; valid: the folder of an agent"):
        decisions.keep_decisions(tmp_path)
    assert decisions.main(["--help"]) == 0
