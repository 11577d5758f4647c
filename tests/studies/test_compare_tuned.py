"""What tuned settings are worth beside defaults: who plays, in what worlds, what is written and what is refused."""

import json

import numpy as np
import pytest

from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.training import campaign, selection
from netbuf_gym.training.checkpoints import checkpoint
from studies.zoo import compare_tuned

OWN = ("run_dir", "total_timesteps")


@pytest.fixture
def tuned(tiny, tmp_path):
    """A campaign's folder of runs with other settings than the defaults, and what both have in common."""
    shared = [one for one in tiny[0] if not one.startswith(OWN)]
    runs = tmp_path / "tuned"
    settings = ["algo.learning_rate=0.01", "algo.num_envs=2", "total_timesteps=64"]
    assert campaign.train_models(campaign.parse_plan([*shared, *settings, "seeds=2", f"runs={runs}"])) is not None
    return runs, [*shared, "total_timesteps=128", "seeds=3", f"runs={tmp_path / 'defaults'}"]


@pytest.mark.slow
def test_both_play_the_same_held_worlds(tuned, tmp_path, capsys):
    runs, shared = tuned
    out = tmp_path / "benchmarks" / "results" / "tuned" / "congestion_window" / "ppo.json"
    assert compare_tuned.main([*shared, f"tuned={runs}", f"out={out}", "held_seeds=2"]) == 0
    found = json.loads(out.read_text())
    assert found["settings"] == {
        "algo.learning_rate": {"tuned": 0.01, "default": 0.003},
        "algo.num_envs": {"tuned": 2, "default": 4},
    }
    assert str(tmp_path) not in out.read_text()
    assert found["tuned"]["seeds"] == [0, 1] and found["tuned"]["timesteps"] == 64
    assert found["defaults"]["seeds"] == [0, 1, 2] and found["defaults"]["timesteps"] == 128
    assert found["held_seeds"] == [1_000_000, 1_000_001] and found["score"] == "utility"
    model = runs / "seed1" / "model.zip"
    scenario = selection.resolve_validation_scenario(checkpoint.read_model(model).config)
    (score,) = selection.score_models([model], "congestion_window", scenario, range(1_000_000, 1_000_002))
    assert found["tuned"]["scores"][1] == pytest.approx(score, rel=1e-5)

    text = compare_tuned.format_table([out])
    ours, theirs = (np.mean(found[name]["scores"]) for name in ("tuned", "defaults"))
    row = f"| congestion_window | ppo | utility | {ours:.3f} (2 x 0.00 M) | {theirs:.3f} (3 x 0.00 M) |"
    assert row in text and "Welch" in text
    out.write_text(json.dumps({**found, "settings": {}}))
    assert f"| {compare_tuned.NO_CHANGE} | {theirs:.3f} (3 x 0.00 M) |  |" in compare_tuned.format_table([out])


def test_gains_point_towards_the_better():
    low, high = np.array([1.0, 1.01, 0.99]), np.array([2.0, 2.01, 1.99])
    assert compare_tuned._format_gain(high, low, False, False).startswith("**+1.000 [")
    assert compare_tuned._format_gain(low, high, False, False).startswith("**-1.000 [")
    assert compare_tuned._format_gain(low, high, True, True).startswith("**+0.693 [")
    assert compare_tuned._format_gain(low, high[:1], False, False) == "-1.000"
    assert compare_tuned._format_gain(low, low, False, True) == "+0.000 [-0.023, +0.023]"


@pytest.mark.slow
def test_what_is_not_alike_is_refused_before_anything_is_trained(tuned, tmp_path, monkeypatch):
    runs, shared = tuned
    monkeypatch.setattr(campaign, "train_models", lambda plan: pytest.fail("trained"))
    own = [*shared, f"tuned={runs}"]
    with pytest.raises(ConfigError, match=r"scenario.kwargs.duration_s = 2, .* with 3; valid: both alike"):
        compare_tuned.main([*own, "scenario.kwargs.duration_s=3", f"out={tmp_path / 'x'}"])
    with pytest.raises(ConfigError, match=r"snapshots = 0, .* with 2; valid: both alike"):
        compare_tuned.main([*own, "snapshots=2", f"out={tmp_path / 'x'}"])
    with pytest.raises(ConfigError, match="is a folder; valid: a file"):
        compare_tuned.main([*own, f"out={tmp_path}"])
    (runs / "seed1" / "checkpoint.zip").touch()
    with pytest.raises(ConfigError, match="seed1: its training was interrupted"):
        compare_tuned.main([*own, f"out={tmp_path / 'x'}"])
    (runs / "seed1" / "checkpoint.zip").unlink()
    (runs / "seed0" / "model.zip").write_bytes(b"PK")
    with pytest.raises(CheckpointError):
        compare_tuned.main([*own, f"out={tmp_path / 'x'}"])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["out=x", "tuned=nowhere"], "tuned = 'nowhere' holds no run"),
        (["out=x"], "tuned = '' holds no run"),
        (["tuned=x"], "out is missing"),
        (["out=x", "tuned=x", "held_seeds=0"], "held_seeds = '0' is out of range; valid: 1 to 1000"),
        (["out=x", "tuned=x", "algo=sarsa"], "sarsa"),
    ],
)
def test_what_cannot_be_compared_is_said(argv, said):
    with pytest.raises(ConfigError, match=said):
        compare_tuned.main(argv)


def test_a_file_of_another_kind_is_named(tmp_path):
    two = {"scores": [], "timesteps": 1}
    empty = {"task": "host_buffers", "algo": "ppo", "score": "utility", "settings": {"a": 1}, "tuned": two, "defaults": two}
    for content in ({}, [], empty):
        (tmp_path / "x.json").write_text(json.dumps(content))
        with pytest.raises(ConfigError, match=r"x.json: is not what"):
            compare_tuned.format_table([tmp_path / "x.json"])
