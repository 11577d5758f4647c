"""Schemes of the campaign that decide interval by interval: random thresholds, and a trained agent.

Many worlds are stepped together by the environment's engine, each with the traffic that its seed gives every scheme.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netbuf_gym.engine import Engine, draw_episode, generator_of
from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.reproduce.settings import LEARNED, RANDOM_NO_BETA, Settings
from netbuf_gym.reproduce.worlds import Stopped
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.worlds import WorldSource

Policy = Callable[[np.ndarray, Any, np.ndarray], tuple[np.ndarray, Any]]
"""(observations, state, episode starts) -> (actions, state)"""

OURS = ("scenario", "reward", "interval_s", "max_episode_steps", "senders", "plant")
"""Arguments of an agent's environment that the campaign decides itself."""

RANDOM_STREAM = 0x72616E64
"""Keeps random actions apart from what else is drawn from a seed."""


def world_seed(scenario: Scenario, seed: int) -> int:
    """The simulator's seed of a world under an episode's seed, as the environment draws it."""
    return draw_episode(WorldSource(scenario, lambda one: one), generator_of(seed))[1]


class Controlled:
    """One scheme of `CONTROLLED`, ready to run worlds.

    Args:
        scheme: Its name.
        settings: The campaign's.

    Attributes:
        model_sha256: Of the agent's file; "" for schemes that are not trained.

    Raises:
        CheckpointError: The agent's file cannot be read, or does not fit the environment.
        ConfigError: The agent is one for another task.
        MissingExtraError: The agent needs what is not installed.
    """

    def __init__(self, scheme: str, settings: Settings):
        self.scheme = scheme
        self.model_sha256 = ""
        self.kwargs: dict[str, Any] = {"recipe": settings.traffic}
        self._model = None
        if scheme == LEARNED:
            self._load(settings.agent)
        elif scheme == RANDOM_NO_BETA:
            self.kwargs["betas"] = (1.0, 1.0)

    def run(
        self,
        cells: Sequence[tuple[Scenario, int]],
        interval_s: float,
        each: Callable[[int, Scenario, Any], None],
        stop: threading.Event,
        threads: int = 1,
        watch: Callable[[float, Engine], None] | None = None,
    ) -> None:
        """Runs worlds of equal duration, each from its start to its end.

        Args:
            cells: The scenario, under any scheme, and the episode's seed of each world.
            interval_s: Between decisions.
            each: Called with the index, the scenario, and what was counted of each world that has ended, at its end.
            stop: Ends the work early, by `Stopped`.
            threads: That step the worlds.
            watch: Called with the first world's time in s and the engine after each decision.

        Raises:
            SimulatorFault: The simulator found its own state inconsistent.
        """
        engine = Engine(
            len(cells),
            task=QueueThreshold.name,
            scenario=cells[0][0].to_dict(),
            interval_s=interval_s,
            threads=threads,
            **self.kwargs,
        )
        for row, (scenario, seed) in enumerate(cells):
            engine.source = WorldSource(scenario, engine.task.control)
            engine.reset_world(row, generator_of(seed))
        engine.start_history(range(len(cells)))
        policy, state = self._policy([seed for _, seed in cells], engine), None
        observations = np.empty((len(cells), *engine.task.observation_space.shape), np.float32)
        starts, running = np.ones(len(cells), bool), np.ones(len(cells), bool)
        while running.any():
            if stop.is_set():
                raise Stopped
            actions, state = policy(engine.history.read(observations), state, starts)
            engine.decide(engine.task.check_actions(actions, len(cells)))
            starts = np.zeros(len(cells), bool)
            if watch is not None:
                watch(float(engine.time_ns[0]) * 1e-9, engine)
            for row in np.flatnonzero(engine.ended & running):
                each(int(row), engine.scenarios[row], engine.plant.world(int(row)))
            running &= ~engine.ended

    def _policy(self, seeds: Sequence[int], engine: Engine) -> Policy:
        if self._model is not None:

            def learned(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
                return self._model.predict(observations, state=state, episode_start=starts, deterministic=True)

            return learned
        streams = [np.random.default_rng((seed, RANDOM_STREAM)) for seed in seeds]

        def at_random(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            return np.stack([stream.uniform(-1, 1, engine.task.queues) for stream in streams]), None

        return at_random

    def _load(self, path: str) -> None:
        try:
            import torch

            from netbuf_gym.zoo import checkpoint, models
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] == "netbuf_gym":
                raise
            raise MissingExtraError("a trained agent", "train", error.name) from None
        torch.set_num_threads(1)
        saved = checkpoint.read(path)
        self.model_sha256 = hashlib.sha256(saved.path.read_bytes()).hexdigest()
        schema = saved.env.get("schema") or {}
        if schema.get("task") != QueueThreshold.name:
            raise ConfigError(f"agent = {path!r} was trained on {saved.env.get('id')!r}; valid: an agent for queue thresholds")
        kwargs = dict(saved.env["kwargs"])
        self.kwargs = {key: value for key, value in kwargs.items() if key not in OURS}
        env = models.make_env(saved.env["id"], 1, 1, kwargs)
        try:
            checkpoint.require_same_env(saved, checkpoint.describe(env, saved.env["id"], kwargs))
            self._model = models.make_model(_small(saved.config.algo), env, seed=0)
            checkpoint.restore(saved, self._model, rng=False)
        finally:
            env.close()


def _small(algo: Any) -> Any:
    """The same networks without the memory that only training needs."""
    from omegaconf import OmegaConf

    small = {"n_steps": 2, "batch_size": 2, "buffer_size": 1}
    return OmegaConf.merge(algo, {"kwargs": {key: value for key, value in small.items() if key in algo.kwargs}})
