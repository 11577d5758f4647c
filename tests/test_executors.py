"""Engines that work is spread over: results and errors are those of this process, whatever engine it was."""

import os
import threading

import pytest

from netbuf_gym.cli import main
from netbuf_gym.errors import ConfigError, MissingExtraError, WorkerError
from netbuf_gym.executors import EXECUTORS, LOCAL, executor
from studies.common.campaign import Campaign
from studies.rlbm.experiment import RLBM
from studies.rlbm.settings import Settings

NEEDED = {"local": None, "joblib": "joblib", "ray": "ray", "submitit_local": "submitit"}


@pytest.fixture(params=NEEDED)
def engine(request, monkeypatch, tmp_path):
    if NEEDED[request.param]:
        pytest.importorskip(NEEDED[request.param])
    monkeypatch.chdir(tmp_path)  # where submitit leaves its files
    return executor(request.param)


def quiet(done, total):
    pass


@pytest.mark.slow
def test_every_task_is_done_once_and_where_the_engine_says(engine):
    found = dict(engine.run(lambda number: (number**2, os.getpid()), iter(range(4)), 2))
    assert {task: value for task, (value, _) in found.items()} == {0: 0, 1: 1, 2: 4, 3: 9}
    assert {process == os.getpid() for _, process in found.values()} == {engine.here}


@pytest.mark.slow
def test_errors_of_ours_come_as_they_are_and_others_are_named(engine):
    def refuse(ours):
        raise (ConfigError if ours else KeyError)("number = 3")

    stop = threading.Event()
    with pytest.raises(ConfigError, match=r"^number = 3$"):
        list(engine.run(refuse, [True], 1, stop))
    assert stop.is_set()
    with pytest.raises(KeyError if engine.here else WorkerError, match="number = 3"):
        list(engine.run(refuse, [False], 1))


@pytest.mark.slow
def test_a_campaign_is_the_same_to_the_bit_and_goes_on_elsewhere(engine, tmp_path):
    values = {"sizes": (20,), "loads": (0.8,), "ccs": ("cubic",), "seeds": 2, "duration_s": 1.0, "intervals": ()}
    settings = Settings(schemes=("naive", "random"), **values)
    here = Campaign(RLBM, settings, tmp_path / "here", 1).run(quiet)
    begun = Campaign(RLBM, settings, tmp_path / "there", 1)

    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.run(interrupt)
    assert not (tmp_path / "there" / "runs.csv").exists()
    there = Campaign(RLBM, settings, tmp_path / "there", 2, engine)
    assert there.run(quiet).read_bytes() == here.read_bytes()
    assert EXECUTORS[there._description("", 0.0)["executor"]] is engine


def test_another_file_on_another_machine_is_refused(tmp_path):
    campaign = Campaign(RLBM, Settings(schemes=("naive",), seeds=1), tmp_path / "out", 1)
    elsewhere = campaign._elsewhere()
    elsewhere.identity["agent_sha256"] = "another"
    with pytest.raises(ConfigError, match="agents are other files on"):
        elsewhere(next(campaign.work.chunks(campaign.parts)))


def test_an_engine_that_is_not_there_is_said_in_a_line(capsys, monkeypatch):
    assert main(["reproduce", "rlbm", "executor=dask"]) == 2
    assert "executor = 'dask' is unknown; valid: local, joblib, ray, slurm, submitit_local" in capsys.readouterr().err
    monkeypatch.setattr(type(EXECUTORS["joblib"]), "modules", ("no_such_module",))
    with pytest.raises(MissingExtraError, match=r"executor = 'joblib' needs .*pip install netbuf-gym\[joblib\]"):
        executor("joblib")
    assert main(["reproduce", "rlbm", "executor=joblib"]) == 2 and capsys.readouterr().err.count("\n") == 1


def test_slurm_without_slurm_is_said(monkeypatch, tmp_path):
    pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkerError, match="executor = 'slurm'"):
        list(executor("slurm").run(str, [1], 1))


def test_a_task_that_ends_early_is_waited_for_no_longer_than_it_looks_away():
    stop, begun = threading.Event(), threading.Event()

    def look(number):
        begun.set()
        assert stop.wait(60)

    runs = LOCAL.run(lambda number: look(number) if number else number, range(2), 2, stop)
    assert next(runs) == (0, 0) and begun.wait(60)
    runs.close()
    assert stop.is_set()
