"""Digests of models: of what decides, whatever file it stands in."""

import io
import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch as th

from netbuf_gym.errors import CheckpointError
from netbuf_gym.leaderboard.controllers import compute_model_digest
from netbuf_gym.training.checkpoints import archive, checkpoint, digest, packing
from netbuf_gym.zoo import library
from tests.training.test_attacks import Harm
from tests.training.test_checkpoint import rewritten, with_meta

FEW = ["queue_threshold/ppo", "congestion_window/dqn", "receiver_window/ppo_lstm", "host_buffers/a2c"]


def with_weights(source, target, change):
    def edit(name, data):
        if name != archive.PARAMETERS:
            return data
        state = th.load(io.BytesIO(data), weights_only=True)
        change(state)
        file = io.BytesIO()
        th.save(state, file)
        return file.getvalue()

    return rewritten(source, target, edit)


@pytest.mark.parametrize("name", FEW)
def test_packing_makes_no_other_model_and_a_changed_weight_does(name, tmp_path):
    own = library.FOLDER / name / library.MODEL
    packing.pack_model(checkpoint.read_model(own), tmp_path / "packed.zip")
    assert (tmp_path / "packed.zip").read_bytes() != own.read_bytes()  # times, addresses in memory
    found = digest.compute_model_digest(own)
    assert digest.compute_model_digest(tmp_path / "packed.zip") == found == compute_model_digest(name) and len(found) == 16

    def nudge(state):
        weights = state[list(state)[-1]].numpy()
        weights.flat[0] = np.nextafter(weights.flat[0], np.float32(9))

    assert digest.compute_model_digest(with_weights(own, tmp_path / "x.zip", lambda state: None)) == found
    assert digest.compute_model_digest(with_weights(own, tmp_path / "x.zip", nudge)) != found
    renamed = with_weights(own, tmp_path / "x.zip", lambda state: state.update(other=state.pop(list(state)[-1])))
    assert digest.compute_model_digest(renamed) != found


def test_shapes_and_types_are_part_of_it(trained, tmp_path):
    def changed(change):
        def edit(state):
            name = next(name for name, values in state.items() if values.dim() == 2)
            state[name] = change(state[name])

        return digest.compute_model_digest(with_weights(trained / "model.zip", tmp_path / "x.zip", edit))

    own = digest.compute_model_digest(trained / "model.zip")
    flat, double, whole = (lambda one: one.reshape(-1)), (lambda one: one.double()), (lambda one: one.view(th.int32))
    others = {changed(change) for change in (flat, double, whole)}
    assert len(others | {own}) == 4
    assert changed(lambda one: one.t().contiguous().t()) == own  # the same numbers, otherwise in memory
    assert changed(lambda one: th.cat([one, one])[len(one) :]) == own  # in a larger storage


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda meta: meta["config"].update(seed=77, run_dir="/x", total_timesteps=5, start_from="y"), True),
        (lambda meta: meta["config"]["algo"].update(learning_rate=0.5), True),
        (lambda meta: meta["config"]["algo"]["policy_kwargs"].update(optimizer_kwargs={"eps": 1e-3}), True),
        (lambda meta: meta["config"]["algo"].pop("normalize_clip"), True),  # of files before there was one
        (lambda meta: meta["progress"].update(timesteps=9, seconds=1.0), True),
        (lambda meta: meta.update(versions={}), True),
        (lambda meta: meta["env"]["kwargs"].update(latency_s=0.5, scenario="other"), True),
        (lambda meta: meta["config"]["algo"].update(name="ppo_kl"), False),
        (lambda meta: meta["config"]["algo"].update(activation="relu"), False),
        (lambda meta: meta["config"]["algo"].update(normalize="running"), False),
        (lambda meta: meta["env"].update(id="netbuf/QueueThreshold-v0"), False),
        (lambda meta: meta["env"]["kwargs"].update(recipe="ppcc"), False),
        (lambda meta: meta["env"]["schema"].update(history=9), False),
        (lambda meta: meta["env"]["schema"]["features"].reverse(), False),
    ],
)
def test_of_the_description_only_what_decides_counts(trained, tmp_path, change, same):
    own, other = trained / "model.zip", with_meta(trained / "model.zip", tmp_path / "x.zip", change)
    assert (digest.compute_model_digest(own) == digest.compute_model_digest(other)) is same


def test_a_folder_is_the_file_that_plays_and_what_is_no_model_has_none(trained, tmp_path):
    shutil.copy(trained / "model.zip", tmp_path)
    own = compute_model_digest(str(tmp_path))
    assert own == digest.compute_model_digest(trained / "model.zip")
    with_meta(trained / "model.zip", tmp_path / "checkpoint.zip", lambda meta: meta["config"]["algo"].update(activation="relu"))
    assert checkpoint.read_model(tmp_path).path.name == "checkpoint.zip" and compute_model_digest(str(tmp_path)) != own
    (tmp_path / "own.cc").write_text("int x;")
    cut = tmp_path / "cut.zip"
    cut.write_bytes((trained / "model.zip").read_bytes()[:-100])
    for word in ("cubic", "nobody", "constant:3", str(tmp_path / "own.cc"), str(cut)):
        assert compute_model_digest(word) is None
    with pytest.raises(CheckpointError, match=r"cut.zip: no model saved by netbuf-gym, or damaged \(BadZipFile\)"):
        digest.compute_model_digest(cut)


def test_it_needs_no_learner():
    code = "import sys; from netbuf_gym.leaderboard.controllers import compute_model_digest as digest_of; "
    code += "print(digest_of('queue_threshold/ppo'), *sys.modules)"
    found, *modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == compute_model_digest("queue_threshold/ppo")
    assert not {"torch", "omegaconf", "stable_baselines3"} & set(modules)


@pytest.mark.parametrize("state", [Harm(), {"x": Harm()}, {"x": 3}, [th.zeros(1)], {"x": {"y": th.zeros(1)}}])
def test_only_tensors_are_read(state, tmp_path):
    file = io.BytesIO()
    th.save(state, file)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr(archive.META, json.dumps({}))
        made.writestr(archive.PARAMETERS, file.getvalue())
        with pytest.raises(ValueError, match="holds more than tensors"):
            archive.read_tensors(made, archive.PARAMETERS)
    assert "harm_was_done" not in sys.modules


@pytest.mark.parametrize(("shape", "strides"), [((3,), (2,)), ((2, 2), (1,)), ((1 << 40,), (0,)), ((-1,), (1,)), ((5,), (1,))])
def test_tensors_stay_within_their_numbers(shape, strides):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a/data/0", np.arange(4, dtype="<f4").tobytes())
    tensor = archive._TensorRecord(("FloatStorage", "0"), 0, shape, strides)
    with zipfile.ZipFile(file) as made, pytest.raises(ValueError, match="a tensor of shape"):
        tensor.read(made, "a/")
