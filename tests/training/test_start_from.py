"""Trainings that begin with the networks of another one: the stages of a curriculum."""

from contextlib import closing

import pytest
import stable_baselines3
import torch as th

from netbuf_gym.errors import CheckpointError
from netbuf_gym.training.checkpoints import checkpoint, packing
from netbuf_gym.training.config import load
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.train import build_learner, train


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


def optimiser_of(overrides):
    """Of a learner that is about to begin: what its optimiser remembers."""
    config = load("train", overrides)
    with closing(make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))) as worlds:
        model, _ = build_learner(config, worlds)
        return model.policy.optimizer.state_dict()


def test_the_optimiser_goes_on_where_it_is_in_the_file_and_begins_anew_where_it_is_not(tiny, trained, tmp_path):
    overrides, _ = tiny
    its = stable_baselines3.PPO.load(trained / "model.zip", device="cpu").policy.optimizer.state_dict()["state"]
    for more in ([], ["algo=ppo_kl"]):
        found = optimiser_of([*overrides, *more, f"start_from={trained}", "algo.learning_rate=0.125"])
        assert found["state"].keys() == its.keys() and found["param_groups"][0]["lr"] == 0.125
        for number, values in its.items():
            assert all(th.equal(found["state"][number][name], value) for name, value in values.items())
    packing.pack_model(checkpoint.read_model(trained), tmp_path / "packed.zip")
    assert not optimiser_of([*overrides, f"start_from={tmp_path / 'packed.zip'}"])["state"]
    others = [one for one in overrides if "batch_size" not in one]
    train([*others, "algo=a2c", "algo.kwargs.n_steps=8", f"start_from={trained}"])  # RMSprop, which keeps other numbers
    further = [*overrides[:-1], f"run_dir={tmp_path / 'further'}"]
    assert train([*further, f"start_from={trained}"]).timesteps == 128
    after = stable_baselines3.PPO.load(tmp_path / "further" / "model.zip", device="cpu").policy.optimizer.state_dict()
    assert after["state"][0]["step"] == 2 * its[0]["step"] > 0


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
