"""Agents by name: loaded, evaluated and reproduced with from any folder; paths go first; unknown names are refused by name."""

import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from omegaconf import OmegaConf

import netbuf_gym as nb
from netbuf_gym.cli import program
from netbuf_gym.errors import CheckpointError, ConfigError, MissingExtraError
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.train import train
from netbuf_gym.zoo import library
from studies.rlbm.rlbm_experiment import RLBM
from tests.helpers.release_cases import sample

NAMES = nb.zoo.names()
WITH_MEMORY = [name for name in NAMES if library.read_metrics(library.FOLDER / name)["algo"] == "ppo_lstm"]
WITHOUT_MEMORY = [name for name in NAMES if name not in WITH_MEMORY]


def test_the_agents_of_the_package_have_names():
    assert "congestion_window/ppo" in NAMES and "queue_threshold/ppo" in NAMES
    assert all((library.FOLDER / name / "card.md").is_file() for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_of_the_package_says_nothing_of_the_machine_that_it_was_trained_on(name):
    folder = library.FOLDER / name
    with zipfile.ZipFile(folder / "model.zip") as archive:
        members = {member: archive.read(member).decode() for member in ("netbuf_gym.json", "data")}
    texts = members | {file: (folder / file).read_text() for file in ("config.yaml", "metrics.json", "card.md")}
    for where, text in texts.items():
        assert not re.search(r"(^|[\s\"'=])/\w", text), where  # an absolute path
    config = nb.zoo.load(name).config
    assert config["run_dir"] is config["resume"] is None
    assert OmegaConf.load(folder / "config.yaml").run_dir is None


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(NAMES, 6))
def test_an_agent_decides_in_the_environment_that_it_makes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = nb.zoo.load(name)
    assert name in repr(agent) and agent.env_id in repr(agent) and "\n" not in repr(agent)
    assert agent.card.startswith("# ") and agent.metrics["env"] == agent.env_id and agent.config["algo"]["name"]
    env = agent.make_env()
    assert env.observation_space == agent.observation_space and env.action_space == agent.action_space
    assert env.spec.kwargs["scenario"] == agent.env_kwargs["scenario"]
    observation, _ = env.reset(seed=3)
    action, state = agent.predict(observation)
    assert action.shape == agent.action_space.shape and (state is None) == (name in WITHOUT_MEMORY)
    env.step(action)
    worlds = agent.make_vec(5)
    observations, _ = worlds.reset(seed=3)
    actions, _ = agent.predict(observations)
    assert actions.shape == (5, *agent.action_space.shape)
    np.testing.assert_allclose(actions[2], agent.predict(observations[2])[0], rtol=1e-5, atol=1e-6)
    worlds.step(actions)
    again = nb.zoo.load(agent.path.parent)
    assert (again.predict(observations)[0] == actions).all()


@pytest.mark.slow
def test_threads_that_share_an_agent_get_their_own_decisions():
    agent = nb.zoo.load("queue_threshold/ppo")
    observations = np.random.default_rng(1).uniform(-1, 1, (8, 3, *agent.observation_space.shape)).astype(np.float32)
    alone = [agent.predict(one)[0] for one in observations]
    rules = agent.make_env().unwrapped.engine.task
    policies = [agent.controller.start(rules, [0]) for _ in observations]

    def play(index):
        wrong = 0
        for _ in range(200):
            wrong += not np.array_equal(agent.predict(observations[index])[0], alone[index])
            wrong += not np.array_equal(policies[index](observations[index], None, np.ones(3, bool))[0], alone[index])
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(play, range(8))) == 0


def test_overrides_stand_in_the_place_of_what_it_was_trained_with():
    agent = nb.zoo.load("congestion_window/ppo")
    env = agent.make_env(scenario={"name": "ppcc/2", "duration_s": 3}, render_mode="ansi")
    assert env.reset(seed=0)[1]["scenario"] == "ppcc/2" and env.render_mode == "ansi"
    assert agent.make_vec(2, scenario="ppcc/1").reset(seed=0)[0].shape == (2, *agent.observation_space.shape)
    with pytest.raises(CheckpointError, match="recipe = 'default', this environment has 'ppcc'"):
        agent.make_env(recipe="ppcc")
    with pytest.raises(ConfigError, match="interval_s"):
        agent.make_env(interval_s=-1)
    with pytest.raises(ConfigError, match="n = 0"):
        agent.make_vec(0)


def test_agents_of_the_zoo_play_under_their_names_and_others_under_their_learners():
    agent = nb.zoo.load("congestion_window/ppo")
    assert agent.controller.name == "congestion_window/ppo"
    scenario = {"name": "ppcc/4", "duration_s": 1}
    players = [agent, nb.zoo.load("congestion_window/a2c"), nb.zoo.load(agent.path)]
    reports = nb.baselines.evaluate(players, task="congestion_window", scenario=scenario, seeds=[1_000_000])
    assert list(reports) == ["congestion_window/ppo", "congestion_window/a2c", "ppo"]


def test_a_loaded_agent_plays_as_evaluate_plays_it():
    agent = nb.zoo.load("congestion_window/ppo")
    scenario, seed = {"name": "ppcc/4", "duration_s": 5}, 1_000_000
    (report,) = nb.rollout.evaluate(agent.controller, task="congestion_window", scenario=scenario, seeds=[seed])
    env = agent.make_env(scenario=scenario)
    observation, _ = env.reset(seed=seed)
    ended = False
    while not ended:
        observation, _, terminated, truncated, info = env.step(agent.predict(observation)[0])
        ended = terminated or truncated
    assert info["utility"] == pytest.approx(report["utility"])


def test_agents_with_memory_keep_their_state(tiny):
    overrides, run_dir = tiny
    small = ["algo=ppo_lstm", "algo.policy_kwargs.lstm_hidden_size=8"]
    train([*small, *overrides])
    agent = nb.zoo.load(run_dir)
    worlds = agent.make_vec(3)
    observations, _ = worlds.reset(seed=1)
    first, state = agent.predict(observations)
    assert first.shape == (3,) and state is not None
    _, kept = agent.predict(observations, state=state, episode_start=np.zeros(3, bool))
    _, fresh = agent.predict(observations, state=state, episode_start=np.ones(3, bool))
    assert not np.allclose(kept[0], fresh[0]) and np.allclose(fresh[0], state[0])
    action, state = agent.predict(observations[0])
    action, _ = agent.predict(observations[0], state=state, episode_start=False)
    assert action.shape == ()
    three = "state = .* is not that of 3 observations; valid: what the last call returned"
    for wrong in (state, 5, state[0], kept[:1]):  # the state of one, which would be taken for three moments of it
        with pytest.raises(ConfigError, match=three):
            agent.predict(observations, state=wrong)
    with pytest.raises(ConfigError, match="is not that of 1 observations"):
        agent.predict(observations[0], state=kept)
    none, _ = agent.predict(observations[:0])
    assert none.shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(WITHOUT_MEMORY, 5))
def test_agents_without_memory_return_no_state_and_no_observations_have_no_actions(name):
    agent = nb.zoo.load(name)
    observations, _ = agent.make_vec(2).reset(seed=1)
    assert agent.predict(observations, state=5)[1] is None
    none, _ = agent.predict(observations[:0])
    assert none.shape == (0, *agent.action_space.shape) and none.dtype == agent.predict(observations)[0].dtype
    with pytest.raises(ConfigError, match=r"episode_start has shape \(3,\); valid: \(2,\)"):
        agent.predict(observations, episode_start=np.zeros(3, bool))


def test_bad_observations_are_refused():
    agent = nb.zoo.load("congestion_window/ppo")
    unmeasured = np.full(agent.observation_space.shape, np.nan)
    for observation, message in ((np.zeros(3), "shape"), (np.zeros((2, 2)), "shape"), ("up", "no array"), (unmeasured, "NaN")):
        with pytest.raises(ConfigError, match=message):
            agent.predict(observation)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("congestion_window/pop", "did you mean 'congestion_window/ppo'"),
        ("ppo", "did you mean 'congestion_window/ppo' or 'host_buffers/ppo' or 'queue_threshold/ppo'"),
        ("/nowhere/model.zip", "no such file.*valid: a path, or one of congestion_window/.*, congestion_window/ppo, "),
        ("", "valid"),
        (7, "valid"),
    ],
)
def test_unknown_names_are_refused_with_the_names_that_there_are(name, message):
    with pytest.raises(CheckpointError, match=message):
        nb.zoo.load(name)


def test_a_file_or_run_directory_goes_before_a_name(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "congestion_window" / "ppo").mkdir(parents=True)  # no model in it: the name stands
    assert library.find_agent_path("congestion_window/ppo") == library.FOLDER / "congestion_window/ppo/model.zip"
    (tmp_path / "congestion_window" / "ppo" / "model.zip").write_bytes((trained / "model.zip").read_bytes())
    assert nb.zoo.load("congestion_window/ppo").config["total_timesteps"] == 128
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="holds neither"):
        nb.zoo.load("empty")


def test_evaluates_by_name_from_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    short = ["scenario=ppcc/4", "scenario.kwargs.duration_s=2", "seeds=2", "baselines=[cubic]", "plots=false", "run_dir=out"]
    assert program.main(["evaluate", "model=congestion_window/ppo", *short]) == 0
    assert "| congestion_window/ppo |" in capsys.readouterr().out
    assert program.main(["evaluate", "model=congestion_window/pp", *short]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "did you mean 'congestion_window/ppo'?" in error


def test_reproduces_with_an_agent_by_name(tmp_path, monkeypatch):
    order = RLBM.parse(["agent=queue_threshold/ppo", "schemes=[rlbm]"])
    assert checkpoint.read_model(order.settings.agent).path.samefile(library.FOLDER / "queue_threshold/ppo/model.zip")
    assert order.settings.digest() == RLBM.parse(["schemes=[rlbm]"]).settings.digest()
    with pytest.raises(CheckpointError, match=r"queue_threshold/sac.: no such file.*queue_threshold/ppo"):
        RLBM.parse(["agent=queue_threshold/sac"])


def test_names_need_no_learner_and_loading_says_what_is_missing():
    code = (
        "import sys, builtins\n"
        "load = builtins.__import__\n"
        "def without(name, *rest):\n"
        "    if name.partition('.')[0] in ('torch', 'stable_baselines3', 'omegaconf', 'hydra'):\n"
        "        raise ModuleNotFoundError(name, name=name)\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = without\n"
        "import netbuf_gym\n"
        "print(*netbuf_gym.zoo.names())\n"
        "try: netbuf_gym.zoo.load('congestion_window/ppo')\n"
        "except netbuf_gym.errors.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[0].split() == NAMES and "netbuf-gym[train]" in done.stdout, done.stderr
    assert issubclass(MissingExtraError, ImportError)


def test_an_environment_that_is_none_of_ours_is_not_made(trained, monkeypatch):
    saved = checkpoint.read_model(trained)
    saved.env["id"] = "os:Nothing-v0"
    monkeypatch.setattr(checkpoint, "read_model", lambda path: saved)
    monkeypatch.setattr(gym, "make", lambda *_, **__: pytest.fail("made"))
    with pytest.raises((CheckpointError, ConfigError)):
        nb.zoo.load(trained)
