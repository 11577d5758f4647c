"""Studies of controllers: what is searched, that trials share their worlds, and that a study goes on where it was."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import optuna
import pytest
import yaml
from optuna.trial import TrialState

from netbuf_gym import tasks
from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.pooling import WorldScore, pool_scores
from netbuf_gym.tasks.metrics import FlowPercentile, Score
from netbuf_gym.training import campaign, tune_controller
from netbuf_gym.training.jobs import find_job, load_job
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED, FIRST_JUDGING_SEED, FIRST_STUDY_SEED, FIRST_VALIDATION_SEED
from netbuf_gym.training.tuning import controller_study
from netbuf_gym.utils.files import exclusive_lock
from netbuf_gym.utils.overrides import format_override

SMALL = ["scenario=rlbm/cubic-100-0.6", "scenario.kwargs.duration_s=5", "progress=false"]
STUDY = ["controller=brief_pulse", *SMALL, "trials=6", "worlds=4", "rungs=3", "validation_worlds=3", "finalists=2"]


def make_plan(overrides):
    return controller_study.make_plan(load_job("tune_controller", overrides))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A study that is done: its plan and what it said. Not to be written to."""
    plan = make_plan([*STUDY, f"run_dir={tmp_path_factory.mktemp('study') / 'folder'}"])
    return plan, tune_controller.tune(plan)


def test_a_study_validates_the_best_trials_beside_the_shipped_settings(done):
    plan, said = done
    study = controller_study.open_study(plan)
    assert len(study.trials) == 6 and study.trials[0].params["tail_ms"] == 20
    found = yaml.safe_load((plan.folder / "tuned" / "best.yaml").read_text())
    validation = found["validation"]
    assert found["task"] == "queue_threshold" and validation["score"] <= validation["shipped"]
    assert (
        format_override("controller", found["controller"]) in said
        and tune_controller.describe_outcome(plan.folder)[0] == "best"
    )
    # the kept score is that of the word, played again
    seeds = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + 3)
    for word, score in ((found["controller"], validation["score"]), ("brief_pulse", validation["shipped"])):
        assert score == pooled_p99(word, plan.validation, seeds)
    rows = list(csv.DictReader((plan.folder / "trials.csv").open()))
    assert len(rows) == 6 and {"tail_ms", "score", "core_seconds"} <= rows[0].keys()


def pooled_p99(word, scenario, seeds):
    reports = rollout.evaluate(word, "queue_threshold", scenario, seeds, flows=True)
    flows = [flow["slowdown"] for one in reports for flow in one["flows"] if flow["priority"] == 0]
    return np.quantile(flows, 0.99, method="inverted_cdf")


def test_all_trials_have_the_same_worlds_and_values_are_paired(done):
    plan, _ = done
    study = controller_study.open_study(plan)
    assert plan.rungs == [1, 2, 4]
    shipped = study.user_attrs[controller_study.SHIPPED]
    for rung, score in zip(plan.rungs, shipped["scores"], strict=True):
        assert score == pooled_p99("brief_pulse", plan.scenario, range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + rung))
    ended = [one for one in study.trials if controller_study.SCORE in one.user_attrs]
    assert ended and any(one.state == TrialState.COMPLETE for one in ended)
    for one in ended:
        played = max(one.intermediate_values)
        word = plan.make_word(plan.get_trial_settings(one))
        score = pooled_p99(word, plan.scenario, range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + played))
        assert one.user_attrs[controller_study.SCORE] == score
        assert one.value == pytest.approx(score - shipped["scores"][plan.rungs.index(played)], abs=1e-12)


def test_a_trial_of_a_killed_process_is_tried_again(tmp_path):
    plan = make_plan([*STUDY, "trials=3", f"run_dir={tmp_path}"])
    study = controller_study.open_study(plan)
    lost = study.ask(), study.ask()
    settings = [plan.propose_settings(one) for one in lost]
    assert tune_controller.tune(plan)
    trials = controller_study.open_study(plan).trials
    assert [one.state for one in trials[:2]] == [TrialState.FAIL] * 2
    again = [plan.get_trial_settings(one) for one in trials[2:]]
    assert all(one in again for one in settings) and len(trials) == 5
    with exclusive_lock(tmp_path, "run_dir"), pytest.raises(ConfigError, match="is being written by another process"):
        tune_controller.tune(plan)
    with pytest.raises(ConfigError, match=r"has worlds = 4, not 8; valid: another name=\.\.\. or run_dir="):
        controller_study.open_study(make_plan([*STUDY, "worlds=8", f"run_dir={tmp_path}"]))


@pytest.mark.slow
def test_a_killed_study_goes_on_and_keeps_its_trials(tmp_path):
    words = [*STUDY, "trials=60", f"run_dir={tmp_path}"]
    command = [sys.executable, "-m", "netbuf_gym", "tune", *words]
    plan, journal = make_plan(words), tmp_path / "journal.log"
    began = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not journal.exists() or journal.read_text().count('"op_code":6') < 12):
        time.sleep(0.05)
    os.kill(began.pid, signal.SIGKILL)
    began.wait()
    before = [one for one in controller_study.open_study(plan).trials if one.state.is_finished() and one.value is not None]
    assert before and not (tmp_path / "tuned").exists()
    assert subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0
    after = controller_study.open_study(plan).trials
    assert all(after[one.number].value == one.value for one in before)
    assert sum(one.state in (TrialState.COMPLETE, TrialState.PRUNED) for one in after) == 60
    assert (tmp_path / "tuned" / "best.yaml").exists()


@pytest.mark.parametrize("executor", ["joblib"])
def test_executors_give_the_same_scores(executor, tmp_path):
    pytest.importorskip(executor)
    words = [*STUDY, "trials=4", "sampler=random", "pruner=none"]
    plans = [make_plan([*words, f"run_dir={tmp_path / 'a'}"])]
    plans.append(make_plan([*words, f"run_dir={tmp_path / 'b'}", f"executor={executor}", "jobs=2"]))
    for plan in plans:
        assert tune_controller.tune(plan)
    one, other = (controller_study.open_study(plan) for plan in plans)
    assert [(trial.params, trial.value) for trial in one.trials] == [(trial.params, trial.value) for trial in other.trials]
    assert one.user_attrs[controller_study.VALIDATION] == other.user_attrs[controller_study.VALIDATION]


@pytest.mark.parametrize(
    ("controller", "own"),
    [
        ("cubic", ["scenario=ppcc/4", "scenario.kwargs.duration_s=3", "search.c.high=1", "search.hystart=null"]),
        ("nuwa", ["scenario=nuwa/4g", "scenario.kwargs.duration_s=5"]),
        ("fq_codel", SMALL[:2]),
        ("dt", SMALL[:2]),
    ],
)
def test_congestion_controls_receivers_and_schemes_are_tuned_alike(controller, own, tmp_path):
    words = [f"controller={controller}", *own, "trials=3", "worlds=2", "rungs=1", "validation_worlds=2", "progress=false"]
    plan = make_plan([*words, f"run_dir={tmp_path}"])
    assert plan.score == tasks.get(plan.task).measures.get_score()
    assert "kept" in tune_controller.tune(plan)
    kept = yaml.safe_load((tmp_path / "tuned" / "best.yaml").read_text())["controller"]
    assert rollout.get_controller(kept, plan.task).name.startswith(controller)


def test_cma_es_searches_numbers_and_goes_on(tmp_path):
    pytest.importorskip("cmaes")
    for trials in (4, 8):
        plan = make_plan([*STUDY, "sampler=cmaes", f"trials={trials}", f"run_dir={tmp_path}"])
        assert tune_controller.tune(plan)
    assert any(key.startswith("cma:") for one in controller_study.open_study(plan).trials for key in one.system_attrs)


def test_cma_es_needs_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(MissingExtraError, match=r"netbuf-gym\[tune\]"):
        controller_study.open_study(make_plan([*STUDY, "sampler=cmaes", f"run_dir={tmp_path}"]))


def test_what_is_searched_is_what_the_controller_declares_with_changes():
    plan = make_plan(
        ["controller='brief_pulse:many=0'", "search.tail_ms.low=5", "search.shut_ms=null", "search.packets={choices: [1, 2]}"]
    )
    found = {one.name: one for one in plan.settings}
    assert "many" not in found and "shut_ms" not in found and found["packets"].choices == (1, 2)
    assert (found["tail_ms"].low, found["tail_ms"].high, found["tail_ms"].log) == (5, 200, True)
    assert plan.name == "queue_threshold-brief_pulse" and plan.make_word({"tail_ms": 7.5}) == "brief_pulse:many=0:tail_ms=7.5"
    assert make_plan(["controller=cubic"]).task == "congestion_window"
    assert make_plan(["controller=cubic", "env=receiver_window"]).task == "receiver_window"
    whole = {one.name: one.whole for one in make_plan(["controller=vegas", "search.alpha={low: 1, high: 5}"]).settings}
    assert whole == {"alpha": True, "beta": True, "gamma": True}
    assert find_job("tune", ["controller=cubic"]) == "tune_controller" and find_job("tune", ["algo=ppo"]) == "tune"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["controller=random"], "controller = 'random' has no parameters to be tuned; valid: "),
        (["controller=brief_pulze"], "has no parameters to be tuned; did you mean 'brief_pulse'"),
        (["controller=null"], "missing: controller="),
        (["controller=brief_pulse", "env=host_buffers"], "has no parameters to be tuned; valid: bpftune"),
        (["controller=dt", "search.alpha.low=1"], "search.alpha is no parameter of dt; did you mean 'alpha_0'"),
        (["controller=dt", "search.alpha_0.low=0"], "search.alpha_0.low = 0.0 is out of range; valid: 1e-06"),
        (["controller=dt", "search.alpha_0.high=0.001"], "search.alpha_0.high"),
        (["controller=dt", "search.alpha_0=null", "search.alpha_1=null"], "search has no parameter of dt left"),
        (["controller=dt", "begin_with=[{alpha_0: 100}]"], r"begin_with\[0\].alpha_0 = 100.* out of range"),
        (["controller=dt", "objective=drops"], "objective = 'drops' is no score of the task; valid: slowdown_p99_p0"),
        (["controller=dt", "worlds=7"], "worlds = 7 is out of range; valid: 8 to 50000"),
        (["controller=dt", "validation_worlds=50001"], "validation_worlds = 50001 is out of range; valid: 1 to 50000"),
        (["controller=dt", "sampler=grid"], "sampler = 'grid'"),
        (["controller=dt", "executor=mpi"], "executor = 'mpi'"),
        (["controller=dt", "scenario=ppcc/4"], "switch"),
        (["controller=dt", "trails=3"], "netbuf-gym tune --help lists all"),
    ],
)
def test_invalid_studies_are_refused(words, said):
    with pytest.raises(ValueError, match=said):
        make_plan(words)


def test_percentiles_are_over_the_flows_of_all_worlds_and_means_over_worlds():
    worlds = [WorldScore(9.0, np.array([9.0])), WorldScore(1.0, np.arange(1.0, 100.0))]
    p99 = FlowPercentile("slowdown", 0.99, 0)
    assert pool_scores(worlds, Score("slowdown_p99_p0", True, True), p99) == 98
    assert pool_scores(worlds, Score("x", geometric=True)) == pytest.approx(3)
    assert pool_scores(worlds, Score("x")) == 5
    assert np.isnan(pool_scores([*worlds, WorldScore(np.nan)], Score("x")))


def test_a_tie_in_validation_keeps_the_shipped_settings(done):
    plan, _ = done
    assert controller_study.choose_best(plan, {"shipped": 2.0, "1": 2.0, "2": float("nan")}) == "shipped"
    assert controller_study.choose_best(plan, {"shipped": 2.0, "1": 1.9, "2": 1.8}) == "2"


def test_no_training_validation_or_tuning_reaches_the_seeds_kept_for_judging(capsys):
    said = rf"seeds from {FIRST_JUDGING_SEED} on are kept for judging, no training, validation or tuning uses them"
    seed = FIRST_JUDGING_SEED + 3
    for job, words in (("train", []), ("tune", []), ("tune", ["seeds=3"]), ("demo", [])):
        with pytest.raises(ConfigError, match=said):
            load_job(job, [f"seed={seed}", *words])
    with pytest.raises(ConfigError, match="kept for judging"):
        campaign.parse_plan([f"first_seed={FIRST_JUDGING_SEED - 1}", "seeds=2"])
    assert program.main(["record", "congestion_window", "cubic", "--seed", str(FIRST_JUDGING_SEED - 9)]) == 2
    assert "kept for judging" in capsys.readouterr().err
    assert FIRST_STUDY_SEED + 50_000 == FIRST_EVALUATION_SEED < FIRST_JUDGING_SEED
    with pytest.raises(ConfigError, match="worlds = 50001 is out of range"):
        make_plan(["controller=dt", "worlds=50001"])


def test_the_command_prints_the_controller_that_was_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(optuna.visualization.matplotlib, "plot_optimization_history", lambda *a, **k: None)
    assert program.main(["tune", *STUDY, "trials=1", f"run_dir={tmp_path}"]) == 0
    out = capsys.readouterr().out
    assert "1 trials" in out and "best: controller=brief_pulse\n" in out
