"""A saved agent as a controller: it plays by the arguments that it was trained with, and refuses rules that differ."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
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
from netbuf_gym.training.algorithms.greedy import greedy
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import merged
from netbuf_gym.zoo.library import NOT_ITS_OWN, OF_ITS_MACHINE

SMALL = {"n_steps": 2, "batch_size": 2, "sequence_steps": 2, "buffer_size": 1}
"""Arguments of learners that only training needs much memory for, as `build` has them."""


class SavedAgent(Decider):
    """A trained agent, read from its file; it acts greedily.

    Args:
        saved: what `netbuf_gym.training.checkpoints.checkpoint.read` gave.
        name: how tables call it; None: the algorithm's name.

    Raises:
        ConfigError: its environment is not registered.
    """

    def __init__(self, saved: checkpoint.Saved, name: str | None = None):
        self.saved, self.name = saved, str(saved.config.algo.name) if name is None else name
        try:
            registered = gym.spec(saved.env["id"]).kwargs
        except gym.error.Error as error:
            raise ConfigError(f"environment {saved.env['id']!r}: {error}") from None
        own = {**registered, **saved.env["kwargs"]}
        agents = tasks.get(own.get("task")).rules.agents_argument
        self._env = {key: value for key, value in own.items() if key not in (*NOT_ITS_OWN, agents)}
        self._built: BaseAlgorithm | None = None
        self._lock = threading.Lock()

    @property
    def env(self) -> dict[str, Any]:
        """What its environment was made with, that says what it sees and decides, and when."""
        return dict(self._env)

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.beside`: its own arguments always, in the other's worlds."""
        return self.env | {key: env[key] for key in ("agents", "plant") if key in env}

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        task = cast(Task, rules)  # as those of all environments are
        checkpoint.require_same_rules(self.saved, task)
        model = self.model(task)
        return greedy(model) or Model(model, self.name).start(rules, seeds)

    def model(self, rules: Task) -> BaseAlgorithm:
        """The learner with its networks, built once; raises as `build` does."""
        with self._lock:
            if self._built is None:
                self._built = build(self.saved, rules)
            return self._built


def own_kwargs(saved: checkpoint.Saved) -> dict[str, Any]:
    """The arguments of its environment, but for how many of it were in a world, and how long its decisions took."""
    dropped = ("agents", tasks.get(tasks.task_of(saved.env["id"])).rules.agents_argument, *OF_ITS_MACHINE)
    return {key: value for key, value in saved.env["kwargs"].items() if key not in dropped}


def rules_of(saved: checkpoint.Saved) -> Task:
    """The rules of its environment, as they are now.

    Raises:
        CheckpointError: it was trained by others.
        ConfigError, ScenarioError: the environment cannot be made.
    """
    env: Any = gym.make(saved.env["id"], **own_kwargs(saved))
    try:
        rules = cast(Task, env.unwrapped.engine.task)
        checkpoint.require_same_rules(saved, rules)
        return rules
    finally:
        env.close()


def build(saved: checkpoint.Saved, rules: Task, worlds: int = 1) -> BaseAlgorithm:
    """The learner with its networks as they were saved, to predict with.

    Args:
        worlds: that it seems to be made for.

    Raises:
        CheckpointError: it was trained by other rules, or its parameters do not fit.
    """
    checkpoint.require_same_rules(saved, rules)
    env = VectorEnvAdapter(_Spaces(rules, worlds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about batch sizes, which only matter for training
        model = models.make_model(_for_prediction(saved.config.algo), env, seed=0)
    checkpoint.restore(saved, model, rng=False)
    return model


class _Spaces(gym.vector.VectorEnv):
    """The spaces of an environment, which are all that a learner's networks are made from; it cannot be stepped."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, rules: Task, worlds: int):
        self.num_envs = worlds
        self.single_observation_space, self.single_action_space = rules.observation_space, rules.action_space


def _for_prediction(algo: DictConfig) -> DictConfig:
    """The same networks without the memory that only training needs."""
    return merged(algo, {"kwargs": {key: value for key, value in SMALL.items() if key in algo.kwargs}})
