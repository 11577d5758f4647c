"""Training of a trial: as `netbuf-gym train` does it, but in parts, so that the model can be scored between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omegaconf import DictConfig
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from netbuf_gym.training import callbacks, curriculum, learning
from netbuf_gym.training.callbacks import Interrupt, StopCondition
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints import learner_state as moments
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.training.train import (
    build_learner,
    describe_env,
    detect_divergence,
    make_constraint_updates,
    make_lagrangian,
)


class InterruptedTrial(Exception):
    """A signal was received."""


class _PartStop(StopCondition):
    """Ends a part of a training at a number of steps, or when interrupted; calls `alive` now and then."""

    def __init__(self, interrupt: Interrupt, alive: Callable[[], None]):
        super().__init__(interrupt, None)
        self.alive, self.until = alive, 0

    @property
    def interrupted(self) -> bool:
        return False  # an interrupted trial is dropped, and needs no moment

    def should_stop(self) -> bool:
        self.alive()
        return self.model.num_timesteps >= self.until or self.interrupt.received is not None

    def may_continue(self) -> bool:
        return True


class _NoMoments(learning.MomentKeeper):
    """Boundaries that keep no moments."""

    def __init__(self, stop: _PartStop):
        self._ours = stop
        super(learning.MomentKeeper, self).__init__()
        self.stop, self.iterations, self.timesteps, self.kept = stop, 0, 0, None

    def _on_training_start(self) -> None:
        pass

    def _on_rollout_start(self) -> None:
        self.timesteps = self.model.num_timesteps


class TrialTraining:
    """One training of a trial, with a seed of its own.

    Several may take turns: each has random generators of its own, and learns exactly what `netbuf-gym train` would.

    Args:
        config: Configuration of the training.
        interrupt: Interruption that ends the training early.
        alive: Called now and then.

    Raises:
        ConfigError, ScenarioError: As `netbuf-gym train` does.
    """

    def __init__(self, config: DictConfig, interrupt: Interrupt, alive: Callable[[], None] = lambda: None):
        self.config, self.interrupt = config, interrupt
        kwargs = build_env_kwargs(config)
        self.worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
        try:
            self.model, recorder = build_learner(config, self.worlds)
        except BaseException:
            self.worlds.close()
            raise
        self.model.set_logger(Logger(None, []))
        self._env = describe_env(self.model, config, kwargs)
        self._part = _PartStop(interrupt, alive)
        self._boundaries = _NoMoments(self._part)
        follow = curriculum.make_stage_setter(config, recorder.set_stage)
        self._callbacks: list[BaseCallback] = []
        if config.curriculum:
            self._callbacks.append(callbacks.StageUpdates(config.total_timesteps, self._part, follow))
        if (lagrangian := make_lagrangian(config)) is not None:
            self._callbacks.append(make_constraint_updates(config, self.model, self._env, lagrangian, self._part))
        self._generators = moments.get_generator_states()

    def train_until(self, timesteps: int) -> None:
        """Train up to a number of steps, by the schedules of the whole training.

        Raises:
            DivergedError: The learner's numbers became infinite or NaN.
            InterruptedTrial: A signal was received.
        """
        moments.set_generator_states(self._generators)
        self._part.until = timesteps
        fresh = self.model.num_timesteps == 0
        with detect_divergence():
            learning.learn(self.model, self.config.total_timesteps, self._boundaries, self._callbacks, fresh)
        self._generators = moments.get_generator_states()
        if self.interrupt.received is not None:
            raise InterruptedTrial

    @property
    def has_learned(self) -> bool:
        """True once the networks have been updated."""
        return self.model._n_updates > 0

    def write(self, path: Path) -> None:
        """Write the current model."""
        progress = {"timesteps": self.model.num_timesteps, "seconds": 0.0, "updates": self.model._n_updates, "finished": False}
        checkpoint.save_model(path, self.model, self.config, self._env, progress)

    def close(self) -> None:
        """Close the worlds."""
        self.worlds.close()
