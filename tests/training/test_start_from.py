"""Trainings that begin with the networks of another one: the stages of a curriculum."""

from contextlib import closing

import numpy as np
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


def learner_of(overrides):
    """Return a learner that is about to begin."""
    config = load("train", overrides)
    with closing(make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))) as worlds:
        return build_learner(config, worlds)[0]


def decide(model, observations):
    """Return the probabilities of actions after some decisions, `(rows, actions)`; each with `observations`."""
    state, starts = None, np.ones(len(observations), bool)
    for _ in range(3):
        _, state = model.predict(observations, state, starts, deterministic=True)
        starts[:] = False
    given = [th.as_tensor(observations)]
    if state is not None:
        given += [tuple(map(th.as_tensor, state)), th.as_tensor(starts, dtype=th.float32)]
    with th.no_grad():
        found = model.policy.get_distribution(*given)
    return (found if state is None else found[0]).distribution.probs.numpy()


LSTM = ["algo=ppo_lstm", "algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16"]


@pytest.mark.parametrize("more", [[], LSTM])
def test_an_agent_of_fewer_features_decides_in_the_wider_recipe_as_before(tiny, tmp_path, more):
    overrides = [*tiny[0], *more]
    train([*overrides, f"run_dir={tmp_path / 'narrow'}"])
    begun = [f"start_from={tmp_path / 'narrow'}"]
    narrow, wide = learner_of([*overrides, *begun]), learner_of([*overrides, *begun, "env.kwargs.recipe=robust"])
    rng = np.random.default_rng(0)
    first, further = (rng.uniform(-1, 1, (50, 4, count)).astype(np.float32) for count in (27, 20))
    wider = np.concatenate([first, further], axis=2).reshape(50, -1)
    assert decide(narrow, first.reshape(50, -1)) == pytest.approx(decide(wide, wider), abs=1e-6)
    old, new = narrow.policy.optimizer.state_dict()["state"], wide.policy.optimizer.state_dict()["state"]
    assert old.keys() == new.keys()
    for number, values in old.items():  # the optimiser's moments are carried over, those of the further weights are 0
        assert float(values["exp_avg"].sum()) == pytest.approx(float(new[number]["exp_avg"].sum()), rel=1e-4, abs=1e-6)
    wide.learn(64)  # two updates; the rate of the last one is 0
    assert any(value.unflatten(1, (4, 47))[..., 27:].any() for value in wide.policy.parameters() if value.shape[-1] == 188)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([], ["env.kwargs.history=2"], "history"),
        ([], ["env.kwargs.drain=false"], "drain"),
        (["env.kwargs.recipe=bare"], [], "recipe = 'bare', this environment has 'robust'"),
        (["algo.normalize=running"], ["algo.normalize=running"], "has statistics of the 27 features"),
    ],
)
def test_what_cannot_be_widened_is_refused(tiny, tmp_path, old, new, message):
    overrides, _ = tiny
    train([*overrides, *old, f"run_dir={tmp_path / 'narrow'}"])
    with pytest.raises(CheckpointError, match=message):
        learner_of([*overrides, f"start_from={tmp_path / 'narrow'}", "env.kwargs.recipe=robust", *new])


def optimiser_of(overrides):
    """Of a learner that is about to begin: what its optimiser remembers."""
    return learner_of(overrides).policy.optimizer.state_dict()


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
