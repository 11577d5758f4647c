"""Model files made by someone who means harm: nothing of them is imported, run, or allocated beyond measure."""

import base64
import io
import json
import pickle
import sys
import zipfile

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from netbuf_gym import zoo
from netbuf_gym.cli import program
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.evaluation.suites import get_suite
from netbuf_gym.leaderboard import controllers, submission
from netbuf_gym.training import config, evaluate
from netbuf_gym.training.checkpoints import archive, checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.train import train
from tests.helpers.tiny_jobs import TINY
from tests.training.test_checkpoint import rewritten, with_meta


def refused(path, match):
    """Whatever would use the file refuses it."""
    with pytest.raises(CheckpointError, match=match):
        SavedAgent(checkpoint.read_model(path))
    with pytest.raises(CheckpointError, match=match):
        train([f"resume={path}", "total_timesteps=256"])


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module whose import leaves a mark."""
    (tmp_path / "trap_module.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "trap_module"
    assert "trap_module" not in sys.modules


@pytest.mark.parametrize("where", ["env", "config", "both"])
def test_environments_import_nothing(trained, tmp_path, trap, where):
    def change(meta):
        if where != "config":
            meta["env"]["id"] = f"{trap}:Name-v0"
        if where != "env":
            meta["config"]["env"]["id"] = f"{trap}:Name-v0"

    refused(with_meta(trained / "model.zip", tmp_path / "x.zip", change), r"registered by no task|env\.id")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda meta: meta["env"]["kwargs"].update(wrappers=["os.system"]), "wrappers"),
        (lambda meta: meta["env"]["kwargs"].update(task="queue_threshold"), "queue_threshold"),
        (lambda meta: meta["config"]["algo"].update(net_arch=[4096] * 8), "net_arch"),
        (lambda meta: meta["config"]["algo"].update(net_arch=[10**9]), "net_arch"),
        (lambda meta: meta["config"]["algo"].update(net_arch=[1] * 2000), "net_arch"),
        (lambda meta: meta["config"]["algo"].update(policy="os.system"), "policy"),
        (lambda meta: meta["config"]["algo"].update(name="os"), r"algo\.name"),
        (lambda meta: meta["config"]["algo"]["kwargs"].update(n_steps=10**12), "n_steps"),
        (lambda meta: meta["config"]["algo"]["kwargs"].update(stats_window_size=10**15), "stats_window_size"),
        (lambda meta: meta["config"]["algo"]["policy_kwargs"].update(features_extractor_class="os.system"), "features"),
        (lambda meta: meta["config"]["env"].update(num_envs=10**15), "num_envs"),
        (lambda meta: meta["config"]["env"].update(threads=10**6), "threads"),
        (lambda meta: meta["config"].update(torch_threads=10**6), "torch_threads"),
        (lambda meta: meta["config"].update(run_dir="${oc.env:HOME}"), "interpolation"),
        (lambda meta: meta["config"]["env"]["kwargs"].update(recipe="${oc.env:HOME}"), "interpolation"),
        (lambda meta: meta["config"].update(unheard_of=1), "unheard_of"),
        (lambda meta: meta["progress"].update(timesteps=float("nan")), "timesteps"),
        (lambda meta: meta["progress"].update(timesteps=-1), "timesteps"),
    ],
)
def test_descriptions_are_held_to_what_may_be(trained, tmp_path, change, match):
    refused(with_meta(trained / "model.zip", tmp_path / "x.zip", change), match)


def test_an_lstm_larger_than_its_file_is_refused(trained, tmp_path):
    def change(meta):
        meta["config"]["algo"].update(name="ppo_lstm", policy="MlpLstmPolicy", policy_kwargs={"lstm_hidden_size": 4096})
        meta["config"]["algo"]["kwargs"] = {}

    refused(with_meta(trained / "model.zip", tmp_path / "x.zip", change), "needs more than")


def test_unknown_attributes_are_not_set(trained, tmp_path):
    path = with_meta(trained / "model.zip", tmp_path / "x.zip", lambda meta: meta["attributes"].update(policy=1.0, gamma=0.0))
    assert checkpoint.read_model(path).attributes == {}


class Harm:
    def __reduce__(self):
        return (exec, ("import sys; sys.modules['harm_was_done'] = sys",))


@pytest.mark.parametrize("member", ["policy.pth", "policy.optimizer.pth", "pytorch_variables.pth", "data"])
def test_nothing_is_unpickled(trained, tmp_path, member):
    file = io.BytesIO()
    th.save({"state": Harm()}, file)
    encoded = json.dumps({"policy_class": {":type:": "x", ":serialized:": pickle.dumps(Harm()).hex()}}).encode()
    harm = encoded if member == "data" else file.getvalue()
    path = rewritten(trained / "model.zip", tmp_path / "x.zip", lambda name, data: harm if name == member else data)
    try:
        train([f"resume={path}", "total_timesteps=160"])
        assert member in ("data", "pytorch_variables.pth")  # which are not read at all
    except CheckpointError as error:
        assert member in ("policy.pth", "policy.optimizer.pth")
        said = f"'{member}' holds more than tensors, or something damaged; valid: what training wrote"
        assert member == "policy.pth" or said in str(error)  # which is too small here to be looked into
    assert "harm_was_done" not in sys.modules


@pytest.fixture
def harms(trained, tmp_path):
    """Files that are no models of ours, or not whole, each with a pickle that leaves a mark where it is opened."""
    bare, foreign, cut = (tmp_path / name for name in ("bare.zip", "foreign.zip", "cut.zip"))
    bare.write_bytes(pickle.dumps(Harm()))
    file = io.BytesIO()
    th.save({"state": Harm()}, file)
    encoded = json.dumps({"policy_class": {":type:": "x", ":serialized:": base64.b64encode(pickle.dumps(Harm())).decode()}})
    with zipfile.ZipFile(foreign, "w") as made:  # as stable-baselines3 writes them
        for name, data in (("data", encoded), ("policy.pth", file.getvalue()), ("pytorch_variables.pth", file.getvalue())):
            made.writestr(name, data)
    whole = (trained / "model.zip").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    return {"bare": bare, "foreign": foreign, "cut": cut}


OPENS = {
    "load": lambda path: zoo.load(path),
    "evaluate": lambda path: evaluate.evaluate(config.load("evaluate", [f"model={path}"])),
    "suite": lambda path: controllers.resolve_controller(str(path), get_suite("gate")),
    "submit": lambda path: submission.prepare_submission(str(path)),
    "start_from": lambda path: train([*TINY, f"start_from={path}", f"run_dir={path.parent / 'new'}"]),
}


@pytest.mark.parametrize("opened", OPENS)
@pytest.mark.parametrize(
    ("which", "match"),
    [("bare", "truncated or damaged, no whole zip file"), ("foreign", "not a model saved by netbuf-gym"), ("cut", "truncated")],
)
def test_whatever_opens_models_refuses_what_is_none_of_ours(harms, opened, which, match):
    with pytest.raises(CheckpointError, match=match):
        OPENS[opened](harms[which])
    assert "harm_was_done" not in sys.modules


class OfLearners(pickle.Unpickler):
    """Takes what is of the packages whose objects stable-baselines3 keeps of a learner of ours, and nothing else."""

    PACKAGES = ("stable_baselines3", "sb3_contrib", "netbuf_gym", "torch", "gymnasium", "numpy", "collections")

    def find_class(self, module, name):
        assert module.partition(".")[0] in self.PACKAGES, f"{module}.{name}"
        return super().find_class(module, name)


@pytest.mark.parametrize("words", [(), ("--rl-zoo3",)])
def test_what_is_handed_on_holds_no_pickle_of_whoever_sent_it(trained, tmp_path, words):
    """It runs nothing where stable-baselines3 reads it, which unpickles `data`."""
    file = io.BytesIO()
    th.save({"state": Harm()}, file)
    harm = base64.b64encode(pickle.dumps(Harm())).decode()

    def edit(name, data):
        if name == "data":
            own = json.loads(data)
            poisoned = {key: {**value, ":serialized:": harm} for key, value in own.items() if ":serialized:" in str(value)}
            return json.dumps({**own, **poisoned, "of_ours": 1, "of_others": {":type:": "x", ":serialized:": harm}})
        return file.getvalue() if name == "pytorch_variables.pth" else data

    given = rewritten(trained / "model.zip", tmp_path / "given.zip", edit)
    with zipfile.ZipFile(given, "a") as opened:
        opened.writestr("more.pkl", pickle.dumps(Harm()))
    assert program.main(["export", str(given), str(tmp_path / "out"), *words]) == 0
    (made,) = (tmp_path / "out").rglob("*.zip")
    with zipfile.ZipFile(trained / "model.zip") as own, zipfile.ZipFile(made) as other:
        assert set(other.namelist()) == set(own.namelist())
        was, data = json.loads(own.read("data")), json.loads(other.read("data"))
        for name in other.namelist():
            assert b"harm" not in other.read(name) and harm.encode() not in other.read(name), name
    assert data.keys() <= was.keys()
    for key in ("n_envs", "n_steps", "batch_size", "num_timesteps", "seed", "gamma", "_stats_window_size"):
        assert data[key] == was[key], key
    pickled = [one[":serialized:"] for one in data.values() if isinstance(one, dict) and ":serialized:" in one]
    assert ActorCriticPolicy in [OfLearners(io.BytesIO(base64.b64decode(one))).load() for one in pickled]
    stock = stable_baselines3.PPO.load(made)
    assert "harm_was_done" not in sys.modules
    first, other = zoo.load(trained / "model.zip"), zoo.load(made)
    observations = np.random.default_rng(0).uniform(-1, 1, (50, *first.observation_space.shape)).astype(np.float32)
    for decided in (other.predict(observations)[0], stock.predict(observations, deterministic=True)[0]):
        assert (decided == first.predict(observations)[0]).all()


def test_models_of_other_worlds_are_refused_before_their_networks_are_read(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "read_parameters", lambda *given: pytest.fail("opened"))
    path = trained / "model.zip"
    with pytest.raises(ConfigError, match="is an agent of task 'congestion_window'; suite v1/host_buffers is of"):
        controllers.resolve_controller(str(path), get_suite("v1/host_buffers"))
    with pytest.raises(CheckpointError, match="was trained on task 'congestion_window', not on 'host_buffers'"):
        evaluate.evaluate(config.load("evaluate", [f"model={path}", "env=host_buffers"]))

    def older(meta):
        meta["env"]["schema"]["telemetry"]["version"] = 77

    other = with_meta(path, tmp_path / "other.zip", older)
    own = get_suite("gate")
    with pytest.raises(CheckpointError, match=r"cannot play the family 'ppcc' of suite gate: .*77"):
        controllers.require_fit(controllers.resolve_controller(str(other), own), own.load().cells[:1], own)
    for use in ("load", "submit"):
        with pytest.raises(CheckpointError, match="77"):
            OPENS[use](other)


def test_optimiser_states_of_other_shapes_are_refused(trained, tmp_path):
    def shrink(name, data):
        if name != checkpoint.OPTIMIZER:
            return data
        state = th.load(io.BytesIO(data), weights_only=True)
        state["state"][0]["exp_avg"] = th.zeros(1)
        file = io.BytesIO()
        th.save(state, file)
        return file.getvalue()

    path = rewritten(trained / "model.zip", tmp_path / "x.zip", shrink)
    with pytest.raises(CheckpointError, match="exp_avg"):
        train([f"resume={path}", "total_timesteps=256"])


def bomb(source, target, name, size):
    """A copy whose member `name` is zeros that take hardly any room in the file."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            if member != name:
                new.writestr(member, old.read(member))
        with new.open(info, "w", force_zip64=True) as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
    return target


@pytest.mark.slow
@pytest.mark.parametrize(
    ("member", "size", "match"),
    [("netbuf_gym.json", 1 << 25, "larger"), ("policy.pth", 1 << 24, "compressed"), ("more", (1 << 30) + (1 << 20), "larger")],
)
def test_archives_that_unpack_to_more_than_they_are(trained, tmp_path, member, size, match):
    path = bomb(trained / "model.zip", tmp_path / "x.zip", member, size)
    assert path.stat().st_size < 4 << 20
    refused(path, match)


def test_parameters_inside_parameters_are_not_compressed(trained, tmp_path):
    def deflate(name, data):
        if name != checkpoint.PARAMETERS:
            return data
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for member in old.namelist():
                new.writestr(member, old.read(member))
        return file.getvalue().ljust(len(data), b"\0")

    saved = rewritten(trained / "model.zip", tmp_path / "x.zip", deflate)
    with pytest.raises(CheckpointError, match=r"do not fit|compressed|zip"):
        train([f"resume={saved}", "total_timesteps=256"])


def test_too_many_members_and_two_of_a_name(trained, tmp_path):
    path = rewritten(trained / "model.zip", tmp_path / "x.zip", lambda name, data: data)
    with zipfile.ZipFile(path, "a") as file:
        for index in range(archive.MAX_MEMBERS):
            file.writestr(str(index), "")
    refused(path, "members")
    path = rewritten(trained / "model.zip", tmp_path / "y.zip", lambda name, data: data)
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(checkpoint.META, "{}")
    refused(path, "same name")


def test_json_that_is_nested_too_deeply(trained, tmp_path):
    deep = "[" * 200_000
    path = rewritten(trained / "model.zip", tmp_path / "x.zip", lambda name, data: deep if name == checkpoint.META else data)
    refused(path, "damaged")


@pytest.mark.parametrize(
    "entry", [["<f4", [1 << 50]], ["<f4", [-1]], ["|O", [1]], ["<f4", [3]], ["<f4", ["x"]], ["x", [1]], [["f", 9], [1]]]
)
def test_arrays_are_of_the_size_that_they_say(tmp_path, entry):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        archive.write_arrays(file, "a", {"one": np.zeros(2, np.float32)})
    table = json.dumps({"one": entry})
    path = rewritten(tmp_path / "x.zip", tmp_path / "y.zip", lambda name, data: table if name == "a/arrays.json" else data)
    with zipfile.ZipFile(path) as file, pytest.raises((ValueError, TypeError)):
        archive.read_arrays(file, "a")


def test_a_memory_is_read_beside_its_checkpoint_only():
    for name in ("../memory-1.zip", "/etc/memory-1.zip", "memory-1.zip\n", "memory-.zip", "a/memory-1.zip"):
        assert checkpoint.MEMORY.fullmatch(name) is None
