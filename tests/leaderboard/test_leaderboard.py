"""The leaderboard: its results, submissions, standings and pages. Runs are read again from the offline files of wandb."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.cli.program import main
from netbuf_gym.errors import CheckpointError, ConfigError, MissingExtraError
from netbuf_gym.evaluation.suites import SUITES, Edition, get_suite
from netbuf_gym.leaderboard import field_reports, handed_in, results, rows, scoring, standings, submission
from netbuf_gym.tasks import record
from netbuf_gym.training.checkpoints import archive, digest
from netbuf_gym.zoo import library
from studies.pages import leaderboard_page
from tests.helpers.wandb_files import read_records
from tests.training.test_checkpoint import with_meta

TASK, AGENT = "queue_threshold", "queue_threshold/ppo"
FAMILIES = ("shallow", "overload")
MEASURES = {
    "heuristics": ("limits", "brief_pulse"),
    "constants": ("limits:5:5", "limits:50:20"),
    "baselines": ("naive",),
    "carded_beside": (),
    "ranked_beside": ("droptail",),
}


def small(name, digest):
    """A suite of a few short worlds of this one."""
    own, whole = get_suite(name), get_suite(name).load()
    cells = [one for family in FAMILIES for one in whole.select_cells([family])[:3]]
    cut = tuple(replace(one, scenario=replace(one.scenario, duration_s=10.0)) for one in cells)
    return replace(own, load=lambda: Edition(1, digest, cut))


@pytest.fixture(scope="module")
def suites():
    return {name: small(name, digest) for name, digest in ((f"v1/{TASK}", "aaa"), (f"validation/{TASK}", "bbb"))}


@pytest.fixture
def field(suites, measure, monkeypatch, tmp_path):
    """Two suites of a few worlds, few controllers, and a working folder of its own."""
    for name, own in suites.items():
        monkeypatch.setitem(SUITES, name, own)
    measure(TASK, **MEASURES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def played(suites, tmp_path_factory):
    """The agent's result on the small suite."""
    own = suites[f"v1/{TASK}"]
    path = tmp_path_factory.mktemp("played") / "suite.json"
    rows.write_result(path, submission.play_controller(AGENT, own, own.load()))
    return path


@pytest.fixture
def run(field, played):
    """A run's folder with its model and its evaluation."""
    folder = field / "mine"
    shutil.copytree(library.FOLDER / AGENT, folder)
    shutil.copy(played, folder / submission.EVALUATION)
    return folder


def changed(run, change):
    """Its evaluation, otherwise."""
    data = json.loads((run / submission.EVALUATION).read_text())
    change(data, data["controllers"][AGENT])
    (run / submission.EVALUATION).write_text(json.dumps(data))


# ---- results


KEPT = ("brief_pulse", "droptail", "limits", "naive", "random")


@pytest.fixture(scope="module")
def kept(suites, tmp_path_factory):
    """A folder of kept rows, made by the command."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        for name, own in suites.items():
            patch.setitem(SUITES, name, own)
        own = tasks.get(TASK)
        patch.setitem(record._REGISTRY, TASK, replace(own, measures=replace(own.measures, **MEASURES)))
        patch.setattr(library, "names", lambda: [AGENT])
        patch.chdir(folder)
        assert main(["results", "make", f"v1/{TASK}", "--results", "r"]) == 0
    return folder / "r"


@pytest.fixture
def controls(kept, tmp_path):
    """Those rows without the agent's."""
    shutil.copytree(kept, tmp_path / "controls")
    rows.get_file(get_suite(f"v1/{TASK}"), AGENT, tmp_path / "controls").unlink()
    return tmp_path / "controls"


@pytest.mark.slow
def test_rows_are_played_once_and_again_when_worlds_or_figures_are_others(field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    shutil.copytree(kept, field / "r")
    own, words = get_suite(f"v1/{TASK}"), [f"v1/{TASK}", "--results", "r"]
    best = standings.read_best_constant(TASK, field / "r")
    files = {path.stem for path in rows.get_folder(own, field / "r").glob("*.csv")}
    assert files == {*KEPT, "ppo", best.replace(":", "-")}
    assert main(["results", "status", *words]) == 0
    assert "7 of 7 results are current, by a replay of 14 worlds" in capsys.readouterr().out
    path = rows.get_file(own, AGENT, field / "r")
    agent = rows.read(path)
    assert agent.about["digest"] == "aaa" and agent.about["command"] == f"netbuf-gym results make v1/{TASK} {AGENT}"
    assert agent.about["decision_us"] > 1 and agent.about["cpu_seconds"] > 0 and agent.about["algo"] == "ppo"
    assert agent.about["machine"] == rows.read_processor_name() and agent.about["model_sha256"]
    assert rows.read(rows.get_file(own, "naive", field / "r")).about["decision_us"] is None

    path.write_text(path.read_text().replace('"aaa"', '"old"'))
    changed_row(rows.get_file(own, "droptail", field / "r"), own, goodput_mbps=1.01)
    assert main(["results", "status", *words]) == 1
    said = capsys.readouterr().out
    assert "5 of 7 results are current" in said and "digest old; valid:" in said
    assert re.search(r"droptail +1 of 2 +differs in 1 of 2 worlds .*, most in goodput_mbps of shallow-\d+ ", said)
    assert rows.read(rows.get_file(own, "droptail", field / "r")).stale.startswith("differs in 1 of 2 worlds")
    assert main(["leaderboard", "show", f"task={TASK}", "results=r"]) == 2, "of other worlds"
    before = {one.name: one.read_bytes() for one in rows.get_folder(own, field / "r").glob("*.csv")}
    assert main(["results", "make", *words]) == 0
    assert "2 results made, 5 were current" in capsys.readouterr().out
    after = {one.name: one.read_bytes() for one in rows.get_folder(own, field / "r").glob("*.csv")}
    assert {name for name in after if before[name] != after[name]} == {"ppo.csv", "droptail.csv"}
    assert rows.read(path).worlds == agent.worlds and main(["results", "status", *words, "--all"]) == 0
    assert not [one for one in (field / "runs").rglob("*") if one.is_file()], "parts that stand in the rows are removed"
    assert "7 of 7 results are current, by a replay of 42 worlds" in capsys.readouterr().out

    assert main(["leaderboard", "show", f"task={TASK}", "results=r"]) == 0
    told = capsys.readouterr().out
    standing = standings.compute_standings(TASK, field / "r")
    assert [one.name for one in standing] == re.findall(r"^\| \d+ \| \**([^ *]+)", told, re.M)
    assert "| naive | other control |" in told and "| goodput (% of naive's) |" in told
    assert re.search(r"^\| \d+ \| naive .*\| 100\.0 \|$", told, re.M)
    leaderboard_page.write_pages({TASK: standing}, field / "docs", field / "figures")
    check_pages(field / "docs", standing)


def changed_row(path, own, **factors):
    """The first world of a file with some of its figures multiplied."""
    found = rows.read(path)
    (first, values), *others = found.worlds.items()
    new = {first: {key: value * factors.get(key, 1.0) for key, value in values.items()}, **dict(others)}
    rows.write(path, replace(found, worlds=new), own, own.load())


def test_what_is_to_be_played_is_told_first_and_nothing_is_written(field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    own, words = get_suite(f"v1/{TASK}"), [f"v1/{TASK}", "--results", "r", "--dry-run"]

    def told():
        return "".join(capsys.readouterr())

    assert main(["results", "make", *words]) == 0 and not (field / "r").exists()
    said = told()
    assert re.search(rf"{TASK}: the best constant is chosen, \d+ worlds, \d+ s", said) and "6 to be played" in said
    shutil.copytree(kept, field / "r")
    changed_row(rows.get_file(own, "droptail", field / "r"), own, goodput_mbps=1.01)
    before = {path: path.read_bytes() for path in (field / "r").rglob("*.csv")}
    assert main(["results", "make", *words]) == 0 and "1 to be played" in told()
    assert main(["results", "make", *words, "--anew"]) == 0 and "7 to be played" in told()
    assert before == {path: path.read_bytes() for path in (field / "r").rglob("*.csv")}


def test_rules_may_differ_as_machines_do_but_no_family_as_a_whole(field, kept, monkeypatch, capsys):
    shutil.copytree(kept, field / "r")
    own, words = get_suite(f"v1/{TASK}"), ["status", f"v1/{TASK}", "limits", "--results", "r"]
    monkeypatch.setattr(results, "REPRODUCED", 0.8)
    path = rows.get_file(own, "limits", field / "r")
    before = path.read_text()
    changed_row(path, own, goodput_mbps=1.1)
    assert main(["results", *words]) == 0
    assert re.search(r"limits: current, and differs in 1 of 6 worlds .*, most in goodput_mbps", capsys.readouterr().out)
    path.write_text(before)
    family = own.load().cells[0].family
    whole = [cell.name for cell in own.load().cells if cell.family == family]
    found = rows.read(path)
    monkeypatch.setattr(results, "REPRODUCED", 0.0)
    doubled = {
        name: {key: 2 * one for key, one in values.items()} if name in whole else values
        for name, values in found.worlds.items()
    }
    rows.write(path, replace(found, worlds=doubled), own, own.load())
    assert main(["results", *words, "--all"]) == 1 and f"differs in {len(whole)} of 6 worlds" in capsys.readouterr().out


def test_rows_of_nothing_that_is_ranked_are_told_of_and_not_ranked(field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    shutil.copytree(kept, field / "r")
    own = get_suite(f"v1/{TASK}")
    found = rows.read(rows.get_file(own, "naive", field / "r"))
    path = rows.get_file(own, "oldcontrol", field / "r")
    rows.write(path, replace(found, about={**found.about, "controller": "oldcontrol"}), own, own.load())
    assert results.find_orphans(field / "r") == [path]
    assert "oldcontrol" not in [one.name for one in standings.compute_standings(TASK, field / "r")]


def test_a_retrained_agent_makes_its_own_rows_stale(field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    shutil.copytree(kept, field / "r")
    own = get_suite(f"v1/{TASK}")
    path = rows.get_file(own, AGENT, field / "r")
    found = rows.read(path)
    worlds = {name: {key: 1.1 * value for key, value in one.items()} for name, one in found.worlds.items()}
    rows.write(path, replace(found, about={**found.about, "model_sha256": "0" * 16}, worlds=worlds), own, own.load())
    assert main(["results", "status", "leaderboard", AGENT, "--results", "r"]) == 1
    assert "of another model: differs in 6 of 6 worlds" in capsys.readouterr().out
    assert main(["results", "status", f"v1/{TASK}", "naive", "--results", "r"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "cubik"], "WHAT = 'cubik' names no kept results; did you mean 'cubic'"),
        (["status", "sage", "naive"], "WHAT = sage naive names no kept results; valid: a controller of that suite"),
        (["status", "studies/rlbm/defalt"], "defalt' names no campaign; did you mean 'studies/rlbm/default'"),
        (["status", "cubic", "studies/x"], "WHAT = 'studies/x' names no campaign"),
        (["status", "cubic", "--results", "nowhere"], "--results nowhere: no such folder; valid: a folder of rows"),
        (["make", "--traces", "nowhere"], "--traces nowhere: no such folder; valid: a folder of measured traces"),
        (["make", "studies/live/congestion_window"], "valid: --live"),
        (["make", "--jobs", "0"], "--jobs"),
        (["make", "--executor", "cloud"], "executor = 'cloud'"),
    ],
)
def test_words_that_name_no_results_are_refused(words, said, capsys):
    assert main(["results", *words]) == 2
    assert said in capsys.readouterr().err


def test_rows_of_an_installed_package_are_not_made_in_place(field, monkeypatch, capsys):
    monkeypatch.setattr(rows, "INSTALLED", field / "site-packages")
    monkeypatch.setattr(rows, "FOLDER", field / "site-packages")
    assert main(["results", "make", f"v1/{TASK}", "naive"]) == 2
    assert "site-packages belongs to the installed package; valid: --results DIR" in capsys.readouterr().err


def check_pages(folder, standing):
    text, page = ((folder / f"leaderboard.{kind}").read_text() for kind in ("md", "html"))
    for one in standing:
        assert f"`{standings.get_command(one)}`" in text and f"<code>{standings.get_command(one)}</code>" in page
    assert page.count("<tr data-task") == len(standing) and page.count("<svg") == 2
    assert not re.search(r"(src|href)=|@import|https?://", page), "it needs nothing but itself"
    svg = re.findall(r"<svg.*?</svg>", page, re.S)
    for one in standing:
        assert f">{one.name.rpartition('/')[2]}</text>" in svg[0]
    assert text == leaderboard_page.format_markdown({TASK: standing}) and page == leaderboard_page.format_html({TASK: standing})


def test_results_that_are_none_are_refused(field, played):
    own = standings.get_ranking_suite(TASK)
    data = json.loads(played.read_text())
    path = field / "x.json"
    for text, match in (("[]", "is no result.json"), ('{"schema": "other", "controllers": {}}', "is no result.json")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=match):
            rows.read_result(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        rows.read_result(field / "none.json")
    data["controllers"][AGENT]["worlds"]["shallow-01"]["score"] = "best"
    with pytest.raises(ConfigError, match=r"shallow-01: score = 'best'; valid: a number"):
        standings.extract_results(data, own, own.load(), "x")
    with pytest.raises(ConfigError, match=r"constants.json: does not say .*results make v1/queue_threshold"):
        standings.read_best_constant(TASK, field)


# ---- handing in


@pytest.mark.slow
def test_an_agent_is_handed_in_offline_and_read_again(run, capsys):
    wandb = pytest.importorskip("wandb")
    words = ["mode=offline", "name=queue_threshold/mine", "runs=lb", "threads=1", "partial=true"]
    assert main(["leaderboard", "submit", str(run), *words]) == 0
    told = capsys.readouterr().out
    (folder,) = (run.parent / "lb" / "wandb").glob("offline-run-*")
    group = f"netbuf/QueueThreshold-v0/ppo/v1/{TASK}"
    assert f"group {group}" in told and f"wandb sync lb/wandb/{folder.name}" in told

    wandb.teardown()  # its service ends, and has written everything
    records = list(read_records(next(folder.glob("*.wandb"))))
    (started,) = [one.run for one in records if one.WhichOneof("record_type") == "run"]
    assert (started.run_group, started.job_type, started.project) == (group, "leaderboard", "netbuf-gym")
    config = {item.key: json.loads(item.value_json) for item in started.config.update}
    later = {item.key: json.loads(item.value_json) for one in records if one.HasField("config") for item in one.config.update}
    assert config["algo"]["name"] == "ppo" and later["leaderboard"]["digest"] == "aaa"
    (artifact,) = [one.artifact for one in records if one.HasField("artifact") and one.artifact.type == "model"]
    assert artifact.name.startswith(f"{TASK}-ppo-seed")
    paths = {entry.path for entry in artifact.manifest.contents}
    assert {"model.zip", "config.yaml", "result.json"} <= paths
    logged = {
        item.key or "/".join(item.nested_key): json.loads(item.value_json)
        for one in records
        if one.HasField("history")
        for item in one.history.item
    }
    assert logged["families/_type"] == "table-file" and logged["cpu_seconds"] > 0 and "score/overload" in logged

    (result,) = handed_in.find_offline_results(run.parent / "lb")
    own = standings.get_ranking_suite(TASK)
    (one,) = standings.collect_results([result], own, own.load())
    assert one.name == one.about["group"] == "queue_threshold/mine" and one.about["algo"] == "ppo"
    (file,) = (run.parent / "results" / "handed_in" / f"v1-{TASK}").iterdir()
    assert standings.collect_results([file], own, own.load())[0].worlds == one.worlds and file.stem.startswith(
        "queue_threshold-mine-seed"
    )

    folder, runs = file.parents[1], run.parent / "lb"
    again = submission.prepare_submission(str(run), name="queue_threshold/mine")
    assert [other.worlds for other in submission.read_handed_in(own, folder, runs)] == [one.worlds] * 2
    assert submission.read_handed_in(own, folder, run.parent / "none") == [], "nobody has checked them there"
    assert submission.keep_submission(again, folder, runs) == file and handed_in.is_checked(file, runs)
    file.write_text(file.read_text().replace(again.result["model_sha256"], "0" * 16, 1))
    assert not handed_in.is_checked(file, runs) and handed_in.is_checked(result, runs)
    with pytest.raises(ConfigError, match="holds rows of another model, queue_threshold/mine; valid: another name"):
        submission.keep_submission(again, folder, runs)


def test_an_agent_without_an_evaluation_is_evaluated(run):
    (run / submission.EVALUATION).unlink()
    one = submission.prepare_submission(str(run))
    assert (run / submission.EVALUATION).is_file() and one.name == "queue_threshold/mine" and one.evaluation.parent == run
    assert one.result["group"] == one.name and len(one.result["worlds"]) == 6


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data, own: data.update(version=2), r"evaluated on suite v1/queue_threshold, version 2.*; valid: .*version 1"),
        (lambda data, own: data.update(suite="gate"), "evaluated on suite gate"),
        (lambda data, own: own["worlds"].pop("shallow-02"), "lacks 1 of 6 worlds, 'shallow-02' first"),
        (lambda data, own: own.update(model_sha256="0" * 16), r"has results of .*\(0000000000000000\), not of .*model.zip"),
        (
            lambda data, own: [one.update(score=one["score"] + 0.3) for one in own["worlds"].values()],
            r"model.zip does not reproduce its score in 6 of 6 worlds: in .* it has .*, not .*; valid: its own results",
        ),
        (
            lambda data, own: [one.update(goodput_mbps=3 * one["goodput_mbps"]) for one in own["worlds"].values()],
            r"model.zip does not reproduce its goodput_mbps in 6 of 6 worlds: in .* it has .*, not .*; valid: its own results",
        ),
        (lambda data, own: own.pop("worlds"), "is no result.json"),
        (lambda data, own: own["worlds"]["shallow-01"].pop("goodput_mbps"), "shallow-01: lacks goodput_mbps; valid: score, "),
        (lambda data, own: own["worlds"]["shallow-01"].update(goodput_mbps="all"), "shallow-01: goodput_mbps = 'all'"),
    ],
)
def test_what_is_not_the_models_own_result_is_refused_with_the_reason(run, capsys, change, match):
    pytest.importorskip("wandb")
    changed(run, change)
    assert main(["leaderboard", "submit", str(run), "mode=offline", "runs=lb"]) == 2
    assert re.search(match, capsys.readouterr().err) and not (run.parent / "lb").exists()


def test_few_worlds_that_were_made_up_are_seen_in_the_mean(run, monkeypatch):
    changed(run, lambda data, own: own["worlds"]["shallow-02"].update(score=99.0))
    monkeypatch.setattr(results, "is_reproduced", lambda off, worlds: True)
    with pytest.raises(ConfigError, match=r"does not reproduce its score in 1 of 6 worlds: in shallow-02 .*, not 99"):
        submission.prepare_submission(str(run))


def test_what_is_kept_was_played_whatever_the_evaluation_says(run, played):
    true = json.loads(played.read_text())["controllers"][AGENT]["worlds"]

    def raise_all(data, own):
        for one in own["worlds"].values():
            one["score"] += 0.0195  # within the tolerance of other machines
        own.update(seed=77, algo="mine", cpu_seconds=0.001, seconds=0.001, timesteps=5, decision_us=0.001)

    changed(run, raise_all)
    found = submission.prepare_submission(str(run)).result
    assert {name: one["score"] for name, one in found["worlds"].items()} == pytest.approx(
        {name: one["score"] for name, one in true.items()}, abs=1e-4
    )
    assert found["algo"] == "ppo" and found["seed"] != 77 and found["timesteps"] > 5
    assert found["cpu_seconds"] > 0.01 and found["seconds"] > 0.01 and found["decision_us"] > 1


def test_means_by_family_are_those_of_the_worlds_whatever_the_evaluation_says(run):
    changed(run, lambda data, own: own.pop("families"))
    found = submission.prepare_submission(str(run))
    shallow = [one["score"] for name, one in found.result["worlds"].items() if name.startswith("shallow")]
    assert found.result["families"]["shallow"]["score"] == pytest.approx(np.mean(shallow))
    assert submission.tabulate_families(found)[1][0][:3] == ["shallow", 3, pytest.approx(np.mean(shallow))]
    changed(run, lambda data, own: own.update(families={"shallow": 3}))
    assert submission.prepare_submission(str(run)).result["families"] == found.result["families"]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("queue_threshold/dqn", "is that of another agent, of the package; valid: a name of its own"),
        ("../../x", r"name = '../../x'; valid: letters"),
        ("", "name = ''; valid: letters"),
    ],
)
def test_a_row_has_a_name_of_its_own(run, name, match):
    with pytest.raises(ConfigError, match=match):
        submission.prepare_submission(str(run), name=name)


def test_nobody_takes_the_name_of_a_rule(run, controls, capsys, monkeypatch):
    with pytest.raises(ConfigError, match="name = 'limits' is that of a controller of queue_threshold"):
        submission.prepare_submission(str(run), name="limits")
    monkeypatch.setattr(library, "names", list)
    before = standings.compute_standings(TASK, controls)
    changed(run, lambda data, own: own.update(group="random"))
    broken = run / "broken.json"
    broken.write_text("{")
    capsys.readouterr()
    after = standings.compute_standings(TASK, controls, [run / submission.EVALUATION, broken])
    assert [(one.name, one.middle, len(one.results)) for one in after] == [(one.name, one.middle, 1) for one in before]
    said = capsys.readouterr().out
    assert "passed over" in said and "has the name of a controller" in said and "broken.json: is no result.json" in said
    changed(run, lambda data, own: own.update(group="mine", seed=3))
    found = {one.name: one for one in standings.compute_standings(TASK, controls, [run / submission.EVALUATION])}
    assert found["mine (unchecked)"].role == scoring.AGENT and len(found) == len(before) + 1


# ---- figures that nobody has played


def trust(path):
    """Take a file's figures as played here."""
    return True


def raised(data, own):
    """The agent's figures, better than anything in every world, under another name, seed and digest."""
    for one in own["worlds"].values():
        one["score"] += 9.0
    own.update(group="mine", seed=3, model_sha256="f" * 16)


def test_a_result_without_a_run_is_shown_apart_and_never_first(run, field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    changed(run, raised)
    file = run / submission.EVALUATION
    own = standings.get_ranking_suite(TASK)
    before = standings.compute_standings(TASK, kept)
    after = standings.compute_standings(TASK, kept, [file])
    assert [(one.name, one.middle) for one in after[:-1]] == [(one.name, one.middle) for one in before]
    assert after[-1].name == "mine (unchecked)" and after[-1].middle.mean > after[0].middle.mean and not after[-1].checked
    assert "mine" not in " ".join(leaderboard_page.list_claims(after))
    assert leaderboard_page.select_firsts(after)[scoring.AGENT].name == AGENT
    assert "unchecked" in " ".join(standings.READING)

    logged = field / "lb" / "wandb" / "offline-run-1" / "files" / handed_in.RESULT  # a folder like a run's
    logged.parent.mkdir(parents=True)
    shutil.copy(file, logged)
    dropped = rows.get_folder(own, field / "h") / "mine.csv"  # rows like those that were kept
    rows.write(dropped, rows.parse_result(json.loads(file.read_text()), AGENT), own, own.load())
    capsys.readouterr()
    assert main(["leaderboard", "show", f"task={TASK}", f"results={kept}", "handed_in=h", "runs=lb"]) == 0
    ranked, _, apart = capsys.readouterr().out.partition("unchecked: handed in, and not played here")
    assert "mine" not in ranked and re.search(r"\n\| - \| \*\*mine \(unchecked\)\*\* \|", apart)

    handed_in.mark_checked(dropped, field / "lb")
    assert main(["leaderboard", "show", f"task={TASK}", f"results={kept}", "handed_in=h", "runs=lb"]) == 0
    assert "| 1 | **mine** |" in capsys.readouterr().out
    (field / "lb" / handed_in.CHECKED).write_text("{damaged")
    assert not handed_in.is_checked(dropped, field / "lb") and not handed_in.is_checked(field / "none", field / "lb")


def test_show_reads_rows_without_a_learner_or_the_worlds():
    code = (
        "import sys; from netbuf_gym.cli.program import main; from netbuf_gym.evaluation.suites import frozen\n"
        "frozen._make_cell = None\n"  # nobody makes a world
        "assert main(['leaderboard', 'show']) == 0; print(sorted({'torch', 'stable_baselines3'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and "v1/host_buffers" in done.stdout and "rfc9743" in done.stdout


@pytest.mark.slow
def test_kept_rankings_are_those_of_the_rows():
    kept = json.loads((rows.FOLDER / field_reports.RANKINGS).read_text())
    for suite in field_reports.SUITES:
        assert kept[suite.name]["rows"] == field_reports._compute_rows_digest(suite), "netbuf-gym results pages writes them"
        assert kept[suite.name]["ranking"] == field_reports._rank_kept(suite), suite.name


def test_rankings_of_other_rows_are_made_anew(monkeypatch, tmp_path):
    suite = next(one for one in field_reports.SUITES if one.name == "mvfst-rl")
    shutil.copytree(rows.get_folder(suite), tmp_path / "mvfst-rl")
    monkeypatch.setattr(rows, "FOLDER", tmp_path)
    monkeypatch.setattr(field_reports, "SUITES", [suite])
    ((_, ranking),) = field_reports.collect_rankings(suite.task)
    field_reports.write_rankings()
    first, *rest = ranking
    file = tmp_path / field_reports.RANKINGS
    kept = json.loads(file.read_text())
    kept["mvfst-rl"]["ranking"] = rest
    file.write_text(json.dumps(kept))
    assert field_reports.collect_rankings(suite.task) == [(suite, rest)], "it is read"
    rows.get_file(suite, first).unlink()
    assert first not in field_reports.collect_rankings(suite.task)[0][1] and rest[0] in ranking
    for text in ("[]", "{"):
        file.write_text(text)
        assert first not in field_reports.collect_rankings(suite.task)[0][1]


def read_perturbed(path, size, critic):
    """A model's parameters, each changed by so much of itself, and those of the critic by a factor."""
    with zipfile.ZipFile(path) as file:
        values, rng = archive.read_tensors(file, archive.PARAMETERS), np.random.default_rng(1)
    return {
        name: (one * (critic if "value_net" in name else 1 + size * rng.standard_normal(one.shape))).astype(one.dtype)
        for name, one in values.items()
    }


def test_parameters_are_known_again_whatever_the_file(monkeypatch):
    path = library.FOLDER / AGENT / library.MODEL
    own = digest.sketch_parameters(path)
    for size, critic, same in ((0.0, 1.0, True), (1e-5, 1.0, True), (0.0, 3.0, True), (0.1, 1.0, False)):
        values = read_perturbed(path, size, critic)
        with monkeypatch.context() as patch:
            patch.setattr(archive, "read_tensors", lambda *_, values=values: values)
            assert digest.is_same_sketch(digest.sketch_parameters(path), own) is same, (size, critic)
    others = [digest.sketch_parameters(library.FOLDER / name / library.MODEL) for name in library.names() if name != AGENT]
    assert not any(digest.is_same_sketch(one, own) for one in others)
    with pytest.raises(CheckpointError, match="no model saved by netbuf-gym"):
        digest.sketch_parameters(path.with_name("card.md"))


def test_seeds_that_share_parameters_are_one(run, controls, monkeypatch):
    monkeypatch.setattr(library, "names", list)
    files = [of_seed(run, seed, "mine") for seed in (1, 2, 3)]
    sketch = digest.sketch_parameters(run / library.MODEL)
    for file in files[:2]:
        data = json.loads(file.read_text())
        data["controllers"]["mine"]["parameters"] = sketch
        file.write_text(json.dumps(data))
    found = {one.name: one for one in standings.compute_standings(TASK, controls, files, trust)}
    assert standings.format_seeds(found["mine"]) == "2 of 3"

    one = submission.prepare_submission(str(run), name="mine")
    own = standings.get_ranking_suite(TASK)
    (other,) = standings.collect_results([files[0]], own, own.load())
    assert one.result["seed"] not in (1, 2)
    with pytest.raises(
        ConfigError, match=r"its parameters, of training seed \d+, are those of training seed 1 of mine; valid: a t"
    ):
        submission.require_seeds([one], [other])


def test_copies_with_edited_seeds_are_refused_before_they_are_played(field, monkeypatch, capsys):
    pytest.importorskip("wandb")
    monkeypatch.setattr(submission, "prepare_submission", None)
    for seed in (11, 12, 13):
        (field / f"seed{seed}").mkdir()
        own, copy = library.FOLDER / AGENT / library.MODEL, field / f"seed{seed}" / library.MODEL
        with_meta(own, copy, lambda meta, seed=seed: meta["config"].update(seed=seed))
    assert main(["leaderboard", "submit", "seed11", "seed12", "seed13", "name=mine", "mode=offline"]) == 2
    said = capsys.readouterr().err
    assert "seed12/model.zip: its parameters, of training seed 12, are those of training seed 11 of seed11" in said
    submission.require_own_parameters(["seed11", "seed11", "queue_threshold/dqn"])


def test_a_copy_of_an_agent_of_the_package_is_shown_for_what_it_is(run, played, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    before = standings.compute_standings(TASK, kept)
    file = run / submission.EVALUATION
    sketch = digest.sketch_parameters(run / library.MODEL)
    for change in (
        lambda own: own.update(parameters=sketch, worlds={name: {**one, "score": 9.0} for name, one in own["worlds"].items()}),
        lambda own: own.update(parameters=None),  # of other parameters that decide the same
    ):
        shutil.copy(played, file)
        changed(run, lambda data, own, change=change: (own.update(group="mine", seed=5, model_sha256="e" * 16), change(own)))
        capsys.readouterr()
        after = standings.compute_standings(TASK, kept, [file], trust)
        assert [one.name for one in after] == [one.name for one in before]
        assert f"mine is {AGENT} of the package, whose row stands for both" in capsys.readouterr().out


# ---- training seeds


def of_seed(run, seed, name):
    """The run's evaluation as a result of another training seed, in a file of its own."""
    data = json.loads((run / submission.EVALUATION).read_text())
    own = data["controllers"].pop(AGENT)
    data["controllers"][name] = {**own, "group": name, "model_sha256": f"{seed:016x}", "seed": seed}
    path = run / f"seed{seed}.json"
    path.write_text(json.dumps(data))
    return path


def test_a_row_says_how_many_training_seeds_it_has_where_they_are_few(run, controls, monkeypatch):
    monkeypatch.setattr(library, "names", list)
    files = [of_seed(run, seed, "mine") for seed in (1, 2, 3)]
    for number, said in ((1, "1 of 3"), (2, "2 of 3"), (3, "3")):
        standing = standings.compute_standings(TASK, controls, files[:number], trust)
        cells = {one.name: standings.format_seeds(one) for one in standing}
        assert cells == {**dict.fromkeys(cells, ""), "mine": said}
        row = next(line for line in standings.format_table(TASK, standing).splitlines() if "**mine**" in line)
        assert f" | {said} | " in row
        assert f">{said}</td>" in leaderboard_page.format_html({TASK: standing})
    assert "'1 of 3': of at least 3" in " ".join(standings.READING)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "digest", "said"),
    [
        (1, "0" * 15 + "9", r"mine has another model of training seed 1, from .*seed1.json; valid: each training seed once"),
        (None, "0" * 15 + "9", r"mine lacks its training seed \(seed = None\); valid: a whole number from 0 on"),
        (True, "0" * 15 + "9", r"lacks its training seed \(seed = True\)"),
        (-1, "0" * 15 + "9", r"lacks its training seed \(seed = -1\)"),
        (1, "0" * 15 + "1", None),  # the same once more
        (4, "0" * 15 + "9", None),
    ],
)
def test_what_lacks_its_seed_or_has_that_of_another_is_passed_over(run, controls, monkeypatch, capsys, seed, digest, said):
    monkeypatch.setattr(library, "names", list)
    first, path = of_seed(run, 1, "mine"), run / "other.json"
    data = json.loads(first.read_text())
    data["controllers"]["mine"].update(seed=seed, model_sha256=digest)
    path.write_text(json.dumps(data))
    capsys.readouterr()
    standing = {one.name: one for one in standings.compute_standings(TASK, controls, [first, path], trust)}
    told = capsys.readouterr().out
    assert len(standing["mine"].results) == (2 if seed == 4 else 1)
    assert bool(re.search(said, told)) if said else told == ""


@pytest.mark.slow
def test_training_seeds_are_held_together_when_they_are_handed_in(run, field, capsys, monkeypatch):
    pytest.importorskip("wandb")
    logged = []
    monkeypatch.setattr(submission, "log_submission", lambda one, *_: logged.append(one.name) or field)
    monkeypatch.setattr(submission, "require_reproduced", lambda *_: None)
    own = standings.get_ranking_suite(TASK)
    seed = submission.prepare_submission(str(run)).leaderboard_result.about["seed"]
    before = [of_seed(run, seed + 1, "mine"), of_seed(run, seed + 2, "mine"), of_seed(run, seed + 3, "other")]
    results = standings.collect_results(before, own, own.load())
    words = ["leaderboard", "submit", str(run), "mode=offline", "name=mine", "runs=lb"]
    few = "mine: has 2 of at least 3 training seeds, .*; submit the others with name=mine"
    for known, rest in ((results, ""), (results[1:], few)):
        monkeypatch.setattr(submission, "read_handed_in", lambda own, folder, runs, known=known: known)
        assert main([*words, "partial=true"]) == 0
        told = capsys.readouterr().out
        assert bool(re.search(rest, told)) and ("training seeds" in told) is bool(rest)
    logged.clear()
    assert main(words) == 2 and logged == []
    told = capsys.readouterr().err
    assert re.search("mine has 2 of at least 3 training seeds.*; valid: RUN of the others.*partial=true", told)
    monkeypatch.setattr(submission, "read_handed_in", lambda own, folder, runs: results)
    assert main(words) == 0 and logged == ["mine"]
    again = standings.collect_results([of_seed(run, seed, "mine")], own, own.load())
    monkeypatch.setattr(submission, "read_handed_in", lambda own, folder, runs: again)
    logged.clear()
    assert main(words) == 2 and logged == []
    assert f"mine has another model of training seed {seed}, from" in capsys.readouterr().err


def test_a_model_of_nothing_is_refused(field):
    with pytest.raises(CheckpointError, match="run = 'nobody': no such file"):
        submission.prepare_submission("nobody")


def test_without_wandb_it_says_what_to_install(run, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"wandb is not installed\): pip install netbuf-gym\[leaderboard\]"):
        submission.require_wandb()
    assert main(["leaderboard", "submit", str(run)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_how_runs_are_logged_is_asked_for_or_told_by_the_account(monkeypatch):
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert submission.resolve_mode(None) == "offline" and submission.resolve_mode("online") == "online"
    monkeypatch.setenv("WANDB_API_KEY", "x")
    assert submission.resolve_mode(None) == "online" and submission.resolve_mode("offline") == "offline"
    monkeypatch.setenv("WANDB_MODE", "")
    assert submission.resolve_mode(None) == "online"
    submission.require_wandb()
    assert "WANDB_MODE" not in os.environ
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert submission.resolve_mode(None) == "offline"
    submission.require_wandb()
    assert os.environ["WANDB_MODE"] == "offline"
    with pytest.raises(ConfigError, match="mode = 'maybe'; valid: offline, online"):
        submission.resolve_mode("maybe")


def test_runs_of_a_project_are_fetched_and_ranked(field, played):
    pytest.importorskip("wandb")

    class File:
        def download(self, root, replace):
            (field / root).mkdir(parents=True)
            shutil.copy(played, field / root / handed_in.RESULT)

    class Run:
        id = "abc"

        def file(self, name):
            assert name == handed_in.RESULT
            return File()

    class Api:
        def runs(self, path, filters):
            if path != "me/mine":
                raise ValueError("Could not find project")
            return [Run()]

    (found,) = handed_in.download_project_results("me/mine", field / "fetched", Api())
    own = standings.get_ranking_suite(TASK)
    assert [one.name for one in standings.collect_results([found, played], own, own.load())] == [AGENT], "one of a model"
    with pytest.raises(ConfigError, match="project = 'me/other': Could not find project; valid: ENTITY/PROJECT"):
        list(handed_in.download_project_results("me/other", field / "fetched", Api()))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["rank"], "invalid choice: 'rank'"),
        (["show", "tsk=a"], "did you mean 'task='"),
        (["show", "task=switches"], "task = 'switches'"),
        (["show", "task=queue_threshold", "task=queue_threshold"], "task is given twice"),
        (["show", "results=nowhere"], "results = nowhere holds no results"),
        (["show", "mine"], "argument 'mine' is unknown to show"),
        (["check", "threads=0"], "threads = 0"),
        (["check", "threads=x"], "threads = 'x'"),
        (["submit"], "missing: RUN"),
        (["submit", "x", "mode=often"], "mode = 'often'"),
    ],
)
def test_mistaken_words_are_refused_by_name(field, capsys, words, match):
    assert main(["leaderboard", *words]) == 2
    assert re.search(match, capsys.readouterr().err)


# ---- the gate


def test_agents_are_held_to_their_rows_where_worlds_are_what_they_were(field, kept, monkeypatch, capsys):
    monkeypatch.setattr(library, "names", lambda: [AGENT])
    words = ["leaderboard", "check", f"task={TASK}", "results=r", "threads=1"]
    shutil.copytree(kept, field / "r")
    own = get_suite(f"v1/{TASK}")
    file = rows.get_file(own, AGENT, field / "r")
    before = file.read_text()
    file.unlink()
    assert main(words) == 2
    assert "`netbuf-gym results make v1/queue_threshold queue_threshold/ppo` makes it" in capsys.readouterr().err
    file.write_text(before)
    assert main(words) == 0 and "| queue_threshold/ppo | 6 of 6 | 0 | +0.0000 |" in capsys.readouterr().out
    found = rows.read(file)
    (first, values), *others = found.worlds.items()
    changed = {first: values | {"score": values["score"] + 0.1}, **dict(others)}
    rows.write(file, replace(found, worlds=changed), own, own.load())
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "| 5 of 6 | 0 | -0.0167" in out and "does not" in out and re.search(rf"{first} -?\d\.\d+ -> ", out)
    for name, factors in {"limits": {"drops": 1.05}, "brief_pulse": {"goodput_mbps": 1.05}}.items():
        path = rows.get_file(own, name, field / "r")
        before = path.read_text()
        changed_row(path, own, **factors)
        assert main(words) == 0, f"the first world is another one for {name}, too"
        assert "| 5 of 5 | 1 | +0.0000" in capsys.readouterr().out
        path.write_text(before)


def test_a_tenth_of_the_worlds_may_be_others():
    assert results.is_reproduced({"a": (0.0, 1.0)}, 10) and not results.is_reproduced({"a": (0.0, 1.0)}, 9)
    nan = float("nan")
    cells = get_suite(f"v1/{TASK}").load().cells[:4]
    assert results.find_changed_scores(cells, [0.0, nan, 0.0, nan], [0.019, nan, nan, 0.0]).keys() == {
        cells[2].name,
        cells[3].name,
    }
