"""How training ends otherwise: by its time limit, by a full disk."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError
from netbuf_gym.training import callbacks
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.train import train

SHORT = ("scenario=ppcc/4", "scenario.kwargs.duration_s=2", "stagger_steps=0", "progress=false", "tensorboard=false")
LONG_UPDATES = ("algo.num_envs=4", "algo.kwargs.n_steps=256", "algo.kwargs.batch_size=32", "algo.kwargs.n_epochs=10000")
LONG_ROLLOUTS = ("algo.num_envs=4", "algo.kwargs.n_steps=200000", "algo.kwargs.batch_size=32")
LIMITED = {
    "ppo": LONG_UPDATES,
    "ppo_lstm": (*LONG_UPDATES, "algo.kwargs.sequence_steps=16"),
    "a2c": ("algo.num_envs=4", "algo.kwargs.n_steps=1000000"),
    "dqn": ("algo.num_envs=4", "algo.kwargs.learning_starts=0", "algo.kwargs.gradient_steps=100000"),
}


@pytest.mark.slow
@pytest.mark.parametrize("algo", LIMITED)
def test_the_time_limit_holds_inside_rollouts_and_updates(algo, tmp_path):
    run_dir = tmp_path / "run"
    result = train([f"algo={algo}", *SHORT, *LIMITED[algo], "max_minutes=0.02", f"run_dir={run_dir}"])
    assert 1.2 <= result.seconds < 60 and not result.interrupted  # an update of these alone takes minutes
    saved = checkpoint.read_model(run_dir)
    assert saved.path.name == "model.zip" and saved.progress["finished"]
    with pytest.raises(ConfigError, match="max_minutes"):
        train([f"resume={run_dir}"])


@pytest.mark.slow
def test_a_rollout_that_the_limit_cut_is_not_counted(tmp_path):
    result = train(["algo=ppo", *SHORT, *LONG_ROLLOUTS, "max_minutes=0.01", f"run_dir={tmp_path / 'run'}"])
    assert result.timesteps == 0  # so that totals after resuming are those of whole rollouts


@pytest.mark.slow
@pytest.mark.parametrize("total", [96, 100, 128])
def test_totals_are_those_of_an_undisturbed_run(total, tmp_path, tiny, monkeypatch):
    overrides = [one for one in tiny[0] if not one.startswith(("total", "run_dir"))]
    whole = train([*overrides, f"total_timesteps={total}", f"run_dir={tmp_path / 'whole'}"])
    steps, goes_on = [0], callbacks.StopCondition._on_step

    def interrupt(stop):
        steps[0] += 1
        if steps[0] == 13:
            stop.interrupt.received = 2
        return goes_on(stop)

    monkeypatch.setattr(callbacks.StopCondition, "_on_step", interrupt)
    assert train([*overrides, f"total_timesteps={total}", f"run_dir={tmp_path / 'run'}"]).interrupted
    assert train([f"resume={tmp_path / 'run'}"]).timesteps == whole.timesteps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint.zip", "model.zip", "progress.csv", "config.yaml"])
def test_a_full_disk_is_reported_with_the_files_name(name, tiny, capfd, monkeypatch):
    """`write_atomic` fails as it does on a full disk: with no name, or that of its temporary file."""

    def full(path, data):
        if Path(path).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    from netbuf_gym.training import train as job

    write = checkpoint.write_atomic
    for module in (checkpoint, callbacks, job):
        monkeypatch.setattr(module, "write_atomic", full)
    assert program.main(["train", *tiny[0], "checkpoint_minutes=0.0001"]) == 2
    assert f"{tiny[1] / name}: No space left on device" in capfd.readouterr().err


@pytest.mark.parametrize(("option", "file"), [("size=96k", "model.zip"), ("nr_inodes=6", "")])
def test_a_disk_that_is_really_full(tmp_path, tiny, capfd, option, file):
    """By its blocks, or by its number of files: TensorBoard's, which a thread opens."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", option, "none", disk]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        overrides = [one for one in tiny[0] if not one.startswith(("run_dir", "tensorboard"))]
        log = "tensorboard=true" if not file else "tensorboard=false"
        assert program.main(["train", *overrides, log, f"run_dir={disk / 'run'}"]) == 2
        err = capfd.readouterr().err
        assert f"{disk / 'run' / file}: No space left on device" in err and err.count("\n") == 1
        assert not (disk / "run" / "model.zip").exists()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
