"""What `train` is given by mistake: refused by name, in one line, before anything heavy is imported or anything is written."""

import importlib
import inspect
import subprocess
import sys

import pytest
import torch as th

from netbuf_gym.cli import program as cli
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.training import models, ranges
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import load, to_plain
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.train import train
from netbuf_gym.zoo import library

NOT_FROM_CONFIGURATIONS = {  # classes, and what our own learners do without
    "ppo": {"rollout_buffer_class", "rollout_buffer_kwargs", "clip_range_vf", "use_sde", "sde_sample_freq"},
    "a2c": {"rollout_buffer_class", "rollout_buffer_kwargs"},
    "dqn": {"replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage"},
}
NOT_FROM_CONFIGURATIONS["ppo_kl"] = NOT_FROM_CONFIGURATIONS["ppo_lstm"] = NOT_FROM_CONFIGURATIONS["ppo"]
OF_THE_JOB = {"policy", "env", "learning_rate", "policy_kwargs", "seed", "device", "verbose", "tensorboard_log", "self"}
MISTAKES = [
    ("algo.kwargs.target_kl=abc", "algo.kwargs.target_kl = 'abc' is not a number"),
    ("algo.kwargs.gamma=2", "algo.kwargs.gamma = 2.0 is out of range; valid: 0 to 1"),
    ("algo.kwargs.gamma=null", "algo.kwargs.gamma = None"),
    ("algo.kwargs.gamma=true", "algo.kwargs.gamma = True"),
    ("algo.kwargs.n_steps=-3", "algo.kwargs.n_steps = -3"),
    ("algo.kwargs.n_steps=1000000000000", "algo.kwargs.n_steps"),
    ("algo.kwargs.gamma=inf", "algo.kwargs.gamma = inf is out of range"),
    ("algo.kwargs.gamma=.inf", "algo.kwargs.gamma = '.inf' is not a number"),
    ("algo.kwargs.clip_range_vf=0.2", "algo.kwargs.clip_range_vf is not an argument of ppo"),
    ("algo.kwargs.n_steps=1.5", "algo.kwargs.n_steps = 1.5"),
    ("algo.kwargs.batch_size=0", "algo.kwargs.batch_size = 0"),
    ("algo.kwargs.clip_range=-1", "algo.kwargs.clip_range"),
    ("algo.kwargs.normalize_advantage=3", "algo.kwargs.normalize_advantage = 3"),
    ("algo.kwargs.rollout_buffer_class=os.system", "rollout_buffer_class is not an argument of ppo"),
    ("algo.net_arch=[9000]", "algo.net_arch"),
    ("algo.net_arch=[1,1,1,1,1,1,1,1,1]", "at most 8"),
    ("algo.normalize=batch", "algo.normalize = 'batch'"),
    ("algo.normalize_clip=0", "algo.normalize_clip = 0.0 is out of range; valid: 0.1 to 1000"),
    ("+algo.policy_kwargs.features_extractor_class=os.system", "features_extractor_class is not an argument"),
    ("+algo.policy_kwargs.log_std_init=100", "log_std_init = 100"),
    ("+algo.policy_kwargs.optimizer_kwargs=3", "optimizer_kwargs = 3"),
    ("+algo.policy_kwargs.optimizer_kwargs={lr: 3}", "optimizer_kwargs.lr is not an argument"),
    ("env.id=os.path:Name-v0", "'os.path:Name-v0' is not registered by a task"),
    ("env.kwargs.history=1000000", "history"),
    ("reward.kwargs.no_such=2", "has no parameter 'no_such'"),
    ("reward.kwargs.delay_weight=-1", "delay_weight"),
    ("reward.kwargs.name=power", "reward.kwargs.name"),
    ("validation.name=nope", "validation.name = 'nope' gives congestion_window no world: scenario = 'nope' is unknown"),
    ("validation.name=rlbm/default", "gives congestion_window no world: scenario 'rlbm/default' has 0 flows"),
    ("validation.name=trace:/nope", "gives congestion_window no world: scenario = 'trace:/nope': /nope: cannot be read"),
    ("scenario=trace:/nope", "scenario = 'trace:/nope': /nope: cannot be read"),
    ("=1", "'=1' names no key; valid: key=value"),
    ("seed=-1", "seed = -1 is out of range; valid: 0 to 999999"),
    ("seed=1000000", "seed = 1000000 is out of range"),
    ("total_timesteps=0", "total_timesteps = 0 is out of range"),
    ("torch_threads=0", "torch_threads = 0 is out of range; valid: 1 to 1024"),
    ("env.num_envs=0", "env.num_envs = 0 is out of range"),
    ("env.threads=0", "env.threads = 0 is out of range; valid: 1 to 256"),
    ("env.threads=257", "env.threads = 257 is out of range"),
    ("env.treads=2", "did you mean 'env.threads'?"),
    ("max_minutes=0", "max_minutes = 0.0 is out of range; valid: above 0, or null"),
    ("max_minutes=nan", "max_minutes = nan is out of range"),
    ("checkpoint_minutes=0", "checkpoint_minutes = 0.0 is out of range"),
    ("stagger_steps=-1", "stagger_steps = -1 is out of range"),
    ("snapshots=-1", "snapshots = -1 is out of range; valid: 0 to 10000"),
    ("snapshots=10001", "snapshots = 10001 is out of range"),
    ("snapshots=1.5", "snapshots = '1.5'"),
    ("twins=0", "twins = 0 is out of range"),
    ("twins=3", "twins = 3 does not divide env.num_envs = 1024"),
    ("algo.name=sac", "algo.name = 'sac' is unknown; did you mean 'a2c'? valid: ppo"),
    ("algo.policy=NoPolicy", "algo.policy = 'NoPolicy' is unknown"),
    ("algo.activation=step", "algo.activation = 'step' is unknown; valid: tanh"),
    ("algo.net_arch=7", "algo.net_arch = '7'"),
    ("algo.net_arch=[64,0]", "algo.net_arch = [64, 0]; valid: a list of at most 8 widths"),
    ("algo.learning_rate=0", "algo.learning_rate = 0.0 is out of range; valid: above 0"),
    ("algo.learning_rate=nan", "algo.learning_rate = nan is out of range"),
    ("algo.learning_rate_final=-1", "algo.learning_rate_final = -1.0 is out of range"),
    ("algo.restarts=[0.5]", "algo.restarts[0] = 0.5; valid: {at: SHARE, learning_rate: RATE}"),
    ("algo.restarts=[{at: 0.5}]", "algo.restarts[0] = {'at': 0.5}; valid"),
    ("algo.restarts=[{at: 1, learning_rate: 1}]", "algo.restarts[0].at = 1; valid: above 0 and below 1"),
    ("algo.restarts=[{at: 0.5, learning_rate: 1}, {at: 0.5, learning_rate: 1}]", "algo.restarts[1].at = 0.5; valid: above 0.5"),
    ("algo.restarts=[{at: 0.5, learning_rate: 0}]", "algo.restarts[0].learning_rate = 0.0 is out of range; valid: above 0"),
    ("algo.restarts=[{at: x, learning_rate: 1}]", "algo.restarts[0].at = 'x' is not a number"),
    ("env.kwargs.recipe=cake", "recipe = 'cake' is unknown; valid: default"),
    ("env.kwargs.no_such=1", "got an unexpected keyword argument 'no_such'; valid: task"),
    ("scenario.kwargs.loss=2", "loss[0] = 2.0 is out of range"),
    ("scenario.kwargs.rate_mbps=-3", "rate_mbps[0] = -3.0 is out of range"),
    ("reward.name=gold", "reward = 'gold' is unknown; valid: log_utility"),
]


def arguments_of(algorithm):
    """Arguments of the constructor with their defaults, through `**kwargs` of subclasses."""
    found = {}
    for ancestor in algorithm.__mro__:
        parameters = inspect.signature(ancestor.__init__).parameters.values()
        for one in parameters:
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and not one.name.startswith("_"):
                found.setdefault(one.name, one.default)
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return found


@pytest.mark.parametrize("algo", ranges.ARGUMENTS)
def test_the_table_knows_every_argument(algo):
    module, _, name = models.ALGORITHMS[algo].partition(":")
    found = arguments_of(getattr(importlib.import_module(module), name))
    assert set(found) - OF_THE_JOB == set(ranges.ARGUMENTS[algo]) | NOT_FROM_CONFIGURATIONS[algo]
    for key, default in ranges._ROLLOUTS.get(algo, {}).items():
        assert found.get(key) == default
    for key, check in ranges.ARGUMENTS[algo].items():
        check(f"algo.kwargs.{key}", found[key])  # defaults lie within


def test_the_tables_name_the_same_things():
    assert set(ranges.ARGUMENTS) == set(ranges.POLICY_ARGUMENTS) == set(ranges.POLICIES) == set(models.ALGORITHMS)
    assert all(issubclass(getattr(th.nn, name), th.nn.Module) for name in ranges.ACTIVATIONS.values())


@pytest.mark.slow
@pytest.mark.parametrize(("override", "message"), MISTAKES)
def test_mistakes_are_refused_by_name_and_nothing_is_written(override, message, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "run_dir=new/run", override]) == 2
    err = capfd.readouterr().err
    assert message in err and err.count("\n") == 1 and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_mistakes_are_refused_before_torch_is_imported(tmp_path):
    known = [override for override, _ in MISTAKES[::4]]
    mistakes = [*known, "run_dir=", "resume=", "resume=nowhere", "scenario=ppcc/99", "seed=-1"]
    program = f"""
import sys
from netbuf_gym.cli import program as cli
for mistake in {mistakes!r}:
    assert cli.main(["train", mistake]) == 2, mistake
    assert "torch" not in sys.modules, mistake
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, capture_output=True, timeout=120)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("override", ["run_dir=", "run_dir=' '", "resume="])
def test_an_empty_folder_is_not_this_folder(override, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=override.partition("=")[0]):
        train([*tiny[0], override])
    assert list(tmp_path.iterdir()) == []


def test_a_run_dir_that_is_a_file_is_refused(tiny, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in ("file", "file/run"):
        with pytest.raises(ConfigError, match=r"run_dir = .* is no folder and cannot become one"):
            train([*tiny[0], f"run_dir={tmp_path / path}"])


def test_memory_that_the_machine_does_not_have_is_refused():
    config = load("train", ["algo=dqn", "algo.kwargs.buffer_size=100000000", "algo.num_envs=2", "env.kwargs.history=64"])
    env = models.make_env(config.env.id, 2, 1, build_env_kwargs(config))
    with pytest.raises(ConfigError, match=r"algo\.kwargs\.buffer_size.*GiB"):
        models.make_model(config.algo, env, 0)


def test_batch_sizes_are_one_line(tiny, capfd, recwarn):
    train([*tiny[0], "algo.kwargs.batch_size=24", "total_timesteps=32"])
    err = capfd.readouterr().err
    assert err.count("\n") == 1 and "algo.kwargs.batch_size = 24" in err and "algo.kwargs.n_steps = 8" in err
    assert not [one for one in recwarn if "mini-batch" in str(one.message)]


@pytest.mark.parametrize(
    ("env", "name", "parameter"),
    [("congestion_window", "log_utility", "delay_weight"), ("queue_threshold", "switch_utility", "slowdown_weight")],
)
def test_reward_parameters_without_a_name_are_the_recipes(env, name, parameter):
    config = load("train", [f"env={env}", f"reward.kwargs.{parameter}=2.5"])
    kwargs = build_env_kwargs(config)
    assert kwargs["reward"] == {"name": name, parameter: 2.5}
    worlds = make_worlds(config.env.id, 2, 1, kwargs)
    reward = worlds.unwrapped.engine.reward
    assert reward.name == name and getattr(reward, parameter) == 2.5
    worlds.close()
    assert "reward" not in build_env_kwargs(load("train", [f"env={env}"]))


def test_reward_parameters_follow_the_recipe():
    config = load("train", ["env.kwargs.recipe=ppcc", "reward.kwargs.delay_weight=2"])
    assert build_env_kwargs(config)["reward"]["name"] == "utility_sign"


def test_a_folder_without_a_run_is_not_resumed(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds neither model\.zip nor checkpoint\.zip"):
        train([f"resume={tmp_path}"])
    (tmp_path / "config.yaml").write_text("algo: [")
    with pytest.raises(CheckpointError, match=r"config\.yaml: not a run's configuration"):
        train([f"resume={tmp_path}"])


def test_learners_of_values_ask_for_discrete_actions(tmp_path, capsys):
    """Others are refused without the names of classes, and before there is a folder."""
    run_dir = tmp_path / "run"
    job = ["train", "env=queue_threshold", "algo=dqn", "algo.num_envs=2", f"run_dir={run_dir}"]
    assert cli.main([*job, "env.kwargs.actions=limits"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "<class" not in said
    assert "those here are Box(-1.0, 1.0, (2,), float32); valid: ppo," in said
    assert not run_dir.exists()
    few = ["total_timesteps=64", "algo.kwargs.learning_starts=8", "progress=false", "tensorboard=false"]
    assert cli.main([*job, *few]) == 0


def test_a_model_is_read_where_the_worlds_that_chose_it_are_gone():
    saved = checkpoint.read_model(library.FOLDER / "congestion_window" / "ppo").config
    values = to_plain(saved) | {"validation": {"name": "trace:/gone", "kwargs": {}}}
    assert checkpoint._check_config(values).validation.name == "trace:/gone"
