"""Types of the configurations of training and evaluation, with the meanings of their keys; standard library only.

The `Attributes` sections are the text of `netbuf-gym train --help`, read by `netbuf_gym.training.config_reference`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from netbuf_gym.utils.data import find_data

CONF = find_data("conf")
MISSING: Any = "???"
"""Value of a key that a file or the command line must set; OmegaConf's own marker."""
ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU", "elu": "ELU", "silu": "SiLU"}
"""Activation functions of networks, with their names in `torch.nn`."""
NORMALIZE = ("none", "running")
"""Ways to normalise observations before the networks."""
FIRST_EVALUATION_SEED = 1_000_000
"""First evaluation seed; training seeds lie below, so that no agent is evaluated on a seed it was trained on."""
FIRST_JUDGING_SEED = 7_000_000
"""First seed that is kept for judging: no training, validation or tuning uses it, or a later one."""
FIRST_VALIDATION_SEED = 900_000
"""First seed on which a campaign chooses among an agent's snapshots; its training seeds lie below."""
FIRST_STUDY_SEED = 950_000
"""First seed on which studies compare settings; a campaign's choice between tuned and other settings uses other seeds."""
FIRST_CONSTRAINT_SEED = 890_000
"""First seed of the worlds in which trainings measure the violations of their constraints."""
MIN_TRAINING_SEEDS = 3
"""Minimum number of training seeds of a trial."""
PRUNERS, SAMPLERS = ("median", "halving", "none"), ("tpe", "cmaes", "random")
"""Pruners and samplers of studies."""


@dataclass
class EnvConfig:
    """An environment.

    Attributes:
        name: task, by name.
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
    """The scenario by which snapshots are chosen.

    Attributes:
        name: one of `netbuf-gym list scenarios`; null: the training scenario.
        kwargs: its arguments.
        worst_weight: weight of the family of worlds with the worst mean score beside the mean over all, 0 to 1000, by which
            snapshots and seeds are chosen; a family is the worlds of one name. 0: the mean alone.
        score: metric by which snapshots, seeds and settings are chosen, one of the task's scores; null: the one that ranks
            controllers.
    """

    name: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    worst_weight: float = 0.0
    score: str | None = None


@dataclass
class RewardConfig:
    """A reward.

    Attributes:
        name: one of `netbuf-gym list rewards`; null: the one of the environment's recipe.
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
        learning_rate, learning_rate_final: at the first and the last step, linear in between; final null: constant.
        restarts: points at which the learning rate starts again, each a mapping of `at`, the share of the training that is
            over (rising, between 0 and 1), and `learning_rate`, from which it falls to the final one by the next restart, or
            the end.
        net_arch: widths of the hidden layers, for the policy and for the value function each.
        activation: tanh, relu, elu or silu.
        normalize: none: networks get observations as they are, each in its fixed range; running: scaled to mean 0 and variance
            1, by statistics of the observations seen in training, which are saved with the networks and fixed afterwards.
        normalize_clip: bound of observations scaled by running statistics, 0.1 to 1000.
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
    """A rule or an agent that the learner imitates at the start of a training.

    Attributes:
        rule: a controller of the task that decides as agents do (`netbuf-gym list controllers`); null: none.
        agent: file or run directory of a model, or an agent's name, in place of a rule; it observes what the learner does, over
            at least as many intervals. null: none.
        steps: decisions of every world in a round.
        rounds: number of rounds; the teacher plays in the first, the learner in all further ones.
        epochs: passes over the observations so far, after each round.
        spread: probability shared out evenly among all discrete actions, 0 to 0.5, so that the learner still explores.
    """

    rule: str | None = None
    agent: str | None = None
    steps: int = 300
    rounds: int = 2
    epochs: int = 8
    spread: float = 0.0


@dataclass
class WandbConfig:
    """Logging to Weights & Biases: one run for each training, in a group for environment and algorithm.

    Attributes:
        mode: offline (files below the run's folder, for `wandb sync`), online, or null: no logging.
        project: name of the project.
        entity: user or team; null: the default one.
        group: group of runs; null: <task>-<algo>.
        tags: tags of the run.
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
        seed: seed of networks, exploration and worlds, 0 to 999999 (evaluation seeds start at 1000000).
        total_timesteps: environment steps, over all worlds.
        max_minutes: wall-clock limit; null: none. Schedules follow whichever limit is nearer.
        device: device of the networks in training: cpu, cuda, cuda:N, or auto, a GPU where there is one. A model that was
            trained on one device can be loaded and run on any machine.
        torch_threads: threads of the learner.
        stagger_steps: number of steps over which the worlds' first episodes are spread (see `VectorEnvAdapter`).
        twins: number of worlds that meet the same paths, each rewarded with its advantage over the others (see
            `VectorEnvAdapter`); 1: every world for itself.
        run_dir: output folder; null: runs/<task>/<algo>/<time>-seed<seed>.
        resume: run directory to continue; its configuration stands, except for what the command line changes.
        start_from: file or run directory of a model, or an agent's name, whose networks the training starts with, as the stages
            of a curriculum do; observations, actions and the shape of the networks must be the same. null: random networks.
        curriculum: stages before the scenario itself, each a mapping of `until`, the share of the training that is over
            at its end (rising, between 0 and 1), and `kwargs`, its arguments over the scenario's own.
        constraints: bounds on metrics of the task, each a mapping of `metric`; `least` or `most`; `of`, a controller relative
            to whose value in the same world the bound is (none: it bounds the mean itself); `family`, each (worlds of one
            name) or pooled (the default); `term`, the term of the reward that works towards it, which weighs 1 + multiplier
            times as much in training; `step` (10), the rise of the multiplier by a violation of 1; and `penalty` (10), what a
            violation of 1 costs of the score where snapshots, seeds and settings are chosen.
        constraint_worlds: worlds in which violations are measured in training, drawn from the scenario, always the same.
        constraint_updates: number of measurements, evenly over the training, each of which moves the multipliers.
        imitate: a rule or an agent that the learner imitates before it learns by itself.
        checkpoint_minutes: time between checkpoints.
        snapshots: number of models kept along the way, evenly over the training, for a campaign to choose among them; 0: only
            the last one.
        validation: the scenario by which a campaign chooses; name null: the training scenario.
        tensorboard: whether to write TensorBoard logs (also set by `logger=csv` and `logger=tensorboard`).
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
    constraints: list[Any] = field(default_factory=list)
    constraint_worlds: int = 48
    constraint_updates: int = 20
    imitate: ImitateConfig = field(default_factory=ImitateConfig)
    checkpoint_minutes: float = 1.0
    snapshots: int = 0
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    tensorboard: bool = True
    wandb: WandbConfig = field(default_factory=WandbConfig)
    progress: bool = True


@dataclass
class TuneConfig(TrainConfig):
    """A study of a learner's settings; `seed`, `total_timesteps` and all other keys of training are those of its trials.

    Attributes:
        search: the settings that are searched, by names of their own: `key`, and `low` and `high` (`whole: true`, `log: true`)
            or `choices`. Those that the command line sets are not searched.
        begin_with: settings that are tried after the learner's defaults, which come first; each a mapping of names in `search`.
        name: name of the study; null: <task>-<algo>.
        run_dir: folder of plots, best settings and the journal; null: runs/tune/<name>.
        trials: number of trials of the study, pruned ones included.
        hours: core-hours after which no further trial begins; null: no limit.
        slowest: maximum core-seconds of a trial, as a multiple of the defaults'; slower trials are pruned. null: no limit.
        seeds: trainings of each trial, with seeds from `seed` on; at least 3.
        rungs: number of evenly spaced points at which a trial is compared with the other trials and may be pruned.
        worlds: worlds of the comparison, drawn from the scenario `validation` under seeds of the study's own.
        pruner: rule that prunes trials: median, halving or none.
        sampler: rule that proposes settings: tpe, cmaes (numbers alone; choices at random) or random.
        storage: null: the file journal.log in `run_dir`; a URL of SQLAlchemy's (sqlite:///FILE, postgresql://...), or
            grpc://HOST:PORT of an Optuna proxy.
        workers: processes of this command; further ones may be started by the same command elsewhere.
        stale_minutes: time without a sign of life after which a trial is taken for lost, and tried again.
    """

    search: dict[str, Any] = field(default_factory=dict)
    begin_with: list[Any] = field(default_factory=list)
    name: str | None = None
    trials: int = 30
    hours: float | None = None
    slowest: float | None = None
    seeds: int = MIN_TRAINING_SEEDS
    rungs: int = 4
    worlds: int = 24
    pruner: str = "median"
    sampler: str = "tpe"
    storage: str | None = None
    workers: int = 1
    stale_minutes: float = 10.0


@dataclass
class TuneControllerConfig:
    """A study of a controller's parameters: of a rule, a congestion control or a scheme.

    Attributes:
        controller: one of `netbuf-gym list controllers` that has parameters; with settings (`'brief_pulse:many=0'`) these are
            not searched.
        task: its task (on the command line `env=...` is the same); null: the first task that has the controller.
        scenario: the scenario from which worlds are drawn; name null: the first one that the task's agents are compared on.
        validation: the scenario of the worlds that decide which of the best settings is kept; name null: the same.
        objective: score to be tuned for, one of the task's; null: the one that ranks its controllers. A percentile over flows
            is taken over the flows of all worlds together.
        agents: number of agents in each world; null: one.
        interval_s: time between decisions; null: the controller's own.
        search: changes of the ranges that the controller declares, by parameter: `low` and `high` (`log: true`) or `choices`;
            null: it is not searched.
        begin_with: settings that are tried after the shipped ones, which come first; each a mapping of parameters.
        name: name of the study; null: <task>-<controller>.
        run_dir: folder of the journal, the best settings and plots; null: runs/tune/<name>.
        seed: seed of the sampler.
        trials: number of trials of the study, those given up included.
        hours: core-hours after which no further trial begins; null: no limit.
        worlds: worlds of a trial that is not given up, the same ones for all trials.
        rungs: points at which a trial is compared with the others in the same worlds and may be given up, each after twice as
            many worlds as the one before.
        pruner: rule that gives trials up: halving, median or none.
        sampler: rule that proposes settings: tpe, cmaes (numbers alone; choices at random) or random.
        finalists: number of best trials that are validated beside the shipped settings.
        validation_worlds: worlds of the validation, none of which is among those of the trials.
        executor: where worlds are played: local (this process), joblib, ray, slurm or submitit_local.
        jobs: number of trials at once.
        progress: whether to show progress.
    """

    controller: str | None = None
    task: str | None = None
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    validation: ScenarioConfig = field(default_factory=lambda: ScenarioConfig(name=None))
    objective: str | None = None
    agents: int | None = None
    interval_s: float | None = None
    search: dict[str, Any] = field(default_factory=dict)
    begin_with: list[Any] = field(default_factory=list)
    name: str | None = None
    run_dir: str | None = None
    seed: int = 0
    trials: int = 100
    hours: float | None = None
    worlds: int = 96
    rungs: int = 4
    pruner: str = "halving"
    sampler: str = "tpe"
    finalists: int = 4
    validation_worlds: int = 96
    executor: str = "local"
    jobs: int = 1
    progress: bool = True


@dataclass
class EvaluateConfig:
    """An evaluation job.

    Attributes:
        model: file that training wrote (`model.zip` or `checkpoint.zip`), its run directory, or an agent's name
            (`netbuf-gym list agents`); null: baselines alone.
        task: task whose baselines are run without a model (on the command line `env=...` is the same); null: the model's.
        recipe: recipe by which baselines that decide as agents do play without a model; null: the default one, or the model's.
        env_id: id that the model must have been trained for, or that belongs to the task; null: any.
        scenario: a scenario, or a distribution from which each seed draws its own; name null: the task's default.
        worlds: YAML or JSON file with a list of worlds in the scenario's place: names, mappings of name and arguments, or what
            Scenario.to_dict gave; each is run under every seed. null: the scenario's.
        seeds: number of seeds, counted from 1000000, or a list of them (each 1000000 or more).
        agents: number of agents in each world, and of the controllers in their place; null: one.
        senders: the same, by the name that tasks may have for it (`Task.agents_argument`).
        plant: plant of the worlds, a name or a mapping of `name` and its arguments; null: the default one, or the model's.
        baselines: controllers of the task to compare with the agent; null: those that the task compares agents with.
        run_dir: folder of the table, result.json and plots; null: a new folder runs/evaluate/<task>/<time>.
        confidence: confidence level of the intervals.
        pooled: whether to add percentiles of the slowdown over the finite flows of all seeds together.
        plots: whether to draw plots (needs matplotlib).
        lines: maximum number of controllers in plots over time, the first and the best among them; null: all.
        progress: whether to show progress, where standard error is a terminal.
        torch_threads: threads of the network.
        threads: threads of the simulator.
    """

    model: str | None = None
    task: str | None = None
    recipe: str | None = None
    env_id: str | None = None
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    worlds: str | None = None
    seeds: Any = 20
    agents: int | None = None
    senders: int | None = None
    plant: Any = None
    baselines: list[str] | None = None
    run_dir: str | None = None
    confidence: float = 0.95
    pooled: bool = False
    plots: bool = True
    lines: int | None = 8
    progress: bool = True
    torch_threads: int = 1
    threads: int = 1


JOBS: dict[str, type] = {
    "train": TrainConfig,
    "tune": TuneConfig,
    "tune_controller": TuneControllerConfig,
    "evaluate": EvaluateConfig,
}
"""Types of the jobs' configurations, by the names of the files `conf/<name>.yaml`."""
