"""Trainings that begin with the networks of another one: the stages of a curriculum."""

import pytest
import stable_baselines3
import torch as th

from netbuf_gym.errors import CheckpointError
from netbuf_gym.zoo.train import train


def policy(run_dir):
    return stable_baselines3.PPO.load(run_dir / "model.zip", device="cpu").policy.state_dict()


def test_a_training_begins_with_another_ones_networks(tiny, trained):
    overrides, run_dir = tiny
    overrides = [one for one in overrides if not one.startswith("scenario")]
    stage = ["scenario=paths/training", "scenario.kwargs.shares.rivals=0.5"]
    result = train([*overrides, *stage, f"start_from={trained}", "algo.learning_rate=1e-12"])
    assert result.timesteps == 128  # counted anew
    before, after = policy(trained), policy(run_dir)
    assert before.keys() == after.keys()
    assert all(th.allclose(before[name], after[name], atol=1e-6) for name in before)


def test_networks_that_do_not_fit_are_refused_before_anything_is_written(tiny, trained):
    overrides, run_dir = tiny
    for more, message in (
        (["algo.net_arch=[8]"], "start_from = .*: its networks are not of this shape"),
        (["env.kwargs.recipe=ppcc"], "recipe"),
        (["env.kwargs.history=2"], "history"),
    ):
        with pytest.raises(CheckpointError, match=message):
            train([*overrides, f"start_from={trained}", *more])
    with pytest.raises(CheckpointError, match="start_from = 'nobody': no such file"):
        train([*overrides, "start_from=nobody"])
    assert not run_dir.exists()
