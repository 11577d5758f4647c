"""An agent from a dataset alone."""

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.training.algorithms import cloning
from netbuf_gym.zoo import datasets, library


@pytest.fixture(autouse=True)
def minari():
    pytest.importorskip("minari")


@pytest.mark.slow
def test_a_rule_is_cloned_from_its_episodes(tmp_path, capsys):
    to = {"scenario": "rlbm/default", "seeds": range(1, 6)}
    name = datasets.record_dataset("queue_threshold", "brief_pulse", tmp_path / "data", **to)
    words = [f"folder={tmp_path / 'data'}", f"run_dir={tmp_path / 'run'}", "epochs=150", "torch_threads=1"]
    assert cloning.main([name, *words]) == 0
    said = dict(word.split() for word in capsys.readouterr().out.splitlines()[0].split(": ")[1].split(", "))
    assert float(said["decisions"]) == 4 * 600 and float(said["agreement"]) > 0.95
    agent = library.find_agent_path(str(tmp_path / "run"))
    assert (
        agent.exists()
        and main(
            [
                "evaluate",
                f"model={tmp_path / 'run'}",
                "seeds=1",
                "plots=false",
                "baselines=[naive]",
                "scenario=rlbm/default",
                f"run_dir={tmp_path / 'out'}",
            ]
        )
        == 0
    )


@pytest.mark.slow
def test_a_congestion_control_is_cloned_with_continuous_actions(tmp_path):
    name = datasets.record_dataset("congestion_window", "vegas", tmp_path / "data", scenario="ppcc/3", seeds=[1, 2])
    found = cloning.clone_dataset(name, tmp_path / "data", tmp_path / "run", 100)
    recorded = datasets.load_dataset(name, tmp_path / "data")[1].actions
    assert found["decisions"] == 1000 and found["error"] < 0.5 * float(np.var(recorded))
    assert library.find_agent_path(str(tmp_path / "run")).exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none-v0"], "dataset = 'none-v0' cannot be read"),
        (["none-v0", "epochs=0"], "epochs = 0 is out of range; valid: 1"),
        (["none-v0", "epochs=many"], "epochs = 'many'"),
        (["epochs=3"], r"dataset is missing before 'epochs=3'; valid: a dataset's name, then key=value"),
    ],
)
def test_what_cannot_be_cloned_is_said(words, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        cloning.main([*words, f"folder={tmp_path}"])


@pytest.mark.slow
def test_one_episode_and_other_learners_are_refused(tmp_path):
    to = {"scenario": "rlbm/default", "seeds": [1], "name": "one-v0"}
    datasets.record_dataset("queue_threshold", "brief_pulse", tmp_path, **to)
    with pytest.raises(ConfigError, match="has 1 episodes of netbuf/QueueThreshold-v0; valid: two, of ours"):
        cloning.clone_dataset("one-v0", tmp_path, tmp_path / "run")
    datasets.record_dataset("queue_threshold", "brief_pulse", tmp_path, **to | {"seeds": [1, 2], "name": "two-v0"})
    with pytest.raises(ConfigError, match=r"algo.name = 'ppo_lstm' cannot clone"):
        cloning.clone_dataset("two-v0", tmp_path, tmp_path / "run", overrides=["algo=ppo_lstm"])
    assert not (tmp_path / "run").exists()
