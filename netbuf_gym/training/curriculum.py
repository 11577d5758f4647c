"""Curriculum: worlds that change in stages during a training.

Each stage is the scenario with other arguments until a share of the training is over; after the last stage the scenario
itself follows. A stage begins between an update and the next rollout: running worlds continue, new ones are of the new stage.
The stage of a training follows from its progress, and that of a running world is in its checkpoint, so that an interrupted
training continues as it would have without the interruption.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, NetbufError, quote
from netbuf_gym.scenarios.sources import WorldSource
from netbuf_gym.training.config import build_scenario_spec, merge_configs, to_plain
from netbuf_gym.utils.arguments import check_real

KEYS = {"until", "kwargs"}


def resolve_stage_ends(config: DictConfig) -> list[float]:
    """Return the share of the training, above 0 and below 1, at which each stage before the scenario itself ends.

    Raises:
        ConfigError: A stage without its end or arguments, or that ends no later than the one before.
    """
    found = [0.0]
    for at, stage in enumerate(to_plain(config.curriculum)):
        field = f"curriculum[{at}]"
        if not isinstance(stage, dict) or set(stage) != KEYS or not isinstance(stage["kwargs"], dict):
            raise ConfigError(f"{field} = {quote(stage)}; valid: {{until: SHARE, kwargs: {{ARGUMENT: VALUE, ...}}}}")
        until = check_real(f"{field}.until", stage["until"], 0, 1)
        if not found[-1] < until < 1:
            raise ConfigError(f"{field}.until = {until:g}; valid: above {found[-1]:g}, where it begins, and below 1")
        found.append(until)
    return found[1:]


def build_stage_sources(config: DictConfig, worlds: gym.vector.VectorEnv) -> list[WorldSource]:
    """Return the world source of each stage, the scenario itself last; none without a curriculum.

    Raises:
        ConfigError: A stage whose arguments the scenario does not take; names the stage.
    """
    if not resolve_stage_ends(config):
        return []
    engine, own = cast(VectorEnv, worlds.unwrapped).engine, config.scenario
    known = config.env.name in tasks.names()
    default: Any = tasks.get(config.env.name).rules.default_scenario if known else None
    made = []
    for at, stage in enumerate(config.curriculum):
        kwargs = merge_configs(OmegaConf.create(to_plain(own.kwargs)), OmegaConf.create(to_plain(stage.kwargs)))
        try:
            made.append(
                engine.make_source(build_scenario_spec(OmegaConf.create({"name": own.name, "kwargs": kwargs}), default))
            )
        except NetbufError as error:
            raise ConfigError(f"curriculum[{at}].kwargs: {error}") from None
    return [*made, engine.source]


def make_stage_setter(config: DictConfig, set_stage: Callable[[int], None]) -> Callable[[float], None]:
    """Return a function that sets the stage by the share of the training that is over, 0 to 1."""
    until = resolve_stage_ends(config)
    return lambda share: set_stage(sum(share >= end for end in until))
