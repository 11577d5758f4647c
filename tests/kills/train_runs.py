"""`netbuf-gym train`, to be killed: tiny jobs of each learner, and what of a run must be whole and the same."""

from __future__ import annotations

import csv
import sys
import zipfile
from pathlib import Path

import torch as th
from kills.killing import Job

from netbuf_gym.zoo import archive, checkpoint

WALL_CLOCK = ("time/fps", "time/time_elapsed", "time/env_seconds")
COMMON = (
    "scenario=ppcc/random",
    "scenario.kwargs.duration_s=2",
    "algo.num_envs=8",
    "stagger_steps=7",
    "total_timesteps=12800",
    "checkpoint_minutes=0.001",
    "progress=false",
    "tensorboard=false",
)
ROLLOUT = ("algo.kwargs.n_steps=16", "algo.kwargs.batch_size=32")
LEARNERS = {
    "ppo": ROLLOUT,
    "ppo_kl": ROLLOUT,
    "a2c": (),
    "dqn": ("algo.kwargs.learning_starts=500", "algo.kwargs.buffer_size=4000", "algo.kwargs.batch_size=32"),
    "ppo_lstm": ("total_timesteps=6400", *ROLLOUT, "algo.policy_kwargs.lstm_hidden_size=8"),
}


def contents(run_dir):
    """Parameters, optimiser and generators of a finished run, and the rows of its log that no clock decides."""
    with zipfile.ZipFile(run_dir / "model.zip") as model:
        networks, optimizer = (archive.read_parameters(model, name) for name in (checkpoint.PARAMETERS, checkpoint.OPTIMIZER))
        generators = model.read(checkpoint.RNG)
    return networks, optimizer, generators, rows(run_dir)


def rows(run_dir):
    """The log, but for what a clock decides."""
    with (run_dir / "progress.csv").open(newline="") as file:
        return [{key: row[key] for key in row if key not in WALL_CLOCK} for row in csv.DictReader(file)]


def same(one, other):
    """Whether two nested values are equal, tensors bit for bit."""
    if isinstance(one, th.Tensor):
        return th.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def require_same(run_dir: Path, reference: Path) -> None:
    """Raises AssertionError unless two finished runs came to the same, and left nothing else behind."""
    parts = ("networks", "optimiser", "generators", "log")
    for what, one, other in zip(parts, contents(run_dir), contents(reference), strict=True):
        assert same(one, other), what
    assert sorted(path.name for path in run_dir.iterdir()) == ["config.yaml", "model.zip", "progress.csv"]
    assert checkpoint.read(run_dir).progress["timesteps"] == checkpoint.read(reference).progress["timesteps"]


def check(run_dir: Path) -> None:
    """Raises unless every file of a run is whole, whenever it was killed."""
    for path in run_dir.glob("[!.]*"):
        if path.suffix == ".yaml":
            checkpoint.read_config(path)
        elif path.suffix == ".csv":
            assert all(None not in row and None not in row.values() for row in rows(run_dir))
        elif checkpoint.MEMORY.fullmatch(path.name):
            with zipfile.ZipFile(path) as memory:
                assert memory.testzip() is None
        else:
            saved = checkpoint.read(path)
            if saved.has_moment:
                checkpoint.moment_of(saved)


def job(algo: str) -> Job:
    """The job of a learner."""

    def command(run_dir: Path, begun: bool) -> list[str]:
        own = [f"resume={run_dir}"] if begun else [f"algo={algo}", *COMMON, *LEARNERS[algo], f"run_dir={run_dir}"]
        return [sys.executable, "-m", "netbuf_gym", "train", *own]

    def done(run_dir: Path) -> bool:
        return (run_dir / "model.zip").is_file() and not any(
            path.name == "checkpoint.zip" or checkpoint.MEMORY.fullmatch(path.name) for path in run_dir.iterdir()
        )

    return Job(algo, command, lambda run_dir: (run_dir / "config.yaml").is_file(), done, check, require_same)


JOBS = [job(name) for name in LEARNERS]
