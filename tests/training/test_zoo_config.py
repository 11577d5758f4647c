"""Composition of configurations: every file, every override, every mistake."""

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton
from omegaconf import OmegaConf
from stable_baselines3 import PPO

from netbuf_gym import scenarios, tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.queue_threshold import REWARDS as SWITCH_REWARDS
from netbuf_gym.training import config_reference, models
from netbuf_gym.training.config import Source, build_scenario_spec, load
from netbuf_gym.training.ranges import check_training, resolve_evaluation_seeds
from netbuf_gym.training.schema import CONF, FIRST_EVALUATION_SEED
from netbuf_gym.utils.overrides import quote_text


def choices(group):
    files = sorted(str(path.relative_to(CONF / group).with_suffix("")) for path in (CONF / group).rglob("*.yaml"))
    return [name for name in files if name != "named"]  # which needs a name


@pytest.mark.slow
@pytest.mark.parametrize("group", ["algo", "env", "scenario", "reward", "experiment"])
def test_every_choice_composes_and_builds(group):
    assert choices(group)
    for choice in choices(group):
        name = str(OmegaConf.load(CONF / group / f"{choice}.yaml").get("name"))
        of_switches = name.startswith(("rlbm/", "switch/")) or name in SWITCH_REWARDS
        of_receivers = name.startswith("nuwa/") or name in ("running_utility", "floored_utility")
        of_hosts = name.startswith("auter/") or name in ("auter", "host_utility")
        task = ["env=queue_threshold"] if of_switches else ["env=receiver_window"] if of_receivers else []
        task = ["env=host_buffers"] if of_hosts else task
        config = load("train", [*task, f"{group}={choice}", "env.num_envs=16", "twins=1"])
        check_training(config)
        env = models.make_env(config.env.id, 16, 1, models.build_env_kwargs(config))
        kwargs = {k: v for k, v in {"n_steps": 4, "batch_size": 8, "buffer_size": 100}.items() if k in config.algo.kwargs}
        model = models.make_model(OmegaConf.merge(config.algo, {"kwargs": kwargs}), env, config.seed)
        model.learn(16)
        env.close()


def test_every_scenario_that_has_a_name_is_a_choice():
    assert set(scenarios.names()) <= set(choices("scenario"))


def test_a_task_brings_its_worlds_and_yields_to_others():
    assert load("train", ["env=queue_threshold"]).scenario.name.startswith("rlbm/")
    assert load("train", []).scenario.name.startswith("ppcc/")
    asked = load("train", ["scenario=rlbm/thesis-text", "env=queue_threshold", "env.kwargs.recipe=thesis-text"])
    assert asked.scenario.name == "rlbm/thesis-text" and asked.env.kwargs == {"recipe": "thesis-text"}


def test_overrides_reach_the_job():
    config = load("train", ["algo=dqn", "seed=3", "scenario=ppcc/2", "scenario.kwargs.rate_mbps=20", "env.threads=2"])
    assert (config.algo.name, config.seed, config.env.threads) == ("dqn", 3, 2)
    assert config.env.num_envs == config.algo.num_envs
    assert build_scenario_spec(config.scenario) == {"name": "ppcc/2", "rate_mbps": 20}


def test_a_scenario_without_a_file_goes_by_its_name():
    scenario = load("train", ["scenario=trace:/some/path.trace", "scenario.kwargs.rtt_ms=20"]).scenario
    assert scenario.name == "trace:/some/path.trace" and scenario.kwargs == {"rtt_ms": 20}
    assert load("evaluate", ["model=x", "scenario=pantheon/1"]).scenario.name == "pantheon/1"
    for name in ("trace:a,b c.csv", "trace:it's", "file:x\\", "trace:(1)#é"):
        assert load("train", [f"scenario={quote_text(name)}"]).scenario.name == name
    assert load("train", ["scenario=trace:(1)#é"]).scenario.name == "trace:(1)#é"
    for mark in "=, ":
        assert load("train", [rf"scenario=trace:a\{mark}b.csv"]).scenario.name == f"trace:a{mark}b.csv"


@pytest.mark.parametrize(("final", "low"), [("0", (0.0, 0.0, 0.0)), ("0.5", (0.5, 0.5, 0.5)), ("null", (2.0, 4.0, 1.0))])
def test_the_learning_rate_begins_again_at_each_restart(final, low):
    """From its own value each time, and falls to the final one by the next."""
    config = load("train", [f"algo.learning_rate_final={final}", "algo.learning_rate=2", "algo.num_envs=2"])
    config.algo.restarts = [{"at": 0.25, "learning_rate": 4}, {"at": 0.75, "learning_rate": 1}]
    config.algo.kwargs.batch_size = 64
    env = models.make_env(config.env.id, 2, 1, models.build_env_kwargs(config))
    rate = models.make_model(config.algo, env, 0).lr_schedule
    env.close()
    assert [rate(1 - share) for share in (0.0, 0.25, 0.75)] == [2, 4, 1]
    halves = [rate(1 - share) for share in (0.125, 0.5, 0.875)]
    assert halves == pytest.approx([(high + end) / 2 for high, end in zip((2, 4, 1), low, strict=True)])
    assert [rate(1 - share) for share in (0.25 - 1e-12, 0.75 - 1e-12, 1.0)] == pytest.approx(low, abs=1e-9)


def test_evaluation_seeds_are_never_training_seeds():
    first = FIRST_EVALUATION_SEED
    assert resolve_evaluation_seeds(3) == [first, first + 1, first + 2]
    assert resolve_evaluation_seeds([first + 7, first]) == [first + 7, first]
    for wrong in (0, -1, True, 1.5, "x", [], [3], [first, first], [first + 0.5], [True]):
        with pytest.raises(ConfigError, match="seeds"):
            resolve_evaluation_seeds(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [path.stem for path in sorted((CONF / "experiment").glob("*.yaml"))])
def test_minibatches_of_every_experiment_divide_its_rollouts(experiment):
    """stable-baselines3 warns otherwise."""
    config = load("train", [f"experiment={experiment}"])
    if "n_steps" not in config.algo.kwargs:  # learns from a memory, in minibatches of any size
        assert config.algo.kwargs.buffer_size >= config.algo.kwargs.batch_size
        return
    rollout = config.algo.kwargs.n_steps * config.env.num_envs
    assert rollout % config.algo.kwargs.batch_size == 0 and rollout >= config.algo.kwargs.batch_size


@pytest.mark.parametrize("recipe", ["text", "code"])
def test_the_thesis_learner_is_ppo_by_its_defaults(recipe):
    config = load("train", [f"experiment=rlbm_{recipe}"])
    defaults = {name: one.default for name, one in inspect.signature(PPO).parameters.items()}
    assert config.algo.learning_rate == defaults["learning_rate"] and config.algo.learning_rate_final is None
    for name, value in config.algo.kwargs.items():
        if name not in ("n_steps", "ent_coef_final"):
            assert value == defaults[name], name
    assert config.algo.kwargs.n_steps * config.env.num_envs == defaults["n_steps"]


def test_what_is_taken_away_is_not_there():
    config = load("train", ["~algo.kwargs.gamma", "~experiment"])
    assert "gamma" not in config.algo.kwargs and config.algo.kwargs.n_steps == 32


@pytest.mark.slow
def test_every_reward_is_a_choice():
    named = {load("train", [f"reward={choice}"]).reward.name for choice in config_reference.read_choices("reward")}
    assert named >= {name for record in tasks.records() for name in record.rewards}
    assert all(
        config_reference.read_choices(group)[choice]
        for group in ("algo", "reward", "env")
        for choice in config_reference.read_choices(group)
    )


def test_configurations_are_loaded_by_threads_within_another_programs_hydra(tmp_path):
    (tmp_path / "other.yaml").write_text("a: 1\n")
    with initialize_config_dir(str(tmp_path), version_base=None):
        own = GlobalHydra.instance().hydra
        with ThreadPoolExecutor(4) as threads:
            assert [config.seed for config in threads.map(lambda seed: load("train", [f"seed={seed}"]), range(8))] == [
                *range(8)
            ]
        with pytest.raises(ConfigError, match="'sed'"):
            load("train", ["sed=1"])
        assert GlobalHydra.instance().hydra is own and compose("other") == {"a": 1}
    assert not GlobalHydra.instance().is_initialized()


def test_folders_of_the_users_are_read_after_a_launcher_replaced_hydras_instances(tmp_path):
    """As launchers do that run jobs in the process of the sweep (joblib's with one job)."""
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "own.yaml").write_text("# @package _global_\nseed: 17\n")
    Singleton.set_state(Singleton.get_state())
    assert load("train", ["tuned=own"], Source(str(tmp_path))).seed == 17
