"""`netbuf-gym train`, killed: tiny jobs of each learner, gone on with, come to the weights of undisturbed ones."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import torch as th

from netbuf_gym.training import curves
from netbuf_gym.training.checkpoints import archive, checkpoint
from tools.kills.killing import Damage, Job, require_whole

WALL_CLOCK = ("time/fps", "time/time_elapsed", "time/env_seconds")
COMMON = (
    "scenario=ppcc/random",
    "scenario.kwargs.duration_s=2",
    "algo.num_envs=8",
    "stagger_steps=7",
    "total_timesteps=4800",
    "checkpoint_minutes=0.001",
    "progress=false",
    "tensorboard=false",
)
ROLLOUT = ("algo.kwargs.n_steps=16", "algo.kwargs.batch_size=32")
LEARNERS = {
    "ppo": ROLLOUT,
    "dqn": ("algo.kwargs.learning_starts=500", "algo.kwargs.buffer_size=4000", "algo.kwargs.batch_size=32"),
    "ppo_kl": ROLLOUT,
    "a2c": (),
    "ppo_lstm": ("total_timesteps=2400", *ROLLOUT, "algo.policy_kwargs.lstm_hidden_size=8"),
}


def prepare() -> None:
    """Import what the command does."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401
    import torch._dynamo  # noqa: F401  (learners import it when they begin, for seconds)

    from netbuf_gym.training import train  # noqa: F401


def figures(run_dir: Path) -> dict[str, Any]:
    """Of a finished run parameters, optimiser, generators, steps and the rows of its log that no clock decides.

    The learning curve is drawn when all else is there, and names its folder.
    """
    names = {path.name for path in run_dir.iterdir()} - {curves.PICTURE}
    if names != {"config.yaml", "versions.json", "model.zip", "progress.csv"}:
        raise Damage(f"{sorted(names)} are left")
    with zipfile.ZipFile(run_dir / "model.zip") as model:
        return {
            "networks": archive.read_parameters(model, checkpoint.PARAMETERS),
            "optimiser": archive.read_parameters(model, checkpoint.OPTIMIZER),
            "generators": model.read(checkpoint.RNG),
            "log": rows(run_dir),
            "timesteps": checkpoint.read_model(run_dir).progress["timesteps"],
        }


def rows(run_dir: Path) -> list[dict[str, str]]:
    """The log, but for what a clock decides."""
    with (run_dir / "progress.csv").open(newline="") as file:
        return [{key: row[key] for key in row if key not in WALL_CLOCK} for row in csv.DictReader(file)]


def equal(one: Any, other: Any) -> bool:
    """Whether two nested values are equal, tensors bit for bit."""
    if isinstance(one, th.Tensor):
        return th.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def whole(run_dir: Path) -> None:
    """Read every file of a run to its end."""
    for path in run_dir.glob("[!.]*"):
        if path.suffix == ".yaml":
            checkpoint.read_config(path)
        elif path.suffix == ".png":
            require_whole(path)
        elif path.suffix == ".csv":
            if any(None in row or None in row.values() for row in rows(run_dir)):
                raise Damage(f"{path.name} is cut")
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif checkpoint.MEMORY.fullmatch(path.name):
            with zipfile.ZipFile(path) as memory:
                if memory.testzip() is not None:
                    raise Damage(f"{path.name} is cut")
        else:
            saved = checkpoint.read_model(path)
            if saved.has_moment:
                checkpoint.read_moment(saved)


def done(run_dir: Path) -> bool:
    """Whether the model is there and what is needed to go on is not any more."""
    return (run_dir / "model.zip").is_file() and not any(
        path.name == "checkpoint.zip" or checkpoint.MEMORY.fullmatch(path.name) for path in run_dir.iterdir()
    )


def job(algo: str) -> Job:
    """The job of a learner."""

    def argv(run_dir: Path) -> list[str]:
        if (run_dir / "config.yaml").is_file():
            return ["train", f"resume={run_dir}"]
        return ["train", f"algo={algo}", *COMMON, *LEARNERS[algo], f"run_dir={run_dir}"]

    return Job(algo, prepare, argv, whole, figures, equal, done)


JOBS = [job(name) for name in LEARNERS]
