"""Trainings that begin by imitating a rule."""

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch as th

from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training import models
from netbuf_gym.training.algorithms import imitation, teachers
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import load
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.train import train
from netbuf_gym.zoo import library

SMALL = ["experiment=queue_threshold", "scenario=rlbm/random", "scenario.kwargs.load=0.9", "algo.num_envs=16"]
QUICK = ["total_timesteps=1024", "algo.kwargs.n_steps=32", "algo.kwargs.batch_size=256", "progress=false", "tensorboard=false"]


def learner(*overrides):
    config = load("train", [*SMALL, *overrides])
    worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    return models.make_model(config.algo, VectorEnvAdapter(worlds), 3)


@pytest.mark.slow
def test_the_learner_decides_as_the_rule_does():
    model = learner()
    before = imitation.imitate_teacher(model, "brief_pulse", steps=100, rounds=1, epochs=1)
    found = imitation.imitate_teacher(model, "brief_pulse", steps=100, rounds=2, epochs=60)
    assert found["agreement"] > max(0.9, before["agreement"])
    observations = np.asarray(models.get_worlds(model).reset())
    assert set(np.unique(model.policy.predict(observations, deterministic=True)[0])) <= set(range(64))


@pytest.mark.slow
def test_a_learner_can_be_left_something_to_try():
    sure, open_minded = learner(), learner()
    imitation.imitate_teacher(sure, "brief_pulse", steps=100, rounds=1, epochs=40)
    imitation.imitate_teacher(open_minded, "brief_pulse", steps=100, rounds=1, epochs=40, spread=0.2)
    observations = th.as_tensor(np.asarray(models.get_worlds(sure).reset()))
    least = [
        float(model._compute_policy_output(observations).detach().exp().min(dim=1).values.mean())
        for model in (sure, open_minded)
    ]
    assert least[0] < least[1] and 0.0005 < least[1] < 0.01  # of 0.2 / 64


def test_actions_of_a_box_are_imitated_too():
    model = learner("env.kwargs.actions=limits")
    untrained = imitation.imitate_teacher(model, "limits", steps=2, rounds=1, epochs=1)["error"]
    assert imitation.imitate_teacher(model, "limits", steps=40, rounds=1, epochs=15)["error"] < 0.2 * untrained


def sender(*overrides, history=1, width=16):
    """A small learner with a memory, in worlds of two senders."""
    own = ["experiment=sender_small", "scenario.kwargs.duration_s=4.0", "scenario.kwargs.fast_share=0.0", "stagger_steps=0"]
    own += ["env.kwargs.senders=2", f"env.kwargs.history={history}", "algo.num_envs=16", "algo.net_arch=[16]"]
    own += [f"algo.policy_kwargs.lstm_hidden_size={width}"]
    return [*own, "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=64", "algo.kwargs.n_epochs=1", *overrides]


@pytest.mark.slow
def test_an_agent_with_a_memory_teaches_a_smaller_one_that_sees_less():
    """The package's sender, of four intervals and 64 units of memory."""
    config = load("train", sender())
    worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    model = models.make_model(config.algo, VectorEnvAdapter(worlds), 3)
    played = []
    how = {"agent": "congestion_window/sender", "report": lambda done, text: played.append(text)}
    before = imitation.imitate_teacher(model, None, 40, 1, 1, **how)["agreement"]
    after = imitation.imitate_teacher(model, None, 40, 4, 40, **how)["agreement"]
    assert after > max(0.5, 2 * before)
    assert "round 1 of 4: the agent plays" in played and "round 4 of 4: the learner plays" in played
    seen, keep = np.asarray(models.get_worlds(model).reset()), np.ones(16, bool)
    assert seen.shape == (16, 27) and model.policy.predict(seen, None, keep)[0].shape == (16,)


@pytest.mark.slow
def test_a_rule_teaches_learners_with_a_memory():
    config = load("train", sender("imitate.agent=null"))
    worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    model = models.make_model(config.algo, VectorEnvAdapter(worlds), 3)
    before = imitation.imitate_teacher(model, "queue_target", 40, 1, 1)["agreement"]
    assert imitation.imitate_teacher(model, "queue_target", 40, 3, 60)["agreement"] > max(0.4, before)


def test_a_teacher_sees_and_remembers_what_it_would_by_itself():
    """Its decisions, observing one interval at a time, are those that it makes in an environment of its own history."""
    agent = "congestion_window/sender"
    config = load("train", sender(history=4))
    worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    whole = models.make_model(config.algo, VectorEnvAdapter(worlds), 3)
    config = load("train", sender())
    short_worlds = make_worlds(config.env.id, config.env.num_envs, 1, build_env_kwargs(config))
    short = models.make_model(config.algo, VectorEnvAdapter(short_worlds), 3)
    rules = worlds.unwrapped.engine.task
    plain = SavedAgent(checkpoint.read_model(library.find_agent_path(agent))).start(rules, range(16))
    teaching = teachers.make_teacher(short, None, agent).start(16)
    seen, latest = (models.get_worlds(one).env.reset(seed=5)[0] for one in (whole, short))
    starts, state = np.ones(16, bool), None
    for _ in range(60):  # beyond the end of the first episodes
        wanted, state = plain(seen, state, starts)
        told, targets = teaching(latest, starts)
        assert (told == wanted).all() and targets.shape == (16, 12)
        assert targets.exp().sum(dim=1).numpy() == pytest.approx(1, abs=1e-5)
        seen, _, _, ended, _ = worlds.step(wanted)
        latest, _, _, also, _ = short_worlds.step(wanted)
        assert (ended == also).all()
        starts = ended


@pytest.mark.slow
def test_a_large_agent_becomes_a_small_one_from_the_command_line(tmp_path):
    """A model that any program with sb3-contrib reads, of at most 20,000 parameters."""
    overrides = [
        "imitate.steps=20",
        "imitate.rounds=2",
        "imitate.epochs=1",
        "total_timesteps=256",
        f"run_dir={tmp_path / 'run'}",
    ]
    made = train([*sender(*overrides, width=32), "algo.net_arch=[64]", "progress=false", "tensorboard=false"])
    policy = sb3_contrib.RecurrentPPO.load(made.model_path, device="cpu").policy
    assert sum(one.numel() for one in policy.parameters()) < 20_000 and policy.lstm_actor.hidden_size == 32


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["imitate.rule=keep"], "imitate.agent = .* beside imitate.rule = 'keep'; valid: one of them"),
        (["imitate.agent=nobody"], "imitate.agent = 'nobody': no such file, nor an agent of this name"),
        (["env.kwargs.history=5"], "observes 4 intervals, this environment 5; valid: as many or fewer here"),
        (["imitate.agent=queue_threshold/ppo"], "queue_threshold"),
        (["imitate.agent=null", "imitate.rule=cubic"], "imitate.rule = 'cubic' acts in the world"),
    ],
)
def test_bad_teachers_are_refused(tmp_path, overrides, said):
    with pytest.raises((ConfigError, CheckpointError), match=said):
        train([*sender(*overrides), "total_timesteps=64", f"run_dir={tmp_path / 'run'}"])
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_training_that_imitates_is_the_same_twice(tmp_path):
    quick = ["imitate.steps=10", "imitate.epochs=1", *QUICK]
    files = [train([*SMALL, *quick, f"run_dir={tmp_path / name}"]).model_path for name in "ab"]
    policies = [stable_baselines3.PPO.load(one, device="cpu").policy for one in files]
    assert all((a == b).all() for a, b in zip(*(one.state_dict().values() for one in policies), strict=True))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["imitate.rule=nobody"], "controller = 'nobody' is unknown"),
        (["imitate.rule=naive"], "imitate.rule = 'naive' acts in the world"),
        (["imitate.rule=pulse"], "actions = 'pulse_grid'; valid: \"limits\""),
        (["imitate.spread=0.6"], "imitate.spread = 0.6 is out of range; valid: 0 to 0.5"),
        (["imitate.steps=0"], "imitate.steps = 0 is out of range; valid: 1 to"),
    ],
)
def test_bad_arguments_are_refused(tmp_path, overrides, said):
    with pytest.raises(ConfigError, match=said):
        train([*SMALL, *QUICK, *overrides, f"run_dir={tmp_path / 'run'}"])
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_other_learners_do_not_imitate(tmp_path):
    said = r"imitate.rule = .brief_pulse. with DQN; valid: algo=ppo, ppo_kl or ppo_lstm"
    asked = ["env=queue_threshold", "algo=dqn", "algo.num_envs=2", "env.kwargs.actions=pulse_grid", "imitate.rule=brief_pulse"]
    with pytest.raises(ConfigError, match=said):
        train([*asked, "total_timesteps=64", "progress=false", "tensorboard=false", f"run_dir={tmp_path / 'run'}"])


@pytest.mark.slow
def test_a_training_says_what_it_imitates_before_it_does(tmp_path, monkeypatch):
    told, run_dir = [], tmp_path / "run"
    own = imitation.imitate_teacher
    reports = []

    def imitate(*args, report, **kwargs):
        assert (run_dir / "config.yaml").is_file() and "into" in told[0] and "brief_pulse" in told[1]
        return own(*args, report=lambda done, text: reports.append((done, text)), **kwargs)

    monkeypatch.setattr(imitation, "imitate_teacher", imitate)
    overrides = [*SMALL, "imitate.steps=10", "imitate.epochs=2", "imitate.rounds=2", *QUICK, f"run_dir={run_dir}"]
    train(overrides, tell=told.append)
    done = [at for at, _ in reports]
    assert done == sorted(done) and done[0] == 0 and 1.5 < done[-1] < 2 and len(done) > 20
    assert list(dict.fromkeys(text for _, text in reports))[2] == "round 2 of 2: the learner plays"
    assert told[2].startswith("imitated brief_pulse") and ": agreement " in told[2]


@pytest.mark.slow
def test_an_interrupted_imitation_begins_again(tmp_path, monkeypatch):
    told, run_dir = [], tmp_path / "run"

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    overrides = [*SMALL, "imitate.steps=10", "imitate.epochs=1", *QUICK, f"run_dir={run_dir}"]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(imitation, "imitate_teacher", interrupt)
        train(overrides, tell=told.append)
    assert told[-1] == f"interrupted; begin again with: netbuf-gym train resume={run_dir}"
    assert not train([f"resume={run_dir}"]).interrupted
