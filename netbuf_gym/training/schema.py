"""The types of the configurations of training and evaluation, with what their keys mean; needs nothing but Python.

What `Attributes` says is what `netbuf-gym train --help` shows; `netbuf_gym.training.config_reference` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from netbuf_gym.utils.data import find_data

CONF = find_data("conf")
MISSING: Any = "???"
"""Of a key that some file or the command line has to give; OmegaConf's own word for it."""
ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU", "elu": "ELU", "silu": "SiLU"}
"""Of networks, with their names in `torch.nn`."""
NORMALIZE = ("none", "running")
"""How observations are normalised before the networks."""
FIRST_EVALUATION_SEED = 1_000_000
"""Evaluation seeds start here; training seeds lie below, so that no agent is judged on a seed it was trained on."""
FIRST_VALIDATION_SEED = 900_000
"""A campaign chooses among an agent's snapshots on seeds from here on; those that it trains with lie below."""
FIRST_STUDY_SEED = 950_000
"""Studies compare settings on seeds from here on, so that a campaign's choice between tuned ones and others is not theirs."""
LEAST_SEEDS = 3
"""Training seeds of a trial."""
PRUNERS, SAMPLERS = ("median", "halving", "none"), ("tpe", "random")
"""Of studies."""


@dataclass
class EnvConfig:
    """An environment.

    Attributes:
        name: name of its task.
        id: its Gymnasium id.
        kwargs: arguments of `gym.make_vec`.
        num_envs: agents that decide at once: worlds, times the agents of each.
        threads: threads of the native core.
    """

    name: str = MISSING
    id: str = MISSING
    kwargs: dict[str, Any] = field(default_factory=dict)
    num_envs: int = MISSING
    threads: int = 1


@dataclass
class ScenarioConfig:
    """A scenario, or a distribution over scenarios.

    Attributes:
        name: one of `netbuf-gym list scenarios`; null: the task's default.
        kwargs: its arguments.
    """

    name: str | None = MISSING
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class ValidationConfig:
    """A scenario that snapshots are chosen by.

    Attributes:
        name: as of scenarios; null: the one that is trained on.
        kwargs: its arguments.
    """

    name: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class RewardConfig:
    """A reward.

    Attributes:
        name: one of `netbuf-gym list rewards`; null: the one that belongs to the environment's recipe.
        kwargs: its parameters.
    """

    name: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class AlgoConfig:
    """A learner.

    Attributes:
        name: ppo, ppo_kl, a2c, dqn or ppo_lstm.
        num_envs: agents that it is trained by at once: worlds, times the agents of each.
        policy: the learner's name for its kind of network.
        learning_rate, learning_rate_final: from the first to the last step, linearly; final null: constant.
        restarts: where the learning rate begins again, each a mapping of `at`, the share of the training that is over (rising,
            between 0 and 1), and `learning_rate`, from which it falls to the final one by the next restart, or the end.
        net_arch: widths of the hidden layers, for the policy and for the value function each.
        activation: tanh, relu, elu or silu.
        normalize: none: networks get observations as they are, each in its fixed range; running: scaled to mean 0 and variance
            1, by statistics of what training sees, which are saved with the networks and stand still afterwards.
        normalize_clip: bound of what is scaled by running statistics, 0.1 to 1000.
        policy_kwargs: further arguments of the policy.
        kwargs: further arguments of the algorithm's constructor.
    """

    name: str = MISSING
    num_envs: int = MISSING
    policy: str = "MlpPolicy"
    learning_rate: float = 3e-4
    learning_rate_final: float | None = None
    restarts: list[Any] = field(default_factory=list)
    net_arch: list[int] = field(default_factory=lambda: [64, 64])
    activation: str = "tanh"
    normalize: str = "none"
    normalize_clip: float = 10.0
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class ImitateConfig:
    """A rule that a training begins by imitating.

    Attributes:
        rule: a controller of the task that decides as agents do (`netbuf-gym list controllers`); null: none.
        steps: decisions of every world in a round.
        rounds: the rule plays in the first one, what has been learned in all further ones.
        epochs: passes over the observations so far, after each round.
        spread: the probability that is shared out evenly among all discrete actions, 0 to 0.5: what the learner still tries.
    """

    rule: str | None = None
    steps: int = 300
    rounds: int = 2
    epochs: int = 8
    spread: float = 0.0


@dataclass
class WandbConfig:
    """Where Weights & Biases is told of a training: one run for each, in a group for environment and algorithm.

    Attributes:
        mode: offline (files below the run's folder, for `wandb sync`), online, or null: not at all.
        project: its name there.
        entity: user or team; null: the default one.
        group: of runs; null: <task>-<algo>.
        tags: of the run.
    """

    mode: str | None = None
    project: str = "netbuf-gym"
    entity: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list)


@dataclass
class TrainConfig:
    """A training job.

    Attributes:
        env, scenario, reward, algo: each is a group of files.
        seed: of networks, exploration and worlds, 0 to 999999 (evaluation seeds start at 1000000).
        total_timesteps: environment steps, over all worlds.
        max_minutes: wall-clock limit; null: none. Schedules follow whichever limit is nearer.
        device: that networks learn on: cpu, cuda, cuda:N, or auto, a GPU where there is one. What was trained on one is
            read, and decides, on any machine.
        torch_threads: threads of the learner.
        stagger_steps: spread the worlds' first episodes over so many steps (see `VectorEnvAdapter`).
        twins: so many worlds meet the same paths, and each is rewarded with what it got more than they (see
            `VectorEnvAdapter`); 1: every world for itself.
        run_dir: where everything is written; null: runs/<task>/<algo>/<time>-seed<seed>.
        resume: run directory to continue; its configuration stands, except for what the command line changes.
        start_from: file or run directory of a model, or an agent's name, whose networks the training begins with, as the stages
            of a curriculum do; it must have seen and decided the same, by networks of the same shape. null: with random ones.
        curriculum: stages that come before the scenario as it stands, each a mapping of `until`, the share of the training that
            is over at its end (rising, between 0 and 1), and `kwargs`, its arguments over the scenario's own.
        imitate: a rule that the learner imitates before it learns by itself.
        checkpoint_minutes: time between checkpoints.
        snapshots: so many models are kept along the way, evenly over the training, for a campaign to choose among them; 0: the
            last one alone.
        validation: the scenario that a campaign chooses by; name null: the one that is trained on.
        tensorboard: whether to write TensorBoard logs (`logger=csv` or `logger=tensorboard` say it, too).
        wandb: Weights & Biases (`logger=wandb`).
        progress: whether to show progress, and an estimate of the time that is left.
    """

    env: EnvConfig = field(default_factory=EnvConfig)
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    algo: AlgoConfig = field(default_factory=AlgoConfig)
    seed: int = 0
    total_timesteps: int = MISSING
    max_minutes: float | None = None
    device: str = "cpu"
    torch_threads: int = 1
    stagger_steps: int = 0
    twins: int = 1
    run_dir: str | None = None
    resume: str | None = None
    start_from: str | None = None
    curriculum: list[Any] = field(default_factory=list)
    imitate: ImitateConfig = field(default_factory=ImitateConfig)
    checkpoint_minutes: float = 1.0
    snapshots: int = 0
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    tensorboard: bool = True
    wandb: WandbConfig = field(default_factory=WandbConfig)
    progress: bool = True


@dataclass
class TuneConfig(TrainConfig):
    """A study of a learner's settings; `seed`, `total_timesteps` and all else of training are those of its trials.

    Attributes:
        search: the settings that are searched, by names of their own: `key`, and `low` and `high` (`whole: true`, `log: true`)
            or `choices`. Those that the command line sets are not searched.
        begin_with: settings that are tried after the learner's defaults, which come first; each a mapping of names in `search`.
        name: of the study; null: <task>-<algo>.
        run_dir: where plots, best settings and the journal are written; null: runs/tune/<name>.
        trials: that the study is to have, pruned ones included.
        hours: core-hours after which no further trial begins; null: no limit.
        slowest: a trial that takes more than so many times the core-seconds of the defaults' is given up; null: no limit.
        seeds: trainings of each trial, with seeds from `seed` on; at least 3.
        rungs: how often a trial's trainings are halted, evenly, to be compared with the other trials' and perhaps given up.
        worlds: that they are compared in, drawn from the scenario `validation` under seeds of the study's own.
        pruner: who gives trials up: median, halving or none.
        sampler: who proposes settings: tpe or random.
        storage: null: the file journal.log in `run_dir`; a URL of SQLAlchemy's (sqlite:///FILE, postgresql://...), or
            grpc://HOST:PORT of an Optuna proxy.
        workers: processes of this command; further ones may be started by the same command elsewhere.
        stale_minutes: a trial that was not heard of for so long is taken for lost, and tried again.
    """

    search: dict[str, Any] = field(default_factory=dict)
    begin_with: list[Any] = field(default_factory=list)
    name: str | None = None
    trials: int = 30
    hours: float | None = None
    slowest: float | None = None
    seeds: int = LEAST_SEEDS
    rungs: int = 4
    worlds: int = 24
    pruner: str = "median"
    sampler: str = "tpe"
    storage: str | None = None
    workers: int = 1
    stale_minutes: float = 10.0


@dataclass
class EvaluateConfig:
    """An evaluation job.

    Attributes:
        model: file that training wrote (`model.zip` or `checkpoint.zip`), its run directory, or an agent's name
            (`netbuf-gym list agents`); null: baselines alone.
        task: whose baselines are run without a model (on the command line `env=...` says the same); null: the model's.
        recipe: by which baselines that decide as agents do play without a model; null: the default one, or the model's.
        env_id: id that the model must have been trained for, or that belongs to the task; null: any.
        scenario: one, or a distribution from which each seed draws its own; name null: the task's default.
        seeds: number of seeds, counted from 1000000, or a list of them (each 1000000 or more).
        agents: how many each world has; what acts in their place is then as often there; null: one.
        senders: the same, by the name that tasks may have for it (`Task.agents_argument`).
        plant: that the worlds are of, a name or a mapping of `name` and its arguments; null: the default one, or the model's.
        baselines: to set beside the agent, of the task's controllers; null: those that the task compares agents with.
        run_dir: where table, result.json and plots are written; null: a new folder runs/evaluate/<task>/<time>.
        confidence: of the intervals.
        plots: whether to draw them (needs matplotlib).
        lines: most controllers in pictures over time, the first and the best among them; null: all.
        progress: whether to show progress, where standard error is a terminal.
        torch_threads: threads of the network.
        threads: threads of the simulator.
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
    progress: bool = True
    torch_threads: int = 1
    threads: int = 1


JOBS: dict[str, type] = {"train": TrainConfig, "tune": TuneConfig, "evaluate": EvaluateConfig}
"""By the names of their configurations, `conf/<name>.yaml`."""
