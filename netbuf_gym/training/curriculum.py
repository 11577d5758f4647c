"""A curriculum: worlds that become others as a training goes on.

Its stages are the scenario with other arguments, each until a share of the training is over; then the scenario stands as it is.
A stage begins between an update and the next rollout; worlds that are running go on, and further ones are the new stage's.
Which one a training is in follows from its progress, and of which one a running world is from its checkpoint, so that a
training that was interrupted goes on as it would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.scenarios.sources import WorldSource
from netbuf_gym.training.config import merged, plain, scenario_spec
from netbuf_gym.utils.arguments import real

KEYS = {"until", "kwargs"}


def ends(config: DictConfig) -> list[float]:
    """Until which share of the training, above 0 and below 1, each stage lasts that comes before the scenario itself.

    Raises:
        ConfigError: A stage without its end or arguments, or that ends no later than the one before.
    """
    found = [0.0]
    for at, stage in enumerate(plain(config.curriculum)):
        field = f"curriculum[{at}]"
        if not isinstance(stage, dict) or set(stage) != KEYS or not isinstance(stage["kwargs"], dict):
            raise ConfigError(f"{field} = {shown(stage)}; valid: {{until: SHARE, kwargs: {{ARGUMENT: VALUE, ...}}}}")
        until = real(f"{field}.until", stage["until"], 0, 1)
        if not found[-1] < until < 1:
            raise ConfigError(f"{field}.until = {until:g}; valid: above {found[-1]:g}, where it begins, and below 1")
        found.append(until)
    return found[1:]


def sources(config: DictConfig, worlds: gym.vector.VectorEnv) -> list[WorldSource]:
    """Where the worlds of each stage come from, the last one the scenario itself; none where there is no curriculum.

    Raises:
        ConfigError: A stage whose arguments the scenario does not take; names it.
    """
    if not ends(config):
        return []
    engine, own = cast(VectorEnv, worlds.unwrapped).engine, config.scenario
    known = config.env.name in tasks.names()
    default: Any = tasks.get(config.env.name).rules.default_scenario if known else None
    made = []
    for at, stage in enumerate(config.curriculum):
        kwargs = merged(OmegaConf.create(plain(own.kwargs)), OmegaConf.create(plain(stage.kwargs)))
        try:
            made.append(engine.source_of(scenario_spec(OmegaConf.create({"name": own.name, "kwargs": kwargs}), default)))
        except NetbufError as error:
            raise ConfigError(f"curriculum[{at}].kwargs: {error}") from None
    return [*made, engine.source]


def follow(config: DictConfig, set_stage: Callable[[int], None]) -> Callable[[float], None]:
    """What is told the share of the training that is over, 0 to 1, and sets the stage by it."""
    until = ends(config)
    return lambda share: set_stage(sum(share >= end for end in until))
