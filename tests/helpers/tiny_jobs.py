"""What the zoo's tests share: tiny training jobs."""

import dataclasses

import pytest
import torch as th

from netbuf_gym import tasks
from netbuf_gym.tasks import record

TINY = (
    "algo.num_envs=4",
    "algo.kwargs.n_steps=8",
    "algo.kwargs.batch_size=16",
    "scenario=ppcc/4",
    "scenario.kwargs.duration_s=2",
    "stagger_steps=0",
    "total_timesteps=128",
    "progress=false",
    "tensorboard=false",
)


@pytest.fixture(autouse=True)
def one_thread():
    """One torch thread, whatever a job set."""
    yield
    th.set_num_threads(1)


@pytest.fixture
def tiny(tmp_path):
    """Overrides of a training job of a second, in its own run directory; and that directory."""
    return [*TINY, f"run_dir={tmp_path / 'run'}"], tmp_path / "run"


@pytest.fixture
def measure(monkeypatch):
    """Changes the measures of a task."""

    def change(task, **changes):
        own = tasks.get(task)
        changed = dataclasses.replace(own, measures=dataclasses.replace(own.measures, **changes))
        monkeypatch.setitem(record._REGISTRY, task, changed)

    return change


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The run directory of a tiny finished run; not to be written to."""
    from netbuf_gym.training.train import train

    run_dir = tmp_path_factory.mktemp("trained") / "run"
    train([*TINY, f"run_dir={run_dir}"])
    return run_dir
