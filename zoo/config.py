"""Configuration of training and evaluation: YAML files under `conf/`, composed by Hydra, checked against these types.

A job's configuration is `train.yaml` or `evaluate.yaml` with one file of each group (env, algo, scenario, reward), an
optional `experiment`, and the overrides of the command line in Hydra's grammar (`algo.gamma=0.98`). A key that the types
do not have, or a value of another type, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym import tasks
from netbuf_gym.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, shown

CONF = Path(__file__).resolve().parent.parent / "conf"
MAX_TORCH_THREADS = 1024
FIRST_EVALUATION_SEED = 1_000_000
"""Evaluation seeds start here; training seeds lie below, so that no agent is judged on a seed it was trained on."""


@dataclass
class EnvConfig:
    """An environment: its task's name, its id, arguments of `gym.make_vec`, worlds and threads of the native core."""

    name: str = MISSING
    id: str = MISSING
    kwargs: dict[str, Any] = field(default_factory=dict)
    num_envs: int = MISSING
    threads: int = 1


@dataclass
class ScenarioConfig:
    """A scenario, or a distribution over scenarios, by name, with the arguments of `netbuf_gym.scenarios.get`.

    Name null: the task's default.
    """

    name: str | None = MISSING
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class RewardConfig:
    """A reward by name, with its parameters; name null: the one that belongs to the environment's recipe."""

    name: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class AlgoConfig:
    """A learner: one of `netbuf_gym.zoo.models.ALGORITHMS`.

    Attributes:
        num_envs: worlds that it is trained on at once.
        learning_rate, learning_rate_final: from the first to the last step, linearly; final null: constant.
        net_arch: widths of the hidden layers, for the policy and for the value function each.
        activation: tanh, relu, elu or silu.
        policy_kwargs: further arguments of the policy.
        kwargs: further arguments of the algorithm's constructor.
    """

    name: str = MISSING
    num_envs: int = MISSING
    policy: str = "MlpPolicy"
    learning_rate: float = 3e-4
    learning_rate_final: float | None = None
    net_arch: list[int] = field(default_factory=lambda: [64, 64])
    activation: str = "tanh"
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class TrainConfig:
    """A training job.

    Attributes:
        seed: of networks, exploration and worlds, 0 to 999999 (evaluation seeds start at 1000000).
        total_timesteps: environment steps, over all worlds.
        max_minutes: wall-clock limit; null: none. Schedules follow whichever limit is nearer.
        torch_threads: threads of the learner.
        stagger_steps: spread the worlds' first episodes over so many steps (see `VectorEnvAdapter`).
        run_dir: where everything is written; null: runs/<task>/<algo>/<time>-seed<seed>.
        resume: run directory to continue; its configuration stands, except for what the command line changes.
        checkpoint_minutes: time between checkpoints.
        tensorboard, progress: whether to write TensorBoard logs, and show progress.
    """

    env: EnvConfig = field(default_factory=EnvConfig)
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    algo: AlgoConfig = field(default_factory=AlgoConfig)
    seed: int = 0
    total_timesteps: int = MISSING
    max_minutes: float | None = None
    torch_threads: int = 1
    stagger_steps: int = 0
    run_dir: str | None = None
    resume: str | None = None
    checkpoint_minutes: float = 1.0
    tensorboard: bool = True
    progress: bool = True


@dataclass
class EvaluateConfig:
    """An evaluation job.

    Attributes:
        model: file that training wrote (`model.zip` or `checkpoint.zip`), its run directory, or an agent's name
            (`netbuf_gym.zoo.names()`); null: baselines alone.
        task: whose baselines are run without a model (on the command line `env=...` says the same); null: the model's.
        recipe: by which baselines that decide as agents do play without a model; null: the default one, or the model's.
        env_id: id that the model must have been trained for, or that belongs to the task; null: any.
        scenario: one, or a distribution from which each seed draws its own; name null: the task's default.
        seeds: number of seeds, counted from 1000000, or a list of them (each 1000000 or more).
        agents: how many each world has; what acts in their place is then as often there; null: one.
        senders: the same, by the name that tasks may have for it (`Task.agents_argument`).
        plant: that the worlds are of, a name or a mapping of `name` and its arguments; null: the default one, or the model's.
        baselines: to set beside the agent, of the task's contenders; null: those that the task compares agents with.
        run_dir: where table, result.json and plots are written; null: a new folder runs/evaluate/<task>/<time>.
        confidence: of the intervals.
        plots: whether to draw them (needs matplotlib).
        lines: most contenders in pictures over time, the first and the best among them; null: all.
        torch_threads, threads: of the network, and of the simulator.
    """

    model: str | None = None
    task: str | None = None
    recipe: str | None = None
    env_id: str | None = None
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    seeds: Any = 20
    agents: int | None = None
    senders: int | None = None
    plant: Any = None
    baselines: list[str] | None = None
    run_dir: str | None = None
    confidence: float = 0.95
    plots: bool = True
    lines: int | None = 8
    torch_threads: int = 1
    threads: int = 1


_store = ConfigStore.instance()
_store.store(name="train_types", node=TrainConfig)
_store.store(name="evaluate_types", node=EvaluateConfig)


def load(job: str, overrides: Sequence[str]) -> DictConfig:
    """The configuration of a job ("train" or "evaluate") with overrides, resolved and checked.

    A scenario without a file of its own is taken by its name: `scenario=trace:path/to/file`. So is a task: its environment is
    then trained on the task's own default scenario. Keys below `kwargs` may be new: `scenario.kwargs.rate_mbps=20`.

    Raises:
        ConfigError: an unknown key, group choice or value; in one line.
    """
    for override in overrides:
        if "=" not in override:
            raise ConfigError(f"argument {override!r} is not of the form key=value")
    _store_tasks()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            config = compose(job, overrides=[one for override in overrides for one in _normalised(override, job)])
        OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{' '.join(overrides)}: {_one_line(error)}") from None
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise ConfigError(f"missing: {', '.join(f'{key}=...' for key in missing)}")
    return config


def check_training(config: DictConfig) -> None:
    """Raises ConfigError for numbers that no training can be run with."""
    for key, low, high in (
        ("seed", 0, FIRST_EVALUATION_SEED - 1),
        ("total_timesteps", 1, 10**12),
        ("torch_threads", 1, MAX_TORCH_THREADS),
        ("stagger_steps", 0, 10**6),
        ("checkpoint_minutes", 0.01, 1e6),
        ("env.num_envs", 1, 10**6),
        ("env.threads", 1, MAX_THREADS),
    ):
        value = OmegaConf.select(config, key)
        if not low <= value <= high:
            raise ConfigError(f"{key} = {value!r} is out of range; valid: {low} to {high}")
    if config.max_minutes is not None and not 0 < config.max_minutes < 1e6:
        raise ConfigError(f"max_minutes = {config.max_minutes!r} is out of range; valid: above 0, or null")


def evaluation_seeds(seeds: Any) -> list[int]:
    """Seeds from their number or a list of them.

    Raises:
        ConfigError: not a number or a list of whole numbers, too few, repeated, or seeds that training uses.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds < FIRST_EVALUATION_SEED:
        return list(range(FIRST_EVALUATION_SEED, FIRST_EVALUATION_SEED + seeds))
    valid = f"valid: a number of seeds below {FIRST_EVALUATION_SEED}, or a list of seeds from {FIRST_EVALUATION_SEED} on"
    if not OmegaConf.is_list(seeds) and not isinstance(seeds, (list, tuple)):
        raise ConfigError(f"seeds = {shown(seeds)} cannot be used; {valid}")
    chosen = list(seeds)
    if not chosen or len(set(map(str, chosen))) != len(chosen):
        raise ConfigError(f"seeds = {shown(chosen)} is empty or repeats a seed; {valid}")
    for seed in chosen:
        if not isinstance(seed, int) or isinstance(seed, bool) or not FIRST_EVALUATION_SEED <= seed < 2**63:
            raise ConfigError(f"seeds holds {shown(seed)}, which is no evaluation seed; {valid}")
    return chosen


def scenario_spec(scenario: DictConfig | ScenarioConfig, default: str | None = None) -> str | dict[str, Any]:
    """The `scenario` argument of an environment; `default` is the name that null stands for."""
    kwargs, name = plain(scenario.kwargs), scenario.name or default
    return {"name": name, **kwargs} if kwargs else name


def plain(config: Any) -> Any:
    """Dictionaries and lists in place of OmegaConf's."""
    return OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config


def _store_tasks() -> None:
    """Makes `env=NAME` known for tasks without a file in `conf/env`."""
    for record in tasks.records():
        if (CONF / "env" / f"{record.name}.yaml").is_file():
            continue
        env = {
            "name": record.name,
            "id": record.ids[0],
            "num_envs": "${algo.num_envs}",
            "threads": 1,
            "kwargs": {"recipe": record.rules.recipes[0]},
        }
        node = {"defaults": [{"override /scenario": "default"}, "_self_"], "env": env}
        _store.store(group="env", name=record.name, node=node, package="_global_")


def _normalised(override: str, job: str) -> list[str]:
    key, _, value = override.partition("=")
    if key == "env" and job == "evaluate":  # there the environment's arguments are the model's
        return [f"task={value}"]
    if key == "scenario" and value and not (CONF / "scenario" / f"{value}.yaml").is_file():
        quote = '"' if "'" in value else "'"
        return ["scenario=named", f"scenario.name={quote}{value}{quote}"]
    if ".kwargs." in key and not key.startswith(("+", "~")):
        return [f"++{override}"]
    return [override]


def _one_line(error: Exception) -> str:
    """Hydra's message and its reason, without search paths and line breaks."""
    messages = [str(error)]
    if isinstance(error.__cause__, OmegaConfBaseException):
        messages.append(str(error.__cause__))
    kept = []
    for message in messages:
        for line in map(str.strip, message.splitlines()):
            if line.startswith(("Config search path", "See https")):
                break
            if line and not line.startswith(("full_key:", "object_type=", "reference_type=", "Set the env")):
                kept.append(line)
    return " ".join(kept)
