"""Saved models: whole, atomic, and refused with one clear message when they are not what they should be."""

import io
import json
import re
import shutil
import zipfile

import numpy as np
import pytest
import stable_baselines3
import torch as th

from netbuf_gym.cli import program
from netbuf_gym.errors import CheckpointError
from netbuf_gym.training import models
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.train import train
from netbuf_gym.zoo import library


def rewritten(source, target, change):
    """A copy of a zip file with `change(name, data)` applied to each member; None leaves it out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return target


def with_meta(source, target, change):
    def edit(name, data):
        if name != checkpoint.META:
            return data
        meta = json.loads(data)
        change(meta)
        return json.dumps(meta)

    return rewritten(source, target, edit)


def build(saved):
    env = models.make_env(saved.env["id"], 2, 1, saved.env["kwargs"])
    config = saved.config
    config.algo.kwargs.n_steps, config.algo.kwargs.batch_size = 4, 8
    return models.make_model(config.algo, env, 0), env


def test_carries_what_is_needed_to_use_it(trained):
    saved = checkpoint.read_model(trained)
    assert saved.path == trained / "model.zip"
    assert saved.env["id"] == "netbuf/CongestionWindow-v0"
    assert saved.env["kwargs"] == {"recipe": "default", "scenario": {"name": "ppcc/4", "duration_s": 2}}
    assert saved.env["schema"]["telemetry"]["version"] >= 1
    assert saved.env["schema"]["features"]
    assert saved.config.algo.kwargs.gamma > 0
    assert saved.progress["timesteps"] == 128 and saved.progress["finished"]


def test_restores_networks_and_optimiser(trained, tmp_path):
    saved = checkpoint.read_model(trained)
    model, env = build(saved)
    checkpoint.restore_model(saved, model, rng=True)
    stock = stable_baselines3.PPO.load(saved.path, device="cpu")
    for ours, theirs in zip(model.policy.parameters(), stock.policy.parameters(), strict=True):
        assert th.equal(ours, theirs)
    steps = [state["step"].item() for state in model.policy.optimizer.state_dict()["state"].values()]
    assert steps and min(steps) == 4 * 4 * 2  # rollouts, epochs, minibatches
    assert model.num_timesteps == 128
    state = th.get_rng_state()
    checkpoint.save_model(tmp_path / "again.zip", model, saved.config, saved.env, saved.progress)
    th.manual_seed(99)
    np.random.seed(99)
    checkpoint.restore_model(checkpoint.read_model(tmp_path / "again.zip"), model, rng=True)
    assert th.equal(th.get_rng_state(), state)
    env.close()


def test_kl_coefficient_is_kept(tiny):
    overrides, run_dir = tiny
    train([*overrides, "algo=ppo_kl", "algo.kwargs.kl_coef=0.5"])
    saved = checkpoint.read_model(run_dir)
    model, env = build(saved)
    saved.attributes["kl_coef"] = 0.123
    checkpoint.restore_model(saved, model, rng=False)
    assert model.kl_coef == 0.123
    env.close()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 0.999])
def test_truncated_file(trained, tmp_path, share):
    data = (trained / "model.zip").read_bytes()
    path = tmp_path / "model.zip"
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        checkpoint.read_model(path)


@pytest.mark.parametrize("cut", [1, 20, 1000])
@pytest.mark.parametrize("agent", ["queue_threshold/ppo", "queue_threshold/ppo_lstm"])
def test_a_file_that_lacks_its_end_is_said_to_be_truncated(tmp_path, agent, cut):
    """Whose last whole archive is a member, as parameters are; those of an agent with memory have many members of their own."""
    data = (library.FOLDER / agent / library.MODEL).read_bytes()
    path = tmp_path / "model.zip"
    path.write_bytes(data[:-cut])
    with pytest.raises(CheckpointError, match=r"model.zip: truncated or damaged, no whole zip file"):
        checkpoint.read_model(path)


def test_a_checkpoint_beside_a_model_is_the_newer_one(trained, tmp_path):
    for name in ("model.zip", "checkpoint.zip"):
        (tmp_path / name).write_bytes((trained / "model.zip").read_bytes())
    assert checkpoint.read_model(tmp_path).path == tmp_path / "checkpoint.zip"
    (tmp_path / "checkpoint.zip").unlink()
    assert checkpoint.read_model(tmp_path).path == tmp_path / "model.zip"


def test_parameters_that_are_not_finite_are_refused(trained, tmp_path):
    def poison(name, data):
        if name != "policy.pth":
            return data
        state = th.load(io.BytesIO(data), weights_only=True)
        first = next(iter(state))
        state[first] = state[first] * float("nan")
        file = io.BytesIO()
        th.save(state, file)
        return file.getvalue()

    saved = checkpoint.read_model(rewritten(trained / "model.zip", tmp_path / "x.zip", poison))
    model, env = build(saved)
    with pytest.raises(CheckpointError, match="not finite"):
        checkpoint.restore_model(saved, model, rng=False)
    env.close()


def test_any_flipped_byte_is_noticed_or_harmless(trained, tmp_path):
    original = (trained / "model.zip").read_bytes()
    path = tmp_path / "model.zip"
    reference = checkpoint.read_model(trained)
    refused = 0
    for position in np.random.default_rng(0).integers(0, len(original), 60):
        data = bytearray(original)
        data[position] ^= 0x55
        path.write_bytes(data)
        try:
            saved = checkpoint.read_model(path)
            assert saved.env == reference.env and saved.progress == reference.progress
        except CheckpointError:
            refused += 1
    assert refused > 50


def test_missing_members(trained, tmp_path):
    for name in ("policy.pth", "policy.optimizer.pth", checkpoint.RNG):
        path = rewritten(trained / "model.zip", tmp_path / "x.zip", lambda n, d, name=name: None if n == name else d)
        with pytest.raises(CheckpointError, match=f"member '{name}' is missing"):
            checkpoint.read_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta.update(format=99), "format 99"),
        (lambda meta: meta.pop("config"), "not what was written"),
        (lambda meta: meta.update(config={}), r"algo\.name"),
        (lambda meta: meta["config"].update(seed="x"), "not what was written"),
        (lambda meta: meta.update(env=3), "not what was written"),
        (lambda meta: meta.update(progress={}), "not what was written"),
        (lambda meta: meta["progress"].update(seconds=None), "not what was written"),
        (lambda meta: meta.update(attributes={"kl_coef": "x"}), "not what was written"),
    ],
)
def test_damaged_description(trained, tmp_path, change, message):
    with pytest.raises(CheckpointError, match=message):
        checkpoint.read_model(with_meta(trained / "model.zip", tmp_path / "x.zip", change))


def test_parameters_of_another_network(trained, tmp_path):
    path = with_meta(trained / "model.zip", tmp_path / "x.zip", lambda m: m["config"]["algo"].update(net_arch=[8]))
    saved = checkpoint.read_model(path)
    model, env = build(saved)
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.restore_model(saved, model, rng=False)
    env.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda env: env.update(id="netbuf/Other-v0"), "netbuf/Other-v0"),
        (lambda env: env["schema"]["telemetry"].update(version=77), "77"),
        (lambda env: env["schema"]["features"].reverse(), "features"),
        (lambda env: env["schema"].update(history=9), "history"),
        (lambda env: env["observation_space"].update(shape=[3]), "observation_space"),
        (lambda env: env["action_space"].update(n=4), "action_space"),
    ],
)
def test_another_environment_is_refused(trained, tmp_path, change, message):
    path = with_meta(trained / "model.zip", tmp_path / "x.zip", lambda meta: change(meta["env"]))
    env = models.make_env("netbuf/CongestionWindow-v0", 1, 1, {})
    with pytest.raises(CheckpointError, match=re.escape(message)):
        saved = checkpoint.read_model(path)
        checkpoint.require_same_env(saved, checkpoint.describe_env(env, "netbuf/CongestionWindow-v0", saved.env["kwargs"]))
    env.close()


def test_nothing_is_left_when_writing_fails(trained, tmp_path, monkeypatch):
    saved = checkpoint.read_model(trained)
    model, env = build(saved)
    path = tmp_path / "model.zip"
    path.write_bytes(b"before")
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save_model(path, model, saved.config, saved.env, saved.progress)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["model.zip"]
    env.close()


def test_command_line_answers_bad_checkpoints_in_one_line(trained, tmp_path, capfd):
    broken = tmp_path / "run"
    shutil.copytree(trained, broken)
    data = (broken / "model.zip").read_bytes()
    (broken / "model.zip").write_bytes(data[: len(data) // 2])
    (tmp_path / "empty").mkdir()
    out = f"run_dir={tmp_path / 'out'}"
    other = with_meta(trained / "model.zip", tmp_path / "o.zip", lambda meta: meta["env"].update(id="netbuf/Other-v0"))
    for command in (
        ["evaluate", f"model={broken}", out],
        ["evaluate", f"model={tmp_path / 'nowhere.zip'}", out],
        ["evaluate", f"model={tmp_path / 'empty'}", out],
        ["evaluate", f"model={other}", out],
        ["evaluate", f"model={trained}", "env=netbuf/Other-v0", out],
        ["train", f"resume={broken}"],
        ["train", f"resume={tmp_path / 'nowhere'}"],
    ):
        assert program.main(command) == 2
        captured = capfd.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1 and "Traceback" not in captured.err
    assert not (tmp_path / "out").exists()
    assert sorted(p.name for p in broken.iterdir()) == sorted(p.name for p in trained.iterdir())
