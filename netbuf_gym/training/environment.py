"""Environment of a training job from its configuration; needs none of the learner's libraries, so that errors show at once."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from omegaconf import DictConfig

from netbuf_gym import scenarios, tasks
from netbuf_gym.errors import ConfigError, NetbufError, quote
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios.sources import resolve_scenario, sample_example
from netbuf_gym.training import config_errors
from netbuf_gym.training.config import build_scenario_spec, to_plain
from netbuf_gym.training.criteria import resolve_criterion
from netbuf_gym.training.ranges import DISCRETE_ONLY
from netbuf_gym.training.schema import FIRST_VALIDATION_SEED


def build_env_kwargs(config: DictConfig) -> dict[str, Any]:
    """Return the keyword arguments of `gym.make_vec` beside `num_envs` and `threads`: JSON-able, and stored with the model.

    Parameters of a reward without a name are those of the recipe's own reward. Learners of action values get the task's
    discrete actions (`Task.discrete`), unless the configuration asks for others.
    """
    kwargs = to_plain(config.env.kwargs)
    rules = tasks.get(config.env.name).rules if config.env.name in tasks.names() else None
    if rules is not None and config.algo.name in DISCRETE_ONLY:
        kwargs = rules.discrete.get(kwargs.get("recipe", rules.recipes[0]), {}) | kwargs
    scenario = config.scenario
    if rules is not None and scenario.name in scenarios.names():
        for key in set(scenarios.parameters_of(scenario.name)) & set(kwargs) - set(config_errors.list_env_arguments()):
            raise ConfigError(f"env.kwargs.{key} is an argument of the scenario; did you mean 'scenario.kwargs.{key}'?")
    kwargs["scenario"] = (
        build_scenario_spec(scenario) if rules is None else build_scenario_spec(scenario, rules.default_scenario)
    )
    parameters = to_plain(config.reward.kwargs)
    if "name" in parameters:
        raise ConfigError(f"reward.kwargs.name = {quote(parameters['name'])}; valid: reward.name=...")
    if config.reward.name is not None:
        kwargs["reward"] = {"name": config.reward.name, **parameters}
    elif parameters:
        kwargs["reward"] = {"name": find_default_reward(config.env.name, kwargs), **parameters}
    return kwargs


def find_default_reward(task: str, kwargs: dict[str, Any]) -> str:
    """Return the name of the reward of the recipe of an environment with these arguments."""
    rules = tasks.get(task).rules
    agents = kwargs.get("agents", kwargs.get(rules.agents_argument, 1))
    fitted = rules.world_arguments(sample_example(resolve_scenario(kwargs["scenario"], agents)))
    options = {key: kwargs[key] for key in rules.options if key in kwargs}
    return rules(kwargs.get("recipe", rules.recipes[0]), kwargs.get("history"), agents, **(fitted | options)).default_reward


def make_worlds(env_id: str, num_envs: int, threads: int, kwargs: dict[str, Any]) -> gym.vector.VectorEnv:
    """Make a batch of worlds.

    Raises:
        ConfigError: An environment of no registered task, or arguments that it does not take.
    """
    if tasks.find_task(env_id) is None:  # Gymnasium's registry would import the module of `module:Name-v0`
        ids = ", ".join(name for record in tasks.records() for name in record.ids)
        raise ConfigError(f"environment {quote(env_id)} is not registered by a task; valid: {ids}")
    try:
        return gym.make_vec(env_id, num_envs=num_envs, threads=threads, **kwargs)
    except NetbufError:
        raise
    except (gym.error.Error, TypeError, ValueError) as error:
        raise ConfigError(f"environment {env_id!r}: {error}") from None


def check_scenario(config: DictConfig) -> None:
    """Raise ScenarioError for a name or arguments that make no scenario; called before anything slow."""
    if config.scenario.name is not None:
        scenarios.get(config.scenario.name, **to_plain(config.scenario.kwargs))


def check_validation(config: DictConfig) -> None:
    """Raise ConfigError for a validation scenario, a score or constraints that are not of the task."""
    one = config.validation
    if config.env.name in tasks.names():
        resolve_criterion(config)
    if one.name is None and one.kwargs:
        raise ConfigError("validation.kwargs are given without validation.name; valid: both, or neither")
    if one.name is not None and config.env.name in tasks.names():
        try:
            rollout.draw_worlds(config.env.name, build_scenario_spec(one), [FIRST_VALIDATION_SEED])
        except NetbufError as error:
            raise ConfigError(f"validation.name = {one.name!r} gives {config.env.name} no world: {error}") from None
