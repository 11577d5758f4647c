"""Every learner trains on every task, by the task's defaults and in the worlds of its default agent."""

import itertools
from pathlib import Path

import gymnasium as gym
import pytest

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.training.config import load as load_config
from netbuf_gym.training.ranges import DISCRETE_ONLY
from netbuf_gym.training.train import train
from netbuf_gym.zoo import load
from tests.helpers.release_cases import for_release, sample

CONF = Path(__file__).parents[2] / "conf"
TASKS = ("congestion_window", "queue_threshold", "receiver_window", "host_buffers")
ROLLOUT = ["algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16"]
SMALL = {
    "dqn": ["algo.kwargs.buffer_size=500", "algo.kwargs.learning_starts=20", "algo.kwargs.batch_size=16"],
    "a2c": ["algo.kwargs.n_steps=8"],
    "ppo": ROLLOUT,
    "ppo_lstm": [*ROLLOUT, "algo.policy_kwargs.lstm_hidden_size=8"],
}
BASES = {"sender": ("sender_base",), "sender_robust": ("sender_base", "sender")}
FEW = [(task, algo) for i, task in enumerate(TASKS) for j, algo in enumerate(SMALL) if (i + j) % 4 in (0, 1)]
"""Each task with two learners, and each learner with two tasks."""
QUIET = ["algo.num_envs=16", "stagger_steps=0", "total_timesteps=64", "progress=false", "tensorboard=false"]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), [*FEW, *for_release(*sorted({*itertools.product(TASKS, SMALL)} - {*FEW}))])
def test_every_learner_trains_on_every_task(task, algo, tmp_path):
    run = tmp_path / "run"
    train([f"env={task}", f"algo={algo}", *SMALL[algo], *QUIET, "scenario.kwargs.duration_s=5", f"run_dir={run}"])
    agent = load(run)
    observation, _ = agent.make_env().reset(seed=0)
    action, _ = agent.predict(observation)
    assert agent.action_space.contains(action) and agent.config["algo"]["name"] == algo
    if algo in DISCRETE_ONLY:
        assert isinstance(agent.action_space, gym.spaces.Discrete)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), sample(itertools.product(TASKS, ("dqn", "a2c")), 4))
def test_every_learner_trains_in_the_worlds_of_the_default_agents(task, algo, tmp_path):
    own = [f"experiment=worlds/{task}", f"algo={algo}", *SMALL[algo], *QUIET, "scenario.kwargs.duration_s=5"]
    assert train([*own, f"run_dir={tmp_path / 'run'}"]).timesteps >= 64


@pytest.mark.slow
@pytest.mark.parametrize("experiment", sample([path.stem for path in sorted((CONF / "experiment").glob("*.yaml"))], 5))
def test_every_experiment_trains(experiment, tmp_path, monkeypatch):
    """Of those that go on from another's model, as the other's run folder has it, both."""
    monkeypatch.chdir(tmp_path)
    for name in (*BASES.get(experiment, ()), experiment):
        config = load_config("train", [f"experiment={name}", "seed=3"])
        small = [*SMALL[config.algo.name.removesuffix("_kl")], *QUIET, "scenario.kwargs.duration_s=3", "snapshots=0", "twins=1"]
        small += ["imitate.steps=4", "imitate.epochs=1"] if config.imitate.rule else []
        run = f"runs/campaign/{config.env.name}/{name}/seed3"
        assert train([f"experiment={name}", "seed=3", *small, f"run_dir={run}"]).timesteps >= 64
    assert load(run).config["start_from"] == config.start_from


@pytest.mark.parametrize(
    ("task", "recipe", "count"),
    [("queue_threshold", "default", 64), ("queue_threshold", "thesis-text", 64), ("host_buffers", "auter", 27)],
)
def test_tasks_say_how_actions_become_discrete(task, recipe, count):
    rules = tasks.get(task).rules
    env = gym.make(tasks.get(task).ids[0], recipe=recipe, **rules.discrete[recipe])
    assert env.action_space == gym.spaces.Discrete(count)
    env.close()


def test_actions_that_are_asked_for_stand(tmp_path):
    with pytest.raises(ConfigError, match="chooses one of a number of actions"):
        train(["env=queue_threshold", "algo=dqn", "env.kwargs.actions=limits", *QUIET, f"run_dir={tmp_path / 'run'}"])
