"""Snapshots along a training, and the campaign that keeps the best of them on validation worlds."""

import dataclasses
import json
import types
import zipfile

import numpy as np
import pytest

from netbuf_gym.tasks import get
from netbuf_gym.training import campaign, selection
from netbuf_gym.training.checkpoints import archive as archives
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.criteria import Criterion
from netbuf_gym.training.schema import FIRST_VALIDATION_SEED
from netbuf_gym.training.train import train


def taken(run_dir):
    return [int(path.stem) for path in sorted((run_dir / selection.SNAPSHOTS).glob("*.zip"))]


def test_snapshots_come_evenly_and_change_nothing(tiny, tmp_path):
    overrides, run_dir = tiny
    train([*overrides, "snapshots=3"])
    assert taken(run_dir) == [32, 64, 96]
    assert not checkpoint.read_model(run_dir / selection.format_snapshot_path(64)).progress["finished"]
    plain = tmp_path / "plain"
    train([*overrides[:-1], f"run_dir={plain}"])
    assert not (plain / selection.SNAPSHOTS).exists()
    ours, theirs = (weights(run) for run in (run_dir, plain))
    assert np.array_equal(ours, theirs)


def weights(run_dir):
    """Of a run's last model, as one array."""
    with zipfile.ZipFile(run_dir / "model.zip") as archive:
        parameters = archives.read_parameters(archive, checkpoint.PARAMETERS)
    return np.concatenate([value.numpy().ravel() for value in parameters.values()])


def test_a_run_from_the_beginning_forgets_the_snapshots_of_another(tiny):
    overrides, run_dir = tiny
    (run_dir / selection.SNAPSHOTS).mkdir(parents=True)
    for name in (selection.format_snapshot_path(5), selection.BEST, selection.SCORES):
        (run_dir / name).write_text("of another run")
    train([*overrides, "snapshots=1"])
    assert taken(run_dir) == [64] and not (run_dir / selection.BEST).exists() and not (run_dir / selection.SCORES).exists()


@pytest.mark.slow
def test_a_campaign_keeps_the_best_snapshot(tiny, tmp_path, monkeypatch):
    overrides = [override for override in tiny[0] if not override.startswith("run_dir")]
    out, runs = tmp_path / "agent", tmp_path / "runs"
    own = ["seeds=2", "first_seed=4", "evaluation_seeds=1", "scenarios=ppcc/1", f"out={out}", f"runs={runs}"]
    command = [*own, "suites=false", "validation_seeds=2", *overrides, "snapshots=3"]
    asked = []

    def scores(models, *worlds):
        """The second snapshot of each seed is the best by far."""
        asked.append(worlds[:3])
        return [
            dataclasses.replace(one, score=1.0) if path.stem.endswith("64") else one
            for path, one in zip(models, play(models, *worlds), strict=True)
        ]

    play = selection.judge_models
    monkeypatch.setattr(selection, "judge_models", scores)
    where = {"name": "ppcc/4", "duration_s": 2}
    seeds = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + 2)
    assert campaign.main(command) == 0 and asked == [("congestion_window", where, seeds)] * 2
    assert campaign.main(command) == 0 and len(asked) == 2  # what was validated is not played again
    for seed in (4, 5):
        said = json.loads((runs / f"seed{seed}" / selection.SCORES).read_text())
        assert said["kept"] == str(selection.format_snapshot_path(64)) and said["timesteps"] == 64
        assert len(said["scores"]) == 4 and max(said["scores"]) == said["scores"][1] == 1 and said["scenario"] == where
        assert selection.read_validation_score(runs / f"seed{seed}") == 1
        assert said["seeds"] == [FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + 1]
        assert (
            selection.find_kept_model(runs / f"seed{seed}").read_bytes()
            == (runs / f"seed{seed}" / selection.format_snapshot_path(64)).read_bytes()
        )
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["validation"]["timesteps"] == [64, 64] and metrics["training_timesteps"] == [128, 128]
    assert checkpoint.read_model(out / "model.zip").progress["timesteps"] == 64
    assert metrics["validation"]["scores"] == [1, 1] and metrics["kept_seed"] == 4
    assert "2 validation worlds of `ppcc/4(duration_s=2)`: after 64, 64 steps." in (out / "card.md").read_text()
    assert "the best in validation worlds" in (out / "card.md").read_text()
    other = ["validation_seeds=1", "validation.name=ppcc/1", "validation.kwargs.duration_s=3"]
    assert campaign.main([*command, *other]) == 0  # other worlds: chosen again
    assert json.loads((runs / "seed4" / selection.SCORES).read_text())["scenario"] == {"name": "ppcc/1", "duration_s": 3}
    with pytest.raises(ValueError, match="kwargs are given without validation"):
        campaign.main([*command, "validation.kwargs.duration_s=3"])


def test_the_worst_family_counts_by_its_weight():
    """Means 2 and 0 of two families, 4/3 over all; NaN is no score."""
    measures, families = get("congestion_window").measures.get_score(), ["a", "b", "a", "a"]
    values = np.array([1.0, 0.0, 3.0, np.nan])
    assert selection.compute_score(values, families, measures) == pytest.approx(4 / 3)
    assert selection.compute_score(values, families, measures, 1.0) == pytest.approx(2 / 3)
    assert selection.compute_score(values, families, measures, 3.0) == pytest.approx(1 / 3)
    lower = dataclasses.replace(measures, lower_is_better=True)
    assert selection.compute_score(values, families, lower, 1.0) == pytest.approx(5 / 3)
    ratios = dataclasses.replace(lower, geometric=True)
    powers = 10.0**values
    assert selection.compute_score(powers, families, ratios, 1.0) == pytest.approx(10 ** (5 / 3))
    assert np.isnan(selection.compute_score(np.array([np.nan]), ["a"], measures, 1.0))


@pytest.mark.slow
def test_a_model_is_chosen_by_its_worst_family(tiny, monkeypatch):
    """The second snapshot is better in the mean, the first nowhere bad; the choice is made anew where the weight is another."""
    overrides, run_dir = tiny
    train([*overrides, "snapshots=2"])
    names = sorted(path.stem for path in (run_dir / selection.SNAPSHOTS).glob("*.zip"))
    scores = dict(zip([*names, "model"], [(-1.0, -1.0, -1.0), (-0.1, -0.1, -2.0), (-3.0, -3.0, -3.0)], strict=True))

    def run(player, worlds, *, name, **kwargs):
        return types.SimpleNamespace(metrics={"utility": np.array(scores[name])})

    world = types.SimpleNamespace
    drawn = [world(scenario=world(name=name)) for name in ("paths/fixed", "paths/fixed", "paths/jitter")]
    monkeypatch.setattr(selection, "draw_worlds", lambda *args: drawn)
    monkeypatch.setattr(selection.comparison, "run", run)
    for weight, kept in ((0.0, names[1]), (1.0, names[0])):
        criterion = Criterion(get("congestion_window").measures.get_score(), weight)
        selection.choose_model(run_dir, "congestion_window", "paths/training", 3, criterion)
        assert json.loads((run_dir / selection.SCORES).read_text())["kept"].endswith(f"{kept}.zip")


def test_a_weight_below_0_is_refused():
    with pytest.raises(ValueError, match=r"validation.worst_weight = -1.0 is out of range; valid: 0 to 1000"):
        campaign.main(["validation.worst_weight=-1"])


def test_seeds_of_training_lie_below_those_of_validation():
    with pytest.raises(ValueError, match="first_seed = 899998 is out of range; valid: 0 to 899997"):
        campaign.main(["seeds=3", "first_seed=899998"])
    with pytest.raises(ValueError, match="validation_seeds = '0'"):
        campaign.main(["validation_seeds=0"])
