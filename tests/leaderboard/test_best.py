"""The choice of a task's best controller: by rows, and no network where a rule does as well."""

import json
import shutil
from dataclasses import replace

import pytest

from netbuf_gym import tasks
from netbuf_gym.cli.program import main
from netbuf_gym.controllers import InWorld
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard import best, rows, scoring, standings
from netbuf_gym.utils.statistics import Interval

TASK = "queue_threshold"


@pytest.fixture(scope="module")
def standing():
    return standings.compute_standings(TASK)


def put(standing, name, score, role=None, **changes):
    """Return the standings with one controller at another score, in order."""
    made = [
        replace(one, middle=Interval(score, score - 0.1, score + 0.1), **changes) if one.name == name else one
        for one in standing
    ]
    if role is not None:
        made = [replace(one, role=role) if one.name == name else one for one in made]
    return sorted(made, key=lambda one: -one.middle.mean)


def test_a_network_counts_where_it_is_surely_ahead_of_rules_and_of_the_best_constant(standing):
    ahead, level = Interval(0.2, 0.1, 0.3), Interval(0.2, -0.1, 0.5)
    for over_rules, over_constant, first in ((ahead, ahead, True), (level, ahead, False), (ahead, level, False)):
        known = put(standing, "queue_threshold/ppo", 9.0, over_rules=over_rules, over_constant=over_constant)
        assert (best.select_best(TASK, known).name == "queue_threshold/ppo") is first
    known = put(standing, "queue_threshold/ppo", -9.0, over_rules=ahead, over_constant=ahead)
    assert best.select_best(TASK, known).name != "queue_threshold/ppo"


def test_rules_and_constants_are_chosen_by_their_score_and_what_acts_in_the_world_is_not(standing):
    for name in ("pulse", "brief_pulse", standings.read_best_constant(TASK)):
        assert best.select_best(TASK, put(standing, name, 9.0)).name == name
    for name in ("fq_codel", scoring.CHANCE):
        assert best.select_best(TASK, put(standing, name, 9.0)).name != name
    unchecked = tuple(replace(one, checked=False) for one in standing[0].results)
    known = put(standing, "pulse", 9.0, results=unchecked)
    assert best.select_best(TASK, known).name != "pulse"


@pytest.mark.slow
def test_the_choice_follows_the_rows(tmp_path):
    own = standings.get_ranking_suite(TASK)
    folder = rows.get_folder(own, tmp_path)
    shutil.copytree(rows.get_folder(own), folder)
    before = best.find_best(TASK, tmp_path)
    better = rows.read(rows.get_file(own, before, tmp_path))
    rows.get_file(own, before, tmp_path).unlink()
    assert best.find_best(TASK, tmp_path) != before
    edition, score = own.load(), own.score.key
    lower = {world: {**values, score: values[score] / 2} for world, values in better.worlds.items()}
    played = replace(better, about={**better.about, "controller": "brief_pulse-flows"}, worlds=lower)
    rows.write(rows.get_file(own, "brief_pulse-flows", tmp_path), played, own, edition)
    assert best.find_best(TASK, tmp_path) == "brief_pulse-flows"


@pytest.mark.slow
def test_every_task_with_results_has_a_best_controller_that_decides():
    for task in ("host_buffers", TASK):
        name = best.find_best(task)
        if name in tasks.get(task).controllers:
            assert not isinstance(rollout.get_controller(name, task), InWorld)


def test_tasks_that_are_unknown_or_have_no_results_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"task = 'queues' .*valid: .*queue_threshold"):
        best.find_best("queues")
    with pytest.raises(ConfigError, match=r"valid: .*netbuf-gym results make v1/queue_threshold"):
        best.find_best(TASK, tmp_path)


def test_the_word_stands_for_it_and_other_words_for_themselves(monkeypatch):
    monkeypatch.setattr(best, "find_best", lambda task: f"{task}'s")
    assert best.resolve_best("best", TASK) == "queue_threshold's" and best.resolve_best("naive", TASK) == "naive"


@pytest.mark.slow
def test_a_suite_plays_it_under_its_own_name(monkeypatch, tmp_path):
    monkeypatch.setattr(best, "find_best", lambda task: "limits")
    given = ["controller=best", "families=[shallow]", "figures=false", f"output={tmp_path}"]
    assert main(["suite", f"v1/{TASK}", *given]) == 0
    data = json.loads((tmp_path / "result.json").read_text())
    assert list(data["controllers"]) == ["limits"] and "controller=limits" in data["command"]
