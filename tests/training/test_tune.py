"""Studies of settings: what a trial trains, how several processes share a study, what is written, what is refused."""

import itertools
import os
import shlex
import subprocess
import sys
import threading

import numpy as np
import optuna
import pytest
import torch as th
from omegaconf import OmegaConf
from optuna.trial import TrialState

from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError
from netbuf_gym.training import tune
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import Source, find_differences, flatten_leaves, load, to_plain
from netbuf_gym.training.jobs import load_job
from netbuf_gym.training.schema import CONF, FIRST_STUDY_SEED
from netbuf_gym.training.train import train
from netbuf_gym.training.tuning import search_space
from netbuf_gym.training.tuning import study as studies
from netbuf_gym.training.tuning.trials import TrialTraining
from netbuf_gym.utils.files import write_atomic
from tests.helpers.release_cases import for_release, sample

TASKS = ("congestion_window", "queue_threshold", "receiver_window", "host_buffers")
ALGOS = ("dqn", "a2c", "ppo", "ppo_lstm")
SMALL = ["env=congestion_window", "algo=ppo", "scenario=ppcc/4", "scenario.kwargs.duration_s=2", "stagger_steps=0"]
SMALL += ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "total_timesteps=128"]
STUDY = [*SMALL, "trials=3", "rungs=2", "worlds=2", "progress=false", "sampler=random"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A small study that is done: its overrides and its folder. Not to be written to."""
    folder = tmp_path_factory.mktemp("study") / "folder"
    overrides = [*STUDY, f"run_dir={folder}"]
    assert tune.main(load_job("tune", overrides)) == 0
    return overrides, folder


def open_study(overrides):
    plan = studies.parse_plan(overrides)
    return plan, studies.open_study(plan)


@pytest.mark.slow
def test_a_study_tries_the_defaults_first_and_writes_what_it_found(study):
    overrides, folder = study
    plan, found = open_study(overrides)
    assert found.trials[0].state == TrialState.COMPLETE and len(studies.list_ended_trials(found)) == 3
    config = load("train", SMALL)
    assert found.trials[0].params == search_space.encode_config_values(plan.settings, config)
    assert found.trials[0].value == pytest.approx(np.mean(found.trials[0].user_attrs["scores_2"]))
    assert len(found.trials[0].user_attrs["scores_2"]) == 3 and studies.count_core_hours(found) > 0
    assert {"history.png", "slice.png", "trials.csv", "tuned", "journal.log"} <= {path.name for path in folder.iterdir()}
    assert str(folder) not in (folder / tune.BEST).read_text()
    best = load("train", [*SMALL, "tuned=best"], Source(str(folder)))
    settings = studies.get_trial_settings(plan, found.best_trial)
    assert {key: to_plain(OmegaConf.select(best, key)) for key in settings} == settings
    assert "num_envs" not in found.trials[0].params and best.algo.num_envs == 4  # the command line's
    assert tune.describe_outcome(folder) == ("best", f"{found.best_value:.4f}")


def check_trained_alike(plan, found):
    """The best trial's training, by the command that a study prints and by its `best.yaml` alone."""
    command = shlex.split(tune.format_train_command(plan))
    at = command.index("--config-dir")
    trained = plan.load_training(studies.get_trial_settings(plan, found.best_trial), plan.config.seed)
    for words in ([*command[2:at], *command[at + 2 :]], ["tuned=best"]):
        again = load("train", words, Source(command[at + 1]))
        assert not {key for key, _, _ in find_differences(trained, again)} - tune.UNMEASURED_KEYS, words


@pytest.mark.slow
def test_the_command_and_the_settings_carry_what_the_score_was_measured_with(study, capsys):
    overrides, folder = study
    plan, found = open_study(overrides)
    check_trained_alike(plan, found)
    assert "total_timesteps=128 " in tune.format_train_command(plan)
    text = (folder / tune.BEST).read_text()
    assert "\ntotal_timesteps: 128\n" in text and "after 128 steps, over training seeds 0 to 2, in 2 worlds of ppcc/4" in text
    assert "measured after 128 steps" in tune.format_summary(plan, found) and "lower" not in tune.format_summary(plan, found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "own",
    [
        ["env=queue_threshold", "algo=dqn", "experiment=worlds/queue_threshold", "scenario.kwargs.load=0.9", "seed=7"],
        ["env=host_buffers", "algo=a2c", "reward=host_utility", "twins=2", "curriculum=[{until: 0.5, kwargs: {}}]"],
        ["experiment=congestion_window", "+tuned=congestion_window", "algo.normalize=running"],
    ],
)
def test_whatever_a_study_was_given_its_best_settings_carry(own, tmp_path):
    overrides = [*own, f"run_dir={tmp_path / 'study'}", "trials=1"]
    plan, found = open_study(overrides)
    trial = found.ask()
    [one.propose(trial) for one in plan.settings]
    found.tell(trial, 3.0)
    tune.write_results(plan, found)
    check_trained_alike(plan, found)
    lower = plan.measures.lower_is_better
    assert ("(lower is better)" in tune.format_summary(plan, found)) is lower
    assert ("(lower is better)" in (plan.folder / tune.BEST).read_text()) is lower
    assert plan.load_training({}, 0).total_timesteps == plan.config.total_timesteps != load("train", []).total_timesteps


def test_a_study_is_not_limited_by_the_clock():
    with pytest.raises(ConfigError, match=r"max_minutes = 3; valid in a study: null, .* hours="):
        studies.parse_plan([*SMALL, "max_minutes=3"])


@pytest.mark.slow
def test_settings_found_with_files_of_ones_own_need_only_the_studys_folder(tmp_path):
    (tmp_path / "mine" / "scenario").mkdir(parents=True)
    (tmp_path / "mine" / "scenario" / "dsl.yaml").write_text("name: ppcc/4\nkwargs: {rate_mbps: 6}\n")
    words = [*SMALL, "scenario=dsl", f"run_dir={tmp_path / 'study'}", "total_timesteps=1e3"]
    plan = studies.parse_plan(words, Source(str(tmp_path / "mine")))
    found = studies.open_study(plan)
    trial = found.ask()
    [one.propose(trial) for one in plan.settings]
    found.tell(trial, 3.0)
    tune.write_results(plan, found)
    check_trained_alike(plan, found)
    assert load("train", ["tuned=best"], Source(str(plan.folder))).scenario.kwargs.rate_mbps == 6


@pytest.mark.slow
def test_a_study_goes_on_where_it_was_and_no_other_takes_its_place(study, capsys):
    overrides, _ = study
    assert program.main(["tune", *overrides]) == 0  # all is there
    assert len(open_study(overrides)[1].trials) == 3
    assert "--config-dir" in capsys.readouterr().out
    for other, said in (("algo.kwargs.n_steps=16", "algo.kwargs.n_steps = 8, not 16"), ("seed=5", "seed = 0, not 5")):
        with pytest.raises(ConfigError, match=said):
            open_study([*overrides, other])
    open_study([*overrides, "trials=9", "workers=3", "hours=1"])


@pytest.mark.slow
def test_a_study_of_before_there_was_a_key_goes_on_by_its_default(tmp_path):
    overrides = [*STUDY, f"run_dir={tmp_path}"]
    _, found = open_study(overrides)
    kept = found.user_attrs[studies.CONFIG].splitlines(True)
    older = [line for line in kept if "normalize" not in line]
    found.set_user_attr(studies.CONFIG, "".join(older))
    assert len(older) == len(kept) - 2 and open_study(overrides)
    with pytest.raises(ConfigError, match=r"has algo\.normalize = 'none', not 'running'"):
        open_study([*overrides, "algo.normalize=running"])


@pytest.mark.slow
def test_a_study_that_goes_on_proposes_other_settings(tmp_path):
    overrides = [*SMALL, "rungs=1", "worlds=2", "progress=false", f"run_dir={tmp_path}"]  # tpe, which draws at random first
    assert all(tune.main(load_job("tune", [*overrides, f"trials={trials}"])) == 0 for trials in (3, 5))
    _, found = open_study([*overrides, "trials=5"])
    assert len({str(one.params) for one in found.trials}) == 5


@pytest.mark.slow
def test_the_same_study_again_finds_the_same(study, tmp_path):
    again = [*STUDY, "trials=2", f"run_dir={tmp_path / 'again'}"]
    assert studies.run_trials(studies.parse_plan(again))
    first, second = (open_study(overrides)[1].trials[:2] for overrides in (study[0], again))
    assert [one.params for one in first] == [one.params for one in second]
    assert [one.intermediate_values for one in first] == [one.intermediate_values for one in second]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "normalize"), [("ppo", "running"), ("dqn", "none"), *for_release(("ppo", "none"), ("dqn", "running"))]
)
def test_training_in_parts_teaches_what_training_does(algo, normalize, tmp_path):
    own = {"dqn": ["algo.kwargs.learning_starts=20", "algo.kwargs.buffer_size=500", "algo.kwargs.batch_size=16"]}
    overrides = [one for one in SMALL if "algo.kwargs" not in one and one != "algo=ppo"]
    overrides += [f"algo={algo}", f"algo.normalize={normalize}", *own.get(algo, SMALL[6:8])]
    for seed in (3, 4):
        run = [*overrides, f"seed={seed}", f"run_dir={tmp_path / str(seed)}", "progress=false", "tensorboard=false"]
        train(run)
    with Interrupt() as interrupt:
        side_by_side = [TrialTraining(load("train", [*overrides, f"seed={seed}"]), interrupt) for seed in (3, 4)]
        for steps in (40, 96, 128):
            for one in side_by_side:
                one.train_until(steps)
        for seed, one in zip((3, 4), side_by_side, strict=True):
            one.write(tmp_path / "model.zip")
            parts, whole = (checkpoint.read_model(path) for path in (tmp_path / "model.zip", tmp_path / str(seed)))
            assert parts.progress["timesteps"] == whole.progress["timesteps"] == 128
            mine, its = (_parameters(saved.path) for saved in (parts, whole))
            assert all(th.equal(mine[name], its[name]) for name in its)
            one.close()


def _parameters(path):
    import io
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return th.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), sample([*itertools.product(TASKS, ALGOS), ("congestion_window", "ppo_kl")], 5))
def test_every_search_space_holds_the_defaults(task, algo):
    for worlds in ([f"env={task}"], [f"experiment=worlds/{task}"]):
        plan = studies.parse_plan([*worlds, f"algo={algo}"])
        defaults = search_space.encode_config_values(plan.settings, plan.config)
        assert defaults == studies._list_initial_trials(plan)[0] and len(defaults) == len(plan.settings) >= 9


@pytest.mark.slow
def test_where_a_default_is_not_searched_a_study_begins_with_what_is_nearest(tmp_path):
    plan = studies.parse_plan([*STUDY, f"run_dir={tmp_path}", "search.gamma.choices=[0.5,0.9]", "search.clip_range.high=0.15"])
    first = studies._list_initial_trials(plan)[0]
    assert (first["gamma"], first["clip_range"]) == (0.9, 0.15)
    assert search_space.encode_config_values(plan.settings, plan.config) is None
    assert studies.find_default_trial(studies.open_study(plan), plan) is None


@pytest.mark.slow
def test_what_a_killed_worker_had_under_way_is_tried_again(tmp_path):
    overrides = [*STUDY, f"run_dir={tmp_path}", "trials=2"]
    plan, found = open_study(overrides)
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lost = found.ask()
    learning_rate = plan.settings[0].propose(lost)
    lost.set_user_attr(studies.WORKER, studies._identify_process(gone.pid))
    studies._recover_lost_trials(found, 600)
    assert found.trials[0].state == TrialState.RUNNING  # alive
    gone.kill()
    gone.wait()
    assert studies.run_trials(plan)
    states = [one.state for one in found.trials]
    assert states[0] == TrialState.FAIL and len(studies.list_ended_trials(found)) == 2
    assert studies.find_default_trial(found, plan).user_attrs["again"] == 0
    assert any(one.user_attrs.get("again") == 0 and one.params["learning_rate"] == learning_rate for one in found.trials)


def test_a_silent_worker_of_another_machine_is_given_up(tmp_path):
    _, found = open_study([*STUDY, f"run_dir={tmp_path}"])
    trial = found.ask()
    trial.set_user_attr(studies.WORKER, "elsewhere:1:1")
    trial.set_user_attr(studies.BEAT, 0.0)
    studies._recover_lost_trials(found, 600)
    assert found.trials[0].state == TrialState.FAIL
    assert found.trials[-1].state == TrialState.WAITING and found.trials[-1].user_attrs["again"] == 0
    studies.retry_trial(found, 0)  # somebody else was faster
    assert len([one for one in found.trials if "again" in one.user_attrs]) == 1


@pytest.mark.slow
def test_two_processes_work_at_one_study(tmp_path):
    overrides = [*STUDY, f"run_dir={tmp_path}", "trials=2", "workers=2"]
    assert tune.tune(studies.parse_plan(overrides), tell=lambda text: None)
    trials = studies.list_ended_trials(open_study(overrides)[1])
    assert 2 <= len(trials) <= 3 and len({str(one.params) for one in trials}) == len(trials)
    assert os.getpid() not in {int(one.user_attrs[studies.WORKER].split(":")[1]) for one in trials[:2]}


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_processes_that_know_nothing_of_each_other_propose_differently(sampler, tmp_path):
    plan, _ = open_study([*STUDY, f"run_dir={tmp_path}", "trials=9", f"sampler={sampler}"])
    begun = [studies.open_study(plan) for _ in range(2)]  # at once, as on two machines
    proposed = []
    for study in (*begun, *begun, *begun):
        trial = studies._ask_trial(study, plan)
        proposed.append([setting.propose(trial) for setting in plan.settings])
    assert len({str(one) for one in proposed}) == 6


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["sqlite", "grpc"])
def test_databases_and_proxies_keep_studies(scheme, tmp_path):
    server = None
    if scheme == "grpc":
        import socket

        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        kept = optuna.storages.InMemoryStorage()
        options = {"host": "localhost", "port": port}
        server = threading.Thread(target=optuna.storages.run_grpc_proxy_server, args=(kept,), kwargs=options, daemon=True)
        server.start()
    url = f"sqlite:///{tmp_path / 'study.db'}" if scheme == "sqlite" else f"grpc://localhost:{port}"
    overrides = [*STUDY, f"storage={url}", f"run_dir={tmp_path / 'run'}", "trials=1", "rungs=1"]
    assert studies.run_trials(studies.parse_plan(overrides))
    assert len(studies.list_ended_trials(open_study(overrides)[1])) == 1 and not (tmp_path / "run").exists()


@pytest.mark.slow
def test_hours_end_a_study_and_beginnings_come_behind_the_defaults(tmp_path):
    plan, found = open_study([*STUDY, f"run_dir={tmp_path}", "hours=1e-9", "begin_with=[{gamma: 0.8}]"])
    assert studies.run_trials(plan) and len(studies.list_ended_trials(found)) == 1
    assert [one.system_attrs[studies.ENQUEUED]["gamma"] for one in found.trials] == [0.95, 0.8]


@pytest.mark.slow
def test_a_trial_that_is_slow_is_given_up(tmp_path, monkeypatch):
    overrides = [*STUDY, f"run_dir={tmp_path}", "slowest=2"]
    monkeypatch.setattr(
        studies, "_get_time_limit", lambda study, one: 1e-9 if studies.list_ended_trials(study) else float("inf")
    )
    assert tune.main(load_job("tune", overrides)) == 0
    _, found = open_study(overrides)
    first, *others = found.trials
    assert first.state == TrialState.COMPLETE and [one.state for one in others] == [TrialState.PRUNED] * 2
    assert all(one.user_attrs[studies.SLOW] and one.user_attrs[studies.CPU] >= 0 for one in others)


@pytest.mark.slow
def test_a_trial_that_ended_before_anything_was_learned_is_given_up(tmp_path):
    own = ["env=congestion_window", "algo=dqn", "scenario=ppcc/4", "scenario.kwargs.duration_s=2", "stagger_steps=0"]
    overrides = [*own, "algo.num_envs=4", "total_timesteps=128", *STUDY[len(SMALL) :], "trials=2", f"run_dir={tmp_path}"]
    assert tune.main(load_job("tune", overrides)) == 0
    _, found = open_study(overrides)
    assert [one.state for one in found.trials] == [TrialState.COMPLETE, TrialState.PRUNED]
    assert found.trials[1].user_attrs[studies.UNTRAINED]


@pytest.mark.slow
def test_what_a_trial_may_cost_is_counted_in_the_defaults(study):
    overrides, _ = study
    plan, found = open_study([*overrides, "slowest=3"])
    spent = {one.number: one.user_attrs[studies.CPU] for one in found.trials}
    assert studies._get_time_limit(found, plan) == 3 * spent[0]
    assert studies._get_time_limit(*reversed(open_study(overrides))) == float("inf")
    assert tune.compute_cost_ratio(overrides) == spent[found.best_trial.number] / spent[0]


@pytest.mark.slow
def test_studies_play_worlds_of_their_own(study, monkeypatch):
    seen = []
    monkeypatch.setattr(
        studies.selection, "score_models", lambda paths, task, scenario, seeds, **how: seen.append(seeds) or [0.0]
    )
    with Interrupt() as interrupt:
        plan = studies.parse_plan(study[0])
        training = TrialTraining(plan.load_training({}, 0), interrupt)
        studies._score_training(training, plan)
        training.close()
    assert seen == [range(FIRST_STUDY_SEED, FIRST_STUDY_SEED + 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seeds=2", "seeds = 2 is out of range; valid: 3 to"),
        ("trials=0", "trials = 0"),
        ("hours=0", "hours = 0"),
        ("pruner=best", "pruner = 'best'"),
        ("resume=runs/x", "resume belongs to netbuf-gym train"),
        ("search.gamma.low=1", "search.gamma.low = 1 beside choices; valid: search.gamma.choices=null, or choices alone"),
        ("search.gamma.choices=[]", "search.gamma.choices"),
        ("search.clip_range.high=0.01", "search.clip_range.high = 0.01"),
        ("search.clip_range.upper=1", "search.clip_range.upper is unknown"),
        ("search.clip_range.key=algo.kwargs.clip", "there is no such key"),
        ("begin_with=[{gama: 1}]", "begin_with[0].gama is not searched"),
        ("begin_with=[{gamma: 0.123}]", r"begin_with[0].gamma = 0.123 is not searched; valid: 0.8"),
        ("storage=grpc://nowhere", "storage = 'grpc://nowhere'"),
        ("storage=nonsense://x", r"storage = 'nonsense://x' cannot be used .*; valid: null, a URL"),
        ("env.kwargs.actions=pulse_grid", "actions = .pulse_grid. is unknown; valid: discrete"),
        ("experiment=worlds/queue_threshold", "experiment = worlds/queue_threshold is of env = 'queue_threshold', not of"),
        ("trails=3", "there is no key 'trails'"),
    ],
)
def test_what_no_study_can_be_made_of_is_said(override, said, tmp_path, capsys):
    import re

    assert program.main(["tune", *STUDY, f"run_dir={tmp_path}", override]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert re.search(said.replace("[0]", r"\[0\]"), error), error
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_settings_of_the_package_are_chosen_by_the_learner(tmp_path):
    (tmp_path / "tuned" / "mine").mkdir(parents=True)
    for algo, rate in (("ppo", 0.25), ("dqn", 0.5)):
        text = "# @package _global_\ndefaults: [/experiment/worlds/host_buffers, _self_]\nalgo:\n  learning_rate: "
        write_atomic(tmp_path / "tuned" / "mine" / f"{algo}.yaml", f"{text}{rate}\n")
        for word in ("+tuned=mine", "tuned=mine", f"tuned=mine/{algo}"):
            config = load("train", ["env=host_buffers", f"algo={algo}", word, "algo.kwargs.gamma=0.5"], Source(str(tmp_path)))
            assert config.algo.learning_rate == rate and config.scenario.name == "auter/training" and config.twins == 4
            assert config.algo.kwargs.gamma == 0.5
    with pytest.raises(ConfigError, match=r"tuned = 'mine' with algo.name = 'a2c'.*valid: dqn, ppo"):
        load("train", ["env=host_buffers", "algo=a2c", "tuned=mine"], Source(str(tmp_path)))
    with pytest.raises(ConfigError, match="tuned = 'queue_threshold' holds settings of queue_threshold, not"):
        load("train", ["env=host_buffers", "algo=dqn", "+tuned=queue_threshold"])
    assert load("train", ["algo=dqn", "+tuned=queue_threshold"]).env.name == "queue_threshold"
    with pytest.raises(ConfigError, match="tuned = 'other' is unknown"):
        load("train", ["env=host_buffers", "tuned=other"], Source(str(tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *for_release(1, 2)])
def test_tuned_settings_of_the_package_compose(part):
    for path in sorted((CONF / "tuned").glob("*/*.yaml"))[part::3]:
        task, algo = path.parent.name, path.stem
        config = load("train", [f"env={task}", f"algo={algo}", f"+tuned={task}"])
        worlds = load("train", [f"env={task}", f"algo={algo}", f"experiment=worlds/{task}"])
        assert (config.env.kwargs, config.scenario, config.reward) == (worlds.env.kwargs, worlds.scenario, worlds.reward), path
        searched = {one.key for one in search_space.read_settings(load("tune", [f"env={task}", f"algo={algo}"]).search)}
        settings = {f"algo.{key}": value for key, value in flatten_leaves(to_plain(OmegaConf.load(path).algo)).items()}
        assert settings.keys() == searched, path
        assert settings == {key: to_plain(OmegaConf.select(config, key)) for key in settings}, path
