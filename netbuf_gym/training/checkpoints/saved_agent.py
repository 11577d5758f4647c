"""A saved agent as a controller: it plays with the arguments of its training, and rejects rules that differ."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from omegaconf import DictConfig
from stable_baselines3.common.base_class import BaseAlgorithm

from netbuf_gym import tasks
from netbuf_gym.controllers import Decider, Model, Policy
from netbuf_gym.controllers.protocol import Rules
from netbuf_gym.errors import ConfigError
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.tasks import Task
from netbuf_gym.training import models
from netbuf_gym.training.algorithms.greedy import make_greedy_policy
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import merge_configs
from netbuf_gym.zoo.library import NEUTRAL_ARGUMENTS, TIMING_ARGUMENTS

SMALL_ARGUMENTS = {"n_steps": 2, "batch_size": 2, "sequence_steps": 2, "buffer_size": 1}
"""Memory-hungry arguments of learners that only training needs, as reduced by `build_model`."""


class SavedAgent(Decider):
    """A trained agent, read from its file; it acts greedily.

    Args:
        saved: Model as returned by `netbuf_gym.training.checkpoints.checkpoint.read_model`.
        name: Name in tables; None: the algorithm's name.

    Raises:
        ConfigError: Its environment is not registered.
    """

    def __init__(self, saved: checkpoint.SavedModel, name: str | None = None):
        self.saved, self.name = saved, str(saved.config.algo.name) if name is None else name
        try:
            registered = gym.spec(saved.env["id"]).kwargs
        except gym.error.Error as error:
            raise ConfigError(f"environment {saved.env['id']!r}: {error}") from None
        own = {**registered, **saved.env["kwargs"]}
        agents = tasks.get(own.get("task")).rules.agents_argument
        self._env = {key: value for key, value in own.items() if key not in (*NEUTRAL_ARGUMENTS, agents)}
        self._built: BaseAlgorithm | None = None
        self._lock = threading.Lock()

    @property
    def env(self) -> dict[str, Any]:
        """Arguments of its environment that determine what it observes and decides, and when."""
        return dict(self._env)

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.match_arguments`: its own arguments always, in the other's worlds."""
        return self.env | {key: env[key] for key in ("agents", "plant") if key in env}

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        task = cast(Task, rules)  # true of every environment's rules
        checkpoint.require_same_rules(self.saved, task)
        model = self.model(task)
        return make_greedy_policy(model) or Model(model, self.name).start(rules, seeds)

    def model(self, rules: Task) -> BaseAlgorithm:
        """Return the learner with its networks, built once; raises as `build_model` does."""
        with self._lock:
            if self._built is None:
                self._built = build_model(self.saved, rules, optimizer=NoOptimizer)
            return self._built


def select_own_kwargs(saved: checkpoint.SavedModel) -> dict[str, Any]:
    """Return the arguments of a model's environment, except for the number of agents and the machine's decision times."""
    dropped = ("agents", tasks.get(tasks.find_task(saved.env["id"])).rules.agents_argument, *TIMING_ARGUMENTS)
    return {key: value for key, value in saved.env["kwargs"].items() if key not in dropped}


def make_rules(saved: checkpoint.SavedModel) -> Task:
    """Return the current rules of a model's environment.

    Raises:
        CheckpointError: The model was trained by other rules.
        ConfigError, ScenarioError: The environment cannot be made.
    """
    env: Any = gym.make(saved.env["id"], **select_own_kwargs(saved))
    try:
        rules = cast(Task, env.unwrapped.engine.task)
        checkpoint.require_same_rules(saved, rules)
        return rules
    finally:
        env.close()


def build_model(
    saved: checkpoint.SavedModel, rules: Task, worlds: int = 1, optimizer: type[Any] | None = None
) -> BaseAlgorithm:
    """Return the learner with its saved networks, for predictions.

    Args:
        saved: Saved model.
        rules: Rules of its task.
        worlds: Number of worlds that the learner reports.
        optimizer: Class of the learner's optimiser; None: that of its algorithm.

    Raises:
        CheckpointError: The model was trained by other rules, or its parameters do not fit.
    """
    checkpoint.require_same_rules(saved, rules)
    env = VectorEnvAdapter(_SpacesOnly(rules, worlds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about batch sizes, irrelevant to predictions
        model = models.make_model(_shrink_for_prediction(saved.config.algo), env, seed=0, optimizer=optimizer)
    checkpoint.restore_model(saved, model, rng=False)
    return model


class NoOptimizer:
    """Optimiser of a learner that is not to be trained: it holds parameters and forgets what state it is given.

    Those of torch import its compiler as they are made, which takes longer than all else of loading an agent.
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.0, **settings: Any):
        self.param_groups = [{"params": list(params), "lr": lr, **settings}]

    def state_dict(self) -> dict[str, Any]:
        """Return the settings, without any state."""
        return {"state": {}, "param_groups": self.param_groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Leave the state of an optimiser out."""


class _SpacesOnly(gym.vector.VectorEnv):
    """The spaces of an environment, from which a learner's networks are built; it cannot be stepped."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, rules: Task, worlds: int):
        self.num_envs = worlds
        self.single_observation_space, self.single_action_space = rules.observation_space, rules.action_space


def _shrink_for_prediction(algo: DictConfig) -> DictConfig:
    """Return the same configuration without the memory that only training needs."""
    return merge_configs(algo, {"kwargs": {key: value for key, value in SMALL_ARGUMENTS.items() if key in algo.kwargs}})
