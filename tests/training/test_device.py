"""Devices that learners learn on: named, there or refused, used throughout, and of no matter to who reads the model.

No GPU is needed but for the last test: tensors on torch's device `meta` have no numbers, and its kernels refuse those
of another.
"""

from collections import deque

import numpy as np
import pytest
import torch as th

from netbuf_gym import zoo
from netbuf_gym.errors import ConfigError
from netbuf_gym.training import models
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import load
from netbuf_gym.training.ranges import check_training
from netbuf_gym.training.train import train
from tests.helpers.tiny_jobs import TINY

PLAIN = "+algo.policy_kwargs.optimizer_kwargs={eps: 1e-5}"
"""An optimiser that is not fused: `meta` has none of those."""
META = th.device("meta")


@pytest.fixture
def gpus(monkeypatch):
    """Lets torch see so many GPUs."""

    def there(number):
        monkeypatch.setattr(th.cuda, "is_available", lambda: number > 0)
        monkeypatch.setattr(th.cuda, "device_count", lambda: number)

    return there


@pytest.mark.parametrize(
    ("number", "name", "found"),
    [(0, "cpu", "cpu"), (0, "auto", "cpu"), (1, "auto", "cuda"), (1, "cuda", "cuda"), (2, "cuda:1", "cuda:1")],
)
def test_a_device_that_is_there(gpus, number, name, found):
    gpus(number)
    assert models.resolve_device(name) == th.device(found)


@pytest.mark.parametrize(
    ("number", "name", "said"),
    [
        (0, "cuda", r"device = 'cuda' is not there, torch .* sees no GPU; valid: cpu, auto"),
        (0, "cuda:0", r"sees no GPU; valid: cpu, auto"),
        (1, "cuda:1", r"device = 'cuda:1' is not there, .* sees 1 GPU; valid: cpu, cuda, cuda:0, auto"),
        (2, "cuda:2", r"sees 2 GPUs; valid: cpu, cuda, cuda:0, cuda:1, auto"),
    ],
)
def test_one_that_is_not_there_is_refused_before_anything_is_written(gpus, tmp_path, number, name, said):
    gpus(number)
    with pytest.raises(ConfigError, match=said):
        train([*TINY, f"run_dir={tmp_path / 'run'}", f"device={name}"])
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda:01", "cpu:0", "CUDA", "", "meta"])
def test_what_names_no_device_is_refused(name):
    config = load("train", [])
    assert config.device == "cpu"
    config.device = name
    with pytest.raises(ConfigError, match=r"device = .* is none; valid: cpu, cuda, cuda:N, auto"):
        check_training(config)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("algo=ppo",),
        ("algo=ppo", "env.kwargs.actions=continuous"),
        ("algo=ppo_kl",),
        ("algo=ppo_lstm",),
        ("algo=ppo_lstm", "++algo.policy_kwargs.shared_lstm=true", "++algo.policy_kwargs.enable_critic_lstm=false"),
        ("algo=ppo_lstm", "++algo.policy_kwargs.enable_critic_lstm=false"),
    ],
)
def test_all_that_a_learner_works_with_is_on_its_device(monkeypatch, words):
    monkeypatch.setattr(models, "resolve_device", th.device)
    config = load("train", [*TINY, *words, PLAIN])
    env = models.make_env(config.env.id, 4, 1, models.build_env_kwargs(config))
    model = models.make_model(config.algo, env, 1, device="meta")
    head, step = model._head, env.step_batch

    def chance(actions):  # what would be read back from a GPU
        assert actions.device == META
        if hasattr(head, "low"):
            th.clamp(actions, head.low, head.high)
        return np.stack([env.action_space.sample() for _ in range(4)])

    def truncating(actions):
        batch = step(actions)
        last = np.asarray(batch.observations)[1:2]
        return batch._replace(truncated_worlds=np.array([1]), truncated_observations=last)

    def ordered(number, device=None):
        assert device == META
        return th.arange(number, device=device)

    def some(tensor):
        assert tensor.device == META
        return 1

    monkeypatch.setattr(head, "for_env", chance)
    monkeypatch.setattr(env, "step_batch", truncating)
    monkeypatch.setattr(th, "randperm", ordered)
    monkeypatch.setattr(th, "count_nonzero", some)
    model.ep_info_buffer, model._current_progress_remaining = deque(maxlen=9), 1.0
    model._last_obs, model._last_episode_starts = env.reset(), np.ones(4, bool)
    callback = type("Callback", (), {"__getattr__": lambda self, name: lambda *_: True})()
    assert model.collect_rollouts(env, callback, None, 8)
    sums = th.zeros(5, device=META)
    for minibatch in model._iterate_minibatches(model._gather_samples(model._rollout)):
        loss, _ = model._compute_loss(minibatch, 0.01, sums)
        th.autograd.backward(loss)
        assert loss.device == META
    env.close()


def test_a_model_of_a_gpu_is_read_where_there_is_none(gpus, tmp_path, monkeypatch):
    """Its configuration names one, and its parameters' file says that they were on one."""
    with monkeypatch.context() as patch:
        patch.setattr(th.serialization, "location_tag", lambda storage: "cuda:0")
        patch.setattr(models, "resolve_device", lambda name: th.device("cpu"))
        train([*TINY, f"run_dir={tmp_path / 'run'}", "device=cuda"])
    model = tmp_path / "run" / "model.zip"
    gpus(0)
    assert checkpoint.read_model(model).config.device == "cuda"
    agent = zoo.load(model)
    env = agent.make_env()
    observation, _ = env.reset(seed=1)
    action, _ = agent.predict(observation)
    assert env.action_space.contains(action)
    with pytest.raises(ConfigError, match="device = 'cuda' is not there"):
        train([f"resume={tmp_path / 'run'}", "total_timesteps=256"])
    assert train([f"resume={tmp_path / 'run'}", "total_timesteps=256", "device=cpu"]).timesteps == 256


@pytest.mark.skipif(not th.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("algo", ["ppo", "ppo_kl", "a2c", "dqn", "ppo_lstm"])
def test_every_learner_learns_on_a_gpu(algo, tmp_path):
    few = [word for word in TINY if not word.startswith("algo.kwargs") or algo.startswith("ppo")]
    few += ["++algo.kwargs.learning_starts=16", "++algo.kwargs.buffer_size=200"] if algo == "dqn" else []
    train([*few, f"algo={algo}", f"run_dir={tmp_path / 'run'}", "device=cuda"])
    train([f"resume={tmp_path / 'run'}", "total_timesteps=256"])
    agent = zoo.load(tmp_path / "run" / "model.zip")
    observation, _ = agent.make_env().reset(seed=1)
    assert agent.make_env().action_space.contains(agent.predict(observation)[0])
