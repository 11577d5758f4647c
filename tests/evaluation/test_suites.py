"""Suites: fixed sets of worlds, who is judged on them, and what is written."""

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym import scenarios, tasks
from netbuf_gym.cli.program import main
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import (
    SUITES,
    Cell,
    Edition,
    frozen,
    get_suite,
    paths,
    task_suites,
)
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, DRAW_WORLDS
from netbuf_gym.evaluation.suites.config import parse_arguments
from netbuf_gym.leaderboard import controllers, play, reports
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.congestion_window.paths import Path, PathWorld
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.zoo import library

GATE = get_suite("gate")


def cell(name, family, seed=1, senders=1, duration_s=3.0, **path):
    made = Path(**{"rtt_ms": 20.0, "buffer_packets": 30, "rate_mbps": 5.0, "starts_s": (0.0,) * senders, **path})
    world = PathWorld(family=family, duration_s=duration_s, paths=(made,))
    return Cell(name, family, world.scenario((AGENT,) * senders, name), seed)


SMALL = Edition(
    3,
    "abc",
    (
        cell("fixed-1", "fixed"),
        cell("fixed-2", "fixed", 2, duration_s=2.0, rate_mbps=20.0),
        cell("agents-1", "agents", 3, senders=2),
    ),
)
OURS = replace(GATE, load=lambda: SMALL)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(SUITES, "gate", OURS)
    return OURS


# ---- the sets


@pytest.mark.parametrize("name", paths.PLANS)
def test_sets_of_paths_have_all_families_and_keep_to_their_ranges(name):
    data = json.loads(frozen.get_file(name).read_text())
    assert data["suite"] == name and data["version"] >= 1 and data["digest"] == frozen.compute_digest(data["worlds"])
    worlds = [one["world"] for one in data["worlds"]]
    assert {one["family"] for one in worlds} == set(paths.OURS)
    assert len({one["name"] for one in data["worlds"]}) == len(worlds) == {"cards": 592}.get(name, 200)
    rates = [path["rate_mbps"] for one in worlds for path in one["paths"] if one["family"] == "fixed"]
    assert min(rates) < 1 and max(rates) > 500
    every = [path for one in worlds for path in one["paths"]]
    assert 5 <= min(path["rtt_ms"] for path in every) < 6 and 350 < max(path["rtt_ms"] for path in every) <= 400
    assert {len(one["paths"][0]["starts_s"]) for one in worlds if one["family"] == "agents"} == {2, 4, 8}
    assert all(len(one["paths"]) == 1 for one in worlds)


def test_no_two_sets_have_a_world_in_common():
    held = [json.loads(frozen.get_file(name).read_text())["worlds"] for name in DRAW_WORLDS]
    seeds = [one["seed"] for worlds in held for one in worlds]
    assert len(set(seeds)) == len(seeds)
    drawn = [json.dumps(one["world"]) for worlds in held for one in worlds if not one["name"].startswith("ppcc")]
    assert len(set(drawn)) == len(drawn)


def test_the_gate_is_made_as_it_was_frozen():
    edition = GATE.load()
    assert len(edition.cells) == 200 and edition.families == ["ppcc", *paths.GATE]
    assert all(one.agents == len(one.scenario.flows) for one in edition.select_cells(["agents", "fixed"]))
    ppcc = scenarios.get("ppcc/2").with_agents(1)
    first = edition.cells[1].scenario
    assert replace(first, name="", flows=ppcc.flows) == replace(ppcc, name="")
    with pytest.raises(ConfigError, match="families holds 'fixd'"):
        edition.select_cells(["fixd"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in task_suites.SUITES])
def test_sets_of_other_tasks_are_what_their_families_say(name):
    own, (edition, task) = get_suite(name), name.split("/")
    cells, families = own.load().cells, task_suites.TASKS[task].families
    assert [one.family for one in cells] == [family for family in families for _ in range(task_suites.COUNTS[edition])]
    assert task_suites.COUNTS["v1"] >= 20 and len({one.name for one in cells}) == len({one.seed for one in cells}) == len(cells)
    worlds = json.loads(frozen.get_file(name).read_text())["worlds"]
    for one in worlds:
        for key, spec in families[one["family"]].arguments.items():
            value = one["world"][key]
            if hasattr(spec, "low"):
                assert spec.low * (1 - 1e-5) <= value <= spec.high * (1 + 1e-5), (one["name"], key)
            elif not hasattr(spec, "sample_at"):
                assert value == spec, (one["name"], key)
    assert task_suites.draw_worlds(name, 1) == worlds, "drawn anew they are the same, or the version is another"


@pytest.mark.slow
@pytest.mark.parametrize("task", task_suites.TASKS)
def test_worlds_of_other_tasks_are_measured_as_reports_say(task):
    own = get_suite(f"v1/{task}")
    first = {one.family: one for one in reversed(own.load().cells)}
    cells = [replace(one, scenario=replace(one.scenario, duration_s=30.0)) for one in list(first.values())[3:6]]
    played = play.run(own, cells, controllers.resolve_controller("random", own))
    (told,) = rollout.evaluate("random", task, cells[0].scenario, [cells[0].seed])
    measures = tasks.get(task).measures
    assert own.score.key == ("score" if measures.lower_is_better else measures.score)
    assert {metric.key for metric in own.metrics} - {"score"} <= set(told)
    if measures.lower_is_better:
        assert played.values[0]["score"] == pytest.approx(-math.log(played.values[0][measures.score]))


def test_each_task_has_one_suite_to_rank_by_and_one_to_choose_on():
    assert set(CHOOSE_ON) == {name.partition("/")[2] for name in SUITES if name.startswith("v1/")} == set(tasks.names())
    assert get_suite("v1/congestion_window").load().digest == GATE.load().digest
    assert all(get_suite(name).task == task for task, name in CHOOSE_ON.items())


# ---- what is measured


def test_measures_are_those_of_the_report():
    played = play.run(GATE, SMALL.cells, controllers.resolve_controller("cubic", GATE))
    one = SMALL.cells[0]
    (told,) = rollout.evaluate("cubic", GATE.task, one.scenario, [0])  # no loss: no seed decides anything
    assert played.values[0]["utility"] == told["utility"]
    assert played.values[0]["share"] == told["goodput_mbps"] / 5 and math.isnan(played.values[0]["jain"])
    assert played.values[0]["inflation"] == told["mean_rtt_ms"] / told["base_rtt_ms"]
    shared = played.values[2]
    assert 0.5 < shared["jain"] <= 1 and 0.3 < shared["share"] < 1.1


def test_who_delivers_nothing_is_worst_and_no_gap():
    silent = cell("late", "fixed", duration_s=1.0, rtt_ms=3000.0)
    played = play.run(GATE, [silent], controllers.resolve_controller("cubic", GATE))
    value = played.values[0]["utility"]
    share = 1448 * 8e-6 / 5
    assert value == pytest.approx(0.5 * math.log(share)) and math.isnan(played.values[0]["inflation"])


def test_deciders_rules_and_constants_play_every_cell():
    names = ["queue_target", "constant:5", "keep", "random"]
    for name in names:
        seen = []
        played = play.run(GATE, SMALL.cells, controllers.resolve_controller(name, GATE), each=seen.append)
        assert played.name == name and sorted(one.name for one in seen) == sorted(one.name for one in SMALL.cells)
        assert np.isfinite(played.list_values("utility")).all() and len(played.list_values("utility", "fixed")) == 2


# ---- controllers and settings


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("cubik", ConfigError, "'cubik' is no controller of congestion_window; did you mean 'cubic'"),
        ("constant:[", ConfigError, "valid: constant:ACTION"),
        ("queue_threshold/ppo", ConfigError, "is an agent of task 'queue_threshold'; suite gate is of task"),
    ],
)
def test_who_cannot_play_is_refused_by_name(word, error, message):
    with pytest.raises(error, match=message):
        controllers.resolve_controller(word, GATE)


def test_a_model_of_other_observations_is_refused_by_family(monkeypatch):
    def lacking(*args, **kwargs):
        raise CheckpointError("observation field 'rtt_trend' is missing")

    monkeypatch.setattr(rollout, "check_controller", lacking)
    with pytest.raises(CheckpointError, match=r"keep cannot play the family 'fixed' of suite gate: .*'rtt_trend'"):
        controllers.require_fit(controllers.resolve_controller("keep", GATE), SMALL.cells, GATE)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="constant:99 cannot play the family 'fixed' of suite gate: action = 99"):
        controllers.require_fit(controllers.resolve_controller("constant:99", GATE), SMALL.cells, GATE)
    with pytest.raises(ConfigError, match="action = True"):
        controllers.require_fit(controllers.resolve_controller("constant:true", GATE), SMALL.cells, GATE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": [{"name": "moon_phase"}]}, "was trained with features = .*'moon_phase'"),
        ({"history": 3}, "was trained with history = 3, this environment has 4"),
        ({"task": "queue_threshold"}, "task"),
    ],
)
def test_a_saved_model_of_other_observations_is_refused_by_family(change, message):
    saved = checkpoint.read_model(library.FOLDER / "congestion_window" / "ppo")
    lacking = SavedAgent(replace(saved, env=saved.env | {"schema": saved.env["schema"] | change}), "mine")
    with pytest.raises(CheckpointError, match=rf"^mine cannot play the family 'fixed' of suite gate: .*{message}") as caught:
        controllers.require_fit(lacking, SMALL.cells, GATE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing: controller="),
        (["controler=a"], "unknown; did you mean 'controller='"),
        (["controller=a", "controller=b"], "controller is given twice"),
        (["controller=[]"], "controller is empty"),
        (["controller=a", "families=[]"], "families is empty; valid: at least one"),
        (["controller=[a,a]"], "controller holds 'a' twice"),
        (["controller=a", "threads=0"], "threads = 0"),
        (["controller=a", "figures=3"], "figures = 3"),
        (["controller=a", "tolerance=-1"], "tolerance = -1"),
        (["controller=a", "output=''"], "output = ''"),
    ],
)
def test_mistaken_settings_are_refused_by_name(words, message):
    with pytest.raises(ConfigError, match=message):
        parse_arguments(GATE, words)


def test_settings_are_written_as_they_are_read():
    order = parse_arguments(GATE, ["controller=['constant:5',bbr]", "families=fixed", "threads=1"])
    assert order.controllers == ("constant:5", "bbr") and order.families == ("fixed",) and order.figures
    assert order.command == """netbuf-gym suite gate 'controller=['"'"'constant:5'"'"',bbr]' families=fixed"""


# ---- the command


def run(tmp_path, *words):
    return main(["suite", "gate", *words, f"output={tmp_path / 'out'}", "threads=1", "figures=false"])


def test_the_command_writes_tables_rows_and_json(small, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["suite", "gate", "controller=[cubic,keep]", f"output={tmp_path / 'out'}", "threads=1"]) == 0
    printed = capsys.readouterr().out
    assert "version 3, digest abc, 3 worlds" in printed and "| fixed" in printed and "| agents" in printed
    lines = (tmp_path / "out" / "worlds.csv").read_text().splitlines()
    assert lines[0] == "# netbuf-gym suite gate 'controller=[cubic,keep]'"
    rows = list(csv.DictReader(lines[1:]))
    assert len(rows) == 6 and [row["jain"] == "" for row in rows] == [True, True, False] * 2
    data = json.loads((tmp_path / "out" / "result.json").read_text())
    cubic = data["controllers"]["cubic"]
    assert (data["suite"], data["version"], data["digest"]) == ("gate", 3, "abc") and cubic["model_sha256"] is None
    both = [cubic["worlds"][name]["utility"] for name in ("fixed-1", "fixed-2")]
    assert cubic["families"]["fixed"]["utility"] == pytest.approx(np.mean(both)) and cubic["families"]["all"]["worlds"] == 3
    assert f"{np.mean(both):.3f} ±" in (tmp_path / "out" / "table.md").read_text()
    drawn = sorted(path.name for path in (tmp_path / "out" / "figures").iterdir())
    assert drawn == ["families.png", "scatter.png", "worlds.png"]


def test_percentiles_of_flows_have_their_number_beside_them():
    suite = get_suite("v1/queue_threshold")
    cells = suite.load().cells[:2]
    naive = play.run(suite, cells, rollout.get_controller("naive", suite.task))
    counts = [rollout.evaluate("naive", suite.task, one.scenario)[0]["flows_started"] for one in cells]
    for one, most in zip(naive.values, counts, strict=True):
        assert 0 < one["flows_completed_p0"] + one["flows_completed_p1"] == one["flows_completed"] <= most
    one, other = ({"flows_completed_p0": n, "flows_completed_p1": 0.0, "flows_completed": n} for n in (1250.0, 7.0))
    values = [
        {**naive.values[0], "slowdown_p99_p1": math.nan, **one},
        {**naive.values[1], "slowdown_p99_p1": math.nan, **other},
    ]
    made = reports.summarise(replace(naive, values=values), suite, ["random"])
    assert made["random"]["slowdown_p99_p0_flows"] == made["all"]["score_flows"] == (7, 1250)
    assert made["all"]["slowdown_p99_p1_flows"] is None, "no percentile, no number"
    text = reports.format_tables(suite, {"naive": made, "dt": made})
    assert "| family | worlds | flows | naive | dt |" in text and "| random | 2 | 7 to 1,250 | **" in text
    assert text.count(", 7 to 1,250 flows |") == 12 and "flows completed |" not in text
    said = reports.warn_of_few(suite, {"naive": made})
    assert said.startswith("few flows in a world: 7 behind score, 7 behind p99 slowdown, priority 0, 7 behind p99 FCT")
    assert reports.to_dict(suite, suite.load(), [naive], {"naive": made}, {}, "")["warnings"] == [said]
    few = [{key: value for key, value in one.items() if key not in suite.counts} for one in naive.values]
    old = reports.summarise(replace(naive, values=few), suite, ["random"])
    assert reports.warn_of_few(suite, {"naive": old}) == "" and "| random | 2 | - | " in reports.format_tables(
        suite, {"naive": old, "dt": old}
    )
    assert not get_suite("v1/host_buffers").counts


def test_against_an_earlier_result(small, tmp_path, capsys):
    assert run(tmp_path, "controller=cubic") == 0
    result = tmp_path / "before.json"
    (tmp_path / "out" / "result.json").rename(result)
    assert run(tmp_path, "controller=cubic", f"against={result}") == 0
    assert run(tmp_path, "controller=cubic", f"against={result}", "families=[fixed]") == 0
    data = json.loads(result.read_text())
    data["controllers"]["cubic"]["families"]["agents"]["utility"] += 0.5
    result.write_text(json.dumps(data))
    capsys.readouterr()
    assert run(tmp_path, "controller=cubic", f"against={result}") == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("by more than 0.02: agents")
    assert run(tmp_path, "controller=cubic", f"against={result}", "tolerance=0.6") == 0
    data["version"] = 2
    result.write_text(json.dumps(data))
    capsys.readouterr()
    assert run(tmp_path, "controller=cubic", f"against={result}") == 2
    assert "is of suite gate, version 2, digest abc; valid: suite gate, version 3, digest abc" in capsys.readouterr().err
    result.write_text(json.dumps(data | {"suite": "v1/congestion_window", "version": 1}))  # the same worlds under another name
    assert run(tmp_path, "controller=cubic", f"against={result}", "tolerance=0.6") == 0
    result.write_text(json.dumps(data | {"suite": "v1/congestion_window", "version": 1, "digest": "abd"}))
    assert run(tmp_path, "controller=cubic", f"against={result}") == 2
    with pytest.raises(ConfigError, match="cannot be read"):
        reports.read_earlier(tmp_path / "none.json", GATE, SMALL, [])
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"is no result.json of a suite"):
        reports.read_earlier(tmp_path / "bad.json", GATE, SMALL, [])


@pytest.mark.parametrize(
    ("controllers", "message"),
    [
        (3, "controllers 3"),
        ({"cubic": {}}, r"controllers\.cubic\.families\.fixed is not there"),
        ({"cubic": {"families": {"fixed": {"worlds": 2}}}}, "is not there"),
        ({"cubic": {"families": {"fixed": {"worlds": 2, "utility": "x"}}}}, "utility 'x'; valid: 2"),
        ({"cubic": {"families": {"fixed": {"worlds": 7, "utility": 0.0}}}}, "has 7 worlds"),
    ],
)
def test_against_what_is_no_result_is_refused_before_anything_is_played(small, tmp_path, capsys, controllers, message):
    assert run(tmp_path, "controller=cubic", "families=[fixed]") == 0
    result = tmp_path / "before.json"
    (tmp_path / "out" / "result.json").rename(result)
    data = json.loads(result.read_text())
    result.write_text(json.dumps(data | {"controllers": controllers}))
    capsys.readouterr()
    assert run(tmp_path, "controller=cubic", "families=[fixed]", f"against={result}") == 2
    told = capsys.readouterr()
    assert re.search(message, told.err) and "worlds\n" not in told.out


def test_an_output_that_is_no_folder_is_refused_before_anything_is_played(small, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["suite", "gate", "controller=cubic", f"output={output}"]) == 2
        told = capsys.readouterr()
        assert f"output = '{output}' is no folder" in told.err and told.out == ""


@pytest.mark.parametrize("words", [["suite", "gates"], ["suite", "gate"], ["suite", "gate", "controller=cubik"]])
def test_bad_input_is_one_line(words, capsys):
    assert main(words) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


# ---- what pages say of it


def result(**families):
    """A result of two controllers: by family a pair of scores."""
    held: dict = {"us": {"families": {}}, "them": {"families": {}}}
    for family, both in families.items():
        for one, score in zip(held.values(), both, strict=True):
            one["families"][family] = {"worlds": 2, **{metric.key: 0.0 for metric in GATE.metrics}, "utility": score}
    return {"suite": "gate", "version": 7, "command": "netbuf-gym suite gate", "controllers": held}


def test_a_page_says_of_which_suite_and_behind_whom():
    data = result(fixed=(-0.1, -0.2), rivals=(-0.5, -0.3), ppcc=(-0.05, -0.0499), all=(-0.3, -0.4))
    said = reports.describe_standing(data, GATE.score)
    assert said.startswith("On suite `gate`, version 7, of these us has the highest mean utility in 1 of 3 families")
    assert "worlds is ahead of all of them." in said
    assert said.endswith("Above it are: in `rivals` them by 0.200; in `ppcc` them by less than 0.001.")
    behind = reports.describe_standing(result(fixed=(-0.1, -0.2), all=(-0.3, -0.25)), GATE.score)
    assert "in 1 of 1 families, and over all worlds is behind them by 0.050. Above it are: nowhere." in behind
    data = result(fixed=(None, -0.2), rivals=(None, None), ppcc=(-0.05, None), all=(-0.3, -0.4))
    said = reports.describe_standing(data, GATE.score)
    assert "in 1 of 2 families, and over all worlds is ahead of all of them." in said
    assert said.endswith("Above it are: in `fixed` them (us has no score).")


def test_a_page_has_the_scores_of_families():
    data = result(fixed=(-0.1, -0.2), rivals=(-0.5, -0.3), ppcc=(-0.05, -0.0499), all=(-0.3, -0.4))
    table = reports.format_families(data, GATE)
    assert "| rivals | 2 | -0.500 | **-0.300** |" in table and table.endswith(reports.describe_standing(data, GATE.score))
