"""Who plays in the campaign: buffer schemes, random thresholds, and a trained agent; each with the same traffic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, Decider, InWorld, Policy, Rules
from netbuf_gym.envs.engine import draw_episode, generator_of
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.simulator import LINK_SAMPLE
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.sources import WorldSource
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.queue_threshold.baselines import BufferScheme
from studies.common import agents
from studies.rlbm.settings import CONTROLLED, LEARNED, RANDOM_NO_BETA, RULES, Settings

RANDOM_STREAM = 0x72616E64
"""Keeps random actions apart from what else is drawn from a seed."""

QUEUE_SAMPLE_NS = 20_000_000
QUEUE_PACKETS = LINK_SAMPLE.index("queue_packets")


class RandomThresholds(Decider):
    """Every action as likely, from a generator that the episode's seed alone decides.

    Args:
        env: arguments of its environment.
    """

    def __init__(self, name: str, env: dict[str, Any]):
        self.name, self._env = name, env

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`."""
        return dict(self._env)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        streams = [np.random.default_rng((seed, RANDOM_STREAM)) for seed in seeds]
        return lambda *_: (np.stack([stream.uniform(-1, 1, rules.action_space.shape) for stream in streams]), None)


def controller_of(scheme: str, settings: Settings) -> Controller:
    """Who plays under the name of a scheme of the campaign.

    Raises:
        CheckpointError: The agent's file cannot be read, or does not fit the environment.
        ConfigError: The agent is one for another task.
        MissingExtraError: The agent needs what is not installed.
    """
    if scheme not in CONTROLLED:
        return BufferScheme(scheme)
    if scheme == LEARNED:
        return agents.load(settings, settings.scenario(settings.ccs[0], settings.sizes[0], settings.loads[0]))
    if scheme in RULES:
        return rollout.controller_of(scheme, QueueThreshold.name)
    env: dict[str, Any] = {"recipe": settings.traffic}
    return RandomThresholds(scheme, env | {"betas": (1.0, 1.0)} if scheme == RANDOM_NO_BETA else env)


def play(
    controller: Controller,
    cells: Sequence[tuple[Scenario, int]],
    each: Callable[[rollout.View, np.ndarray | None], None],
    interval_s: float,
    stop: threading.Event | None = None,
) -> None:
    """Runs worlds, each from its start to its end; raises as `netbuf_gym.evaluation.rollout.play`.

    Args:
        controller: Who plays.
        cells: The scenario, under any scheme, and the episode's seed of each world.
        each: Called with each world that has ended and, where an AQM stands in the place of the switch, with the length of
            its queue every 20 ms, packets: the core keeps no histogram of it.
        interval_s: Between decisions, of those that make some.
        stop: Ends the work early, by `rollout.Stopped`.
    """
    worlds = [rollout.World(scenario, world_seed(scenario, seed), seed) for scenario, seed in cells]
    sampled: dict[int, list[float]] = {}
    if isinstance(controller, InWorld):
        interval_s = QUEUE_SAMPLE_NS * 1e-9
        sampled = {k: [] for k, (scenario, *_) in enumerate(worlds) if not controller.place(scenario).switches}

    def sample(view: rollout.View) -> None:
        if view.simulated.now_ns % QUEUE_SAMPLE_NS == 0:
            sampled[view.index].append(view.simulated.link_sample()[view.scenario.bottleneck, QUEUE_PACKETS])

    def ended(view: rollout.View) -> None:
        each(view, np.array(sampled.pop(view.index)) if view.index in sampled else None)

    watch = dict.fromkeys(sampled, sample)
    rollout.play(controller, worlds, ended, task=QueueThreshold.name, watch=watch, stop=stop, interval_s=interval_s)


def world_seed(scenario: Scenario, seed: int) -> int:
    """The simulator's seed of a world under an episode's seed, as the environment draws it."""
    return draw_episode(WorldSource(scenario, lambda one: one), generator_of(seed))[1]
