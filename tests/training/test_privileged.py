"""A critic that is told, in training, what no agent observes."""

import numpy as np
import pytest
import sb3_contrib
import torch as th
from stable_baselines3.common.logger import Logger

from netbuf_gym.errors import ConfigError
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training import models
from netbuf_gym.training.algorithms.privileged import PrivilegedCritic
from netbuf_gym.training.config import load
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.train import train

WORLDS = ["scenario=ppcc/4", "scenario.kwargs.duration_s=3", "scenario.kwargs.senders=[agent,cubic]", "stagger_steps=0"]
SMALL = [*WORLDS, "algo.num_envs=8", "algo.kwargs.n_steps=16", "algo.kwargs.batch_size=64", "algo.kwargs.n_epochs=1"]
TOLD = "algo.kwargs.privileged_critic=true"


def learner(algo, *overrides):
    config = load("train", [f"algo={algo}", *SMALL, *overrides])
    worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    return models.make_model(config.algo, VectorEnvAdapter(worlds), 3)


def collected(model):
    _, callback = model._setup_learn(10_000, None, True, "", False)
    assert model.collect_rollouts(model.get_env(), callback, model.rollout_buffer, model.n_steps)
    return model._rollout


@pytest.mark.parametrize("algo", ["ppo", "ppo_lstm"])
def test_values_are_corrected_and_decisions_as_without(algo):
    told, plain = learner(algo, TOLD), learner(algo)
    ours, theirs = collected(told), collected(plain)
    critic = told.get_told_critic()
    assert plain.get_told_critic() is None
    assert critic.told.shape == (16, 8, len(told.get_env().env.unwrapped.engine.task.privileged))
    assert critic.told.min() >= 0 and critic.told.max() <= 1 and critic.told.std(dim=0).max() > 0.1
    assert th.equal(ours.observations[0], theirs.observations[0])
    assert list(told.policy.state_dict()) == list(plain.policy.state_dict())
    assert th.equal(ours.values, critic.uncorrected)  # nothing was learned yet
    told.set_logger(Logger(None, []))
    told.train()
    ours = collected(told)
    with th.no_grad():
        more = critic.correct(ours.observations, critic.told)
    assert th.allclose(ours.values, critic.uncorrected + more, atol=1e-6) and more.abs().max() > 1e-3


def test_it_learns_what_observations_do_not_say():
    model = learner("ppo", TOLD)
    critic, generator = model.get_told_critic(), th.Generator().manual_seed(1)
    critic.told = th.rand(64, *critic.told.shape[1:], generator=generator)
    observations, goals = th.zeros(64, 8, 108), critic.told[..., 3] - critic.told[..., 8]
    critic.uncorrected = th.ones(64, 8)
    critic.fit(observations, 1 + goals, 100, 64)
    with th.no_grad():
        left = (critic.correct(observations, critic.told) - goals).square().mean()
    assert left < 0.02 * goals.var()


def test_its_state_is_read_again_and_no_others():
    model, other = learner("ppo", TOLD), learner("ppo", TOLD)
    rollout = collected(model)
    model.get_told_critic().fit(rollout.observations, rollout.returns, 1, 64)
    arrays = model.get_told_critic().to_arrays()
    other.get_told_critic().load_arrays(arrays)
    again = other.get_told_critic().to_arrays()
    assert arrays.keys() == again.keys() and all(np.array_equal(arrays[name], again[name]) for name in arrays)
    narrow = PrivilegedCritic(model.get_env(), 5, th.device("cpu"))
    with pytest.raises(ValueError, match="privileged0 has shape"):
        narrow.load_arrays(arrays)


@pytest.mark.slow
def test_other_programs_read_the_models_as_ever(tmp_path):
    own = ["total_timesteps=256", "progress=false", "tensorboard=false", f"run_dir={tmp_path / 'run'}"]
    made = train(["algo=ppo_lstm", *SMALL, TOLD, "algo.policy_kwargs.lstm_hidden_size=8", *own])
    model = sb3_contrib.RecurrentPPO.load(made.model_path, device="cpu")
    assert model.predict(np.zeros((1, 108), np.float32))[0].shape == (1,)


def test_tasks_that_tell_critics_nothing_refuse_it(tmp_path):
    with pytest.raises(ConfigError, match=r"privileged_critic = True, but task 'queue_threshold' tells critics nothing"):
        train(["env=queue_threshold", "algo=ppo", TOLD, f"run_dir={tmp_path / 'run'}"])
    with pytest.raises(ConfigError, match=r"algo.kwargs.privileged_critic = 'much'"):
        train(["algo=ppo", "algo.kwargs.privileged_critic=much", f"run_dir={tmp_path / 'run'}"])
