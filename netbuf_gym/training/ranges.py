"""Valid ranges of the values of jobs and of the learners' arguments, checked before any heavy import and any output.

Applied alike to configurations from the command line and from saved models, so that neither a mistake nor a crafted file
can ask for layers, memories or rollouts of excessive size. Tests compare the tables with the learners' constructors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

from gymnasium.spaces import Discrete, Space
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.tasks.task import Task
from netbuf_gym.training.config import to_plain
from netbuf_gym.training.schema import (
    ACTIVATIONS,
    FIRST_CONSTRAINT_SEED,
    FIRST_EVALUATION_SEED,
    FIRST_JUDGING_SEED,
    FIRST_STUDY_SEED,
    FIRST_VALIDATION_SEED,
    MIN_TRAINING_SEEDS,
    NORMALIZE,
    PRUNERS,
    SAMPLERS,
)
from netbuf_gym.utils.arguments import check_boolean, check_choice, check_integer, check_real
from netbuf_gym.utils.overrides import make_value_whole
from netbuf_gym.utils.suggestions import suggest_valid
from netbuf_gym.wrappers.normalize import CLIP

Check = Callable[[str, Any], Any]
MAX_TORCH_THREADS = 1024
DEVICE = re.compile(r"cpu|cuda(:(0|[1-9][0-9]{0,2}))?|auto")
"""Syntax of device names; `models.resolve_device` checks that the device exists."""
MAX_WIDTH, MAX_LAYERS = 4096, 8
MAX_ROLLOUT = 1 << 28
"""Maximum number of decisions of one rollout, over all worlds."""


def _make_integer_check(low: int, high: int) -> Check:
    return partial(check_integer, low=low, high=high)


def _make_real_check(low: float, high: float, low_open: bool = False) -> Check:
    return partial(check_real, low=low, high=high, low_open=low_open)


def _make_optional_check(check: Check) -> Check:
    def check_optional(field: str, value: Any) -> Any:
        if value is None:
            return None
        try:
            return check(field, value)
        except ConfigError as error:
            raise ConfigError(f"{error}, or null") from None

    return check_optional


_SHARE, _POSITIVE, _WEIGHT = _make_real_check(0.0, 1.0), _make_real_check(0.0, 1e9, low_open=True), _make_real_check(0.0, 1e6)
_ON_POLICY: dict[str, Check] = {
    "n_steps": _make_integer_check(1, 1 << 20),
    "gamma": _SHARE,
    "gae_lambda": _SHARE,
    "ent_coef": _WEIGHT,
    "vf_coef": _WEIGHT,
    "max_grad_norm": _POSITIVE,
    "normalize_advantage": check_boolean,
    "stats_window_size": _make_integer_check(1, 1 << 20),
}
_EXPLORING: dict[str, Check] = {"use_sde": check_boolean, "sde_sample_freq": _make_integer_check(-1, 1 << 20)}
_PPO: dict[str, Check] = _ON_POLICY | {
    "batch_size": _make_integer_check(2, MAX_ROLLOUT),
    "n_epochs": _make_integer_check(1, 10_000),
    "clip_range": _make_real_check(0.0, 100.0, low_open=True),
    "target_kl": _make_optional_check(_POSITIVE),
}
_BATCH_PPO: dict[str, Check] = _PPO | {
    "ent_coef_final": _make_optional_check(_WEIGHT),
    "privileged_critic": check_boolean,
    "std_final": _make_optional_check(_make_real_check(0.0, 100.0, True)),
}

ARGUMENTS: dict[str, dict[str, Check]] = {
    "ppo": _BATCH_PPO,
    "ppo_kl": _BATCH_PPO
    | {"kl_coef": _make_real_check(0.0, 1e6, True), "kl_target": _make_optional_check(_make_real_check(0.0, 1e3, True))},
    "a2c": _ON_POLICY | _EXPLORING | {"rms_prop_eps": _make_real_check(0.0, 1.0, True), "use_rms_prop": check_boolean},
    "dqn": {
        "buffer_size": _make_integer_check(1, 10**8),
        "learning_starts": _make_integer_check(0, 10**12),
        "batch_size": _make_integer_check(1, 1 << 24),
        "tau": _make_real_check(0.0, 1.0, True),
        "gamma": _SHARE,
        "train_freq": _make_integer_check(1, 1 << 20),
        "gradient_steps": _make_integer_check(-1, 1 << 20),
        "n_steps": _make_integer_check(1, 10_000),
        "target_update_interval": _make_integer_check(1, 10**12),
        "exploration_fraction": _SHARE,
        "exploration_initial_eps": _SHARE,
        "exploration_final_eps": _SHARE,
        "max_grad_norm": _POSITIVE,
        "stats_window_size": _make_integer_check(1, 1 << 20),
    },
    "ppo_lstm": _BATCH_PPO | {"sequence_steps": _make_optional_check(_make_integer_check(1, 1 << 20)), "guess_coef": _WEIGHT},
}
"""Arguments of each learner's constructor that a configuration may set, `algo.kwargs`."""

_OPTIMIZER: dict[str, Check] = {"eps": _make_real_check(0.0, 1.0), "weight_decay": _make_real_check(0.0, 1.0)}


def _check_optimizer(field: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field} = {quote(value)}; valid: {', '.join(_OPTIMIZER)}, each by its name")
    _check_all(field, dict(value), _OPTIMIZER, "the optimiser")
    return value


_VALUES: dict[str, Check] = {"optimizer_kwargs": _check_optimizer}
_GAUSSIAN: dict[str, Check] = _VALUES | {
    "ortho_init": check_boolean,
    "log_std_init": _make_real_check(-20.0, 5.0),
    "full_std": check_boolean,
    "use_expln": check_boolean,
}
_LSTM: dict[str, Check] = {
    "lstm_hidden_size": _make_integer_check(1, MAX_WIDTH),
    "n_lstm_layers": _make_integer_check(1, MAX_LAYERS),
    "shared_lstm": check_boolean,
    "enable_critic_lstm": check_boolean,
}
POLICY_ARGUMENTS: dict[str, dict[str, Check]] = {
    "ppo": _GAUSSIAN,
    "ppo_kl": _GAUSSIAN,
    "a2c": _GAUSSIAN,
    "dqn": _VALUES,
    "ppo_lstm": _GAUSSIAN | _LSTM,
}
"""Arguments of each learner's policy, `algo.policy_kwargs`."""
POLICIES = {name: "MlpLstmPolicy" if name == "ppo_lstm" else "MlpPolicy" for name in ARGUMENTS}


DISCRETE_ONLY = ("dqn",)
"""Learners of action values, which need discrete actions."""

_ROLLOUTS: dict[str, dict[str, int | None]] = {
    "ppo": {"n_steps": 2048, "batch_size": 64},
    "ppo_kl": {"n_steps": 2048, "batch_size": 64},
    "a2c": {"n_steps": 5, "batch_size": None},
    "ppo_lstm": {"n_steps": 128, "batch_size": 128},
}
"""Learners that learn from rollouts, with the defaults that set the rollout's size."""


def check_seeds(field: str, first: int, last: int, low: int, high: int) -> None:
    """Raise ConfigError for seeds of worlds that are trained, validated or tuned on, and those kept for judging above all.

    Args:
        field: Field that names the first seed.
        first, last: First and last seed of the worlds.
        low, high: Valid range of the first seed.
    """
    valid = f"valid: {low} to {high}"
    if last >= FIRST_JUDGING_SEED:
        kept = f"seeds from {FIRST_JUDGING_SEED} on are kept for judging, no training, validation or tuning uses them"
        raise ConfigError(f"{field} = {first} reaches seed {last}: {kept}; {valid}")
    if not low <= first <= high:
        raise ConfigError(f"{field} = {first} is out of range; {valid}")


def check_training(config: DictConfig) -> None:
    """Raise ConfigError for values that no training can run with."""
    check_seeds("seed", config.seed, config.seed, 0, FIRST_EVALUATION_SEED - 1)
    for key, low, high in (
        ("total_timesteps", 1, 10**12),
        ("torch_threads", 1, MAX_TORCH_THREADS),
        ("stagger_steps", 0, 10**6),
        ("checkpoint_minutes", 0.0001, 1e6),
        ("snapshots", 0, 10_000),
        ("validation.worst_weight", 0, 1000),
        ("constraint_worlds", 1, FIRST_VALIDATION_SEED - FIRST_CONSTRAINT_SEED),
        ("constraint_updates", 1, 10_000),
        ("imitate.steps", 1, 10**6),
        ("imitate.rounds", 1, 100),
        ("imitate.epochs", 1, 1000),
        ("imitate.spread", 0, 0.5),
        ("env.num_envs", 1, 10**6),
        ("env.threads", 1, MAX_THREADS),
        ("twins", 1, config.env.num_envs),
    ):
        value = OmegaConf.select(config, key)
        if not low <= value <= high:
            raise ConfigError(f"{key} = {value!r} is out of range; valid: {low} to {high}")
    if not DEVICE.fullmatch(config.device):
        raise ConfigError(f"device = {quote(config.device)} is none; valid: cpu, cuda, cuda:N, auto")
    if config.wandb.mode is not None:
        check_choice("wandb.mode", config.wandb.mode, ("offline", "online"))
    if config.env.num_envs % config.twins:
        worlds = config.env.num_envs
        raise ConfigError(f"twins = {config.twins} does not divide env.num_envs = {worlds}; valid: a divisor of it")
    if config.max_minutes is not None and not 0 < config.max_minutes < 1e6:
        raise ConfigError(f"max_minutes = {config.max_minutes!r} is out of range; valid: above 0, or null")


def check_study(config: DictConfig) -> None:
    """Raise ConfigError for values, beside those of training, that no study can run with."""
    for key, low, high in (
        ("trials", 1, 100_000),
        ("seeds", MIN_TRAINING_SEEDS, 100),
        ("rungs", 1, 1000),
        ("worlds", 1, FIRST_EVALUATION_SEED - FIRST_STUDY_SEED),
        ("workers", 1, 1024),
        ("stale_minutes", 0.01, 1e6),
    ):
        if not low <= config[key] <= high:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: {low} to {high}")
    check_seeds("seed", config.seed, config.seed + config.seeds - 1, 0, FIRST_VALIDATION_SEED - config.seeds)
    for key, low in (("hours", 0.0), ("slowest", 1.0)):
        if config[key] is not None and not low < config[key] < 1e6:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: above {low:g}, or null")
    check_choice("pruner", config.pruner, PRUNERS)
    check_choice("sampler", config.sampler, SAMPLERS)
    if config.resume is not None:
        raise ConfigError("resume belongs to netbuf-gym train; valid: the study's own command once more, which goes on with it")


def check_controller_study(config: DictConfig) -> None:
    """Raise ConfigError for values that no study of a controller can run with."""
    if not config.controller:
        raise ConfigError("missing: controller=..., e.g. controller=brief_pulse")
    for key, low, high in (
        ("seed", 0, 2**31 - 1),
        ("trials", 1, 100_000),
        ("rungs", 1, 16),
        ("worlds", 2 ** (config.rungs - 1), FIRST_EVALUATION_SEED - FIRST_STUDY_SEED),
        ("validation_worlds", 1, FIRST_STUDY_SEED - FIRST_VALIDATION_SEED),
        ("finalists", 1, 1000),
        ("jobs", 1, 1024),
    ):
        if not low <= config[key] <= high:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: {low} to {high}")
    if config.hours is not None and not 0 < config.hours < 1e6:
        raise ConfigError(f"hours = {config.hours!r} is out of range; valid: above 0, or null")
    check_choice("pruner", config.pruner, PRUNERS)
    check_choice("sampler", config.sampler, SAMPLERS)


def check_evaluation(config: DictConfig) -> None:
    """Raise ConfigError for values that no evaluation can run with."""
    resolve_evaluation_seeds(config.seeds)
    if config.task is not None:
        tasks.get(config.task)
    if not 0 < config.confidence < 1:
        raise ConfigError(f"confidence = {config.confidence!r} is out of range; valid: between 0 and 1")


def resolve_evaluation_seeds(seeds: Any) -> list[int]:
    """Return the evaluation seeds for a number of seeds or a list of them.

    Raises:
        ConfigError: Not a number or a list of whole numbers, too few, repeated, or seeds that training uses.
    """
    seeds = make_value_whole(to_plain(seeds))
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds < FIRST_EVALUATION_SEED:
        return list(range(FIRST_EVALUATION_SEED, FIRST_EVALUATION_SEED + seeds))
    valid = f"valid: 1 to {FIRST_EVALUATION_SEED - 1} seeds, or a list of seeds from {FIRST_EVALUATION_SEED} on"
    if not isinstance(seeds, (list, tuple)):
        raise ConfigError(f"seeds = {quote(seeds)} cannot be used; {valid}")
    chosen = list(seeds)
    if not chosen or len(set(map(str, chosen))) != len(chosen):
        raise ConfigError(f"seeds = {quote(chosen)} is empty or repeats a seed; {valid}")
    for seed in chosen:
        if not isinstance(seed, int) or isinstance(seed, bool) or not FIRST_EVALUATION_SEED <= seed < 2**63:
            raise ConfigError(f"seeds holds {quote(seed)}, which is no evaluation seed; {valid}")
    return chosen


def check_algo(algo: DictConfig) -> None:
    """Raise ConfigError unless a learner can be built from its configuration."""
    name = check_choice("algo.name", algo.name, ARGUMENTS)
    check_choice("algo.policy", algo.policy, [POLICIES[name]])
    check_choice("algo.activation", algo.activation, ACTIVATIONS)
    check_choice("algo.normalize", algo.normalize, NORMALIZE)
    check_real("algo.normalize_clip", algo.normalize_clip, *CLIP)
    widths = to_plain(algo.net_arch)
    if len(widths) > MAX_LAYERS or not all(isinstance(width, int) and 1 <= width <= MAX_WIDTH for width in widths):
        valid = f"a list of at most {MAX_LAYERS} widths, 1 to {MAX_WIDTH}"
        raise ConfigError(f"algo.net_arch = {quote(widths)}; valid: {valid}")
    check_real("algo.learning_rate", algo.learning_rate, 0.0, 1e12, low_open=True)
    _make_optional_check(_make_real_check(0.0, 1e12))("algo.learning_rate_final", algo.learning_rate_final)
    _check_restarts(to_plain(algo.restarts))
    _check_all("algo.kwargs", algo.kwargs, ARGUMENTS[name], name)
    _check_all("algo.policy_kwargs", algo.policy_kwargs, POLICY_ARGUMENTS[name], f"{name}'s policy")


def _check_restarts(restarts: list[Any]) -> None:
    """Raise ConfigError for an invalid restart, or one no later than the restart before."""
    last = 0.0
    for number, one in enumerate(restarts):
        field = f"algo.restarts[{number}]"
        if not isinstance(one, dict) or set(one) != {"at", "learning_rate"}:
            raise ConfigError(f"{field} = {quote(one)}; valid: {{at: SHARE, learning_rate: RATE}}")
        at = check_real(f"{field}.at", one["at"], 0.0, 1.0)
        if not last < at < 1.0:
            raise ConfigError(f"{field}.at = {at:g}; valid: above {last:g} and below 1")
        check_real(f"{field}.learning_rate", one["learning_rate"], 0.0, 1e12, low_open=True)
        last = at


def check_actions(algo: DictConfig, space: Space[Any]) -> None:
    """Raise ConfigError if a learner cannot choose among the actions of an environment."""
    if algo.name in DISCRETE_ONLY and not isinstance(space, Discrete):
        others = ", ".join(name for name in ARGUMENTS if name not in DISCRETE_ONLY)
        raise ConfigError(
            f"algo.name = {algo.name!r} chooses one of a number of actions, and those here are {space}; valid: {others}, "
            "or arguments of the environment that make actions discrete (env.kwargs)"
        )


def check_privileged(algo: DictConfig, task: Task) -> None:
    """Raise ConfigError if `privileged_critic` is set for a task that has nothing to tell a critic."""
    if algo.kwargs.get("privileged_critic", False) and not task.privileged:
        raise ConfigError(f"algo.kwargs.privileged_critic = True, but task {task.name!r} tells critics nothing; valid: False")


def check_guesses(algo: DictConfig, task: Task) -> None:
    """Raise ConfigError if `guess_coef` is set for a task that hides nothing, or an LSTM with fewer units than hidden names."""
    weight, names = algo.kwargs.get("guess_coef", 0), task.hidden
    if not weight:
        return
    if not names:
        raise ConfigError(f"algo.kwargs.guess_coef = {weight:g}, but task {task.name!r} names nothing hidden; valid: 0")
    width = algo.policy_kwargs.get("lstm_hidden_size", 256)
    if width < len(names):
        valid = f"{len(names)} or more, a unit for each of {', '.join(names)} (algo.kwargs.guess_coef)"
        raise ConfigError(f"algo.policy_kwargs.lstm_hidden_size = {width}; valid: {valid}")


def check_rollout(algo: DictConfig, num_envs: int) -> str | None:
    """Check the size of the rollout against the minibatches.

    Returns:
        A one-line warning about an incomplete last minibatch, or None.

    Raises:
        ConfigError: A rollout of fewer than two decisions, or of more than `MAX_ROLLOUT`.
    """
    if algo.name not in _ROLLOUTS:
        return None
    n_steps, batch_size = (algo.kwargs.get(key, own) for key, own in _ROLLOUTS[algo.name].items())
    rollout = n_steps * num_envs
    said = f"algo.kwargs.n_steps = {n_steps} of env.num_envs = {num_envs} worlds are {rollout} decisions a rollout"
    if not 2 <= rollout <= MAX_ROLLOUT:
        raise ConfigError(f"{said}; valid: 2 to {MAX_ROLLOUT}")
    if algo.name == "ppo_lstm":
        _check_sequences(algo.kwargs.get("sequence_steps"), n_steps, batch_size)
    if batch_size is None or rollout % batch_size == 0:
        return None
    return f"{said}, no multiple of algo.kwargs.batch_size = {batch_size}: the last minibatch has {rollout % batch_size}"


def _check_sequences(sequence_steps: int | None, n_steps: int, batch_size: int) -> None:
    """Raise ConfigError unless rollouts consist of whole sequences, and minibatches of one sequence or more."""
    steps = n_steps if sequence_steps is None else sequence_steps
    if n_steps % steps:
        valid = f"a divisor of algo.kwargs.n_steps = {n_steps}, or null"
        raise ConfigError(f"algo.kwargs.sequence_steps = {steps}; valid: {valid}")
    if batch_size < steps:
        valid = f"{steps} or more, the decisions of a sequence (algo.kwargs.sequence_steps, or else algo.kwargs.n_steps)"
        raise ConfigError(f"algo.kwargs.batch_size = {batch_size}; valid: {valid}")


def _check_all(key: str, values: MutableMapping[str, Any], table: Mapping[str, Check], owner: str) -> None:
    """Check arguments against a table; whole numbers that were written as 8.0 become 8."""
    for name, value in list(values.items()):
        if name not in table:
            raise ConfigError(f"{key}.{name} is not an argument of {owner}; {suggest_valid(name, sorted(table))}")
        checked = table[name](f"{key}.{name}", value)
        if type(checked) is not type(value):
            values[name] = checked
