"""The command that makes the zoo: what it divides, what it runs, what it takes over, and that it goes on."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from omegaconf import OmegaConf

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import selection, tune
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import Source, load
from netbuf_gym.training.tuning import processes
from netbuf_gym.training.tuning import study as studies
from studies.zoo import build

PLAN = ["rates={congestion_window: {ppo: 20000, a2c: 10000}}", "keep=[]", "envs=[congestion_window]"]
BEST = "# @package _global_\n# trial 1 of 2: utility -0.2000\n# netbuf-gym tune x\nalgo:\n  learning_rate: 0.001\n"


def test_budgets_become_steps():
    config = build.read_config([*PLAN, "algos=[ppo,a2c]", "hours_training=2", "hours_studies=1"])
    ppo, a2c = build.plan_pairs(config)
    assert ppo.steps == pytest.approx(20000 * 3600 * 0.8 / 8, rel=0.05) and ppo.steps / a2c.steps == pytest.approx(2, rel=0.1)
    assert ppo.trial_steps == pytest.approx(0.12 * ppo.steps, rel=0.1) and ppo.hours == 0.5
    spent = ppo.trials * 3 * ppo.trial_steps * build.PRUNED_SHARE / 20000 / 3600
    assert spent == pytest.approx(0.4, rel=0.15)
    assert f"5 x {ppo.steps:,}" in build.format_plan([ppo, a2c], config)


def test_every_pair_of_the_package_has_a_budget():
    assert build.read_config([*PLAN, "seeds=4e0", "evaluation_seeds.host_buffers=1e1"]).seeds == 4
    pairs = build.plan_pairs(build.read_config([]))
    assert len(pairs) == len({one.name for one in pairs}) == 16
    kept = build.plan_pairs(build.read_config(["keep=[congestion_window/ppo]"]))
    assert {one.name for one in pairs} - {one.name for one in kept} == {"congestion_window/ppo"}
    small = build.plan_pairs(build.read_config(["size=small"]))
    assert all(one.steps < other.steps and one.trials >= build.LEAST_TRIALS for one, other in zip(small, pairs, strict=True))


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("algos=[sarsa]", "algos = 'sarsa'"),
        ("envs=[x]", "envs = 'x'"),
        ("jobs=0", "jobs = 0"),
        ("size=huge", "size = 'huge'"),
        ("hours_studies=0", "hours_studies = 0.0"),
        ("slowest=1", "slowest = 1.0 is out of range; valid: above 1"),
        ("default_seeds=1", "default_seeds = 1 is out of range; valid: 2 to 1000"),
        ("rungs=0", "rungs = 0"),
        ("worlds=0", "worlds = 0"),
        ("weights.host_buffers=0", "weights.host_buffers = 0"),
        ("weights.host_buffers=-1", "weights.host_buffers = -1"),
        ("keep=[nope/ppo]", "keep = 'nope/ppo' is unknown; valid: congestion_window/ppo"),
        ("weights.host_bufers=2", "weights = 'host_bufers' is unknown; did you mean 'host_buffers'"),
        ("evaluation_seeds.nope=2", "evaluation_seeds = 'nope' is unknown"),
        ("rates.host_buffers=5", "rates.host_buffers = 5; valid: a mapping"),
        ("evaluation_seeds.host_buffers=0", "evaluation_seeds.host_buffers = 0"),
        ("envs=[host_buffers,host_buffers]", r"envs = \['host_buffers', 'host_buffers'\]; valid: each once"),
        ("envs=[]", r"envs = \[\]; valid: each once, at least one"),
        ("envs=[", "envs=.: cannot be read; valid: KEY=VALUE"),
        ("job=2", "job"),
        ("jobs=many", "jobs"),
    ],
)
def test_bad_arguments_are_refused(argument, said):
    with pytest.raises(ConfigError, match=said):
        build.read_config([argument])


def test_a_budget_without_a_step_is_refused():
    with pytest.raises(ConfigError, match=r"hours_training = 1e-06 leaves no step for congestion_window/dqn"):
        build.plan_pairs(build.read_config(["hours_training=1e-6"]))


def test_what_becomes_of_a_pair_is_its_own(works, monkeypatch, capsys):
    config, pairs, _, _ = works
    monkeypatch.setattr(tune, "compute_cost_ratio", lambda argv: (_ for _ in ()).throw(OSError("the disk is full")))
    assert build.build_pairs(pairs, config) == 1
    assert "not done: the disk is full" in capsys.readouterr().out


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    for source in ("one", "two"):
        build.replace_folder(tmp_path / source, tmp_path / "there")
        assert [path.name for path in (tmp_path / "there").iterdir()] == [source]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "there", "two"]


def test_settings_of_a_study_are_shipped_in_their_worlds(tmp_path):
    (tmp_path / "tuned" / "mine").mkdir(parents=True)
    (tmp_path / "tuned" / "mine" / "ppo.yaml").write_text(build.format_packaged_settings(BEST, "host_buffers"))
    config = load("train", ["env=host_buffers", "+tuned=mine"], Source(str(tmp_path)))
    worlds = load("train", ["env=host_buffers", "experiment=worlds/host_buffers", "algo.learning_rate=0.001"])
    assert config == worlds


@pytest.mark.slow
def test_studies_begin_with_what_the_experiments_know():
    known = build.read_experiment_settings("host_buffers", "dqn")
    assert known["gamma"] == 0.85 and known["net_arch"] == [128, 64] and known["gradient_steps"] == 8 and len(known) == 13
    assert build.read_experiment_settings("host_buffers", "ppo") == {}
    assert "ent_coef" not in build.read_experiment_settings("queue_threshold", "ppo")  # 0, which is not searched


@pytest.fixture
def works(tmp_path, monkeypatch, trained):
    """A pair whose processes leave what real ones would; what they were told."""
    told = []

    def run(self, what, argv, log):
        told.append(argv)
        out = dict(one.split("=", 1) for one in argv if "=" in one)
        if "tune" in argv:
            (build.Path(out["run_dir"]) / "tuned").mkdir(parents=True)
            (build.Path(out["run_dir"]) / tune.BEST).write_text(BEST)
        elif "netbuf_gym.training.campaign" in argv:
            shutil.copytree(trained, out["out"])
        return True

    monkeypatch.setattr(build.PairBuilder, "_run", run)
    monkeypatch.setattr(tune, "compute_cost_ratio", lambda argv: 2.0)
    folders = [f"{one}={tmp_path / one}" for one in ("runs", "out", "tuned", "compared")]
    config = build.read_config([*PLAN, "algos=[ppo]", *folders])
    return config, build.plan_pairs(config), told, tmp_path


@pytest.mark.slow
def test_a_pair_is_studied_trained_and_put_in_its_place_once(works, capsys):
    config, pairs, told, folder = works
    assert build.build_pairs(pairs, config) == 0 and len(told) == 3
    study, campaign, defaults = told
    assert {"tune", "env=congestion_window", "algo=ppo", "experiment=worlds/congestion_window", "seeds=3"} <= set(study)
    (begun,) = studies._list_initial_trials(studies.parse_plan([one for one in study if "=" in one]))[1:]
    assert begun["n_epochs"] == 8 and begun["gamma"] == 0.97
    assert {"algo.learning_rate=0.001", "seeds=5", f"total_timesteps={pairs[0].steps // 2}"} <= set(campaign)
    alike = [one for one in campaign if one.partition("=")[0] in ("env", "algo", "experiment", "snapshots", "validation_seeds")]
    assert {"seeds=3", f"total_timesteps={pairs[0].steps}", *alike} <= set(defaults)
    assert not any(one.startswith("algo.") for one in defaults)
    runs = folder / "runs" / "12+12" / "congestion_window" / "ppo" / "seeds"
    assert f"runs={runs}" in campaign and f"tuned={runs}" in defaults
    assert checkpoint.read_model(folder / "out" / "congestion_window" / "ppo" / "model.zip").config.algo.name == "ppo"
    assert "/experiment/worlds/congestion_window" in (folder / "tuned" / "congestion_window" / "ppo.yaml").read_text()
    assert build.build_pairs(pairs, config) == 0 and len(told) == 3
    assert "was done: a new agent" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "better"), [(-0.2, True), (-0.4, False)])
def test_an_agent_that_there_was_stays_if_it_is_better_in_validation_worlds(works, trained, monkeypatch, ours, better):
    config, pairs, _, folder = works
    there = folder / "out" / "congestion_window" / "ppo"
    shutil.copytree(trained, there)
    (there / "card.md").write_text("another")
    asked = []
    monkeypatch.setattr(selection, "score_models", lambda models, task, *worlds: asked.append(worlds) or [ours, -0.3])
    assert build.build_pairs(pairs, config) == 0
    assert (there / "card.md").exists() != better
    own = OmegaConf.load(trained / "config.yaml").scenario
    assert asked == [({"name": own.name, **own.kwargs}, range(900_000, 900_048))]
    text = json.loads((build._get_runs_folder(config) / "congestion_window" / "ppo" / build.DONE).read_text())["said"]
    assert text.startswith("the new agent stays" if better else "the one that there was stays")


@pytest.mark.slow
def test_processes_are_logged_and_a_failed_one_is_said(tmp_path, capsys):
    folders = [f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'agents'}", f"tuned={tmp_path / 'tuned'}"]
    config = build.read_config([*PLAN, "algos=[ppo]", *folders])
    works = build.PairBuilder(config)
    assert works._run("x", ["-c", "print('done')"], tmp_path / "log") and "done" in (tmp_path / "log").read_text()
    assert not works._run("x", ["-c", "raise SystemExit(2)"], tmp_path / "log") and not works.running
    pairs = [build.Pair("congestion_window", "none_such", 1, 1, 1, 1.0)]
    assert build.build_pairs(pairs, config) == 1 and "no study" in capsys.readouterr().out


def test_processes_that_know_are_waited_for_before_they_are_told():
    code = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print(1, flush=True); time.sleep(60)"
    for received, patience in ((signal.SIGTERM, 60.0), (signal.SIGINT, 0.2)):
        one = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert one.stdout.readline() == b"1\n"
        processes.end_processes([one], received, patience)
        assert one.returncode == 7


def test_an_interruption_ends_the_processes(tmp_path):
    import threading

    works = build.PairBuilder(build.read_config([*PLAN, "algos=[ppo]"]))
    argv = ["-c", "import time; time.sleep(60)"]
    ended = []
    one = threading.Thread(target=lambda: ended.append(works._run("x", argv, tmp_path / "log")))
    one.start()
    while not works.running:
        time.sleep(0.01)
    time.sleep(0.5)
    works.end_processes(signal.SIGTERM)
    one.join(20)
    assert ended == [False] and not works._run("y", argv, tmp_path / "log")
