"""Controllers of the campaign: buffer schemes, random thresholds, and a trained agent; all with the same traffic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, Decider, InWorld, Policy, Rules
from netbuf_gym.envs.engine import draw_episode, make_generator
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.simulator import LINK_SAMPLE
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.sources import WorldSource
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.queue_threshold.baselines import BufferScheme
from studies.common import agents
from studies.rlbm.rlbm_settings import CONTROLLED, LEARNED, RANDOM_NO_BETA, RULES, Settings

RANDOM_STREAM = 0x72616E64
"""Random stream of the actions, separate from other draws under the same seed."""

QUEUE_SAMPLE_NS = 20_000_000
QUEUE_PACKETS = LINK_SAMPLE.index("queue_packets")


class RandomThresholds(Decider):
    """Uniformly random actions, from a generator that depends on the episode's seed alone.

    Args:
        name: Name of the controller.
        env: Arguments of the controller's environment.
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


def make_controller(scheme: str, settings: Settings) -> Controller:
    """Return the controller of a scheme of the campaign.

    Raises:
        CheckpointError: The agent's file cannot be read, or does not fit the environment.
        ConfigError: The agent belongs to another task.
        MissingExtraError: A package that the agent needs is not installed.
    """
    if scheme not in CONTROLLED:
        return BufferScheme(scheme)
    if scheme == LEARNED:
        return agents.load_agent(settings, settings.scenario(settings.ccs[0], settings.sizes[0], settings.loads[0]))
    if scheme in RULES:
        return rollout.get_controller(scheme, QueueThreshold.name)
    env: dict[str, Any] = {"recipe": settings.traffic}
    return RandomThresholds(scheme, env | {"betas": (1.0, 1.0)} if scheme == RANDOM_NO_BETA else env)


def play(
    controller: Controller,
    cells: Sequence[tuple[Scenario, int]],
    each: Callable[[rollout.View, np.ndarray | None], None],
    interval_s: float,
    stop: threading.Event | None = None,
) -> None:
    """Run worlds, each from start to end; raise as `netbuf_gym.evaluation.rollout.play`.

    Args:
        controller: Controller of all worlds.
        cells: Scenario, under any scheme, and episode's seed of each world.
        each: Callback for each finished world. The second argument is the queue length in packets every 20 ms where an AQM
            replaces the switch, since the core keeps no histogram of that queue; None elsewhere.
        interval_s: Time between decisions, for controllers that make any.
        stop: Event that ends the work early, by `rollout.Stopped`.
    """
    worlds = [rollout.World(scenario, draw_world_seed(scenario, seed), seed) for scenario, seed in cells]
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


def draw_world_seed(scenario: Scenario, seed: int) -> int:
    """Return the simulator's seed of a world under an episode's seed, as the environment draws it."""
    return draw_episode(WorldSource(scenario, lambda one: one), make_generator(seed))[1]
