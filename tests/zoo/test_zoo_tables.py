"""The zoo's tables: whose worlds their rows are of."""

import json
import shutil

import pytest

from netbuf_gym.zoo import library, tables

TASK, SCENARIO = "host_buffers", "auter/any"


@pytest.fixture
def zoo(tmp_path):
    """A zoo of three agents that were judged in the same worlds, and what changes the metrics of one of them."""
    for name in ("a2c", "dqn", "ppo"):
        there = tmp_path / "agents" / TASK / name
        there.mkdir(parents=True)
        shutil.copy(library.FOLDER / TASK / name / "metrics.json", there)

    def change(name, edit):
        path = tmp_path / "agents" / TASK / name / "metrics.json"
        metrics = json.loads(path.read_text())
        edit(metrics["scenarios"])
        path.write_text(json.dumps(metrics))

    return tmp_path, change


def test_rows_of_the_same_worlds_have_no_mark(zoo):
    text = tables.tables(zoo[0], TASK)
    assert tables.MARK not in text and text.count("card.md") == 3


def test_rows_of_other_worlds_are_marked_and_said_whoever_comes_first(zoo):
    folder, change = zoo

    def older(scenarios):
        for values in scenarios[SCENARIO]["baselines"].values():
            values["utility"] -= 0.25

    before = tables.tables(folder, TASK)
    change("a2c", older)
    text = tables.tables(folder, TASK)
    (marked,) = [line for line in text.splitlines() if "card.md" in line and tables.MARK in line]
    assert marked.startswith("| [a2c]")
    (note,) = [line for line in text.splitlines() if line.startswith(f"* {tables.MARK}")]
    baselines = json.loads((folder / "agents" / TASK / "dqn" / "metrics.json").read_text())["scenarios"][SCENARIO]["baselines"]
    now = baselines["default"]["utility"]
    assert f"a2c: worlds or simulator of another version on {SCENARIO}; " in note
    assert f"default has utility {now - 0.25:.4g} on {SCENARIO} there, and {now:.4g} in the other rows" in note
    unlearned = [[line for line in one.splitlines() if line.startswith("| default |")] for one in (before, text)]
    assert unlearned[0] == unlearned[1], "they are of the two that agree"


def test_rules_that_play_by_the_agents_own_recipe_or_intervals_are_no_other_worlds(zoo):
    folder, change = zoo

    def own(scenarios):
        for part in scenarios.values():
            found = part["baselines"]
            found["tune-1"]["utility"] += 1.0
            found["random"]["utility"] += 1.0
            part["baselines"] = {f"{name} (auter)": values for name, values in found.items()}

    change("dqn", own)
    assert tables.MARK not in tables.tables(folder, TASK)


def test_every_marked_agent_of_the_zoo_has_a_note():
    for task in ("congestion_window", "queue_threshold", "receiver_window", "host_buffers"):
        text = tables.tables(tables.ZOO, task)
        marked = {line.split("]")[0][3:] for line in text.splitlines() if "card.md" in line and tables.MARK in line}
        noted = {line.split(":")[0].split()[-1] for line in text.splitlines() if line.startswith(f"* {tables.MARK}")}
        assert marked == noted
