"""Engines that work is spread over: results and errors are those of this process, whatever engine it was."""

import itertools
import os
import sys
import threading
import time
import types

import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError, MissingExtraError, WorkerError
from netbuf_gym.utils import executors
from netbuf_gym.utils.executors import EXECUTORS, LOCAL, get_executor
from studies.common.campaign import Campaign
from studies.rlbm.rlbm_experiment import RLBM
from studies.rlbm.rlbm_settings import Settings

NEEDED = {"local": None, "joblib": "joblib", "ray": "ray", "submitit_local": "submitit"}


@pytest.fixture(params=NEEDED)
def engine(request, monkeypatch, tmp_path):
    if NEEDED[request.param]:
        pytest.importorskip(NEEDED[request.param])
    monkeypatch.chdir(tmp_path)  # where submitit leaves its files
    return get_executor(request.param)


class Cluster:
    """Slurm as submitit gives it, one processor with a clock of its own, which tasks advance.

    Attributes:
        jobs: The tasks that each was given.
        kills: Numbers of jobs that are lost.
        now: Of the clock.
    """

    def __init__(self):
        self.jobs, self.kills, self.now = [], set(), 0.0

    def tick(self):
        return self.now

    def submit(self, work, group):
        self.jobs.append(group)
        return Job(self, len(self.jobs) - 1, work, group)


class Job:
    def __init__(self, cluster, number, work, group):
        self.cluster, self.number, self.work, self.group = cluster, number, work, group
        self.ended = False

    def done(self):
        if not self.ended and self.number not in self.cluster.kills:
            self.found = self.work(self.group)
        self.ended = True
        return True

    def result(self):
        if self.number in self.cluster.kills:
            raise LostError(f"job {self.number}")
        return self.found

    def cancel(self):
        pass


class LostError(Exception):
    pass


@pytest.fixture
def cluster(monkeypatch):
    made = Cluster()
    errors = types.SimpleNamespace(UncompletedJobError=LostError, FailedJobError=LostError)
    pool = types.SimpleNamespace(update_parameters=lambda **_: None, submit=made.submit)
    fake = types.SimpleNamespace(AutoExecutor=lambda **_: pool, core=types.SimpleNamespace(utils=errors))
    monkeypatch.setitem(sys.modules, "submitit", fake)
    monkeypatch.setattr(executors, "time", types.SimpleNamespace(perf_counter=made.tick, sleep=None))
    return made


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
    assert EXECUTORS[there._make_description("", 0.0)["executor"]] is engine


def test_another_file_on_another_machine_is_refused(tmp_path):
    campaign = Campaign(RLBM, Settings(schemes=("naive",), seeds=1), tmp_path / "out", 1)
    elsewhere = campaign._make_remote_chunks()
    elsewhere.identity["agent_sha256"] = "another"
    with pytest.raises(ConfigError, match="agents are other files on"):
        elsewhere(next(campaign.work.chunks(campaign.parts)))


def test_an_engine_that_is_not_there_is_said_in_a_line(capsys, monkeypatch):
    assert main(["reproduce", "rlbm", "executor=dask"]) == 2
    assert "executor = 'dask' is unknown; valid: local, joblib, ray, slurm, submitit_local" in capsys.readouterr().err
    monkeypatch.setattr(type(EXECUTORS["joblib"]), "modules", ("no_such_module",))
    with pytest.raises(MissingExtraError, match=r"executor = 'joblib' needs .*pip install netbuf-gym\[joblib\]"):
        get_executor("joblib")
    assert main(["reproduce", "rlbm", "executor=joblib"]) == 2 and capsys.readouterr().err.count("\n") == 1


def test_a_node_of_ray_that_starts_late_is_started_again(monkeypatch):
    ray, asked = pytest.importorskip("ray"), []

    def late(**settings):
        asked.append(settings)
        if len(asked) != 2:
            raise Exception("The current node timed out during startup")

    monkeypatch.setattr(ray, "init", late)
    get_executor("ray")._start_node(3)
    assert len(asked) == 2 and asked[1]["num_cpus"] == 3
    with pytest.raises(WorkerError, match="executor = 'ray': no node: The current node timed out"):
        get_executor("ray")._start_node(3)
    assert len(asked) == 5


def test_slurm_without_slurm_is_said(monkeypatch, tmp_path):
    pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkerError, match="executor = 'slurm'"):
        list(get_executor("slurm").run(str, [1], 1))


def test_a_task_that_ends_early_is_waited_for_no_longer_than_it_looks_away():
    stop, begun = threading.Event(), threading.Event()

    def look(number):
        begun.set()
        assert stop.wait(60)

    runs = LOCAL.run(lambda number: look(number) if number else number, range(2), 2, stop)
    assert next(runs) == (0, 0) and begun.wait(60)
    runs.close()
    assert stop.is_set()


SLURM = EXECUTORS["slurm"]


def lasting(cluster, seconds):
    """Work that takes so long of the cluster's clock, and what it did in which order."""
    did = []

    def work(task):
        cluster.now += seconds(task)
        did.append(task)
        return -task

    return work, did


def test_short_tasks_share_jobs_and_come_to_the_same(cluster):
    work, did = lasting(cluster, lambda task: 0.01)
    assert sorted(SLURM.run(work, range(200), 4)) == [(task, -task) for task in range(200)]
    assert sorted(did) == list(range(200))
    sizes = [len(group) for group in cluster.jobs]
    assert sizes[:5] == [1, 1, 1, 1, 49] and len(sizes) < 25  # then a fair share of those that are left


def test_jobs_are_of_the_length_that_is_meant(cluster):
    work, _ = lasting(cluster, lambda task: 2.0)
    found = dict(SLURM.run(work, iter(range(9200)), 50))
    assert len(found) == 9200
    sizes = [len(group) for group in cluster.jobs]
    assert max(sizes) == SLURM.job_seconds / 2.0 and len(sizes) < 9200 / 30 + 50 + 150


def test_long_tasks_have_jobs_of_their_own(cluster):
    work, _ = lasting(cluster, lambda task: 3600.0)
    assert len(dict(SLURM.run(work, range(7), 2))) == 7 == len(cluster.jobs)


def test_tasks_are_drawn_as_they_are_needed(cluster):
    work, _ = lasting(cluster, lambda task: 20.0)
    drawn = []
    runs = SLURM.run(work, (drawn.append(number) or number for number in itertools.count()), 3)
    assert [next(runs) for _ in range(40)] and len(drawn) <= 40 + 3 * 3 + 3
    runs.close()


def test_a_job_that_takes_longer_than_meant_hands_back_what_it_has_not_begun(cluster):
    """One task is longer than all others together: it delays those alone that were done before it in its job."""
    work, did = lasting(cluster, lambda task: 5000.0 if task == 60 else 0.01)
    found = []
    for task, value in SLURM.run(work, range(200), 2):
        found.append(task)
        assert value == -task
    assert sorted(found) == list(range(200)) == sorted(did)
    (long,) = (group for group in cluster.jobs if 60 in group)
    assert long[-1] > 60 and found.index(61) > found.index(60)
    (again,) = (group for group in cluster.jobs if 61 in group and 60 not in group)
    assert again[0] == 61 and cluster.jobs.index(again) > cluster.jobs.index(long)


def test_what_was_done_before_an_error_in_a_group_is_handed_over_and_no_more_is_done(cluster):
    def work(task):
        cluster.now += 0.01
        did.append(task)
        if task == 50:
            raise ConfigError("number = 50")
        if task == 51:
            raise KeyError("number = 51")
        return task

    did, stop, found = [], threading.Event(), []
    with pytest.raises(ConfigError, match=r"^number = 50$"):
        for task, _ in SLURM.run(work, range(200), 2, stop):
            found.append(task)
    (group,) = (one for one in cluster.jobs if 50 in one)
    assert set(group[: group.index(50)]) <= set(found) and 51 in group and 51 not in did and stop.is_set()
    with pytest.raises(WorkerError, match=r"'slurm': work was lost: KeyError: 'number = 51'; finished work is kept") as told:
        list(SLURM.run(work, range(51, 60), 1))
    assert "in work" in str(told.value.__cause__)


def test_a_lost_job_takes_no_other_with_it(cluster):
    work, _ = lasting(cluster, lambda task: 0.01)
    cluster.kills.add(3)
    found = []
    with pytest.raises(WorkerError, match="'slurm': work was lost: job 3; finished work is kept; valid: the same"):
        for task, _ in SLURM.run(work, range(100), 3):
            found.append(task)
    lost, beside = cluster.jobs[3], cluster.jobs[4:6]
    assert len(beside) == 2 and {*itertools.chain(*beside)} < set(found) and not set(lost) & set(found)


def test_what_an_interruption_finds_done_is_kept_and_the_rest_is_given_up(cluster):
    work, _ = lasting(cluster, lambda task: 0.01)
    kept = []
    with pytest.raises(KeyboardInterrupt):
        for task, _ in SLURM.run(work, range(200), 2):
            kept.append(task)
            if len(kept) == 70:
                raise KeyboardInterrupt
    rest = [task for task in range(200) if task not in kept]
    assert dict.fromkeys([*kept, *(task for task, _ in SLURM.run(work, rest, 2))]).keys() == set(range(200))


@pytest.mark.slow
def test_processes_share_jobs_as_well(monkeypatch):
    pytest.importorskip("joblib")
    given, draw = [], executors.TaskGroups.__next__
    monkeypatch.setattr(executors.TaskGroups, "__next__", lambda self: given.append(draw(self)) or given[-1])
    found = dict(get_executor("joblib").run(lambda number: time.sleep(0.01) or number**2, iter(range(200)), 2))
    assert found == {number: number**2 for number in range(200)} and len(given) < 60
    assert sorted(itertools.chain(*given)) == list(range(200))
