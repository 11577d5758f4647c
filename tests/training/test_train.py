"""Training jobs: what they write, how they end, and how they go on."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.env_util import make_vec_env

from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError
from netbuf_gym.training import callbacks, learning
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.train import train
from tests.helpers.release_cases import for_release


def weights(path):
    policy = stable_baselines3.PPO.load(path, device="cpu").policy
    return th.cat([p.flatten() for p in policy.parameters()])


def test_writes_a_run_directory(tiny):
    overrides, run_dir = tiny
    result = train([o for o in overrides if o != "tensorboard=false"])
    names = {path.name.split(".")[0] for path in run_dir.iterdir()}
    assert names == {"config", "versions", "model", "progress", "events"}
    assert result.model_path == run_dir / "model.zip"
    assert result.timesteps == 128 and not result.interrupted
    assert 0 < result.env_share < 1
    rows = list(csv.DictReader((run_dir / "progress.csv").open()))
    assert float(rows[-1]["rollout/utility"]) < 0
    assert float(rows[-1]["train/approx_kl"]) >= 0


def test_resume_goes_on_where_it_stopped(tiny, monkeypatch):
    overrides, run_dir = tiny
    train([*overrides, "seed=5"])
    before = checkpoint.read_model(run_dir)
    learned = {}
    learn = learning.learn

    def spy(model, *args, **kwargs):
        learned.update(steps=model.num_timesteps, weights=th.cat([p.flatten() for p in model.policy.parameters()]))
        learned["optimiser_steps"] = model.policy.optimizer.state_dict()["state"][0]["step"].item()
        return learn(model, *args, **kwargs)

    old = weights(run_dir / "model.zip")
    monkeypatch.setattr(learning, "learn", spy)
    result = train([f"resume={run_dir}", "total_timesteps=256"])
    assert learned["steps"] == 128 and th.equal(learned["weights"], old) and learned["optimiser_steps"] == 32
    after = checkpoint.read_model(run_dir)
    assert result.timesteps == after.progress["timesteps"] == 256
    assert after.progress["seconds"] > before.progress["seconds"]
    assert after.progress["updates"] == 2 * before.progress["updates"]
    assert after.config.seed == 5 and after.config.total_timesteps == 256
    rows = list(csv.DictReader((run_dir / "progress.csv").open()))
    assert [int(row["time/total_timesteps"]) for row in rows] == list(range(32, 257, 32))
    rates = [float(row["train/learning_rate"]) for row in rows[4:] if row["train/learning_rate"]]
    assert rates and max(rates) <= after.config.algo.learning_rate / 2 + 1e-9  # the schedule goes on, too


@pytest.mark.parametrize(
    ("worlds", "total", "rollouts"),
    [(256, 12_000, 1), (256, 1_000_000, 4), (256, 10**8, 24), (1, 10_000, 12), (1, 10**6, 100)],
)
def test_a_run_has_a_hundred_rows_where_it_has_as_many_rollouts(worlds, total, rollouts):
    env = make_vec_env("CartPole-v1", worlds)
    assert learning.choose_log_interval(stable_baselines3.A2C("MlpPolicy", env, n_steps=8), total) == rollouts
    assert learning.choose_log_interval(stable_baselines3.PPO("MlpPolicy", env, n_steps=8, batch_size=8), total) == 1


def test_a_finished_run_is_not_resumed(trained):
    with pytest.raises(ConfigError, match="total_timesteps"):
        train([f"resume={trained}"])


def test_resume_changes_only_what_may_change(trained):
    for override in ("algo=dqn", "seed=3", "scenario=ppcc/1", "algo.kwargs.gamma=0.5", "nonsense=1"):
        with pytest.raises(ConfigError, match="cannot be combined with resume"):
            train([f"resume={trained}", override])
    with pytest.raises(ConfigError, match="total_timesteps"):
        train([f"resume={trained}", "total_timesteps=many"])


def test_a_run_directory_is_not_overwritten(trained):
    before = (trained / "model.zip").read_bytes()
    with pytest.raises(ConfigError, match="holds a run already"):
        train([f"run_dir={trained}"])
    assert (trained / "model.zip").read_bytes() == before


@pytest.mark.slow
def test_time_limit_ends_training_and_schedules(tiny, monkeypatch):
    overrides, run_dir = tiny
    overrides = [o for o in overrides if not o.startswith("total_timesteps")]
    monkeypatch.setattr(callbacks.time, "perf_counter", iter(np.arange(0, 1e6, 0.1)).__next__)
    result = train([*overrides, "max_minutes=1", "total_timesteps=1000000000"])
    assert 60 <= result.seconds < 70
    assert result.model_path.name == "model.zip"
    rows = list(csv.DictReader((run_dir / "progress.csv").open()))
    assert float(rows[-1]["train/learning_rate"]) < 0.2 * float(rows[1]["train/learning_rate"])
    with pytest.raises(ConfigError, match="max_minutes"):
        train([f"resume={run_dir}"])


def test_checkpoints_are_written_on_the_way(tiny, monkeypatch):
    overrides, _ = tiny
    names = []
    save = checkpoint.save_model
    monkeypatch.setattr(checkpoint, "save_model", lambda path, *rest: names.append(path.name) or save(path, *rest))
    monkeypatch.setattr(callbacks.time, "perf_counter", iter(np.arange(0, 1e6, 10.0)).__next__)
    train([*overrides, "checkpoint_minutes=0.5"])
    assert names[-1] == "model.zip" and names.count("checkpoint.zip") >= 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, *for_release(signal.SIGINT)])
def test_interruption_leaves_a_checkpoint_to_resume(tiny, number):
    overrides, run_dir = tiny
    overrides = [*(o for o in overrides if not o.startswith("total_timesteps")), "total_timesteps=100000000"]
    command = [sys.executable, "-m", "netbuf_gym.cli.program", "train", *overrides]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (run_dir / "progress.csv").exists() or not (run_dir / "progress.csv").read_text().count("\n") > 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert f"resume={run_dir}" in out and "again to end at once" in err and "Traceback" not in err
    suffixes = sorted(p.suffix for p in run_dir.iterdir() if p.suffix != ".png")  # a curve, where an episode has ended
    assert suffixes == [".csv", ".json", ".yaml", ".zip"]
    saved = checkpoint.read_model(run_dir)
    assert saved.path.name == "checkpoint.zip" and not saved.progress["finished"]
    steps = saved.progress["timesteps"]
    result = train([f"resume={run_dir}", f"total_timesteps={steps + 32}"])
    assert result.timesteps >= steps + 32
    assert not (run_dir / "checkpoint.zip").exists() and (run_dir / "model.zip").exists()


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["ppo", "a2c"])
def test_divergence_is_one_message_and_no_model(algo, tiny, capfd):
    overrides, run_dir = tiny
    job = [o for o in overrides if algo == "ppo" or not o.startswith("algo.kwargs")]
    explosive = ["algo.learning_rate=1e11", "algo.activation=relu", "algo.net_arch=[16,16,16,16]"]
    assert program.main(["train", f"algo={algo}", *job, *explosive]) == 2
    assert "training diverged" in capfd.readouterr().err
    assert not (run_dir / "model.zip").exists()


@pytest.mark.slow
def test_progress_bar_and_lines(tiny, capfd, monkeypatch):
    overrides, run_dir = tiny
    overrides = [o for o in overrides if o != "progress=false"]
    train(overrides)
    assert "training 100%" in capfd.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    train([*overrides, f"run_dir={run_dir}-bar"])
    assert "100%|" in capfd.readouterr().err
