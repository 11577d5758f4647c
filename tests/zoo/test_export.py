"""Agents for use elsewhere: folders as hubs have them, and networks that decide as the models do."""

import shutil

import gymnasium as gym
import numpy as np
import pytest
import yaml

from netbuf_gym import zoo
from netbuf_gym.cli.program import main
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.zoo import export, library


def front(folder):
    _, text, _ = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(text)


def test_a_hubs_folder_says_what_the_model_is_and_what_was_measured(tmp_path, capsys):
    agent = "queue_threshold/ppo"
    assert main(["export", agent, str(tmp_path / "hub")]) == 0
    names = sorted(path.name for path in (tmp_path / "hub").iterdir())
    assert names == ["README.md", "config.yaml", "metrics.json", "model.zip", "versions.json"]
    assert "README.md" in capsys.readouterr().out
    meta, own = front(tmp_path / "hub"), library.read_metrics(library.FOLDER / agent)
    (result,) = meta["model-index"][0]["results"]
    assert meta["library_name"] == "stable-baselines3" and "netbuf/QueueThreshold-v0" in meta["tags"]
    assert result["task"]["type"] == "reinforcement-learning" and result["dataset"]["name"] == "netbuf/QueueThreshold-v0"
    values = own["scenarios"]["rlbm/random"]["agent"]["slowdown_p99_p0"]
    assert result["metrics"][0]["value"] == pytest.approx(np.mean(values), abs=1e-6) and not result["metrics"][0]["verified"]
    moved = zoo.load(tmp_path / "hub" / "model.zip")
    observation, _ = moved.make_env().reset(seed=1)
    assert (moved.predict(observation)[0] == zoo.load(agent).predict(observation)[0]).all()
    assert main(["export", agent, str(tmp_path / "hub")]) == 2
    assert "holds something already; valid: a new folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["queue_threshold/ppo", "host_buffers/dqn", "receiver_window/ppo_lstm"])
def test_networks_decide_as_their_models(agent, tmp_path):
    onnx = pytest.importorskip("onnx")
    network = export.export_onnx(zoo.load(agent), checked=60)
    made = onnx.load_from_string(network)
    onnx.checker.check_model(made)
    names = [one.name for one in made.graph.input]
    assert names == ["observation", *(["hidden", "cell", "starts"] if "lstm" in agent else [])]


@pytest.mark.slow
def test_a_network_that_decides_otherwise_is_refused(monkeypatch, tmp_path):
    pytest.importorskip("onnx")
    likeliest = export.GreedyPolicy._likeliest
    monkeypatch.setattr(export.GreedyPolicy, "_likeliest", lambda self, latent: -likeliest(self, latent))
    with pytest.raises(ConfigError, match=r"queue_threshold/ppo: its network as ONNX decides otherwise in [\d,]+ of"):
        export.export_folder("queue_threshold/ppo", tmp_path / "x", onnx=True)
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"output = '.*file' is no folder and cannot become one"):
        export.export_folder("queue_threshold/dqn", tmp_path / "file" / "hub")


@pytest.mark.parametrize("write", [export.export_folder, export.export_rl_zoo3])
def test_a_refused_export_leaves_nothing(write, trained, tmp_path, monkeypatch):
    def refused(saved, path):
        path.write_bytes(b"half")
        raise CheckpointError("it does not fit")

    with monkeypatch.context() as patched:
        patched.setattr(export.packing, "pack_model", refused)
        with pytest.raises(CheckpointError):
            write(str(trained), tmp_path / "hub")
    assert not list(tmp_path.iterdir())
    (tmp_path / "hub").mkdir()  # an empty folder will do
    write(str(trained), tmp_path / "hub")
    assert [path.name for path in tmp_path.iterdir()] == ["hub"] and any((tmp_path / "hub").iterdir())


def test_a_run_that_nobody_measured_has_no_results(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    export.export_folder(str(tmp_path / "run"), tmp_path / "hub")
    assert front(tmp_path / "hub")["model-index"][0] == {"name": "run", "results": []}


@pytest.mark.parametrize(
    ("agent", "algo"),
    [("congestion_window/ppo_kl-ppcc", "ppo"), ("host_buffers/dqn", "dqn"), ("receiver_window/ppo_lstm", "ppo_lstm")],
)
def test_rl_zoo3_finds_an_agent_where_it_looks(agent, algo, tmp_path, capsys):
    sb3_contrib = pytest.importorskip("sb3_contrib")
    import stable_baselines3

    assert main(["export", agent, str(tmp_path / "logs"), "--rl-zoo3"]) == 0
    own = zoo.load(agent)
    name = own.env_id.replace("/", "-")
    at = tmp_path / "logs" / algo / f"{name}_1"
    assert f"rl_zoo3.enjoy --algo {algo} --env {own.env_id}" in capsys.readouterr().out
    told = yaml.safe_load((at / name / "args.yml").read_text())
    assert yaml.safe_load((at / name / "config.yml").read_text())["policy"] == own.config["algo"]["policy"]
    classes = {"ppo": stable_baselines3.PPO, "dqn": stable_baselines3.DQN, "ppo_lstm": sb3_contrib.RecurrentPPO}
    stock = classes[algo].load(at / f"{name}.zip")
    env = gym.make(told["env"], **told["env_kwargs"])
    observation, _ = env.reset(seed=1)
    for _ in range(3):
        decided = stock.predict(observation, deterministic=True)[0]
        assert (decided == own.predict(observation)[0]).all()
        observation, *_ = env.step(decided)
