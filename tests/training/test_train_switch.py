"""Every learner trains on a switch's thresholds: continuous alphas or a grid of them, our recipe or the thesis'."""

import numpy as np
import pytest
import stable_baselines3

from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.train import train

WORLDS = ["env=queue_threshold", "algo.num_envs=4", "scenario.kwargs.duration_s=2", "stagger_steps=0"]
QUIET = ["progress=false", "tensorboard=false"]
LEARNERS = {
    "ppo": ["algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16"],
    "ppo_kl": ["algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16"],
    "a2c": ["algo.kwargs.n_steps=8"],
    "ppo_lstm": ["algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "algo.policy_kwargs.lstm_hidden_size=8"],
    "dqn": [
        "env.kwargs.actions=grid",
        "algo.kwargs.buffer_size=500",
        "algo.kwargs.learning_starts=20",
        "algo.kwargs.batch_size=16",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("algo", LEARNERS)
def test_every_learner_trains(algo, tmp_path):
    run = tmp_path / "run"
    result = train([*WORLDS, *QUIET, f"algo={algo}", *LEARNERS[algo], "total_timesteps=96", f"run_dir={run}"])
    assert result.timesteps >= 96
    saved = checkpoint.read_model(run)
    assert saved.env["id"] == "netbuf/QueueThreshold-v0" and saved.config.scenario.name == "rlbm/random"


@pytest.mark.parametrize("recipe", ["thesis-text", "thesis-code"])
def test_the_thesis_recipes_train(recipe, tmp_path):
    run = tmp_path / "run"
    own = [f"env.kwargs.recipe={recipe}", f"scenario=rlbm/{recipe}", "scenario.kwargs.duration_s=2"]
    train([*WORLDS, *QUIET, *LEARNERS["ppo"], *own, "total_timesteps=96", f"run_dir={run}"])
    saved = checkpoint.read_model(run)
    assert saved.env["schema"]["recipe"] == recipe and saved.env["schema"]["betas"] == [1.0, 0.5]


def test_the_default_experiment(tmp_path):
    run = tmp_path / "run"
    own = ["experiment=queue_threshold", *WORLDS[1:], *LEARNERS["ppo"]]
    brief = ["twins=1", "imitate.steps=4", "imitate.epochs=1", "snapshots=0"]
    train([*own, *brief, *QUIET, "total_timesteps=96", f"run_dir={run}"])
    saved = checkpoint.read_model(run)
    assert saved.env["kwargs"]["reward"]["name"] == "switch_utility" and saved.env["kwargs"]["history"] == 1
    assert saved.config.scenario.kwargs.incast_probability == 0.25 and saved.config.imitate.rule.startswith("brief_pulse:")
    model = stable_baselines3.PPO.load(run / "model.zip", device="cpu")
    action, _ = model.predict(np.zeros(model.observation_space.shape, np.float32), deterministic=True)
    assert action.shape == () and 0 <= action < 64
